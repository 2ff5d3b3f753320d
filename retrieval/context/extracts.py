"""Spans: the best part of a text for a question, to clip an entry and to show a hit."""

import math
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeAlias

from cerata.projections.fulltext import analyzer as words
from cerata.projections.fulltext.analyzer import terms
from cerata.projections.fulltext.term_weights import BESIDE, weight_of

from ..chunking import SENTENCE_END
from ..tables import Table, row_end, rows_of, table_at

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


# --- Extracts: the sentences of a text that convey most of it in few tokens -----------------------
#
# Carbonell and J. Goldstein, *The Use of MMR, Diversity-Based Reranking for Reordering Documents
# and Producing Summaries*, SIGIR 1998): the next sentence is that with the greatest
#
#     λ · cos(s, q) − (1 − λ) · max cos(s, c) over the chosen sentences c
#
# with a sentence as the set of its terms, q as the terms of the text that match the question, and
# cos(a, b) = |a ∩ b| / √(|a| |b|). λ is 0.7, the paper's value for a precise question; ties go to
# the earlier sentence, so the extract of a text that only its vector matches starts at its
# beginning.


RELEVANCE_SHARE: Final = 0.7
"""λ."""

_SENTENCES_MAX: Final = 64
"""Sentences to choose from: each is compared with the chosen sentences."""

_BEFORE: Final = _SENTENCES_MAX // 4
"""Sentences before the match at most: its explanation mostly follows."""

_SIZE_MAX: Final = 16_000
"""Characters that are read, a quarter of them before the match."""

_LINE: Final = re.compile(r"[^\r\n]+")

Marks: TypeAlias = Sequence[tuple[int, int]]
"""Matches of a question in a text: characters [start, end), ascending."""

Span: TypeAlias = tuple[int, int]
"""Characters [start, end)."""


def sentences(text: str, near: int = 0, tables: Sequence[Table] = ()) -> list[Span]:
    """Return the sentences of a text around a place, at most 64, without the blanks between.

    A line's end also ends a sentence: list items and headings often have no other end. Each row of
    ``tables`` is a sentence; their headers are none.
    """
    first = max(0, near - _SIZE_MAX // 4)
    # A sentence at a cut is treated as whole; it is far from the match.
    spans = list(_split(text, first, first + _SIZE_MAX, tables))
    before = sum(end <= near for _, end in spans)
    start = max(0, min(before - _BEFORE, len(spans) - _SENTENCES_MAX))
    return spans[start : start + _SENTENCES_MAX]


def _split(text: str, start: int, end: int, tables: Sequence[Table]) -> Iterator[Span]:
    after = start
    for line in _LINE.finditer(text, start, min(end, len(text))):
        at = line.start()
        table = table_at(tables, at)
        if at < after or (table is not None and at < table.body):
            continue
        after = line.end() if table is None else row_end(text, at, table)
        ends = () if table is not None else SENTENCE_END.finditer(text, *line.span())
        for stop in (*(match.end() for match in ends), after):
            piece = text[at:stop]
            if lead := len(piece) - len(piece.lstrip()):
                at += lead
            if piece := piece.strip():
                yield at, at + len(piece)
            at = stop


def by_worth(
    text: str, spans: Sequence[Span], marks: Marks, tables: Sequence[Table] = ()
) -> Iterator[Span]:
    """Yield sentences in order of maximal marginal relevance, best first.

    A row of ``tables`` also has the words of the question in its header. Cost: the terms of each;
    then, for each yielded sentence, a pass over the rest.
    """
    question_terms = frozenset(term for start, end in marks for term in terms(text[start:end]))
    places = [table_at(tables, start) for start, _ in spans]
    headers: dict[Table | None, frozenset[str]] = {
        table: question_terms.intersection(terms(text[table.start : table.body]))
        for table in places
        if table is not None
    }
    sentence_terms = [
        headers.get(table, frozenset()).union(terms(text[start:end]))
        for (start, end), table in zip(spans, places, strict=True)
    ]
    relevance = [RELEVANCE_SHARE * _cosine(sentence, question_terms) for sentence in sentence_terms]
    redundancy = [0.0] * len(spans)
    left = list(range(len(spans)))
    while left:
        best = max(
            left, key=lambda at: (relevance[at] - (1 - RELEVANCE_SHARE) * redundancy[at], -at)
        )
        left.remove(best)
        yield spans[best]
        for at in left:
            redundancy[at] = max(redundancy[at], _cosine(sentence_terms[at], sentence_terms[best]))


def _cosine(first: frozenset[str], second: frozenset[str]) -> float:
    shared = len(first & second)
    return shared / math.sqrt(len(first) * len(second)) if shared else 0.0
