"""Sums of shares of some turns among many, by pairs of places.

A pair is two places beside each other, the first of them even: most steps pass over half as many
numbers. Owns the sums of a few pairs, and two upper bounds of those of every pair: a count of a
pair has the share of the nearest of its places. Leaves out the shares (`context_kernel`), and which
pairs matter (`turn_ranking`).

The sums of a few pairs are in a compact row: only the pairs that have a share in them, in order.
All pairs within reach of a wanted pair are there, so each step to a neighbour is the same as among
all pairs.
"""

from typing import Final, NamedTuple

import numpy as np

from ..columnar.columns import F32, F64, I64, Mask
from ..columnar.turn_order import REACH
from .context_kernel import DECAY, MILLION, NEXT, PARTS, PREVIOUS, Counts

_SIDE: Final = (REACH + 1) // 2
"""Pairs on each side that have a share in a pair."""

_NEAREST: Final = DECAY ** (2 * np.arange(_SIDE))
_PAIR_SHARES: Final = np.concatenate([PREVIOUS * _NEAREST[::-1], [1.0], NEXT * _NEAREST]).astype(
    np.float32
)

_WIDTH: Final = 2 * REACH + 2
"""Places that have a share in a pair."""

_PAIR_PARTS: Final = np.zeros((_WIDTH, 2))
_PAIR_PARTS[:-1, 0] = PARTS
_PAIR_PARTS[1:, 1] = PARTS

_WINDOW: Final = np.arange(_WIDTH) - REACH

_WINDOW_NUMBERS: Final = 15_000
"""Numbers of the windows that are summed up at once: 120 KB fit a processor's cache."""


class _Near(NamedTuple):
    """A compact row.

    - ``pairs`` (m,) are its pairs, ascending; ``number`` (pairs,) is the place of each in it, any
      value for other pairs.
    - ``used`` (n,) are the indices of the counts in it.
    """

    pairs: I64
    number: I64
    used: I64


class PairSums:
    """The sums of shares of several words, by pair; of ``pair_count`` pairs."""

    def __init__(self, words: Counts, pair_count: int) -> None:
        self._words = words
        self._pairs = words.places >> 1
        self._count = pair_count

    def bounds(self, worth: F64, inverse: F32) -> F32:
        """Return a bound of the weighted sum of each word's sum in both places of every pair.

        Not exact. Cost: 5 ns a count, 2 ns a pair.

        Args:
            worth: The weight of each word; (words,).
            inverse: The factor of each pair; (pairs,).
        """
        weighted = np.bincount(self._pairs, self._words.of_words(worth), self._count)
        return _reached(weighted.astype(np.float32)) * inverse

    def bounds_of_words(self, pairs: I64, worth: F64, inverse: F32) -> F32:
        """Return a bound of the weighted sum of x / (1 + x) of some pairs; (m,).

        x is a word's sum of shares times the factor of the pair. Not exact. Cost: 1 ns for each
        word and pair within reach, 3 ns a pair of all.

        Args:
            pairs: The pairs; (m,), distinct.
            worth: The weight of each word; (words,).
            inverse: The factor of each pair; (pairs,).
        """
        near = self._near(pairs)
        words = self._words
        size = len(near.pairs)
        at = words.words(near.used) * size + near.number[self._pairs[near.used]]
        flat = np.bincount(at, words.counts[near.used], len(worth) * size).astype(np.float32)
        # Sums at the end of a row have a part of the next row, which no wanted pair has.
        x = _reached(flat).reshape(len(worth), size)
        x *= inverse[near.pairs]
        x /= x + np.float32(1)
        total = np.zeros(size, np.float32)
        for weight, of_word in zip(worth.astype(np.float32), x, strict=True):
            total += weight * of_word
        return total[near.number[pairs]]

    def at(self, pairs: I64) -> F64:
        """Return the sum of shares of each word in the places of some pairs, (words, 2 m).

        Cost: 20 ns for each word and pair, 2 ns a count, 1 ns a pair of all.

        Args:
            pairs: The pairs; (m,), distinct.
        """
        words = self._words
        near = self._near(pairs)
        places = 2 * near.number[self._pairs[near.used]] + (words.places[near.used] & 1)
        matrix = np.zeros((len(words.ends), 2 * len(near.pairs)))
        matrix[words.words(near.used), places] = words.counts[near.used]
        windows = 2 * near.number[pairs, np.newaxis] + _WINDOW
        sums = np.empty((len(words.ends), len(pairs), 2))
        step = max(_WINDOW_NUMBERS // (_WIDTH * len(words.ends)), 1)
        for start in range(0, len(pairs), step):
            part = slice(start, start + step)
            # Products of whole numbers, so their sums are exact in any order.
            np.matmul(matrix.take(windows[part], axis=1), _PAIR_PARTS, out=sums[:, part])
        sums /= MILLION
        return sums.reshape(len(words.ends), -1)

    def _near(self, pairs: I64) -> _Near:
        is_near = np.zeros(self._count, np.bool_)
        is_near[pairs] = True
        _widen(is_near)
        near = np.flatnonzero(is_near)
        number = np.empty(self._count, np.int64)
        number[near] = np.arange(len(near))
        return _Near(near, number, np.flatnonzero(is_near[self._pairs]))


def _reached(counts: F32) -> F32:
    """Return the sums of shares in every pair, of the counts in all pairs; (pairs,) each."""
    return np.correlate(counts, _PAIR_SHARES, "same")


def reached_pairs(words: Counts, pair_count: int) -> I64:
    """Return the pairs in which any of the counts has a share."""
    is_reached = np.zeros(pair_count, np.bool_)
    is_reached[words.places >> 1] = True
    _widen(is_reached)
    return np.flatnonzero(is_reached)


def _widen(mask: Mask) -> None:
    """Add the pairs within reach of those of a mask, of which none is near its ends."""
    mask[1:] |= mask[:-1]
    mask[2:] |= mask[:-2]
    mask[3:] |= mask[:-3]
    mask[:-_SIDE] = mask[_SIDE:]
