"""Where the vectors of a space are in the log's file.

Owns the runs of adjacent vectors, and the reading of their bytes. Leaves out the verification of
these bytes (`vector_store`).
"""

import threading
from typing import Final, NamedTuple

import numpy as np

from cerata.engine.disk.storage import StorageFile
from cerata.engine.draft_validation import DTYPE_SIZES
from cerata.engine.errors import Corrupt
from cerata.engine.events import is_token_space
from cerata.engine.log import Log
from cerata.engine.log_file.file import LogFile
from cerata.projections.columnar.columns import I64, U8, rows_up_to
from cerata.projections.core.seal import Range
from cerata.projections.vectors.columns import Key, SpaceRows
from cerata.projections.vectors.reader import Vectors

UNPLACED: Final = -1
"""In place of an offset: the vector is not sealed yet, and has none."""


class Runs(NamedTuple):
    """Runs of rows whose vectors are adjacent in the file, sorted by first row; (runs,) each.

    - The first run is empty and before all rows, so that each row has a run at or before it.
    """

    firsts: I64
    counts: I64
    offsets: I64

    @classmethod
    def of(cls, firsts: I64, counts: I64, offsets: I64) -> "Runs":
        """Return runs in any order; of two with a common first row the later."""
        order = np.argsort(firsts, kind="stable")
        return cls(
            *(
                np.append(start, column[order])
                for start, column in ((-1, firsts), (0, counts), (0, offsets))
            )
        )

    def places(self, rows: I64, size: int) -> I64:
        """Return the file offsets of rows of so many bytes, or `UNPLACED`."""
        runs = self.firsts.searchsorted(rows, "right") - 1
        places = rows - self.firsts[runs]
        return np.where(places < self.counts[runs], self.offsets[runs] + size * places, UNPLACED)

    def replaced_by(self, runs: "Runs") -> "Runs":
        """Return the runs, with later runs in place of those that start inside one of these."""
        at = runs.firsts.searchsorted(self.firsts, "right") - 1
        stays = self.firsts >= runs.firsts[at] + runs.counts[at]
        stays[0] = False
        return Runs.of(
            *(
                np.concatenate([own[stays], other[1:]])
                for own, other in zip(self, runs, strict=True)
            )
        )


NO_RUNS: Final = Runs.of(*[np.empty(0, np.int64)] * 3)


class VectorPlaces:
    """The places of a space's vectors; any thread may use them.

    - The rows are those of ``source``.
    - Places are hints: the caller verifies the vectors that it finds there.
    """

    def __init__(self, log: Log, source: SpaceRows, log_file: LogFile, runs: Runs) -> None:
        """``runs`` are places in ``log_file`` that are known already."""
        self._log = log
        self.source = source
        self._size = DTYPE_SIZES[source.key[1]] * source.key[2]
        self._mutex = threading.RLock()
        # Replaced as a whole, for readers without a lock. A compactor may replace the file.
        self._current: tuple[LogFile, Runs] = log_file, runs

    def read(self, seqs: I64, rows: I64, *, again: bool = False) -> U8:
        """Return the bytes of rows, which ascend; (n, size). Not verified.

        Cost: a read for each group of adjacent rows; on the first use of a batch or segment its
        index, too.

        Args:
            seqs: The event of each row of the space.
            rows: The rows; (n,).
            again: True to look the places up, since the vectors were not where they should be.

        Raises:
            Corrupt: an event has no such vector.
        """
        file, offsets = self._places(seqs, rows, again=again)
        is_sealed = offsets != UNPLACED
        if bool(is_sealed.all()):
            return read_rows(file.file, offsets, self._size)
        # Rows in the ring may come before rows of a large batch, which has its place at once.
        data = np.empty((len(rows), self._size), np.uint8)
        data[is_sealed] = read_rows(file.file, offsets[is_sealed], self._size)
        data[~is_sealed] = self._log.embeddings(self.source.key, seqs[rows[~is_sealed]])
        return data

    def runs(self, seqs: I64, start: int, end: int) -> Runs:
        """Return the runs of the rows [start, end), without those of events in the ring.

        Raises:
            Corrupt: an event has no such vector.
        """
        rows = np.arange(start, end)
        _, offsets = self._places(seqs, rows, again=False)
        starts = np.flatnonzero(np.append(True, np.diff(offsets) != self._size))
        counts = np.diff(np.append(starts, len(rows)))
        starts, counts = (part[offsets[starts] != UNPLACED] for part in (starts, counts))
        return Runs.of(rows[starts], counts, offsets[starts])

    def _places(self, seqs: I64, rows: I64, *, again: bool) -> tuple[LogFile, I64]:
        """Return the file, and the offsets in it of rows; `UNPLACED` for events in the ring."""
        file, runs = self._current
        offsets = runs.places(rows, self._size)
        unknown = rows if again or file is not self._log.file else rows[offsets == UNPLACED]
        if not len(unknown):
            return file, offsets
        with self._mutex:
            while True:
                file, runs = self._current
                if file is not self._log.file:
                    # The file that replaced it has the vectors elsewhere.
                    file, runs, unknown = self._log.file, NO_RUNS, rows
                runs = runs.replaced_by(self._looked_up(seqs, unknown))
                if file is self._log.file:
                    self._current = file, runs
                    return file, runs.places(rows, self._size)

    def _looked_up(self, seqs: I64, rows: I64) -> Runs:
        """Return the runs of the columns that have the vectors of rows."""
        parts = [tuple(np.empty(0, np.int64) for _ in Runs._fields)]
        for events, offset in self._log.embedding_columns(self.source.key, seqs[rows]):
            at = seqs.searchsorted(events)
            # An event may have bytes that are no vector, and so no row.
            places = np.flatnonzero(seqs[np.minimum(at, len(seqs) - 1)] == events)
            of_events = at[places]
            starts = np.flatnonzero(np.append(True, np.diff(of_events - places) != 0))
            counts = np.diff(np.append(starts, len(places)))
            parts.append((of_events[starts], counts, offset + self._size * places[starts]))
        return Runs.of(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def read_rows(file: StorageFile, offsets: I64, size: int) -> U8:
    """Return the bytes of rows at offsets, in order; adjacent rows take one read.

    A read of the bytes between two rows takes longer than another read: they are copied twice.

    Shape: (len(offsets), size). Bytes past the end of the file are blanks.
    """
    starts = np.flatnonzero(np.append(len(offsets) > 0, np.diff(offsets) != size))
    lengths = (size * np.diff(np.append(starts, len(offsets)))).tolist()
    read = file.read_at
    reads = zip(offsets[starts].tolist(), lengths, strict=True)
    pieces = [read(first, length) for first, length in reads]
    if sum(map(len, pieces)) < size * len(offsets):
        # Pad a short read of a truncated file; the hash check rejects the padding.
        pieces = [piece.ljust(length) for piece, length in zip(pieces, lengths, strict=True)]
    return np.frombuffer(bytearray().join(pieces), np.uint8).reshape(-1, size)


# --- The directory of vectors: their places in the file, saved with the chunks of their projection
#
# A process that opens a file finds vectors without a read of each segment's index.


RUN: Final = np.dtype([("first", "<u8"), ("offset", "<u8"), ("count", "<u4"), ("space", "<u4")])
"""A run in a chunk: first row in its space, file offset, vectors, number of the space. On disk."""

_OFFSET_MAX: Final = 1 << 62


class PlaceDirectory:
    """The places of all vectors; the caller excludes other threads.

    - A place may be wrong, such as that of an earlier file. Vectors are verified when read.
    """

    def __init__(self, log: Log) -> None:
        self._log = log
        self._file = log.file
        self._loaded: list[bytes] = []
        self._spaces: dict[Key, VectorPlaces] = {}

    def clear(self) -> None:
        """Forget all places."""
        self._loaded.clear()
        self._spaces.clear()

    def add(self, stored: bytes, log_file: LogFile) -> None:
        """Take in the runs of a chunk of a file."""
        if log_file is not self._file:
            self._file = log_file
            self._loaded.clear()
        if stored:
            self._loaded.append(stored)

    def places(self, source: SpaceRows) -> VectorPlaces:
        """Return the places of a space."""
        places = self._spaces.get(source.key)
        if places is None or places.source is not source:
            places = VectorPlaces(self._log, source, self._file, self._runs_of(source.code))
            self._spaces[source.key] = places
        return places

    def encoded(self, vectors: Vectors, span: Range) -> bytes:
        """Return the stored form of the runs of a range of events; without those of the ring.

        Cost: the index of each segment and large batch, unless its places are known.
        """
        parts = [np.empty(0, RUN)]
        for space in vectors.spaces(span[1]):
            start, end = (rows_up_to(space.seqs, seq) for seq in span)
            if start == end or is_token_space(space.key[0]):
                continue
            try:
                runs = self.places(space.rows).runs(space.seqs, start, end)
            except Corrupt:
                # A checkpoint does not need the places; a read of these vectors raises.
                continue
            part = np.zeros(len(runs.firsts) - 1, RUN)
            part["first"], part["count"], part["offset"] = (column[1:] for column in runs)
            part["space"] = space.rows.code
            parts.append(part)
        return np.concatenate(parts).tobytes()

    def _runs_of(self, code: int) -> Runs:
        """Return the loaded runs of a space, without impossible runs."""
        whole = b"".join(
            [stored[: len(stored) // RUN.itemsize * RUN.itemsize] for stored in self._loaded]
        )
        runs = np.frombuffer(whole, RUN)
        is_valid = (runs["space"] == code) & (runs["offset"] < _OFFSET_MAX)
        runs = runs[is_valid & (runs["first"] < _OFFSET_MAX)]
        if not len(runs):
            return NO_RUNS
        return Runs.of(*(runs[name].astype(np.int64) for name in ("first", "count", "offset")))
