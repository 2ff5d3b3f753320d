"""Rows by key: the rows of an integer column that hold a value.

Owns lookup over a column that only grows: its rows in buckets, by the upper bits of a
multiplicative hash of the key (D. Knuth, The Art of Computer Programming 3, 6.4), about one key to
a bucket. Buckets are filled when scans have cost as much as a sort, so a process that opens a file
for a single query sorts nothing.
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
"""Scans of the unsorted rows before they are sorted; the scans then cost as much as the sort."""

_BATCH_MIN: Final = 16
"""Fewer keys than this are looked up singly."""

_BUCKET_LONG: Final = 24
"""A bucket with more rows than this is compared by numpy."""

_MIX: Final = 0x9E37_79B9_7F4A_7C15
"""The odd number nearest to 2**64 over the golden ratio (Knuth, as above)."""

_MASK: Final = (1 << 64) - 1

Keys: TypeAlias = U32 | U64


class _Piece(NamedTuple):
    """The rows [first, end), by bucket, ascending within each bucket."""

    first: int
    end: int
    shift: int
    """A key's bucket is its hash, shifted right by this many bits."""
    starts: memoryview
    """The start of each bucket in ``rows``, then the end of the last bucket."""
    rows: memoryview


class HashIndex:
    """Finds the rows of a column that hold a key.

    - Each piece has more than twice as many rows as the next, so the index has O(log n) pieces.
    - Rows from the end of the last piece on are scanned.
    - Any thread may look up, with any prefix of the column that the index belongs to.
    """

    __slots__ = ("_lock", "_pieces", "_scans")

    def __init__(self) -> None:
        self._pieces: tuple[_Piece, ...] = ()
        # Lookups that scanned the rows after the last piece.
        self._scans = 0
        self._lock = threading.RLock()

    def find(self, keys: Keys, key: int) -> list[int]:
        """Return the rows of ``keys`` that equal ``key``, ascending.

        Cost: O(log n) and the rows returned; occasionally a sort of the rows added since.
        """
        size = len(keys)
        pieces = self._pieces
        hashed = key * _MIX & _MASK
        matches: list[int] = []
        for _, end, shift, starts, rows in pieces:
            bucket = hashed >> shift
            start = starts[bucket]
            stop = starts[bucket + 1]
            if start == stop:
                continue
            if stop - start > _BUCKET_LONG:
                members = np.asarray(rows[start:stop])
                members = members[: members.searchsorted(size)] if end > size else members
                matches += members[keys[members] == key].tolist()
                continue
            item = keys.item
            for row in rows[start:stop].tolist():
                if row < size and item(row) == key:
                    matches.append(row)
        covered = pieces[-1].end if pieces else 0
        if covered < size:
            matches += (np.flatnonzero(keys[covered:] == key) + covered).tolist()
            self._scans += 1
            if self._scans > _SCANS_MAX:
                self._cover(keys)
        return matches

    def find_all(self, keys: Keys, values: U64) -> list[int]:
        """Return the rows of ``keys`` that equal any of ``values``; about 0.2 us for each."""
        if len(values) < _BATCH_MIN:
            return [row for key in set(values.tolist()) for row in self.find(keys, key)]
        size = len(keys)
        if size - self._covered > SORT_SIZE_MIN:
            self._cover(keys)
        pieces = self._pieces
        ordered = np.unique(values)
        hashed = _hashed(ordered)
        matches: list[int] = []
        for piece in pieces:
            buckets = (hashed >> np.uint64(piece.shift)).astype(np.int64)
            starts = np.asarray(piece.starts)
            first = starts[buckets].astype(np.int64)
            counts = starts[buckets + 1] - first
            rows = np.asarray(piece.rows)[gather_ranges(first, counts)]
            inside = rows < size
            same = keys[rows[inside]] == np.repeat(ordered, counts)[inside]
            matches += rows[inside][same].tolist()
        covered = pieces[-1].end if pieces else 0
        if covered < size:
            matches += (np.flatnonzero(np.isin(keys[covered:], ordered)) + covered).tolist()
        return matches

    def share(self, index: "HashIndex", count: int) -> None:
        """Take over the pieces, which are immutable, within the first ``count`` rows."""
        self._pieces = tuple(piece for piece in index._pieces if piece.end <= count)

    @property
    def _covered(self) -> int:
        return self._pieces[-1].end if self._pieces else 0

    def _cover(self, keys: Keys) -> None:
        """Sort the rows after the last piece into buckets; about 20 ns a row, O(log n) times."""
        with self._lock:
            first = self._covered
            end = len(keys)
            if first < end:
                pieces = list(self._pieces)
                while pieces and pieces[-1].end - pieces[-1].first <= 2 * (end - first):
                    first = pieces.pop().first
                self._pieces = (*pieces, _piece(keys, first, end))
                self._scans = 0

    @property
    def size_bytes(self) -> int:
        """Memory of the pieces."""
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
    """Return the first 64 bits of the BLAKE3 hash of bytes."""
    return int.from_bytes(blake3(data).digest(8), "little")


def hashes64(pieces: Sequence[bytes]) -> U64:
    """Return `hash_bytes64` of each item."""
    digests = b"".join([blake3(piece).digest(8) for piece in pieces])
    return np.frombuffer(digests, "<u8").astype(np.uint64, copy=False)


def hash_halves(digests: Sequence[bytes | None]) -> tuple[U64, U64]:
    """Return the first 16 bytes of hashes as two u64 each; a shorter hash is zero-padded."""
    sixteen = [(digest or b"")[:16].ljust(16, b"\x00") for digest in digests]
    halves = np.frombuffer(b"".join(sixteen), "<u8").astype(np.uint64, copy=False).reshape(-1, 2)
    return halves[:, 0], halves[:, 1]
