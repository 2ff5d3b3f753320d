"""Tables: rows that events append, a column per field, in order of the event's seq.

Owns a table's place in digests and chunks, the checks of its values, and the closings of its rows.
Leaves out the meaning of the columns: the table's owner declares them with their ranges.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Self, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from .columns import (
    I64,
    NO_ROW,
    AnyColumn,
    AnyGrowing,
    AppendOnly,
    Column,
    Columns,
    Item,
    concatenate,
    distinct,
    require,
    rows_up_to,
    views,
)
from .names import LoadedNames, Names, check_seqs
from .string_table import StringRows
from .strings import Strings

LoadedRows: TypeAlias = Mapping[str, AnyColumn]
"""The rows of a chunk by column."""


def check_codes(codes: AnyColumn, low: int, high: int) -> None:
    """Raise `Corrupt` unless low ≤ code ≤ high for every code."""
    inside = not len(codes) or low <= int(codes.min()) <= int(codes.max()) <= high
    require(inside, "a code is out of range")


class Table:
    """Columns of equal length; the first is the seq of the event that appended the row."""

    def __init__(self, name: str, *, strict: bool = False) -> None:
        """Create a table; with ``strict`` an event appends at most a single row."""
        self.seq = Column(np.int64)
        self._name = name
        self._strict = strict
        self._columns: dict[str, AnyGrowing] = {"seq": self.seq}
        self._ranges: dict[str, tuple[int, int | Part]] = {}

    def column(
        self, name: str, dtype: type[Item], within: "tuple[int, int | Part] | None" = None
    ) -> Column[Item]:
        """Add a column; ``name`` and the order of the columns are on disk.

        ``within`` are the least and the greatest value in a chunk. The greatest is a number, the
        last code of a dictionary, or the last row of a table.
        """
        column = Column(dtype)
        self._columns[name] = cast("AnyGrowing", column)
        if within is not None:
            self._ranges[name] = within
        return column

    def __len__(self) -> int:
        return len(self.seq)

    def extend(self, *columns: npt.ArrayLike) -> None:
        """Append rows, a column at a time."""
        for growing, items in zip(self._columns.values(), columns, strict=True):
            growing.extend(items)

    def append(self, rows: Sequence[Sequence[int]]) -> None:
        if rows:
            self.extend(*zip(*rows, strict=True))

    def effect_columns(self) -> list[AppendOnly]:
        """Return the columns that the fold appends to."""
        return [*self._columns.values()]

    def rows(self, first: int, end: int | None = None) -> "list[tuple[int, ...]]":
        """Return the rows [first, end)."""
        parts = [column[first:end].tolist() for column in self.views()]
        return list(zip(*parts, strict=True))

    def row(self, place: int) -> "tuple[int, ...]":
        row: list[int] = []
        for column in self._columns.values():
            row.append(column.buffer.item(place))
        return (*row,)

    def view(self, name: str) -> AnyColumn:
        """Return a column by its name."""
        return self._columns[name].view()

    def views(self) -> list[AnyColumn]:
        return views(*self._columns.values())

    def effects(self, after: int, through: int) -> dict[str, AnyColumn]:
        """Return the columns of the rows that events ``after + 1`` … ``through`` appended."""
        seqs = self.seq.buffer[: self.seq.size]
        start = int(seqs.searchsorted(after, "right"))
        end = int(seqs.searchsorted(through, "right"))
        effects: dict[str, AnyColumn] = {}
        for name, column in self._columns.items():
            effects[f"{self._name}.{name}"] = column.buffer[start:end]
        return effects

    def read(self, columns: Columns, after: int, through: int) -> LoadedRows:
        """Return the rows of a chunk, with seqs and lengths checked. Raises `Corrupt`."""
        rows = {
            name: columns.like(f"{self._name}.{name}", column.view())
            for name, column in self._columns.items()
        }
        seqs = next(iter(rows.values())).astype(np.int64, copy=False)
        check_seqs(seqs, after, through, f"{self._name}.seq", strict=self._strict)
        same = len({len(column) for column in rows.values()}) == 1
        require(same, f"the columns of {self._name} differ in length")
        return rows

    def check(self, rows: LoadedRows, chunk: "LoadedParts") -> None:
        """Raise `Corrupt` unless the values of these rows lie in the ranges of their columns."""
        for name, (low, high) in self._ranges.items():
            if not isinstance(high, int):
                high = chunk.count(high) - isinstance(high, Table)
            check_codes(rows[name], low, high)

    def share(self, table: "Table", through: int) -> None:
        """Become the rows of another table of the same columns up to event ``through``."""
        count = rows_up_to(table.seq.view(), through)
        for own, shared in zip(self._columns.values(), table._columns.values(), strict=True):
            own.share(shared, count)

    def load(self, rows: LoadedRows) -> None:
        """Append rows that `read` returned."""
        for name, growing in self._columns.items():
            growing.adopt(rows[name])

    @property
    def size_bytes(self) -> int:
        """Memory of the columns."""
        return sum(column.size_bytes for column in self._columns.values())


class ClosedRows(Column[np.uint32]):
    """A derived column: the place of each row's closing among closings, or `NO_ROW`.

    A row is closed once, after its birth. A reader of an earlier state holds the same column and
    ignores the values that name later closings.
    """

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(np.uint32)

    def open(self, count: int) -> None:
        """Append rows that are not closed."""
        self.extend(np.full(count, NO_ROW, np.uint32))

    def close(self, rows: AnyColumn, first: int) -> None:
        """Enter the closings of these open rows, numbered from ``first``."""
        places = np.arange(first, first + len(rows), dtype=np.uint32)
        self.set_once(rows.astype(np.int64), places)

    def is_closed(self, row: int) -> bool:
        """Return whether any closing so far closed a row."""
        return self.item(row) != NO_ROW

    def check(self, born: I64, more: AnyColumn, when: AnyColumn, rows: AnyColumn) -> None:
        """Raise `Corrupt` unless each closing of a chunk closes an open row after its birth.

        ``born`` are the births so far and ``more`` those of the chunk; ``when`` and ``rows`` its
        closings.
        """
        if not len(rows):
            return
        births = concatenate([born, more.astype(np.int64)], np.int64)
        require(int(rows.max()) < len(births), "a closing names a row that does not exist")
        require(bool((births[rows] < when).all()), "a closing comes before its birth")
        before = rows[rows < len(self)]
        open_before = self.view()[before] == NO_ROW
        once = len(distinct(rows)) == len(rows)
        require(once and bool(open_before.all()), "a row is closed twice")


Part: TypeAlias = Table | Names | Strings


class LoadedParts:
    """The rows, names and strings of a chunk, which are in no state yet."""

    def __init__(self) -> None:
        self.rows: dict[Table, LoadedRows] = {}
        self.names: dict[Names, LoadedNames] = {}
        self.strings: dict[Strings, StringRows] = {}

    def count(self, part: Part) -> int:
        """Return the length of a part with the chunk."""
        if isinstance(part, Table):
            return len(part) + len(self.rows[part]["seq"])
        if isinstance(part, Names):
            return len(part) + len(self.names[part].texts)
        return len(part) + len(self.strings[part].sizes)


class ClosableColumns:
    """The tables and dictionaries of a fold whose rows are born and closed.

    - A row of ``births`` is closed at most once, after its birth, by a row of ``closings``.
    - ``closed_at`` is derived. A reader of an earlier state ignores the later closings in it.
    """

    def __init__(self, births: Table, closings: Table, *parts: Part) -> None:
        """Take all ``parts`` in the order of their columns in a chunk. On disk: never change."""
        self.births = births
        self.closings = closings
        self.closed_at = ClosedRows()
        self._parts = parts
        self._effect_columns = [column for part in parts for column in part.effect_columns()]

    def append_births(self, rows: Sequence[Sequence[int]]) -> None:
        """Append births of open rows."""
        self.births.append(rows)
        self._enter(len(rows), 0)

    def append_closings(self, rows: Sequence[Sequence[int]]) -> None:
        """Append closings of open rows."""
        self.closings.append(rows)
        self._enter(0, len(rows))

    def effects(self, after: int, through: int) -> dict[str, AnyColumn]:
        """Return the canonical columns of events ``after + 1`` … ``through``."""
        effects: dict[str, AnyColumn] = {}
        for part in self._parts:
            effects.update(part.effects(after, through))
        return effects

    def effect_columns(self) -> list[AppendOnly]:
        """Return the collections that the fold appends to, without derived columns."""
        return self._effect_columns

    def derived(self, after: int, through: int) -> dict[str, AnyColumn]:
        """Return nothing: a load computes the derived columns again."""
        return {}

    def share_parts(self, columns: Self, through: int) -> None:
        """Become the rows of other columns up to event ``through``, which stay as they are.

        Cost: 4 bytes a row; an append then copies the column that it extends.
        """
        for part, shared in zip(self._parts, columns._parts, strict=True):
            # The parts of a class are of the same types.
            part.share(cast("Any", shared), through)
        self._enter(len(self.births), len(self.closings))

    def read(self, columns: Columns, after: int, through: int) -> LoadedParts:
        """Return the parts of a chunk, checked, without a change of state. Raises `Corrupt`."""
        chunk = LoadedParts()
        for part in self._parts:
            if isinstance(part, Table):
                chunk.rows[part] = part.read(columns, after, through)
            elif isinstance(part, Names):
                chunk.names[part] = part.read(columns, after, through)
            else:
                chunk.strings[part] = part.read(columns, after, through)
        for table, rows in chunk.rows.items():
            table.check(rows, chunk)
        births, closings = chunk.rows[self.births], chunk.rows[self.closings]
        born = self.births.seq.view()
        self.closed_at.check(born, births["seq"], closings["seq"], closings["row"])
        return chunk

    def take(self, chunk: LoadedParts) -> None:
        """Append the parts of a chunk that `read` returned."""
        for names, loaded in chunk.names.items():
            names.load(loaded)
        for strings, loaded_strings in chunk.strings.items():
            strings.load(loaded_strings)
        for table, rows in chunk.rows.items():
            table.load(rows)
        self._enter(*(len(chunk.rows[table]["seq"]) for table in (self.births, self.closings)))

    def _enter(self, births: int, closings: int) -> None:
        """Extend ``closed_at`` by the last births and closings."""
        self.closed_at.open(births)
        if closings:
            first = len(self.closings) - closings
            self.closed_at.close(self.closings.view("row")[first:], first)

    @property
    def tables_size_bytes(self) -> int:
        """Memory of tables and closings, without names and strings."""
        tables = [part.size_bytes for part in self._parts if isinstance(part, Table)]
        return sum(tables) + self.closed_at.size_bytes
