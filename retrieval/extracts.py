"""Extracts: the sentences of a text that say most of it in few tokens.

Owns the choice, by maximal marginal relevance (J. Carbonell and J. Goldstein, *The Use of MMR,
Diversity-Based Reranking for Reordering Documents and Producing Summaries*, SIGIR 1998): the next
sentence is the one with the greatest

    λ · cos(s, q) − (1 − λ) · max cos(s, c) over those chosen before

where a sentence is the set of its terms, q are the terms of the text that the question asks for,
and cos(a, b) = |a ∩ b| / √(|a| |b|). λ is 0.7, the paper's for a question that says what it wants;
ties go to the earlier sentence, so a text that only its vector found is told from its beginning.
"""

import math
import re
from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

from cerata.projections.text import terms

from .passages import SENTENCE_END

RELEVANCE_SHARE: Final = 0.7
"""λ."""

_SENTENCES_MAX: Final = 64
"""Sentences that are chosen from: each costs a look at those chosen."""

_BEFORE: Final = _SENTENCES_MAX // 4
"""How many of them may stand before what was asked for: what explains it mostly follows."""

_SIZE_MAX: Final = 16_000
"""Characters that are looked at, a quarter of them before what was asked for."""

_LINE: Final = re.compile(r"[^\r\n]+")

Marks: TypeAlias = Sequence[tuple[int, int]]
"""Where a text says what a question asks: characters [start, end), ascending."""

Span: TypeAlias = tuple[int, int]
"""Characters [start, end)."""


def sentences(text: str, near: int = 0) -> list[Span]:
    """Return the sentences of a text around a place, at most 64, without the blanks between.

    A line's end ends a sentence too: what is listed or a heading has often no other.
    """
    first = max(0, near - _SIZE_MAX // 4)
    # What stands at the cuts is told as if it were whole; it is far from what was asked for.
    found = list(_split(text, first, first + _SIZE_MAX))
    here = sum(end <= near for _, end in found)
    start = max(0, min(here - _BEFORE, len(found) - _SENTENCES_MAX))
    return found[start : start + _SENTENCES_MAX]


def _split(text: str, start: int, end: int) -> Iterator[Span]:
    for line in _LINE.finditer(text, start, min(end, len(text))):
        at = line.start()
        for stop in (*(one.end() for one in SENTENCE_END.finditer(text, *line.span())), line.end()):
            piece = text[at:stop]
            if lead := len(piece) - len(piece.lstrip()):
                at += lead
            if piece := piece.strip():
                yield at, at + len(piece)
            at = stop


def by_worth(text: str, spans: Sequence[Span], marks: Marks) -> Iterator[Span]:
    """Yield sentences, the one worth most first, by maximal marginal relevance.

    Cost: the terms of each; then for each that is yielded a look at all that are left.
    """
    asked = frozenset(term for start, end in marks for term in terms(text[start:end]))
    own = [frozenset(terms(text[start:end])) for start, end in spans]
    relevance = [RELEVANCE_SHARE * _cosine(one, asked) for one in own]
    said = [0.0] * len(spans)
    left = list(range(len(spans)))
    while left:
        best = max(left, key=lambda at: (relevance[at] - (1 - RELEVANCE_SHARE) * said[at], -at))
        left.remove(best)
        yield spans[best]
        for at in left:
            said[at] = max(said[at], _cosine(own[at], own[best]))


def _cosine(one: frozenset[str], other: frozenset[str]) -> float:
    shared = len(one & other)
    return shared / math.sqrt(len(one) * len(other)) if shared else 0.0
