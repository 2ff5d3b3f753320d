"""Frame conversion: the values and contents of frames, from their events or drafts.

Owns `Frame` values, the bytes of blobs and attachments, and the embeddings of later events. Leaves
out which frames exist (`layers`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from cerata.engine.errors import Corrupt
from cerata.engine.events import (
    Attachment,
    Embedding,
    Erased,
    Event,
    PutEmbedding,
    PutFrame,
    UnknownBody,
    chosen,
)
from cerata.engine.json_value import shown_id
from cerata.engine.late import late
from cerata.engine.log_file.horizon import content_pruned
from cerata.engine.salted_hashes import content_hash_of
from cerata.engine.segments.columnar_events import ColumnarEvents
from cerata.engine.unreadable import UNREADABLE, frame_place, readable
from cerata.projections.columnar.times import to_datetime

from ..values.arguments import copied, joined_text
from ..values.frames import Frame

if TYPE_CHECKING:
    from ..values.acts import Act
    from . import fact_conversion
    from .layers import Layers
    from .pending import PendingEvent
else:
    fact_conversion = late("cerata.memory.snapshot.fact_conversion")


_GAP_MAX: Final = 16
"""Events between two frames to read along: about as long as the look-up of an event."""

_RUN_MIN: Final = 8
"""The loop over single frames reads fewer."""

_SEQUENCE_EVENTS: Final = 1_024


def frames_of(
    layers: Layers, numbers: Collection[int], act: Callable[[int], Act | None]
) -> dict[int, Frame]:
    """Return frames by id, as `frame_of`, with one read for frames that lie close together.

    Each event lives only until it is a frame: a thousand at once would start the garbage collector.
    An unreadable frame is left out and named.

    Raises:
        NotFound: no frame with an id exists within the scope.
    """
    frames: dict[int, Frame] = {}
    with suppress(Corrupt):
        # A damaged neighbour must not hide a frame: the loop below reads the rest one by one.
        for event in _close_events(layers, numbers):
            layers.check_has(event.seq)
            frames[event.seq] = _frame_from(layers, event.seq, act, event)
    rest = [number for number in numbers if number not in frames]
    read = readable(rest, lambda number: (number, frame_of(layers, number, act)), frame_place)
    frames.update(read)
    return frames


def _close_events(layers: Layers, numbers: Iterable[int]) -> Iterator[Event]:
    """Yield the events of frames that lie close together in the log; 2 us an event."""
    seqs = sorted({number for number in numbers if number > 0})
    start = 0
    for place in range(1, len(seqs) + 1):
        if place < len(seqs) and seqs[place] - seqs[place - 1] <= _GAP_MAX:
            continue
        if place - start >= _RUN_MIN:
            first, last = seqs[start], seqs[place - 1]
            for sequence in layers.log.read_in_sequences(first, last, _SEQUENCE_EVENTS):
                if isinstance(sequence, ColumnarEvents):
                    # All bodies in one pass.
                    sequence.columns(PutFrame.wire_name)
                after = sequence[0].seq
                end = bisect_left(seqs, after + len(sequence))
                for seq in seqs[bisect_left(seqs, after) : end]:
                    yield sequence[seq - after]
        start = place


def frame_of(layers: Layers, number: int, act: Callable[[int], Act | None]) -> Frame:
    """Return a frame; ``act`` reads the event that closed the frame, by its id.

    Raises:
        NotFound: no frame with this id exists within the scope.
        HistoryPruned: retention gave up contents of the state.
    """
    return _frame_from(layers, number, act, layers.event(number))


def frame_and_content_of(
    layers: Layers, number: int, act: Callable[[int], Act | None]
) -> tuple[Frame, bytes]:
    """Return a frame and its content; a stored frame is one read. Raises as `frame_of`."""
    event = layers.event(number)
    frame = _frame_from(layers, number, act, event)
    body = event.body
    if isinstance(event, Event) and isinstance(body, PutFrame) and body.blob is not None:
        return frame, event.attached(body.blob)
    blob = blob_of(layers, number)
    return frame, frame.text.encode() if blob is None else blob


def _frame_from(
    layers: Layers, number: int, act: Callable[[int], Act | None], event: Event | PendingEvent
) -> Frame:
    closing = layers.closing_of(number)
    recorded = to_datetime(event.recorded)
    body = frame_body(layers, event)
    text = text_of(layers, number, body)
    has_expired = body.expires is not None and body.expires <= layers.now
    closed = None
    if closing is not None and closing.seq != number:
        closed = act(fact_conversion.id_of_seq(closing.seq, layers.base.n))
    return Frame(
        id=shown_id(number),
        text=text,
        kind=body.kind,
        role=body.role,
        uri=body.uri,
        title=body.title,
        tags=body.tags,
        labels=body.labels,
        metadata=copied(body.metadata) if body.metadata else {},
        scope={} if event.scope is None else dict(event.scope),
        track=body.track,
        created=recorded if body.created is None else to_datetime(body.created),
        recorded=recorded,
        content_dates=tuple(map(to_datetime, body.content_dates)),
        expires=None if body.expires is None else to_datetime(body.expires),
        is_expired=closing is None and has_expired,
        parent=body.parent,
        supersedes=layers.supersedes_of(number),
        superseded_by=None if closing is None else closing.by,
        active=closing is None and not has_expired,
        chunk_index=body.chunk_index,
        chunk_count=body.chunk_count,
        search_text=body.search_text,
        content_hash=content_hash_of(body),
        size=body.blob.size if body.blob is not None else len(text.encode()),
        unread=tuple(layers.unread.get(number, ())),
        actor=event.actor,
        reason=event.reason,
        closed=closed,
        _block=None if layers.pending is None else layers.pending.ids,
    )


_ERASED: Final = msgspec.structs.replace(PutFrame(), kind="erased")
"""Stands for a body that was erased; no frame is written with this kind."""


def frame_body(layers: Layers, event: Event | PendingEvent) -> PutFrame:
    """Return the body of the event of a frame; an empty body if it is unknown or was erased.

    Raises:
        HistoryPruned: retention gave up contents of the state.
    """
    body = event.body
    if isinstance(body, PutFrame):
        return body
    # The snapshot may have been made before retention gave the content up.
    layers.log.horizon().check(layers.base.n)
    if isinstance(body, UnknownBody):
        return PutFrame(kind=f"{body.kind} version {body.kind_version}")
    return _ERASED


def text_of(layers: Layers, number: int, body: PutFrame) -> str:
    """Return the text of a frame; a split document has that of its chunks within the scope."""
    if body.chunk_count is None or body.chunk_index is not None:
        return body.text or ""
    chunks = filter(layers.has, layers.chunks(number).values())
    bodies = (layers.event(chunk).body for chunk in chunks)
    return joined_text(body for body in bodies if isinstance(body, PutFrame))


class FrameText(NamedTuple):
    """The text of a frame, and its body."""

    text: str
    body: PutFrame


def frame_text(layers: Layers, number: int) -> FrameText:
    """Return the text of a stored frame without its relations. Raises as `frame_of`."""
    return _text_from(layers, layers.event(number))


def frame_texts(layers: Layers, numbers: Iterable[int]) -> dict[int, FrameText]:
    """Return the texts of stored frames within the scope, with one read, up to a damaged frame."""
    texts: dict[int, FrameText] = {}
    with suppress(*UNREADABLE):
        for event in layers.log.events_at(sorted(set(numbers))):
            texts[event.seq] = _text_from(layers, event)
    return texts


def _text_from(layers: Layers, event: Event | PendingEvent) -> FrameText:
    body = frame_body(layers, event)
    return FrameText(text_of(layers, event.seq, body), body)


def blob_of(layers: Layers, number: int) -> bytes | None:
    """Return the bytes of a frame that was put as bytes; None for a frame of text.

    Raises:
        NotFound: no frame with this id exists within the scope.
        HistoryPruned: retention gave the bytes up.
    """
    body = layers.event(number).body
    if isinstance(body, Erased):
        raise content_pruned(number)
    if not isinstance(body, PutFrame) or body.blob is None:
        return None
    if number < 0:
        return layers.drafts[-number - 1].attachments[0]
    return layers.log.attachment(number, body.blob)


def attachment_of(layers: Layers, number: int, attachment: Attachment) -> bytes:
    """Return bytes that the event or draft of a frame names, verified against their hash."""
    if number < 0:
        return chosen(layers.drafts[-number - 1].attachments, attachment, number)
    return layers.log.attachment(number, attachment)


def later_embeddings(layers: Layers, number: int) -> Iterator[tuple[Embedding, bytes]]:
    """Yield the embeddings that later events gave to a frame, in order, and their bytes."""
    if number > 0:
        for seq in layers.base.frames.embedding_events(number, layers.base.n):
            body = layers.log.event(seq).body
            if isinstance(body, PutEmbedding):
                yield body.embedding, layers.log.attachment(seq, body.embedding.data)
    for draft in layers.drafts:
        if isinstance(draft.body, PutEmbedding) and draft.body.frame == number:
            yield draft.body.embedding, draft.attachments[0]
