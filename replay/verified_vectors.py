"""Vectors of a space that this process has read and verified.

Owns two memories of them: `KeptVectors` has the numbers, `VerifiedVectors` a sum of each vector, so
that a vector that is read again need not be hashed again. Leaves out reading and hashing
(`vector_store`), and when to use which.
"""

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from cerata.projections.columnar.columns import F64, I32, I64, U8, U64, Item, Mask
from cerata.projections.vectors.columns import Matrix

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
