"""BM25 over postings, as of any event.

    view = projection.snapshot().view(frames.alive(n))     # the frames current at n
    view.search("which index", k=10, among=mask)           # plain language
    view.search(tree, filters=lambda where: frames.mask(where, n))      # a tree (`query`)
    view.highlights(text, query)                           # the matches in a frame's text

Owns the scores and their order (Robertson and Zaragoza, *The Probabilistic Relevance Framework*,
2009, section 3; idf as in Lucene, never negative):

    idf(t)    = float32(log(1 + (N − df + 0.5) / (df + 0.5)))
    score(d)  = Σ_t idf(t) · tf · (k1 + 1) / (tf + k1 · (1 − b + b · length(d) / average length))

Occurrences and lengths are weighted by field (`fields`). All words that match a pattern are a
single t; a t with a field counts in that field alone. N, df and the average length count the
current frames with tokens. Sums are in order of term id, in float64, and rounded to 9 decimals;
ties are in order of frame. So a view at n ranks exactly like a store that stopped at n.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from cerata.engine.plain_value import PlainValue

from ..columnar.columns import F64, I64, U32, Mask
from . import analyzer as text
from .fields import Field, FieldLengths
from .highlights import Highlight, highlights
from .occurrences import Occurrences
from .postings import Piece
from .query import AnyWord, Query, plain
from .query_evaluation import Filters, Group, Matching
from .vocabulary import VocabularyView

K1: Final = 1.2
B: Final = 0.75
SCORE_DECIMALS: Final = 9

_DENSE_SHARE: Final = 16
"""With fewer postings than rows / 16, a sort adds up faster than an array of all rows."""


_BLOCK_ROWS: Final = 64
"""Rows of a block; the search for the best rows takes the maximum of each block first."""

_SCORE_MIN: Final = float(np.finfo(np.float64).tiny)
"""A bound below every score: a term adds at least idf / 16 million."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """The best rows: ``rows`` (k,) int64, ``scores`` (k,) float64, descending, ties by row."""

    rows: I64
    scores: F64

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True, slots=True)
class WordScore(PlainValue):
    """The contribution of a query word to a row's score: ``idf`` times the saturated ``count``.

    ``word`` is spelled as in the query. ``count`` is weighted by field, 0 if the row lacks the
    word.
    """

    word: str
    idf: float
    count: int
    added: float


@dataclass(frozen=True, slots=True, eq=False)
class Fulltext:
    """Postings up to ``seq``. Immutable; safe for threads during a fold."""

    pieces: tuple[Piece, ...]
    vocabulary: VocabularyView
    lengths: FieldLengths
    seq: int

    def view(self, alive: Mask) -> "FulltextView":
        """Return the ranking over the first ``len(alive)`` rows; ``alive`` marks current rows.

        Cost: about 0.2 ms per 100,000 rows; keep the view for later questions at the same basis.
        """
        return FulltextView(self, alive)


class FulltextView:
    """Ranks the frames of a state."""

    def __init__(self, fulltext: Fulltext, alive: Mask) -> None:
        self._vocabulary = fulltext.vocabulary
        self._rows = len(alive)
        # Terms from this count on occur in later rows only.
        self._terms = fulltext.vocabulary.count_at(self._rows)
        self._occurrences = Occurrences(fulltext.pieces, fulltext.lengths, self._rows)
        self._lengths = self._occurrences.fields.weighted()
        self._alive = alive
        self._dead = np.flatnonzero(~alive)
        counted = self._lengths[alive] if len(self._dead) else self._lengths
        self.document_count = int(np.count_nonzero(counted))
        self.token_count = int(counted.sum(dtype=np.int64))

    @cached_property
    def _norms(self) -> F64:
        """The length part of the denominator, (rows,)."""
        average = self.token_count / self.document_count if self.document_count else 1.0
        return K1 * ((1.0 - B) + B * (self._lengths / average))

    @cached_property
    def _weights_of_one(self) -> F64:
        """The contribution of a term with a single occurrence, without its idf, (rows,).

        Cached, because most terms occur once in a row.
        """
        return (K1 + 1.0) / (1.0 + self._norms)

    def search(
        self,
        query: str | Query,
        *,
        k: int = 10,
        among: Mask | None = None,
        filters: Filters | None = None,
    ) -> Ranking:
        """Return the best ``k`` rows for a question in plain language, or for a query.

        ``among`` (rows,) marks the rows that may be returned, by default the current rows. Neither
        ``among`` nor the query's ``filters`` change a score.

        Raises:
            InvalidInput: a pattern is not a single word.
            Unsupported: the query has a filter, and the call no ``filters``.
        """
        tree = plain(query) if isinstance(query, str) else query
        if isinstance(tree, AnyWord) and tree.field is None:
            return self.rank(text.terms(tree.text), k=k, among=among)
        matching = Matching(self._occurrences, self._vocabulary, filters)
        matches = matching.found(tree)
        scores = self._scores(matching.groups(tree))
        rows = np.flatnonzero(matches & (self._alive if among is None else among))
        return _best(rows, scores[rows], k) if k > 0 else _NOTHING

    def passing(self, query: Query, filters: Filters) -> Mask | None:
        """Return the rows that a query selects, current or not; None if it restricts nothing."""
        return Matching(self._occurrences, self._vocabulary, filters).mask(query)

    def found(self, query: str | Query, filters: Filters) -> Mask:
        """Return the candidate rows of `search`, current or not."""
        tree = plain(query) if isinstance(query, str) else query
        return Matching(self._occurrences, self._vocabulary, filters).found(tree)

    def words(self, query: str | Query, row: int) -> list[WordScore]:
        """Return the contributions of a query's words to a row's score, the largest first."""
        tree = plain(query) if isinstance(query, str) else query
        matching = Matching(self._occurrences, self._vocabulary)
        scores = [self._word(name, group, row) for name, group in matching.named_groups(tree)]
        # Not in the order of the vocabulary, which contains words of later events.
        return sorted(scores, key=lambda score: (-round(score.added, SCORE_DECIMALS), score.word))

    def _word(self, name: str, group: Group, row: int) -> WordScore:
        idf = self._idf(int(np.count_nonzero(self._alive[group.rows])))
        count = int(group.weights[group.rows == row].sum())
        saturated = count * (K1 + 1.0) / (count + float(self._norms[row]))
        return WordScore(name, idf, count, saturated * idf)

    def highlights(
        self, content: str, query: str | Query, field: Field = Field.TEXT
    ) -> list[Highlight]:
        """Return the matches to mark in the text of a field: [start, end), ascending."""
        tree = plain(query) if isinstance(query, str) else query
        return highlights(content, tree, self._vocabulary, self._rows, field)

    def _scores(self, groups: Iterable[Group]) -> F64:
        """Return every row's score, (rows,), 0 without any of the words."""
        scores = np.zeros(self._rows)
        for group in groups:
            idf = self._idf(int(np.count_nonzero(self._alive[group.rows])))
            saturated = group.weights * (K1 + 1.0) / (group.weights + self._norms[group.rows])
            scores[group.rows] += saturated * idf
        return scores

    def rank(self, terms: Iterable[str], *, k: int = 10, among: Mask | None = None) -> Ranking:
        """Return the best ``k`` rows that hold any of the terms; empty if no term matches.

        Cost: about 10 ns a posting of the terms.
        """
        matches = [self._vocabulary.find(term, self._terms) for term in set(terms)]
        ids = np.array(sorted(i for i in matches if i is not None), np.uint32)
        rows, weights = self._weights(ids)
        if not len(rows) or k <= 0:
            return _NOTHING
        if len(rows) * _DENSE_SHARE < self._rows:
            admitted = (self._alive if among is None else among)[rows]
            distinct, inverse = np.unique(rows[admitted], return_inverse=True)
            return _best(distinct, _totals(inverse, weights[admitted], len(distinct)), k)
        scores = _totals(rows, weights, self._rows)
        if among is None:
            scores[self._dead] = 0.0
        else:
            scores *= among
        best = _candidates(scores, k)
        return _best(best, scores[best], k)

    def _weights(self, ids: U32) -> tuple[I64, F64]:
        """Return the rows that hold each term, term after term, and their contributions."""
        rows, ends, heavy, counts = self._occurrences.gather(ids)
        weights = self._weights_of_one[rows]
        weights[heavy] = counts * (K1 + 1.0) / (counts + self._norms[rows[heavy]])
        alive = self._alive[rows] if len(self._dead) else None
        start = 0
        for end in ends:
            part = slice(start, end)
            frequency = end - start if alive is None else int(np.count_nonzero(alive[part]))
            weights[part] *= self._idf(frequency)
            start = end
        return rows, weights

    def _idf(self, frequency: int) -> float:
        odds = (self.document_count - frequency + 0.5) / (frequency + 0.5)
        # libm may differ in the last bit between machines; float32 drops that bit.
        return float(np.float32(math.log(1.0 + odds)))


def _totals(rows: I64, weights: F64, size: int) -> F64:
    return np.bincount(rows, weights, size).astype(np.float64, copy=False)


def _candidates(scores: F64, k: int) -> I64:
    """Return ascending rows with the k best positive scores, and all rows with equal scores.

    The k-th best maximum of a block is at most the k-th best score.
    """
    # The rows of a block are far apart: numpy takes such maxima four times faster.
    whole = len(scores) // _BLOCK_ROWS * _BLOCK_ROWS
    maxima = scores[:whole].reshape(_BLOCK_ROWS, -1).max(axis=0)
    if len(maxima) <= k:
        return np.flatnonzero(scores)
    least = float(np.partition(maxima, len(maxima) - k)[len(maxima) - k])
    # A score within this distance below may round to the same value.
    return np.flatnonzero(scores >= max(least - 10.0**-SCORE_DECIMALS, _SCORE_MIN))


def _best(rows: I64, scores: F64, k: int) -> Ranking:
    """Return the k best of ascending rows by (rounded score descending, row)."""
    rounded = np.round(scores, SCORE_DECIMALS)
    if len(rows) > k:
        # Keep all scores equal to the k-th, so that ties are broken by row alone.
        least = np.partition(rounded, len(rounded) - k)[len(rounded) - k]
        keep = rounded >= least
        rows, rounded = rows[keep], rounded[keep]
    order = np.argsort(-rounded, kind="stable")[:k]
    return Ranking(rows[order], rounded[order])


_NOTHING: Final = Ranking(np.empty(0, np.int64), np.empty(0, np.float64))
