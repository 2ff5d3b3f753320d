"""The directory of vectors: their places in the file, saved with the chunks of their projection.

Owns the stored form of the runs, and the places of each space. A process that opens a file finds
vectors without a read of each segment's index. Leaves out the reading of vectors (`vector_places`).
"""

from typing import Final

import numpy as np

from cerata.engine.errors import Corrupt
from cerata.engine.events import is_token_space
from cerata.engine.file import LogFile
from cerata.engine.log import Log
from cerata.projections.columnar.columns import rows_up_to
from cerata.projections.core.ranges import Range
from cerata.projections.vectors.columns import Key, SpaceRows
from cerata.projections.vectors.reader import Vectors

from .vector_places import NO_RUNS, Runs, VectorPlaces

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
