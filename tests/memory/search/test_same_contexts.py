"""The contexts of drawn questions and options over a drawn memory are those of earlier commits.

``CERATA_GOLDEN=write pytest tests/memory/search/test_same_contexts.py`` writes the fixed answers
anew: do so only if a change of contexts is meant. The draws choose the frames, so a change of the
ranking changes none. ``python -m tests.memory.search.drawn_contexts`` compares more of them.
"""

import os
from pathlib import Path

from .drawn_contexts import answers, line_of

SEED = 11
COUNT = 96
FIXED = Path(__file__).parent / "golden" / "contexts.txt"


def test_contexts_are_those_of_earlier_commits() -> None:
    """A faster path once counted the tokens of a whole text for its cut form.

    A line also has the hash of some frames that are read by their ids.
    """
    lines = [line_of(shown) for _, shown in answers(SEED, COUNT, chosen=True)]
    if os.environ.get("CERATA_GOLDEN") == "write":
        FIXED.write_text("".join(f"{line}\n" for line in lines))
    assert lines == FIXED.read_text().splitlines()
