"""Terms and their ids: a dictionary that grows with the log and holds no Python object a term.

An id is the term's place in the order of first occurrence. A term is found by the sorted 64-bit
hashes of `hash_index` and confirmed by its bytes.
"""

from collections.abc import Sequence

import numpy as np

from .columns import I64, U8, U32, U64, AnyColumn, Column, Columns, require
from .hash_index import HashIndex, hash_bytes64


class LexiconView:
    """The first terms of a lexicon; immutable, for any thread."""

    __slots__ = ("_ends", "_hashes", "_index", "_utf8", "count")

    def __init__(self, utf8: U8, ends: I64, hashes: U64, index: HashIndex) -> None:
        self._utf8 = utf8
        self._ends = ends
        self._hashes = hashes
        self._index = index
        self.count = len(ends)

    def find(self, wanted: bytes) -> int | None:
        """Return the id of a term, or None; about 10 us."""
        for candidate in self._index.find(self._hashes, hash_bytes64(wanted)):
            if self._bytes(candidate) == wanted:
                return candidate
        return None

    def text(self, term_id: int) -> str:
        """Return the term with an id."""
        return self._bytes(term_id).decode("utf-8", "replace")

    def _bytes(self, term_id: int) -> bytes:
        start = int(self._ends[term_id - 1]) if term_id else 0
        return self._utf8[start : int(self._ends[term_id])].tobytes()


class Lexicon:
    """Terms by id, appended by one thread.

    - ``first_row`` of the terms never descends: ids follow the first occurrence in the log.
    """

    def __init__(self) -> None:
        self._utf8 = Column(np.uint8)
        self._ends = Column(np.int64)
        self._hashes = Column(np.uint64)
        self._first_row = Column(np.uint32)
        self._index = HashIndex()

    def __len__(self) -> int:
        return len(self._ends)

    def view(self, count: int | None = None) -> LexiconView:
        """Return the first ``count`` terms, by default all."""
        size = len(self) if count is None else count
        ends, hashes = self._ends.view()[:size], self._hashes.view()[:size]
        return LexiconView(self._utf8.view(), ends, hashes, self._index)

    def extend(self, terms: Sequence[bytes], first_rows: U32) -> None:
        """Append new terms and the rows in which they first occur."""
        if not terms:
            return
        sizes = np.array([len(term) for term in terms], np.int64)
        hashes = np.array([hash_bytes64(term) for term in terms], np.uint64)
        self._append(np.frombuffer(b"".join(terms), np.uint8), sizes, hashes, first_rows)

    def _append(self, utf8: U8, sizes: I64, hashes: U64, first_rows: U32) -> None:
        base = len(self._utf8)
        self._utf8.extend(utf8)
        self._ends.extend(np.cumsum(sizes) + base)
        self._hashes.extend(hashes)
        self._first_row.extend(first_rows)

    def ids_within(self, first_row: int, end_row: int) -> tuple[int, int]:
        """Return the range of ids that first occur in rows [first_row, end_row)."""
        rows = self._first_row.view()
        return int(np.searchsorted(rows, first_row)), int(np.searchsorted(rows, end_row))

    def effects(self, first_row: int, end_row: int) -> dict[str, AnyColumn]:
        """Return the columns of the terms that first occur in a range of rows."""
        start, end = self.ids_within(first_row, end_row)
        ends = self._ends.view()
        first_byte = int(ends[start - 1]) if start else 0
        last_byte = int(ends[end - 1]) if end else 0
        sizes = np.diff(ends[start:end], prepend=first_byte)
        return {
            "terms.sizes": sizes.astype(np.uint32),
            "terms.utf8": self._utf8.view()[first_byte:last_byte],
        }

    def hashes(self, first_row: int, end_row: int) -> U64:
        """Return the hashes of the terms that first occur in a range of rows."""
        start, end = self.ids_within(first_row, end_row)
        return self._hashes.view()[start:end]

    def check(self, columns: Columns) -> int:
        """Return how many terms a chunk brings. Raises `Corrupt`."""
        sizes, utf8 = columns.u32("terms.sizes"), columns.u8("terms.utf8")
        ends = np.cumsum(sizes, dtype=np.int64)
        require((int(ends[-1]) if len(ends) else 0) == len(utf8), "its terms have other sizes")
        require(not len(sizes) or int(sizes.min()) > 0, "it has an empty term")
        # The first byte of a term is never one that continues a character.
        starts = ends - sizes
        require(not bool(((utf8[starts] & 0xC0) == 0x80).any()), "a term is not UTF-8")
        try:
            utf8.tobytes().decode()
        except UnicodeDecodeError:
            require(holds=False, what="a term is not UTF-8")
        require(len(columns.u64("terms.hashes")) == len(sizes), "its terms and hashes differ")
        return len(sizes)

    def load(self, columns: Columns, first_rows: U32) -> None:
        """Append the terms of a chunk that `check` accepted."""
        sizes = columns.u32("terms.sizes").astype(np.int64)
        self._append(columns.u8("terms.utf8"), sizes, columns.u64("terms.hashes"), first_rows)

    @property
    def size_bytes(self) -> int:
        """Memory held by the columns and the index."""
        columns = (self._utf8, self._ends, self._hashes, self._first_row)
        return sum(column.size_bytes for column in columns) + self._index.size_bytes
