# Where the extra google-adk is missing, its types are unknown.
# pyright: basic, reportMissingImports=false
"""Entries of the memory service: from ADK's events and memories to fields of frames, and back.

Owns the checks of events and memories. Leaves out the frames' scope and URIs (`memory_service`).
"""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, NamedTuple, cast

from google.adk.memory.memory_entry import MemoryEntry
from google.genai import types

from cerata.engine.arguments import expect_text
from cerata.engine.errors import Corrupt, InvalidInput
from cerata.memory.values.frames import Frame


class Entry(NamedTuple):
    """An event or a memory, as it is stored; ``id`` is None for a random id."""

    id: str | None
    text: str
    author: str | None
    created: datetime | None
    metadata: dict[str, Any]


def event_entries(
    events: object, session_id: str | None, custom_metadata: Mapping[str, Any]
) -> list[Entry]:
    """Return the entries of events, in their order, without events that have no words.

    Raises:
        InvalidInput: an item is no event, its time is none, or its id no text.
    """
    entries: list[Entry] = []
    for place, event in enumerate(_listed("events", events)):
        content = getattr(event, "content", event)
        if content is None:
            continue
        if not isinstance(content, types.Content):
            raise InvalidInput(
                f"events[{place}] must be an Event, not {event!r:.60}",
                remedy="Pass google.adk.events.Event.",
            )
        text = _text_of(content)
        if not text:
            continue
        instant = _instant(getattr(event, "timestamp", None), f"events[{place}]")
        author = getattr(event, "author", None) or None
        dumped = _dumped(content)
        name = _id_of(event, f"events[{place}]") or _derived_id(author, instant, dumped)
        metadata = {"content": dumped, "timestamp": instant.isoformat()}
        if session_id:
            metadata["session"] = session_id
        if custom_metadata:
            metadata["custom"] = dict(custom_metadata)
        entries.append(Entry(name, text, author, instant, metadata))
    return entries


def memory_entries(memories: object, custom_metadata: Mapping[str, Any]) -> list[Entry]:
    """Return the entries of memories, in their order.

    Raises:
        InvalidInput: an item is no memory, or has no words, or its id is no text.
    """
    entries: list[Entry] = []
    for place, memory in enumerate(_listed("memories", memories)):
        if not isinstance(memory, MemoryEntry):
            raise InvalidInput(
                f"memories[{place}] must be a MemoryEntry, not {memory!r:.60}",
                remedy="Pass google.adk.memory.memory_entry.MemoryEntry.",
            )
        text = _text_of(memory.content)
        if not text:
            raise InvalidInput(
                f"memories[{place}] has no text", remedy="Pass content with a text part."
            )
        metadata: dict[str, Any] = {"content": _dumped(memory.content)}
        if memory.timestamp:
            metadata["timestamp"] = memory.timestamp
        custom = {**custom_metadata, **memory.custom_metadata}
        if custom:
            metadata["custom"] = custom
        created = _stated_time(memory.timestamp)
        name = _id_of(memory, f"memories[{place}]")
        entries.append(Entry(name, text, memory.author or None, created, metadata))
    return entries


def memory_of(frame: Frame, name: str) -> MemoryEntry:
    """Return the memory of a frame. Raises `Corrupt` if the frame's metadata are of no memory."""
    metadata = frame.metadata
    try:
        return MemoryEntry(
            id=name,
            # JSON has bytes as base64, which only a parse of JSON reads as bytes.
            content=types.Content.model_validate_json(json.dumps(metadata["content"])),
            author=frame.role,
            timestamp=cast("str | None", metadata.get("timestamp")),
            custom_metadata=cast("dict[str, Any]", metadata.get("custom") or {}),
        )
    except (KeyError, ValueError, TypeError, RecursionError) as error:
        raise Corrupt(
            f"The metadata are of no memory: {error!s:.200}",
            where=f"frame {frame.id:,}",
            remedy="Delete the memory, or add it again.",
        ) from error


def _listed(name: str, items: object) -> Sequence[Any]:
    if isinstance(items, str | bytes) or not isinstance(items, Sequence):
        raise InvalidInput(f"{name} must be a list, not {items!r:.60}", remedy="Pass a list.")
    return items


def _text_of(content: types.Content) -> str:
    """Return the words of a content, without a model's thoughts."""
    parts = content.parts or []
    texts = [part.text.strip() for part in parts if part.text and not part.thought]
    return expect_text("The text of a content", "\n\n".join(filter(None, texts)))


def _id_of(item: object, where: str) -> str | None:
    name = getattr(item, "id", None)
    return None if name is None else expect_text(f"The id of {where}", name) or None


def _dumped(content: types.Content) -> Any:
    return content.model_dump(mode="json", exclude_none=True)


def _derived_id(author: str | None, instant: datetime, content: object) -> str:
    """Return the id of an event without one: equal events have equal ids."""
    text = json.dumps([author, instant.isoformat(), content], sort_keys=True)
    return sha256(text.encode()).hexdigest()[:32]


def _instant(seconds: object, where: str) -> datetime:
    try:
        return datetime.fromtimestamp(float(cast("float", seconds)), UTC)
    except (TypeError, ValueError, OverflowError, OSError) as error:
        raise InvalidInput(
            f"The timestamp of {where} must be seconds since 1970, not {seconds!r:.60}",
            remedy="Pass the time as a float.",
        ) from error


def _stated_time(text: str | None) -> datetime | None:
    """Return the time of an ISO text with a zone; any other text stays in the metadata alone."""
    try:
        instant = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    return instant if instant.tzinfo is not None else None
