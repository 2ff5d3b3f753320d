"""The notes and questions of the relevance benchmark: written by hand, none taken from a data set.

``relevance.txt`` has them in three parts. An answerable question uses other words than its note. An
unrelated question is about a subject of no note. A template is a sentence with gaps, and the words
of each gap: the other notes, of one person's home, work and travel.
"""

import random
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Final


def parts_of(path: Path) -> dict[str, list[str]]:
    """Return the lines of each part of a file of notes and questions."""
    parts = path.read_text(encoding="utf-8").split("# ")
    return {part.splitlines()[0]: part.splitlines()[1:] for part in parts if part}


def pairs_of(parts: dict[str, list[str]]) -> tuple[tuple[str, str], ...]:
    """Return each note with its question."""
    lines = (line.split(" | ") for line in parts["answerable"] if line)
    return tuple((note, question) for note, question in lines)


_PARTS: Final = parts_of(Path(__file__).with_name("relevance.txt"))

ANSWERABLE: Final = pairs_of(_PARTS)
"""A note, and a question that it answers in other words."""

UNRELATED: Final = tuple(line for line in _PARTS["unrelated"] if line)
"""Questions that no note answers."""

_WEEKS: Final = ("", "Week 12: ", "Week 31: ")


def notes(
    count: int = 1_000, seed: int = 7, *, answerable: Sequence[tuple[str, str]] = ANSWERABLE
) -> list[str]:
    """Return distinct notes in a seeded order: those with an answer, and the rest."""
    fillers: list[str] = []
    for line in _PARTS["templates"]:
        sentence, *gaps = (part.strip() for part in line.split("|"))
        words = [gap.split("; ") for gap in gaps]
        fillers += [
            f"{week}{sentence.format(*chosen)}." for chosen in product(*words) for week in _WEEKS
        ]
    dice = random.Random(seed)
    dice.shuffle(fillers)
    chosen = [note for note, _ in answerable] + fillers[: count - len(answerable)]
    dice.shuffle(chosen)
    return chosen
