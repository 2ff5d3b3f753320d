"""Words of a batch of text, and the terms of known words, a column at a time.

Owns the splitting of a folded buffer at its spaces, and a table from words to numbers with batched
look-ups: forty look-ups in a Python dict cost as much as the rest of folding a document. The bytes
of a word of up to 16 bytes are its key, two u64, so keys are exact; the table holds no longer
words.

Open addressing with linear probing (Knuth, *The Art of Computer Programming* 6.4). A probe visits
at most 16 slots; `WordTable.add` returns words without a free slot to the caller. So words that an
attacker chooses cost time only.
"""

from typing import Final

import msgspec
import numpy as np

from ..columnar.columns import I32, I64, U64

KEY_SIZE: Final = 16
"""Bytes of the longest word in the table: in English text, 1 word in 300 is longer."""

UNKNOWN: Final = -2
"""`WordTable.find` returns this for a missing word."""

_SPACE: Final = 0x20
_SLOTS_MIN: Final = 1 << 12
_PROBES_MAX: Final = 16
_PROBES_NEAR: Final = 3
"""Sequential probes for every word that is not found yet: 1 word in 20 needs more."""
_FACTOR_LOW: Final = np.uint64(0x9E37_79B9_7F4A_7C15)
_FACTOR_HIGH: Final = np.uint64(0xC2B2_AE3D_27D4_EB4F)
_MASKS: Final = np.array([(1 << 8 * size) - 1 for size in range(9)], np.uint64)


class Words(msgspec.Struct, frozen=True):
    """The words of a buffer in order: bytes [starts, ends), and keys of their first 16 bytes."""

    starts: I64
    ends: I64
    low: U64
    high: U64


def cut(data: bytes) -> Words:
    """Return the words of a folded buffer: its runs of bytes other than space."""
    padded = np.frombuffer(b" " + data + b" " * KEY_SIZE, np.uint8)
    # A word starts after a space before another byte, and ends at the next space.
    turns = np.flatnonzero(np.diff(padded[: len(data) + 2] == _SPACE))
    starts = turns[::2]
    ends = turns[1::2]
    sizes = np.minimum(ends - starts, KEY_SIZE)
    # The eight bytes from each place on, without a copy.
    eights = np.ndarray(len(padded) - 7, np.dtype("<u8"), padded, strides=(1,))
    low = eights[starts + 1] & _MASKS[np.minimum(sizes, 8)]
    high = eights[starts + 9 - 8 * (sizes <= 8)] & _MASKS[np.maximum(sizes - 8, 0)]
    return Words(starts, ends, low, high)


class WordTable:
    """Numbers by words of up to 16 bytes.

    - ``_keys`` is (slots, 2): the halves of a key are adjacent, so a probe waits for memory once.
      The lower half is 0 exactly in free slots: no word starts with a zero byte.
    - At most half of the slots are taken.
    """

    def __init__(self) -> None:
        self._resize(_SLOTS_MIN)

    def __len__(self) -> int:
        return self._count

    def _resize(self, slots: int) -> None:
        self._keys = np.zeros((slots, 2), np.uint64)
        self._values = np.zeros(slots, np.int32)
        self._shift = np.uint64(64 - (slots.bit_length() - 1))
        self._count = 0

    def clear(self) -> None:
        """Remove every word."""
        if self._count:
            self._resize(_SLOTS_MIN)

    def _slots(self, low: U64, high: U64) -> I64:
        mixed = (low ^ (high * _FACTOR_HIGH)) * _FACTOR_LOW
        mixed ^= mixed >> np.uint64(32)
        return ((mixed * _FACTOR_LOW) >> self._shift).astype(np.int64)

    def find(self, low: U64, high: U64) -> I32:
        """Return the number of each word, or `UNKNOWN`; about 25 ns a word of 60,000."""
        values = np.full(len(low), UNKNOWN, np.int32)
        slots = self._slots(low, high)
        places = np.arange(len(low))
        last = len(self._keys) - 1
        for _ in range(_PROBES_NEAR):
            here = self._keys.take(slots, axis=0)
            is_here = (here[:, 0] == low) & (here[:, 1] == high)
            values[places] = np.where(is_here, self._values.take(slots), UNKNOWN)
            on = np.flatnonzero(~is_here)
            on = on[here[on, 0] != 0]
            if not len(on):
                return values
            low = low[on]
            high = high[on]
            places = places[on]
            slots = (slots[on] + 1) & last
        # Few words remain: read all further slots at once. No slot is ever freed, so a stored word
        # precedes the first free slot of its probe.
        further = (slots[:, np.newaxis] + np.arange(_PROBES_MAX - _PROBES_NEAR)) & last
        here = self._keys.take(further, axis=0)
        is_here = (here[:, :, 0] == low[:, np.newaxis]) & (here[:, :, 1] == high[:, np.newaxis])
        rows, probes = np.nonzero(is_here)
        values[places[rows]] = self._values.take(further[rows, probes])
        return values

    def add(self, low: U64, high: U64, values: I32) -> dict[bytes, int]:
        """Add distinct new words; return the words without a free slot.

        If the table grew, the result may contain words that were in the table before.
        """
        left: dict[bytes, int] = {}
        needed = 2 * (self._count + len(low))
        if needed > len(self._keys):
            taken = np.flatnonzero(self._keys[:, 0])
            keys = self._keys[taken]
            numbers = self._values[taken]
            self._resize(1 << needed.bit_length())
            left = self._enter(keys, numbers)
        return {**left, **self._enter(np.stack([low, high], axis=1), values)}

    def _enter(self, keys: U64, values: I32) -> dict[bytes, int]:
        """Add words; return the words without a free slot."""
        slots = self._slots(keys[:, 0], keys[:, 1])
        last = len(self._keys) - 1
        for _ in range(_PROBES_MAX):
            free = np.flatnonzero(self._keys[slots, 0] == 0)
            # If several words share a slot, the last write wins, in every column.
            self._keys[slots[free]] = keys[free]
            placed = np.zeros(len(keys), np.bool_)
            placed[free] = (self._keys[slots[free]] == keys[free]).all(axis=1)
            self._values[slots[placed]] = values[placed]
            self._count += int(np.count_nonzero(placed))
            keys = keys[~placed]
            values = values[~placed]
            if not len(keys):
                break
            slots = (slots[~placed] + 1) & last
        data = keys.astype("<u8").tobytes()
        words = (data[at : at + KEY_SIZE].rstrip(b"\0") for at in range(0, len(data), KEY_SIZE))
        return dict(zip(words, values.tolist(), strict=True))

    @property
    def size_bytes(self) -> int:
        """Memory of keys and values."""
        return self._keys.nbytes + self._values.nbytes
