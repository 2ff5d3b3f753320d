"""Strings by number, without a Python object each: a dictionary in order of first occurrence.

Owns codes, from 1, for strings that may be as many as frames (URIs, titles, values of metadata),
and comparison by code point, which is the order of their UTF-8. Bytes are stored in words of 8, the
first byte highest, so that words compare like their bytes.
"""

import sys
from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from .append_only import AppendOnly
from .columns import I64, U32, U64, AnyColumn, Column, Columns, damaged, require, rows_up_to
from .hash_index import HashIndex, hash_bytes64, hashes64
from .names import check_seqs

_KEPT_MAX: Final = 1 << 16
"""Strings whose codes are cached during a fold, about 10 MB; a full cache is cleared."""

_WORD: Final = 8

Signs: TypeAlias = npt.NDArray[np.int8]


class Strings:
    """Strings and their codes. A single thread adds; any thread may read settled strings.

    - The string with code i + 1 takes the words ``[starts[i], ends[i])`` and ``sizes[i]`` bytes.
    - ``seqs[i]`` is the first event with that string; ascending.
    - ``_cached`` has every string with a code above ``_evicted``, and the new strings.
    """

    def __init__(self) -> None:
        self._words = Column(np.uint64)
        self._hashes = Column(np.uint64)
        self._ends = Column(np.int64)
        self._seqs = Column(np.int64)
        self._sizes = Column(np.uint32)
        self._index = HashIndex()
        self._cached: dict[str, int] = {}
        self._new: list[tuple[str, int]] = []
        self._evicted = 0

    def __len__(self) -> int:
        """Return the number of settled strings."""
        return len(self._sizes)

    # --- adding ----------------------------------------------------------------------------------

    def code(self, text: str, seq: int) -> int:
        """Return the code of a string of event ``seq``; 0.1 us for a cached string.

        For a string that is not cached, returns −1, −2, …; `settle` returns their codes.
        """
        code = self._cached.get(text)
        if code is None:
            self._new.append((text, seq))
            code = self._cached[text] = -len(self._new)
        return code

    def settle(self) -> list[int]:
        """Append the new strings; return the codes of −1, −2, …, in this order."""
        if not self._new:
            return []
        pieces = [text.encode() for text, _ in self._new]
        hashes = hashes64(pieces)
        existing = self._find_all(pieces, hashes) if self._evicted else {}
        added = [place for place in range(len(pieces)) if place not in existing]
        codes = dict(existing)
        codes.update((place, code) for code, place in enumerate(added, start=len(self) + 1))
        self._append(
            LoadedStrings(
                words=_words(b"".join(_padded(pieces[place]) for place in added)),
                sizes=np.array([len(pieces[place]) for place in added], np.uint32),
                seqs=np.array([self._new[place][1] for place in added], np.int64),
                hashes=hashes[added],
            )
        )
        self._cached.update((text, codes[place]) for place, (text, _) in enumerate(self._new))
        self._new.clear()
        if len(self._cached) > _KEPT_MAX:
            self._clear_cache()
        return [codes[place] for place in range(len(pieces))]

    def _find_all(self, pieces: Sequence[bytes], hashes: U64) -> dict[int, int]:
        """Return the codes of the strings that already have a code, by place."""
        places = {piece: place for place, piece in enumerate(pieces)}
        rows = self._index.find_all(self._hashes.view(), hashes)
        matches = ((places.get(self.utf8(row + 1)), row + 1) for row in rows)
        return {place: code for place, code in matches if place is not None}

    def _append(self, added: "LoadedStrings") -> None:
        base = int(self._ends.view()[-1]) if len(self) else 0
        self._words.extend(added.words)
        self._hashes.extend(added.hashes)
        self._seqs.extend(added.seqs)
        self._ends.extend(np.cumsum(_word_counts(added.sizes)) + base)
        # Last, since readers rely on this column.
        self._sizes.extend(added.sizes)

    def _clear_cache(self) -> None:
        self._cached.clear()
        self._evicted = len(self)

    # --- reading ---------------------------------------------------------------------------------

    def find(self, text: str) -> int | None:
        """Return the code of a string, or None; about 3 us."""
        utf8 = text.encode()
        for row in self._index.find(self._hashes.view(), hash_bytes64(utf8)):
            # A string that another thread is adding has no size yet.
            if row < len(self._sizes) and self.utf8(row + 1) == utf8:
                return row + 1
        return None

    def text(self, code: int) -> str:
        """Return the string with a code."""
        return self.utf8(code).decode()

    def utf8(self, code: int) -> bytes:
        """Return the UTF-8 of the string with a code."""
        start = self._ends.item(code - 2) if code > 1 else 0
        words = self._words.view()[start : self._ends.item(code - 1)]
        return _bytes_of(words)[: self._sizes.item(code - 1)]

    def all_utf8(self, first: int, last: int) -> list[bytes]:
        """Return the UTF-8 of the strings with codes ``first`` to ``last``."""
        ends = self._ends.view()[first - 1 : last]
        sizes = self._sizes.view()[first - 1 : last]
        counts = _word_counts(sizes)
        base = int(ends[0] - counts[0])
        data = _bytes_of(self._words.view()[base : int(ends[-1])])
        starts = (ends - counts - base) * _WORD
        return [data[a:b] for a, b in zip(starts.tolist(), (starts + sizes).tolist(), strict=True)]

    def compare(self, codes: I64, bound: bytes) -> Signs:
        """Return −1, 0 or 1 for each code: its string is less than, equal to, or above a bound.

        Cost: a pass over the codes for each word that the strings share with the bound.
        """
        words = self._words.view()
        sizes = self._sizes.view()[codes - 1].astype(np.int64)
        counts = _word_counts(sizes)
        starts = self._ends.view()[codes - 1] - counts
        signs = np.zeros(len(codes), np.int8)
        level = np.arange(len(codes))
        for place, word in enumerate(_words(bound)):
            there = counts[level] > place
            # A string that has ended counts as zeros.
            actual = np.zeros(len(level), np.uint64)
            actual[there] = words[starts[level[there]] + place]
            signs[level[actual < word]] = -1
            signs[level[actual > word]] = 1
            level = level[actual == word]
        # Equal except for zeros at the end; only the size separates these from padding.
        signs[level] = np.sign(sizes[level] - len(bound))
        return signs

    # --- effects ---------------------------------------------------------------------------------

    def effects(self, after: int, through: int) -> dict[str, AnyColumn]:
        """Return the columns of the strings that first occur in ``after + 1`` … ``through``."""
        start, end = self._range(after, through)
        ends = self._ends.view()
        first, last = (int(ends[at - 1]) if at else 0 for at in (start, end))
        return {
            "strings.seq": self._seqs.view()[start:end],
            "strings.size": self._sizes.view()[start:end],
            "strings.words": self._words.view()[first:last],
        }

    def hashes(self, after: int, through: int) -> U64:
        """Return the hashes of these strings; a chunk holds them so that `load` hashes nothing."""
        start, end = self._range(after, through)
        return self._hashes.view()[start:end]

    def _range(self, after: int, through: int) -> tuple[int, int]:
        seqs = self._seqs.view()
        return rows_up_to(seqs, after), rows_up_to(seqs, through)

    def read(self, columns: Columns, after: int, through: int) -> "LoadedStrings":
        """Return the strings of a chunk, checked, without a change of state. Raises `Corrupt`."""
        seqs = columns.i64("strings.seq")
        sizes = columns.u32("strings.size")
        words = columns.u64("strings.words")
        hashes = columns.u64("strings.hashes")
        check_seqs(seqs, after, through, "strings.seq", strict=False)
        require(
            len(seqs) == len(sizes) == len(hashes), "the columns of its strings differ in length"
        )
        counts = _word_counts(sizes)
        ends = np.cumsum(counts)
        require(
            (int(ends[-1]) if len(ends) else 0) == len(words),
            "the sizes of its strings do not fill strings.words",
        )
        ends = ends[counts > 0]
        padding = (counts * _WORD - sizes)[counts > 0].astype(np.uint64)
        unused = words[ends - 1] & ((np.uint64(1) << (padding * np.uint64(8))) - np.uint64(1))
        require(not unused.any(), "a string is not padded with zeros")
        # No string starts with a continuation byte of UTF-8.
        first = words[ends - counts[counts > 0]] >> np.uint64(56)
        require(not ((first & np.uint64(0xC0)) == 0x80).any(), "a string is not UTF-8")
        try:
            _bytes_of(words).decode()
        except UnicodeDecodeError as error:
            raise damaged(f"a string is not UTF-8 ({error.reason})") from error
        return LoadedStrings(words, sizes, seqs, hashes)

    def share(self, strings: "Strings", through: int) -> None:
        """Become the strings of another dictionary up to event ``through``."""
        count = rows_up_to(strings._seqs.view(), through)
        words = strings._ends.item(count - 1) if count else 0
        self._words.share(strings._words, words)
        self._hashes.share(strings._hashes, count)
        self._ends.share(strings._ends, count)
        self._seqs.share(strings._seqs, count)
        self._sizes.share(strings._sizes, count)
        self._index.share(strings._index, count)
        self._clear_cache()

    def load(self, loaded: "LoadedStrings") -> None:
        """Append strings that `read` checked."""
        self._append(loaded)
        self._clear_cache()

    def effect_columns(self) -> list[AppendOnly]:
        """Return the columns that the fold appends to."""
        return [self._words, self._hashes, self._ends, self._seqs, self._sizes]

    @property
    def size_bytes(self) -> int:
        """Memory of the columns and the index, without cached strings."""
        columns = (self._words, self._hashes, self._ends, self._seqs, self._sizes)
        return sum(column.size_bytes for column in columns) + self._index.size_bytes


class LoadedStrings(NamedTuple):
    """Strings to append, and their hashes."""

    words: U64
    sizes: U32
    seqs: I64
    hashes: U64


def _padded(data: bytes) -> bytes:
    """Return bytes padded with zeros to whole words."""
    return data.ljust(-(-len(data) // _WORD) * _WORD, b"\0")


def _words(data: bytes) -> U64:
    """Return bytes as words, the last padded with zeros."""
    return np.frombuffer(_padded(data), ">u8").astype(np.uint64)


def _bytes_of(words: U64) -> bytes:
    """Return the bytes of words, the highest byte of each word first."""
    return (words.byteswap() if sys.byteorder == "little" else words).tobytes()


def _word_counts(sizes: U32 | I64) -> I64:
    return (sizes.astype(np.int64) + (_WORD - 1)) // _WORD
