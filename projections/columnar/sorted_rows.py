"""Rows in order of a key: sorted pieces, few because their sizes grow geometrically.

Owns look-ups of rows by a range of keys, for rows that are added in ascending order. Leaves out
confirmation and the newest rows: the owner of the keys decides when to add rows.
"""

from typing import Generic

import numpy as np
import numpy.typing as npt

from .columns import U32, Item, concatenate


class SortedRows(Generic[Item]):
    """An immutable set of (key, row), in order of key, then row.

    - Each piece is sorted and more than twice as large as the next, so there are O(log n) pieces.
    - The rows of a piece all follow those of the previous piece.
    """

    __slots__ = ("pieces",)

    def __init__(self, pieces: tuple[tuple[npt.NDArray[Item], U32], ...] = ()) -> None:
        self.pieces = pieces

    def plus(self, keys: npt.NDArray[Item], rows: U32) -> "SortedRows[Item]":
        """Return this set with more rows, which ascend after its rows. Amortised O(log n) a row."""
        if not len(rows):
            return self
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        rows = rows[order]
        pieces = list(self.pieces)
        while pieces and len(pieces[-1][1]) <= 2 * len(rows):
            earlier = pieces.pop()
            keys = concatenate([earlier[0], keys], keys.dtype.type)
            rows = concatenate([earlier[1], rows], np.uint32)
            # A stable sort merges two ascending runs in a single pass.
            order = np.argsort(keys, kind="stable")
            keys = keys[order]
            rows = rows[order]
        return SortedRows((*pieces, (keys, rows)))

    def between(self, low: Item, high: Item) -> list[tuple[npt.NDArray[Item], U32]]:
        """Return keys and rows of each piece with low ≤ key ≤ high; O(log² n), no copy."""
        ranges: list[tuple[npt.NDArray[Item], U32]] = []
        for keys, rows in self.pieces:
            start = keys.searchsorted(low)
            # Most pieces have no row in the range: skip the second search.
            if start < len(keys) and keys[start] <= high:
                end = keys.searchsorted(high, side="right")
                ranges.append((keys[start:end], rows[start:end]))
        return ranges

    def __len__(self) -> int:
        return sum(len(rows) for _, rows in self.pieces)

    @property
    def size_bytes(self) -> int:
        """Memory of the pieces."""
        return sum(keys.nbytes + rows.nbytes for keys, rows in self.pieces)
