"""Tables: the tables of a text, so that cuts and excerpts keep whole rows below their header.

Owns two rules. Markdown's pipe tables (GitHub Flavored Markdown 4.10): a line with a pipe, then a
line of dashes with as many cells, then rows, one per line, up to a line without a pipe. Delimited
tables (RFC 4180, also with tabs, semicolons or pipes): a line of names, then a row with as many
cells, then rows up to a line without the delimiter; a quoted cell may have several lines. Leaves
out cutting a text (`chunking`) and excerpts (`context.entries`).
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from heapq import merge
from operator import itemgetter
from typing import Final, NamedTuple

_DASHES: Final = re.compile(r"^[ \t|:\-\r]++$", re.MULTILINE)
"""A line that may be the delimiter row. It matches in linear time."""

_DELIMITER_CELL: Final = re.compile(r"\s*:?-+:?\s*")
_PIPE: Final = re.compile(r"(?<!\\)\|")


_LINE_SIZE_MAX: Final = 10_000
"""Characters above which a line is no header, since its cells would take much memory."""


_DELIMITERS: Final = {"tab": "\t", "semicolon": ";", "pipe": "|", "comma": ","}


def _names(delimiter: str) -> str:
    """Return the pattern of a header: names of columns, without a space beside a delimiter.

    So prose, code, dated lines and numbers have none. A further name may be a year; before a comma
    the first may be empty, as pandas writes an index.
    """
    empty = "|" if delimiter == "," else ""
    name = rf'"[^"\r\n]{{1,80}}"|[^\W\d][^{delimiter}"@=:{{}}<>\r\n]{{0,79}}(?<! )'
    return rf"(?:{name}{empty})(?:[{delimiter}](?:{name}|\d{{4}}))+(?<![.!?;,(\\])"


_HEADER: Final = re.compile(
    rf"^(?:{'|'.join(f'(?P<{kind}>{_names(mark)})' for kind, mark in _DELIMITERS.items())})\r?\n",
    re.MULTILINE,
)


def _record(delimiter: str) -> re.Pattern[str]:
    """Return the pattern of a row of two cells or more; a cell with a stray quote ends a line."""
    cell = rf'(?>"(?:[^"]++|"")*+"\r?(?=[{delimiter}\n]|\Z)|[^{delimiter}\n]*+)'
    return re.compile(rf"{cell}(?:[{delimiter}]{cell})++(?:\n|\Z)")


_RECORDS: Final = {mark: _record(mark) for mark in _DELIMITERS.values()}
_QUOTED: Final = re.compile(r'"[^"]*"')


class Table(NamedTuple):
    """Characters [start, end) of a text: the header is [start, body), the rows [body, end).

    The ``delimiter`` of the cells is empty for a table of Markdown.
    """

    start: int
    body: int
    end: int
    delimiter: str = ""


def find_tables(text: str) -> list[Table]:
    r"""Return the tables of a text, ascending. Cost: a pass over the text.

    >>> find_tables("| a | b |\n|---|---|\n| 1 | 2 |\n\nend\n")
    [Table(start=0, body=20, end=30, delimiter='')]
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
    pipe_tables = _pipe_tables(text, start, end)
    for table in merge(pipe_tables, _delimited_tables(text, start, end), key=itemgetter(0)):
        if table.start >= after:
            after = table.end
            yield table


def _delimited_tables(text: str, start: int, end: int) -> Iterator[Table]:
    after = start
    for match in _HEADER.finditer(text, start, end):
        first, body = match.span()
        if first < after or body - first > _LINE_SIZE_MAX:
            continue
        delimiter = _DELIMITERS[match.lastgroup or ""]
        record = _RECORDS[delimiter]
        count = _delimiters(match[0], delimiter)
        row = record.match(text, body, end)
        before = text[max(start, text.rfind("\n", start, max(start, first - 1)) + 1) : first]
        # Below a line with as many cells is no header but a row of a table without one.
        if count == _delimiters(before, delimiter) or row is None:
            continue
        if count != _delimiters(row[0], delimiter):
            continue
        after = body
        while row is not None and row.end() > after:
            after = row.end()
            row = record.match(text, after, end)
        yield Table(first, body, after, delimiter)


def _delimiters(line: str, delimiter: str) -> int:
    return _QUOTED.sub("", line).count(delimiter)


def _pipe_tables(text: str, start: int, end: int) -> Iterator[Table]:
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
        last = row_end(text, at, table)
        yield at, last
        at = last


def row_end(text: str, start: int, table: Table) -> int:
    """Return the end of the row that starts at a place of a table, its line end included."""
    record = _RECORDS[table.delimiter].match(text, start, table.end) if table.delimiter else None
    return record.end() if record else _line_end(text, start, table.end)


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
