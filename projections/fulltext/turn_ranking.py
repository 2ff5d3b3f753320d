"""The best turns by words of theirs and of their neighbours, without the scores of all turns.

Owns an upper bound of a turn's score. With c(t) the sum of shares of a term t for a turn, n the
turn's norm, and s(x) = (k1 + 1) · x / (1 + x), the score is Σ_t idf(t) · s(c(t) / n). Because s is
concave, the score is at most S · s(V / S), with S = Σ_t idf(t) and V = Σ_t idf(t) · c(t) / n
(Jensen's inequality). V needs one sum of shares for all terms together, and the bound grows with
V, so few turns with a large V need their score. Leaves out the sums (`context_kernel`).
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

import numpy as np

from ..columnar.columns import F32, F64, I64, Mask
from .context_kernel import Counts, Shares, beside

_ALL_PLACES_MAX: Final = 8_192
"""With as many places, the scores of all are faster than bounds."""

_FIRST: Final = 4
"""Turns scored first, as a multiple of the turns wanted: their scores give a close bound."""

_FEW: Final = 300
"""With so few counts, the turns that they reach are scored without bounds."""

_MANY: Final = 32
"""With more turns to score, as a multiple of the turns wanted, a second bound is worth its time."""

_BLOCK_MAX: Final = 64
"""Rows of a block; the search for the best takes the maximum of each block first."""

_TINY: Final = float(np.finfo(np.float32).tiny)
"""Below the bound of every turn with a score."""

_BOUND_ERROR: Final = 1e-4
"""More than the error of a bound: it has about 30 operations, each with an error of 1e-7."""

_SCORE_ERROR: Final = 2e-9
"""Scores within this distance may round to the same score."""


class TurnNorms(NamedTuple):
    """The length part of the denominator by place, (places,), and its inverse, 0 in gaps."""

    norm: F64
    inverse: F32


def best_turns(
    words: Counts,
    idfs: F64,
    shares: Shares,
    norms: TurnNorms,
    k: int,
    *,
    scale: float,
    among: Mask | None,
) -> tuple[I64, F64]:
    """Return the places with the k best scores, and more, in any order, and their scores.

    Cost: 15 ns a count, 2 ns a place, and 20 ns for each word of the turns that may be among the
    best: about 2 % of the turns for ten very frequent words.

    Args:
        words: The counts of the words in turns.
        idfs: The idf of each word, in the order of their sum; (words,).
        shares: The sums of shares in the order of the turns.
        norms: The norms of the turns.
        k: The number of turns.
        scale: k1 + 1 of BM25.
        among: The places that count, (places,); None: all.
    """

    def scored(places: I64) -> F64:
        if not len(places):
            return np.zeros(0)
        return _sum_of(shares.at(places, words), idfs, norms.norm[places], scale)

    is_admitted = norms.inverse > 0 if among is None else (norms.inverse > 0) & among
    if len(norms.norm) <= _ALL_PLACES_MAX:
        scores = _sum_of(words.spread(len(norms.norm)), idfs, norms.norm, scale) * is_admitted
        best = np.flatnonzero(scores >= max(_near_best(scores, k) - _SCORE_ERROR, _TINY))
        return best, scores[best]
    if len(words.places) <= _FEW:
        is_reached = np.zeros(len(norms.norm), np.bool_)
        is_reached[beside(words.places)] = True
        reached = np.flatnonzero(is_reached & is_admitted)
        return reached, scored(reached)
    bounds = shares.bounds(words, idfs, norms.inverse)
    if among is not None:
        bounds *= among
    least = max(_near_best(bounds, _FIRST * k), _TINY)
    first = np.flatnonzero(bounds >= least)
    counts = shares.at(first, words)
    scores = _sum_of(counts, idfs, norms.norm[first], scale)
    if len(first) < k:
        rest = np.flatnonzero((bounds >= _TINY) & (bounds < least))
    else:
        best = np.argpartition(scores, len(first) - k)[len(first) - k :]
        needed = float(scores[best].min()) - _SCORE_ERROR
        limit = max(_bound_of(needed, scale, float(idfs.sum())), _TINY)
        rest = np.flatnonzero((bounds >= limit) & (bounds < least))
        if len(rest) > _MANY * k:
            near = (counts[:, best] * norms.inverse[first[best]]).mean(axis=1)
            rest = _above(rest, needed, near, words, idfs, shares, norms, scale)
    return np.concatenate([first, rest]), np.concatenate([scores, scored(rest)])


def _above(
    rest: I64,
    needed: float,
    near: F64,
    words: Counts,
    idfs: F64,
    shares: Shares,
    norms: TurnNorms,
    scale: float,
) -> I64:
    """Return the places whose score may be more than needed, by the tangents of s.

    Args:
        rest: Places; (m,).
        needed: A score.
        near: The x of each word's tangent; (words,). V counts a word that most turns have too much.
        words: As `best_turns`.
        idfs: As `best_turns`.
        shares: As `best_turns`.
        norms: As `best_turns`.
        scale: As `best_turns`.
    """
    slopes = scale / (1.0 + near) ** 2
    constant = float((idfs * slopes * near**2).sum())
    bounds = shares.bounds(words, idfs * slopes, norms.inverse)
    return rest[bounds[rest] * (1.0 + _BOUND_ERROR) + constant >= needed]


def _sum_of(counts: Iterable[F64], idfs: F64, norms: F64, scale: float) -> F64:
    """Return the scores of turns by the sums of shares of each word; (turns,)."""
    scores = np.zeros(len(norms))
    for idf, of_word in zip(idfs.tolist(), counts, strict=True):
        scores += of_word * scale / (of_word + norms) * idf
    return scores


def _near_best(bounds: F32 | F64, k: int) -> float:
    """Return a value that at least ``k`` bounds reach, and few more; 0 if there are not so many."""
    rows = min(len(bounds) // (2 * k), _BLOCK_MAX)
    if rows < 1:
        return 0.0
    # The k-th best maximum of a block is at most the k-th best bound.
    maxima = bounds[: len(bounds) // rows * rows].reshape(rows, -1).max(axis=0)
    return float(np.partition(maxima, len(maxima) - k)[len(maxima) - k])


def _bound_of(needed: float, scale: float, total: float) -> float:
    """Return a V below which every score is less than needed."""
    room = scale * total - needed
    return needed * total / room * (1.0 - _BOUND_ERROR) if room > 0 else 0.0
