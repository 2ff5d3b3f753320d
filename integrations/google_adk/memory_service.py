"""`CerataMemoryService`: the memories of ADK's agents as frames of a memory.

Owns ADK's interface of memory services. An event or a memory is a frame of kind ``adk.memory`` with
the URI ``adk:`` and its quoted id, in the scope of the store narrowed by ``app`` and ``user_id``.
"""

# Where the extra google-adk is missing, its types are unknown.
# pyright: basic, reportMissingImports=false

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Final, NamedTuple, cast

from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
from google.adk.memory.memory_entry import MemoryEntry
from google.genai import types

from cerata.engine.arguments import expect_positive, expect_string, expect_text
from cerata.engine.errors import Corrupt, InvalidInput
from cerata.engine.unreadable import readable
from cerata.memory.store import Store
from cerata.memory.values.frames import Frame, Hit
from cerata.memory.values.options import PutOptions
from cerata.memory.values.quoting import quote, unquote
from cerata.memory.view import View
from cerata.projections.frames.filters import Filter

from ..frames_of_scope import FramesOfScope
from ..threads import finished
from .pack import ROLE

# --- Entries of the memory service: from ADK's events and memories to fields of frames, and back


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


# --- `CerataMemoryService`: the memories of ADK's agents as frames of a memory --------------------


MEMORY: Final = "adk.memory"
PREFIX: Final = "adk:"


class CerataMemoryService(BaseMemoryService):
    """Keeps the memories of ADK's agents; any task may use it.

    - Reads and writes exactly the scope of its store, with the app and the user of each call.
    - The entries of a call are one durable batch. An event id is stored once, and not again after
      its deletion.
    - Replaced and deleted memories stay in the log, and in earlier views.
    """

    def __init__(self, store: Store, *, k: int = 10) -> None:
        """Keep the memories in a store.

        Args:
            store: An open store; a `scoped` store for the memories of a tenant.
            k: Most memories that a search returns; default 10.

        Raises:
            InvalidInput: ``store`` is no store, or ``k`` not positive.
        """
        k = expect_positive("k", k)
        self._base = FramesOfScope(store, MEMORY, ROLE).of_scope
        self._k = k

    @property
    def store(self) -> Store:
        """The memory that keeps the memories."""
        return self._base

    async def add_session_to_memory(self, session: Any) -> None:
        """Add the events of a session that are not stored yet. Durable on return.

        Args:
            session: ADK's Session; may be added again as it grows.

        Raises:
            InvalidInput: an event cannot be stored; nothing was written.
        """
        await self.add_events_to_memory(
            app_name=session.app_name,
            user_id=session.user_id,
            events=session.events,
            session_id=session.id,
        )

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Any],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Add events that are not stored yet; events without words are left out.

        Args:
            app_name: The application.
            user_id: The user.
            events: ADK's events.
            session_id: The session, for the metadata and the track; default none.
            custom_metadata: JSON values by name, which a search returns; default none.

        Raises:
            InvalidInput: an event cannot be stored; nothing was written.
        """
        frames = self._frames(app_name, user_id)
        if session_id is not None:
            expect_text("session_id", session_id)
        entries = event_entries(events, session_id, _checked(custom_metadata))
        if entries:
            await finished(_add, frames, entries, session_id or None, once=True)

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[Any],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Add memories as one batch; the same id replaces a memory. Durable on return.

        Args:
            app_name: The application.
            user_id: The user.
            memories: ADK's memory entries; without an id they get a random id.
            custom_metadata: JSON values by name for each memory, below its values; default none.

        Raises:
            InvalidInput: a memory cannot be stored, or has no words; nothing was written.
        """
        frames = self._frames(app_name, user_id)
        entries = memory_entries(memories, _checked(custom_metadata))
        if entries:
            await finished(_add, frames, entries, None, once=False)

    async def search_memory(
        self, *, app_name: str, user_id: str, query: str
    ) -> SearchMemoryResponse:
        """Return the best memories for a question, best first.

        Args:
            app_name: The application.
            user_id: The user.
            query: The question; an empty one finds nothing.
        """
        frames = self._frames(app_name, user_id)
        if not expect_string("query", query).strip():
            return SearchMemoryResponse()
        return await finished(_search, frames, query, self._k)

    async def delete_memory(
        self, *, app_name: str, user_id: str, memory_id: str | None = None
    ) -> None:
        """Hide a memory; an id without a memory is no error. Durable on return.

        Args:
            app_name: The application.
            user_id: The user.
            memory_id: The id that a search returned; None deletes nothing.

        Raises:
            InvalidInput: ``memory_id`` is no text.
        """
        frames = self._frames(app_name, user_id)
        if memory_id is not None and expect_text("memory_id", memory_id):
            await finished(_delete, frames, memory_id)

    def _frames(self, app_name: str, user_id: str) -> FramesOfScope:
        scope = {"app": app_name, "user_id": user_id}
        for name, value in zip(("app_name", "user_id"), scope.values(), strict=True):
            if not expect_text(name, value):
                raise InvalidInput(f"{name} is empty", remedy=f"Pass {name}='name'.")
        return FramesOfScope(self._base.scoped(scope), MEMORY, ROLE)


def _checked(custom_metadata: object) -> Mapping[str, Any]:
    if custom_metadata is None:
        return {}
    if not isinstance(custom_metadata, Mapping):
        raise InvalidInput(
            f"custom_metadata must be a dict, not {custom_metadata!r:.60}", remedy="Pass a dict."
        )
    return custom_metadata


def _uri_of(name: str) -> str:
    return PREFIX + quote(name)


def _add(frames: FramesOfScope, entries: Sequence[Entry], track: str | None, *, once: bool) -> None:
    """Write entries; with ``once`` those alone whose ids were never used."""
    # The last entry of an id counts.
    chosen = {_uri_of(entry.id or frames.drawn_id()): entry for entry in entries}

    def add(view: View) -> None:
        deleted = _closed_uris(frames, view) if once else frozenset[str]()
        for uri, entry in chosen.items():
            if once and (uri in deleted or frames.current(view, uri) is not None):
                continue
            frames.check_free(view, uri, "Pass another id.")
            frames.store.put_frame(
                entry.text,
                kind=MEMORY,
                role=entry.author,
                uri=uri,
                metadata=entry.metadata,
                options=PutOptions(track=track, created=entry.created, replace=True),
            )

    frames.write(add)


def _closed_uris(frames: FramesOfScope, view: View) -> frozenset[str]:
    """Return the URIs of deleted memories; they are read only if there are closed frames."""
    where = Filter(kind=MEMORY, uri_prefix=PREFIX)
    if view.count(where)[1] == 0:
        return frozenset()
    closed = view.frames(where & Filter(include_deleted=True))
    return frozenset(
        frame.uri for frame in closed if frame.uri and not frame.active and frames.is_own(frame)
    )


def _search(frames: FramesOfScope, query: str, k: int) -> SearchMemoryResponse:
    hits = frames.search(frames.store.history.view(), query, k=k, prefix=PREFIX)

    def memory(hit: Hit) -> MemoryEntry:
        return memory_of(hit.frame, unquote((hit.frame.uri or "").removeprefix(PREFIX)))

    memories = readable(hits, memory, lambda hit: f"The memory in frame {hit.id:,}")
    return SearchMemoryResponse(memories=[*memories])


def _delete(frames: FramesOfScope, name: str) -> None:
    frames.write(lambda view: frames.delete(view, _uri_of(name)))
