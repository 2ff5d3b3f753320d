"""Strings by folded name: the strings that are equal under the comparison of names.

Owns the index from a folded name to the codes of strings. A lookup first indexes new strings, at
about 1 us each.
"""

import threading

import numpy as np

from ..columnar.columns import Column
from ..columnar.hash_index import HashIndex, hash_bytes64, hashes64
from ..columnar.strings import Strings
from ..fulltext.analyzer import folded_name, words

_NAME_SIZE_MAX = 200
"""Maximum UTF-8 bytes of an indexed name; queries contain no longer names."""

_BATCH = 4096


class FoldedNames:
    """Finds strings by folded name. Any thread may search while another adds strings."""

    def __init__(self, strings: Strings) -> None:
        self._strings = strings
        self._hashes = Column(np.uint64)
        self._index = HashIndex()
        self._lock = threading.RLock()

    def find(self, folded: str) -> list[int]:
        """Return the codes of the strings with a folded name, ascending."""
        with self._lock:
            while (first := len(self._hashes)) < len(self._strings):
                self._add(first + 1, min(first + _BATCH, len(self._strings)))
        rows = self._index.find(self._hashes.view(), hash_bytes64(folded.encode()))
        codes = (row + 1 for row in rows)
        return [code for code in codes if folded_name(self._strings.text(code)) == folded]

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
            self._hashes.extend(hashes)

    @property
    def size_bytes(self) -> int:
        """Memory used."""
        return self._hashes.size_bytes + self._index.size_bytes
