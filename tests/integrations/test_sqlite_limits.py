"""A SQLite file of another program runs no code, and costs no more than its size allows."""

import signal
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import cerata
from cerata import InvalidInput, Locked
from cerata.integrations.importers import import_from, sqlite_files, sqlite_limits

from . import hostile_sqlite
from .hostile_sqlite import COLUMNS, FILES, made


@pytest.mark.parametrize("make", FILES, ids=lambda make: make.__name__)
def test_a_hostile_file_is_refused(make: Callable[[Path], Path], tmp_path: Path) -> None:
    """Views, full-text tables over views, functions, and pages that refer to each other."""
    path = make(tmp_path / "history.db")
    with cerata.open(":memory:") as store:
        with pytest.raises(InvalidInput) as caught:
            import_from(store, "mem0", path)
        assert (caught.value.where or "").startswith(str(path))
        assert caught.value.remedy
        assert store.head.seq == 0


@pytest.mark.parametrize(
    ("make", "limit"),
    [
        (hostile_sqlite.pages_without_end, "steps"),
        (hostile_sqlite.rows_that_share_a_text, "bytes of values"),
        (hostile_sqlite.full_text_over_a_view, "view, a virtual table or a function"),
        (hostile_sqlite.rows_without_order, "out of order"),
    ],
)
def test_the_error_names_the_limit(
    make: Callable[[Path], Path], limit: str, tmp_path: Path
) -> None:
    """A user must see why the file is refused."""
    with cerata.open(":memory:") as store, pytest.raises(InvalidInput, match=limit):
        import_from(store, "mem0", make(tmp_path / "history.db"))


def test_no_statement_of_ours_runs_a_query_of_the_file(tmp_path: Path) -> None:
    """The authorizer refuses it, too, if a file passes for a plain table."""
    path = hostile_sqlite.full_text_over_a_view(tmp_path / "history.db")
    with sqlite_files.opened_sqlite(path) as file:
        for name, fault in (("v", "none is run"), ("history", "constructor failed")):
            with pytest.raises(InvalidInput, match=fault):
                file.count(name)


@pytest.mark.parametrize(
    ("kind", "table"), [("chroma", "embeddings"), ("langgraph-sqlite", "checkpoints")]
)
def test_each_kind_refuses_a_virtual_table(kind: str, table: str, tmp_path: Path) -> None:
    """The limits are of the file, not of one importer."""
    path = made(tmp_path / "x.db", f"CREATE VIRTUAL TABLE {table} USING fts5(id)")
    with cerata.open(":memory:") as store, pytest.raises(InvalidInput):
        import_from(store, kind, path)


def test_control_c_ends_a_long_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite drops the exception of a signal; the import must end nevertheless."""
    path = hostile_sqlite.pages_without_end(tmp_path / "history.db")
    looks: list[int] = []

    def step(_limits: object) -> bool:
        looks.append(1)
        if len(looks) == 3:
            signal.raise_signal(signal.SIGINT)
        return False

    monkeypatch.setattr(sqlite_limits.SqliteLimits, "_step", step)
    with cerata.open(":memory:") as store:
        with pytest.raises(KeyboardInterrupt):
            import_from(store, "mem0", path)
        assert store.head.seq == 0
    assert len(looks) == 3


@pytest.mark.parametrize("names", [("rowid",), ("ROWID", "_rowid_")])
def test_a_column_may_have_the_name_of_the_rowid(names: tuple[str, ...], tmp_path: Path) -> None:
    """Its values are no numbers of rows."""
    columns = "".join(f"{name} TEXT, " for name in names)
    values = "'x', " * len(names)
    path = made(
        tmp_path / "history.db",
        f"CREATE TABLE history ({columns}{COLUMNS})",
        f"INSERT INTO history VALUES ({values}'i', 'm', 'text', 'ADD', NULL, NULL)",  # noqa: S608
    )
    with cerata.open(":memory:") as store:
        assert import_from(store, "mem0", path).added == 1


def test_a_table_whose_rows_have_no_numbers_is_refused(tmp_path: Path) -> None:
    """All three names of the number may be columns; the place of a row has no other name."""
    path = made(tmp_path / "h.db", f"CREATE TABLE history (rowid, oid, _rowid_, {COLUMNS})")
    with cerata.open(":memory:") as store, pytest.raises(InvalidInput, match="have no numbers"):
        import_from(store, "mem0", path)


def test_large_rows_come_in_small_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Five hundred rows of the largest size would not fit the memory."""
    monkeypatch.setattr(sqlite_files, "_PAGE_SIZE", 1_000)
    path = made(tmp_path / "h.db", f"CREATE TABLE history ({COLUMNS})")
    with sqlite3.connect(path) as connection:
        connection.executemany(
            "INSERT INTO history VALUES (?, ?, ?, 'ADD', NULL, NULL)",
            [(str(n), f"m{n}", f"{n} {'x' * 600}") for n in range(20)],
        )
    connection.close()
    with sqlite_files.opened_sqlite(path) as file:
        limits = file._limits
        taken: list[int] = []

        def take(size: int, _part: str) -> None:
            taken.append(size)

        monkeypatch.setattr(limits, "take", take)
        rows = file.rows("history", ("id", "new_memory"))
        next(rows)
        assert len(taken) == 2
        assert len([*rows]) == 19


def test_a_wait_for_a_lock_looks_at_signals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite waited for 5 s in one call, and Ctrl-C with it."""
    monkeypatch.setattr(sqlite_files, "LOCK_SECONDS", 1.0)
    path = tmp_path / "history.db"
    looks: list[int] = []
    former = signal.signal(signal.SIGALRM, lambda number, _: looks.append(number))
    try:
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("CREATE TABLE t (a)")
            connection.execute("BEGIN EXCLUSIVE")
            signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
            with pytest.raises(Locked), sqlite_files.opened_sqlite(path):
                pass
            signal.setitimer(signal.ITIMER_REAL, 0)
    finally:
        signal.signal(signal.SIGALRM, former)
    # A single call of SQLite runs one of the handlers, after its end.
    assert len(looks) >= 3


def test_a_copy_looks_at_signals_after_each_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The copy of a large file was a single call, which Ctrl-C did not end."""
    monkeypatch.setattr(sqlite_files, "_COPY_PAGES", 5)
    path = tmp_path / "history.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE t (a)")
        connection.executemany("INSERT INTO t VALUES (?)", [("x" * 4_000,)] * 100)
        connection.commit()
    steps: list[int] = []

    class Connection:
        def __init__(self, connection: sqlite3.Connection) -> None:
            self.connection = connection

        def backup(
            self,
            target: sqlite3.Connection,
            *,
            progress: Callable[[int, int, int], None],
            **options: Any,
        ) -> None:
            def step(status: int, remaining: int, total: int) -> None:
                steps.append(remaining)
                progress(status, remaining, total)
                if len(steps) == 3:
                    signal.raise_signal(signal.SIGINT)

            self.connection.backup(target, progress=step, **options)

    with sqlite_files.opened_sqlite(path) as file:
        monkeypatch.setattr(file, "_connection", Connection(file._connection))
        with pytest.raises(KeyboardInterrupt):
            file.copy_to(tmp_path / "copy.db")
        assert len(steps) == 3
        assert steps[-1] > 80
        file.copy_to(tmp_path / "whole.db")
    with closing(sqlite3.connect(tmp_path / "whole.db")) as copy:
        assert copy.execute("SELECT count(*) FROM t").fetchone() == (100,)


def test_a_copy_ends_if_the_other_program_never_stops_to_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each write begins the copy again."""
    monkeypatch.setattr(sqlite_files, "_COPY_PAGES", 5)
    path = tmp_path / "history.db"
    with closing(sqlite3.connect(path)) as writer:
        writer.execute("CREATE TABLE t (a)")
        writer.executemany("INSERT INTO t VALUES (?)", [("x" * 4_000,)] * 100)
        writer.commit()

        class Connection:
            def __init__(self, connection: sqlite3.Connection) -> None:
                self.connection = connection

            def backup(
                self,
                target: sqlite3.Connection,
                *,
                progress: Callable[[int, int, int], None],
                **options: Any,
            ) -> None:
                def step(status: int, remaining: int, total: int) -> None:
                    progress(status, remaining, total)
                    writer.execute("UPDATE t SET a = a || 'y' WHERE rowid = 1")
                    writer.commit()

                self.connection.backup(target, progress=step, **options)

        with sqlite_files.opened_sqlite(path) as file:
            monkeypatch.setattr(file, "_connection", Connection(file._connection))
            with pytest.raises(sqlite3.OperationalError, match="all the time"):
                file.copy_to(tmp_path / "copy.db")
