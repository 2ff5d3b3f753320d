"""Spans: the best part of a text for a question, to clip an entry and to show a hit."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

from cerata.projections.fulltext import analyzer as words

from ..tables import Table, rows_of

_WINDOW: Final = 300
"""Characters of a span: about three lines, enough to see why the text matches."""

_Terms: TypeAlias = tuple[str, ...]
_Rank: TypeAlias = tuple[int, int]
"""The count of distinct marked words, then the count of marks."""


def best_span(
    text: str,
    marks: Sequence[tuple[int, int]],
    tables: Sequence[Table] = (),
    *,
    size: int = _WINDOW,
) -> tuple[int, int]:
    """Return the characters [start, end) of the window with the most distinct marked words.

    ``marks`` are characters [start, end) that match the question, ascending. Ties go to the
    window with more marks, then to the earliest. (0, 0) without marks.

    In each of ``tables`` a window is a row, without its line end, together with the header's marks.
    """
    # A question has few words, each mostly in one or two forms: cut each form once.
    marked = [text[start:end] for start, end in marks]
    terms = {word: tuple(words.terms(word)) for word in set(marked)}
    kinds = [terms[word] for word in marked]
    best = (0, 0)
    best_rank = (0, 0)
    for span, rank in _windows(text, marks, kinds, tables, size):
        if rank > best_rank:
            best_rank = rank
            best = span
    return best


def _windows(
    text: str,
    marks: Sequence[tuple[int, int]],
    kinds: Sequence[_Terms],
    tables: Sequence[Table],
    size: int,
) -> Iterator[tuple[tuple[int, int], _Rank]]:
    """Yield the windows and rows, ascending, each with its rank."""
    at = 0
    for table in tables:
        first, last = (bisect_left(marks, (place, 0)) for place in (table.start, table.end))
        yield from _windows_of(marks[at:first], kinds[at:first], size)
        for span, rank in _ranked_rows(text, marks[first:last], kinds[first:last], table):
            if rank[0]:
                yield span, rank
        at = last
    yield from _windows_of(marks[at:], kinds[at:], size)


def _windows_of(
    marks: Sequence[tuple[int, int]], kinds: Sequence[_Terms], size: int
) -> Iterator[tuple[tuple[int, int], _Rank]]:
    first = 0
    for last, (_, end) in enumerate(marks):
        while end - marks[first][0] > size and first < last:
            first += 1
        rank = (len(set(kinds[first : last + 1])), last - first + 1)
        yield (marks[first][0], end), rank


def _ranked_rows(
    text: str, marks: Sequence[tuple[int, int]], kinds: Sequence[_Terms], table: Table
) -> Iterator[tuple[tuple[int, int], _Rank]]:
    """Yield each row of a table with its rank; ``marks`` are those of the table."""
    first = bisect_left(marks, (table.body, 0))
    header = set(kinds[:first])
    for start, end in rows_of(text, table):
        last = first
        while last < len(marks) and marks[last][0] < end:
            last += 1
        own = set(kinds[first:last])
        # Not their union, which would cost the header for each row.
        count = len(header) + len(own - header)
        span = (start, start + len(text[start:end].rstrip()))
        yield span, (count, len(own) and last - first)
        first = last


def ranked_rows(
    text: str, marks: Sequence[tuple[int, int]], table: Table
) -> list[tuple[tuple[int, int], _Rank]]:
    """Return each row of a table, without its line end, and its rank: distinct words, marks."""
    first, last = (bisect_left(marks, (place, 0)) for place in (table.start, table.end))
    inside = marks[first:last]
    kinds = [tuple(words.terms(text[start:end])) for start, end in inside]
    return list(_ranked_rows(text, inside, kinds, table))
