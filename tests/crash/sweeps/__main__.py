"""The sweeps as one command: each kind of fault at every place, one place after the other.

``python -m tests.crash.sweeps --io`` runs a single sweep; see ``--help`` for the rest.
Each prints its counts and problems, and the exit code is 1 if there is a problem.
"""

import argparse
import sys
import time
import warnings
from collections.abc import Sequence
from importlib import import_module
from typing import NamedTuple

from cerata.engine.errors import UnreadableItem


class Sweep(NamedTuple):
    """A sweep: its function, the options that it takes, and the default of ``--count``."""

    text: str
    module: str
    function: str
    options: tuple[str, ...]
    default: int = 0


_OF_READS = ("opcodes", "everywhere", "once")

SWEEPS: dict[str, Sweep] = {
    "io": Sweep(
        "every system call of every story fails, with each error, once or from then on",
        *("system_call_sweep", "sweep_io", ("share", "seed")),
    ),
    "exceptions": Sweep(
        "KeyboardInterrupt and MemoryError at every bytecode of the engine, and in every read",
        *("exception_sweep", "sweep_exceptions", ("share", "seed")),
    ),
    "reads": Sweep(
        "both in every public read alone, at every function entry (--opcodes, --everywhere)",
        *("interrupted_reads", "sweep_reads", ("share", "seed", "jobs", *_OF_READS)),
    ),
    "ctrl-c": Sweep(
        "a timer's KeyboardInterrupt in N cold reads",
        *("timer_signals", "interrupt", ("count", "seed", "jobs")),
    ),
    "kills": Sweep(
        "real processes killed at random instants (--count 25000)",
        *("kills", "kill", ("count", "seed", "jobs"), 25_000),
    ),
    "fuzz": Sweep(
        "hostile files whose checks all hold (--count 20000)",
        *("hostile_files", "fuzz", ("count", "seed"), 20_000),
    ),
    "damage": Sweep(
        "one range of closed and killed files: zeros, noise, older, other bytes",
        *("damaged_ranges", "damage", ("count", "seed"), 3_000),
    ),
    "rounds": Sweep(
        "two writers and a child of each on one file (--count 1000)",
        *("two_writers", "meet", ("count",), 1_000),
    ),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run sweeps from the command line; the exit code is 1 if a sweep has a problem."""
    # A list without a damaged item is a wrong answer here.
    warnings.simplefilter("error", UnreadableItem)
    parser = argparse.ArgumentParser(description="Inject faults at every place.")
    for name, sweep in SWEEPS.items():
        if name == "ctrl-c":
            parser.add_argument(f"--{name}", type=int, metavar="N", help=sweep.text)
        else:
            parser.add_argument(f"--{name}", action="store_true", help=sweep.text)
    parser.add_argument(
        "--share", type=int, default=1, help="try one place in this many (default all)"
    )
    parser.add_argument(
        "--count", type=int, default=0, help="number of kills, rounds, files or ranges"
    )
    parser.add_argument("--jobs", type=int, default=1, help="processes that work at once")
    parser.add_argument("--seed", type=int, default=0, help="seed of all random choices")
    parser.add_argument("--opcodes", action="store_true", help="strike every bytecode of the reads")
    parser.add_argument(
        "--everywhere", action="store_true", help="strike a function in each read that enters it"
    )
    parser.add_argument(
        "--once", action="store_true", help="strike each place of the reads once, drawn"
    )
    options = vars(parser.parse_args(arguments))
    chosen = [name for name in SWEEPS if options[name.replace("-", "_")]]
    if options["exceptions"] and not options["reads"]:
        chosen.append("reads")
    if not chosen:
        parser.error("name a sweep: " + ", ".join(f"--{name}" for name in SWEEPS))
    failed = False
    for name in chosen:
        started = time.perf_counter()
        used = time.process_time()
        sweep = SWEEPS[name]
        values = {**options, "count": options["ctrl_c"] or options["count"] or sweep.default}
        # Imported late: a smaller process forks sooner.
        function = getattr(import_module(f".{sweep.module}", __package__), sweep.function)
        tally = function(**{option: values[option] for option in sweep.options})
        failed |= bool(tally.problems)
        seconds = time.perf_counter() - started
        used = time.process_time() - used
        sys.stdout.write(
            f"{tally}\n{seconds:.0f} s, {used:.0f} s of processor time in this process\n"
        )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
