"""The fold of vectors: the frames of each space, and the signs of their vectors.

Owns the handled events. A vector is in the event of its frame or a later event; a later vector in
the same space replaces it. The vectors of a text's tokens are a single row. Leaves out the mask of
current frames (`frames.reader`) and ranking (`nearest`; `maxsim` for token vectors).

Rules of the fold, which never fails on a valid log: no row for an erased event, a reference to a
later frame, a missing attachment, or bytes that are no finite vector.
"""

from collections.abc import Sequence
from typing import ClassVar, TypeAlias

from cerata.engine.draft_validation import vector_count
from cerata.engine.errors import Corrupt, NotFound
from cerata.engine.events import Embedding, Event, PutEmbedding, PutFrame, is_token_space

from ..columnar.columns import AppendOnly
from ..core.column_fold import ColumnFold
from ..core.event_batch import EventBatch, EventColumns
from ..core.projection import FoldedEvent
from .columns import Key, NewVector, VectorColumns
from .reader import Vectors

_BODIES = (PutFrame, PutEmbedding)
_PUT = PutFrame.wire_name
_TYPES = frozenset(kind.wire_name for kind in _BODIES)
_LATER = frozenset((PutEmbedding.wire_name,))


class VectorsProjection(ColumnFold[VectorColumns]):
    """Folds the vectors of frames into columns."""

    name: ClassVar[str] = "vectors"
    version: ClassVar[int] = 2

    def __init__(self) -> None:
        super().__init__(VectorColumns())
        self._vectors: Vectors | None = None

    def snapshot(self) -> Vectors:
        """Return an immutable reader of the state at ``seq``; any thread may use it."""
        if self._vectors is None or self._vectors.seq != self.seq:
            self._vectors = Vectors(self._columns, self.seq)
        return self._vectors

    def _growing(self) -> Sequence[AppendOnly]:
        return self._columns.growing_columns()

    def apply(self, events: Sequence[FoldedEvent]) -> None:
        """Fold events; if a vector cannot be read, fold the events before it.

        Raises:
            Corrupt: the bytes of a vector are damaged.
        """
        try:
            super().apply(events)
        except _Unreadable as error:
            # Earlier steps are folded already.
            super().apply([event for event in events if self.seq < event.seq < error.seq])
            raise error.corrupt from None

    def _fold(self, events: EventBatch) -> None:
        if not _have_vectors(events):
            return
        if not events.of_types(_LATER) and self._fold_alike(events.columns(_PUT)):
            return
        vectors: list[NewVector] = []
        # By shape, if its embeddings have a row: most of a step share one shape.
        valid: dict[_Shape, bool] = {}
        for event in events.of_types(_TYPES):
            body = event.body
            if not isinstance(body, _BODIES):
                continue
            embeddings = body.embeddings
            if not embeddings:
                continue
            is_of_frame = isinstance(body, PutFrame)
            tokens = body.token_embedding if isinstance(body, PutFrame) else None
            frame = body.frame if isinstance(body, PutEmbedding) else event.seq
            if not 0 < frame <= event.seq:
                continue
            for embedding in embeddings:
                is_tokens = embedding is tokens
                key = key_of(embedding)
                shape = (*key, embedding.data.size, is_of_frame, is_tokens)
                is_valid = valid.get(shape)
                if is_valid is None:
                    is_valid = valid[shape] = _is_valid(
                        embedding, is_of_frame=is_of_frame, is_tokens=is_tokens
                    )
                data = _attached(event, embedding) if is_valid else None
                if data is not None:
                    check = embedding.data.hash[:8]
                    vectors.append(NewVector(event.seq, frame, key, check, data))
        if vectors:
            self._columns.append(vectors)

    def _fold_alike(self, births: EventColumns) -> bool:
        """Append the vectors of frames that are alike, by column; return whether they are.

        Alike: this process has hashed their attachments, each has at most a vector, in one space,
        and those with a vector have no other attachment.
        """
        if births.hashed is None:
            return False
        bodies = [body for body in births.bodies if isinstance(body, PutFrame)]
        count = len(births.bodies)
        if [body.token_embedding for body in bodies].count(None) < count:
            return False
        seqs, attached = births.seqs, births.hashed
        embeddings = [body.embedding for body in bodies if body.embedding is not None]
        if len(embeddings) < count:
            places = [place for place, body in enumerate(bodies) if body.embedding is not None]
            seqs = [seqs[place] for place in places]
            attached = [attached[place] for place in places]
        data = [of_frame[0] for of_frame in attached if len(of_frame) == 1]
        first = embeddings[0]
        are_alike = (
            len(data) == len(embeddings)
            and len({embedding.space for embedding in embeddings}) == 1
            and len({embedding.dtype for embedding in embeddings}) == 1
            and len({embedding.dimension for embedding in embeddings}) == 1
            and {*map(len, data)} == {embedding.data.size for embedding in embeddings}
            and len({*map(len, data)}) == 1
        )
        if not are_alike:
            return False
        if _is_valid(first, is_of_frame=True, is_tokens=False):
            checks = [embedding.data.hash[:8] for embedding in embeddings]
            self._columns.append_births(key_of(first), seqs, checks, data)
        return True


def _have_vectors(events: EventBatch) -> bool:
    if events.has_types(_LATER):
        return True
    bodies = events.columns(PutFrame.wire_name).bodies
    frames = [body for body in bodies if isinstance(body, PutFrame)]
    return [frame.embedding for frame in frames].count(None) < len(frames) or [
        frame.token_embedding for frame in frames
    ].count(None) < len(frames)


_Shape: TypeAlias = tuple[str, str, int, int, bool, bool]
"""Space, dtype, dimension and size; is it in a frame's event, and in the field of token vectors."""


def _is_valid(embedding: Embedding, *, is_of_frame: bool, is_tokens: bool) -> bool:
    """Return whether the bytes of an embedding may be a row of its space.

    In the wrong field of a frame they are none, so a frame has a single row in a space.
    """
    if is_of_frame and is_token_space(embedding.space) != is_tokens:
        return False
    return bool(embedding.space) and vector_count(embedding) > 0


def _attached(event: FoldedEvent, embedding: Embedding) -> bytes | None:
    """Return the bytes of a vector, or of a text's token vectors; None if missing.

    Only events of the log have attachments.

    Raises:
        _Unreadable: the bytes are damaged.
    """
    if not isinstance(event, Event):
        raise TypeError(f"{type(event).__name__} {event.seq} has no attachments to fold")
    try:
        return event.attached(embedding.data)
    except NotFound:
        return None
    except Corrupt as error:
        raise _Unreadable(event.seq, error) from error


class _Unreadable(Exception):
    """A vector of event ``seq`` cannot be read."""

    def __init__(self, seq: int, corrupt: Corrupt) -> None:
        super().__init__(str(corrupt))
        self.seq = seq
        self.corrupt = corrupt


def key_of(embedding: Embedding) -> Key:
    """Return the key of an embedding's space."""
    return embedding.space, embedding.dtype, embedding.dimension
