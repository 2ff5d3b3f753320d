"""Strings by their folded name: which of them are one name, as names are compared.

Owns the index from a folded name to the codes of strings. It is derived when first asked for: about
1 us for each string that came since.
"""

import threading

import numpy as np

from .columns import Column
from .hash_index import HashIndex, hash_bytes64, hashes64
from .strings import Strings
from .text import folded_name, words

_NAME_SIZE_MAX = 200
"""Bytes of UTF-8 above which a string is no name that anybody would write in a question."""

_BATCH = 4096


class FoldedNames:
    """Finds strings by their folded name. Any thread may ask, while one adds strings."""

    def __init__(self, strings: Strings) -> None:
        self._strings = strings
        self._hashes = Column(np.uint64)
        self._index = HashIndex()
        self._lock = threading.RLock()

    def find(self, folded: str) -> list[int]:
        """Return the codes of the strings whose folded name this is, ascending."""
        with self._lock:
            while (first := len(self._hashes)) < len(self._strings):
                self._add(first + 1, min(first + _BATCH, len(self._strings)))
        rows = self._index.find(self._hashes.view(), hash_bytes64(folded.encode()))
        found = (row + 1 for row in rows)
        return [code for code in found if folded_name(self._strings.text(code)) == folded]

    def _add(self, first: int, last: int) -> None:
        hashes = hashes64(
            [
                b" ".join(words(name.decode())) if len(name) <= _NAME_SIZE_MAX else b""
                for name in self._strings.all_utf8(first, last)
            ]
        )
        # Unless a signal handler of this thread asked meanwhile, and added them.
        if len(self._hashes) == first - 1:
            self._hashes.extend(hashes)

    @property
    def size_bytes(self) -> int:
        """Memory held."""
        return self._hashes.size_bytes + self._index.size_bytes
