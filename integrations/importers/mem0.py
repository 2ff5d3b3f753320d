"""mem0: the table ``history`` of its SQLite file ``history.db``.

Owns the meaning of its rows: ADD and UPDATE put a memory's text, DELETE deletes it, and so does a
row whose ``is_deleted`` is set. A row is a record, so each version of a memory is a version of its
frame. The rows of a memory are one unit, in order of rowid: no batch, and so no end of an import,
comes between a memory and its deletion. The rowids of each memory are read first.
"""

import os
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Final

from cerata.engine.errors import InvalidInput
from cerata.engine.events import JsonValue
from cerata.retrieval.speaker_names import speaker

from .records import DeletionRecord, Entry, FrameRecord, Problem, Record, Skipped, Versions
from .sqlite_files import Row, SqliteFile, opened_sqlite

KIND: Final = "mem0"
_COLUMNS: Final = ("id", "memory_id", "new_memory", "event", "created_at", "updated_at")
_OPTIONAL: Final = ("actor_id", "role", "is_deleted")

_PUTS: Final = ("ADD", b"ADD", "UPDATE", b"UPDATE")
_DELETE: Final = ("DELETE", b"DELETE")
_FALSE: Final = (None, 0, "", b"", "0", b"0")

_UNIT_RECORDS: Final = 500
_UNIT_SIZE: Final = 4 << 20
"""Versions, and characters of their texts, that a batch takes of a memory."""


@contextmanager
def opened(source: str | os.PathLike[str], _now: datetime) -> Generator["Mem0History"]:
    """Open the history of mem0."""
    with opened_sqlite(source) as file:
        file.check("history", _COLUMNS, "mem0's history", "Pass mem0's history.db.")
        yield Mem0History(file)


class Mem0History:
    """The rows of the history as records, the memories in the order of their first rows."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file
        self.done = 0
        self.total = file.count("history")
        self._rows: dict[object, list[int]] = {}
        """The rowids of each memory."""
        self._deleted: set[object] = set()
        """The memories whose last row deletes them, or may delete them."""
        for row in file.rows("history", ("memory_id", "event"), ("is_deleted",)):
            memory = row.value("memory_id")
            self._rows.setdefault(memory, []).append(row.number)
            hides = _deletes(row) or row.value("event") not in _PUTS
            (self._deleted.add if hides else self._deleted.discard)(memory)

    def __iter__(self) -> Iterator[Entry]:
        for memory, numbers in self._rows.items():
            yield from self._unit(numbers, is_deleted=memory in self._deleted)

    def _unit(self, numbers: Sequence[int], *, is_deleted: bool) -> Iterator[Entry]:
        """Yield a memory's versions: in one batch, or in several if it is current at the end.

        The deletion of a memory that is too long for a batch takes the newest versions with it.
        """
        versions: deque[Record] = deque()
        size = left_out = 0
        for row in self._file.rows_at("history", _COLUMNS, _OPTIONAL, numbers):
            self.done += 1
            entry: Entry
            try:
                is_last = len(numbers) > 1 and row.number == numbers[-1]
                entry = self._entry(row, is_last=is_last)
            except InvalidInput as error:
                entry = Problem.of(error, row.place)
            if not isinstance(entry, FrameRecord | DeletionRecord):
                yield entry
                continue
            versions.append(entry)
            size += entry.size
            while len(versions) > 1 and (len(versions) > _UNIT_RECORDS or size > _UNIT_SIZE):
                if not is_deleted:
                    last = versions.pop()
                    yield Versions(tuple(versions))
                    versions = deque([last])
                    size = last.size
                else:
                    size -= versions.popleft().size
                    left_out += 1
        yield from [Skipped("early versions of deleted memories that are too long")] * left_out
        if versions:
            yield Versions(tuple(versions))

    def _entry(self, row: Row, *, is_last: bool) -> Record | Skipped:
        """Return the record of a row; ``is_last`` if it decides on earlier rows of the memory."""
        memory = row.required("memory_id")
        if _deletes(row):
            return DeletionRecord(row.place, KIND, memory, f"{row.value('id')}")
        action = row.required("event")
        if action not in ("ADD", "UPDATE"):
            what = f"There is no action {action!r:.60} of mem0"
            if is_last:
                # A memory that its source may have deleted must not be current.
                doubt = f"{what}, so the memory is hidden"
                return DeletionRecord(
                    row.place, KIND, memory, f"{row.value('id')}", doubts=(doubt,)
                )
            raise row.refusal(what)
        version = row.required("id")
        text = row.text("new_memory")
        if not text:
            return Skipped("memories without text")
        actor = row.text("actor_id")
        metadata: dict[str, JsonValue] = {} if actor is None else {"actor_id": actor}
        created, doubts = row.time_or_doubt("updated_at", "created_at")
        fields = {"role": speaker(row.text("role"), actor), "created": created}
        return FrameRecord(
            row.place,
            KIND,
            memory,
            version,
            text,
            fields=fields,
            metadata=metadata,
            doubts=doubts,
        )


def _deletes(row: Row) -> bool:
    return row.value("event") in _DELETE or row.value("is_deleted") not in _FALSE
