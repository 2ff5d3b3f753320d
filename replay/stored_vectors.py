"""The vectors of one space: read from where the log keeps them, verified, and kept if they fit.

Owns what is kept of them in memory, and which frame each is of. Leaves out which are nearest.
"""

import threading
from typing import Final

import numpy as np

from cerata.engine.errors import Corrupt
from cerata.engine.log import Log
from cerata.projections.columns import F64, I64, NO_ROW, U8, U32, Column, Mask
from cerata.projections.frame_table import Frames
from cerata.projections.hash_index import hashes64
from cerata.projections.nearest import Metric, lengths_of
from cerata.projections.vector_columns import STEP_NUMBERS, Matrix, SpaceRows, matrix_of
from cerata.projections.vector_table import Space

from .hnsw import Graph

KEPT_SIZE_MAX: Final = 512 << 20
"""Of a space of more bytes only where each vector stands is kept: 8 bytes a row."""


class StoredSpace:
    """One space of a log, and which frame each of its rows is of; any thread may read it.

    - Rows are those of ``source``: another fold of the same events has vectors of its own kept.
    """

    def __init__(self, log: Log, source: SpaceRows) -> None:
        self._log = log
        self.source = source
        self._key = source.key
        self._mutex = threading.Lock()
        self._frame_rows = Column(np.uint32)

    def of_frames(self, space: Space, frames: Frames, mask: Mask, n: int) -> Mask:
        """Return which rows, all by event n, are the vector then of a frame that a mask lets pass.

        ``mask`` has an item for each frame by n. Cost: a look at each row.
        """
        held = space.held(n)
        rows = self._rows_of_frames(space, frames, len(held))
        held &= rows < len(mask)
        held[held] = mask[rows[held]]
        return held

    def _rows_of_frames(self, space: Space, frames: Frames, count: int) -> U32:
        """Return the row of each vector's frame, or `NO_ROW` where that is none."""
        if len(self._frame_rows) < count:
            with self._mutex:
                start = len(self._frame_rows)
                named = space.frames[start:count].astype(np.int64)
                rows = frames.ids.searchsorted(named)
                inside = rows < len(frames.ids)
                inside[inside] = frames.ids[rows[inside]] == named[inside]
                self._frame_rows.extend(np.where(inside, rows, NO_ROW))
        return self._frame_rows.view()[:count]


class StoredVectors(StoredSpace):
    """The vectors of one space of a log; any thread may read them."""

    def __init__(self, log: Log, source: SpaceRows) -> None:
        super().__init__(log, source)
        self._kept = matrix_of(b"", source.key)
        self._lengths = Column(np.float64)
        # Of a space that is not kept: where in the file rows stand, all sealed.
        self._offsets = Column(np.int64)
        self._graph: Graph | None = None

    def rows(self, space: Space, wanted: I64) -> tuple[Matrix, F64]:
        """Return the vectors in rows of the space, which ascend, and their lengths.

        Shapes: (len(wanted), dimension) and (len(wanted),).

        Cost: the first time a read of the whole space and a hash of each vector; then that of
        what came since. Of a space over 512 MiB a read and a hash of each row that is wanted, and
        the first time a look at where all of them stand.

        Raises:
            Corrupt: one of them is damaged.
        """
        if len(space.seqs) * self._kept.itemsize * self._key[2] > KEPT_SIZE_MAX:
            vectors = self._read_by_offset(space, wanted)
            return vectors, lengths_of(vectors)
        if len(self._lengths) < len(space.seqs):
            self._keep(space)
        return self._kept.take(wanted, axis=0), self._lengths.view().take(wanted)

    def vector(self, space: Space, row: int) -> Matrix:
        """Return one vector, (dimension,). Cost: where none are kept a read and a hash of it alone.

        Raises:
            Corrupt: it is damaged.
        """
        if row < len(self._lengths):
            found: Matrix = self._kept[row].copy()
        else:
            found = self._read(space, np.array([row]))[0]
        return found

    def _keep(self, space: Space) -> None:
        with self._mutex:
            total, count = len(space.seqs), len(self._lengths)
            if total > len(self._kept):
                room = max(total, count * 3 // 2)
                kept = np.empty((room, self._key[2]), self._kept.dtype)
                kept[:count] = self._kept[:count]
                self._kept = kept
            step = max(STEP_NUMBERS // self._key[2], 1)
            for start in range(count, total, step):
                end = min(start + step, total)
                self._kept[start:end] = vectors = self._read(space, np.arange(start, end))
                self._lengths.extend(lengths_of(vectors))

    def _read(self, space: Space, wanted: I64) -> Matrix:
        data = self._log.embeddings(self._key, space.seqs[wanted])
        return self._verified(space, wanted, data)

    def _read_by_offset(self, space: Space, wanted: I64) -> Matrix:
        """Read rows, which ascend, without a look at what else stands in their segments."""
        if len(self._offsets) < len(space.seqs):
            with self._mutex:
                start = len(self._offsets)
                found = self._log.embedding_offsets(self._key, space.seqs[start:])
                unsealed = np.flatnonzero(found < 0)
                self._offsets.extend(found[: unsealed[0]] if len(unsealed) else found)
        size = self._key[2] * self._kept.itemsize
        known = int(wanted.searchsorted(len(self._offsets)))
        read = self._log.file.file.read_at
        # What a file that was cut short lacks is no vector's bytes, either.
        held = [read(at, size).ljust(size) for at in self._offsets.view()[wanted[:known]].tolist()]
        if known < len(wanted):
            held.append(self._log.embeddings(self._key, space.seqs[wanted[known:]]).tobytes())
        data = np.frombuffer(b"".join(held), np.uint8)
        return self._verified(space, wanted, data.reshape(-1, size))

    def _verified(self, space: Space, wanted: I64, data: U8) -> Matrix:
        same = hashes64([row.tobytes() for row in data]) == space.checks[wanted]
        if not bool(same.all()):
            seq = int(space.seqs[wanted[~same][0]])
            raise Corrupt(
                f"The vector of event {seq:,} is damaged",
                where=self._log.path,
                remedy="Run 'cerata verify' to see what is affected.",
            )
        return matrix_of(data.reshape(-1), self._key)

    def graph(self, metric: Metric) -> Graph:
        """Return the graph over the space, made when it is first asked for.

        Raises:
            Unsupported: without the extra hnsw.
        """
        with self._mutex:
            if self._graph is None:
                self._graph = Graph(metric, self._key[2])
            return self._graph
