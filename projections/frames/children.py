"""Links from a frame to its children, derived from their parents.

Owns three columns that link the children of each frame into a list, in order of row. Loading a
chunk rebuilds the columns; no digest contains them.
"""

from collections.abc import Iterator

import numpy as np

from ..columnar.columns import I64, NO_ROW, Column, run_starts


class ChildLinks:
    """Linked lists of children.

    - An item is written once, and names a later row, which a reader of an earlier state ignores.
    """

    def __init__(self) -> None:
        self.first_child = Column(np.uint32)
        self.next_sibling = Column(np.uint32)
        self._last_child = Column(np.uint32)

    def extend(self, seqs: I64, parents: I64) -> list[int]:
        """Link the newest rows to their parents; return the seqs with an unknown parent.

        ``seqs`` has an item per row, ``parents`` an item per new row: the parent's seq, or 0.
        """
        start = len(seqs) - len(parents)
        for column in (self.first_child, self.next_sibling, self._last_child):
            column.extend(np.full(len(parents), NO_ROW, np.uint32))
        children = np.flatnonzero(parents)
        if not len(children):
            return []
        targets = parents[children]
        rows = np.searchsorted(seqs, targets)
        exists = rows < children + start
        exists[exists] = seqs[rows[exists]] == targets[exists]
        self._chain((children + start)[exists], rows[exists])
        unknown: list[int] = seqs[start:][children[~exists]].tolist()
        return unknown

    def _chain(self, children: I64, parents: I64) -> None:
        if not len(children):
            return
        order = np.argsort(parents, kind="stable")
        children = children[order]
        parents = parents[order]
        heads = run_starts(parents)
        tails = np.append(heads[1:], True)
        self.next_sibling.set_once(children[:-1][~tails[:-1]], children[1:][~heads[1:]])
        last = self._last_child.view()[parents[heads]]
        fresh = last == NO_ROW
        self.first_child.set_once(parents[heads][fresh], children[heads][fresh])
        self.next_sibling.set_once(last[~fresh], children[heads][~fresh])
        self._last_child.set_once(parents[tails], children[tails])

    def children(self, row: int, row_count: int) -> Iterator[int]:
        """Yield the children of a row among the first ``row_count`` rows, in order."""
        child = self.first_child.item(row)
        while child < row_count:
            yield child
            child = self.next_sibling.item(child)

    @property
    def size_bytes(self) -> int:
        """Memory used by the columns."""
        return sum(c.size_bytes for c in (self.first_child, self.next_sibling, self._last_child))
