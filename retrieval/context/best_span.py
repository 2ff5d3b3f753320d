"""Spans: the best part of a text for a question, to clip an entry and to show a hit."""

import math
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeAlias

from cerata.projections.fulltext import analyzer as words
from cerata.projections.fulltext.term_weights import BESIDE, weight_of

from ..tables import Table, rows_of

_WINDOW: Final = 300
"""Characters of a span: about three lines, enough to see why the text matches."""

_Terms: TypeAlias = tuple[str, ...]
_Rank: TypeAlias = tuple[float, int]
"""The weight of distinct marked words, then the count of marks."""

_ARABIC: Final = re.compile("[\u0600-\u06ff]")


def best_span(
    text: str,
    marks: Sequence[tuple[int, int]],
    tables: Sequence[Table] = (),
    *,
    size: int = _WINDOW,
) -> tuple[int, int]:
    """Return the characters [start, end) of the window with the most distinct marked words.

    A part of a word counts a third, as in the ranking: three letters of Thai, for example.
    ``marks`` are characters [start, end) that match the question, ascending. Ties go to the
    window with more marks, then to the earliest. (0, 0) without marks.

    In each of ``tables`` a window is a row, without its line end, together with the header's marks.
    """
    kinds = _kinds(text, marks)
    best = (0, 0)
    best_rank = (0.0, 0)
    for span, rank in _windows(text, marks, kinds, tables, size):
        if rank > best_rank:
            best_rank = rank
            best = span
    return best


def _kinds(text: str, marks: Sequence[tuple[int, int]]) -> list[_Terms]:
    """Return the terms of each mark."""
    # A question has few words, each mostly in one or two forms: cut each form once.
    terms: dict[tuple[str, bool], _Terms] = {}
    kinds: list[_Terms] = []
    for start, end in marks:
        key = text[start:end], _is_within_arabic(text, start, end)
        if key not in terms:
            word, is_part = key
            terms[key] = (BESIDE + word,) if is_part else tuple(words.terms(word))
        kinds.append(terms[key])
    return kinds


def _is_within_arabic(text: str, start: int, end: int) -> bool:
    """Return whether a mark is a part of an Arabic word, which has threes beside it."""
    if not _ARABIC.match(text, start):
        return False
    return bool((start and _ARABIC.match(text, start - 1)) or _ARABIC.match(text, end))


def _weight(kinds: Iterable[_Terms]) -> float:
    """Return the weight of the distinct terms of marks; a mark without terms is a word."""
    kinds = set(kinds)
    terms = {term for kind in kinds for term in kind}
    return round(math.fsum(map(weight_of, terms)) + (() in kinds), 9)


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
        rank = (_weight(kinds[first : last + 1]), last - first + 1)
        yield (marks[first][0], end), rank


def _ranked_rows(
    text: str, marks: Sequence[tuple[int, int]], kinds: Sequence[_Terms], table: Table
) -> Iterator[tuple[tuple[int, int], _Rank]]:
    """Yield each row of a table with its rank; ``marks`` are those of the table."""
    first = bisect_left(marks, (table.body, 0))
    header = set(kinds[:first])
    of_header = _weight(header)
    for start, end in rows_of(text, table):
        last = first
        while last < len(marks) and marks[last][0] < end:
            last += 1
        own = set(kinds[first:last])
        # Not their union, which would cost the header for each row.
        weight = of_header + _weight(own - header)
        span = (start, start + len(text[start:end].rstrip()))
        yield span, (weight, len(own) and last - first)
        first = last


def ranked_rows(
    text: str, marks: Sequence[tuple[int, int]], table: Table
) -> list[tuple[tuple[int, int], _Rank]]:
    """Return each row of a table, without its line end, and its rank: weight of words, marks."""
    first, last = (bisect_left(marks, (place, 0)) for place in (table.start, table.end))
    inside = marks[first:last]
    return list(_ranked_rows(text, inside, _kinds(text, inside), table))
