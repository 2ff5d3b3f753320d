"""The sweeps as one command: each kind of fault at every place, one place after the other.

``python -m cerata.fault_injection.sweeps --io`` runs a single sweep; see ``--help`` for the rest.
Each prints its counts and problems, and the exit code is 1 if there is a problem.
"""

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol


class Tally(Protocol):
    """The result of a sweep, printed by ``str``; ``problems`` are sentences."""

    @property
    def problems(self) -> Sequence[str]: ...


@dataclass(frozen=True, slots=True)
class Options:
    """The options: ``share``, try one place in this many; ``count``, 0 for the default."""

    share: int
    count: int
    jobs: int
    seed: int
    opcodes: bool = False
    everywhere: bool = False


# Each imports only the modules of one sweep: a smaller process forks sooner.


def _io(options: Options) -> Tally:
    from .system_call_sweep import sweep_io

    return sweep_io(share=options.share, seed=options.seed)


def _exceptions(options: Options) -> Tally:
    from .exception_sweep import sweep_exceptions

    return sweep_exceptions(share=options.share, seed=options.seed)


def _reads(options: Options) -> Tally:
    from .interrupted_reads import sweep_reads

    return sweep_reads(
        share=options.share,
        seed=options.seed,
        jobs=options.jobs,
        opcodes=options.opcodes,
        everywhere=options.everywhere,
    )


def _ctrl_c(options: Options) -> Tally:
    from .timer_signals import interrupt

    return interrupt(options.count, seed=options.seed, jobs=options.jobs)


def _kills(options: Options) -> Tally:
    from .kills import kill

    return kill(options.count or 25_000, seed=options.seed, jobs=options.jobs)


def _rounds(options: Options) -> Tally:
    from .two_writers import meet

    return meet(options.count or 1_000)


def _fuzz(options: Options) -> Tally:
    from .hostile_files import fuzz

    return fuzz(options.count or 20_000, seed=options.seed)


def _damage(options: Options) -> Tally:
    from .damaged_ranges import damage

    return damage(options.count or 3_000, seed=options.seed)


SWEEPS: dict[str, tuple[str, Callable[[Options], Tally]]] = {
    "io": ("every system call of every story fails, with each error, once or from then on", _io),
    "exceptions": (
        "KeyboardInterrupt and MemoryError at every bytecode of the engine, and in every read",
        _exceptions,
    ),
    "reads": (
        "both in every public read alone, at every function entry (--opcodes, --everywhere)",
        _reads,
    ),
    "ctrl-c": ("a timer's KeyboardInterrupt in N cold reads", _ctrl_c),
    "kills": ("real processes killed at random instants (--count 25000)", _kills),
    "fuzz": ("hostile files whose checks all hold (--count 20000)", _fuzz),
    "damage": ("one range of closed and killed files: zeros, noise, older, other bytes", _damage),
    "rounds": ("two writers and a child of each on one file (--count 1000)", _rounds),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run sweeps from the command line; the exit code is 1 if a sweep has a problem."""
    parser = argparse.ArgumentParser(description="Inject faults at every place.")
    for name, (text, _) in SWEEPS.items():
        if name == "ctrl-c":
            parser.add_argument(f"--{name}", type=int, metavar="N", help=text)
        else:
            parser.add_argument(f"--{name}", action="store_true", help=text)
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
    parsed = parser.parse_args(arguments)
    options = Options(
        share=parsed.share,
        count=parsed.ctrl_c or parsed.count,
        jobs=parsed.jobs,
        seed=parsed.seed,
        opcodes=parsed.opcodes,
        everywhere=parsed.everywhere,
    )
    chosen = [name for name in SWEEPS if getattr(parsed, name.replace("-", "_"))]
    if parsed.exceptions and not parsed.reads:
        chosen.append("reads")
    if not chosen:
        parser.error("name a sweep: " + ", ".join(f"--{name}" for name in SWEEPS))
    failed = False
    for name in chosen:
        started = time.perf_counter()
        used = time.process_time()
        tally = SWEEPS[name][1](options)
        failed |= bool(tally.problems)
        seconds = time.perf_counter() - started
        used = time.process_time() - used
        sys.stdout.write(
            f"{tally}\n{seconds:.0f} s, {used:.0f} s of processor time in this process\n"
        )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
