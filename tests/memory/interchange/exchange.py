"""The vocabulary of interchange: a log's lines, changed lines, and a file that they go into."""

import json
from collections.abc import Callable
from io import BytesIO
from typing import Any

import cerata
from cerata import ImportedEvents, Store
from cerata.engine.disk.environment import Environment
from cerata.engine.log import Log
from cerata.memory.interchange.export import export_events


def lines_of(store: Store, **options: Any) -> bytes:
    """Return the lines of an export."""
    file = BytesIO()
    store.interchange.export_events(file, **options)
    return file.getvalue()


def lines_of_log(log: Log) -> bytes:
    file = BytesIO()
    export_events(log, file, 1, log.head.seq)
    return file.getvalue()


def bring(store: Store, lines: bytes) -> ImportedEvents:
    """Import lines into a store."""
    return store.interchange.import_events(BytesIO(lines))


def identity(store: Store) -> tuple[object, ...]:
    """Return what a copy of a log has in common with it."""
    head = store.head
    return head.log_id, head.seq, head.chain, head.root, store.stream.digests(replay=True)


def copied(lines: bytes, check: Callable[[Store], object]) -> object:
    """Import lines into an empty memory, and return the result of a look at it."""
    with cerata.open(":memory:", environment=Environment.in_memory()) as copy:
        bring(copy, lines)
        assert copy.verify().ok
        return check(copy)


def changed(lines: bytes, place: int, change: Callable[[dict[str, Any]], object]) -> bytes:
    """Change one line, counted from 0; the rest stays byte for byte."""
    rows = lines.splitlines(keepends=True)
    row = json.loads(rows[place])
    change(row)
    rows[place] = json.dumps(row).encode() + b"\n"
    return b"".join(rows)
