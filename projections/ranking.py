"""BM25 over postings, as of any event.

    view = projection.snapshot().view(frames.alive(n))     # what was current at n
    view.search("which index", k=10, among=mask)           # plain language
    view.search(tree, filters=lambda where: frames.mask(where, n))      # a tree (`query`)
    view.highlights(text, query)                           # what to mark in a frame's text

Owns the scores and their order (Robertson and Zaragoza, *The Probabilistic Relevance Framework*,
2009, section 3; idf as in Lucene, never negative):

    idf(t)    = float32(log(1 + (N − df + 0.5) / (df + 0.5)))
    score(d)  = Σ_t idf(t) · tf · (k1 + 1) / (tf + k1 · (1 − b + b · length(d) / average length))

Occurrences and lengths count as their fields weigh (`fields`). All words that match one pattern
are one t; in a field, t occurs in that field alone. N, df and the average length count the frames
that are current in the view and have tokens. Sums are taken in order of term id, in float64, and
rounded to 9 decimals; equal scores are in order of frame. So a view at n ranks exactly as a store
that stopped at n.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from cerata.engine.events import JsonValue

from . import text
from .columns import F64, I64, U32, Mask
from .fields import Field, FieldLengths
from .highlighting import Highlight, highlights
from .matching import Filters, Group, Matching
from .occurrences import Occurrences
from .postings import Piece
from .query import AnyWord, Query, plain
from .vocabulary import VocabularyView

K1: Final = 1.2
B: Final = 0.75
SCORE_DECIMALS: Final = 9

_DENSE_SHARE: Final = 16
"""With fewer postings than rows / 16, adding up by sorting beats an array of all rows."""


_BLOCK_ROWS: Final = 64
"""Rows of a block, whose maximum is taken at once when the best are looked for."""

_SCORE_MIN: Final = float(np.finfo(np.float64).tiny)
"""Below every score: a term adds at least idf / 16 million."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """The best rows: ``rows`` (k,) int64, ``scores`` (k,) float64, descending, ties by row."""

    rows: I64
    scores: F64

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True, slots=True)
class WordScore:
    """What a word of a query adds to the score of a row: ``idf`` by its ``count``, saturated.

    ``word`` is as it was asked for. Its count is as its fields weigh, 0 where it is not there.
    """

    word: str
    idf: float
    count: int
    added: float

    def to_dict(self) -> dict[str, JsonValue]:
        return {"word": self.word, "idf": self.idf, "count": self.count, "added": self.added}


class Fulltext:
    """Postings up to ``seq``. Immutable: any thread may use it while the fold goes on."""

    def __init__(
        self,
        pieces: tuple[Piece, ...],
        vocabulary: VocabularyView,
        lengths: FieldLengths,
        seq: int,
    ) -> None:
        self.seq = seq
        self.pieces = pieces
        self.vocabulary = vocabulary
        self.lengths = lengths

    def view(self, alive: Mask) -> "FulltextView":
        """Return the ranking over the first ``len(alive)`` rows, of which some are current.

        Cost: about 0.2 ms per 100,000 rows; keep it for the next question at the same basis.
        """
        return FulltextView(self, alive)


class FulltextView:
    """Ranks the frames of one state."""

    def __init__(self, fulltext: Fulltext, alive: Mask) -> None:
        self._vocabulary = fulltext.vocabulary
        self._rows = len(alive)
        # Later terms are in no row of this view.
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
        """The length part of the denominator, a row each."""
        average = self.token_count / self.document_count if self.document_count else 1.0
        return K1 * ((1.0 - B) + B * (self._lengths / average))

    @cached_property
    def _weights_of_one(self) -> F64:
        """What a term that occurs once adds, before its idf, a row each: most occur once."""
        return (K1 + 1.0) / (1.0 + self._norms)

    def search(
        self,
        query: str | Query,
        *,
        k: int = 10,
        among: Mask | None = None,
        filters: Filters | None = None,
    ) -> Ranking:
        """Return the best ``k`` rows that a question in plain language, or a query, finds.

        ``among`` (rows,) says which rows may be returned, by default those that are current; it
        changes no score, and neither does what the query's ``filters`` let through.

        Raises:
            InvalidInput: a pattern is not one word. Unsupported: the query has a filter, and no
                ``filters`` came.
        """
        tree = plain(query) if isinstance(query, str) else query
        if isinstance(tree, AnyWord) and tree.field is None:
            return self.rank(text.terms(tree.text), k=k, among=among)
        matching = Matching(self._occurrences, self._vocabulary, filters)
        found = matching.found(tree)
        scores = self._scores(matching.groups(tree))
        rows = np.flatnonzero(found & (self._alive if among is None else among))
        return _best(rows, scores[rows], k) if k > 0 else _NOTHING

    def passing(self, query: Query, filters: Filters) -> Mask | None:
        """Return the rows that a query finds, current or not; None where it decides nothing."""
        return Matching(self._occurrences, self._vocabulary, filters).mask(query)

    def found(self, query: str | Query, filters: Filters) -> Mask:
        """Return the rows that `search` chooses from, current or not."""
        tree = plain(query) if isinstance(query, str) else query
        return Matching(self._occurrences, self._vocabulary, filters).found(tree)

    def words(self, query: str | Query, row: int) -> list[WordScore]:
        """Return what each word of a query adds to a row's score, that which adds most first."""
        tree = plain(query) if isinstance(query, str) else query
        matching = Matching(self._occurrences, self._vocabulary)
        found = [self._word(name, group, row) for name, group in matching.named_groups(tree)]
        # Not in the order of the vocabulary, which knows words of later events.
        return sorted(found, key=lambda one: (-round(one.added, SCORE_DECIMALS), one.word))

    def _word(self, name: str, group: Group, row: int) -> WordScore:
        idf = self._idf(int(np.count_nonzero(self._alive[group.rows])))
        count = int(group.weights[group.rows == row].sum())
        saturated = count * (K1 + 1.0) / (count + float(self._norms[row]))
        return WordScore(name, idf, count, saturated * idf)

    def highlights(
        self, content: str, query: str | Query, field: Field = Field.TEXT
    ) -> list[Highlight]:
        """Return what to mark in the text of a field: characters [start, end), ascending."""
        tree = plain(query) if isinstance(query, str) else query
        return highlights(content, tree, self._vocabulary, self._rows, field)

    def _scores(self, groups: Iterable[Group]) -> F64:
        """Return every row's score, (rows,), 0 where none of the words is."""
        scores = np.zeros(self._rows)
        for group in groups:
            idf = self._idf(int(np.count_nonzero(self._alive[group.rows])))
            saturated = group.weights * (K1 + 1.0) / (group.weights + self._norms[group.rows])
            scores[group.rows] += saturated * idf
        return scores

    def rank(self, terms: Iterable[str], *, k: int = 10, among: Mask | None = None) -> Ranking:
        """Return the best ``k`` rows that hold any of the terms; none if no term matches.

        Cost: about 10 ns a posting of the terms.
        """
        found = [self._vocabulary.find(term, self._terms) for term in set(terms)]
        ids = np.array(sorted(i for i in found if i is not None), np.uint32)
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
        """Return the rows that hold each term, term after term, and what each adds."""
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
        # libm may differ in the last bit from machine to machine; float32 has none of it left.
        return float(np.float32(math.log(1.0 + odds)))


def _totals(rows: I64, weights: F64, size: int) -> F64:
    """Add up weights by row, each row's in the order given."""
    return np.bincount(rows, weights, size).astype(np.float64, copy=False)


def _candidates(scores: F64, k: int) -> I64:
    """Return ascending rows that hold the k best positive scores, and all that equal them.

    The k-th best of the maxima of blocks is a bound below the k-th best of all.
    """
    # A block is rows far apart, not neighbours: numpy takes such maxima four times faster.
    whole = len(scores) // _BLOCK_ROWS * _BLOCK_ROWS
    maxima = scores[:whole].reshape(_BLOCK_ROWS, -1).max(axis=0)
    if len(maxima) <= k:
        return np.flatnonzero(scores)
    least = float(np.partition(maxima, len(maxima) - k)[len(maxima) - k])
    # A score this little below may round to the same value.
    return np.flatnonzero(scores >= max(least - 10.0**-SCORE_DECIMALS, _SCORE_MIN))


def _best(rows: I64, scores: F64, k: int) -> Ranking:
    """Return the k best of ascending rows by (rounded score descending, row)."""
    rounded = np.round(scores, SCORE_DECIMALS)
    if len(rows) > k:
        # Everything equal to the k-th stays in, so that ties are broken by row alone.
        least = np.partition(rounded, len(rounded) - k)[len(rounded) - k]
        keep = rounded >= least
        rows, rounded = rows[keep], rounded[keep]
    order = np.argsort(-rounded, kind="stable")[:k]
    return Ranking(rows[order], rounded[order])


_NOTHING: Final = Ranking(np.empty(0, np.int64), np.empty(0, np.float64))
