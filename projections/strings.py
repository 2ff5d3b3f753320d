"""Strings by number, without a Python object each: a dictionary in order of first occurrence.

Owns codes, from 1, for strings of which there may be as many as frames (URIs, titles, what
metadata holds), and their order: code points, which is the order of their UTF-8. Bytes stand in
whole words of 8, the first byte highest, so that a word compares as its bytes do.
"""

import sys
from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from .columns import I64, U32, U64, AnyColumn, Column, Columns, damaged, require, rows_up_to
from .hash_index import HashIndex, hash_bytes64, hashes64
from .names import check_seqs
from .seal import Kept

_KEPT_MAX: Final = 1 << 16
"""Strings whose code is remembered while folding: about 10 MB. Beyond, the memory starts anew."""

_WORD: Final = 8

Signs: TypeAlias = npt.NDArray[np.int8]


class Strings:
    """Strings and their codes. One thread adds; any thread may read what was there.

    - The string with code i + 1 takes the words ``[starts[i], ends[i])`` and ``sizes[i]`` bytes.
    - ``seqs[i]`` is the event that brought it; ascending.
    - ``_kept`` has every string with a code above ``_forgotten``, and the new ones.
    """

    def __init__(self) -> None:
        self._words, self._hashes = Column(np.uint64), Column(np.uint64)
        self._ends, self._seqs = Column(np.int64), Column(np.int64)
        self._sizes = Column(np.uint32)
        self._index = HashIndex()
        self._kept: dict[str, int] = {}
        self._new: list[tuple[str, int]] = []
        self._forgotten = 0

    def __len__(self) -> int:
        """Return how many strings were settled."""
        return len(self._sizes)

    # --- adding ----------------------------------------------------------------------------------

    def code(self, text: str, seq: int) -> int:
        """Return the code of a string that event ``seq`` has; 0.1 us for one seen lately.

        Of another it returns −1, −2, …: `settle` says which codes these became.
        """
        code = self._kept.get(text)
        if code is None:
            self._new.append((text, seq))
            code = self._kept[text] = -len(self._new)
        return code

    def settle(self) -> list[int]:
        """Append the strings that are new; return the codes of −1, −2, …, in this order."""
        if not self._new:
            return []
        pieces = [text.encode() for text, _ in self._new]
        hashes = hashes64(pieces)
        known = self._find_all(pieces, hashes) if self._forgotten else {}
        added = [place for place in range(len(pieces)) if place not in known]
        codes = dict(known)
        codes.update((place, code) for code, place in enumerate(added, start=len(self) + 1))
        self._append(
            LoadedStrings(
                words=_words(b"".join(_padded(pieces[place]) for place in added)),
                sizes=np.array([len(pieces[place]) for place in added], np.uint32),
                seqs=np.array([self._new[place][1] for place in added], np.int64),
                hashes=hashes[added],
            )
        )
        self._kept.update((text, codes[place]) for place, (text, _) in enumerate(self._new))
        self._new.clear()
        if len(self._kept) > _KEPT_MAX:
            self._forget()
        return [codes[place] for place in range(len(pieces))]

    def _find_all(self, pieces: Sequence[bytes], hashes: U64) -> dict[int, int]:
        """Return the codes of those of the strings that are there, by place."""
        places = {piece: place for place, piece in enumerate(pieces)}
        rows = self._index.find_all(self._hashes.view(), hashes)
        found = ((places.get(self.utf8(row + 1)), row + 1) for row in rows)
        return {place: code for place, code in found if place is not None}

    def _append(self, added: "LoadedStrings") -> None:
        base = int(self._ends.view()[-1]) if len(self) else 0
        self._words.extend(added.words)
        self._hashes.extend(added.hashes)
        self._seqs.extend(added.seqs)
        self._ends.extend(np.cumsum(_word_counts(added.sizes)) + base)
        # Last: readers go by it.
        self._sizes.extend(added.sizes)

    def _forget(self) -> None:
        self._kept.clear()
        self._forgotten = len(self)

    # --- reading ---------------------------------------------------------------------------------

    def find(self, text: str) -> int | None:
        """Return the code of a string, or None; about 3 us."""
        wanted = text.encode()
        for row in self._index.find(self._hashes.view(), hash_bytes64(wanted)):
            # Those that another thread is adding have their sizes last.
            if row < len(self._sizes) and self.utf8(row + 1) == wanted:
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
        ends, sizes = self._ends.view()[first - 1 : last], self._sizes.view()[first - 1 : last]
        counts = _word_counts(sizes)
        base = int(ends[0] - counts[0])
        data = _bytes_of(self._words.view()[base : int(ends[-1])])
        starts = (ends - counts - base) * _WORD
        return [data[a:b] for a, b in zip(starts.tolist(), (starts + sizes).tolist(), strict=True)]

    def compare(self, codes: I64, bound: bytes) -> Signs:
        """Return −1, 0 or 1 for each code: its string comes before, is, or comes after a bound.

        Cost: a pass over the codes for each word that the strings share with the bound.
        """
        words, sizes = self._words.view(), self._sizes.view()[codes - 1].astype(np.int64)
        counts = _word_counts(sizes)
        starts = self._ends.view()[codes - 1] - counts
        signs = np.zeros(len(codes), np.int8)
        level = np.arange(len(codes))
        for place, word in enumerate(_words(bound)):
            there = counts[level] > place
            # A string that has ended counts as zeros.
            found = np.zeros(len(level), np.uint64)
            found[there] = words[starts[level[there]] + place]
            signs[level[found < word]] = -1
            signs[level[found > word]] = 1
            level = level[found == word]
        # Equal but for zeros at the end, which only the size tells from what pads a word.
        signs[level] = np.sign(sizes[level] - len(bound))
        return signs

    # --- effects ---------------------------------------------------------------------------------

    def effects(self, after: int, through: int) -> dict[str, AnyColumn]:
        """Return the columns of the strings that events ``after + 1`` … ``through`` brought."""
        start, end = self._range(after, through)
        ends = self._ends.view()
        first, last = (int(ends[at - 1]) if at else 0 for at in (start, end))
        return {
            "strings.seq": self._seqs.view()[start:end],
            "strings.size": self._sizes.view()[start:end],
            "strings.words": self._words.view()[first:last],
        }

    def hashes(self, after: int, through: int) -> U64:
        """Return the hashes of those strings, which a chunk holds so that loading hashes none."""
        start, end = self._range(after, through)
        return self._hashes.view()[start:end]

    def _range(self, after: int, through: int) -> tuple[int, int]:
        seqs = self._seqs.view()
        return rows_up_to(seqs, after), rows_up_to(seqs, through)

    def read(self, columns: Columns, after: int, through: int) -> "LoadedStrings":
        """Check the strings of a chunk without changing anything. Raises `Corrupt`."""
        seqs, sizes = columns.i64("strings.seq"), columns.u32("strings.size")
        words, hashes = columns.u64("strings.words"), columns.u64("strings.hashes")
        check_seqs(seqs, after, through, "strings.seq", strict=False)
        require(len(seqs) == len(sizes) == len(hashes), "its strings differ in length")
        counts = _word_counts(sizes)
        ends = np.cumsum(counts)
        require((int(ends[-1]) if len(ends) else 0) == len(words), "its strings have other sizes")
        ends, padding = ends[counts > 0], (counts * _WORD - sizes)[counts > 0].astype(np.uint64)
        unused = words[ends - 1] & ((np.uint64(1) << (padding * np.uint64(8))) - np.uint64(1))
        require(not unused.any(), "a string is not padded with zeros")
        # The first byte of a string is never one that continues a character.
        first = words[ends - counts[counts > 0]] >> np.uint64(56)
        require(not ((first & np.uint64(0xC0)) == 0x80).any(), "a string is not UTF-8")
        try:
            _bytes_of(words).decode()
        except UnicodeDecodeError as error:
            raise damaged(f"a string is not UTF-8 ({error.reason})") from error
        return LoadedStrings(words, sizes, seqs, hashes)

    def load(self, loaded: "LoadedStrings") -> None:
        """Append strings that `read` checked."""
        self._append(loaded)
        self._forget()

    def kept(self) -> list[Kept]:
        """Return the things that the fold appends to."""
        return [self._words, self._hashes, self._ends, self._seqs, self._sizes]

    @property
    def size_bytes(self) -> int:
        """Memory held by the columns and the index, remembered strings left out."""
        columns = (self._words, self._hashes, self._ends, self._seqs, self._sizes)
        return sum(column.size_bytes for column in columns) + self._index.size_bytes


class LoadedStrings(NamedTuple):
    """Strings about to be appended, and their hashes."""

    words: U64
    sizes: U32
    seqs: I64
    hashes: U64


def _padded(data: bytes) -> bytes:
    """Return bytes padded with zeros to whole words."""
    return data.ljust(-(-len(data) // _WORD) * _WORD, b"\0")


def _words(data: bytes) -> U64:
    """Return bytes as words, the last one padded with zeros."""
    return np.frombuffer(_padded(data), ">u8").astype(np.uint64)


def _bytes_of(words: U64) -> bytes:
    """Return the bytes of words, the highest of each first."""
    return (words.byteswap() if sys.byteorder == "little" else words).tobytes()


def _word_counts(sizes: U32 | I64) -> I64:
    return (sizes.astype(np.int64) + (_WORD - 1)) // _WORD
