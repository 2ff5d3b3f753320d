"""A SQLite file of another program runs no code, and costs no more than its size allows."""

import signal
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

import cerata
from cerata import InvalidInput
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
