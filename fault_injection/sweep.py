"""The sweeps as one command: all that can go wrong at every place, one after the other.

``python -m cerata.fault_injection.sweep --io`` runs one of them; see ``--help`` for the others.
Each prints what it tried and saw, and the exit code is 1 where something was not as promised.
"""

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from .sweep_exceptions import sweep_exceptions
from .sweep_io import sweep_io


class Tally(Protocol):
    """What a sweep returns: printed as it is; ``problems`` are sentences."""

    @property
    def problems(self) -> Sequence[str]: ...


SWEEPS: dict[str, tuple[str, Callable[[argparse.Namespace], Tally]]] = {
    "io": (
        "every system call of every story, each error that it can give, once and for ever",
        lambda options: sweep_io(share=options.share, seed=options.seed),
    ),
    "exceptions": (
        "KeyboardInterrupt and MemoryError at every bytecode of append, commit, seal, …",
        lambda options: sweep_exceptions(share=options.share, seed=options.seed),
    ),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run sweeps from the command line; the exit code is 1 where something broke."""
    parser = argparse.ArgumentParser(description="Try what can go wrong at every place.")
    for name, (what, _) in SWEEPS.items():
        parser.add_argument(f"--{name}", action="store_true", help=what)
    parser.add_argument("--share", type=int, default=1, help="try one in so many (default all)")
    parser.add_argument("--seed", type=int, default=0, help="of all that is drawn")
    options = parser.parse_args(arguments)
    chosen = [name for name in SWEEPS if getattr(options, name)]
    if not chosen:
        parser.error("name a sweep: " + ", ".join(f"--{name}" for name in SWEEPS))
    failed = False
    for name in chosen:
        started = time.perf_counter()
        tally = SWEEPS[name][1](options)
        failed |= bool(tally.problems)
        sys.stdout.write(f"{tally}\n{time.perf_counter() - started:.0f} s\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
