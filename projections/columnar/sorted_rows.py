"""Rows in order of a key: sorted pieces, few because their sizes grow geometrically.

Owns look-ups of rows by a range of keys, for rows that are added in ascending order. Leaves out
confirmation and the newest rows: the owner of the keys decides when to add rows.
"""

import threading
from bisect import bisect_left
from typing import Generic

import numpy as np
import numpy.typing as npt

from .columns import I64, U32, Item, concatenate
from .hash_index import SORT_SIZE_MIN
from .strings import Strings


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


# --- Strings in order, for look-ups of a prefix or a bound by bisection ---------------------------
#
# Pieces are sorted on demand; the newest strings are compared individually, a word of 8 bytes at a
# time.


class StringOrder:
    """The codes of strings, in order of their strings.

    - Each piece has the codes of a range; together they cover [1, …). Each piece is more than twice
      as long as the next. All are published in a single assignment, so any thread may read.
    """

    def __init__(self, strings: Strings) -> None:
        self._strings = strings
        self._pieces: tuple[U32, ...] = ()
        self._lock = threading.RLock()

    def between(self, low: bytes, high: bytes | None) -> U32:
        """Return the codes, ascending, of the strings with low ≤ string < high, as UTF-8.

        A ``high`` of None means no bound. Cost: O(log² n) and the returned codes; occasionally a
        sort, 1 us a string.
        """
        strings = self._strings
        count = len(strings)
        if count - self._covered(self._pieces) > SORT_SIZE_MIN:
            self._cover(count)
        pieces = self._pieces
        parts: list[U32] = []
        for piece in pieces:
            start = bisect_left(piece, low, key=strings.utf8)
            end = len(piece) if high is None else bisect_left(piece, high, key=strings.utf8)
            parts.append(piece[start : max(start, end)])
        tail: I64 = np.arange(self._covered(pieces) + 1, count + 1)
        tail = tail[strings.compare(tail, low) >= 0]
        if high is not None:
            tail = tail[strings.compare(tail, high) < 0]
        return np.sort(concatenate([*parts, tail.astype(np.uint32)], np.uint32))

    def _covered(self, pieces: tuple[U32, ...]) -> int:
        return sum(map(len, pieces))

    def _cover(self, count: int) -> None:
        with self._lock:
            pieces = list(self._pieces)
            start = self._covered(self._pieces)
            if start >= count:
                return
            codes: list[int] = [*range(start + 1, count + 1)]
            while pieces and len(pieces[-1]) <= 2 * len(codes):
                earlier: list[int] = pieces.pop().tolist()
                codes = earlier + codes
            first = min(codes)
            texts = self._strings.all_utf8(first, count)
            # The earlier codes are a sorted run already, which speeds up the sort.
            codes.sort(key=lambda code: texts[code - first])
            self._pieces = (*pieces, np.array(codes, np.uint32))

    @property
    def size_bytes(self) -> int:
        """Memory of the pieces."""
        return sum(piece.nbytes for piece in self._pieces)


def bounds(operator: str, text: str) -> tuple[bytes, bytes | None]:
    """Return the [low, high) of the strings that satisfy a comparison; None means no end.

    ``operator``: ``<``, ``<=``, ``>``, ``>=`` or ``prefix``.
    """
    bound = text.encode()
    # The next string after any string is the same string with a zero byte appended.
    after = bound + b"\0"
    match operator:
        case "<":
            return b"", bound
        case "<=":
            return b"", after
        case ">":
            return after, None
        case ">=":
            return bound, None
        case _:
            # No byte of UTF-8 is 255, so the last byte of the prefix can be incremented.
            return bound, bound[:-1] + bytes([bound[-1] + 1]) if bound else None
