"""The sweeps as one command: all that can go wrong at every place, one after the other.

``python -m cerata.fault_injection.sweep --io`` runs one of them; see ``--help`` for the others.
Each prints what it tried and saw, and the exit code is 1 where something was not as promised.
"""

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol


class Tally(Protocol):
    """What a sweep returns: printed as it is; ``problems`` are sentences."""

    @property
    def problems(self) -> Sequence[str]: ...


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line says: ``share``, one in so many; ``count``, 0 for the usual."""

    share: int
    count: int
    jobs: int
    seed: int
    opcodes: bool = False
    everywhere: bool = False


# Each loads what it needs and no more: a process with less in it forks sooner.


def _io(options: Options) -> Tally:
    from .sweep_io import sweep_io

    return sweep_io(share=options.share, seed=options.seed)


def _exceptions(options: Options) -> Tally:
    from .sweep_exceptions import sweep_exceptions

    return sweep_exceptions(share=options.share, seed=options.seed)


def _reads(options: Options) -> Tally:
    from .sweep_reads import sweep_reads

    return sweep_reads(
        share=options.share,
        seed=options.seed,
        jobs=options.jobs,
        opcodes=options.opcodes,
        everywhere=options.everywhere,
    )


def _ctrl_c(options: Options) -> Tally:
    from .ctrl_c import interrupt

    return interrupt(options.count, seed=options.seed, jobs=options.jobs)


def _kills(options: Options) -> Tally:
    from .kills import kill

    return kill(options.count or 25_000, seed=options.seed, jobs=options.jobs)


def _rounds(options: Options) -> Tally:
    from .rounds import meet

    return meet(options.count or 1_000)


def _fuzz(options: Options) -> Tally:
    from .decoders import fuzz

    return fuzz(options.count or 20_000, seed=options.seed)


def _damage(options: Options) -> Tally:
    from .contiguous import damage

    return damage(options.count or 3_000, seed=options.seed)


SWEEPS: dict[str, tuple[str, Callable[[Options], Tally]]] = {
    "io": ("every system call of every story, each error that it can give, once and for ever", _io),
    "exceptions": (
        "KeyboardInterrupt and MemoryError at every bytecode of the engine, and in every read",
        _exceptions,
    ),
    "reads": (
        "the same in every public read alone, at every function entry (--opcodes, --everywhere)",
        _reads,
    ),
    "ctrl-c": ("a timer's KeyboardInterrupt in so many cold reads", _ctrl_c),
    "kills": ("real processes killed at random instants (--count 25000)", _kills),
    "fuzz": ("hostile files whose checks all hold (--count 20000)", _fuzz),
    "damage": ("one range of closed and killed files: zeros, noise, older, other bytes", _damage),
    "rounds": ("two writers and a child of each on one file (--count 1000)", _rounds),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run sweeps from the command line; the exit code is 1 where something broke."""
    parser = argparse.ArgumentParser(description="Try what can go wrong at every place.")
    for name, (what, _) in SWEEPS.items():
        if name == "ctrl-c":
            parser.add_argument(f"--{name}", type=int, metavar="N", help=what)
        else:
            parser.add_argument(f"--{name}", action="store_true", help=what)
    parser.add_argument("--share", type=int, default=1, help="try one in so many (default all)")
    parser.add_argument("--count", type=int, default=0, help="of kills, rounds, files or ranges")
    parser.add_argument("--jobs", type=int, default=1, help="processes that work at once")
    parser.add_argument("--seed", type=int, default=0, help="of all that is drawn")
    parser.add_argument("--opcodes", action="store_true", help="of reads, strike every bytecode")
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
        started, used = time.perf_counter(), time.process_time()
        tally = SWEEPS[name][1](options)
        failed |= bool(tally.problems)
        seconds, used = time.perf_counter() - started, time.process_time() - used
        sys.stdout.write(f"{tally}\n{seconds:.0f} s, {used:.0f} s of this process's own time\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
