"""The best rows of a question: their choice by score, and their order.

Owns `Ranking`, the rounding of scores, and ties. Leaves out the scores (`scoring`).
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from ..columnar.columns import F64, I64, Mask

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
