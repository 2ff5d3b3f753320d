"""Hold the suite against every mutant of the durability core.

``python -m tests.mutation`` first runs the tests that are about the modules (`about`) once and
records which test runs which line, then each mutant; ``--trace FILE`` keeps that record for the
next time. It ends with 1 where less than 95 of a hundred mutants of a module are noticed, or a
survivor is in no list of `survivors.toml`.
"""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from .about import paths_about
from .mutants import CORE, Mutant, mutants_of
from .runner import Killer, Outcome, Trace, Tracer
from .survivors import explained

SCORE_MIN = 0.95
_OPTIONS = ["-p", "no:cacheprovider", "-p", "no:xdist", "-W", "error"]
_SILENT = ["-o", "addopts=--import-mode=importlib", "-p", "no:terminal"]


def traced(path: Path | None, tests: Sequence[str]) -> Trace:
    """Return the record of the suite, from a file where there is one."""
    if path is not None and path.exists():
        return msgspec.msgpack.decode(path.read_bytes(), type=Trace)
    tracer = Tracer()
    if pytest.main([*_OPTIONS, *tests], plugins=[tracer]) != pytest.ExitCode.OK:
        raise SystemExit("The suite fails without any mutant.")
    if path is not None:
        path.write_bytes(msgspec.msgpack.encode(tracer.trace))
    return tracer.trace


def main() -> int:
    """Run and print; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("modules", nargs="*", metavar="MODULE", help="such as ring (default: all)")
    parser.add_argument("--trace", type=Path, metavar="FILE", help="keep or use the record")
    parser.add_argument("--budget", type=float, default=120.0, help="seconds of tests for each")
    parser.add_argument("--share", default="1/1", metavar="I/N", help="every Nth mutant, from I")
    parser.add_argument("--only", metavar="FILE", help="only the mutants named in its lines")
    parser.add_argument(
        "--tests", nargs="+", metavar="PATH", help="that notice (default: those about the modules)"
    )
    options = parser.parse_args()
    modules = options.modules or CORE
    tests = options.tests or paths_about(modules)
    share, shares = map(int, options.share.split("/"))
    every = [mutant for module in modules for mutant in mutants_of(module)]
    if options.only:
        names = set(Path(options.only).read_text("utf-8").splitlines())
        every = [mutant for mutant in every if mutant.name in names]
    mutants = every[share - 1 :: shares]
    started = time.monotonic()
    outcomes: Counter[Outcome] = Counter()
    noticed: Counter[str] = Counter()
    reasons = explained()
    unexplained: list[str] = []

    def told(mutant: Mutant, outcome: Outcome, killer: str) -> None:
        outcomes[outcome] += 1
        if outcome in {"killed", "hung"}:
            noticed[mutant.module] += 1
            return
        if mutant.name not in reasons:
            unexplained.append(mutant.name)
        sys.stdout.write(f"{outcome:10}{mutant.name}\n")
        sys.stdout.flush()

    killer = Killer(mutants, traced(options.trace, tests), options.budget, told)
    pytest.main([*_OPTIONS, *_SILENT, *tests], plugins=[killer])
    counts = Counter(mutant.module for mutant in mutants)
    for module, count in counts.items():
        sys.stdout.write(
            f"{module:16}{noticed[module]:4} of {count:4}, {noticed[module] / count:.1%}\n"
        )
    sys.stdout.write(
        f"{len(mutants):,} mutants: {noticed.total():,} noticed, of which "
        f"{outcomes['hung']:,} hung; {outcomes['survived']:,} survived, "
        f"{outcomes['unreached']:,} are run by no test; {len(unexplained):,} without a reason; "
        f"{time.monotonic() - started:.0f} s\n"
    )
    short = any(noticed[module] < SCORE_MIN * count for module, count in counts.items())
    return int(short or bool(unexplained))


if __name__ == "__main__":
    sys.exit(main())
