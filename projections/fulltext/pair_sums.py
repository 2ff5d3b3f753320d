"""Sums of shares of some turns among many, by pairs of places.

A pair is two places beside each other, the first of them even: most steps pass over half as many
numbers. Owns the sums of some pairs, and an upper bound of those of every pair: a count of a pair
has the share of the nearest of its places. Leaves out the shares (`context_kernel`), and which
pairs matter (`turn_ranking`).

The sums of some pairs read the counts of a word from a row of all places, in which those within
reach of a pair are beside each other.
"""

from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from ..columnar.columns import F32, F64, I64, Mask
from ..columnar.turn_order import REACH
from .context_kernel import DECAY, MILLION, NEXT, PARTS, PREVIOUS, Counts

Counted: TypeAlias = npt.NDArray[Any]
"""Counts of unsigned whole numbers."""

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

_WINDOW: Final = np.arange(-_SIDE, _SIDE + 1)
"""The pairs that have a share in a pair, by their distance."""

_WINDOW_PAIRS: Final = 1_024
"""Pairs that are summed up at once: 120 KB of counts fit a processor's cache."""

_ROWS_BYTES: Final = 1 << 23
"""The size of the rows that are kept; those of further words are made again."""


class PairSums:
    """The sums of shares of several words, by pair; of ``pair_count`` pairs."""

    def __init__(self, words: Counts, pair_count: int) -> None:
        self._words = words
        self._count = pair_count
        self._rows: dict[int, Counted] = {}

    def weighted(self, worth: F64) -> F64:
        """Return the weighted sum of the counts of each place, (pairs, 2).

        Cost: 5 ns a count, 1 ns a pair.

        Args:
            worth: The weight of each word; (words,).
        """
        words = self._words
        counts = np.bincount(words.places, words.of_words(worth), 2 * self._count)
        return counts.astype(np.float64, copy=False).reshape(-1, 2)

    def at(self, pairs: I64) -> F64:
        """Return the sum of shares of each word in the places of some pairs, (words, 2 m).

        Cost: 20 ns for each word and pair; the first call also 3 ns a count, and a pass over a byte
        for each word and place.

        Args:
            pairs: The pairs; (m,), distinct, with `_SIDE` pairs on each side.
        """
        sums = np.empty((len(self._words.ends), len(pairs), 2))
        for word, of_word in enumerate(sums):
            self._add_up(word, pairs, of_word)
        return sums.reshape(len(sums), -1)

    def of_word(self, word: int, pairs: I64) -> F64:
        """Return the sums of shares of a word in the places of some pairs, (m, 2); as `at`."""
        sums = np.empty((len(pairs), 2))
        self._add_up(word, pairs, sums)
        return sums

    def _add_up(self, word: int, pairs: I64, out: F64) -> None:
        counts = self._row(word)
        for start in range(0, len(pairs), _WINDOW_PAIRS):
            part = slice(start, start + _WINDOW_PAIRS)
            windows = pairs[part, np.newaxis] + _WINDOW
            within = counts.take(windows, axis=0).reshape(len(windows), _WIDTH)
            # Products of whole numbers, so their sums are exact in any order.
            np.matmul(within.astype(np.float64), _PAIR_PARTS, out=out[part])
        out /= MILLION

    def _row(self, word: int) -> Counted:
        """Return the counts of a word in all places, (pairs, 2)."""
        kept = self._rows.get(word)
        if kept is not None:
            return kept
        words = self._words
        start = int(words.ends[word - 1]) if word else 0
        of_word = slice(start, int(words.ends[word]))
        counts: Counted = np.zeros(2 * self._count, words.counts.dtype)
        counts[words.places[of_word]] = words.counts[of_word]
        row: Counted = counts.reshape(-1, 2)
        if len(self._rows) * row.nbytes < _ROWS_BYTES:
            self._rows[word] = row
        return row


def bounds_of_all(weighted: F64) -> F32:
    """Return a bound of the sum of shares in both places of every pair, (pairs,); not exact.

    Cost: 2 ns a pair.

    Args:
        weighted: The counts of each place; (pairs, 2).
    """
    of_pairs = (weighted[:, 0] + weighted[:, 1]).astype(np.float32)
    return np.correlate(of_pairs, _PAIR_SHARES, "same")


def sums_of_some(weighted: F64, pairs: I64) -> F64:
    """Return the sums of shares in the places of some pairs, (m, 2); not exact.

    Args:
        weighted: The counts of each place; (pairs, 2).
        pairs: The pairs; (m,).
    """
    within = weighted.take(pairs[:, np.newaxis] + _WINDOW, axis=0).reshape(len(pairs), _WIDTH)
    sums: F64 = within @ _PAIR_PARTS
    sums /= MILLION
    return sums


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
