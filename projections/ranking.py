"""BM25 over postings, as of any event.

Owns the scores and their order (Robertson and Zaragoza, *The Probabilistic Relevance Framework*,
2009, section 3; idf as in Lucene, never negative):

    idf(t)    = float32(log(1 + (N − df + 0.5) / (df + 0.5)))
    score(d)  = Σ_t idf(t) · tf · (k1 + 1) / (tf + k1 · (1 − b + b · length(d) / average length))

N, df and the average length count the frames that are current in the view and have tokens. Sums
are taken in order of term id, in float64, and rounded to 9 decimals; equal scores are in order of
frame. So a view at n ranks exactly as a store that stopped at n.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from . import text
from .columns import F64, I64, U32, Mask, concatenate
from .lexicon import LexiconView
from .postings import Piece

K1: Final = 1.2
B: Final = 0.75
SCORE_DECIMALS: Final = 9

_DENSE_SHARE: Final = 16
"""With fewer postings than rows / 16, adding up by sorting beats an array of all rows."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """The best rows: ``rows`` (k,) int64, ``scores`` (k,) float64, descending, ties by row."""

    rows: I64
    scores: F64

    def __len__(self) -> int:
        return len(self.rows)


class Fulltext:
    """Postings up to ``seq``. Immutable: any thread may use it while the fold goes on."""

    def __init__(
        self, pieces: tuple[Piece, ...], lexicon: LexiconView, lengths: U32, seq: int
    ) -> None:
        self.seq = seq
        self.pieces = pieces
        self.lexicon = lexicon
        self.lengths = lengths

    def view(self, alive: Mask) -> "FulltextView":
        """Return the ranking over the first ``len(alive)`` rows, of which some are current.

        Cost: about 0.2 ms per 100,000 rows; keep it for the next question at the same basis.
        """
        return FulltextView(self, alive)


class FulltextView:
    """Ranks the frames of one state."""

    def __init__(self, fulltext: Fulltext, alive: Mask) -> None:
        self._lexicon = fulltext.lexicon
        self._rows = len(alive)
        self._pieces = [piece for piece in fulltext.pieces if piece.first_row < self._rows]
        self._lengths = fulltext.lengths[: self._rows]
        self._alive = alive
        self._all_alive = bool(alive.all())
        counted = self._lengths if self._all_alive else self._lengths[alive]
        self.document_count = int(np.count_nonzero(counted))
        self.token_count = int(counted.sum(dtype=np.int64))

    @cached_property
    def _norms(self) -> F64:
        """The length part of the denominator, a row each."""
        average = self.token_count / self.document_count if self.document_count else 1.0
        return K1 * ((1.0 - B) + B * (self._lengths / average))

    def search(self, query: str, *, k: int = 10, among: Mask | None = None) -> Ranking:
        """Rank by the words of a plain-language question, any of which may match."""
        return self.rank(text.terms(query), k=k, among=among)

    def rank(self, terms: Iterable[str], *, k: int = 10, among: Mask | None = None) -> Ranking:
        """Return the best ``k`` rows that hold any of the terms; none if no term matches.

        ``among`` (rows,) says which rows may be returned, by default those that are current; it
        changes no score.
        """
        found = [self._lexicon.find(term) for term in set(terms)]
        ids = np.array(sorted(i for i in found if i is not None), np.uint32)
        parts = [part for part in self._weights(ids, among) if len(part[0])]
        if not parts or k <= 0:
            return Ranking(np.empty(0, np.int64), np.empty(0, np.float64))
        rows, scores = self._sum(parts)
        return _best(rows, np.round(scores, SCORE_DECIMALS), k)

    def document_frequency(self, term: str) -> int:
        """Return how many current frames hold a term."""
        found = self._lexicon.find(term)
        if found is None:
            return 0
        rows, _ = next(self._postings(np.array([found], np.uint32)))
        return int(np.count_nonzero(self._alive[rows]))

    def _weights(self, ids: U32, among: Mask | None) -> Iterator[tuple[I64, F64]]:
        """Yield, for each term in order, the admitted rows that hold it and what it adds."""
        for rows, counts in self._postings(ids):
            frequency = len(rows)
            admitted = among
            if not self._all_alive:
                alive = self._alive[rows]
                frequency = int(np.count_nonzero(alive))
                if among is None:
                    rows, counts = rows[alive], counts[alive]
            if admitted is not None:
                keep = admitted[rows]
                rows, counts = rows[keep], counts[keep]
            weights = counts * (self._idf(frequency) * (K1 + 1.0))
            weights /= counts + self._norms[rows]
            yield rows, weights

    def _idf(self, frequency: int) -> float:
        odds = (self.document_count - frequency + 0.5) / (frequency + 0.5)
        # libm may differ in the last bit from machine to machine; float32 has none of it left.
        return float(np.float32(math.log(1.0 + odds)))

    def _postings(self, ids: U32) -> Iterator[tuple[I64, F64]]:
        """Yield, for each term, the rows below the view's end that hold it, and how often."""
        places = [_places(piece, ids) for piece in self._pieces]
        for index in range(len(ids)):
            rows, counts = [], []
            for piece, (starts, ends) in zip(self._pieces, places, strict=True):
                start, end = starts[index], ends[index]
                if start == end:
                    continue
                if piece.end_row > self._rows:
                    limit = self._rows - piece.first_row
                    end = start + int(np.searchsorted(piece.rows[start:end], limit))
                rows.append(np.add(piece.rows[start:end], piece.first_row, dtype=np.int64))
                counts.append(piece.counts[start:end].astype(np.float64))
            yield concatenate(rows, np.int64), concatenate(counts, np.float64)

    def _sum(self, parts: Sequence[tuple[I64, F64]]) -> tuple[I64, F64]:
        """Add up weights by row, each row's in the order of the parts."""
        if len(parts) == 1:
            return parts[0]
        if sum(len(rows) for rows, _ in parts) * _DENSE_SHARE < self._rows:
            rows = concatenate([rows for rows, _ in parts], np.int64)
            weights = concatenate([weights for _, weights in parts], np.float64)
            distinct, inverse = np.unique(rows, return_inverse=True)
            return distinct, np.bincount(inverse, weights).astype(np.float64, copy=False)
        scores = np.zeros(self._rows)
        for rows, weights in parts:
            scores[rows] += weights
        # Every weight is positive, so what is not zero was found.
        distinct = np.flatnonzero(scores)
        return distinct, scores[distinct]


def _places(piece: Piece, ids: U32) -> tuple[list[int], list[int]]:
    """Return where the postings of each term start and end in a piece."""
    if not len(piece.terms):
        return [0] * len(ids), [0] * len(ids)
    index = np.minimum(np.searchsorted(piece.terms, ids), len(piece.terms) - 1)
    present = piece.terms[index] == ids
    starts: list[int] = piece.starts[index].tolist()
    ends: list[int] = np.where(present, piece.starts[index + 1], piece.starts[index]).tolist()
    return starts, ends


def _best(rows: I64, scores: F64, k: int) -> Ranking:
    """Return the k best of ascending rows by (score descending, row)."""
    if len(rows) > k:
        # Everything equal to the k-th stays in, so that ties are broken by row alone.
        least = np.partition(scores, len(scores) - k)[len(scores) - k]
        keep = scores >= least
        rows, scores = rows[keep], scores[keep]
    order = np.argsort(-scores, kind="stable")[:k]
    return Ranking(rows[order], scores[order])
