"""Slots: typed memory of an agent that outlives its runs.

Owns `Slot`, its reads as of a basis and its writes. Leaves out declarations (`declarations`) and
the check of values (`schemas`).

A value is a frame of kind "value". The frames of a map or of a single value have a URI, so at most
one of them is current; those of a list have none. A URI ends in a hash of the scope: a look-up of a
URI that all instances share would pass over the values of all. The track and exactly the scope,
compared as a map, identify an instance.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple

import msgspec

from cerata.engine.arguments import expect_integer
from cerata.engine.errors import Conflict, Corrupt, InvalidInput, NotFound, ReadOnly, value_text
from cerata.engine.events import JsonValue, Scope, ScopeValue
from cerata.engine.handle import Handle
from cerata.engine.integrity import hash_bytes
from cerata.engine.packs import Role
from cerata.engine.plain_value import PlainValue
from cerata.engine.unreadable import frame_place, readable
from cerata.memory.batch.attempts import attempted
from cerata.memory.batch.writer import acting, session_of
from cerata.memory.frames.versions import current_version
from cerata.memory.snapshot.layers import Layers
from cerata.memory.snapshot.reader import snapshot_of
from cerata.memory.snapshot.snapshot import Snapshot
from cerata.memory.store import Store
from cerata.memory.values.frames import Frame, Hit, Receipt
from cerata.memory.values.options import Page, PutOptions
from cerata.memory.view import View
from cerata.projections.columnar.scopes import by_name, is_same, scope_text
from cerata.projections.columnar.times import to_datetime
from cerata.projections.frames.filters import Filter

from .declarations import Declaration
from .schemas import VERSION_KEY, check_json, read_value, stored_value
from .spec import MemorySpec, ttl_us
from .text.names import VALUE_KIND
from .text.summaries import decoded, encoded

_URI: Final = "slot:"
_HASH_SIZE: Final = 8
"""Bytes of a scope's hash in a URI: enough to keep look-ups short. The scope decides."""

_UNSET: Final = msgspec.UNSET


class _Fields(NamedTuple):
    """Content, metadata and options of a new value."""

    content: str | bytes
    metadata: Mapping[str, JsonValue]
    options: PutOptions


@dataclass(frozen=True, slots=True)
class SlotItem(PlainValue):
    """A value of a slot.

    - ``id`` is the frame that holds it, ``key`` None for lists and single values.
    - ``schema_version`` is that of the write; None without a schema.
    """

    id: int
    key: str | None
    value: Any
    created: datetime
    expires: datetime | None
    schema_version: int | None

    def to_dict(self) -> dict[str, JsonValue]:
        """Return the item as plain values; a Struct as a map of its fields."""
        return {**PlainValue.to_dict(self), "value": msgspec.to_builtins(self.value)}


class Instance(NamedTuple):
    """The identity of an instance: the agent, the slot, and exactly a scope."""

    agent: str
    slot: str
    scope: Scope

    @property
    def track(self) -> str:
        return f"{self.agent}/{self.slot}"

    @property
    def uri_end(self) -> str:
        """The end of the URIs of an instance: a hash of its scope."""
        return f"#{hash_bytes(scope_text(by_name(self.scope)).encode())[:_HASH_SIZE].hex()}"


class Slot(Handle):
    """An instance of a declared slot, from `Agent.slot`: a map, a list or a single value.

    Reads leave out expired values, and the oldest items beyond ``max_items``. Writes are durable
    on return, or join the open transaction.
    """

    _instead = "Call agent.slot(name) there."

    def __init__(
        self,
        store: Store,
        view: Callable[[], View],
        instance: Instance,
        declaration: Declaration,
        *,
        is_past: bool,
    ) -> None:
        self._store = acting(store, Role.AGENT)
        self._view = view
        self._instance = instance
        self._uri_end = instance.uri_end
        self._spec, self._json_schema = declaration
        self._is_past = is_past

    def __repr__(self) -> str:
        return f"<cerata slot {self._instance.track!r} of {dict(self._instance.scope)!r}>"

    @property
    def spec(self) -> MemorySpec:
        """The declaration, with the defaults of its tier."""
        return self._spec

    @property
    def scope(self) -> dict[str, ScopeValue]:
        """The scope of the instance's values."""
        return dict(self._instance.scope)

    # --- reads -----------------------------------------------------------------------------------

    def get(self, key: str | None = None, default: object = None) -> Any:
        """Return the current value, or ``default``.

        Args:
            key: The key in a map; left out for a single value.
            default: The value without a current one; default None.

        Raises:
            InvalidInput: the slot is a list, or a key is missing or superfluous; a stored value
                does not match the schema.
            Unsupported: the stored value is newer than the schema.
        """
        view = self._reader()
        frame = self._current(snapshot_of(view), self._uri(key))
        return default if frame is None else self._value(*self._read(view, frame))

    def keys(self) -> list[str]:
        """Return the current keys of a map, sorted. Cost: a read of each value's frame."""
        self._expect("dict", "keys()")
        view = self._reader()
        kept = self._kept(snapshot_of(view))
        frames = readable(kept, lambda number: self._frame(view, number), frame_place)
        return sorted({self._key(frame) or "" for frame in frames})

    def items(self) -> list[SlotItem]:
        """Return the current values, oldest first. Cost: a read of each value's frame."""
        view = self._reader()
        return self._items(view, self._kept(snapshot_of(view)))

    def last(self, n: int) -> list[SlotItem]:
        """Return the last items of a list, oldest first. Cost: a read of each.

        Args:
            n: Most items to return.
        """
        self._expect("list", "last()")
        n = expect_integer("n", n, "a number of items", "Pass last(10).")
        view = self._reader()
        ids = self._kept(snapshot_of(view))[-n:] if n > 0 else []
        return self._items(view, ids)

    def search(self, query: str, k: int = 10) -> list[Hit]:
        """Return the best hits among the current values of this instance.

        Args:
            query: A question, as `Store.search` takes it.
            k: Most hits to return.

        Raises:
            InvalidInput: the slot is not searchable.
        """
        if not self._spec.searchable:
            raise InvalidInput(
                f"The slot {self._instance.slot!r} is not searchable",
                remedy="Declare it with searchable=True.",
            )
        view, wanted = self._reader(), k
        current = {*self._kept(snapshot_of(view))}
        where = Filter(track=self._instance.track, kind=VALUE_KIND)
        while True:
            # Instances of a wider scope have the same track.
            hits = list(view.search(query, k=wanted, where=where, page=Page(group_by="frame")))
            kept = [hit for hit in hits if hit.id in current][:k]
            if len(kept) == k or len(hits) < wanted:
                frames = readable(kept, lambda hit: self._checked(hit.frame), _place_of)
                checked = {frame.id for frame in frames}
                return [hit for hit in kept if hit.id in checked]
            wanted *= 2

    def history(self, key: str | None = None) -> list[SlotItem]:
        """Return every value with a key, or all values, oldest first; also closed and expired ones.

        Args:
            key: The key in a map; default all values.
        """
        uri = None if key is None else self._uri(key)
        view = self._reader()
        layers = snapshot_of(view).layers
        where = layers.passing(Filter(track=self._instance.track, kind=VALUE_KIND))
        opened = layers.opened(include_superseded=True, include_deleted=True)
        masks = [mask & passing for mask, passing in zip(opened, where, strict=True)]
        ids = self._of_instance(layers, layers.newest(masks))
        read = readable(ids, lambda number: self._read(view, number), frame_place)
        chosen = (each for each in read if uri in (None, each[0].uri))
        return [
            *readable(chosen, lambda each: self._item_of(*each), lambda each: _place_of(each[0]))
        ]

    def raw(self, key: str | int) -> JsonValue:
        """Return a stored value, neither lifted nor checked.

        Args:
            key: The key in a map, or the id of a value.

        Raises:
            NotFound: the instance has no such current value.
            Conflict: the value was replaced; the error names the current one.
        """
        view = self._reader()
        return self._read(view, self._id_of(snapshot_of(view), key))[1]

    # --- writes ----------------------------------------------------------------------------------

    def set(self, key: Any, value: Any = _UNSET, /, *, expect: int | None = None) -> Receipt:
        """Store a value in place of the current: ``set(key, value)`` in a map, else ``set(value)``.

        Args:
            key: The key; for a single value the value.
            value: The value: JSON, or of the schema.
            expect: The id of the value that the caller saw, 0 for none; default not checked.

        Raises:
            InvalidInput: the slot is a list, or the value is not JSON or not of the schema.
            Conflict: another value than ``expect`` is current, or a frame that is no value of the
                slot has the URI.
            ReadOnly: the store or the agent only reads.
        """
        if self._spec.type == "value":
            if value is not _UNSET:
                raise InvalidInput(
                    f"The slot {self._instance.slot!r} is a single value",
                    remedy="Call set(value).",
                )
            key, value = None, key
        elif value is _UNSET:
            raise InvalidInput("set() needs a key and a value", remedy="Call set(key, value).")
        return self._set(key, value, expect=expect)

    def _set(
        self,
        key: str | None,
        value: object,
        *,
        expect: int | None = None,
        because: int | None = None,
    ) -> Receipt:
        uri = self._uri(key)
        fields = self._fields(value, key)

        def work(snapshot: Snapshot) -> Receipt:
            self._check_expected(snapshot, uri, expect)
            self._check_free(snapshot, uri)
            # A title is searched.
            title = key if self._spec.searchable else None
            return self._put(fields, uri=uri, title=title, replace=True, because=because)

        return self._written(work, is_checked=expect is not None)

    def append(self, value: Any) -> Receipt:
        """Add an item to a list; the oldest items beyond ``max_items`` leave in the same batch.

        Args:
            value: The value: JSON, or of the schema.

        Raises:
            InvalidInput: the slot is no list, or the value is not JSON or not of the schema.
            ReadOnly: the store or the agent only reads.
        """
        self._expect("list", "append()")
        return self._append(value)

    def keep(self, value: object, key: str | None, *, because: int) -> Receipt:
        """Store a value that an event led to, as `set` or `append` do; see `Run.keep`.

        Args:
            value: The value.
            key: The key in a map; None for a list or a single value.
            because: The seq of the event.

        Raises:
            InvalidInput: a map without a key, or a key in another slot.
        """
        if self._spec.type == "list":
            if key is not None:
                self._expect("dict", "a key")
            return self._append(value, because)
        return self._set(key, value, because=because)

    def _append(self, value: object, because: int | None = None) -> Receipt:
        fields = self._fields(value, None)
        if self._spec.max_items is None:
            return self._written(lambda _: self._put(fields, because=because), is_checked=False)

        def work(snapshot: Snapshot) -> Receipt:
            kept = max(0, (self._spec.max_items or 0) - 1)
            ids = self._ids(snapshot)
            receipt = self._put(fields, because=because)
            for frame in ids[: max(0, len(ids) - kept)]:
                self._store.delete(frame, reason="max_items")
            return receipt

        return self._written(work, is_checked=True)

    def delete(self, key: str | int) -> Receipt:
        """Close a value; it stays in the history.

        Args:
            key: The key in a map, or the id of a value.

        Raises:
            NotFound: the instance has no such current value.
            Conflict: the value was replaced; the error names the current one.
            ReadOnly: the store or the agent only reads.
        """

        def work(snapshot: Snapshot) -> Receipt:
            return self._store.delete(self._id_of(snapshot, key))

        return self._written(work, is_checked=False)

    # --- the parts of a write --------------------------------------------------------------------

    def _fields(self, value: object, key: str | None) -> _Fields:
        """Return the content, the metadata and the options of a new value."""
        if self._is_past:
            raise ReadOnly(
                "An agent of the past only reads", remedy="Write with the slot of the agent itself."
            )
        where = f"slot {self._instance.slot!r}" + (f", key {key!r}" if key else "")
        plain = stored_value(self._spec, value, where)
        data = encoded(plain, f"The value of {where}")
        if self._json_schema is not None:
            check_json(self._json_schema, data, where)
        content: str | bytes = data
        words: str | None = None
        if self._spec.searchable and isinstance(plain, str) and plain:
            content = plain
        elif self._spec.searchable:
            words = "\n".join(_words(decoded(data))) or None
        ttl = ttl_us(self._spec.ttl)
        now = session_of(self._store).log.environment.now_us()
        version = self._spec.schema_version
        return _Fields(
            content,
            {} if version is None else {VERSION_KEY: version},
            PutOptions(
                track=self._instance.track,
                scope=self.scope,
                content_dates=(),
                search_text=words,
                expires=None if ttl is None else to_datetime(now + ttl),
            ),
        )

    def _put(
        self,
        fields: _Fields,
        *,
        uri: str | None = None,
        title: str | None = None,
        replace: bool = False,
        because: int | None = None,
    ) -> Receipt:
        return self._store.put_frame(
            fields.content,
            kind=VALUE_KIND,
            uri=uri,
            title=title,
            metadata=fields.metadata,
            options=dataclasses.replace(fields.options, replace=replace, because=because),
        )

    def _written(self, work: Callable[[Snapshot], Receipt], *, is_checked: bool) -> Receipt:
        """Run a write; if it depends on the state, on exactly the state that it was given."""
        session = session_of(self._store)
        session.check_writable()
        if session.in_transaction:
            return work(snapshot_of(self._reader()))

        def attempt(_: Snapshot) -> Receipt:
            snapshot = snapshot_of(self._reader())
            if not is_checked:
                return work(snapshot)
            with self._store.transaction(expect=snapshot.basis) as block:
                work(snapshot)
            return block.receipt

        return attempted(session, attempt, where=f"slot {self._instance.slot!r}")

    def _check_expected(self, snapshot: Snapshot, uri: str, expect: int | None) -> None:
        if expect is None:
            return
        expect = expect_integer(
            "expect", expect, "the id of a value, or 0", "Pass expect=0 for none."
        )
        current = self._current(snapshot, uri) or 0
        if current != expect:
            raise Conflict(
                f"The current value is {current or 'none'}, expected {expect or 'none'}",
                where=f"slot {self._instance.slot!r}",
                remedy="Read the value again, and decide from it.",
            )

    # --- the parts of a read ---------------------------------------------------------------------

    def _reader(self) -> View:
        """Return the view of a read: all that the read returns is of one state."""
        return self._view().within(self._instance.scope)

    def _expect(self, kind: str, call: str) -> None:
        if self._spec.type != kind:
            raise InvalidInput(
                f"The slot {self._instance.slot!r} is a {self._spec.type}, and {call} is for a "
                f"{kind}",
                remedy=f"Declare it with type={kind!r}, or call items().",
            )

    def _uri(self, key: str | None) -> str:
        """Return the URI of a key, or of a single value."""
        track = self._instance.track
        if self._spec.type == "value":
            if key is not None:
                self._expect("dict", "a key")
            return f"{_URI}{track}{self._uri_end}"
        self._expect("dict", "a key")
        if not isinstance(key, str) or not key:
            raise InvalidInput(
                f"The key of a value is {value_text(key):.60}, expected a text",
                where=f"slot {value_text(self._instance.slot)}",
                remedy="Pass a key such as 'risk'.",
            )
        return f"{_URI}{track}/{key}{self._uri_end}"

    def _key(self, frame: Frame) -> str | None:
        uri = frame.uri or ""
        start = f"{_URI}{self._instance.track}/"
        return uri[len(start) : -len(self._uri_end)] if uri.startswith(start) else None

    def _current(self, snapshot: Snapshot, uri: str) -> int | None:
        layers = snapshot.layers
        frames = layers.unexpired(layers.whole_of_uri(uri, self._instance.scope))
        values = [frame for frame in frames if self._is_value(snapshot, frame)]
        return values[-1] if values else None

    def _is_value(self, snapshot: Snapshot, frame: int) -> bool:
        """Return whether a frame is a value of the slot: a program may put any frame at its URI."""
        row = snapshot.layers.row(frame)
        return row is not None and (row.kind, row.track) == (VALUE_KIND, self._instance.track)

    def _check_free(self, snapshot: Snapshot, uri: str) -> None:
        """Refuse to replace a frame that is no value of the slot."""
        for frame in snapshot.layers.whole_of_uri(uri, self._instance.scope):
            if not self._is_value(snapshot, frame):
                raise Conflict(
                    f"Frame {frame:,} has the URI of the value, and is no value of the slot",
                    where=f"slot {self._instance.slot!r}",
                    remedy="Delete the frame with the store, or choose another key.",
                )

    def _ids(self, snapshot: Snapshot) -> list[int]:
        """Return the frames of the current values, oldest first."""
        layers = snapshot.layers
        masks = layers.admitted(Filter(track=self._instance.track, kind=VALUE_KIND))
        return self._of_instance(layers, layers.newest(masks))

    def _of_instance(self, layers: Layers, newest: Iterable[int]) -> list[int]:
        """Return the frames with exactly the scope of the instance, oldest first."""
        scope = self._instance.scope
        return [frame for frame in reversed([*newest]) if is_same(layers.scope_of(frame), scope)]

    def _kept(self, snapshot: Snapshot) -> list[int]:
        """Return the frames of the current values that reads show, oldest first."""
        ids = self._ids(snapshot)
        # Concurrent writers can leave more than the slot keeps.
        return ids if self._spec.max_items is None else ids[-self._spec.max_items :]

    def _frame(self, view: View, number: int) -> Frame:
        return self._checked(view.frame(number))

    def _checked(self, frame: Frame) -> Frame:
        """Return a frame whose own scope is that of the instance: the masks are not believed."""
        if not is_same(tuple(frame.scope.items()), self._instance.scope):
            raise Corrupt(
                f"The value in frame {frame.id:,} lies outside its instance",
                where=f"slot {self._instance.slot!r}",
                remedy="Run 'cerata file verify', then 'cerata file maintain --only rebuild'.",
            )
        return frame

    def _id_of(self, snapshot: Snapshot, key: str | int) -> int:
        if isinstance(key, str):
            frame = self._current(snapshot, self._uri(key))
        else:
            key = expect_integer("A value", key, "a key or the id of a value", "Pass item.id.")
            values = self._ids(snapshot)
            newest = current_version(snapshot, key)
            if newest != key and newest in values:
                raise Conflict(
                    f"The value {key:,} was replaced by the value {newest:,}",
                    where=f"slot {value_text(self._instance.slot)}",
                    remedy=f"Pass {newest} to change the current value.",
                )
            frame = key if key in values else None
        if frame is None:
            raise NotFound(
                f"There is no current value {value_text(key):.60}",
                where=f"slot {value_text(self._instance.slot)}",
                remedy="items() lists the current values.",
            )
        return frame

    def _read(self, view: View, number: int) -> tuple[Frame, JsonValue]:
        """Return the checked frame of a value, and its stored JSON."""
        frame, content = snapshot_of(view).frame_and_content_at(number)
        # The text of a value is never empty.
        return self._checked(frame), frame.text or decoded(content)

    def _value(self, frame: Frame, stored: JsonValue) -> Any:
        where = f"slot {self._instance.slot!r}, value {frame.id:,}"
        version = _version_of(frame)
        return read_value(self._spec, stored, version or 1, where)

    def _items(self, view: View, numbers: Iterable[int]) -> list[SlotItem]:
        """Return values; those that cannot be read are left out, and named by a warning."""

        def item(number: int) -> SlotItem:
            return self._item_of(*self._read(view, number))

        return [*readable(numbers, item, frame_place)]

    def _item_of(self, frame: Frame, stored: JsonValue) -> SlotItem:
        return SlotItem(
            frame.id,
            self._key(frame),
            self._value(frame, stored),
            frame.created,
            frame.expires,
            _version_of(frame),
        )


def _place_of(thing: Frame | Hit) -> str:
    return frame_place(thing.id)


def _version_of(frame: Frame) -> int | None:
    version = frame.metadata.get(VERSION_KEY)
    return version if isinstance(version, int) else None


def _words(value: JsonValue) -> Iterable[str]:
    """Yield the strings and numbers of a value, in order."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _words(item)
    elif isinstance(value, list):
        for item in value:
            yield from _words(item)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield str(value)
