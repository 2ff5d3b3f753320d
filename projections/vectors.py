"""The fold that knows vectors: which frames have one, in which space, and the signs of it.

Owns which events it handles. A vector comes with its frame or later; a later one in the same space
takes its place. The vectors of a text's tokens are one row together. Whether its frame is current
is `frames`' to say; ranking is `nearest`'s, and by tokens `maxsim`'s.

Rules of the fold, which never fails on a valid log: what was erased, names a frame that comes after
it, or whose vector is not there or no vector at all, has no row.
"""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from cerata.engine.draft_checks import vector_count
from cerata.engine.errors import Corrupt, NotFound
from cerata.engine.events import Embedding, Event, PutEmbedding, PutFrame, is_token_space

from .column_fold import ColumnFold
from .projection import FoldedEvent
from .vector_columns import Key, NewVector, VectorColumns, matrix_of
from .vector_table import Vectors

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
        """Fold events; where a vector cannot be read, those before it.

        Raises:
            Corrupt: the bytes of a vector are damaged.
        """
        try:
            super().apply(events)
        except _Unreadable as error:
            # The steps before the one that met it are folded already.
            super().apply([one for one in events if self._seq < one.seq < error.seq])
            raise error.corrupt from None

    def _fold(self, events: Sequence[FoldedEvent]) -> None:
        found: list[NewVector] = []
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
                    data = _held(event, embedding)
                except Corrupt as error:
                    raise _Unreadable(event.seq, error) from error
                if data is not None:
                    check = int.from_bytes(embedding.data.hash[:8], "little")
                    found.append(NewVector(event.seq, frame, key_of(embedding), check, data))
        if found := [
            one for one, is_whole in zip(found, _are_whole(found), strict=True) if is_whole
        ]:
            self._columns.append(found)


def _is_misplaced(embedding: Embedding, body: PutFrame) -> bool:
    """Tell whether one is where the other belongs, so that a frame has one row in a space."""
    return is_token_space(embedding.space) != (embedding is body.token_embedding)


def _held(event: FoldedEvent, embedding: Embedding) -> bytes | None:
    """Return the bytes of a vector, or of a text's, one a token; None where it is none.

    Only events of the log have any.

    Raises:
        Corrupt: they are damaged.
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


def _are_whole(vectors: Sequence[NewVector]) -> list[bool]:
    """Return for each vector whether all of its numbers are finite, as every whole number is."""
    whole = [True] * len(vectors)
    by_key = dict[Key, list[int]]()
    for place, one in enumerate(vectors):
        by_key.setdefault(one.key, []).append(place)
    for key, places in by_key.items():
        if key[1] == "i1":
            continue
        rows = matrix_of(b"".join(vectors[place].data for place in places), key)
        finite = np.isfinite(rows).all(axis=1)
        for place in np.flatnonzero(~finite).tolist():
            whole[places[place]] = False
    return whole


class _Unreadable(Exception):
    """A vector of event ``seq`` cannot be read."""

    def __init__(self, seq: int, corrupt: Corrupt) -> None:
        super().__init__(str(corrupt))
        self.seq = seq
        self.corrupt = corrupt


def key_of(embedding: Embedding) -> Key:
    """Return what an embedding has in common with the others of its space."""
    return embedding.space, embedding.dtype, embedding.dimension
