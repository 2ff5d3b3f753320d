"""Highlights: the matches of a query in a stored text.

Owns the places of the matches. A place is a range [start, end) of characters of the stored text,
not of its case-folded or stemmed form: show ``text[start:end]``.
"""

from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from ..columnar.columns import U32
from . import analyzer as cutting
from .analyzer import Span
from .fields import Field
from .query import AnyWord, Phrase, Prefix, Query, Term, Wildcard, words_of
from .query_evaluation import folded_pattern, one_word
from .term_weights import BESIDE
from .vocabulary import VocabularyView
from .word_starts import START


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
    phrases: set[tuple[str, ...]] = set()
    for words in words_of(query):
        if words.field is not None and words.field != field:
            continue
        match words:
            case AnyWord(any_words, _, quoted, names):
                for term in cutting.question_terms(any_words):
                    if term.startswith(START):
                        terms |= _texts(vocabulary, vocabulary.ids([term], rows)[term])
                    else:
                        terms.add(term)
                phrases.update(tuple(cutting.terms(phrase)) for phrase in (*quoted, *names))
            case Term(phrase) | Phrase(phrase):
                run = tuple(cutting.terms(phrase))
                if run:
                    phrases.add(run)
                else:
                    terms.update(span.term for span in cutting.beside_spans(phrase))
            case Prefix(start):
                terms |= _texts(vocabulary, vocabulary.starting_with(one_word(start), rows))
            case Wildcard(pattern):
                terms |= _texts(vocabulary, vocabulary.matching(folded_pattern(pattern), rows))
    terms.update(run[0] for run in phrases if len(run) == 1)
    matches = _runs(spans, [run for run in phrases if len(run) > 1])
    marked = [*spans, *cutting.beside_spans(text)]
    if any(term.startswith(BESIDE) for term in terms):
        marked += cutting.stop_spans(text)
    matches += [Highlight(span.start, span.end) for span in marked if span.term in terms]
    return _merged(matches)


def _texts(vocabulary: VocabularyView, ids: U32) -> set[str]:
    return {vocabulary.text(term) for term in ids.tolist()}


class _State:
    """Terms that begin phrases: the state after each further term, and the longest phrase here.

    - ``back`` is the state of the longest end of these terms that begins a phrase.
    """

    __slots__ = ("back", "following", "size")

    def __init__(self) -> None:
        self.following: dict[str, _State] = {}
        self.back: _State | None = None
        self.size = 0


def _runs(spans: Sequence[Span], phrases: Collection[Sequence[str]]) -> list[Highlight]:
    """Return the longest run of a phrase that ends at each span, in one pass (Aho and Corasick).

    A. Aho and M. Corasick, *Efficient string matching*, CACM 18(6), 1975.
    """
    if not phrases:
        return []
    root = _automaton(phrases)
    runs: list[Highlight] = []
    state = root
    for index, span in enumerate(spans):
        while span.term not in state.following and state.back is not None:
            state = state.back
        state = state.following.get(span.term, root)
        if state.size:
            runs.append(Highlight(spans[index + 1 - state.size].start, span.end))
    return runs


def _automaton(phrases: Collection[Sequence[str]]) -> _State:
    root = _State()
    for phrase in phrases:
        state = root
        for term in phrase:
            state = state.following.setdefault(term, _State())
        state.size = len(phrase)
    level = deque([root])
    while level:
        state = level.popleft()
        for term, further in state.following.items():
            back = state.back
            while back is not None and term not in back.following:
                back = back.back
            further.back = root if back is None else back.following[term]
            further.size = further.size or further.back.size
            level.append(further)
    return root


def _merged(matches: Sequence[Highlight]) -> list[Highlight]:
    merged: list[Highlight] = []
    for match in sorted(matches, key=lambda highlight: (highlight.start, highlight.end)):
        if merged and match.start < merged[-1].end:
            last = merged.pop()
            match = Highlight(last.start, max(last.end, match.end))
        merged.append(match)
    return merged
