"""The best span of a text for a question: where to clip, and what to highlight."""

from typing import Final

from cerata.projections import text as words

_WINDOW: Final = 300
"""Characters of a span: about three lines, enough to see why it was found."""


def best_span(text: str, terms: frozenset[str], *, size: int = _WINDOW) -> tuple[int, int]:
    """Return the characters [start, end) of the window with the most distinct terms.

    Ties go to the window with more words found, then to the earliest. (0, 0) if no term occurs.
    """
    found = [span for span in words.spans(text) if span.term in terms]
    best = (0, 0)
    best_rank = (0, 0)
    first = 0
    for last, span in enumerate(found):
        while span.end - found[first].start > size and first < last:
            first += 1
        inside = found[first : last + 1]
        rank = (len({one.term for one in inside}), len(inside))
        if rank > best_rank:
            best_rank, best = rank, (inside[0].start, inside[-1].end)
    return best
