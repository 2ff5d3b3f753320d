"""Rows by key: the rows of an integer column that hold a value.

Owns lookup over a column that only grows: its rows in buckets, by the upper bits of a
multiplicative hash of the key (D. Knuth, The Art of Computer Programming 3, 6.4), about one key to
a bucket. Buckets are filled when scans have cost as much as a sort, so a process that opens a file
for a single query sorts nothing.
"""

import threading
from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeAlias

from blake3 import blake3

from cerata.engine.late import late

from .columns import I64, U32, U64, ascending_order, distinct, gather_ranges

if TYPE_CHECKING:
    import numpy as np
else:
    np = late("numpy")

SORT_SIZE_MIN: Final = 4096
"""A tail of up to this many rows is scanned by `HashIndex.find_all`."""

_SCANS_MAX: Final = 32
"""Scans of the unsorted rows before they are sorted; the scans then cost as much as the sort."""

_BATCH_MIN: Final = 16
"""Fewer keys than this are looked up singly."""

_BUCKET_LONG: Final = 24
"""A bucket with more rows than this is compared by numpy."""

_ROWS_FEW: Final = 16
"""Up to this many rows of a key are returned as a list, which takes less time to filter."""

_MIX: Final = 0x9E37_79B9_7F4A_7C15
"""The odd number nearest to 2**64 over the golden ratio (Knuth, as above)."""

_MASK: Final = (1 << 64) - 1

_SECOND_MIX: Final = 0xD6E8_FEB8_6659_FD93
"""An odd number, by which pairs with the same sum get different keys."""


Rows: TypeAlias = list[int] | I64
"""Ascending rows: a list of few, an array of many."""


class Keys(Protocol):
    """A column of integers, as an index reads it: an array, or `PairKeys`."""

    def __len__(self) -> int: ...

    def item(self, row: int, /) -> int:
        """Return the key of a row."""
        ...

    def __getitem__(self, rows: slice | U32 | I64, /) -> U32 | U64:
        """Return the keys of rows."""
        ...


class PairKeys:
    """A column of keys of two columns, computed when read.

    Two pairs with one key differ in both numbers, so a caller compares the second.
    """

    __slots__ = ("_firsts", "_seconds")

    def __init__(self, firsts: U32 | U64, seconds: U32) -> None:
        self._firsts = firsts
        self._seconds = seconds

    def __len__(self) -> int:
        return len(self._firsts)

    def item(self, row: int, /) -> int:
        return pair_key(self._firsts.item(row), self._seconds.item(row))

    def __getitem__(self, rows: slice | U32 | I64, /) -> U64:
        keys = self._firsts[rows].astype(np.uint64) * np.uint64(_MIX)
        keys += self._seconds[rows].astype(np.uint64) * np.uint64(_SECOND_MIX)
        return keys


def pair_key(first: int, second: int) -> int:
    """Return the key of two numbers in `PairKeys`."""
    return (first * _MIX + second * _SECOND_MIX) & _MASK


class _Piece(NamedTuple):
    """The rows [first, end), by bucket, ascending within each bucket."""

    first: int
    end: int
    shift: int
    """A key's bucket is its hash, shifted right by this many bits."""
    starts: memoryview
    """The start of each bucket in ``rows``, then the end of the last bucket."""
    rows: U32
    few: memoryview
    """The same rows, of which a few take less time to read."""


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
        rows = self.rows(keys, key)
        return rows if isinstance(rows, list) else rows.tolist()

    def rows(self, keys: Keys, key: int) -> Rows:
        """Return the rows of `find`, as an array if they are many."""
        # Once, since another thread may sort more rows in between.
        pieces = self._pieces
        rows: list[int] | None = []
        end = 0
        if pieces:
            rows = _few(pieces, keys, key, key * _MIX & _MASK)
            end = pieces[-1].end
        if rows is None:
            return self._rows_of_long(pieces, keys, key)
        if end < len(keys):
            # As `_scanned`, without a call: nearly every look-up reads the newest rows.
            scanned: list[int] = np.flatnonzero(keys[end:] == key).tolist()
            self._scans += 1
            if self._scans > _SCANS_MAX:
                self._cover(keys)
            for row in scanned:
                rows.append(row + end)
        return rows

    def _rows_of_long(self, pieces: tuple[_Piece, ...], keys: Keys, key: int) -> Rows:
        size = len(keys)
        hashed = key * _MIX & _MASK
        parts: list[I64] = []
        for _, end, shift, starts, rows, _ in pieces:
            bucket = hashed >> shift
            members = rows[starts[bucket] : starts[bucket + 1]].astype(np.int64)
            if end > size:
                members = members[: members.searchsorted(size)]
            parts.append(members[keys[members] == key])
        if _end(pieces) < size:
            parts.append(self._scanned(_end(pieces), keys, key))
        matches: I64 = parts[0] if len(parts) == 1 else np.concatenate(parts)
        return matches.tolist() if len(matches) <= _ROWS_FEW else matches

    def _scanned(self, start: int, keys: Keys, key: int) -> I64:
        """Return the rows with a key from ``start`` on; sorts those rows after many scans."""
        matches: I64 = np.flatnonzero(keys[start:] == key) + start
        self._scans += 1
        if self._scans > _SCANS_MAX:
            self._cover(keys)
        return matches

    def find_all(self, keys: U32 | U64, values: U64) -> list[int]:
        """Return the rows of ``keys`` that equal any of ``values``; about 0.2 us for each."""
        if len(values) < _BATCH_MIN:
            return [row for key in set(values.tolist()) for row in self.find(keys, key)]
        size = len(keys)
        if size - _end(self._pieces) > SORT_SIZE_MIN:
            self._cover(keys)
        pieces = self._pieces
        ordered = distinct(values)
        hashed = _hashed(ordered)
        matches: list[int] = []
        for piece in pieces:
            buckets = (hashed >> np.uint64(piece.shift)).astype(np.int64)
            starts = np.asarray(piece.starts)
            first = starts[buckets].astype(np.int64)
            counts = starts[buckets + 1] - first
            rows = piece.rows[gather_ranges(first, counts)]
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

    def _cover(self, keys: Keys) -> None:
        """Sort the rows after the last piece into buckets; about 20 ns a row, O(log n) times."""
        with self._lock:
            first = _end(self._pieces)
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


def _few(
    pieces: tuple[_Piece, ...],
    keys: Keys,
    key: int,
    hashed: int,
    seconds: U32 | None = None,
    value: int = 0,
) -> list[int] | None:
    """Return the sorted rows of a key, and a value of a second column; None if many.

    ``hashed`` chooses the buckets; they are many if a bucket is long.
    """
    size = len(keys)
    item = keys.item
    matches: list[int] = []
    for _, _, shift, starts, _, rows in pieces:
        bucket = hashed >> shift
        start = starts[bucket]
        stop = starts[bucket + 1]
        if stop - start > _BUCKET_LONG:
            return None
        # A loop, since Python 3.11 calls a function for a comprehension.
        for row in rows[start:stop].tolist():
            is_key = row < size and item(row) == key
            if is_key and (seconds is None or seconds.item(row) == value):
                matches.append(row)
    return matches


def _end(pieces: tuple[_Piece, ...]) -> int:
    """Return the end of the rows in buckets."""
    return pieces[-1].end if pieces else 0


class PairIndex(HashIndex):
    """Finds the rows of a column that hold a key, also those with a number of a second column.

    - ``_pairs`` has both columns; it is filled for keys of many rows only.
    """

    __slots__ = ("_pairs",)

    def __init__(self) -> None:
        super().__init__()
        self._pairs = HashIndex()

    def rows_with(
        self, keys: U32 | U64, key: int, seconds: U32, values: Sequence[int] | None
    ) -> Rows:
        """Return rows of a key, among which are all with a value in the second column.

        Args:
            keys: The column.
            key: The key.
            seconds: The second column.
            values: The values, or None for all rows.
        """
        pieces = self._pieces
        if pieces and values is not None:
            rows = _few(pieces, keys, key, key * _MIX & _MASK)
            if rows is None:
                return merged([self._rows_of_pair(keys, key, seconds, value) for value in values])
            if pieces[-1].end >= len(keys):
                return rows
        return self.rows(keys, key)

    def _rows_of_pair(self, keys: U32 | U64, key: int, seconds: U32, value: int) -> Rows:
        index = self._pairs
        pieces = index._pieces
        pair = pair_key(key, value)
        rows = _few(pieces, keys, key, pair * _MIX & _MASK, seconds, value)
        if rows is None or _end(pieces) < len(keys):
            near = index.find(PairKeys(keys, seconds), pair)
            return [row for row in near if seconds.item(row) == value]
        return rows

    def share(self, index: HashIndex, count: int) -> None:
        super().share(index, count)
        if isinstance(index, PairIndex):
            self._pairs.share(index._pairs, count)

    @property
    def size_bytes(self) -> int:
        return super().size_bytes + self._pairs.size_bytes


def merged(parts: Sequence[Rows]) -> Rows:
    """Return the rows of ascending sequences, none in two, in one ascending sequence."""
    if len(parts) == 1:
        return parts[0]
    if all(isinstance(part, list) for part in parts):
        return sorted(chain.from_iterable(parts))
    return np.sort(np.concatenate([np.asarray(part, np.int64) for part in parts]))


def _piece(keys: Keys, first: int, end: int) -> _Piece:
    bits = max(1, (end - first).bit_length() - 1)
    shift = 64 - bits
    buckets = (_hashed(keys[first:end].astype(np.uint64)) >> np.uint64(shift)).astype(np.uint32)
    starts = np.zeros((1 << bits) + 1, np.uint32)
    np.cumsum(np.bincount(buckets, minlength=1 << bits), out=starts[1:])
    rows: I64 = ascending_order(buckets) + first
    narrow = rows.astype(np.uint32)
    return _Piece(first, end, shift, starts.data, narrow, narrow.data)


def _hashed(keys: U64) -> U64:
    return keys * np.uint64(_MIX)


def hash_bytes64(data: bytes) -> int:
    """Return the first 64 bits of the BLAKE3 hash of bytes."""
    return int.from_bytes(blake3(data).digest(8), "little")


def hashes64(pieces: Sequence[bytes | memoryview]) -> U64:
    """Return `hash_bytes64` of each item."""
    digests = b"".join([blake3(piece).digest(8) for piece in pieces])
    return np.frombuffer(digests, "<u8").astype(np.uint64, copy=False)


def hash_halves(digests: Sequence[bytes | None]) -> tuple[U64, U64]:
    """Return the first 16 bytes of hashes as two u64 each; a shorter hash is zero-padded."""
    sixteen = [(digest or b"")[:16].ljust(16, b"\x00") for digest in digests]
    return halves_of(b"".join(sixteen))


def halves_of(sixteen: bytes) -> tuple[U64, U64]:
    """Return the two u64 of each 16 bytes."""
    halves = np.frombuffer(sixteen, "<u8").astype(np.uint64, copy=False).reshape(-1, 2)
    return halves[:, 0], halves[:, 1]
