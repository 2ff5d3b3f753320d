"""Words and their ids: a dictionary that grows with the log, without a Python object per word.

An id is the word's place in the order of first occurrence. A look-up finds the word by its 64-bit
hash (`hash_index`) and compares the bytes.
"""

from collections.abc import Sequence

import numpy as np

from ..columnar.append_only import AppendOnly
from ..columnar.columns import I64, U8, U32, U64, AnyColumn, Column, Columns, require
from ..columnar.hash_index import HashIndex, hash_bytes64, hashes64


class LexiconView:
    """The first words of a lexicon; immutable, for any thread."""

    __slots__ = ("_ends", "_hashes", "_index", "_utf8", "count")

    def __init__(self, utf8: U8, ends: I64, hashes: U64, index: HashIndex) -> None:
        self._utf8 = utf8
        self._ends = ends
        self._hashes = hashes
        self._index = index
        self.count = len(ends)

    def find(self, word: bytes, count: int | None = None) -> int | None:
        """Return the id of a word, or None if not among the first ``count`` words; about 10 us."""
        for candidate in self._index.find(self._hashes[:count], hash_bytes64(word)):
            if self._bytes(candidate) == word:
                return candidate
        return None

    def starting_with(self, prefix: bytes) -> I64:
        """Return the ids of the words with a prefix, ascending; about 0.2 ms per 100,000 words."""
        starts = np.concatenate([np.zeros(1, np.int64), self._ends[:-1]])[: self.count]
        ids = np.flatnonzero(self._ends - starts >= len(prefix))
        for place, byte in enumerate(prefix):
            ids = ids[self._utf8[starts[ids] + place] == byte]
        return ids

    def text(self, word_id: int) -> str:
        """Return the word with an id."""
        return self._bytes(word_id).decode("utf-8", "replace")

    def _bytes(self, word_id: int) -> bytes:
        start = int(self._ends[word_id - 1]) if word_id else 0
        return self._utf8[start : int(self._ends[word_id])].tobytes()


class Lexicon:
    """Words by id, appended by a single thread. ``name`` prefixes its columns in a chunk.

    - ``first_row`` of the words never descends: ids follow the first occurrence in the log.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._utf8 = Column(np.uint8)
        self._ends = Column(np.int64)
        self._hashes = Column(np.uint64)
        self._first_row = Column(np.uint32)
        self._index = HashIndex()

    def __len__(self) -> int:
        return len(self._ends)

    def view(self, count: int | None = None) -> LexiconView:
        """Return the first ``count`` words, by default all."""
        size = len(self) if count is None else count
        ends = self._ends.view()[:size]
        hashes = self._hashes.view()[:size]
        return LexiconView(self._utf8.view(), ends, hashes, self._index)

    def extend(self, words: Sequence[bytes], first_rows: U32) -> None:
        """Append new words and the rows in which they first occur."""
        if not words:
            return
        sizes = np.array([len(word) for word in words], np.int64)
        hashes = hashes64(words)
        self._append(np.frombuffer(b"".join(words), np.uint8), sizes, hashes, first_rows)

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
        """Return the columns of the words that first occur in a range of rows."""
        start, end = self.ids_within(first_row, end_row)
        ends = self._ends.view()
        first_byte = int(ends[start - 1]) if start else 0
        last_byte = int(ends[end - 1]) if end else 0
        sizes = np.diff(ends[start:end], prepend=first_byte)
        return {
            f"{self._name}.sizes": sizes.astype(np.uint32),
            f"{self._name}.utf8": self._utf8.view()[first_byte:last_byte],
        }

    def first_row(self) -> U32:
        """Return the row in which each word first occurs."""
        return self._first_row.view()

    def hashes(self, first_row: int, end_row: int) -> dict[str, AnyColumn]:
        """Return the hashes of the words that first occur in a range of rows."""
        start, end = self.ids_within(first_row, end_row)
        return {f"{self._name}.hashes": self._hashes.view()[start:end]}

    def check(self, columns: Columns) -> int:
        """Return the number of words in a chunk. Raises `Corrupt`."""
        name = self._name
        sizes, utf8 = columns.u32(f"{name}.sizes"), columns.u8(f"{name}.utf8")
        ends = np.cumsum(sizes, dtype=np.int64)
        require(
            (int(ends[-1]) if len(ends) else 0) == len(utf8),
            f"the sizes of its {name} do not fill utf8",
        )
        require(not len(sizes) or int(sizes.min()) > 0, f"one of its {name} is empty")
        # No word starts with a continuation byte of UTF-8.
        starts = ends - sizes
        is_cut = bool(((utf8[starts] & 0xC0) == 0x80).any())
        require(not is_cut, f"one of its {name} is not UTF-8")
        try:
            utf8.tobytes().decode()
        except UnicodeDecodeError:
            require(holds=False, what=f"one of its {name} is not UTF-8")
        hashes = columns.u64(f"{name}.hashes")
        require(len(hashes) == len(sizes), f"its {name} and their hashes differ in count")
        return len(sizes)

    def load(self, columns: Columns, first_rows: U32) -> None:
        """Append the words of a chunk that `check` accepted."""
        sizes = columns.u32(f"{self._name}.sizes").astype(np.int64)
        utf8, hashes = columns.u8(f"{self._name}.utf8"), columns.u64(f"{self._name}.hashes")
        self._append(utf8, sizes, hashes, first_rows)

    def share(self, lexicon: "Lexicon", rows: int) -> None:
        """Become the words of another lexicon that occur in its first ``rows`` rows."""
        _, count = lexicon.ids_within(0, rows)
        self._utf8.share(lexicon._utf8, lexicon._ends.item(count - 1) if count else 0)
        self._ends.share(lexicon._ends, count)
        self._hashes.share(lexicon._hashes, count)
        self._first_row.share(lexicon._first_row, count)
        self._index.share(lexicon._index, count)

    def effect_columns(self) -> list[AppendOnly]:
        """Return the columns that the fold appends to."""
        return [self._utf8, self._ends, self._hashes, self._first_row]

    @property
    def size_bytes(self) -> int:
        """Memory of the columns and the index."""
        columns = (self._utf8, self._ends, self._hashes, self._first_row)
        return sum(column.size_bytes for column in columns) + self._index.size_bytes
