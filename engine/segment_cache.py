"""The segments and spills that were read last, up to a size in bytes.

Owns the size: of decoded indexes, decompressed blocks, and bytes read ahead. A segment grows when a
block of it is read, and then reports its growth.
"""

import threading

from .segment_reader import Segment
from .storage import StorageFile

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
