"""Rows by key: which rows of a column of whole numbers hold a value.

Owns lookup over a column that only grows: its rows in buckets, by the upper bits of a
multiplicative hash of the key (D. Knuth, The Art of Computer Programming 3, 6.4), about one key to
a bucket. Filling buckets is put off until lookups have cost as much, so that who opens a file to
ask one question sorts nothing.
"""

import threading
from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from blake3 import blake3

from .columns import I64, U32, U64, ascending_order, gather_ranges

SORT_SIZE_MIN: Final = 4096
"""A tail of up to this many rows is scanned by `HashIndex.find_all`."""

_SCANS_MAX: Final = 32
"""What came since the last sort is scanned so often before it is sorted: that costs as much."""

_BATCH_MIN: Final = 16
"""Fewer keys than this are looked up one by one."""

_BUCKET_LONG: Final = 24
"""Rows of a bucket above this many are compared by numpy."""

_MIX: Final = 0x9E37_79B9_7F4A_7C15
"""The odd number nearest to 2**64 over the golden ratio (Knuth, as above)."""

_MASK: Final = (1 << 64) - 1

Keys: TypeAlias = U32 | U64


class _Piece(NamedTuple):
    """The rows from ``first`` to before ``end``, by bucket, and in a bucket ascending."""

    first: int
    end: int
    shift: int
    """A key's bucket is its hash without this many lower bits."""
    starts: memoryview
    """Where each bucket begins in ``rows``, and where the last one ends."""
    rows: memoryview


class HashIndex:
    """Finds the rows of a column that hold a key.

    - Each piece has more than twice as many rows as the next, so there are O(log n).
    - Rows from the end of the last piece on are scanned.
    - Any thread may look up, with any prefix of the one column that the index is for.
    """

    __slots__ = ("_lock", "_pieces", "_scans")

    def __init__(self) -> None:
        self._pieces: tuple[_Piece, ...] = ()
        # Lookups that passed over what is in no piece.
        self._scans = 0
        self._lock = threading.RLock()

    def find(self, keys: Keys, wanted: int) -> list[int]:
        """Return the rows of ``keys`` that equal ``wanted``, ascending.

        Cost: O(log n) and the rows found; once in a while a sort of what came since.
        """
        size, pieces = len(keys), self._pieces
        hashed = wanted * _MIX & _MASK
        found: list[int] = []
        for _, end, shift, starts, rows in pieces:
            bucket = hashed >> shift
            start, stop = starts[bucket], starts[bucket + 1]
            if start == stop:
                continue
            if stop - start > _BUCKET_LONG:
                some = np.asarray(rows[start:stop])
                some = some[: some.searchsorted(size)] if end > size else some
                found += some[keys[some] == wanted].tolist()
                continue
            key = keys.item
            for row in rows[start:stop].tolist():
                if row < size and key(row) == wanted:
                    found.append(row)
        covered = pieces[-1].end if pieces else 0
        if covered < size:
            found += (np.flatnonzero(keys[covered:] == wanted) + covered).tolist()
            self._scans += 1
            if self._scans > _SCANS_MAX:
                self._cover(keys)
        return found

    def find_all(self, keys: Keys, wanted: U64) -> list[int]:
        """Return the rows of ``keys`` that equal any of ``wanted``; about 0.2 us for each."""
        if len(wanted) < _BATCH_MIN:
            return [row for one in set(wanted.tolist()) for row in self.find(keys, one)]
        size = len(keys)
        if size - self._covered > SORT_SIZE_MIN:
            self._cover(keys)
        pieces, ordered = self._pieces, np.unique(wanted)
        hashed = _hashed(ordered)
        found: list[int] = []
        for piece in pieces:
            buckets = (hashed >> np.uint64(piece.shift)).astype(np.int64)
            starts = np.asarray(piece.starts)
            first = starts[buckets].astype(np.int64)
            counts = starts[buckets + 1] - first
            rows = np.asarray(piece.rows)[gather_ranges(first, counts)]
            inside = rows < size
            same = keys[rows[inside]] == np.repeat(ordered, counts)[inside]
            found += rows[inside][same].tolist()
        covered = pieces[-1].end if pieces else 0
        if covered < size:
            found += (np.flatnonzero(np.isin(keys[covered:], ordered)) + covered).tolist()
        return found

    @property
    def _covered(self) -> int:
        return self._pieces[-1].end if self._pieces else 0

    def _cover(self, keys: Keys) -> None:
        """Put the rows that are in no piece into buckets; about 20 ns a row, O(log n) times."""
        with self._lock:
            first, end = self._covered, len(keys)
            if first < end:
                pieces = list(self._pieces)
                while pieces and pieces[-1].end - pieces[-1].first <= 2 * (end - first):
                    first = pieces.pop().first
                self._pieces = (*pieces, _piece(keys, first, end))
                self._scans = 0

    @property
    def size_bytes(self) -> int:
        """Memory held by the pieces."""
        return sum(piece.starts.nbytes + piece.rows.nbytes for piece in self._pieces)


def _piece(keys: Keys, first: int, end: int) -> _Piece:
    bits = max(1, (end - first).bit_length() - 1)
    shift = 64 - bits
    buckets = (_hashed(keys[first:end].astype(np.uint64)) >> np.uint64(shift)).astype(np.uint32)
    starts = np.zeros((1 << bits) + 1, np.uint32)
    np.cumsum(np.bincount(buckets, minlength=1 << bits), out=starts[1:])
    rows: I64 = ascending_order(buckets) + first
    return _Piece(first, end, shift, starts.data, rows.astype(np.uint32).data)


def _hashed(keys: U64) -> U64:
    return keys * np.uint64(_MIX)


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
