"""Conversations: messages as chat interfaces take them, put and read, and their form."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final, cast

from cerata.engine.arguments import expect_positive, expect_text, expect_type
from cerata.engine.errors import InvalidInput
from cerata.engine.late import late
from cerata.engine.unreadable import frame_place, readable
from cerata.memory.batch.writer import Writer, session_of, takes_scope
from cerata.memory.frames.drafts import frame_draft, frame_fields
from cerata.memory.snapshot.reader import Reader, snapshot_of, store_call
from cerata.memory.values.arguments import copied, full_scope, listed
from cerata.memory.values.frames import Receipt

if TYPE_CHECKING:
    from cerata.engine.events import JsonValue, ScopeValue
    from cerata.memory.embeddings import drafts as embedded_drafts
    from cerata.memory.frames import timeline, timeline_reads
    from cerata.memory.values.frames import Frame
    from cerata.projections.frames.filters import Filter
else:
    timeline = late("cerata.memory.frames.timeline")
    embedded_drafts = late("cerata.memory.embeddings.drafts")
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
    newest = timeline.newest_frames(snapshot, timeline_reads.on_track(track, where), by_first=True)
    frames = readable(newest, snapshot.frame_at, frame_place)
    spoken = (frame for frame in frames if frame.role is not None)
    return [message_of(frame) for frame in islice(spoken, last and min(last, sys.maxsize))][::-1]


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
                kind=MESSAGE_KIND,
                role=role,
                track=track,
                tags=tags,
                metadata=metadata,
            ),
            stamped,
        )
        for role, text, metadata in message_parts(messages)
    ]
    session_of(store).record_call(stamped, "remember_messages", drafts=drafts)
    return embedded_drafts.put_embedded(session_of(store).by(actor), drafts, key)


# --- Chat messages: from the form of chat interfaces to frames, and back without a loss -----------


MESSAGE_KIND: Final = "message"
"""The kind of the frames of messages."""

MESSAGE: Final = "message"
"""A message's metadata: its members besides the role, and the content if that is no text."""

_REMEDY: Final = 'Pass messages such as {"role": "user", "content": "Hello."}.'


def message_parts(
    messages: Sequence[Mapping[str, JsonValue]],
) -> list[tuple[str, str, dict[str, JsonValue]]]:
    """Return role, text and metadata of each message, in order.

    Raises:
        InvalidInput: an item is no message; the error names its place, from 1.
    """
    items = listed("messages", messages)
    if not items:
        raise InvalidInput("messages must have at least one message", remedy=_REMEDY)
    return [_parts(message, f"message {place}") for place, message in enumerate(items, start=1)]


def _parts(message: object, where: str) -> tuple[str, str, dict[str, JsonValue]]:
    expect_type(where, message, Mapping, "a mapping with role and content", _REMEDY)
    members = copied(cast("Mapping[str, JsonValue]", message))
    role = members.pop("role", None)
    if not isinstance(role, str) or not role.strip():
        raise InvalidInput(
            f"The role of {where} must be a string, not {role!r:.60}", remedy=_REMEDY
        )
    content = members.get("content")
    if isinstance(content, str):
        text = expect_text(f"The content of {where}", members.pop("content"))
    elif isinstance(content, list):
        text = "\n\n".join(_part_text(part, where) for part in content).strip()
    elif content is None:
        text = ""
    else:
        raise InvalidInput(
            f"The content of {where} must be a string or a list of parts, not "
            f"{type(content).__name__}",
            remedy=_REMEDY,
        )
    if not text.strip() and not any(members.values()):
        raise InvalidInput(f"The content of {where} is empty", remedy="Leave the message out.")
    return role, text, {MESSAGE: members} if members else {}


def _part_text(part: JsonValue, where: str) -> str:
    """Return the text of a part of a content, which is empty for an image or a call."""
    if isinstance(part, str):
        return expect_text(f"A part of {where}", part)
    if not isinstance(part, dict) or not isinstance(part.get("type"), str):
        raise InvalidInput(
            f"A part of {where} must be a mapping with a type, not {part!r:.60}",
            remedy='Pass parts such as {"type": "text", "text": "Hello."}.',
        )
    text = part.get("text")
    return expect_text(f"A part of {where}", text) if isinstance(text, str) else ""


def message_of(frame: Frame) -> dict[str, JsonValue]:
    """Return the message that a frame with a role holds."""
    rest = frame.metadata.get(MESSAGE)
    members = rest if frame.kind == MESSAGE_KIND and isinstance(rest, dict) else {}
    return {"role": frame.role or "", "content": frame.text, **members}
