"""Processor time of questions to conversations in this checkout, compared with another commit.

``python -m benchmarks.question_bench OTHER`` (``--turns``, ``--rounds``, ``--tiny``). OTHER is a
checkout of the other commit, such as ``git worktree add ../before COMMIT`` creates. The same
program, `question_probe`, runs in both checkouts in turn, each time in a new process that writes
its memory, so that both meet the same conditions. Each asks by the default profile of its commit:

- question: of 5 to 8 words; of ten very frequent words; with a period; with a speaker's name;
- cold question: opening the file and the first question; after an append: the first question then;
- put and fold: writing a turn, and saving the projections of it; the file's size.

Modes: words; vectors, with a pooled vector of each turn and question; tokens, with token vectors,
too. Vectors are random, and no model runs. Each line has the median of both, and the median of the
ratios of the rounds. Goals: questions at most 2, put, fold and size at most 1.05.
"""

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Final

from .append_bench import machine

PROBE: Final = Path(__file__).with_name("question_probe.py")
MODES: Final = ("words", "vectors", "tokens")
TOKENS_TURNS_MAX: Final = 10_000
"""Token vectors of more turns take minutes to write."""


def run_probe(checkout: Path, turns: int, questions: int, mode: str) -> dict[str, float]:
    """Run the probe in a checkout; return its times and sizes."""
    run = subprocess.run(
        [sys.executable, str(PROBE), str(turns), str(questions), mode],
        cwd=checkout,
        env={"PYTHONPATH": str(checkout), "PATH": ""},
        check=True,
        capture_output=True,
        text=True,
    )
    measured: dict[str, float] = json.loads(run.stdout)
    return measured


def compare(other: Path, turns: int, questions: int, rounds: int, mode: str) -> None:
    """Print the figures of both checkouts and their ratios."""
    here = Path(__file__).resolve().parents[1]
    ours: list[dict[str, float]] = []
    theirs: list[dict[str, float]] = []
    for number in range(rounds):
        # The two take turns in going first.
        pair = [(ours, here), (theirs, other.resolve())]
        for runs, checkout in pair if number % 2 else reversed(pair):
            runs.append(run_probe(checkout, turns, questions, mode))
    print(f"{mode}, {turns:,} turns")
    for name in ours[0]:
        ratios = [run[name] / peer[name] for run, peer in zip(ours, theirs, strict=True)]
        print(
            f"  {name:<26} {statistics.median(run[name] for run in ours):10.3f} here, "
            f"{statistics.median(run[name] for run in theirs):10.3f} there, "
            f"ratio {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("other", type=Path, help="a checkout of the other commit")
    parser.add_argument("--turns", type=int, nargs="+", default=[1_000, 100_000])
    parser.add_argument("--modes", nargs="+", default=MODES, choices=MODES)
    parser.add_argument("--questions", type=int, default=40, help="questions of each kind")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tiny", action="store_true", help="a few seconds")
    options = parser.parse_args()
    if options.tiny:
        options.turns, options.questions, options.rounds = [200], 3, 1
    print(machine())
    for turns in options.turns:
        for mode in options.modes:
            if mode != "tokens" or turns <= TOKENS_TURNS_MAX:
                compare(options.other, turns, options.questions, options.rounds, mode)


if __name__ == "__main__":
    main()
