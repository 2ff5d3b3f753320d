"""Sums of shares of some turns among many, by pairs of places.

A pair is two places beside each other, the first of them even: most steps pass over half as many
numbers. Owns the sums of some pairs, and an upper bound of those of every pair: a count of a pair
has the share of the nearest of its places. Leaves out the shares (`context_kernel`), and which
pairs matter (`turn_ranking`).

The sums of some pairs read the counts of a word from a row of all places, in which those within
reach of a pair are beside each other.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import as_strided

from ...columnar.columns import F32, F64, I64, Mask
from ...columnar.turn_order import REACH
from .context_kernel import DECAY, MILLION, NEXT, PARTS, PREVIOUS, Counts

Counted: TypeAlias = npt.NDArray[Any]
"""Counts of unsigned whole numbers, or pairs of them as one number."""

_SIDE: Final = (REACH + 1) // 2
"""Pairs on each side that have a share in a pair."""

_NEAREST: Final = DECAY ** (2 * np.arange(_SIDE))
_PAIR_SHARES: Final = np.concatenate([PREVIOUS * _NEAREST[::-1], [1.0], NEXT * _NEAREST])

_WIDTH: Final = 2 * REACH + 2
"""Places that have a share in a pair."""

_PAIR_PARTS: Final = np.zeros((_WIDTH, 2))
_PAIR_PARTS[:-1, 0] = PARTS
_PAIR_PARTS[1:, 1] = PARTS

_OWN: Final = slice(REACH, REACH + 2)
"""The places of the pair itself among these."""

_WINDOW: Final = np.arange(-_SIDE, _SIDE + 1)
"""The pairs that have a share in a pair, by their distance."""

_WINDOW_NUMBERS: Final = 1 << 16
"""Counts that are summed up at once: 512 KB fit a processor's cache."""

_ROWS_BYTES: Final = 1 << 23
"""The size of the rows that are kept; those of further words are made again."""

_RUN: Final = 16
"""Pairs beside each other whose bounds are one row of a product of matrices."""

_RUNS: Final = 1_024
"""Runs of a product: several threads would share a larger one, and take more time in all."""


def _run_shares() -> F32:
    """Return the shares of the pairs within reach of a run in each of its pairs."""
    shares = np.zeros((_RUN + 2 * _SIDE, _RUN), np.float32)
    for pair in range(_RUN):
        shares[pair : pair + len(_PAIR_SHARES), pair] = _PAIR_SHARES
    return shares


_RUN_SHARES: Final = _run_shares()


class PairSums:
    """The sums of shares of several words, by pair; of ``pair_count`` pairs."""

    def __init__(self, words: Counts, pair_count: int, near: F64 | None) -> None:
        """Create the sums; ``near`` (pairs,) is the part of a share that counts, None: all."""
        self._words = words
        self._near = near
        self._pair_count = pair_count
        self._pair = np.dtype(f"u{2 * words.counts.itemsize}")
        self._step = max(_ROWS_BYTES // (pair_count * self._pair.itemsize), 1)
        self._kept: Counted | None = None

    @property
    def count(self) -> int:
        """The number of counts of all words."""
        return len(self._words.places)

    def reached(self) -> I64:
        """Return the pairs in which any of the counts has a share."""
        is_reached = np.zeros(self._pair_count, np.bool_)
        is_reached[self._words.places >> 1] = True
        _widen(is_reached)
        return np.flatnonzero(is_reached)

    def bounds(self, weighted: F64) -> F32:
        """Return a bound of the sum of shares in both places of every pair; as `bounds_of_all`."""
        bounds = bounds_of_all(weighted)
        if self._near is not None:
            bounds *= self._near
            bounds += (1.0 - self._near) * (weighted[:, 0] + weighted[:, 1])
        return bounds

    def of_some(self, weighted: F64, pairs: I64) -> F64:
        """Return the sums of shares in the places of some pairs, (m, 2); as `sums_of_some`."""
        sums = sums_of_some(weighted, pairs)
        if self._near is not None:
            near = self._near[pairs, np.newaxis]
            sums *= near
            sums += (1.0 - near) * weighted.take(pairs, axis=0)
        return sums

    def weighted(self, worth: F64) -> F64:
        """Return the weighted sum of the counts of each place, (pairs, 2).

        Cost: 5 ns a count, 1 ns a pair.

        Args:
            worth: The weight of each word; (words,).
        """
        words = self._words
        counts = np.bincount(words.places, words.of_words(worth), 2 * self._pair_count)
        return counts.astype(np.float64, copy=False).reshape(-1, 2)

    def at(self, pairs: I64) -> F64:
        """Return the sum of shares of each word in the places of some pairs, (words, 2 m).

        Cost: 15 ns for each word and pair; the first call also 2 ns a count, and a pass over a byte
        for each word and place.

        Args:
            pairs: The pairs; (m,), distinct, with `_SIDE` pairs on each side.
        """
        sums = np.empty((len(self._words.ends), len(pairs), 2))
        first = 0
        for rows in self._rows():
            end = first + len(rows)
            self._add_up(rows, pairs, sums[first:end])
            first = end
        return sums.reshape(len(sums), -1)

    def of_word(self, word: int, pairs: I64) -> F64:
        """Return the sums of shares of a word in the places of some pairs, (m, 2); as `at`."""
        sums: F64 = np.empty((1, len(pairs), 2))
        if self._kept is not None and word < len(self._kept):
            row = self._kept[word : word + 1]
        else:
            row = self._rows_of(word, word + 1)
        self._add_up(row, pairs, sums)
        return sums.reshape(-1, 2)

    def _add_up(self, rows: Counted, pairs: I64, out: F64) -> None:
        """Write the sums of shares of words in the places of some pairs, (words, m, 2)."""
        step = max(_WINDOW_NUMBERS // (_WIDTH * len(rows)), 1)
        for start in range(0, len(pairs), step):
            part = slice(start, start + step)
            windows = pairs[part, np.newaxis] + _WINDOW
            within = rows.take(windows, axis=1).view(self._words.counts.dtype).astype(np.float64)
            sums = out[:, part]
            # Products of whole numbers, so their sums are exact in any order.
            np.matmul(within, _PAIR_PARTS, out=sums)
            if self._near is not None:
                near = self._near[pairs[part], np.newaxis]
                sums *= near
                sums += within[:, :, _OWN] * (MILLION * (1.0 - near))
        out /= MILLION

    def _rows(self) -> Iterator[Counted]:
        """Yield the counts of some words after another in all pairs, (words of each, pairs)."""
        word_count = len(self._words.ends)
        if self._kept is None:
            self._kept = self._rows_of(0, min(self._step, word_count))
        yield self._kept
        for first in range(self._step, word_count, self._step):
            yield self._rows_of(first, min(first + self._step, word_count))

    def _rows_of(self, first: int, end: int) -> Counted:
        """Return the counts of words in all pairs, (words, pairs), both of a pair as one number."""
        words = self._words
        rows: Counted = np.zeros((end - first, 2 * self._pair_count), words.counts.dtype)
        ends = words.ends[max(first - 1, 0) : end].tolist()
        if not first:
            ends.insert(0, 0)
        for row, (start, stop) in zip(rows, pairwise(ends), strict=True):
            row[words.places[start:stop]] = words.counts[start:stop]
        return rows.view(self._pair)


def bounds_of_all(weighted: F64) -> F32:
    """Return a bound of the sum of shares in both places of every pair, (pairs,); not exact.

    There must be no counts in the first and the last three pairs, whose bounds are 0. Cost: 2 ns a
    pair.

    Args:
        weighted: The counts of each place; (pairs, 2).
    """
    count = len(weighted)
    of_pairs = (weighted[:, 0] + weighted[:, 1]).astype(np.float32)
    bounds = np.zeros(count, np.float32)
    runs = (count - 2 * _SIDE) // _RUN
    end = _SIDE + runs * _RUN
    windows = as_strided(of_pairs, (runs, _RUN + 2 * _SIDE), (4 * _RUN, 4))
    inner = bounds[_SIDE:end].reshape(runs, _RUN)
    for start in range(0, runs, _RUNS):
        part = slice(start, start + _RUNS)
        np.matmul(np.ascontiguousarray(windows[part]), _RUN_SHARES, out=inner[part])
    rest = of_pairs[end - _SIDE :]
    if len(rest) > 2 * _SIDE:
        bounds[end:-_SIDE] = np.correlate(rest, _PAIR_SHARES.astype(np.float32), "valid")
    return bounds


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


def _widen(mask: Mask) -> None:
    """Add the pairs within reach of those of a mask, of which none is near its ends."""
    mask[1:] |= mask[:-1]
    mask[2:] |= mask[:-2]
    mask[3:] |= mask[:-3]
    mask[:-_SIDE] = mask[_SIDE:]
