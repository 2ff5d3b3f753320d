"""The held-out set of `relevance_bench`: notes and questions that the floor has never seen.

``relevance_held_out.txt`` has fifty notes with a question that each answers in other words, and
fifty questions that no note answers. The set was written after the floor of relevance, and without
sight of the floor's values, of the first set's questions or of any score. Never tune the floor on
it, and never edit a question because of its score: a set that fits the floor measures nothing.
"""

from pathlib import Path
from typing import Final

from benchmarks.relevance_notes import pairs_of, parts_of

_PARTS: Final = parts_of(Path(__file__).with_suffix(".txt"))

ANSWERABLE: Final = pairs_of(_PARTS)
"""A note, and a question that the note answers in other words."""

UNRELATED: Final = tuple(line for line in _PARTS["unrelated"] if line)
"""Questions that no note answers: common knowledge, near subjects, other people, gaps."""
