"""The vectors of a space: read from the log, verified, and cached up to a limit.

Owns the cache, and the frame of each vector. Leaves out the search for the nearest.
"""

import threading
from collections.abc import Iterator
from typing import Final, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from cerata.engine.errors import Corrupt, NotFound
from cerata.engine.events import PutEmbedding, PutFrame
from cerata.engine.log import Log
from cerata.engine.unreadable import UnreadableVectors
from cerata.projections.columnar.columns import (
    F64,
    I32,
    I64,
    NO_ROW,
    U8,
    U32,
    U64,
    Column,
    Item,
    Mask,
)
from cerata.projections.columnar.hash_index import hashes64
from cerata.projections.frames.reader import Frames
from cerata.projections.vectors.columns import STEP_NUMBERS, Matrix, SpaceRows, matrix_of
from cerata.projections.vectors.maxsim import Tokens
from cerata.projections.vectors.nearest import Metric, lengths_of
from cerata.projections.vectors.projection import key_of
from cerata.projections.vectors.reader import Space

from .hnsw import Graph
from .vector_places import VectorPlaces

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


# --- The token vectors of a space: read from the log, and cached up to a limit --------------------


class StoredTokens(StoredSpace):
    """The token vectors of a space in a log, by row; any thread may read them."""

    def __init__(self, log: Log, source: SpaceRows) -> None:
        super().__init__(log, source)
        self.size_max = log.caches.tokens
        """Most cached bytes of the space: above it the oldest entries are dropped."""
        self._kept: dict[int, Tokens] = {}
        self._size = 0

    def rows(self, space: Space, wanted: I64) -> Iterator[Tokens]:
        """Yield the token vectors in rows of the space, (tokens, dimension) int8 each.

        Cost: on first use a read and a hash of each, then nothing while they are cached.

        Raises:
            UnreadableVectors: the vectors of an event are damaged or missing.
        """
        for row in cast("list[int]", wanted.tolist()):
            tokens = self._kept.get(row)
            yield self._readable(space, row) if tokens is None else tokens

    def _readable(self, space: Space, row: int) -> Tokens:
        try:
            return self._read(space, row)
        except Corrupt as error:
            raise self._unreadable(space, np.array([row])) from error

    def _read(self, space: Space, row: int) -> Tokens:
        event = self._log.event(int(space.seqs[row]))
        body = event.body
        tokens: Tokens | None = None
        for embedding in body.embeddings if isinstance(body, PutFrame | PutEmbedding) else ():
            if key_of(embedding) == self._key:
                try:
                    data = event.attached(embedding.data)
                except NotFound:
                    continue
                tokens = cast("Tokens", matrix_of(data, self._key))
        if tokens is None:
            raise Corrupt(
                f"The token vectors of event {event.seq:,} are missing",
                where=self._log.path,
                remedy="Run 'cerata file verify' to see the damage.",
            )
        self._keep(row, tokens)
        return tokens

    def _keep(self, row: int, tokens: Tokens) -> None:
        with self._mutex:
            if row in self._kept:
                return
            self._kept[row] = tokens
            self._size += tokens.nbytes
            while self._size > self.size_max and len(self._kept) > 1:
                self._size -= self._kept.pop(next(iter(self._kept))).nbytes


# --- Vectors of a space that this process has read and verified -----------------------------------


NO_SLOT: Final = -1
"""In place of a slot: the vector is not in memory."""

_SUMMED: Final = (np.uint64, np.uint32, np.uint8)
"""The types of the numbers that are summed: the widest of which a row has a whole number."""


class _Piece(NamedTuple):
    """Room for vectors: their slots count from ``first``; ``vectors`` and ``lengths`` by slot."""

    first: int
    vectors: Matrix
    lengths: F64

    @property
    def end(self) -> int:
        return self.first + len(self.lengths)


class _State(NamedTuple):
    slots: I32
    pieces: tuple[_Piece, ...]


class KeptVectors:
    """Vectors in memory with their lengths, by row; any thread may read them, one may add.

    - Vectors take slots in order of arrival, so that the memory is used from its start: the rows of
      a question are far apart, and pages of 2 MiB would all be touched by a few of them.
    - Growing adds a piece and copies no vector.
    """

    def __init__(self, model: Matrix) -> None:
        """``model`` has the dtype and the dimension; (n, dimension)."""
        self._model = model
        self._count = 0
        # Replaced as a whole, for readers without a lock.
        self._state = _State(np.empty(0, np.int32), ())

    def find(self, rows: I64) -> tuple[Matrix, F64] | None:
        """Return the vectors of rows, which ascend, and their lengths; None if one is missing.

        Vectors that are side by side in memory are read-only, and not copied.
        """
        slots = self._state.slots
        if not len(rows):
            return self._model[:0], np.empty(0)
        if int(rows[-1]) >= len(slots):
            return None
        places = slots.take(rows)
        if int(places.min()) == NO_SLOT:
            return None
        # After the slots, which another thread may have filled with those of a new piece.
        pieces = self._state.pieces
        if len(pieces) == 1:
            [piece] = pieces
            start, end = int(places[0]), int(places[-1]) + 1
            if end - start == len(rows) and bool((places[1:] > places[:-1]).all()):
                return _read_only(piece.vectors[start:end]), _read_only(piece.lengths[start:end])
            return piece.vectors.take(places, axis=0), piece.lengths.take(places)
        vectors = np.empty((len(rows), self._model.shape[1]), self._model.dtype)
        lengths = np.empty(len(rows))
        for piece in pieces:
            inside = (places >= piece.first) & (places < piece.end)
            vectors[inside] = piece.vectors.take(places[inside] - piece.first, axis=0)
            lengths[inside] = piece.lengths.take(places[inside] - piece.first)
        return vectors, lengths

    def missing(self, rows: I64) -> I64:
        """Return those of the rows, which ascend, that are not in memory."""
        slots = self._state.slots
        inside = int(rows.searchsorted(len(slots)))
        is_missing = np.ones(len(rows), np.bool_)
        is_missing[:inside] = slots[rows[:inside]] == NO_SLOT
        missing: I64 = rows[is_missing]
        return missing

    def add(self, rows: I64, vectors: Matrix, lengths: F64, count: int) -> None:
        """Keep the vectors of rows that are missing; ``count`` is the number of rows of the space.

        Cost: the rows; the slots of all rows if the space has grown.
        """
        slots, pieces = self._state
        if len(slots) < count:
            grown = np.full(max(count, len(slots) * 3 // 2), NO_SLOT, np.int32)
            grown[: len(slots)] = slots
            slots = grown
        end = pieces[-1].end if pieces else 0
        if self._count + len(rows) > end:
            # Memory without vectors is never touched: room for all rows, and slots left unused.
            room = max(count - end, len(rows), end // 2)
            matrix = np.empty((room, self._model.shape[1]), self._model.dtype)
            pieces = (*pieces, _Piece(end, matrix, np.empty(room)))
            self._count = end
        self._state = _State(slots, pieces)
        piece = pieces[-1]
        start = self._count - piece.first
        piece.vectors[start : start + len(rows)] = vectors
        piece.lengths[start : start + len(rows)] = lengths
        # Last, since a reader looks at the slots first.
        slots[rows] = np.arange(self._count, self._count + len(rows))
        self._count += len(rows)


class VerifiedVectors:
    """The sum and the length of each vector that was verified, by row; one thread adds.

    A change of a single byte changes the sum, so a vector with its sum is the verified one.
    """

    def __init__(self) -> None:
        self._has = np.empty(0, np.bool_)
        self._sums = np.empty(0, np.uint64)
        self._lengths = np.empty(0)

    def is_known(self, rows: I64, sums: U64) -> Mask:
        """Return the mask of the rows, which ascend, that were verified with these sums."""
        inside = int(rows.searchsorted(len(self._has)))
        is_equal = np.zeros(len(rows), np.bool_)
        within = rows[:inside]
        is_equal[:inside] = self._has[within] & (self._sums[within] == sums[:inside])
        return is_equal

    def lengths(self, rows: I64) -> F64:
        """Return the lengths of rows, which ascend; any number for a row that is not verified."""
        lengths = np.zeros(len(rows))
        inside = int(rows.searchsorted(len(self._has)))
        lengths[:inside] = self._lengths[rows[:inside]]
        return lengths

    def add(self, rows: I64, sums: U64, lengths: F64, count: int) -> None:
        """Note that rows are verified; ``count`` is the number of rows of the space."""
        if len(self._has) < count:
            room = max(count, len(self._has) * 3 // 2)
            self._has = _grown(self._has, room)
            self._sums = _grown(self._sums, room)
            self._lengths = _grown(self._lengths, room)
        self._sums[rows] = sums
        self._lengths[rows] = lengths
        self._has[rows] = True


def _grown(column: npt.NDArray[Item], room: int) -> npt.NDArray[Item]:
    grown = np.zeros(room, column.dtype)
    grown[: len(column)] = column
    return grown


def _read_only(view: npt.NDArray[Item]) -> npt.NDArray[Item]:
    view.flags.writeable = False
    return view


def sums_of(data: U8) -> U64:
    """Return the sum of the numbers of each row of bytes, modulo 2**64; (rows, size) to (rows,)."""
    dtype = next(dtype for dtype in _SUMMED if data.shape[1] % np.dtype(dtype).itemsize == 0)
    sums: U64 = data.view(dtype).sum(axis=1, dtype=np.uint64)
    return sums
