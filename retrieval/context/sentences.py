"""Extracts: the sentences of a text that convey most of it in few tokens.

Owns the choice, by maximal marginal relevance (J. Carbonell and J. Goldstein, *The Use of MMR,
Diversity-Based Reranking for Reordering Documents and Producing Summaries*, SIGIR 1998): the next
sentence is that with the greatest

    λ · cos(s, q) − (1 − λ) · max cos(s, c) over the chosen sentences c

with a sentence as the set of its terms, q as the terms of the text that match the question, and
cos(a, b) = |a ∩ b| / √(|a| |b|). λ is 0.7, the paper's value for a precise question; ties go to the
earlier sentence, so the extract of a text that only its vector matches starts at its beginning.
"""

import math
import re
from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

from cerata.projections.fulltext.analyzer import terms

from ..chunking import SENTENCE_END
from ..tables import Table, row_end, table_at

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
