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


# Each loads what it needs and no more: a process with less in it forks sooner.


def _io(options: Options) -> Tally:
    from .sweep_io import sweep_io

    return sweep_io(share=options.share, seed=options.seed)


def _exceptions(options: Options) -> Tally:
    from .sweep_exceptions import sweep_exceptions

    return sweep_exceptions(share=options.share, seed=options.seed)


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
        "KeyboardInterrupt and MemoryError at every bytecode of the engine",
        _exceptions,
    ),
    "kills": ("real processes killed at random instants (--count 25000)", _kills),
    "fuzz": ("hostile files whose checks all hold (--count 20000)", _fuzz),
    "damage": ("one range of closed and killed files: zeros, noise, older, other bytes", _damage),
    "rounds": ("two writers and a child of each on one file (--count 1000)", _rounds),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run sweeps from the command line; the exit code is 1 where something broke."""
    parser = argparse.ArgumentParser(description="Try what can go wrong at every place.")
    for name, (what, _) in SWEEPS.items():
        parser.add_argument(f"--{name}", action="store_true", help=what)
    parser.add_argument("--share", type=int, default=1, help="try one in so many (default all)")
    parser.add_argument("--count", type=int, default=0, help="of kills, rounds, files or ranges")
    parser.add_argument("--jobs", type=int, default=1, help="processes that kill at once")
    parser.add_argument("--seed", type=int, default=0, help="of all that is drawn")
    parsed = parser.parse_args(arguments)
    options = Options(parsed.share, parsed.count, parsed.jobs, parsed.seed)
    chosen = [name for name in SWEEPS if getattr(parsed, name)]
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
