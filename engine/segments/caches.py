"""The sizes of an open file's caches: parts of one allowance in bytes.

Owns the division. Each cache drops its oldest entries at its limit, and reads them again; so the
allowance changes times, never answers. Leaves out the folded projections, which are state.
"""

import threading
from dataclasses import dataclass
from typing import Final

from ..arguments import is_integer, wrong_type
from ..disk.storage import StorageFile
from ..errors import InvalidInput, number_text
from .segment_reader import Segment

CACHE_BYTES_DEFAULT: Final = 1 << 30
CACHE_BYTES_MIN: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class CacheSizes:
    """The limits of all caches of an open file, in bytes; together less than ``total``."""

    total: int = CACHE_BYTES_DEFAULT

    @property
    def vectors(self) -> int:
        """The vectors that questions compared, all spaces together."""
        return self.total // 2

    @property
    def tokens(self) -> int:
        """The token vectors that questions compared, all spaces together."""
        return self.total // 4

    @property
    def segments(self) -> int:
        """The indexes and decompressed blocks of segments."""
        return self.total // 8

    @property
    def recent(self) -> int:
        """The events that this process appended and has not folded."""
        return self.total // 32


def cache_sizes(cache_bytes: int | None) -> CacheSizes:
    """Return the sizes of caches for an allowance; None for the default.

    Raises:
        InvalidInput: the allowance is no integer, or less than 1 MiB.
    """
    if cache_bytes is None:
        return CacheSizes()
    if not is_integer(cache_bytes):
        remedy = "Pass a number of bytes, or leave out cache_bytes."
        raise wrong_type("cache_bytes", "a number of bytes", cache_bytes, remedy)
    if cache_bytes < CACHE_BYTES_MIN:
        raise InvalidInput(
            f"cache_bytes must be at least {CACHE_BYTES_MIN:,}, not {number_text(cache_bytes)}",
            remedy="Pass more bytes, or leave out cache_bytes.",
        )
    return CacheSizes(cache_bytes)


# --- The segments and spills that were read last, up to a size in bytes ---------------------------
#
# A segment grows when a block of it is read, and then reports its growth.


_ROOM_AFTER_DROP = 3 / 4
"""A full cache drops a quarter at once, so that few reads count all segments."""


class SegmentCache:
    """The segments of one file; any thread may use it."""

    def __init__(self, key: bytes, size_max: int) -> None:
        self._key = key
        self._size_max = size_max
        self._segments: dict[tuple[int, int], Segment] = {}
        self._mutex = threading.RLock()
        self.size_bytes = 0

    def __len__(self) -> int:
        return len(self._segments)

    def get(self, file: StorageFile, offset: int, length: int) -> Segment:
        """Return a segment or spill with its decoded index. Raises `Corrupt`."""
        segment = self._segments.get((offset, length))
        if segment is None:
            segment = Segment(file, self._key, offset, length, self._note_growth)
            self._segments[offset, length] = segment
            self._note_growth(segment.size_bytes)
        return segment

    def clear(self) -> None:
        """Drop all segments, each of which keeps its file open."""
        with self._mutex:
            self._segments.clear()
            self.size_bytes = 0

    def _note_growth(self, size: int) -> None:
        with self._mutex:
            self.size_bytes += size
            if self.size_bytes > self._size_max:
                self._drop()

    def _drop(self) -> None:
        """Drop the oldest segments. Threads may still use them, so a later growth is harmless."""
        segments = self._segments
        self.size_bytes = sum(segment.size_bytes for segment in list(segments.values()))
        for place, segment in list(segments.items())[:-1]:
            if self.size_bytes <= self._size_max * _ROOM_AFTER_DROP:
                return
            if segments.pop(place, None) is not None:
                self.size_bytes -= segment.size_bytes
