"""The best turns by words of theirs and of their neighbours, without the scores of all turns.

Owns upper bounds of a turn's score. With c(t) the sum of shares of a term t for a turn, n the
turn's norm, and s(x) = (k1 + 1) · x / (1 + x), the score is Σ_t idf(t) · s(c(t) / n). Because s is
concave, the score is at most S · s(V / S), with S = Σ_t idf(t) and V = Σ_t idf(t) · c(t) / n
(Jensen's inequality). V needs one sum of shares for all terms together, and the bound grows with
V, so few turns with a large V need their score. If many have a large V, the tangents of s are a
closer bound; if few, s of a bound of each c(t) is.

Turns are chosen by pairs of places. Leaves out their sums (`context_kernel`, `pair_sums`).
"""

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Final, NamedTuple

import numpy as np

from ..columnar.columns import F32, F64, I64, Mask
from .context_kernel import MILLION, Counts, in_parts
from .pair_sums import PairSums, reached_pairs

_ALL_PLACES_MAX: Final = 8_192
"""With as many places, the scores of all are faster than bounds."""

_FIRST: Final = 2
"""Pairs scored first, as a multiple of the turns wanted: their scores give a close bound."""

_FEW: Final = 200
"""With so few counts or pairs, these are scored without a further bound."""

_MANY_PART: Final = 8
"""With more than one pair in 8 to score, tangents are faster than bounds of each word."""

_BLOCK_MAX: Final = 64
"""Rows of a block; the search for the best takes the maximum of each block first."""

_TINY: Final = float(np.finfo(np.float32).tiny)
"""Below the bound of every turn with a score."""

_BOUND_ERROR: Final = 1e-4
"""More than the error of a bound: it has about 30 operations, each with an error of 1e-7."""

_SCORE_ERROR: Final = 2e-9
"""Scores within this distance may round to the same score."""

_BOTH: Final = np.arange(2)


class TurnNorms(NamedTuple):
    """The length parts of the denominators of BM25 by place, to a whole number of pairs.

    - ``norms`` (places,) are the parts, and ``inverse`` (places,) their inverses, 0 in gaps.
    - ``of_pairs`` (pairs,) has the larger inverse of each pair.
    """

    norms: F64
    inverse: F32
    of_pairs: F32


def turn_norms(norms: F64, is_turn: Mask) -> TurnNorms:
    """Return the norms of turns from those of all places, (places,), and the mask of turns."""
    size = len(norms) + len(norms) % 2
    padded = np.ones(size)
    padded[: len(norms)] = norms
    inverse = np.zeros(size, np.float32)
    np.divide(1.0, norms, out=inverse[: len(norms)], where=is_turn, casting="same_kind")
    return TurnNorms(padded, inverse, np.maximum(inverse[::2], inverse[1::2]))


def best_turns(
    words: Counts, idfs: F64, norms: TurnNorms, k: int, *, scale: float, among: Mask | None
) -> tuple[I64, F64]:
    """Return the places with the k best scores, and more, in any order, and their scores.

    Cost: 15 ns a count, 4 ns a place, and 20 ns for each word of the turns that may be among the
    best: about 1 % of the turns for four words, 2 % for ten very frequent words.

    Args:
        words: The counts of the words in turns.
        idfs: The idf of each word, in the order of their sum; (words,).
        norms: The norms of the turns.
        k: The number of turns.
        scale: k1 + 1 of BM25.
        among: The places that count, (places,); None: all.
    """
    is_admitted = norms.inverse > 0
    if among is not None:
        is_admitted[: len(among)] &= among
    if len(norms.norms) <= _ALL_PLACES_MAX:
        scores = _sum_of(words.spread(len(norms.norms)), idfs, norms.norms, scale) * is_admitted
        best = np.flatnonzero(scores >= max(_near_best(scores, k) - _SCORE_ERROR, _TINY))
        return best, scores[best]
    return _Choice(words, idfs, norms, scale, is_admitted).best(k)


class _Scored(NamedTuple):
    """Some turns: their places (m,), sums of shares (words, m) and scores (m,)."""

    places: I64
    sums: F64
    scores: F64


class _Choice:
    """The choice of the turns of a question that need their score."""

    def __init__(
        self, words: Counts, idfs: F64, norms: TurnNorms, scale: float, is_admitted: Mask
    ) -> None:
        self._words = words
        self._idfs = idfs
        self._norms = norms
        self._scale = scale
        self._is_admitted = is_admitted
        self._sums = PairSums(words, len(norms.of_pairs))
        _keep_free_memory()

    def best(self, k: int) -> tuple[I64, F64]:
        """Return the places with the k best scores, and more."""
        if len(self._words.places) <= _FEW:
            pairs = reached_pairs(self._words, len(self._norms.of_pairs))
            reached = self._scored(pairs[self._norms.of_pairs[pairs] > 0])
            return reached.places, reached.scores
        bounds = self._sums.bounds(self._idfs, self._norms.of_pairs)
        least = max(_near_best(bounds, _FIRST * k), _TINY)
        pairs = np.flatnonzero(bounds >= least)
        scored = [self._scored(pairs)]
        bounds[pairs] = 0.0
        needed = _needed(scored, k)
        limit = _bound_of(needed, self._scale, float(self._idfs.sum()))
        rest = np.flatnonzero(bounds >= max(limit, _TINY))
        if needed > 0 and len(rest) > _FEW:
            closer = self._closer_bounds(rest, scored[0], k)
            if np.count_nonzero(closer >= needed) > _FEW + _FIRST * k:
                # Those with the best close bounds have better scores.
                is_next = closer >= np.partition(closer, len(closer) - _FIRST * k)[-_FIRST * k]
                scored.append(self._scored(rest[is_next]))
                rest, closer = rest[~is_next], closer[~is_next]
                needed = _needed(scored, k)
            rest = rest[closer >= needed]
        if len(rest):
            scored.append(self._scored(rest))
        places = np.concatenate([turns.places for turns in scored])
        return places, np.concatenate([turns.scores for turns in scored])

    def _closer_bounds(self, pairs: I64, first: _Scored, k: int) -> F32:
        """Return a bound of the scores in some pairs; (m,)."""
        if len(pairs) * _MANY_PART <= len(self._norms.of_pairs):
            worth = self._idfs * self._scale * (1.0 + _BOUND_ERROR)
            return self._sums.bounds_of_words(pairs, worth, self._norms.of_pairs)
        count = len(first.scores)
        best = np.argpartition(first.scores, count - k)[count - k :]
        at = first.sums[:, best] / self._norms.norms[first.places[best]]
        bounds = self._tangents(at.mean(axis=1))
        return np.maximum(bounds[2 * pairs], bounds[2 * pairs + 1])

    def _tangents(self, at: F64) -> F32:
        """Return the tangents of s as bounds of the score in every place, (places,).

        Args:
            at: The x of each word's tangent; (words,). V counts a word that most turns have too
                much.
        """
        slopes = self._scale / (1.0 + at) ** 2
        constant = float((self._idfs * slopes * at**2).sum())
        weighted = self._words.of_words(self._idfs * slopes * (1.0 + _BOUND_ERROR) / MILLION)
        sums = np.bincount(self._words.places, weighted, len(self._norms.norms))
        bounds = in_parts(sums.astype(np.float32))
        bounds *= self._norms.inverse
        bounds += np.float32(constant)
        return bounds

    def _scored(self, pairs: I64) -> _Scored:
        """Return the admitted turns of pairs that have a score."""
        places = (2 * pairs[:, np.newaxis] + _BOTH).ravel()
        sums = self._sums.at(pairs)
        is_scored = self._is_admitted[places] & sums.any(axis=0)
        places, sums = places[is_scored], sums[:, is_scored]
        scores = _sum_of([sums.copy()], self._idfs, self._norms.norms[places], self._scale)
        return _Scored(places, sums, scores)


def _sum_of(counts: Iterable[F64], idfs: F64, norms: F64, scale: float) -> F64:
    """Return the scores of turns by the sums of shares of some words each, which it overwrites.

    Args:
        counts: The sums of all words, in order; (words of each, turns).
        idfs: The idf of each word; (words,).
        norms: The norm of each turn; (turns,).
        scale: k1 + 1 of BM25.
    """
    scores = np.zeros(len(norms))
    first = 0
    for sums in counts:
        end = first + len(sums)
        denominators = sums + norms
        sums *= scale
        sums /= denominators
        sums *= idfs[first:end, np.newaxis]
        for of_word in sums:
            scores += of_word
        first = end
    return scores


@cache
def _keep_free_memory() -> None:
    """Free an array of 4 MiB, once a process.

    The C library of Linux then keeps up to 8 MiB of free memory for the arrays of the next
    question, which otherwise take 2,000 page faults for ten frequent words in 100,000 turns.
    """
    np.empty(1 << 22, np.uint8)


def _needed(scored: Sequence[_Scored], k: int) -> float:
    """Return a score that the k best turns reach; 0 with fewer turns."""
    scores = np.concatenate([turns.scores for turns in scored])
    if len(scores) < k:
        return 0.0
    return float(np.partition(scores, len(scores) - k)[len(scores) - k]) - _SCORE_ERROR


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
