"""`CerataSession`: the items of a conversation of OpenAI's Agents SDK as frames of a memory.

Owns the SDK's session protocol. An item is a frame of
kind ``openai.item``; the items of a session share a URI, and their order is that of their ids.
"""

import importlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, cast

from cerata.engine.arguments import expect_text, is_integer
from cerata.engine.errors import Conflict, Corrupt, InvalidInput
from cerata.engine.limits import BATCH_EVENTS_MAX
from cerata.engine.unreadable import readable
from cerata.memory.store import Store
from cerata.memory.values.frames import Frame
from cerata.memory.values.quoting import quote
from cerata.memory.view import View
from cerata.retrieval.speaker_names import speaker

from ..frames_of_scope import FramesOfScope
from ..threads import finished
from .pack import ROLE

ITEM: Final = "openai.item"

_MEMBER: Final = "item"
"""The name of the whole item in the metadata of its frame."""

_REMEDY: Final = 'Pass items such as {"role": "user", "content": "Hello."}.'

# By name: a checkout of Cerata has a folder "agents", which type checkers take for the SDK.
_settings: Any = importlib.import_module("agents.memory.session_settings")

Item = dict[str, Any]


class CerataSession:
    """Keeps the history of a conversation in a memory; any task may use it.

    - Reads and writes exactly the scope of its store. A session has the items with its id alone.
    - The items of a call are one durable batch.
    - An item is popped once, also by several processes.
    - Popped and cleared items stay in the log, and in earlier views.
    """

    def __init__(self, session_id: str, store: Store, session_settings: Any = None) -> None:
        """Keep the items in a store.

        Args:
            session_id: The name of the conversation.
            store: An open store; a `scoped` store for the sessions of a tenant or user.
            session_settings: The SDK's SessionSettings, or a dict of them; default no limit.

        Raises:
            InvalidInput: ``session_id`` is no text with a letter, or ``store`` no store.
            TypeError: the SDK refuses the settings.
        """
        if not expect_text("session_id", session_id):
            raise InvalidInput("session_id is empty", remedy="Pass the name of a conversation.")
        self.session_id = session_id
        self.session_settings: Any = _settings.coerce_session_settings(
            _settings.SessionSettings() if session_settings is None else session_settings
        )
        self._frames = FramesOfScope(store, ITEM, ROLE)
        self._uri = f"openai:{quote(session_id)}/"

    @property
    def store(self) -> Store:
        """The memory that keeps the items."""
        return self._frames.of_scope

    async def get_items(self, limit: int | None = None) -> list[Item]:
        """Return the newest items, oldest first.

        Args:
            limit: Most items; negative for all. None is the limit of the settings, else all.

        Raises:
            InvalidInput: ``limit`` is no whole number.
        """
        count = _settings.resolve_session_limit(limit, self.session_settings)
        if count is not None and not is_integer(count):
            raise InvalidInput(
                f"limit must be a whole number or None, not {count!r:.60}", remedy="Pass limit=20."
            )
        return await finished(self._newest, None if count is None or count < 0 else count)

    async def add_items(self, items: list[Item]) -> None:
        """Add items as one batch. Durable on return.

        Args:
            items: Items of the Responses API, in their order; at most 10,000.

        Raises:
            InvalidInput: an item is no map of JSON values; nothing was written.
        """
        checked = _checked(items)
        if checked:
            await finished(self._add, checked)

    async def pop_item(self) -> Item | None:
        """Delete the newest item and return it, or None without items. Durable on return."""
        return await finished(self._pop)

    async def clear_session(self) -> None:
        """Delete the items that the session has at the call, as one batch. Durable on return.

        More than 10,000 items take several batches.
        """
        await finished(self._clear)

    def _newest(self, count: int | None) -> list[Item]:
        frames = self._frames.below(self.store.history.view(), self._uri)
        return [*islice(readable(frames, _item_of, _place_of), count)][::-1]

    def _add(self, items: Sequence[Item]) -> None:
        with self._frames.store.transaction():
            for item in items:
                role = item.get("role") or None
                self._frames.store.put_frame(
                    words_of(item),
                    kind=ITEM,
                    role=speaker(role, item.get("name")) if isinstance(role, str) else None,
                    uri=self._uri,
                    metadata={_MEMBER: item},
                )

    def _pop(self) -> Item | None:
        while True:
            frames = self._frames.below(self.store.history.view(), self._uri)
            newest = readable(frames, lambda frame: (frame, _item_of(frame)), _place_of)
            frame, item = next(newest, (None, None))
            if frame is None:
                return None
            try:
                self._frames.store.delete(frame)
            except Conflict:
                # Another one popped it, and the next look has the items that are left.
                if self.store.history.view().frame(frame).active:
                    raise
            else:
                return item

    def _clear(self) -> None:
        end = self.store.history.view().basis

        def delete(view: View) -> bool:
            frames = (each for each in self._frames.below(view, self._uri) if each.id <= end)
            closing = list(islice(frames, BATCH_EVENTS_MAX))
            for frame in closing:
                self._frames.store.delete(frame)
            return len(closing) == BATCH_EVENTS_MAX

        while self._frames.write(delete):
            pass


def _item_of(frame: Frame) -> Item:
    item = frame.metadata.get(_MEMBER)
    if not isinstance(item, dict):
        raise Corrupt(
            "The metadata has no item",
            where=f"frame {frame.id:,}",
            remedy="Delete the frame, or add the item again.",
        )
    return cast("Item", item)


def _place_of(frame: Frame) -> str:
    return f"The item in frame {frame.id:,}"


def _checked(items: object) -> list[Item]:
    if isinstance(items, str | bytes | Mapping) or not isinstance(items, Sequence):
        raise InvalidInput(f"items must be a list, not {items!r:.60}", remedy=_REMEDY)
    listed = list(cast("Sequence[object]", items))
    if len(listed) > BATCH_EVENTS_MAX:
        raise InvalidInput(
            f"A call adds at most {BATCH_EVENTS_MAX:,} items, not {len(listed):,}",
            remedy="Add the items in several calls.",
        )
    for place, item in enumerate(listed):
        if not isinstance(item, Mapping):
            raise InvalidInput(f"items[{place}] must be a dict, not {item!r:.60}", remedy=_REMEDY)
    return [dict(cast("Mapping[str, Any]", item)) for item in listed]


# --- The words of an item of a conversation, by which searches find it ----------------------------


_WORDS: Final = (
    "content",
    "text",
    "refusal",
    "transcript",
    "summary",
    "name",
    "arguments",
    "output",
)
"""The members that have words, also inside lists and maps of them."""

_DEPTH_MAX: Final = 8


def words_of(item: Mapping[str, object]) -> str:
    """Return the words of an item; of an item without words its type.

    >>> words_of({"role": "user", "content": [{"type": "input_text", "text": "Hello."}]})
    'Hello.'
    """
    return "\n\n".join(_words(item, 0)) or str(item.get("type") or "item")


def _words(value: object, depth: int) -> Iterator[str]:
    if isinstance(value, str):
        if value.strip():
            yield value
    elif depth > _DEPTH_MAX:
        return
    elif isinstance(value, Mapping):
        members = cast("Mapping[str, object]", value)
        for name in _WORDS:
            yield from _words(members.get(name), depth + 1)
    elif isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        for part in cast("Sequence[object]", value):
            yield from _words(part, depth + 1)
