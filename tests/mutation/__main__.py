"""Hold the suite against every mutant of the durability core.

``python -m tests.mutation`` first runs the suite once and records which test runs which line, then
each mutant; ``--trace FILE`` keeps that record for the next time. It ends with 1 where less than
95 of a hundred mutants are noticed, or a survivor is in no list of `survivors.toml`.
"""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from .mutants import CORE, Mutant, mutants_of
from .runner import Killer, Outcome, Trace, Tracer
from .survivors import explained

TESTS = ("tests/engine", "tests/format", "tests/fault_injection", "tests/test_watching.py")
"""What has to notice; the rest of the suite is about what stands on the log."""

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
    parser.add_argument("--budget", type=float, default=30.0, help="seconds of tests for each")
    parser.add_argument("--share", default="1/1", metavar="I/N", help="every Nth mutant, from I")
    parser.add_argument("--only", metavar="FILE", help="only the mutants named in its lines")
    parser.add_argument("--tests", nargs="+", default=TESTS, metavar="PATH", help="that notice")
    options = parser.parse_args()
    share, shares = map(int, options.share.split("/"))
    every = [mutant for module in options.modules or CORE for mutant in mutants_of(module)]
    if options.only:
        names = set(Path(options.only).read_text("utf-8").splitlines())
        every = [mutant for mutant in every if mutant.name in names]
    mutants = every[share - 1 :: shares]
    started = time.monotonic()
    outcomes: Counter[Outcome] = Counter()
    reasons = explained()
    unexplained: list[str] = []

    def told(mutant: Mutant, outcome: Outcome, killer: str) -> None:
        outcomes[outcome] += 1
        if outcome in {"survived", "unreached"}:
            if mutant.name not in reasons:
                unexplained.append(mutant.name)
            sys.stdout.write(f"{outcome:10}{mutant.name}\n")
            sys.stdout.flush()

    killer = Killer(mutants, traced(options.trace, options.tests), options.budget, told)
    pytest.main([*_OPTIONS, *_SILENT, *options.tests], plugins=[killer])
    noticed = outcomes["killed"] + outcomes["hung"]
    score = noticed / max(1, len(mutants))
    sys.stdout.write(
        f"{len(mutants):,} mutants: {noticed:,} noticed ({score:.1%}), of which "
        f"{outcomes['hung']:,} hung; {outcomes['survived']:,} survived, "
        f"{outcomes['unreached']:,} are run by no test; {len(unexplained):,} without a reason; "
        f"{time.monotonic() - started:.0f} s\n"
    )
    return int(score < SCORE_MIN or bool(unexplained))


if __name__ == "__main__":
    sys.exit(main())
