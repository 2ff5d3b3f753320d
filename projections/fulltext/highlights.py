"""Highlights: the matches of a query in a stored text.

Owns the places of the matches. A place is a range [start, end) of characters of the stored text,
not of its case-folded or stemmed form: show ``text[start:end]``.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ..columnar.columns import U32
from . import analyzer as cutting
from .analyzer import Span
from .fields import Field
from .query import AnyWord, Phrase, Prefix, Query, Term, Wildcard, words_of
from .query_evaluation import folded_pattern, one_word
from .vocabulary import VocabularyView


@dataclass(frozen=True, slots=True)
class Highlight:
    """Characters [start, end) of a text."""

    start: int
    end: int


def highlights(
    text: str, query: Query, vocabulary: VocabularyView, rows: int, field: Field = Field.TEXT
) -> list[Highlight]:
    """Return the ranges of a text to mark, ascending, without overlaps.

    A word of the query marks each word with the same term; a pattern, the terms that match as of
    ``rows``; a phrase, its whole run. Words under `Not` and words for another field mark nothing.
    Cost: tokenizing the text, about 1 us a word.
    """
    spans = cutting.spans(text)
    terms: set[str] = set()
    matches: list[Highlight] = []
    for words in words_of(query):
        if words.field is not None and words.field != field:
            continue
        match words:
            case AnyWord(any_words):
                terms.update(cutting.terms(any_words))
            case Term(phrase) | Phrase(phrase):
                matches += _runs(spans, cutting.terms(phrase))
            case Prefix(start):
                terms |= _texts(vocabulary, vocabulary.starting_with(one_word(start), rows))
            case Wildcard(pattern):
                terms |= _texts(vocabulary, vocabulary.matching(folded_pattern(pattern), rows))
    matches += [Highlight(span.start, span.end) for span in spans if span.term in terms]
    return _merged(matches)


def _texts(vocabulary: VocabularyView, ids: U32) -> set[str]:
    return {vocabulary.text(term) for term in ids.tolist()}


def _runs(spans: Sequence[Span], terms: Sequence[str]) -> list[Highlight]:
    size = len(terms)
    if not size:
        return []
    return [
        Highlight(spans[index].start, spans[index + size - 1].end)
        for index in range(len(spans) - size + 1)
        if all(spans[index + place].term == term for place, term in enumerate(terms))
    ]


def _merged(matches: Sequence[Highlight]) -> list[Highlight]:
    merged: list[Highlight] = []
    for match in sorted(matches, key=lambda highlight: (highlight.start, highlight.end)):
        if merged and match.start < merged[-1].end:
            last = merged.pop()
            match = Highlight(last.start, max(last.end, match.end))
        merged.append(match)
    return merged
