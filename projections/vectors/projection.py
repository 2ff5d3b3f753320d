"""The fold of vectors: the frames of each space, and the signs of their vectors.

Owns the handled events. A vector is in the event of its frame or a later event; a later vector in
the same space replaces it. The vectors of a text's tokens are a single row. Leaves out the mask of
current frames (`frames.reader`) and ranking (`nearest`; `maxsim` for token vectors).

Rules of the fold, which never fails on a valid log: no row for an erased event, a reference to a
later frame, a missing attachment, or bytes that are no finite vector.
"""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from cerata.engine.draft_validation import vector_count
from cerata.engine.errors import Corrupt, NotFound
from cerata.engine.events import Embedding, Event, PutEmbedding, PutFrame, is_token_space

from ..core.column_fold import ColumnFold
from ..core.projection import FoldedEvent
from .columns import Key, NewVector, VectorColumns, matrix_of
from .reader import Vectors

_TYPES = frozenset((PutFrame.wire_name, PutEmbedding.wire_name))


class VectorsProjection(ColumnFold[VectorColumns]):
    """Folds the vectors of frames into columns."""

    name: ClassVar[str] = "vectors"
    version: ClassVar[int] = 2

    def __init__(self) -> None:
        super().__init__(VectorColumns())
        self._vectors: Vectors | None = None

    def snapshot(self) -> Vectors:
        """Return an immutable reader of the state at ``seq``; any thread may use it."""
        if self._vectors is None or self._vectors.seq != self._seq:
            self._vectors = Vectors(self._columns, self._seq)
        return self._vectors

    def apply(self, events: Sequence[FoldedEvent]) -> None:
        """Fold events; if a vector cannot be read, fold the events before it.

        Raises:
            Corrupt: the bytes of a vector are damaged.
        """
        try:
            super().apply(events)
        except _Unreadable as error:
            # Earlier steps are folded already.
            super().apply([event for event in events if self._seq < event.seq < error.seq])
            raise error.corrupt from None

    def _fold(self, events: Sequence[FoldedEvent]) -> None:
        vectors: list[NewVector] = []
        for event in events:
            if event.type not in _TYPES:
                continue
            body = event.body
            if not isinstance(body, PutFrame | PutEmbedding):
                continue
            frame = body.frame if isinstance(body, PutEmbedding) else event.seq
            if not 0 < frame <= event.seq:
                continue
            for embedding in body.embeddings:
                if isinstance(body, PutFrame) and _is_misplaced(embedding, body):
                    continue
                try:
                    data = _attached(event, embedding)
                except Corrupt as error:
                    raise _Unreadable(event.seq, error) from error
                if data is not None:
                    check = int.from_bytes(embedding.data.hash[:8], "little")
                    vectors.append(NewVector(event.seq, frame, key_of(embedding), check, data))
        if vectors := [
            vector
            for vector, is_finite in zip(vectors, _are_finite(vectors), strict=True)
            if is_finite
        ]:
            self._columns.append(vectors)


def _is_misplaced(embedding: Embedding, body: PutFrame) -> bool:
    """Return whether an embedding is in the wrong field; so a frame has a single row in a space."""
    return is_token_space(embedding.space) != (embedding is body.token_embedding)


def _attached(event: FoldedEvent, embedding: Embedding) -> bytes | None:
    """Return the bytes of a vector, or of a text's token vectors; None if missing or invalid.

    Only events of the log have attachments.

    Raises:
        Corrupt: the bytes are damaged.
    """
    if not isinstance(event, Event):
        raise TypeError(f"{type(event).__name__} {event.seq} has no attachments to fold")
    if not vector_count(embedding):
        return None
    try:
        data = event.attached(embedding.data)
    except NotFound:
        return None
    return data if embedding.space else None


def _are_finite(vectors: Sequence[NewVector]) -> list[bool]:
    """Return for each vector whether all of its numbers are finite; int8 numbers always are."""
    results = [True] * len(vectors)
    by_key = dict[Key, list[int]]()
    for place, vector in enumerate(vectors):
        by_key.setdefault(vector.key, []).append(place)
    for key, places in by_key.items():
        if key[1] == "i1":
            continue
        rows = matrix_of(b"".join(vectors[place].data for place in places), key)
        finite = np.isfinite(rows).all(axis=1)
        for place in np.flatnonzero(~finite).tolist():
            results[places[place]] = False
    return results


class _Unreadable(Exception):
    """A vector of event ``seq`` cannot be read."""

    def __init__(self, seq: int, corrupt: Corrupt) -> None:
        super().__init__(str(corrupt))
        self.seq = seq
        self.corrupt = corrupt


def key_of(embedding: Embedding) -> Key:
    """Return the key of an embedding's space."""
    return embedding.space, embedding.dtype, embedding.dimension
