"""Rows by hash: a u64 column that is sorted piece by piece and bisected.

Owns lookup by a 64-bit hash over a column that only grows. Leaves out confirmation: two different
things can share a hash, so a caller compares what it finds. Sorting is put off until a lookup
wants it, so that loading a chunk does none.
"""

import threading

import numpy as np
from blake3 import blake3

from .columns import I64, U64

_SORT_SIZE_MIN = 4096
"""A tail below this many items is scanned: 4,096 compare in about 3 us, as a bisect takes."""


class HashIndex:
    """Finds rows by their hash.

    - Pieces cover rows [0, ``_covered``) in order, each sorted by hash, each at least as large as
      the one after it, so there are O(log n) of them.
    - Any thread may look up, with any prefix of the one column that the index is for.
    """

    __slots__ = ("_covered", "_lock", "_pieces")

    def __init__(self) -> None:
        self._pieces: tuple[tuple[U64, I64], ...] = ()
        self._covered = 0
        self._lock = threading.Lock()

    def find(self, hashes: U64, wanted: int) -> list[int]:
        """Return the rows of ``hashes`` that equal ``wanted``, ascending.

        Cost: O(log² n), and once in a while a sort of what came since.
        """
        size = len(hashes)
        if size - self._covered > _SORT_SIZE_MIN:
            self._cover(hashes)
        key = np.uint64(wanted)
        # Read before the pieces: they may come to cover more meanwhile, never less.
        covered, pieces = self._covered, self._pieces
        found: list[int] = []
        for keys, rows in pieces:
            start = keys.searchsorted(key)
            # Mostly there is none, or one.
            if start < len(keys) and keys[start] == key:
                found += rows[start : keys.searchsorted(key, side="right")].tolist()
        if covered < size:
            found += (np.flatnonzero(hashes[covered:] == key) + covered).tolist()
        return sorted({row for row in found if row < size}) if found else found

    def _cover(self, hashes: U64) -> None:
        """Sort what no piece covers, and merge pieces until each is larger than the next."""
        with self._lock:
            if len(hashes) <= self._covered:
                return
            pieces = list(self._pieces)
            start = self._covered
            while pieces and len(pieces[-1][0]) < 2 * (len(hashes) - start):
                start -= len(pieces.pop()[0])
            order = np.argsort(hashes[start:], kind="stable")
            pieces.append((hashes[start:][order], order + start))
            self._pieces = tuple(pieces)
            self._covered = len(hashes)

    @property
    def size_bytes(self) -> int:
        """Memory held by the sorted pieces."""
        return sum(keys.nbytes + rows.nbytes for keys, rows in self._pieces)


def hash_bytes64(data: bytes) -> int:
    """Return the first 64 bits of the BLAKE3 of bytes."""
    return int.from_bytes(blake3(data).digest(8), "little")


def hash_halves(digest: bytes) -> tuple[int, int]:
    """Return the first 16 bytes of a hash as two u64; a shorter one counts as zero-padded."""
    padded = digest[:16].ljust(16, b"\x00")
    return int.from_bytes(padded[:8], "little"), int.from_bytes(padded[8:], "little")


def uri_halves(uri: str) -> tuple[int, int]:
    """Return 128 bits of the BLAKE3 of a URI, enough to stand for it."""
    return hash_halves(blake3(uri.encode()).digest(16))
