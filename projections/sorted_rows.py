"""Rows in order of a key: pieces that are each sorted, few because they grow geometrically.

Owns finding the rows whose key lies in a range, among rows that only ever come in ascending
order. Leaves out confirmation and the newest rows: who holds the keys adds them when it likes.
"""

from typing import Generic

import numpy as np
import numpy.typing as npt

from .columns import U32, Item, concatenate


class SortedRows(Generic[Item]):
    """An immutable set of (key, row), in order of key, then row.

    - Each piece is sorted and more than twice as large as the next, so there are O(log n).
    - The rows of a piece all come after those of the piece before.
    """

    __slots__ = ("pieces",)

    def __init__(self, pieces: tuple[tuple[npt.NDArray[Item], U32], ...] = ()) -> None:
        self.pieces = pieces

    def plus(self, keys: npt.NDArray[Item], rows: U32) -> "SortedRows[Item]":
        """Return these and more; ``rows`` ascend, after all that are here. Amortised O(log n)."""
        if not len(rows):
            return self
        order = np.argsort(keys, kind="stable")
        keys, rows = keys[order], rows[order]
        pieces = list(self.pieces)
        while pieces and len(pieces[-1][1]) <= 2 * len(rows):
            earlier = pieces.pop()
            keys = concatenate([earlier[0], keys], keys.dtype.type)
            rows = concatenate([earlier[1], rows], np.uint32)
            # Two ascending runs, which a stable sort merges in one pass.
            order = np.argsort(keys, kind="stable")
            keys, rows = keys[order], rows[order]
        return SortedRows((*pieces, (keys, rows)))

    def between(self, low: Item, high: Item) -> list[tuple[npt.NDArray[Item], U32]]:
        """Return keys and rows of each piece with low ≤ key ≤ high; O(log² n), no copy."""
        found: list[tuple[npt.NDArray[Item], U32]] = []
        for keys, rows in self.pieces:
            start = keys.searchsorted(low)
            # Mostly there is none, or one.
            if start < len(keys) and keys[start] <= high:
                end = keys.searchsorted(high, side="right")
                found.append((keys[start:end], rows[start:end]))
        return found

    def __len__(self) -> int:
        return sum(len(rows) for _, rows in self.pieces)

    @property
    def size_bytes(self) -> int:
        """Memory held by the pieces."""
        return sum(keys.nbytes + rows.nbytes for keys, rows in self.pieces)
