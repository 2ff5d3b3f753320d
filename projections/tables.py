"""Tables: rows that events append, a column for each part, in order of the event's seq.

Owns a table's place in digests and chunks. What its columns mean, and which values they may hold,
is the business of whoever has it.
"""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from .columns import AnyColumn, AnyGrowing, Columns, require, rows_up_to
from .names import check_seqs
from .seal import Kept

LoadedRows: TypeAlias = Mapping[str, AnyColumn]
"""The rows of a chunk by column."""


def check_codes(codes: AnyColumn, low: int, high: int) -> None:
    """Raise `Corrupt` unless codes are of what there is, low ≤ code ≤ high."""
    inside = not len(codes) or low <= int(codes.min()) <= int(codes.max()) <= high
    require(inside, "a code is of nothing that is there")


class Table:
    """Columns of one length; the first is the seq of the event that appended the row."""

    def __init__(self, name: str, *, strict: bool = False, **columns: AnyGrowing) -> None:
        """With ``strict`` no event appends two rows."""
        self._name = name
        self._strict = strict
        self._columns = columns
        self._seqs = next(iter(columns.values()))

    def __len__(self) -> int:
        return len(self._seqs)

    def extend(self, *columns: npt.ArrayLike) -> None:
        """Append rows, a column at a time."""
        for growing, items in zip(self._columns.values(), columns, strict=True):
            growing.extend(items)

    def append(self, rows: Sequence[Sequence[int]]) -> None:
        """Append rows."""
        if rows:
            self.extend(*zip(*rows, strict=True))

    def kept(self) -> list[Kept]:
        """Return the things that the fold appends to."""
        return [*self._columns.values()]

    def rows(self, first: int, end: int | None = None) -> "list[tuple[int, ...]]":
        """Return the rows from ``first`` to before ``end``."""
        parts = [column[first:end].tolist() for column in self.views()]
        return list(zip(*parts, strict=True))

    def row(self, place: int) -> "tuple[int, ...]":
        """Return one row."""
        return tuple([column.item(place) for column in self.views()])

    def views(self) -> list[AnyColumn]:
        """Return the columns."""
        return [column.view() for column in self._columns.values()]

    def effects(self, after: int, through: int) -> dict[str, AnyColumn]:
        """Return the columns of the rows that events ``after + 1`` … ``through`` appended."""
        seqs = self._seqs.view().astype(np.int64, copy=False)
        start, end = rows_up_to(seqs, after), rows_up_to(seqs, through)
        return {
            f"{self._name}.{name}": column.view()[start:end]
            for name, column in self._columns.items()
        }

    def read(self, columns: Columns, after: int, through: int) -> LoadedRows:
        """Return the rows of a chunk, checked as far as any table can be. Raises `Corrupt`."""
        found = {
            name: columns.like(f"{self._name}.{name}", column.view())
            for name, column in self._columns.items()
        }
        seqs = next(iter(found.values())).astype(np.int64, copy=False)
        check_seqs(seqs, after, through, f"{self._name}.seq", strict=self._strict)
        same = len({len(column) for column in found.values()}) == 1
        require(same, f"the columns of {self._name} differ in length")
        return found

    def load(self, rows: LoadedRows) -> None:
        """Append rows that `read` returned."""
        for name, growing in self._columns.items():
            growing.adopt(rows[name])

    @property
    def size_bytes(self) -> int:
        """Memory held."""
        return sum(column.size_bytes for column in self._columns.values())
