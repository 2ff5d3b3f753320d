"""Highlights: where a stored text says what a query asks.

Owns places. They are characters of the text as it is stored, [start, end), whatever was folded or
stemmed to find them: ``text[start:end]`` is what to show.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from . import text as cutting
from .columns import U32
from .fields import Field
from .matching import folded_pattern, one_word
from .query import AnyWord, Phrase, Prefix, Query, Term, Wildcard, words_of
from .text import Span
from .vocabulary import VocabularyView


@dataclass(frozen=True, slots=True)
class Highlight:
    """Characters [start, end) of a text."""

    start: int
    end: int


def highlights(
    text: str, query: Query, vocabulary: VocabularyView, rows: int, field: Field = Field.TEXT
) -> list[Highlight]:
    """Return what to mark in a text, ascending, none overlapping another.

    Words of the query mark each word of the same term, patterns what they match as of ``rows``,
    and a phrase its whole run. Words under `Not` and those asked of another field mark nothing.
    Cost: that of cutting the text, about 1 us a word.
    """
    spans = cutting.spans(text)
    terms: set[str] = set()
    found: list[Highlight] = []
    for words in words_of(query):
        if words.field is not None and words.field != field:
            continue
        match words:
            case AnyWord(asked):
                terms.update(cutting.terms(asked))
            case Term(asked) | Phrase(asked):
                found += _runs(spans, cutting.terms(asked))
            case Prefix(start):
                terms |= _texts(vocabulary, vocabulary.starting_with(one_word(start), rows))
            case Wildcard(pattern):
                terms |= _texts(vocabulary, vocabulary.matching(folded_pattern(pattern), rows))
    found += [Highlight(span.start, span.end) for span in spans if span.term in terms]
    return _apart(found)


def _texts(vocabulary: VocabularyView, ids: U32) -> set[str]:
    return {vocabulary.text(term) for term in ids.tolist()}


def _runs(spans: Sequence[Span], wanted: Sequence[str]) -> list[Highlight]:
    """Return where terms stand one after the other."""
    size = len(wanted)
    if not size:
        return []
    return [
        Highlight(spans[index].start, spans[index + size - 1].end)
        for index in range(len(spans) - size + 1)
        if all(spans[index + place].term == term for place, term in enumerate(wanted))
    ]


def _apart(found: Sequence[Highlight]) -> list[Highlight]:
    """Return highlights in order, those that overlap joined."""
    joined: list[Highlight] = []
    for one in sorted(found, key=lambda highlight: (highlight.start, highlight.end)):
        if joined and one.start < joined[-1].end:
            last = joined.pop()
            one = Highlight(last.start, max(last.end, one.end))
        joined.append(one)
    return joined
