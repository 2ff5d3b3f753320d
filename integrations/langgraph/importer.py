"""LangGraph's SQLite files: the tables of `SqliteSaver` and `SqliteStore`, in one file or in two.

Owns the meaning of their rows. Checkpoints and writes become the events of `CerataSaver`, with
the bytes as they are; items become the frames of `CerataStore`. No value is decoded, so neither
LangGraph nor a class of the user is needed, and a pickle is skipped unread.
"""

import json
import os
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any, Final, cast

import msgspec

from cerata.engine.errors import InvalidInput
from cerata.engine.events import UNDECODABLE, Draft, JsonValue
from cerata.memory.store import Store
from cerata.memory.values.frames import Frame
from cerata.projections.columnar.scopes import is_same

from ..importers.records import (
    DeletionRecord,
    Entry,
    MemoryAt,
    Problem,
    Skipped,
    draft_of,
    version_of,
)
from ..importers.sqlite_files import Row, SqliteFile, opened_sqlite
from .addresses import ITEM, uri_of
from .compression import compressed
from .events import DropCheckpoints, PutCheckpoint, PutWrites, TaskWrite
from .rows import CHECKPOINT, WRITES, GraphThreads, realm_of

_PLACE: Final = ("thread_id", "checkpoint_ns", "checkpoint_id")
_CHECKPOINTS: Final = (*_PLACE, "parent_checkpoint_id", "type", "checkpoint", "metadata")
_WRITES: Final = (*_PLACE, "task_id", "idx", "channel", "type", "value")
_ITEMS: Final = ("prefix", "key", "value", "created_at", "updated_at")
_EXPIRED: Final = "items that expired"
_PICKLES: Final = "checkpoints and writes in pickle, which is never read"

Place = tuple[str, str, str]


class Drops:
    """The checkpoints that were dropped in a memory, read from its log as far as it goes."""

    def __init__(self) -> None:
        self._places: set[tuple[str, str | None, str | None]] = set()
        self._end = 0

    def has(self, memory: MemoryAt, place: Place) -> bool:
        """Return whether a checkpoint was dropped here. Cost: a read of the log for the first."""
        if self._end < memory.view.basis:
            for event in memory.view.log(self._end + 1, type=DropCheckpoints):
                if isinstance(event.body, DropCheckpoints) and is_same(event.scope, memory.scope):
                    self._places.update(
                        (each.thread, each.ns, each.checkpoint_id) for each in event.body.dropped
                    )
            self._end = memory.view.basis
        thread, ns, checkpoint_id = place
        named = {(thread, within, only) for within in (None, ns) for only in (None, checkpoint_id)}
        return not named.isdisjoint(self._places)


@contextmanager
def opened(source: str | os.PathLike[str], now: datetime) -> Generator["LangGraphFile"]:
    """Open a file of LangGraph; items that expired by ``now`` are skipped."""
    program = "a file of LangGraph"
    remedy = "Pass the file of SqliteSaver or SqliteStore."
    with opened_sqlite(source) as file:
        columns = {"checkpoints": _CHECKPOINTS, "writes": _WRITES, "store": _ITEMS}
        has_store, has_checkpoints = "store" in file.tables, "checkpoints" in file.tables
        tables = ["checkpoints", "writes"] if has_checkpoints or not has_store else []
        tables += ["store"] if has_store else []
        for table in tables:
            file.check(table, columns[table], program, remedy)
        yield LangGraphFile(file, tables, now)


class LangGraphFile:
    """The rows of a file as records."""

    def __init__(self, file: SqliteFile, tables: list[str], now: datetime) -> None:
        self._file = file
        self._tables = tables
        self._now = now
        self._drops = Drops()
        self.done = 0
        self.total = sum(map(file.count, tables))

    def __iter__(self) -> Iterator[Entry]:
        if "checkpoints" in self._tables:
            for row in self._rows("checkpoints", _CHECKPOINTS):
                yield _entry(self._checkpoint, row)
            rows = self._rows("writes", _WRITES, ("task_path",))
            for _, task in groupby(rows, _task_of):
                yield _entry(self._writes, *task)
        if "store" in self._tables:
            for row in self._rows("store", _ITEMS, ("expires_at",)):
                yield _entry(self._item, row)

    def _rows(
        self, table: str, columns: Sequence[str], optional: Sequence[str] = ()
    ) -> Iterator[Row]:
        for row in self._file.rows(table, columns, optional):
            self.done += 1
            yield row

    def _checkpoint(self, row: Row) -> Entry:
        encoding = row.required("type")
        if _is_pickle(encoding):
            return Skipped(_PICKLES)
        thread, ns, checkpoint_id = _place_of(row)
        metadata = row.data("metadata") or b"{}"
        data, is_compressed = compressed(row.data("checkpoint"))
        body = PutCheckpoint(
            thread=thread,
            ns=ns,
            checkpoint_id=checkpoint_id,
            parent_id=row.text("parent_checkpoint_id"),
            run_id=_run_of(row, metadata),
            encoding=encoding,
            checkpoint=data,
            metadata_encoding="json",
            metadata=metadata,
            zstd=is_compressed,
        )
        return CheckpointRecord(row.place, body, self._drops)

    def _writes(self, *rows: Row) -> Entry:
        thread, ns, checkpoint_id = _place_of(rows[0])
        # NULL is a value that an earlier version stored for None.
        encodings = [row.text("type") or "null" for row in rows]
        if any(map(_is_pickle, encodings)):
            return Skipped(_PICKLES)
        writes = tuple(
            TaskWrite(row.integer("idx"), row.required("channel"), encoding, row.data("value"))
            for row, encoding in zip(rows, encodings, strict=True)
        )
        body = PutWrites(
            thread=thread,
            ns=ns,
            checkpoint_id=checkpoint_id,
            task_id=rows[0].required("task_id"),
            task_path=rows[0].text("task_path") or "",
            writes=writes,
        )
        return WritesRecord(rows[0].place, body, self._drops)

    def _item(self, row: Row) -> Entry:
        expires = row.time("expires_at")
        if expires is not None and expires <= self._now:
            updated, uri = row.time("updated_at"), _uri_of(row)
            if updated is None:
                return Skipped(_EXPIRED)
            return ExpiredItem(row.place, ITEM, uri, updated.isoformat(), reason=_EXPIRED)
        text = row.required("value")
        try:
            value = msgspec.json.decode(text, type=dict[str, Any])
        except UNDECODABLE as error:
            raise row.refusal(f"value is no object of JSON: {error}") from error
        created, doubts = row.time_or_doubt("created_at")
        return ItemRecord(
            row.place,
            _uri_of(row),
            json.dumps(value, ensure_ascii=False),
            value,
            created,
            row.time("updated_at") or self._now,
            expires,
            doubts,
        )


def _entry(make: Callable[..., Entry], *rows: Row) -> Entry:
    try:
        return make(*rows)
    except InvalidInput as error:
        return Problem.of(error, rows[0].place)


def _uri_of(row: Row) -> str:
    return uri_of(tuple(row.required("prefix").split(".")), row.required("key"))


def _place_of(row: Row) -> Place:
    return row.required("thread_id"), row.text("checkpoint_ns") or "", row.required("checkpoint_id")


def _task_of(row: Row) -> tuple[object, ...]:
    return (*(row.value(name) for name in _PLACE), row.value("task_id"))


def _is_pickle(encoding: str) -> bool:
    # An encrypting serializer adds "+" and the cipher's name.
    return encoding.partition("+")[0] == "pickle"


def _run_of(row: Row, metadata: bytes) -> str | None:
    """Return the id of the run that made a checkpoint."""
    try:
        fields: object = msgspec.json.decode(metadata)
    except UNDECODABLE as error:
        raise row.refusal(f"metadata is not JSON: {error}") from error
    run_id = cast("dict[str, object]", fields).get("run_id") if isinstance(fields, dict) else None
    return None if run_id is None else str(run_id)


# --- records -------------------------------------------------------------------------------------


def _key_of(body: PutCheckpoint | PutWrites) -> Place:
    return body.thread, body.ns, body.checkpoint_id


@dataclass(frozen=True, slots=True)
class CheckpointRecord:
    """A checkpoint; the memory has it if it has one at the place, or dropped it."""

    place: str
    body: PutCheckpoint
    drops: Drops
    version: str = ""
    doubts: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return f"checkpoint {_key_of(self.body)!r}"

    @property
    def size(self) -> int:
        return len(self.body.checkpoint) + len(self.body.metadata)

    def is_event(self, memory: MemoryAt) -> bool:
        return True

    def is_known(self, memory: MemoryAt) -> bool:
        place = _key_of(self.body)
        rows = memory.snapshot.state(GraphThreads).rows
        row = rows.get((*realm_of(memory.scope), CHECKPOINT, *place))
        return row is not None or self.drops.has(memory, place)

    def draft(self, memory: MemoryAt) -> Draft | None: ...

    def write(self, store: Store, memory: MemoryAt, frame: int) -> None:
        store.append(self.body)


@dataclass(frozen=True, slots=True)
class WritesRecord:
    """Writes of a task, of which the memory gets those that it never had.

    Of a special write, whose index is negative, the last counts, so its value is compared too.
    """

    place: str
    body: PutWrites
    drops: Drops
    doubts: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return f"writes {_key_of(self.body)!r} {self.body.task_id!r}"

    @property
    def version(self) -> str:
        return version_of(self.body)

    @property
    def size(self) -> int:
        return sum(len(write.value) for write in self.body.writes)

    def is_event(self, memory: MemoryAt) -> bool:
        return True

    def is_known(self, memory: MemoryAt) -> bool:
        return not self._new(memory)

    def draft(self, memory: MemoryAt) -> Draft | None: ...

    def write(self, store: Store, memory: MemoryAt, frame: int) -> None:
        store.append(msgspec.structs.replace(self.body, writes=self._new(memory)))

    def _new(self, memory: MemoryAt) -> tuple[TaskWrite, ...]:
        place = _key_of(self.body)
        if self.drops.has(memory, place):
            return ()
        known: set[object] = set()
        for key, _ in memory.snapshot.state(GraphThreads).rows.range(
            prefix=(*realm_of(memory.scope), WRITES, *place)
        ):
            event = memory.snapshot.event_of(cast("int", key[6]))
            body = None if event is None else event.body
            if isinstance(body, PutWrites) and body.task_id == self.body.task_id:
                known.update(map(_identity, body.writes))
        return tuple(write for write in self.body.writes if _identity(write) not in known)


def _identity(write: TaskWrite) -> object:
    return write.index if write.index >= 0 else (write.index, write.encoding, write.value)


@dataclass(frozen=True, slots=True)
class ItemRecord:
    """An item of the store: a frame as `CerataStore` writes it, for whom the metadata is the value.

    The memory has it if any version here is as new, or is of the same time and has the value.
    """

    place: str
    name: str
    text: str
    value: Mapping[str, JsonValue]
    created: datetime | None
    updated: datetime
    expires: datetime | None
    doubts: tuple[str, ...] = ()

    @property
    def version(self) -> str:
        return version_of(self.text, self.updated.isoformat())

    @property
    def size(self) -> int:
        return len(self.text)

    def is_event(self, memory: MemoryAt) -> bool:
        return False

    def is_known(self, memory: MemoryAt) -> bool:
        return any(map(self._is_covered, memory.frames(self.name)))

    def _is_covered(self, frame: Frame) -> bool:
        updated = _updated_of(frame)
        return updated > self.updated or (updated == self.updated and frame.text == self.text)

    def draft(self, memory: MemoryAt) -> Draft | None:
        return draft_of(
            self.text,
            memory,
            kind=ITEM,
            uri=self.name,
            metadata=self.value,
            created=self.created,
            content_dates=[self.updated],
            expires=self.expires,
        )

    def write(self, store: Store, memory: MemoryAt, frame: int) -> None: ...


@dataclass(frozen=True, slots=True)
class ExpiredItem(DeletionRecord):
    """An item that expired: it takes older versions with it. ``id`` is its URI."""

    @property
    def name(self) -> str:
        return self.id

    def is_known(self, memory: MemoryAt) -> bool:
        current = map(memory.snapshot.frame_at, memory.open_frames(self.name))
        updated = datetime.fromisoformat(self.version)
        return all(_updated_of(frame) >= updated for frame in current)


def _updated_of(frame: Frame) -> datetime:
    return (frame.content_dates or (frame.recorded,))[0]
