"""Questions about this conversation and about another: how many a context answers.

Each of `COUNT` questions that name a speaker goes to its own conversation, and thrice to the next
one: as it is; with the names of the next conversation's speakers; and with "they" for each name. A
question is answered if its context has entries, and no line that none of them clearly answers
(`is_clear`).
"""

import re
from collections.abc import Iterator
from typing import Any, Final

from cerata import Context, View

from .judged_set import Corpus, JudgedSet, Question

COUNT: Final = 189
"""Questions, spread evenly over the questions with an answer and the name of a speaker."""

ADVERSARIAL: Final = "adversarial"
CONTEXT_TOKENS: Final = 500
FORMS: Final = ("own", "another's", "with names", "they")

Counts = dict[str, int]
"""The answered questions of each of `FORMS`."""


def is_clear(context: Context) -> bool:
    """Return whether a context has entries that it presents as an answer."""
    confidence = getattr(context, "confidence", None)
    return bool(context.items) and confidence in (None, "clear")


def chosen(judged: JudgedSet) -> list[tuple[int, Question]]:
    """Return `COUNT` questions, with the place of their conversation."""
    named = [
        (place, question)
        for place, corpus in enumerate(judged.corpora)
        for question in corpus.questions
        if question.category != ADVERSARIAL and _names(question.text, speakers(corpus))
    ]
    count = min(COUNT, len(named))
    return [named[round(number * len(named) / count)] for number in range(count)]


def speakers(corpus: Corpus) -> list[str]:
    """Return the speakers of a conversation in the order of their first turns."""
    return [*dict.fromkeys(document.role for document in corpus.documents if document.role)]


def asked_of(judged: JudgedSet, place: int) -> Iterator[tuple[str, str]]:
    """Yield the form and text of each question to a conversation."""
    count = len(judged.corpora)
    for home, question in chosen(judged):
        if home == place:
            yield "own", question.text
        if (home + 1) % count == place:
            names = speakers(judged.corpora[home])
            here = speakers(judged.corpora[place])
            yield "another's", question.text
            yield "with names", _renamed(question.text, names, here)
            yield "they", _renamed(question.text, names, ["they"] * len(names))


def count(judged: JudgedSet, place: int, view: View, profile: Any, counts: Counts) -> None:
    """Add the answered questions of a conversation to the counts."""
    for form, text in asked_of(judged, place):
        context = view.recall(text, max_tokens=CONTEXT_TOKENS, profile=profile)
        counts[form] = counts.get(form, 0) + is_clear(context)


def _names(text: str, names: list[str]) -> bool:
    return any(re.search(rf"\b{re.escape(name)}\b", text) for name in names)


def _renamed(text: str, names: list[str], replacements: list[str]) -> str:
    """Return a text with each name replaced by its replacement at the same place."""
    for number, name in enumerate(names):
        text = re.sub(rf"\b{re.escape(name)}\b", replacements[number % len(replacements)], text)
    return text
