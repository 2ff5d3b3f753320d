"""SQLite files of other programs, read only: no file beside them is made, and no lock is kept.

Owns the checks of a file, and the pages of its rows. A page holds SQLite's shared lock only while
it is read, so the other program goes on writing between two pages. Leaves out the meaning of
tables, and the limits of the connection (`sqlite_limits`).
"""

import os
import sqlite3
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Final

from cerata.engine.errors import CerataError, InvalidInput, Locked, NotFound, refused
from cerata.engine.limits import BLOB_SIZE_MAX
from cerata.engine.open import path_name
from cerata.memory.ingest.document import open_regular

from .records import time_of
from .sqlite_limits import SqliteLimits, is_plain, not_plain

_MAGIC: Final = b"SQLite format 3\0"
_HEADER_SIZE: Final = 100
_WAL: Final = 2
_PAGE_ROWS: Final = 500
_PAGE_SIZE: Final = 16 << 20
"""Bytes of values after which a page ends."""

_ROWIDS: Final = ("rowid", "_rowid_", "oid")
"""SQLite's names of the rowid; a column may take one of them."""

LOCK_SECONDS: Final = 5.0
_WAIT_SECONDS: Final = 0.25
"""Seconds of one wait for a lock: SQLite does not look at Ctrl-C while it waits."""

_COPY_PAGES: Final = 1_000
"""Pages of one step of a copy, after which Ctrl-C ends it."""

_COPY_PASSES: Final = 4
"""A copy begins again when the other program writes; after so many times its size it fails."""

_COPY: Final = "Close the program that uses the file, and pass the file or a fresh copy."


class Row:
    """A row of a table: its values by the names of columns, its place, and its rowid."""

    def __init__(self, place: str, values: Mapping[str, object], number: int = 0) -> None:
        self.place = place
        self.number = number
        self._values = values

    def text(self, column: str) -> str | None:
        """Return a text, or None.

        Raises:
            InvalidInput: the value is not UTF-8, or no text.
        """
        value = self._values[column]
        if value is None or isinstance(value, str):
            return value
        if not isinstance(value, bytes):
            return str(value)
        try:
            return value.decode()
        except UnicodeDecodeError as error:
            raise self.refusal(
                f"{column} is not UTF-8: {error.reason} at byte {error.start}"
            ) from error

    def required(self, column: str) -> str:
        """Return a text. Raises `InvalidInput` without one."""
        text = self.text(column)
        if text is None:
            raise self.refusal(f"{column} is NULL")
        return text

    def data(self, column: str) -> bytes:
        """Return bytes, empty for NULL. Raises `InvalidInput` for a number."""
        value = self._values[column]
        if isinstance(value, bytes):
            return value
        if value is None:
            return b""
        raise self.refusal(f"{column} has {value!r:.60}, not bytes")

    def value(self, column: str) -> object:
        """Return a number, bytes or None as SQLite stores it."""
        return self._values[column]

    def integer(self, column: str) -> int:
        """Return a whole number. Raises `InvalidInput` for another value."""
        value = self._values[column]
        if isinstance(value, int):
            return value
        raise self.refusal(f"{column} has {value!r:.60}, not a whole number")

    def time(self, column: str) -> datetime | None:
        """Return a time, or None; one without a zone is in UTC, as SQLite's clock.

        Raises:
            InvalidInput: the text is no time.
        """
        text = self.text(column)
        if not text:
            return None
        try:
            return time_of(text)
        except ValueError as error:
            raise self.refusal(f"{column} is no time: {text!r:.60}") from error

    def time_or_doubt(self, *columns: str) -> tuple[datetime | None, tuple[str, ...]]:
        """Return the first time that the columns have, and the faults of unusable ones."""
        doubts: list[str] = []
        for column in columns:
            try:
                time = self.time(column)
            except InvalidInput as error:
                doubts.append(error.what)
            else:
                if time is not None:
                    return time, tuple(doubts)
        return None, tuple(doubts)

    def refusal(self, what: str) -> InvalidInput:
        """Return the error of this row."""
        return InvalidInput(
            what, where=self.place, remedy="Correct the row in a copy of the file, and import that."
        )


class SqliteFile:
    """An open SQLite file; ``tables`` has the columns of each table."""

    def __init__(self, name: str, connection: sqlite3.Connection, limits: SqliteLimits) -> None:
        self.name = name
        self._connection = connection
        self._limits = limits
        self.tables: dict[str, list[str]] = {}
        self.computed: dict[str, str] = {}
        """The definitions of views, triggers and virtual tables, by name; none is run."""
        query = "SELECT type, name, sql FROM sqlite_master WHERE type <> 'index'"
        with self._reading("its list of tables"):
            for kind, table, definition in self._read(query, (), "its list of tables"):
                part = _text_of(table)
                if kind == b"table" and is_plain(definition):
                    self.tables[part] = []
                else:
                    self.computed[part] = _text_of(definition)

    def columns(self, table: str) -> list[str]:
        """Return the columns of a table; none if there is no such table."""
        if table in self.tables and not self.tables[table]:
            with self._reading(f"table {table}"):
                rows = self._executed(f"PRAGMA table_info({table})").fetchall()
            self.tables[table] = [_text_of(name) for _, name, *_ in rows]
        return self.tables.get(table, [])

    def check(self, table: str, columns: Sequence[str], program: str, remedy: str) -> None:
        """Refuse a file of another program.

        Raises:
            InvalidInput: the table, or one of its columns, is missing.
        """
        if table in self.computed:
            raise not_plain(self.name, f"table {table}")
        found = self.columns(table)
        if not found:
            raise InvalidInput(
                f"The file has no table {table}, so it is not {program}",
                where=self.name,
                remedy=remedy,
            )
        missing = [column for column in columns if column not in found]
        if missing:
            raise InvalidInput(
                f"The table {table} has no column {', '.join(missing)}, so it is not {program}",
                where=self.name,
                remedy=remedy,
            )

    def count(self, table: str) -> int:
        """Return the count of rows."""
        # The limit of no rows lets SQLite count in steps, which have a limit, and not in one.
        query = f"SELECT count(*) FROM (SELECT 1 FROM {table} LIMIT -1)"  # noqa: S608
        with self._reading(f"table {table}"):
            [count] = self._executed(query).fetchone()
        return int(count)

    def rows(
        self, table: str, columns: Sequence[str], optional: Sequence[str] = ()
    ) -> Iterator[Row]:
        """Yield the rows of a table in order of rowid; a missing optional column is NULL.

        Raises:
            InvalidInput: the file is damaged; ``where`` has the row before.
            Locked: another program holds the file for more than five seconds.
        """
        found = self.columns(table)
        names = [*columns, *optional]
        selected = ", ".join(name if name in found else f"NULL AS {name}" for name in names)
        rowid_name = self._rowid(table)
        query = (
            f"SELECT {rowid_name}, {selected} FROM {table} "  # noqa: S608
            f"WHERE {rowid_name} > ? ORDER BY {rowid_name} LIMIT ?"
        )
        last = -(2**63)
        while True:
            after = f"table {table}" + (f", after row {last:,}" if last > -(2**63) else "")
            with self._reading(after):
                page = self._read(query, (last, _PAGE_ROWS), after, _PAGE_SIZE)
            for rowid, *values in page:
                if not isinstance(rowid, int) or rowid <= last:
                    # Pages that refer to each other would give the same rows for ever.
                    raise _damaged("its rows are out of order", f"{self.name}, {after}")
                place = f"{self.name}, table {table}, row {rowid:,}"
                yield Row(place, dict(zip(names, values, strict=True)), rowid)
                last = rowid
            if not page:
                return

    def rows_at(
        self, table: str, columns: Sequence[str], optional: Sequence[str], numbers: Sequence[int]
    ) -> Iterator[Row]:
        """Yield the rows with some rowids, in order of rowid; a row that is gone is left out."""
        found = self.columns(table)
        names = [*columns, *optional]
        selected = ", ".join(name if name in found else f"NULL AS {name}" for name in names)
        rowid_name = self._rowid(table)
        for start in range(0, len(numbers), _PAGE_ROWS):
            page = numbers[start : start + _PAGE_ROWS]
            marks = ", ".join("?" * len(page))
            query = (
                f"SELECT {rowid_name}, {selected} FROM {table} "  # noqa: S608
                f"WHERE {rowid_name} IN ({marks}) ORDER BY {rowid_name}"
            )
            part = f"table {table}, row {page[0]:,}"
            with self._reading(part):
                rows = self._read(query, page, part)
            for rowid, *values in rows:
                assert isinstance(rowid, int)
                place = f"{self.name}, table {table}, row {rowid:,}"
                yield Row(place, dict(zip(names, values, strict=True)), rowid)

    def rows_with(
        self, table: str, columns: Sequence[str], column: str, value: object
    ) -> Iterator[Row]:
        """Yield the rows of a table that have a value in a column, without their order."""
        found = self.columns(table)
        selected = ", ".join(name if name in found else f"NULL AS {name}" for name in columns)
        query = f"SELECT {selected} FROM {table} WHERE {column} = ?"  # noqa: S608
        place = f"table {table}, {column} {value!r:.60}"
        with self._reading(place):
            rows = self._read(query, (value,), place)
        for values in rows:
            yield Row(f"{self.name}, {place}", dict(zip(columns, values, strict=True)))

    def copy_to(self, path: Path) -> None:
        """Write a copy as of one moment, with what a write-ahead log has.

        Raises:
            sqlite3.Error: the copy cannot be written, or another program holds the file.
        """
        attempts = steps = 0

        def check(status: int, _remaining: int, total: int) -> None:
            nonlocal attempts, steps
            steps += 1
            if (steps - attempts - 1) * _COPY_PAGES > _COPY_PASSES * total:
                raise sqlite3.OperationalError("another program writes to the file all the time")
            if status in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                attempts += 1
                if attempts * _WAIT_SECONDS >= LOCK_SECONDS:
                    # SQLite would wait for ever.
                    raise sqlite3.OperationalError("another program holds the file")

        with closing(sqlite3.connect(path)) as copy:
            self._connection.backup(copy, pages=_COPY_PAGES, progress=check, sleep=_WAIT_SECONDS)

    def _rowid(self, table: str) -> str:
        """Return the name of the rowid that is no column of a table."""
        columns = {column.lower() for column in self.columns(table)}
        name = next((name for name in _ROWIDS if name not in columns), None)
        if name is None:
            raise InvalidInput(
                f"The table has columns {', '.join(_ROWIDS)}, so its rows have no numbers",
                where=f"{self.name}, table {table}",
                remedy="Rename one of these columns in a copy of the file, and import that.",
            )
        return name

    def _executed(self, query: str, values: Sequence[object] = ()) -> sqlite3.Cursor:
        """Run a query; wait for a lock in short parts, so that Ctrl-C ends the wait."""
        waited = 0.0
        while True:
            try:
                return self._connection.execute(query, values)
            except sqlite3.OperationalError as error:
                waited += _WAIT_SECONDS
                is_locked = _code_of(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
                if not is_locked or waited >= LOCK_SECONDS:
                    raise

    def _read(
        self,
        query: str,
        values: Sequence[object],
        part: str,
        size_max: int | None = None,
    ) -> list[tuple[object, ...]]:
        """Return the rows of a query, up to the row that exceeds the size."""
        rows: list[tuple[object, ...]] = []
        total = 0
        with closing(self._executed(query, values)) as cursor:
            for row in cursor:
                size = sum(len(value) for value in row if isinstance(value, bytes))
                self._limits.take(size, part)
                rows.append(row)
                total += size
                if size_max is not None and total > size_max:
                    break
        return rows

    @contextmanager
    def _reading(self, part: str) -> Generator[None]:
        try:
            yield
        except sqlite3.Error as error:
            if _code_of(error) == sqlite3.SQLITE_INTERRUPT:
                raise self._limits.interruption(part) from error
            if _code_of(error) == sqlite3.SQLITE_AUTH:
                raise not_plain(self.name, part) from error
            raise _error_of(error, f"{self.name}, {part}") from error
        except UnicodeDecodeError as error:
            # The message of SQLite names a damaged part of the file.
            raise InvalidInput(
                "The SQLite file is damaged", where=f"{self.name}, {part}", remedy=_COPY
            ) from error


@contextmanager
def opened_sqlite(
    source: str | os.PathLike[str], *, within: str | None = None
) -> Generator[SqliteFile]:
    """Open a SQLite file that another program made.

    Args:
        source: The file, or the folder that has it.
        within: The name of the file in a folder; default None, the source is no folder.

    Raises:
        NotFound: the file does not exist.
        InvalidInput: the file is empty, cut off, or no SQLite file.
        Locked: another program holds the file for more than five seconds.
    """
    name = path_name(source)
    if within is not None and Path(name).is_dir():
        name = str(Path(name) / within)
    is_wal = _checked(name)
    wal = Path(f"{name}-wal")
    mode = "mode=ro"
    if is_wal and not (wal.exists() and wal.stat().st_size):
        # No program has the file open, and SQLite would make files beside it.
        mode = "mode=ro&immutable=1"
    try:
        connection = sqlite3.connect(
            f"{Path(name).absolute().as_uri()}?{mode}", uri=True, timeout=_WAIT_SECONDS
        )
    except sqlite3.Error as error:
        raise _error_of(error, name) from error
    with closing(connection):
        # Texts are decoded with their place, and only those that are used.
        connection.text_factory = bytes
        size = sum(path.stat().st_size for path in (Path(name), wal) if path.exists())
        try:
            limits = SqliteLimits(connection, name, size)
        except sqlite3.Error as error:
            raise _error_of(error, name) from error
        yield SqliteFile(name, connection, limits)


def _checked(name: str) -> bool:
    """Return whether a SQLite file has a write-ahead log; refuse another file, and a cut one."""
    try:
        file = open_regular(Path(name))
    except FileNotFoundError as error:
        raise NotFound("The file does not exist", where=name, remedy="Check the path.") from error
    except OSError as error:
        raise refused(error, "open", name) from error
    with file:
        header = file.read(_HEADER_SIZE)
        size = os.fstat(file.fileno()).st_size
    if not header:
        raise InvalidInput("The file is empty", where=name, remedy="Pass the file of the memory.")
    if len(header) < _HEADER_SIZE or not header.startswith(_MAGIC):
        raise InvalidInput(
            "The file is not a SQLite file", where=name, remedy="Pass the file of the memory."
        )
    page_size = int.from_bytes(header[16:18]) % 65_535 or 65_536
    # SQLite ignores the count if another library wrote the file last.
    pages = int.from_bytes(header[28:32]) if header[24:28] == header[92:96] else 0
    if size < pages * page_size:
        raise InvalidInput(
            f"The file was cut off: it has {size:,} of {pages * page_size:,} bytes",
            where=name,
            remedy="Copy it again, while no program uses it.",
        )
    return header[18] == _WAL


def _code_of(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def _text_of(value: object) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def _damaged(why: object, place: str) -> InvalidInput:
    return InvalidInput(
        f"The SQLite file is damaged: {why}",
        where=place,
        remedy="Copy it again, or repair a copy with: sqlite3 FILE .recover",
    )


def _error_of(error: sqlite3.Error, place: str) -> CerataError:
    code = _code_of(error)
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return Locked("Another program holds the file", where=place, remedy=_COPY)
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return _damaged(error, place)
    if code == sqlite3.SQLITE_TOOBIG:
        return InvalidInput(
            f"A row or a definition is over the limit of SQLite's values, {BLOB_SIZE_MAX:,} bytes",
            where=place,
            remedy="Leave it out in a copy of the file, and import that.",
        )
    return InvalidInput(f"SQLite cannot read the file: {error}", where=place, remedy=_COPY)
