"""Places of many short byte strings in a large text, in one pass with numpy.

Owns the table from pairs of bytes. Leaves out small texts, in which a search for each string takes
less time than the first call of numpy.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

_HEAD_SIZE: Final = 4


class LetterPlaces:
    """Finds byte strings of two bytes or more by a rare pair of bytes that each of them has."""

    def __init__(self, keys: Sequence[bytes], pairs: Sequence[bytes]) -> None:
        """Create a table.

        Args:
            keys: the strings.
            pairs: two bytes of each string, distinct.
        """
        self._keys = keys
        numbers = range(1, len(keys) + 1)
        self._key_of_pair = np.zeros(1 << 16, np.uint8)
        self._key_of_pair[[int.from_bytes(pair, "little") for pair in pairs]] = numbers
        starts = [key.index(pair) for key, pair in zip(keys, pairs, strict=True)]
        self._pair_starts = np.array([0, *starts])
        heads = [int.from_bytes(key[:_HEAD_SIZE], "little") for key in keys]
        masks = [(1 << 8 * min(len(key), _HEAD_SIZE)) - 1 for key in keys]
        self._heads = np.array([0, *heads], "<u4")
        self._masks = np.array([0, *masks], "<u4")

    def places(self, text: bytes) -> list[list[int]]:
        """Return the places of each string, ascending and without overlaps; 1.5 ns a byte."""
        padded = text + bytes(_HEAD_SIZE)
        pairs = np.ndarray(len(padded) - 1, "<u2", padded, strides=(1,))
        heads = np.ndarray(len(padded) - _HEAD_SIZE + 1, "<u4", padded, strides=(1,))
        numbers = self._key_of_pair.take(pairs)
        # Numpy finds the items of a mask five times as fast as those of numbers.
        at = np.flatnonzero(numbers != 0)
        numbers = numbers[at]
        starts = at - self._pair_starts[numbers]
        # A pair at the start of the text may lack the bytes before it; place 0 then decides.
        is_head = (heads[np.maximum(starts, 0)] & self._masks[numbers]) == self._heads[numbers]
        is_head &= starts >= 0
        places: list[list[int]] = [[] for _ in self._keys]
        ends = [0] * len(self._keys)
        found: list[int] = starts[is_head].tolist()
        keys: list[int] = numbers[is_head].tolist()
        for start, number in zip(found, keys, strict=True):
            key = self._keys[number - 1]
            if start >= ends[number - 1] and text.startswith(key, start):
                places[number - 1].append(start)
                ends[number - 1] = start + len(key)
        return places
