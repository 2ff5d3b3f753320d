"""Strings by folded name: the strings that are equal under the comparison of names.

Owns the index from a folded name to the codes of strings, and that of the few names of predicates.
A lookup first indexes new strings, at about 1 us each; a chunk has the hashes of its strings. The
codes of names that were looked up are cached until a string is added.
"""

import threading
from collections.abc import Sequence
from typing import Final

import numpy as np

from ..columnar.columns import U64, Column
from ..columnar.hash_index import HashIndex, hash_bytes64, hashes64
from ..columnar.names import Names
from ..columnar.strings import Strings
from ..fulltext.analyzer import folded_name, words

_NAME_SIZE_MAX: Final = 200
"""Maximum UTF-8 bytes of an indexed name; queries contain no longer names."""

_BATCH: Final = 4096

_CACHED_NAMES_MAX: Final = 1 << 14
"""Names whose codes are cached, of at most 200 bytes each: about 3 MB; a full cache is cleared."""


class FoldedNames:
    """Finds strings by folded name. Any thread may search while another adds strings."""

    def __init__(self, strings: Strings) -> None:
        self._strings = strings
        self._hashes = Column(np.uint64)
        self._index = HashIndex()
        self._codes: dict[str, Sequence[int]] = {}
        """The codes of names that were looked up, among the strings that have a hash."""
        self._lock = threading.RLock()

    def find(self, folded: str) -> list[int]:
        """Return the codes of the strings with a folded name, ascending."""
        count = len(self._strings)
        if self._hashes.size < count:
            self._follow(count)
        hashes = self._hashes.buffer[: self._hashes.size]
        codes: list[int] = []
        for row in self._index.rows(hashes, hash_bytes64(folded.encode())):
            code = int(row) + 1
            if folded_name(self._strings.text(code)) == folded:
                codes.append(code)
        return codes

    def alike(self, name: str) -> Sequence[int]:
        """Return the codes of the strings that equal a name when folded, ascending.

        A name without letters or digits, or above 200 bytes, equals only itself.
        """
        codes = self._codes.get(name)
        if codes is None or len(self._hashes) != len(self._strings):
            codes = self._look_up(name)
        return codes

    def _look_up(self, name: str) -> Sequence[int]:
        folded = _indexed_name(name)
        if not folded:
            code = self._strings.find(name)
            return () if code is None else (code,)
        with self._lock:
            codes = self.find(folded)
            if len(self._codes) >= _CACHED_NAMES_MAX:
                self._codes.clear()
            self._codes[name] = codes
        return codes

    def hashes(self, start: int, end: int) -> U64:
        """Return the hashes of the folded strings at places [start, end), for a chunk."""
        self._follow(end)
        return self._hashes.view()[start:end]

    def load(self, hashes: U64) -> None:
        """Append the hashes of the strings that `Strings.load` has just appended."""
        with self._lock:
            if len(self._hashes) + len(hashes) == len(self._strings):
                self._extend(hashes)

    def _follow(self, end: int) -> None:
        with self._lock:
            while (first := len(self._hashes)) < end:
                self._add(first + 1, min(first + _BATCH, end))

    def share(self, names: "FoldedNames") -> None:
        """Take over the index of another's strings, which begin with these strings."""
        with names._lock:
            count = min(len(names._hashes), len(self._strings))
            self._hashes.share(names._hashes, count)
            self._index.share(names._index, count)

    def _add(self, first: int, last: int) -> None:
        hashes = hashes64(
            [
                b" ".join(words(name.decode())) if len(name) <= _NAME_SIZE_MAX else b""
                for name in self._strings.all_utf8(first, last)
            ]
        )
        # A signal handler on this thread may have searched, and added the same strings.
        if len(self._hashes) == first - 1:
            self._extend(hashes)

    def _extend(self, hashes: U64) -> None:
        # First, since `alike` takes cached codes once every string has a hash.
        self._codes.clear()
        self._hashes.extend(hashes)

    @property
    def size_bytes(self) -> int:
        """Memory used."""
        return self._hashes.size_bytes + self._index.size_bytes


class FoldedDictionary:
    """Finds the names of a small dictionary by folded name. Any thread may search."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._codes: dict[str, list[int]] = {}
        self._cached: dict[str, Sequence[int]] = {}
        """The codes of names that were looked up, among the first ``_count`` names."""
        self._count = 0
        self._lock = threading.RLock()

    def alike(self, name: str) -> Sequence[int]:
        """Return the codes of the names that equal a name when folded, ascending.

        A name without letters or digits, or above 200 bytes, equals only itself.
        """
        codes = self._cached.get(name)
        if codes is None or self._count != len(self._names):
            codes = self._look_up(name)
        return codes

    def _look_up(self, name: str) -> Sequence[int]:
        with self._lock:
            if self._count != len(self._names) or len(self._cached) >= _CACHED_NAMES_MAX:
                self._cached.clear()
            for code in range(self._count + 1, len(self._names) + 1):
                folded = _indexed_name(self._names.text(code) or "")
                self._codes.setdefault(folded, []).append(code)
                self._count = code
            folded = _indexed_name(name)
            if not folded:
                code_of_name = self._names.find(name)
                return () if code_of_name is None else (code_of_name,)
            codes = self._cached[name] = tuple(self._codes.get(folded, ()))
            return codes


def _indexed_name(name: str) -> str:
    """Return the folded form under which a name is found; empty if only the exact name matches."""
    return folded_name(name) if len(name.encode()) <= _NAME_SIZE_MAX else ""
