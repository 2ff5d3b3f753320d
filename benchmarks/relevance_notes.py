"""The notes and questions of the relevance benchmark: written by hand, none taken from a data set.

Three files have a set each (`SETS`): fifty notes, each with a question that it answers in other
words, and fifty questions that no note answers. ``relevance.txt``, written with the floor, also has
templates, sentences with gaps and the words of each gap: the other notes of every set, of one
person's home, work and travel. ``relevance_held_out.txt`` and ``relevance_third.txt`` were written
after the floor, without sight of a score. Never tune a floor on them, and never edit a question
because of its score: a set that fits the floor measures nothing.
"""

import random
from itertools import product
from pathlib import Path
from typing import Final, NamedTuple


class QuestionSet(NamedTuple):
    """Notes, each with its question, and questions that no note answers."""

    name: str
    answerable: tuple[tuple[str, str], ...]
    unrelated: tuple[str, ...]


def _parts_of(file: str) -> dict[str, list[str]]:
    """Return the lines of each part of a file of notes and questions."""
    text = Path(__file__).with_name(file).read_text(encoding="utf-8")
    parts = (part.splitlines() for part in text.split("# ") if part)
    return {title: [line for line in lines if line] for title, *lines in parts}


def _set_of(name: str, file: str) -> QuestionSet:
    parts = _parts_of(file)
    pairs = (line.split(" | ") for line in parts["answerable"])
    answerable = tuple((note, question) for note, question in pairs)
    return QuestionSet(name, answerable, tuple(parts["unrelated"]))


SETS: Final = (
    _set_of("written with the floor", "relevance.txt"),
    _set_of("held out", "relevance_held_out.txt"),
    _set_of("third", "relevance_third.txt"),
)
"""The sets, in the order in which they were written."""

_TEMPLATES: Final = _parts_of("relevance.txt")["templates"]
_WEEKS: Final = ("", "Week 12: ", "Week 31: ")


def notes(questions: QuestionSet, count: int = 1_000, seed: int = 7) -> list[str]:
    """Return distinct notes in a seeded order: those with an answer, and the rest."""
    fillers: list[str] = []
    for line in _TEMPLATES:
        sentence, *gaps = (part.strip() for part in line.split("|"))
        words = [gap.split("; ") for gap in gaps]
        fillers += [
            f"{week}{sentence.format(*chosen)}." for chosen in product(*words) for week in _WEEKS
        ]
    dice = random.Random(seed)
    dice.shuffle(fillers)
    answers = [note for note, _ in questions.answerable]
    chosen = answers + fillers[: count - len(answers)]
    dice.shuffle(chosen)
    return chosen
