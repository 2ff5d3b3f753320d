"""Limits of a connection to a foreign SQLite file: what its schema may run, how much, and how long.

Owns the authorizer, the count of SQLite's steps and the count of bytes. A schema is code of
the file's author: a view without an end, a full-text table over a view, a function that fills the
memory. So only columns of plain tables are read. Damaged pages, which refer to each other, make
endless tables, so a file gives no more steps and bytes than a multiple of its size.
"""

import sqlite3
from typing import Final

from cerata.engine.errors import InvalidInput
from cerata.engine.limits import BLOB_SIZE_MAX

STEPS_MIN: Final = 10_000_000
STEPS_PER_BYTE: Final = 20
"""Steps of SQLite's machine for a file: a row of 20 bytes takes about 30 in each of its passes."""

BYTES_MIN: Final = 1 << 20
BYTES_PER_BYTE: Final = 4
"""Bytes of values for a file: it is read twice at most, and UTF-16 grows by half as UTF-8."""

_STEPS_AT_ONCE: Final = 10_000
"""Steps between two looks at the limit and at Ctrl-C: less than a millisecond."""

_SQL_SIZE_MAX: Final = 100_000
"""Bytes of a definition in the schema: SQLite reads each whole, without a step."""

_EXPRESSION_DEPTH_MAX: Final = 100
_PLAIN: Final = b"CREATE TABLE "
"""The start of the definition of a plain table, as SQLite stores it."""

_FUNCTIONS: Final = ("count",)
_PRAGMAS: Final = ("table_info",)
_REMEDY: Final = "Export the records with the program that made the file, as JSON Lines."


class SqliteLimits:
    """The limits of one connection, which last as long as it is open."""

    def __init__(self, connection: sqlite3.Connection, name: str, size: int) -> None:
        """Limit a connection before its first statement, by the ``size`` of its file."""
        self._name = name
        self._steps = self._steps_max = STEPS_MIN + STEPS_PER_BYTE * size
        self._bytes = self._bytes_max = BYTES_MIN + BYTES_PER_BYTE * size
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, BLOB_SIZE_MAX)
        connection.setlimit(sqlite3.SQLITE_LIMIT_SQL_LENGTH, _SQL_SIZE_MAX)
        connection.setlimit(sqlite3.SQLITE_LIMIT_EXPR_DEPTH, _EXPRESSION_DEPTH_MAX)
        connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        connection.set_progress_handler(self._step, _STEPS_AT_ONCE)
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA cell_size_check = ON")
        connection.set_authorizer(_authorize)

    def _step(self) -> bool:
        self._steps -= _STEPS_AT_ONCE
        return self._steps < 0

    def take(self, size: int, place: str) -> None:
        """Count the bytes of values that were read. Raises `InvalidInput` over the limit."""
        self._bytes -= size
        if self._bytes < 0:
            raise self._refusal(f"{self._bytes_max:,} bytes of values", place)

    def interruption(self, place: str) -> BaseException:
        """Return the reason why SQLite stopped: the limit of steps, or Ctrl-C.

        SQLite drops the exception of a signal that arrives during a step.
        """
        if self._steps < 0:
            return self._refusal(f"{self._steps_max:,} steps", place)
        return KeyboardInterrupt()

    def _refusal(self, limit: str, place: str) -> InvalidInput:
        return InvalidInput(
            f"The SQLite file takes more than {limit}, the limit for its size",
            where=f"{self._name}, {place}",
            remedy=_REMEDY,
        )


def is_plain(definition: object) -> bool:
    """Return whether a definition of the schema is that of a plain table."""
    return isinstance(definition, bytes) and definition.startswith(_PLAIN)


def not_plain(name: str, part: str) -> InvalidInput:
    """Return the error of a table that is no plain table, or runs a query of the file."""
    return InvalidInput(
        "The SQLite file computes rows by a view, a virtual table or a function, and none is run",
        where=f"{name}, {part}",
        remedy=_REMEDY,
    )


def _authorize(
    action: int, first: str | None, second: str | None, _database: str | None, source: str | None
) -> int:
    """Allow reads of columns by our statements alone; a view and a trigger are a ``source``."""
    is_allowed = source is None and (
        action in (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ)
        or (action == sqlite3.SQLITE_FUNCTION and second in _FUNCTIONS)
        or (action == sqlite3.SQLITE_PRAGMA and first in _PRAGMAS)
    )
    return sqlite3.SQLITE_OK if is_allowed else sqlite3.SQLITE_DENY
