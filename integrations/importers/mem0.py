"""mem0: the table ``history`` of its SQLite file ``history.db``.

Owns the meaning of its rows, in order of rowid: ADD and UPDATE put a memory's text, DELETE deletes
it. A row is a record, so each version of a memory is a version of its frame. The ids of all rows
are read first, since a row is known by those that follow it, too.
"""

import os
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Final

from cerata.engine.errors import InvalidInput
from cerata.engine.events import JsonValue

from .records import DeletionRecord, Entry, FrameRecord, Problem, Skipped
from .sqlite_files import Row, SqliteFile, opened_sqlite

KIND: Final = "mem0"
_COLUMNS: Final = ("id", "memory_id", "new_memory", "event", "created_at", "updated_at")
_OPTIONAL: Final = ("actor_id", "role")


@contextmanager
def opened(source: str | os.PathLike[str], _now: datetime) -> Generator["Mem0History"]:
    """Open the history of mem0."""
    with opened_sqlite(source) as file:
        file.check("history", _COLUMNS, "mem0's history", "Pass mem0's history.db.")
        yield Mem0History(file)


class Mem0History:
    """The rows of the history as records."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file
        self._memories: set[str] = set()
        self.done = 0
        self.total = file.count("history")
        self._versions: dict[object, list[object]] = {}
        """The ids of the rows of each memory that are still to come, the next at the end."""
        for row in file.rows("history", ("memory_id", "id")):
            self._versions.setdefault(row.value("memory_id"), []).append(row.value("id"))
        for versions in self._versions.values():
            versions.reverse()

    def __iter__(self) -> Iterator[Entry]:
        for row in self._file.rows("history", _COLUMNS, _OPTIONAL):
            self.done += 1
            later = self._versions.get(row.value("memory_id"), [])
            if later:  # empty for a row that was written since they were read
                later.pop()
            try:
                yield self._record(row, later)
            except InvalidInput as error:
                yield Problem.of(error, row.place)

    def _record(self, row: Row, later: list[object]) -> Entry:
        action = row.required("event")
        memory = row.required("memory_id")
        version = row.required("id")
        if action == "DELETE":
            if memory not in self._memories:
                return Skipped("deletions of memories that the history does not have")
            return DeletionRecord(row.place, KIND, memory, version)
        if action not in ("ADD", "UPDATE"):
            raise row.refusal(f"There is no action {action!r:.60} of mem0")
        text = row.text("new_memory")
        if not text:
            return Skipped("memories without text")
        self._memories.add(memory)
        actor = row.text("actor_id")
        metadata: dict[str, JsonValue] = {} if actor is None else {"actor_id": actor}
        created = row.time("updated_at") or row.time("created_at")
        fields = {"role": row.text("role"), "created": created}
        return FrameRecord(
            row.place,
            KIND,
            memory,
            version,
            text,
            fields=fields,
            metadata=metadata,
            later=frozenset(each.decode() for each in later if isinstance(each, bytes)),
        )
