"""The best span of a text for a question: where to clip, and what to show of a hit."""

from collections.abc import Sequence
from typing import Final

from cerata.projections import text as words

_WINDOW: Final = 300
"""Characters of a span: about three lines, enough to see why it was found."""


def best_span(
    text: str, marks: Sequence[tuple[int, int]], *, size: int = _WINDOW
) -> tuple[int, int]:
    """Return the characters [start, end) of the window with the most distinct marked words.

    ``marks`` are characters [start, end) of what a question asks, ascending. Ties go to the
    window with more marks, then to the earliest. (0, 0) if there is none.
    """
    # Few words are asked, and each is mostly there in one or two forms: cut each once.
    marked = [text[start:end] for start, end in marks]
    terms = {one: tuple(words.terms(one)) for one in set(marked)}
    kinds = [terms[one] for one in marked]
    best = (0, 0)
    best_rank = (0, 0)
    first = 0
    for last, (_, end) in enumerate(marks):
        while end - marks[first][0] > size and first < last:
            first += 1
        rank = (len(set(kinds[first : last + 1])), last - first + 1)
        if rank > best_rank:
            best_rank, best = rank, (marks[first][0], end)
    return best
