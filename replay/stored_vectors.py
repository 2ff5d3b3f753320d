"""The vectors of one space: read from where the log keeps them, verified, and kept if they fit.

Owns what is kept of them in memory, and which frame each is of. Leaves out which are nearest.
"""

import threading
from itertools import pairwise
from typing import Final

import numpy as np

from cerata.engine.errors import Corrupt
from cerata.engine.file import LogFile
from cerata.engine.log import Log
from cerata.projections.columns import F64, I64, NO_ROW, U8, U32, Column, Mask
from cerata.projections.frame_table import Frames
from cerata.projections.hash_index import hashes64
from cerata.projections.nearest import Metric, lengths_of
from cerata.projections.vector_columns import STEP_NUMBERS, Matrix, SpaceRows, matrix_of
from cerata.projections.vector_table import Space

from .hnsw import Graph

KEPT_SIZE_MAX: Final = 512 << 20
"""Of a space of more bytes only where each vector stands is kept."""


class StoredSpace:
    """One space of a log, and which frame each of its rows is of; any thread may read it.

    - Rows are those of ``source``: another fold of the same events has vectors of its own kept.
    """

    def __init__(self, log: Log, source: SpaceRows) -> None:
        self._log = log
        self.source = source
        self._key = source.key
        self._mutex = threading.RLock()
        self._frame_rows = Column(np.uint32)
        self._last: tuple[Mask, int, Mask] | None = None

    def of_frames(self, space: Space, frames: Frames, mask: Mask, n: int) -> Mask:
        """Return which rows, all by event n, are the vector then of a frame that a mask lets pass.

        ``mask`` has an item for each frame by n. Cost: a look at each row; none for a mask that
        nobody may write to, where it was the last that was asked for, of the same n.
        """
        last = self._last
        if last is not None and last[0] is mask and last[1] == n:
            return last[2]
        held = space.held(n)
        rows = self._rows_of_frames(space, frames, len(held))
        held &= rows < len(mask)
        held[held] = mask[rows[held]]
        if not mask.flags.writeable:
            held.flags.writeable = False
            self._last = mask, n, held
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
                if len(self._frame_rows) == start:
                    # Else a signal handler of this thread was asked meanwhile, and did it.
                    self._frame_rows.extend(np.where(inside, rows, NO_ROW))
        return self._frame_rows.view()[:count]


class StoredVectors(StoredSpace):
    """The vectors of one space of a log; any thread may read them.

    - ``_kept`` and ``_lengths`` have an item for each row; those that ``_has`` are read already.
    - ``_placed`` is a file and the offsets in it of the first rows, all sealed.
    """

    def __init__(self, log: Log, source: SpaceRows) -> None:
        super().__init__(log, source)
        self._kept = matrix_of(b"", source.key)
        self._lengths = np.empty(0)
        self._has = np.empty(0, np.bool_)
        # Of rows that no question compared yet, one at least.
        self._is_damaged = False
        self._placed = log.file, Column(np.int64)
        self._looking = threading.RLock()
        self._graph: Graph | None = None

    def rows(self, space: Space, wanted: I64) -> tuple[Matrix, F64]:
        """Return the vectors in rows of the space, which ascend, and their lengths.

        Shapes: (len(wanted), dimension) and (len(wanted),).

        Cost: the first time a look at where all rows stand, and a read and a hash of those that are
        wanted; whoever asks again reads the others at once. Of a space over 512 MiB a read and a
        hash of each row that is wanted, every time.

        Raises:
            Corrupt: one of them is damaged.
        """
        if len(space.seqs) * self._row_size > KEPT_SIZE_MAX:
            vectors = self._read(space, wanted)
            return vectors, lengths_of(vectors)
        if len(self._has) < len(space.seqs) or not bool(self._has[wanted].all()):
            self._keep(space, wanted)
        return self._kept.take(wanted, axis=0), self._lengths.take(wanted)

    def vector(self, space: Space, row: int) -> Matrix:
        """Return one vector, (dimension,). Cost: where it is not kept a read and a hash of it.

        Raises:
            Corrupt: it is damaged.
        """
        if row < len(self._has) and self._has[row]:
            found: Matrix = self._kept[row].copy()
        else:
            found = self._read(space, np.array([row]))[0]
        return found

    @property
    def _row_size(self) -> int:
        return self._kept.itemsize * self._key[2]

    def _keep(self, space: Space, wanted: I64) -> None:
        with self._mutex:
            total, is_first = len(space.seqs), not self._has.any()
            if total > len(self._has):
                self._grow(total)
            # One question alone, as of a command line, need not wait for what it does not compare.
            if not is_first and not self._is_damaged:
                try:
                    self._take_in(space, np.flatnonzero(~self._has[:total]))
                except Corrupt:
                    # Of what is not compared, and may be another tenant's.
                    self._is_damaged = True
            self._take_in(space, wanted[~self._has[wanted]])

    def _take_in(self, space: Space, missing: I64) -> None:
        """Read rows, and keep them. Raises `Corrupt`."""
        step = max(STEP_NUMBERS // self._key[2], 1)
        for start in range(0, len(missing), step):
            some = missing[start : start + step]
            self._kept[some] = vectors = self._read(space, some)
            self._lengths[some] = lengths_of(vectors)
            self._has[some] = True

    def _grow(self, count: int) -> None:
        """Make room for so many rows; what is not read yet takes no memory."""
        room, read = max(count, len(self._has) * 3 // 2), np.flatnonzero(self._has)
        kept = np.empty((room, self._key[2]), self._kept.dtype)
        lengths, has = np.empty(room), np.zeros(room, np.bool_)
        kept[read], lengths[read], has[read] = self._kept[read], self._lengths[read], True
        # Who holds no lock looks at `_has` first.
        self._kept, self._lengths, self._has = kept, lengths, has

    def _read(self, space: Space, wanted: I64) -> Matrix:
        """Read rows, which ascend: those that stand side by side in the file at once."""
        (log_file, offsets), size = self._places_of(space), self._row_size
        known = int(wanted.searchsorted(len(offsets)))
        places, read = offsets[wanted[:known]], log_file.file.read_at
        starts = [0, *(np.flatnonzero(np.diff(places) != size) + 1).tolist()] if known else []
        held: list[bytes] = []
        for start, end in pairwise([*starts, known]):
            # What a file that was cut short lacks is no vector's bytes, either.
            held.append(read(int(places[start]), (end - start) * size).ljust((end - start) * size))
        if known < len(wanted):
            held.append(self._log.embeddings(self._key, space.seqs[wanted[known:]]).tobytes())
        data = np.frombuffer(b"".join(held), np.uint8)
        return self._verified(space, wanted, data.reshape(-1, size))

    def _places_of(self, space: Space) -> tuple[LogFile, I64]:
        """Return the file, and where in it rows stand, up to the first that is not sealed."""
        with self._looking:
            while self._placed[0] is not self._log.file or len(self._placed[1]) < len(space.seqs):
                file = self._log.file
                if self._placed[0] is not file:
                    # A compactor put another in its place, where they stand elsewhere.
                    self._placed = file, Column(np.int64)
                offsets = self._placed[1]
                known = len(offsets)
                found = self._log.embedding_offsets(self._key, space.seqs[known:])
                if self._log.file is not file:
                    continue
                unsealed = np.flatnonzero(found < 0)
                if len(offsets) == known:
                    offsets.extend(found[: unsealed[0]] if len(unsealed) else found)
                break
            file, offsets = self._placed
            return file, offsets.view()

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
