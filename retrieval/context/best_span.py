"""Spans: the best part of a text for a question, to clip an entry and to show a hit."""

from collections.abc import Sequence
from typing import Final

from cerata.projections.fulltext import analyzer as words

_WINDOW: Final = 300
"""Characters of a span: about three lines, enough to see why the text matches."""


def best_span(
    text: str, marks: Sequence[tuple[int, int]], *, size: int = _WINDOW
) -> tuple[int, int]:
    """Return the characters [start, end) of the window with the most distinct marked words.

    ``marks`` are characters [start, end) that match the question, ascending. Ties go to the
    window with more marks, then to the earliest. (0, 0) without marks.
    """
    # A question has few words, each mostly in one or two forms: cut each form once.
    marked = [text[start:end] for start, end in marks]
    terms = {word: tuple(words.terms(word)) for word in set(marked)}
    kinds = [terms[word] for word in marked]
    best = (0, 0)
    best_rank = (0, 0)
    first = 0
    for last, (_, end) in enumerate(marks):
        while end - marks[first][0] > size and first < last:
            first += 1
        rank = (len(set(kinds[first : last + 1])), last - first + 1)
        if rank > best_rank:
            best_rank = rank
            best = (marks[first][0], end)
    return best
