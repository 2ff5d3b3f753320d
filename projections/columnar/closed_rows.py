"""Which rows of a table were closed, and by which closing: a derived column.

Owns the rule that a row is closed once, after its birth. A reader of an earlier state holds the
same column and ignores the values that name later closings.
"""

import numpy as np

from .columns import I64, NO_ROW, AnyColumn, Column, concatenate, require


class ClosedRows(Column[np.uint32]):
    """The place of each row's closing among closings, or `NO_ROW`."""

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
        once = len(np.unique(rows)) == len(rows)
        require(once and bool(open_before.all()), "a row is closed twice")
