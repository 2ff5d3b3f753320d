"""The best turns by words of theirs and of their neighbours, without the scores of all turns.

Owns upper bounds of a turn's score. With c(t) the sum of shares of a term t for a turn, n the
turn's norm, and s(x) = (k1 + 1) · x / (1 + x), the score is Σ_t idf(t) · s(c(t) / n). Because s is
concave, the score is at most S · s(V / S), with S = Σ_t idf(t) and V = Σ_t idf(t) · c(t) / n
(Jensen's inequality). V needs one sum of shares for all terms together, and the bound grows with
V, so few turns with a large V need their score.

Turns are chosen by pairs of places: first by a bound of V for every pair, which takes half the
steps, then by V itself. Leaves out the sums (`context_kernel`, `pair_sums`).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, cached_property
from typing import Final, NamedTuple

import numpy as np

from ...columnar.columns import F32, F64, I64, Mask
from .context_kernel import Counts
from .pair_sums import PairSums

_ALL_PLACES_MAX: Final = 8_192
"""With as many places, the scores of all are faster than bounds."""

_FIRST: Final = 2
"""Pairs scored first, as a multiple of the turns wanted: their scores give a close bound."""

_FEW: Final = 200
"""With so few counts or pairs, these are scored without a further bound."""

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
    - ``k1`` is that of BM25, which the norms have as a factor.
    - ``near`` (pairs,) is the part of a neighbour's share that counts; None: all of it.
    """

    norms: F64
    inverse: F32
    of_pairs: F32
    k1: float
    near: F64 | None

    def among(self, mask: Mask) -> TurnNorms:
        """Return the norms with inverses of 0 outside the mask of the first places."""
        inverse = self.inverse.copy()
        inverse[: len(mask)] *= mask
        return self._replace(inverse=inverse, of_pairs=_larger_of_pairs(inverse))


def turn_norms(norms: F64, is_turn: Mask, k1: float, near: F64 | None) -> TurnNorms:
    """Return the norms of turns from those of all places, to a whole number of pairs.

    Args:
        norms: The norms of places, and of a place more if their number is odd.
        is_turn: The places that are turns; (places,).
        k1: That of BM25.
        near: The part of a neighbour's share that counts, (pairs,); None: all of it.
    """
    inverse = np.zeros(len(norms), np.float32)
    of_places = inverse[: len(is_turn)]
    # Computes in float64, without an array of all places between.
    np.divide(1.0, norms[: len(is_turn)], out=of_places, casting="same_kind")
    of_places *= is_turn
    return TurnNorms(norms, inverse, _larger_of_pairs(inverse), k1, near)


def _larger_of_pairs(inverse: F32) -> F32:
    return np.maximum(inverse[::2], inverse[1::2])


class TurnScores:
    """The scores of turns by the words of a question. Not thread-safe."""

    def __init__(self, words: Counts, idfs: F64, norms: TurnNorms) -> None:
        """Create the scores from the counts of the words in turns, and the idf of each word."""
        self._words = words
        self._idfs = idfs
        self._norms = norms

    def best(self, k: int, among: Mask | None) -> tuple[I64, F64]:
        """Return the places with the k best scores, and more, in any order, and their scores.

        Cost: 15 ns a count, 3 ns a place, and 20 ns for each word of the turns that may be among
        the best: about 2 % of the turns for the first word, 1 % for the second.

        Args:
            k: The number of turns.
            among: The places that count, (places,); None: all.
        """
        norms = self._norms if among is None else self._norms.among(among)
        if len(norms.norms) <= _ALL_PLACES_MAX:
            scores = self._of_all * (norms.inverse > 0)
            best = np.flatnonzero(scores >= max(_near_best(scores, k) - _SCORE_ERROR, _TINY))
            return best, scores[best]
        return _Choice(self._sums, self._idfs, norms).best(k)

    def at(self, places: I64) -> F64:
        """Return the scores of turns in some places, with the bits of `best`; (n,)."""
        if "_of_all" in vars(self):
            return self._of_all[places]
        pairs, index = np.unique(places >> 1, return_inverse=True)
        of_pairs = (2 * pairs[:, np.newaxis] + _BOTH).ravel()
        norms = self._norms.norms[of_pairs]
        scores = _sum_of([self._sums.at(pairs)], self._idfs, norms, self._norms.k1)
        of_places: F64 = scores[2 * index + (places & 1)]
        return of_places

    @cached_property
    def _of_all(self) -> F64:
        """The scores in all places; those of gaps have no meaning."""
        norms = self._norms.norms
        sums = self._words.spread(len(norms), self._norms.near)
        return _sum_of(sums, self._idfs, norms, self._norms.k1)

    @cached_property
    def _sums(self) -> PairSums:
        return PairSums(self._words, len(self._norms.of_pairs), self._norms.near)


class _Scored(NamedTuple):
    """Some turns: their places (m,) and scores (m,), and the sum of each word in them, (words,)."""

    places: I64
    scores: F64
    words: F64


class _Choice:
    """The choice of the turns of a question that need their score."""

    def __init__(self, sums: PairSums, idfs: F64, norms: TurnNorms) -> None:
        self._sums = sums
        self._idfs = idfs
        self._norms = norms
        self._scale = norms.k1 + 1.0
        _keep_free_memory()

    def best(self, k: int) -> tuple[I64, F64]:
        """Return the places with the k best scores, and more."""
        if self._sums.count <= _FEW:
            pairs = self._sums.reached()
            reached = self._scored(pairs[self._norms.of_pairs[pairs] > 0])
            return reached.places, reached.scores
        weighted = self._sums.weighted(self._idfs)
        bounds = self._sums.bounds(weighted)
        bounds *= self._norms.of_pairs
        pairs = np.flatnonzero(bounds >= max(_near_best(bounds, _FIRST * k), _TINY))
        first = self._scored(pairs)
        bounds[pairs] = 0.0
        needed = 0.0
        if len(first.scores) >= k:
            needed = float(np.partition(first.scores, len(first.scores) - k)[-k]) - _SCORE_ERROR
        pairs = np.flatnonzero(bounds >= self._least(needed))
        if len(pairs) > _FEW:
            pairs = self._chosen(weighted, pairs, needed, np.argsort(-first.words, kind="stable"))
        rest = self._scored(pairs)
        places = np.concatenate([first.places, rest.places])
        return places, np.concatenate([first.scores, rest.scores])

    def _least(self, needed: float) -> float:
        """Return a V below which every score is less than needed."""
        total = float(self._idfs.sum())
        room = self._scale * total - needed
        least = needed * total / room * (1.0 - _BOUND_ERROR) if room > 0 else 0.0
        return max(least, _TINY)

    def _chosen(self, weighted: F64, pairs: I64, needed: float, order: I64) -> I64:
        """Return the pairs in which a turn may have the needed score.

        Each step replaces the part of a word in V by its part of the score, so the bound gets
        closer, and fewer pairs remain for the next word.

        Args:
            weighted: The counts of each place times the idf of their words; (pairs, 2).
            pairs: The pairs to choose from; (m,).
            needed: The needed score.
            order: The words, the largest part of the scores first; (words,).
        """
        inverse = self._norms.inverse.reshape(-1, 2).take(pairs, axis=0).astype(np.float64)
        near = self._sums.of_some(weighted, pairs) * inverse
        added = np.zeros_like(near)
        chosen = _any_place(near >= self._least(needed))
        total = float(self._idfs.sum())
        for word in order[:-1].tolist():
            if len(chosen) <= _FEW:
                break
            pairs, inverse = pairs[chosen], inverse.take(chosen, axis=0)
            near, added = near.take(chosen, axis=0), added.take(chosen, axis=0)
            idf = float(self._idfs[word])
            x = self._sums.of_word(word, pairs) * inverse
            near -= idf * x
            total -= idf
            added += idf * self._scale * x / (1.0 + x)
            bounds = added + self._scale * near / (1.0 + near / total)
            chosen = _any_place(bounds >= needed * (1.0 - _BOUND_ERROR))
        return pairs[chosen]

    def _scored(self, pairs: I64) -> _Scored:
        """Return the admitted turns of pairs that have a score."""
        places = (2 * pairs[:, np.newaxis] + _BOTH).ravel()
        sums = self._sums.at(pairs)
        scores = _sum_of([sums], self._idfs, self._norms.norms[places], self._norms.k1)
        is_scored = (scores > 0) & (self._norms.inverse[places] > 0)
        return _Scored(places[is_scored], scores[is_scored], sums.sum(axis=1))


def _sum_of(counts: Iterable[F64], idfs: F64, norms: F64, k1: float) -> F64:
    """Return the scores of turns by the sums of shares of some words each.

    Overwrites the sums with their parts of the scores.

    Args:
        counts: The sums of all words, in order; (words of each, turns).
        idfs: The idf of each word; (words,).
        norms: The norm of each turn; (turns,).
        k1: That of BM25.
    """
    scale = k1 + 1.0
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


def _any_place(are_chosen: Mask) -> I64:
    """Return the pairs with a chosen place; the mask is (pairs, 2)."""
    # Far faster than `any` along the short axis.
    return np.flatnonzero(are_chosen[:, 0] | are_chosen[:, 1])


@cache
def _keep_free_memory() -> None:
    """Free an array of 4 MiB, once a process.

    The C library of Linux then keeps up to 8 MiB of free memory for the arrays of the next
    question, which otherwise take 2,000 page faults for ten frequent words in 100,000 turns.
    """
    np.empty(1 << 22, np.uint8)


def _near_best(bounds: F32 | F64, k: int) -> float:
    """Return a value that at least ``k`` bounds reach, and few more; 0 if there are not so many."""
    rows = min(len(bounds) // (2 * k), _BLOCK_MAX)
    if rows < 1:
        return 0.0
    # The k-th best maximum of a block is at most the k-th best bound.
    maxima = bounds[: len(bounds) // rows * rows].reshape(rows, -1).max(axis=0)
    return float(np.partition(maxima, len(maxima) - k)[len(maxima) - k])
