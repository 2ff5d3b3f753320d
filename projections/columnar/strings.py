"""Strings by number: a dictionary of as many strings as frames, and their order.

Owns codes, from 1, for strings such as URIs, titles and values of metadata, and comparison by code
point, which is the order of their UTF-8. The bytes of a string are padded to words of 8, which
compare like their bytes.
"""

from collections.abc import Collection, Sequence
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from .columns import I64, U64, AnyColumn, AppendOnly, Columns, require
from .hash_index import hashes64
from .names import check_seqs
from .string_table import StringRows, StringTable

_KEPT_MAX: Final = 1 << 16
"""Strings whose codes are cached during a fold, about 10 MB; a full cache is cleared."""

_WORD: Final = 8

_TEXTS_MAX: Final = 1 << 14
_TEXT_LENGTH_MAX: Final = 200
"""Texts of up to 200 characters are cached for readers, about 3 MB; a full cache is cleared."""

Signs: TypeAlias = npt.NDArray[np.int8]


class Strings:
    """Strings and their codes. A single thread adds; any thread may read settled strings.

    - The string with code i + 1 is at place i of the table, with the first event that has it.
    - ``_cached`` has every string with a code above ``_evicted``, and the new strings.
    - ``_texts`` has strings that were read; a code never changes its string.
    """

    def __init__(self) -> None:
        self._table = StringTable(_WORD)
        self._cached: dict[str, int] = {}
        self._new: list[tuple[str, int]] = []
        self._evicted = 0
        self._texts: dict[int, str] = {}

    def __len__(self) -> int:
        """Return the number of settled strings."""
        return self._table.sizes.size

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

    def settled_codes(self, texts: Sequence[str]) -> U64 | None:
        """Return the codes of strings, or None if one has no settled code in the cache."""
        codes = [*map(self._cached.get, texts)]
        if self._new or None in codes:
            return None
        return np.array(codes, np.uint64)

    def codes(self, texts: Sequence[str], seqs: Sequence[int]) -> U64:
        """Return the codes of strings of events in order of seq, and settle the new strings."""
        codes = [self.code(text, seq) for text, seq in zip(texts, seqs, strict=True)]
        settled = self.settle()
        return np.array([code if code > 0 else settled[-code - 1] for code in codes], np.uint64)

    def settle(self) -> list[int]:
        """Append the new strings; return the codes of −1, −2, …, in this order."""
        if not self._new:
            return []
        pieces = [text.encode() for text, _ in self._new]
        rows = self._table.rows_of(pieces, [seq for _, seq in self._new])
        existing = self._table.find_all(pieces, rows.hashes) if self._evicted else {}
        if existing:
            added = [index for index in range(len(pieces)) if index not in existing]
            rows = self._table.rows_of([pieces[index] for index in added], rows.firsts[added])
        following = iter(range(len(self) + 1, len(self) + 1 + len(rows.sizes)))
        codes = [
            existing[index] + 1 if index in existing else next(following)
            for index in range(len(pieces))
        ]
        self._table.extend(rows)
        self._cached.update((text, code) for (text, _), code in zip(self._new, codes, strict=True))
        self._new.clear()
        if len(self._cached) > _KEPT_MAX:
            self._clear_cache()
        return codes

    def _clear_cache(self) -> None:
        self._cached.clear()
        self._evicted = len(self)

    # --- reading ---------------------------------------------------------------------------------

    def find(self, text: str) -> int | None:
        """Return the code of a string, or None; about 3 us."""
        place = self._table.find(text.encode())
        return None if place is None else place + 1

    def known(self, texts: Collection[str]) -> set[str]:
        """Return those of many strings that have a code; about 1 us for each."""
        items = list(texts)
        pieces = [text.encode() for text in items]
        return {items[index] for index in self._table.find_all(pieces, hashes64(pieces))}

    def text(self, code: int) -> str:
        """Return the string with a code."""
        text = self._texts.get(code)
        if text is None:
            text = self.utf8(code).decode()
            if len(text) <= _TEXT_LENGTH_MAX:
                if len(self._texts) >= _TEXTS_MAX:
                    self._texts.clear()
                self._texts[code] = text
        return text

    def utf8(self, code: int) -> bytes:
        """Return the UTF-8 of the string with a code."""
        return self._table.utf8(code - 1)

    def all_utf8(self, first: int, last: int) -> list[bytes]:
        """Return the UTF-8 of the strings with codes ``first`` to ``last``."""
        return self._table.all_utf8(first - 1, last)

    def compare(self, codes: I64, bound: bytes) -> Signs:
        """Return −1, 0 or 1 for each code: its string is less than, equal to, or above a bound.

        Cost: a pass over the codes for each word that the strings share with the bound.
        """
        words = self._table.words()
        sizes = self._table.sizes.view()[codes - 1].astype(np.int64)
        starts = self._table.starts(codes - 1) // _WORD
        signs = np.zeros(len(codes), np.int8)
        level = np.arange(len(codes))
        for place in range(-(-len(bound) // _WORD)):
            offset = place * _WORD
            word = int.from_bytes(bound[offset : offset + _WORD].ljust(_WORD, b"\0"))
            there = sizes[level] > offset
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
        rows = self._table.rows(after + 1, through + 1)
        return {
            "strings.seq": rows.firsts,
            "strings.size": rows.sizes,
            "strings.words": rows.utf8.view(">u8").astype(np.uint64),
        }

    def places(self, after: int, through: int) -> tuple[int, int]:
        """Return the range of places of the strings that first occur in these events."""
        return self._table.within(after + 1, through + 1)

    def hashes(self, after: int, through: int) -> dict[str, AnyColumn]:
        """Return the hashes of these strings; a chunk holds them so that `load` hashes nothing."""
        return {"strings.hashes": self._table.rows(after + 1, through + 1).hashes}

    def read(self, columns: Columns, after: int, through: int) -> StringRows:
        """Return the strings of a chunk, checked, without a change of state. Raises `Corrupt`."""
        words: U64 = columns.u64("strings.words")
        rows = StringRows(
            columns.i64("strings.seq"),
            columns.u32("strings.size"),
            words.astype(">u8").view(np.uint8),
            columns.u64("strings.hashes"),
        )
        check_seqs(rows.firsts, after, through, "strings.seq", strict=False)
        require(len(rows.firsts) == len(rows.sizes), "its strings and their seqs differ in count")
        self._table.check(rows, "strings")
        # The last word of a string ends in zeros, as many bytes as the string lacks.
        sizes = rows.sizes[rows.sizes > 0].astype(np.int64)
        ends = np.cumsum(-(-sizes // _WORD))
        unused = (-sizes % _WORD * 8).astype(np.uint64)
        rest = words[ends - 1] & ((np.uint64(1) << unused) - np.uint64(1))
        require(not rest.any(), "a string is not padded with zeros")
        return rows

    def share(self, strings: "Strings", through: int) -> None:
        """Become the strings of another dictionary up to event ``through``."""
        self._table.share(strings._table, through + 1)
        self._clear_cache()

    def load(self, rows: StringRows) -> None:
        """Append strings that `read` checked."""
        self._table.extend(rows)
        self._clear_cache()

    def effect_columns(self) -> list[AppendOnly]:
        """Return the columns that the fold appends to."""
        return self._table.effect_columns()

    @property
    def size_bytes(self) -> int:
        """Memory of the columns and the index, without cached strings."""
        return self._table.size_bytes
