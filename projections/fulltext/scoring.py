"""BM25: the contribution of a word to a frame, with the statistics of a state.

Owns the idf of a term, the saturation of its counts, and the norms: the length parts of the
denominator. Leaves out the choice of the best rows (`asked`), and the formula as a whole (`bm25`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from cerata.engine.late import late

from ..columnar.columns import F64, I64, U32, Mask, Unsigned
from ..columnar.turn_order import TurnOrder
from .occurrences import Occurrences
from .turns.conversation_parts import TERMS

if TYPE_CHECKING:
    from .turns import turn_lengths, turn_ranking
    from .turns.turn_lengths import LastLengths, TurnLengths
    from .turns.turn_ranking import TurnNorms
else:
    turn_lengths = late("cerata.projections.fulltext.turns.turn_lengths")
    turn_ranking = late("cerata.projections.fulltext.turns.turn_ranking")


K1: Final = 1.2
B: Final = 0.75

TURN_K1: Final = 0.9
TURN_B: Final = 0.5
"""Of short turns in context, whose counts and lengths are sums over 13 turns: a sum varies less
with the length of its turn, and a word that occurs again beside a turn adds less."""

LONG_K1: Final = 1.2
LONG_B: Final = 0.9
"""Of long turns, whose neighbours hardly count. An answer of a model has most words of its subject
several times; with the b of documents it would come before the short turn that is sought."""

SHORT_TERMS: Final = TERMS
LONG_TERMS: Final = 80
"""The mean terms of turns that are short, and of those that are long."""


class Scoring:
    """The statistics of the current rows of a state, and the norms of all its rows."""

    def __init__(
        self,
        occurrences: Occurrences,
        alive: Mask,
        turns: TurnOrder | None,
        last: LastLengths | None,
    ) -> None:
        self.occurrences = occurrences
        self.rows = len(alive)
        self.lengths = occurrences.fields.weighted()
        self.alive = alive
        self.dead = np.flatnonzero(~alive)
        self.turns = turns
        counted = self.lengths[alive] if len(self.dead) else self.lengths
        self.document_count = int(np.count_nonzero(counted))
        self.token_count = int(counted.sum(dtype=np.int64))
        self._last = last
        self._scored_rows = 0

    # --- words -----------------------------------------------------------------------------------

    def idf(self, frequency: int) -> float:
        """Return the idf of a word that so many current rows have."""
        odds = (self.document_count - frequency + 0.5) / (frequency + 0.5)
        # libm may differ in the last bit between machines; float32 drops that bit.
        return float(np.float32(math.log(1.0 + odds)))

    def idf_of(self, rows: I64) -> float:
        """Return the idf of a word from all rows that have the word."""
        return self.idf(int(np.count_nonzero(self.alive[rows])))

    def idfs(self, rows: I64, ends: Sequence[int]) -> F64:
        """Return the idf of each word from the rows of the words, word after word; (words,)."""
        alive = self.alive[rows] if len(self.dead) else None
        idfs: list[float] = []
        start = 0
        for end in ends:
            current = end - start if alive is None else int(np.count_nonzero(alive[start:end]))
            idfs.append(self.idf(current))
            start = end
        return np.array(idfs)

    # --- lengths ---------------------------------------------------------------------------------

    @cached_property
    def text_lengths(self) -> U32:
        """How many terms the text field of each row has, (rows,)."""
        return self.occurrences.fields.text_ends()

    def text_lengths_at(self, rows: I64) -> I64:
        """Return `text_lengths` of rows, as numbers with a sign."""
        return self.text_lengths[rows].astype(np.int64)

    @cached_property
    def turn_lengths(self) -> TurnLengths | None:
        """The lengths of turns with shares of their neighbours; None without turns."""
        if self.turns is None:
            return None
        last = self._last
        earlier = None if last is None else last.lengths
        lengths = turn_lengths.turn_lengths(self.lengths, self.turns, self.text_lengths_at, earlier)
        if last is not None:
            last.lengths = lengths
        return lengths

    @cached_property
    def average_length(self) -> float:
        """The mean weighted length of the current rows with tokens."""
        lengths = self.turn_lengths
        tokens = self.token_count + (0.0 if lengths is None else lengths.shares)
        return tokens / self.document_count if self.document_count else 1.0

    # --- rows that are no turns ------------------------------------------------------------------

    def contributions(self, rows: I64, counts: F64 | Unsigned) -> F64:
        """Return the saturated counts of words in rows that are no turns, without idf; (n,)."""
        # Most words occur once in a row.
        weights = self._ones_at(rows)
        heavy = np.flatnonzero(counts != 1)
        if not len(heavy):
            return weights
        weights[heavy] = saturated(counts[heavy].astype(np.float64), self._norms_at(rows[heavy]))
        return weights

    def norm(self, lengths: F64 | U32) -> F64:
        """Return the length parts of the denominator of rows that are no turns."""
        return K1 * ((1.0 - B) + B * (lengths / self.average_length))

    @cached_property
    def _row_norms(self) -> F64:
        return self.norm(self.lengths)

    @cached_property
    def _ones(self) -> F64:
        """The contribution of a word with a single occurrence in each row, without its idf."""
        return (K1 + 1.0) / (1.0 + self._row_norms)

    def _ones_at(self, rows: I64) -> F64:
        """Return `_ones` of some rows."""
        if self._has_paid(len(rows)):
            return self._ones[rows]
        return (K1 + 1.0) / (1.0 + self.norm(self.lengths[rows]))

    def _norms_at(self, rows: I64) -> F64:
        """Return `_row_norms` of some rows."""
        return self._row_norms[rows] if self._has_paid(0) else self.norm(self.lengths[rows])

    def _has_paid(self, count: int) -> bool:
        """Count rows of a question; return whether the questions so far had most rows of the state.

        Then the arrays of all rows are made, which serve many questions. A view of the past mostly
        has a single question, of few rows; the numbers are the same.
        """
        self._scored_rows += count
        return 2 * self._scored_rows > self.rows

    # --- turns -----------------------------------------------------------------------------------

    @cached_property
    def turn_norms(self) -> TurnNorms:
        """The length parts of the denominator of turns."""
        lengths = self.turn_lengths
        if lengths is None:
            return turn_ranking.turn_norms(np.empty(0), np.zeros(0, np.bool_), TURN_K1, None)
        excess = lengths.conversations.turn_mean - SHORT_TERMS
        level = min(max(excess / (LONG_TERMS - SHORT_TERMS), 0.0), 1.0)
        k1 = TURN_K1 + (LONG_K1 - TURN_K1) * level
        b = TURN_B + (LONG_B - TURN_B) * level
        norms = lengths.in_context / self.average_length
        norms *= b
        norms += 1.0 - b
        norms *= k1
        return turn_ranking.turn_norms(norms, lengths.order.is_turn, k1, lengths.near)


def saturated(counts: F64, norms: F64, k1: float = K1) -> F64:
    """Return the saturated counts of a word, (n,); ``norms`` are the parts of the lengths, (n,)."""
    return counts * (k1 + 1.0) / (counts + norms)


# --- The best rows of a question: their choice by score, and their order --------------------------


SCORE_DECIMALS: Final = 9

_BLOCK_ROWS: Final = 64
"""Rows of a block; the search for the best rows takes the maximum of each block first."""

_SCORE_MIN: Final = float(np.finfo(np.float64).tiny)
"""A bound below every score: a term adds at least idf / 48 million."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """The best rows: ``rows`` (k,) int64, ``scores`` (k,) float64, descending, ties by row."""

    rows: I64
    scores: F64

    def __len__(self) -> int:
        return len(self.rows)


def best_of_rows(scores: F64 | None, k: int, dead: I64, among: Mask | None) -> Ranking:
    """Return the rows with the k best scores, and more, in any order; none without scores."""
    if scores is None:
        return NOTHING
    if among is None:
        scores[dead] = 0.0
    else:
        scores *= among
    rows = candidates(scores, k)
    return Ranking(rows, scores[rows])


def joined(rows: Ranking, turns: Ranking, k: int) -> Ranking:
    """Return the k best of both."""
    if len(rows):
        all_rows = np.concatenate([rows.rows, turns.rows])
        turns = Ranking(all_rows, np.concatenate([rows.scores, turns.scores]))
    rounded = np.round(turns.scores, SCORE_DECIMALS)
    best_rows, scores = _nearly_best(turns.rows, rounded, k)
    order = np.lexsort((best_rows, -scores))[:k]
    return Ranking(best_rows[order], scores[order])


def candidates(scores: F64, k: int) -> I64:
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


def best(rows: I64, scores: F64, k: int) -> Ranking:
    """Return the k best of ascending rows by (rounded score descending, row)."""
    rows, rounded = _nearly_best(rows, np.round(scores, SCORE_DECIMALS), k)
    order = np.argsort(-rounded, kind="stable")[:k]
    return Ranking(rows[order], rounded[order])


def _nearly_best(rows: I64, scores: F64, k: int) -> tuple[I64, F64]:
    """Return the rows with the k best scores, and those with the k-th; ties need all of these."""
    if len(rows) <= k:
        return rows, scores
    is_best = scores >= np.partition(scores, len(scores) - k)[len(scores) - k]
    return rows[is_best], scores[is_best]


NOTHING: Final = Ranking(np.empty(0, np.int64), np.empty(0, np.float64))
