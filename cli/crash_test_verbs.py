"""The parser of crash-test."""

import argparse
from pathlib import Path
from typing import Final

from .verb_parser import Adding, add_verb, seconds

_CASES: Final = "crash-cases"

BUDGET_S: Final = 60.0
"""Seconds of a run that names neither a time nor a number of stories."""


def add_verbs(adding: Adding) -> None:
    """Add crash-test."""
    test = add_verb(
        adding,
        "crash-test",
        "crash a program in every way, and check the recovered file",
        "crash_test.run_crash_test",
        scoped=False,
        examples=(
            "crash-test --budget 30",
            "crash-test shop.py --budget 60",
            "crash-test shop.py --stories 200 --json | jq .violations",
            "crash-test shop.py --replay crash-cases/sell.1.case",
        ),
    )
    named = test.add_argument(
        "workload",
        nargs="?",
        metavar="WORKLOAD.py",
        help="a file with one Workload class (an agent's memory)",
    )
    named.completer = _python_files  # type: ignore[attr-defined]
    test.add_argument(
        "--budget", type=_budget, metavar="SECONDS", help=f"how long to test ({BUDGET_S:.0f})"
    )
    test.add_argument(
        "--stories",
        type=_count,
        metavar="COUNT",
        help="test so many stories, without a time limit: equal counts each time",
    )
    test.add_argument(
        "--jobs", type=_count, metavar="N", help="number of processes (one for each core)"
    )
    test.add_argument("--seed", type=int, default=0, metavar="N", help="seed of all randomness (0)")
    test.add_argument(
        "--cases", metavar="FOLDER", default=_CASES, help=f"folder for saved violations ({_CASES})"
    )
    replay = test.add_argument(
        "--replay", metavar="CASE", help="open a saved crash again, and crash its story again"
    )
    replay.completer = _cases  # type: ignore[attr-defined]


def _budget(text: str) -> float:
    value = seconds(text)
    if value == 0:
        raise ValueError
    return value


def _count(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be 1 or more, not {value}")
    return value


def _python_files(prefix: str, **_: object) -> list[str]:
    return [str(path) for path in sorted(Path().glob(f"{prefix}*.py"))]


def _cases(prefix: str, **_: object) -> list[str]:
    return [str(path) for path in sorted(Path().glob(f"{prefix or _CASES + '/'}*.case"))]
