# ruff: noqa: S608
"""SQLite files that cost more than their size: by code in the schema, or by pages that repeat."""

import sqlite3
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

COLUMNS: Final = (
    "id TEXT, memory_id TEXT, new_memory TEXT, event TEXT, created_at TEXT, updated_at TEXT"
)
_ENDLESS: Final = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c)"
_VIEW: Final = (
    f"{_ENDLESS} SELECT x AS r, CAST(x AS TEXT) id, CAST(x AS TEXT) memory_id, 't' || x new_memory,"
    " 'ADD' event, '2026-01-01T00:00:00' created_at, NULL updated_at FROM c"
)
_NAMES: Final = "id, memory_id, new_memory, event, created_at, updated_at"
_PLAIN: Final = f"CREATE TABLE history ({COLUMNS})"
_PAGE: Final = 1024


def made(path: Path, *statements: str, page_size: int = _PAGE) -> Path:
    """Write a file by SQL."""
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA page_size = {page_size}")
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()
    return path


def endless_view(path: Path) -> Path:
    return made(path, f"CREATE VIEW history AS {_VIEW}")


def full_text_over_a_view(path: Path) -> Path:
    table = f"history USING fts5({_NAMES}, content='v', content_rowid='r')"
    return made(path, f"CREATE VIEW v AS {_VIEW}", f"CREATE VIRTUAL TABLE {table}")


def full_text_table(path: Path) -> Path:
    return made(path, f"CREATE VIRTUAL TABLE history USING fts5({_NAMES})")


def view_that_pretends_to_be_a_table(path: Path) -> Path:
    made(path, f"CREATE VIEW history AS {_VIEW}")
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA writable_schema = ON")
    connection.execute("UPDATE sqlite_master SET type = 'table'")
    connection.commit()
    connection.close()
    return path


def virtual_table_that_pretends_to_be_plain(path: Path) -> Path:
    full_text_over_a_view(path)
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA writable_schema = ON")
    connection.execute("UPDATE sqlite_master SET sql = replace(sql, 'CREATE V', 'create V')")
    connection.commit()
    connection.close()
    return path


def computed_column(path: Path) -> Path:
    column = "new_memory TEXT AS (printf('%.*c', 900, 'x'))"
    return made(
        path,
        f"CREATE TABLE history ({COLUMNS.replace('new_memory TEXT', column)})",
        "INSERT INTO history (id) VALUES ('a')",
    )


def deep_expression(path: Path) -> Path:
    return made(path, _PLAIN, f"CREATE VIEW w AS SELECT {'-1+' * 500}1")


def long_definition(path: Path) -> Path:
    return made(path, _PLAIN, f"CREATE VIEW w AS SELECT '{'x' * 900_000}'")


def pages_without_end(path: Path) -> Path:
    """Write a table of 100**7 rows: each page lists the next one a hundred times."""
    rows = (f"INSERT INTO history (id, event) VALUES ('{n}', 'ADD')" for n in range(400))
    made(path, _PLAIN, *rows)
    data = bytearray(path.read_bytes())
    root = _root(path)
    numbers = range(2, len(data) // _PAGE + 1)
    leaf = next(n for n in numbers if data[(n - 1) * _PAGE] == 13)
    inner = [n for n in numbers if n not in (root, leaf)][:6]
    for number, child in zip([root, *inner], [*inner, leaf], strict=True):
        cells = [struct.pack(">IB", child, key) for key in range(1, 100)]
        header = struct.pack(">BHHHBI", 5, 0, len(cells), 0, 0, child)
        data[(number - 1) * _PAGE : number * _PAGE] = _page(header, cells, _PAGE)
    path.write_bytes(data)
    return path


def rows_that_share_a_text(path: Path) -> Path:
    """Write seven rows with a single text of 900 kB: more than all pages hold."""
    size = 4096
    # This length leaves the least of the row on its first page, so that seven fit.
    text = 900_000 - (900_000 - 489) % (size - 4)
    values = f"'a', 'm', printf('%.*c', {text}, 'x'), 'ADD', NULL, NULL"
    made(path, _PLAIN, f"INSERT INTO history VALUES ({values})", page_size=size)
    data = bytearray(path.read_bytes())
    begin = (_root(path) - 1) * size
    [offset] = struct.unpack_from(">H", data, begin + 8)
    cell = bytes(data[begin + offset : begin + size])
    # A length of three bytes precedes the number of the row.
    cells = [cell[:3] + bytes([number]) + cell[4:] for number in range(1, 8)]
    header = struct.pack(">BHHHB", 13, 0, len(cells), 0, 0)
    data[begin : begin + size] = _page(header, cells, size)
    path.write_bytes(data)
    return path


def rows_without_order(path: Path) -> Path:
    made(path, _PLAIN, *("INSERT INTO history (id, event) VALUES ('a', 'ADD')",) * 2)
    data = bytearray(path.read_bytes())
    begin = (_root(path) - 1) * _PAGE
    [offset] = struct.unpack_from(">H", data, begin + 8 + 2)
    assert data[begin + offset + 1] == 2
    data[begin + offset + 1] = 1
    path.write_bytes(data)
    return path


FILES: Final[Sequence[Callable[[Path], Path]]] = (
    endless_view,
    full_text_over_a_view,
    full_text_table,
    view_that_pretends_to_be_a_table,
    virtual_table_that_pretends_to_be_plain,
    computed_column,
    deep_expression,
    long_definition,
    pages_without_end,
    rows_that_share_a_text,
    rows_without_order,
)


def _root(path: Path) -> int:
    connection = sqlite3.connect(path)
    [root] = connection.execute("SELECT rootpage FROM sqlite_master").fetchone()
    connection.close()
    return int(root)


def _page(header: bytes, cells: Sequence[bytes], size: int) -> bytes:
    page = bytearray(size)
    page[: len(header)] = header
    end = size
    for place, cell in enumerate(cells):
        end -= len(cell)
        page[end : end + len(cell)] = cell
        struct.pack_into(">H", page, len(header) + 2 * place, end)
    assert end >= len(header) + 2 * len(cells)
    struct.pack_into(">H", page, 5, end)
    return bytes(page)
