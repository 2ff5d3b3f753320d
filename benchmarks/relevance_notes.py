"""The notes and questions of the relevance benchmark: written by hand, none taken from a data set.

``relevance.txt`` has them in three parts. An answerable question uses other words than its note. An
unrelated question is about a subject of no note. A template is a sentence with gaps, and the words
of each gap: the other notes, of one person's home, work and travel.
"""

import random
from itertools import product
from pathlib import Path
from typing import Final

_PARTS: Final = {
    part.splitlines()[0]: part.splitlines()[1:]
    for part in Path(__file__).with_name("relevance.txt").read_text(encoding="utf-8").split("# ")
    if part
}

ANSWERABLE: Final = tuple(
    (note, question)
    for note, question in (line.split(" | ") for line in _PARTS["answerable"] if line)
)
"""A note, and a question that it answers in other words."""

UNRELATED: Final = tuple(line for line in _PARTS["unrelated"] if line)
"""Questions that no note answers."""

_WEEKS: Final = ("", "Week 12: ", "Week 31: ")


def notes(count: int = 1_000, seed: int = 7) -> list[str]:
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
    chosen = [note for note, _ in ANSWERABLE] + fillers[: count - len(ANSWERABLE)]
    dice.shuffle(chosen)
    return chosen
