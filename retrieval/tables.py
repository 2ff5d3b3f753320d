"""Tables: the tables of a text, so that cuts and excerpts keep whole rows below their header.

Owns the rule for Markdown's pipe tables (GitHub Flavored Markdown 4.10): a line with a pipe, then a
line of dashes with as many cells, then rows, one per line, up to a line without a pipe. Leaves out
cutting a text (`chunking`) and excerpts (`context.entries`).
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

_DASHES: Final = re.compile(r"^[ \t|:\-\r]++$", re.MULTILINE)
"""A line that may be the delimiter row. It matches in linear time."""

_DELIMITER_CELL: Final = re.compile(r"\s*:?-+:?\s*")
_PIPE: Final = re.compile(r"(?<!\\)\|")


_LINE_SIZE_MAX: Final = 10_000
"""Characters above which a line is no header, since its cells would take much memory."""


class Table(NamedTuple):
    """Characters [start, end) of a text: the header is [start, body), the rows [body, end)."""

    start: int
    body: int
    end: int


def find_tables(text: str) -> list[Table]:
    r"""Return the tables of a text, ascending. Cost: a pass over the text.

    >>> find_tables("| a | b |\n|---|---|\n| 1 | 2 |\n\nend\n")
    [Table(start=0, body=20, end=30)]
    """
    return list(iter_tables(text, 0, len(text)))


def iter_tables(text: str, start: int, end: int) -> Iterator[Table]:
    """Yield the tables between two places of a text, ascending.

    Args:
        text: the text
        start: first character, at the start of a line
        end: end of the characters
    """
    after = start
    for match in _DASHES.finditer(text, start, end):
        first = text.rfind("\n", start, max(start, match.start() - 1)) + 1 or start
        if first < after or match.start() == first or "|" not in match[0]:
            continue
        if not _is_header(text[first : match.start()], match[0]):
            continue
        body = min(match.end() + 1, end)
        after = body
        while after < end:
            line_end = _line_end(text, after, end)
            if text.find("|", after, line_end) < 0:
                break
            after = line_end
        if after > body:
            yield Table(first, body, after)


def rows_of(text: str, table: Table) -> Iterator[tuple[int, int]]:
    """Yield characters [start, end) of each row, its line end included."""
    at = table.body
    while at < table.end:
        row_end = _line_end(text, at, table.end)
        yield at, row_end
        at = row_end


def table_at(tables: Sequence[Table], place: int) -> Table | None:
    """Return the table that contains a character, if any; ``tables`` are ascending."""
    at = bisect_right(tables, place, key=lambda table: table.start) - 1
    return tables[at] if at >= 0 and place < tables[at].end else None


def _line_end(text: str, start: int, limit: int) -> int:
    at = text.find("\n", start, limit)
    return limit if at < 0 else at + 1


def _is_header(header: str, delimiter: str) -> bool:
    """Return whether a line and the line of dashes after it begin a table."""
    if "|" not in header or len(header) > _LINE_SIZE_MAX or len(delimiter) > _LINE_SIZE_MAX:
        return False
    dashes = _cells(delimiter)
    return len(dashes) == len(_cells(header)) and all(map(_DELIMITER_CELL.fullmatch, dashes))


def _cells(line: str) -> list[str]:
    inner = line.strip().removeprefix("|")
    cells = _PIPE.split(inner)
    return cells[:-1] if len(cells) > 1 and not cells[-1].strip() else cells
