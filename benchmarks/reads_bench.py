"""Reads of single frames beside SQLite by primary key or index, at two sizes.

``python -m benchmarks.reads_bench``: 10,000 and 100,000 frames; half have a URI, half a role. A
read of a store looks at the file for events of other processes; a read of a view does not.
"""

import argparse
import random
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

import cerata
from cerata import agents

from .beside_sqlite import connected, report, report_machine, report_times

_BATCH: Final = 500
_SCHEMA: Final = """
CREATE TABLE frame (id INTEGER PRIMARY KEY, uri TEXT, role TEXT, text TEXT, recorded INTEGER);
CREATE INDEX by_uri ON frame (uri);
CREATE INDEX by_role ON frame (role, id);
CREATE TABLE tag (name TEXT PRIMARY KEY, seq INTEGER);
"""
_READS: Final = 200

Call = Callable[[], object]


def fill(path: str, peer: str, count: int) -> None:
    """Write the same frames to a memory and to tables."""
    database = connected(peer)
    database.executescript(_SCHEMA)
    with cerata.open(path) as store:
        for start in range(0, count, _BATCH):
            numbers = range(start, min(count, start + _BATCH))
            with store.transaction():
                for number in numbers:
                    uri, role = _fields(number)
                    store.put_frame(f"text {number} of the talk", uri=uri, role=role)
            database.executemany(
                "INSERT INTO frame VALUES (?, ?, ?, ?, ?)",
                [(number + 1, *_fields(number), f"text {number}", number) for number in numbers],
            )
            database.commit()
        store.history.tag("half", at=count // _BATCH // 2 * _BATCH)
        frame = store.put_frame("version 0", uri="version").id
        for number in range(1, 5):
            frame = store.supersede(frame, f"version {number}").id
        store.checkpoint()
    database.execute("INSERT INTO tag VALUES ('half', ?)", (count // 2,))
    database.commit()
    database.close()


def _fields(number: int) -> tuple[str | None, str | None]:
    return (f"note/{number}", None) if number % 2 else (None, "user")


def ask(path: str, peer: str, count: int) -> None:
    """Report the times of every read."""
    dice = random.Random(3)
    database = connected(peer)

    def rows(query: str, *values: object) -> Call:
        return lambda: database.execute(query, values).fetchall()

    numbers = [dice.randrange(0, count - 1) | 1 for _ in range(_READS)]
    by_id = [rows("SELECT * FROM frame WHERE id = ?", number) for number in numbers]
    by_uri = [rows("SELECT * FROM frame WHERE uri = ?", f"note/{number}") for number in numbers]
    ten = "SELECT * FROM frame {} ORDER BY id DESC LIMIT 10"
    with cerata.open(path, mode="r") as store:
        view = store.history.view()
        versions = store.get("version")
        assert versions is not None
        reads: list[tuple[str, list[Call], list[Call]]] = [
            ("frame(id)", [partial(store.frame, number) for number in numbers], by_id),
            ("frame(id) of a view", [partial(view.frame, number) for number in numbers], by_id),
            ("get(uri)", [partial(store.get, f"note/{number}") for number in numbers], by_uri),
            ("tags()", [store.history.tags] * _READS, [rows("SELECT * FROM tag")] * _READS),
            ("last(10)", [partial(store.history.last, 10)] * 50, [rows(ten.format(""))] * 50),
            (
                "messages(10)",
                [partial(agents.messages, store, 10)] * 50,
                [rows(ten.format("WHERE role = 'user'"))] * 50,
            ),
            (
                "history of 5 versions",
                [partial(store.history.of, versions.id)] * 50,
                [rows("SELECT * FROM frame WHERE id <= 5")] * 50,
            ),
        ]
        for name, mine, peers in reads:
            mine[0]()
            report_times(f"{name}, {count:,} frames", mine, peers)
    database.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--tiny", action="store_true", help="1,000 frames")
    sizes = (1_000,) if parser.parse_args().tiny else (10_000, 100_000)
    report_machine()
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            path, peer = str(Path(folder) / "reads.cera"), str(Path(folder) / "reads.sqlite")
            fill(path, peer, size)
            ask(path, peer, size)
    report("answered", "all reads")


if __name__ == "__main__":
    main()
