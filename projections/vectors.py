"""The fold that knows vectors: which frames have one, in which space, and the signs of it.

Owns which events it handles. A vector comes with its frame or later; a later one in the same space
takes its place. Whether its frame is current is `frames`' to say, and ranking is `nearest`'s.

Rules of the fold, which never fails on a valid log: what was erased, names a frame that comes after
it, or whose vector is not there or no vector at all, has no row.
"""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from cerata.engine.draft_checks import DTYPE_SIZES
from cerata.engine.errors import Corrupt, NotFound
from cerata.engine.events import Embedding, Event, PutEmbedding, PutFrame
from cerata.engine.limits import EMBEDDING_DIMENSION_MAX

from .column_fold import ColumnFold
from .projection import FoldedEvent
from .vector_columns import Key, NewVector, VectorColumns
from .vector_table import Vectors

_TYPES = frozenset((PutFrame.wire_name, PutEmbedding.wire_name))


class VectorsProjection(ColumnFold[VectorColumns]):
    """Folds the vectors of frames into columns."""

    name: ClassVar[str] = "vectors"
    version: ClassVar[int] = 1

    def __init__(self) -> None:
        super().__init__(VectorColumns())
        self._vectors: Vectors | None = None

    def snapshot(self) -> Vectors:
        """Return an immutable reader of the state at ``seq``; any thread may use it."""
        if self._vectors is None or self._vectors.seq != self._seq:
            self._vectors = Vectors(self._columns, self._seq)
        return self._vectors

    def apply(self, events: Sequence[FoldedEvent]) -> None:
        """Fold events; where a vector cannot be read, those before it.

        Raises:
            Corrupt: the bytes of a vector are damaged.
        """
        try:
            super().apply(events)
        except _Unreadable as error:
            super().apply(events[: error.place])
            raise error.corrupt from None

    def _fold(self, events: Sequence[FoldedEvent]) -> None:
        found: list[NewVector] = []
        for place, event in enumerate(events):
            if event.type not in _TYPES:
                continue
            body = event.body
            if not isinstance(body, PutFrame | PutEmbedding) or body.embedding is None:
                continue
            frame = body.frame if isinstance(body, PutEmbedding) else event.seq
            if not 0 < frame <= event.seq:
                continue
            try:
                data = _held(event, body.embedding)
            except Corrupt as error:
                raise _Unreadable(place, error) from error
            if data is not None:
                check = int.from_bytes(body.embedding.data.hash[:8], "little")
                found.append(NewVector(event.seq, frame, key_of(body.embedding), check, data))
        if found:
            self._columns.append(found)


def _held(event: FoldedEvent, embedding: Embedding) -> bytes | None:
    """Return the bytes of a vector, which only an event of the log has; None where it is none.

    Raises:
        Corrupt: they are damaged.
    """
    if not isinstance(event, Event):
        raise TypeError(f"{type(event).__name__} {event.seq} has no attachments to fold")
    size = DTYPE_SIZES.get(embedding.dtype, 0) * embedding.dimension
    if not (0 < size == embedding.data.size and embedding.dimension <= EMBEDDING_DIMENSION_MAX):
        return None
    try:
        data = event.attached(embedding.data)
    except NotFound:
        return None
    is_whole = embedding.dtype == "i1" or bool(np.isfinite(np.frombuffer(data, "<f4")).all())
    return data if is_whole and embedding.space else None


class _Unreadable(Exception):
    """A vector cannot be read; ``place`` is that of its event among those that were given."""

    def __init__(self, place: int, corrupt: Corrupt) -> None:
        super().__init__(str(corrupt))
        self.place = place
        self.corrupt = corrupt


def key_of(embedding: Embedding) -> Key:
    """Return what an embedding has in common with the others of its space."""
    return embedding.space, embedding.dtype, embedding.dimension
