"""Rows by hash: a u64 column that is sorted piece by piece and bisected.

Owns lookup by a 64-bit hash over a column that only grows. Leaves out confirmation: two different
things can share a hash, so a caller compares what it finds. Sorting is put off until lookups have
cost as much, so that who opens a file to ask one question sorts nothing.
"""

import threading
from collections.abc import Sequence
from typing import Final

import numpy as np
from blake3 import blake3

from .columns import U64, gather_ranges
from .sorted_rows import SortedRows

SORT_SIZE_MIN: Final = 4096
"""A tail below this many items is scanned by `HashIndex.find_all`."""


_SCANS_MAX: Final = 32
"""What came since the last sort is scanned so often before it is sorted: that costs as much."""

_BATCH_MIN: Final = 16
"""Fewer hashes than this are looked up one by one."""


class HashIndex:
    """Finds rows by their hash.

    - Rows [0, ``_covered``) are in ``_sorted``.
    - Any thread may look up, with any prefix of the one column that the index is for.
    """

    __slots__ = ("_covered", "_lock", "_scans", "_sorted")

    def __init__(self) -> None:
        self._sorted = SortedRows[np.uint64]()
        self._covered = 0
        # Lookups that passed over what is not sorted.
        self._scans = 0
        self._lock = threading.Lock()

    def find(self, hashes: U64, wanted: int) -> list[int]:
        """Return the rows of ``hashes`` that equal ``wanted``, ascending.

        Cost: O(log² n), and once in a while a sort of what came since.
        """
        size = len(hashes)
        if size > self._covered:
            self._scans += 1
            if self._scans > _SCANS_MAX:
                self._cover(hashes)
        key = np.uint64(wanted)
        # Read before the rows: they may come to cover more meanwhile, never less.
        covered, found = self._covered, list[int]()
        for _, rows in self._sorted.between(key, key):
            found += rows.tolist()
        if covered < size:
            found += (np.flatnonzero(hashes[covered:] == key) + covered).tolist()
        return sorted({row for row in found if row < size}) if found else found

    def find_all(self, hashes: U64, wanted: U64) -> list[int]:
        """Return the rows of ``hashes`` that equal any of ``wanted``; about 0.2 us for each."""
        if len(wanted) < _BATCH_MIN:
            return [row for one in wanted.tolist() for row in self.find(hashes, one)]
        size = len(hashes)
        if size - self._covered > SORT_SIZE_MIN:
            self._cover(hashes)
        covered, ordered = self._covered, np.sort(wanted)
        found: list[int] = []
        for keys, rows in self._sorted.pieces:
            starts = keys.searchsorted(ordered)
            counts = keys.searchsorted(ordered, side="right") - starts
            found += rows[gather_ranges(starts, counts)].tolist()
        if covered < size:
            found += (np.flatnonzero(np.isin(hashes[covered:], ordered)) + covered).tolist()
        return [row for row in found if row < size]

    def _cover(self, hashes: U64) -> None:
        """Sort the rows that are not sorted yet."""
        with self._lock:
            start, end = self._covered, len(hashes)
            if start < end:
                self._sorted = self._sorted.plus(
                    hashes[start:], np.arange(start, end, dtype=np.uint32)
                )
                self._covered, self._scans = end, 0

    @property
    def size_bytes(self) -> int:
        """Memory held by the sorted rows."""
        return self._sorted.size_bytes


def hash_bytes64(data: bytes) -> int:
    """Return the first 64 bits of the BLAKE3 of bytes."""
    return int.from_bytes(blake3(data).digest(8), "little")


def hashes64(pieces: Sequence[bytes]) -> U64:
    """Return `hash_bytes64` of each of many."""
    digests = b"".join([blake3(piece).digest(8) for piece in pieces])
    return np.frombuffer(digests, "<u8").astype(np.uint64, copy=False)


def hash_halves(digests: Sequence[bytes | None]) -> tuple[U64, U64]:
    """Return the first 16 bytes of hashes as two u64 each; a shorter one counts as zero-padded."""
    sixteen = [(digest or b"")[:16].ljust(16, b"\x00") for digest in digests]
    halves = np.frombuffer(b"".join(sixteen), "<u8").astype(np.uint64, copy=False).reshape(-1, 2)
    return halves[:, 0], halves[:, 1]
