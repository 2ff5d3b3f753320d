"""Vectors as of any event: the reader of the columns that `projection` folds."""

from collections.abc import Iterable, Sequence
from copy import copy
from typing import Final, NamedTuple

import numpy as np

from ..columnar.columns import I32, I64, U16, U32, U64, Mask, rows_up_to
from .columns import Key, SpaceRows, VectorColumns

_WORD_BITS: Final = 64
_WORDS_OF_BYTE: Final = 3
"""Words whose counts of bits add up to less than 256."""

_BLOCK_ROWS: Final = 1 << 16
"""Rows that are compared at once: 512 KiB of signs, which fit a processor's cache."""


class Space(NamedTuple):
    """The vectors of a space up to an event, a row each; immutable.

    - ``seqs`` ascend; ``until`` is that of `SpaceRows`.
    - ``words``: the signs, a column for each word of 64 bits.
    """

    key: Key
    seqs: I64
    frames: U64
    checks: U64
    until: I64
    words: tuple[U64, ...]
    rows: SpaceRows
    is_reduced: bool = False
    """True if rows that cannot be read are left out."""

    def without(self, rows: Sequence[int]) -> "Space":
        """Return the space in which some rows are the vector of no frame, at any n."""
        until = self.until.copy()
        until[list(rows)] = 0
        return self._replace(until=until, is_reduced=True)

    def by(self, n: int) -> "Space":
        """Return the space with its rows up to event n."""
        count = rows_up_to(self.seqs, n)
        if count == len(self.seqs):
            return self
        return self._replace(
            seqs=self.seqs[:count],
            frames=self.frames[:count],
            checks=self.checks[:count],
            until=self.until[:count],
            words=tuple(column[:count] for column in self.words),
        )

    def current_mask(self, n: int) -> Mask:
        """Return the mask of the rows that are their frame's vector at n; all rows are up to n."""
        mask: Mask = self.until > n
        return mask

    def row_of(self, frame: int, n: int) -> int | None:
        """Return the row of a frame's vector at n, or None."""
        rows = [
            row
            for row in self.rows.by_frame.find(self.frames, frame)
            if self.seqs[row] <= n < self.until[row]
        ]
        return rows[0] if rows else None


class Vectors:
    """Reads vectors at any n up to ``seq``. Immutable; safe for threads during a fold."""

    def __init__(self, columns: VectorColumns, seq: int) -> None:
        self.seq = seq
        self._spaces = [_space(rows) for rows in columns.spaces]

    def without(self, key: Key, rows: Sequence[int]) -> "Vectors":
        """Return the vectors without some rows of a space, which cannot be read."""
        vectors = copy(self)
        vectors._spaces = [
            space.without(rows) if space.key == key else space for space in self._spaces
        ]
        return vectors

    def spaces(self, n: int) -> list[Space]:
        """Return the spaces with a vector up to n, in order of first occurrence."""
        return [space for space in self._spaces if len(space.seqs) and space.seqs[0] <= n]

    def find(self, key: Key, n: int) -> Space | None:
        """Return the space with a key, with its rows up to event n, or None."""
        return next((space.by(n) for space in self.spaces(n) if space.key == key), None)


def _space(rows: SpaceRows) -> Space:
    return Space(
        rows.key,
        rows.seqs.view(),
        rows.frames.view(),
        rows.checks.view(),
        rows.until.view(),
        tuple(column.view() for column in rows.words),
        rows,
    )


def distances(space: Space, rows: I64 | slice, query: U64) -> U16 | U32:
    """Return the number of signs in which each row differs from a query's sign words."""
    words = [column[rows] for column in space.words]
    count = len(words[0])
    # All of 65,536 signs may differ: 16 bits can count up to 65,535.
    is_short = space.key[2] <= np.iinfo(np.uint16).max
    short: U16 = np.zeros(count if is_short else 0, np.uint16)
    total: U16 | U32 = short if is_short else np.zeros(count, np.uint32)
    differing = np.empty(min(count, _BLOCK_ROWS), np.uint64)
    counts = np.empty(len(differing), np.uint8)
    for start in range(0, count, _BLOCK_ROWS):
        block = total[start : start + _BLOCK_ROWS]
        size = len(block)
        for column, word in zip(words, query, strict=True):
            np.bitwise_xor(column[start : start + size], word, out=differing[:size])
            np.bitwise_count(differing[:size], out=counts[:size])
            np.add(block, counts[:size], out=block)
    return total


def agreement(space: Space, rows: I64 | slice, query: I32) -> I32:
    """Return for each row the sum of the query's numbers in the dimensions with a set sign bit.

    Exact, if the magnitudes of the query add up to less than 2**31. Computed a bit of the query's
    numbers at a time, from the highest: in how many dimensions are this bit and the sign set? The
    numbers are raised to at least 0 first. Sums that overflow on the way are right modulo 2**32.
    """
    words = [column[rows] for column in space.words]
    totals: I32 = np.zeros(len(words[0]), np.int32)
    least = min(int(query.min()), 0)
    masks = _bit_masks(query.astype(np.int64) - least, len(words))
    every = _bit_masks(np.ones(len(query), np.int64), len(words))[0]
    for start in range(0, len(totals), _BLOCK_ROWS):
        block = totals[start : start + _BLOCK_ROWS]
        signs = [column[start : start + _BLOCK_ROWS] for column in words]
        for mask in masks:
            np.add(block, block, out=block)
            _add_common(block, signs, mask)
        if least:
            counts: I32 = np.zeros(len(block), np.int32)
            _add_common(counts, signs, every)
            np.add(block, np.multiply(counts, least, out=counts), out=block)
    return totals


def _bit_masks(numbers: I64, words: int) -> U64:
    """Return the bits of numbers from 0 on, the highest first; (bits, words)."""
    raised = np.zeros(_WORD_BITS * words, np.int64)
    raised[: len(numbers)] = numbers
    shifts = np.arange(int(numbers.max()).bit_length() - 1, -1, -1)
    bits = (raised >> shifts[:, None] & 1).astype(np.uint8)
    packed = np.packbits(bits, axis=1, bitorder="little").view("<u8")
    return packed.astype(np.uint64, copy=False)


def _add_common(totals: I32, signs: Sequence[U64], mask: Iterable[np.uint64]) -> None:
    """Add to each total the number of bits that the words of its row and of the mask share."""
    common = np.empty(len(totals), np.uint64)
    counts = np.empty(len(totals), np.uint8)
    few = np.empty(len(totals), np.uint8)
    for place, (column, word) in enumerate(zip(signs, mask, strict=True)):
        np.bitwise_and(column, word, out=common)
        if place % _WORDS_OF_BYTE:
            np.add(few, np.bitwise_count(common, out=counts), out=few)
        else:
            np.bitwise_count(common, out=few)
        if place % _WORDS_OF_BYTE == _WORDS_OF_BYTE - 1 or place == len(signs) - 1:
            np.add(totals, few, out=totals)
