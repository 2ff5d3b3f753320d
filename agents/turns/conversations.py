"""Conversations: messages as chat interfaces take them, put and read.

Owns the two calls. Leaves out the form of messages (`message_form`).
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from cerata.engine.arguments import expect_positive
from cerata.engine.late import late
from cerata.engine.unreadable import frame_place, readable
from cerata.memory.batch.writer import Writer, session_of, takes_scope
from cerata.memory.frames.drafts import frame_draft, frame_fields
from cerata.memory.snapshot.reader import Reader, snapshot_of, store_call
from cerata.memory.values.arguments import full_scope
from cerata.memory.values.frames import Receipt

if TYPE_CHECKING:
    from cerata.engine.events import JsonValue, ScopeValue
    from cerata.memory.embeddings import drafts as embedded_drafts
    from cerata.memory.frames import conversation, timeline_reads
    from cerata.projections.frames.filters import Filter

    from . import message_form
else:
    conversation = late("cerata.memory.frames.conversation")
    embedded_drafts = late("cerata.memory.embeddings.drafts")
    message_form = late("cerata.agents.turns.message_form")
    timeline_reads = late("cerata.memory.frames.timeline_reads")


@store_call
def messages(
    memory: Reader,
    last: int | None = None,
    *,
    track: str | None = None,
    where: Filter | None = None,
) -> list[dict[str, JsonValue]]:
    """Return the newest current frames that have a role, as chat interfaces take messages.

    The messages are in the order of their recording, the newest last; a new version has the
    place of the first. A message stored by `remember_messages` has all its members again.

    Args:
        memory: A store or view.
        last: Most messages to return; default None returns all.
        track: The track of the frames, such as a conversation; default None, any.
        where: A filter of the frames; default None admits all.

    Raises:
        InvalidInput: ``last`` is not positive, or ``where`` is not a `Filter`.
    """
    if last is not None:
        last = expect_positive("last", last)
    snapshot = snapshot_of(memory)
    newest = conversation.newest_frames(
        snapshot, timeline_reads.on_track(track, where), by_first=True
    )
    frames = readable(newest, snapshot.frame_at, frame_place)
    spoken = (frame for frame in frames if frame.role is not None)
    return [
        message_form.message_of(frame) for frame in islice(spoken, last and min(last, sys.maxsize))
    ][::-1]


@store_call
@takes_scope
def remember_messages(
    store: Writer,
    messages: Sequence[Mapping[str, JsonValue]],
    *,
    track: str | None = None,
    tags: Sequence[str] = (),
    scope: Mapping[str, ScopeValue] | None = None,
    key: str | None = None,
    actor: str | None = None,
) -> Receipt:
    """Put chat messages as one batch, a frame for each: all of them or none. Durable on return.

    A frame has the message's role and text, and the kind "message". The text of a content in
    parts is that of its parts; other members, such as calls of tools and images, stay in the
    metadata, and `messages` returns them.

    Args:
        store: The memory.
        messages: Mappings with ``role`` and ``content``, in their order; at most 10,000.
        track: The conversation; default none.
        tags: The tags of all frames; default none.
        scope: Names and values to add to the store's scope; default the store's scope.
        key: An idempotency key: the same key and arguments return the first receipt.
        actor: Name of the writer; default the transaction's, then the store's.

    Raises:
        InvalidInput: an item is no message, or cannot be stored; the error names its place.
        IdempotencyConflict: the key was used with other arguments.
        EmbedderFailed: the embedder failed; nothing was written.
    """
    stamped = full_scope(scope, session_of(store).scope)
    drafts = [
        frame_draft(
            text,
            frame_fields(
                kind=message_form.MESSAGE_KIND,
                role=role,
                track=track,
                tags=tags,
                metadata=metadata,
            ),
            stamped,
        )
        for role, text, metadata in message_form.message_parts(messages)
    ]
    session_of(store).record_call(stamped, "remember_messages", drafts=drafts)
    return embedded_drafts.put_embedded(session_of(store).by(actor), drafts, key)
