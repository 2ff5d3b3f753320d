"""Mutations of importers' sources: an error with its place, or every item in exactly one count.

``python -m tests.integrations.importer_mutations --count 10000`` mutates a valid source of each
kind so often; the suite runs a few of them (`test_importer_mutations`).
"""

# ruff: noqa: S608, T201

import argparse
import json
import random
import sqlite3
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from io import BytesIO
from itertools import groupby
from pathlib import Path
from typing import Final

import cerata
from cerata import CerataError
from cerata.integrations.importers import ImportedRecords, import_from

from .sources_of import source

JSONL: Final = b"".join(
    json.dumps(
        {"id": number, "text": f"note {number}", "created": f"2026-11-0{number}T09:00:00Z"}
        | ({"metadata": {"n": [number]}, "tags": ["t"]} if number % 2 else {})
    ).encode()
    + b"\n"
    for number in range(1, 9)
)

_VALUES: Final = (
    None, "", 0, -1, 2**62, 1.5, "x" * 5_000, b"", b"\xff\xfe", b"\0", "DELETE", "ADD", "no time",
    "2024-01-01T00:00:00+23:59:59", "0001-01-01T00:00:00+14:00", "{", "[]", "pickle", "\ud7ff",
)  # fmt: skip
_GARBAGE: Final = (
    b"\n", b"\r", b"{", b"}", b"[", b'"', b"\\ud800", b"NaN", b"null", b"\xff", b"\0", b"[" * 100,
    b'""', b"1e999",
)  # fmt: skip

SQLITE: Final = {
    "mem0": ("mem0-3.db", ("history",)),
    "chroma": ("chroma-3.sqlite3", ("embeddings", "embedding_metadata", "segments", "collections")),
    "langgraph-sqlite": ("langgraph-sqlite-1.db", ("checkpoints", "writes")),
    "items": ("langgraph-sqlite-3.db", ("store",)),
}


def mutated_lines(data: bytes, draw: random.Random) -> bytes:
    """Change some bytes, or cut, drop, repeat or swap lines."""
    rows = data.splitlines(keepends=True)
    for _ in range(draw.randint(1, 3)):
        place = draw.randrange(len(rows))
        row = rows[place]
        at = draw.randrange(len(row) or 1)
        match draw.randrange(7):
            case 0:
                rows[place] = row[:at] + bytes([draw.randrange(256)]) + row[at + 1 :]
            case 1:
                rows[place] = row[:at] + draw.choice(_GARBAGE) + row[at:]
            case 2:
                rows[place] = row[:at] + b"\n"
            case 3:
                rows.insert(place, draw.choice(_GARBAGE) + b"\n")
            case 4:
                rows.append(rows[-1] if rows[-1].endswith(b"\n") else b"\n")
            case 5:
                rows[-1] = rows[-1][: draw.randrange(len(rows[-1]) or 1)]
            case _:
                rows[place], rows[-1] = rows[-1], rows[place]
    return b"".join(rows)


def mutate_rows(path: Path, tables: tuple[str, ...], draw: random.Random) -> None:
    """Change values of some rows to any others, or repeat, delete or move rows."""
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA writable_schema = OFF")
    for _ in range(draw.randint(1, 4)):
        table = draw.choice(tables)
        columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
        rows = [row[0] for row in connection.execute(f"SELECT rowid FROM {table}")]
        if not rows:
            continue
        column, row, value = draw.choice(columns), draw.choice(rows), draw.choice(_VALUES)
        try:
            match draw.randrange(4):
                case 0 if len(rows) > 1:
                    connection.execute(f"DELETE FROM {table} WHERE rowid = ?", (row,))
                case 1 if isinstance(value, bytes):
                    query = f"UPDATE {table} SET {column} = CAST(? AS TEXT) WHERE rowid = ?"
                    connection.execute(query, (value, row))
                case _:
                    query = f"UPDATE {table} SET {column} = ? WHERE rowid = ?"
                    connection.execute(query, (value, row))
        except (sqlite3.IntegrityError, sqlite3.OperationalError):
            continue
    connection.commit()
    connection.close()


def items_of(path: Path, kind: str) -> int:
    """Return the count of the items of a SQLite file."""
    connection = sqlite3.connect(path)
    connection.text_factory = bytes
    if kind == "langgraph-sqlite":
        [count] = connection.execute("SELECT count(*) FROM checkpoints").fetchone()
        tasks = connection.execute(
            "SELECT thread_id, checkpoint_ns, checkpoint_id, task_id FROM writes ORDER BY rowid"
        ).fetchall()
        count += len(list(groupby(tasks)))
    else:
        table = {"mem0": "history", "chroma": "embeddings", "items": "store"}[kind]
        [count] = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
    connection.close()
    return int(count)


def counted(imported: ImportedRecords) -> int:
    return (
        imported.added + imported.known + imported.refused + sum(imported.skipped.values())
    )  # fmt: skip


def outcome(
    kind: str, path: Path | BytesIO, items: int, *, is_sqlite: bool = False
) -> tuple[str, str | None]:
    """Import a source; return the outcome, and the fault if a rule was broken."""
    with cerata.open(":memory:") as store:
        try:
            imported = import_from(store, kind, path)
        except CerataError as error:
            if not error.where or not error.remedy:
                return "error", f"no place or remedy: {error}"
            return "error", None
        if counted(imported) != items:
            return "lost", f"{items} items, {imported}"
        if imported.refused != len(imported.problems) or imported.doubtful != len(imported.doubts):
            return "lost", f"not named: {imported}"
        again = import_from(
            store, kind, BytesIO(path.getvalue()) if isinstance(path, BytesIO) else path
        )
        # An item of LangGraph without a time of its update has that of the import.
        if again.added and is_sqlite and kind != "langgraph-sqlite":
            return "again", f"added again: {again}"
        return ("whole" if not imported.refused else "part"), None


def of_lines(data: bytes) -> int:
    return sum(1 for row in data.split(b"\n") if row.strip())


def try_jsonl(draw: random.Random, _folder: Path) -> tuple[str, str | None]:
    data = mutated_lines(JSONL, draw)
    return outcome("jsonl", BytesIO(data), of_lines(data))


def try_graphiti(draw: random.Random, folder: Path) -> tuple[str, str | None]:
    path = source(draw.choice(("graphiti-1.jsonl", "graphiti-4.jsonl")), folder)
    data = mutated_lines(path.read_bytes(), draw)
    path.write_bytes(data)
    return outcome("graphiti", path, of_lines(data))


def try_sqlite(kind: str) -> Callable[[random.Random, Path], tuple[str, str | None]]:
    def attempt(draw: random.Random, folder: Path) -> tuple[str, str | None]:
        name, tables = SQLITE[kind]
        path = source(name, folder)
        mutate_rows(path, tables, draw)
        imported = "langgraph-sqlite" if kind == "items" else kind
        return outcome(imported, path, items_of(path, kind), is_sqlite=True)

    return attempt


def try_bytes(draw: random.Random, folder: Path) -> tuple[str, str | None]:
    """Any byte of a SQLite file: an error, or a result."""
    kind = draw.choice(("mem0", "chroma", "langgraph-sqlite"))
    path = source(SQLITE[kind][0], folder)
    data = bytearray(path.read_bytes())
    for _ in range(draw.randint(1, 20)):
        data[draw.randrange(len(data))] = draw.randrange(256)
    path.write_bytes(data)
    with cerata.open(":memory:") as store:
        try:
            import_from(store, kind, path)
        except CerataError as error:
            return "error", None if error.where else f"no place: {error}"
    return "whole", None


def _exported() -> bytes:
    lines = BytesIO()
    with cerata.open(":memory:") as store:
        for number in range(6):
            store.put_frames([f"a {number}", f"b {number}"])
        store.interchange.export_events(lines)
    return lines.getvalue()


EVENTS: Final = _exported()


def try_events(draw: random.Random, _folder: Path) -> tuple[str, str | None]:
    """The batches before the first changed line are there, and the whole export adds the rest."""
    data = mutated_lines(EVENTS, draw)
    same = 0
    for before, after in zip(EVENTS.split(b"\n"), data.split(b"\n"), strict=False):
        if before != after:
            break
        same += 1
    whole = max(0, (same - 1) // 2 * 2)
    with cerata.open(":memory:") as store:
        result = "whole"
        try:
            imported = store.interchange.import_events(BytesIO(data))
            result = "whole" if imported.is_whole else "cut"
        except CerataError as error:
            result = "error"
            if whole and f"{store.head.seq} events before it are imported" not in str(error):
                return result, f"without the count: {error}"
        if store.head.seq < min(whole, 12):
            return result, f"{store.head.seq} of {whole} events before the damage"
        if store.head.seq:
            store.interchange.import_events(BytesIO(EVENTS))
            if store.head.seq != 12:
                return result, "the whole export adds other events"
    return result, None


KINDS: Final[dict[str, Callable[[random.Random, Path], tuple[str, str | None]]]] = {
    "jsonl": try_jsonl,
    "graphiti": try_graphiti,
    **{kind: try_sqlite(kind) for kind in SQLITE},
    "bytes of SQLite": try_bytes,
    "events": try_events,
}


def run(kind: str, count: int, seed: int) -> tuple[Counter[str], list[str]]:
    """Try mutations of a kind; return the outcomes, and the faults with their seeds."""
    outcomes: Counter[str] = Counter()
    faults: list[str] = []
    for number in range(count):
        with tempfile.TemporaryDirectory() as folder:
            name = f"{kind} {seed} {number}"
            try:
                result, fault = KINDS[kind](random.Random(name), Path(folder))
            except Exception as error:  # noqa: BLE001 - a raw error is a fault
                result, fault = "raw", f"{type(error).__name__}: {error}"
        outcomes[result] += 1
        if fault is not None:
            faults.append(f"{name}: {fault:.300}")
    return outcomes, faults


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000, help="mutations of each kind")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    is_good = True
    for kind in KINDS:
        outcomes, faults = run(kind, options.count, options.seed)
        print(f"{kind}, seed {options.seed}: {dict(sorted(outcomes.items()))}", flush=True)
        for fault in faults[:10]:
            print(f"  {fault}")
        is_good = is_good and not faults
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
