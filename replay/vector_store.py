"""The vectors of a space: read from the log, verified, and cached up to a limit.

Owns the cache, and the frame of each vector. Leaves out the search for the nearest.
"""

import threading
from collections.abc import Iterator
from typing import Final

import numpy as np

from cerata.engine.errors import Corrupt
from cerata.engine.log import Log
from cerata.engine.unreadable import UnreadableVectors
from cerata.projections.columnar.columns import F64, I64, NO_ROW, U8, U32, Column, Mask
from cerata.projections.columnar.hash_index import hashes64
from cerata.projections.frames.reader import Frames
from cerata.projections.vectors.columns import STEP_NUMBERS, Matrix, SpaceRows, matrix_of
from cerata.projections.vectors.nearest import Metric, lengths_of
from cerata.projections.vectors.reader import Space

from .hnsw import Graph
from .vector_places import VectorPlaces
from .verified_vectors import KeptVectors, VerifiedVectors, sums_of

NO_VECTOR: Final = -1
"""In place of a row: the frame has no vector."""


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
        if last is not None and last[0] is mask and last[1] == n and not space.is_reduced:
            return last[2]
        current = space.current_mask(n)
        rows = self._rows_of_frames(space, frames, len(current))
        current &= rows < len(mask)
        current[current] = mask[rows[current]]
        if not (mask.flags.writeable or space.is_reduced):
            current.flags.writeable = False
            self._last = mask, n, current
        return current

    def by_frame_row(self, space: Space, frames: Frames, count: int, n: int) -> I64:
        """Return the row of the vector at n of each of the first frames, or `NO_VECTOR`; (count,).

        Cost: a look at each row; nothing if the last call had the same n.
        """
        last = self._by_frame_row
        if last is not None and last[0] == n and len(last[1]) == count and not space.is_reduced:
            return last[1]
        current = np.flatnonzero(space.current_mask(n))
        rows = self._rows_of_frames(space, frames, len(space.seqs))[current]
        inside = rows < count
        found = np.full(count, NO_VECTOR)
        found[rows[inside]] = current[inside]
        found.flags.writeable = False
        if not space.is_reduced:
            self._by_frame_row = n, found
        return found

    def _unreadable(self, space: Space, rows: I64) -> UnreadableVectors:
        seqs = space.seqs[rows].tolist()
        return UnreadableVectors.of(self._key, rows.tolist(), seqs, self._log.path)

    def _rows_of_frames(self, space: Space, frames: Frames, count: int) -> U32:
        """Return the row of each vector's frame, or `NO_ROW` without a frame."""
        if len(self._frame_rows) < count:
            with self._mutex:
                start = len(self._frame_rows)
                rows = _rows_in(frames.ids, space.frames[start:count].astype(np.int64))
                if len(self._frame_rows) == start:
                    # Else a signal handler in this thread has extended the column.
                    self._frame_rows.extend(rows)
        return self._frame_rows.view()[:count]


class StoredVectors(StoredSpace):
    """The vectors of a space in a log; any thread may read them.

    - A vector is hashed before its first use in this process. In a space of at most ``size_max``
      bytes it then stays in memory; else it is read again, and must have the sum that it had.
    """

    def __init__(self, log: Log, source: SpaceRows, places: VectorPlaces) -> None:
        super().__init__(log, source)
        self.size_max = log.caches.vectors
        """Bytes of a space above which no vector stays in memory; `Fold` divides the cache."""
        self._model = matrix_of(b"", source.key)
        self._cache = KeptVectors(self._model)
        self._verified = VerifiedVectors()
        self._places = places
        self._graph: Graph | None = None

    def rows(self, space: Space, rows: I64) -> tuple[Matrix, F64]:
        """Return the vectors in rows of the space, which ascend, and their lengths.

        Shapes: (len(rows), dimension) and (len(rows),); read-only if they need no copy.

        Cost: a read and a hash of each row on its first use, no other row. In a larger space than
        ``size_max`` each call reads its rows.

        Raises:
            UnreadableVectors: a vector is damaged.
        """
        if len(self.source) * self._row_size > self.size_max:
            self._cache = KeptVectors(self._model)
            return self._read_again(space, rows)
        cache = self._cache
        vectors = cache.find(rows)
        if vectors is None:
            with self._mutex:
                for step in self._steps(cache.missing(rows)):
                    matrix = self._matrix(self._checked(space, step, self._read(space, step)))
                    cache.add(step, matrix, lengths_of(matrix), len(space.seqs))
            vectors = cache.find(rows)
            assert vectors is not None
        return vectors

    def vector(self, space: Space, row: int) -> Matrix:
        """Return one vector, (dimension,). Cost: a read and a hash unless it is cached.

        Raises:
            UnreadableVectors: the vector is damaged.
        """
        vectors, _ = self.rows(space, np.array([row]))
        # A copy, which the caller may change.
        vector: Matrix = vectors[0].copy()
        return vector

    @property
    def _row_size(self) -> int:
        return self._model.itemsize * self._key[2]

    def _matrix(self, data: U8) -> Matrix:
        return matrix_of(data.reshape(-1), self._key)

    def _steps(self, rows: I64) -> Iterator[I64]:
        step = max(STEP_NUMBERS // self._key[2], 1)
        for start in range(0, len(rows), step):
            yield rows[start : start + step]

    def _read_again(self, space: Space, rows: I64) -> tuple[Matrix, F64]:
        """Return the same from the log; a vector that was verified need not be hashed again."""
        vectors = np.empty((len(rows), self._key[2]), self._model.dtype)
        lengths = np.empty(len(rows))
        at = 0
        for step in self._steps(rows):
            part = slice(at, at := at + len(step))
            data = self._read(space, step)
            sums = sums_of(data)
            with self._mutex:
                is_known = self._verified.is_known(step, sums)
                lengths[part] = self._verified.lengths(step)
            if not bool(is_known.all()):
                fresh = np.flatnonzero(~is_known)
                data[fresh] = verified = self._checked(space, step[fresh], data[fresh])
                lengths[part][fresh] = measured = lengths_of(self._matrix(verified))
                with self._mutex:
                    self._verified.add(step[fresh], sums_of(verified), measured, len(space.seqs))
            vectors[part] = self._matrix(data)
        return vectors, lengths

    def _checked(self, space: Space, rows: I64, data: U8) -> U8:
        """Return the bytes of rows, verified; look up again those that are at another place.

        Raises:
            UnreadableVectors: a vector is damaged.
        """
        wrong = _wrong(space, rows, data)
        if len(wrong):
            data[wrong] = again = self._read(space, rows[wrong], again=True)
            damaged = rows[wrong][_wrong(space, rows[wrong], again)]
            if len(damaged):
                raise self._unreadable(space, damaged)
        return data

    def _read(self, space: Space, rows: I64, *, again: bool = False) -> U8:
        """Return the bytes of rows, not verified. Raises `UnreadableVectors`."""
        try:
            return self._places.read(space.seqs, rows, again=again)
        except Corrupt as error:
            # One event without its bytes must not cost the rest.
            damaged = [row for row in rows.tolist() if not self._has_bytes(space, row)]
            if not damaged:
                raise
            raise self._unreadable(space, np.array(damaged)) from error

    def _has_bytes(self, space: Space, row: int) -> bool:
        try:
            self._places.read(space.seqs, np.array([row]), again=True)
        except Corrupt:
            return False
        return True

    def graph(self, metric: Metric) -> Graph:
        """Return the graph over the space, built on first use.

        Raises:
            Unsupported: the extra hnsw is not installed.
        """
        with self._mutex:
            if self._graph is None:
                self._graph = Graph(metric, self._key[2])
            return self._graph


def _rows_in(ids: I64, named: I64) -> U32:
    """Return the row of each of some ids among all ids, which ascend, or `NO_ROW`."""
    if not len(ids) or 8 * len(named) < len(ids):
        rows = ids.searchsorted(named)
        inside = rows < len(ids)
        inside[inside] = ids[rows[inside]] == named[inside]
        return np.where(inside, rows, NO_ROW).astype(np.uint32)
    # A table takes a fifth of the time of searches. Ids are seqs, so it is no larger than the log.
    table = np.full(int(ids[-1]) + 1, NO_ROW, np.uint32)
    table[ids] = np.arange(len(ids), dtype=np.uint32)
    inside = named < len(table)
    return np.where(inside, table[np.where(inside, named, 0)], np.uint32(NO_ROW))


def _wrong(space: Space, rows: I64, data: U8) -> I64:
    """Return the places of the rows whose bytes have other hashes than the space has."""
    size = data.shape[1]
    flat = np.ascontiguousarray(data).reshape(-1).data
    hashes = hashes64([flat[start : start + size] for start in range(0, len(flat), size)])
    return np.flatnonzero(hashes != space.checks[rows])
