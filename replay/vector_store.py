"""The vectors of a space: read from the log, verified, and cached up to a limit.

Owns the cache, and the frame of each vector. Leaves out the search for the nearest.
"""

import threading
from itertools import pairwise
from typing import Final

import numpy as np

from cerata.engine.errors import Corrupt
from cerata.engine.file import LogFile
from cerata.engine.log import Log
from cerata.projections.columnar.columns import F64, I64, NO_ROW, U8, U32, Column, Mask
from cerata.projections.columnar.hash_index import hashes64
from cerata.projections.frames.reader import Frames
from cerata.projections.vectors.columns import STEP_NUMBERS, Matrix, SpaceRows, matrix_of
from cerata.projections.vectors.nearest import Metric, lengths_of
from cerata.projections.vectors.reader import Space

from .hnsw import Graph

NO_VECTOR: Final = -1
"""In place of a row: the frame has no vector."""

KEPT_SIZE_MAX: Final = 512 << 20
"""Size in bytes of a space above which only offsets of vectors are cached."""


class StoredSpace:
    """A space of a log, and the frame of each of its rows; any thread may read it.

    - Rows are those of ``source``: another fold of the same events has another `StoredSpace`.
    """

    def __init__(self, log: Log, source: SpaceRows) -> None:
        self._log = log
        self.source = source
        self._key = source.key
        self._mutex = threading.RLock()
        self._frame_rows = Column(np.uint32)
        self._last: tuple[Mask, int, Mask] | None = None
        self._by_frame_row: tuple[int, I64] | None = None

    def of_frames(self, space: Space, frames: Frames, mask: Mask, n: int) -> Mask:
        """Return a mask of the rows by event n that are then the vector of a frame in ``mask``.

        ``mask`` has an item for each frame by n. Cost: a look at each row; nothing if the last call
        had the same n and the same read-only mask.
        """
        last = self._last
        if last is not None and last[0] is mask and last[1] == n:
            return last[2]
        current = space.current_mask(n)
        rows = self._rows_of_frames(space, frames, len(current))
        current &= rows < len(mask)
        current[current] = mask[rows[current]]
        if not mask.flags.writeable:
            current.flags.writeable = False
            self._last = mask, n, current
        return current

    def by_frame_row(self, space: Space, frames: Frames, count: int, n: int) -> I64:
        """Return the row of the vector at n of each of the first frames, or `NO_VECTOR`; (count,).

        Cost: a look at each row; nothing if the last call had the same n.
        """
        last = self._by_frame_row
        if last is not None and last[0] == n and len(last[1]) == count:
            return last[1]
        current = np.flatnonzero(space.current_mask(n))
        rows = self._rows_of_frames(space, frames, len(space.seqs))[current]
        inside = rows < count
        found = np.full(count, NO_VECTOR)
        found[rows[inside]] = current[inside]
        found.flags.writeable = False
        self._by_frame_row = n, found
        return found

    def _rows_of_frames(self, space: Space, frames: Frames, count: int) -> U32:
        """Return the row of each vector's frame, or `NO_ROW` without a frame."""
        if len(self._frame_rows) < count:
            with self._mutex:
                start = len(self._frame_rows)
                named = space.frames[start:count].astype(np.int64)
                rows = frames.ids.searchsorted(named)
                inside = rows < len(frames.ids)
                inside[inside] = frames.ids[rows[inside]] == named[inside]
                if len(self._frame_rows) == start:
                    # Else a signal handler in this thread has extended the column.
                    self._frame_rows.extend(np.where(inside, rows, NO_ROW))
        return self._frame_rows.view()[:count]


class StoredVectors(StoredSpace):
    """The vectors of a space in a log; any thread may read them.

    - ``_kept`` and ``_lengths`` have an item for each row, filled if ``_has`` is true for the row.
    - ``_placed`` is a file and the offsets in it of the first rows, all sealed.
    """

    def __init__(self, log: Log, source: SpaceRows) -> None:
        super().__init__(log, source)
        self._kept = matrix_of(b"", source.key)
        self._lengths = np.empty(0)
        self._has = np.empty(0, np.bool_)
        # True if some row that no question has compared yet is damaged.
        self._is_damaged = False
        self._placed = log.file, Column(np.int64)
        self._looking = threading.RLock()
        self._graph: Graph | None = None

    def rows(self, space: Space, wanted: I64) -> tuple[Matrix, F64]:
        """Return the vectors in rows of the space, which ascend, and their lengths.

        Shapes: (len(wanted), dimension) and (len(wanted),).

        Cost: the first call finds the offsets of all rows, and reads and hashes its rows; a later
        call with rows outside the cache reads and hashes all remaining rows. In a space over 512
        MiB each call reads and hashes its rows.

        Raises:
            Corrupt: a vector is damaged.
        """
        if len(space.seqs) * self._row_size > KEPT_SIZE_MAX:
            vectors = self._read(space, wanted)
            return vectors, lengths_of(vectors)
        if len(self._has) < len(space.seqs) or not bool(self._has[wanted].all()):
            self._keep(space, wanted)
        return self._kept.take(wanted, axis=0), self._lengths.take(wanted)

    def vector(self, space: Space, row: int) -> Matrix:
        """Return one vector, (dimension,). Cost: a read and a hash unless it is cached.

        Raises:
            Corrupt: the vector is damaged.
        """
        if row < len(self._has) and self._has[row]:
            vector: Matrix = self._kept[row].copy()
        else:
            vector = self._read(space, np.array([row]))[0]
        return vector

    @property
    def _row_size(self) -> int:
        return self._kept.itemsize * self._key[2]

    def _keep(self, space: Space, rows: I64) -> None:
        with self._mutex:
            total = len(space.seqs)
            is_first = not self._has.any()
            if total > len(self._has):
                self._grow(total)
            # A single question, as of a command line, need not wait for rows outside of it.
            if not is_first and not self._is_damaged:
                try:
                    self._take_in(space, np.flatnonzero(~self._has[:total]))
                except Corrupt:
                    # The damaged row is not part of this question, and may be another tenant's.
                    self._is_damaged = True
            self._take_in(space, rows[~self._has[rows]])

    def _take_in(self, space: Space, missing: I64) -> None:
        step = max(STEP_NUMBERS // self._key[2], 1)
        for start in range(0, len(missing), step):
            rows = missing[start : start + step]
            self._kept[rows] = vectors = self._read(space, rows)
            self._lengths[rows] = lengths_of(vectors)
            self._has[rows] = True

    def _grow(self, count: int) -> None:
        """Make room for so many rows; rows that are not read yet take no memory."""
        room = max(count, len(self._has) * 3 // 2)
        read = np.flatnonzero(self._has)
        vectors = np.empty((room, self._key[2]), self._kept.dtype)
        lengths = np.empty(room)
        has = np.zeros(room, np.bool_)
        vectors[read] = self._kept[read]
        lengths[read] = self._lengths[read]
        has[read] = True
        # Readers without the lock look at `_has` first.
        self._kept = vectors
        self._lengths = lengths
        self._has = has

    def _read(self, space: Space, rows: I64) -> Matrix:
        """Read rows, which ascend; adjacent rows in the file take one read."""
        log_file, offsets = self._places_of(space)
        size = self._row_size
        sealed = int(rows.searchsorted(len(offsets)))
        places = offsets[rows[:sealed]]
        read = log_file.file.read_at
        starts = [0, *(np.flatnonzero(np.diff(places) != size) + 1).tolist()] if sealed else []
        pieces: list[bytes] = []
        for start, end in pairwise([*starts, sealed]):
            # Pad a short read of a truncated file; the hash check rejects the padding.
            pieces.append(
                read(int(places[start]), (end - start) * size).ljust((end - start) * size)
            )
        if sealed < len(rows):
            pieces.append(self._log.embeddings(self._key, space.seqs[rows[sealed:]]).tobytes())
        data = np.frombuffer(b"".join(pieces), np.uint8)
        return self._verified(space, rows, data.reshape(-1, size))

    def _places_of(self, space: Space) -> tuple[LogFile, I64]:
        """Return the file, and the offsets of its rows up to the first that is not sealed."""
        with self._looking:
            while self._placed[0] is not self._log.file or len(self._placed[1]) < len(space.seqs):
                file = self._log.file
                if self._placed[0] is not file:
                    # A compactor replaced the file, with other offsets.
                    self._placed = file, Column(np.int64)
                offsets = self._placed[1]
                count = len(offsets)
                added = self._log.embedding_offsets(self._key, space.seqs[count:])
                if self._log.file is not file:
                    continue
                unsealed = np.flatnonzero(added < 0)
                if len(offsets) == count:
                    offsets.extend(added[: unsealed[0]] if len(unsealed) else added)
                break
            file, offsets = self._placed
            return file, offsets.view()

    def _verified(self, space: Space, rows: I64, data: U8) -> Matrix:
        is_equal = hashes64([row.tobytes() for row in data]) == space.checks[rows]
        if not bool(is_equal.all()):
            seq = int(space.seqs[rows[~is_equal][0]])
            raise Corrupt(
                f"The vector of event {seq:,} is damaged",
                where=self._log.path,
                remedy="Run 'cerata verify' to see the damage.",
            )
        return matrix_of(data.reshape(-1), self._key)

    def graph(self, metric: Metric) -> Graph:
        """Return the graph over the space, built on first use.

        Raises:
            Unsupported: the extra hnsw is not installed.
        """
        with self._mutex:
            if self._graph is None:
                self._graph = Graph(metric, self._key[2])
            return self._graph
