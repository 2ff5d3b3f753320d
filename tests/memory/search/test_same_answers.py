"""The answers of drawn questions, and the bytes of drawn writes, are those of earlier commits.

``CERATA_GOLDEN=write pytest tests/memory/search/test_same_answers.py`` writes the fixed answers
anew: do so only if a change of answers or of bytes is meant. ``python -m
tests.memory.search.drawn_answers`` compares more of them.
"""

import os
from pathlib import Path

from .drawn_answers import lines

SEED = 11
COUNT = 64
FIXED = Path(__file__).parent / "golden" / "answers.txt"


def test_answers_are_those_of_earlier_commits() -> None:
    """A line has the best hits and the hash of hits, explanations, facts and frames.

    The last lines have the hash of a file after drawn writes and checkpoints, with its digests.
    """
    shown = list(lines(SEED, COUNT))
    if os.environ.get("CERATA_GOLDEN") == "write":
        FIXED.write_text("".join(f"{line}\n" for line in shown))
    assert shown == FIXED.read_text().splitlines()
