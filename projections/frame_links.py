"""Links from a frame to the frames below it, derived from their parents.

Owns three columns of rows that thread every frame's children into a chain, in order of row. They
are rebuilt when a chunk is loaded, and are in no digest.
"""

from collections.abc import Collection, Iterator

import numpy as np

from .columns import I64, NO_ROW, Column, concatenate


class ChildLinks:
    """Chains of children.

    - An item is written once, and names a later row, which a reader of an earlier state ignores.
    """

    def __init__(self) -> None:
        self.first_child, self.next_sibling = Column(np.uint32), Column(np.uint32)
        self._last_child = Column(np.uint32)

    def extend(self, seqs: I64, parents: I64) -> list[int]:
        """Link the newest rows to their parents; return the seqs whose parent is none.

        ``seqs`` are those of all rows, ``parents`` the seqs that the newest name, or 0.
        """
        start = len(seqs) - len(parents)
        for column in (self.first_child, self.next_sibling, self._last_child):
            column.extend(np.full(len(parents), NO_ROW, np.uint32))
        children = np.flatnonzero(parents)
        if not len(children):
            return []
        wanted = parents[children]
        rows = np.searchsorted(seqs, wanted)
        known = rows < children + start
        known[known] = seqs[rows[known]] == wanted[known]
        self._chain((children + start)[known], rows[known])
        unknown: list[int] = seqs[start:][children[~known]].tolist()
        return unknown

    def _chain(self, children: I64, parents: I64) -> None:
        """Append each child (ascending rows) to the chain of its parent."""
        if not len(children):
            return
        order = np.argsort(parents, kind="stable")
        children, parents = children[order], parents[order]
        same = parents[1:] == parents[:-1]
        self.next_sibling.set_once(children[:-1][same], children[1:][same])
        heads = concatenate([np.ones(1, np.bool_), ~same], np.bool_)
        tails = concatenate([~same, np.ones(1, np.bool_)], np.bool_)
        last = self._last_child.view()[parents[heads]]
        fresh = last == NO_ROW
        self.first_child.set_once(parents[heads][fresh], children[heads][fresh])
        self.next_sibling.set_once(last[~fresh], children[heads][~fresh])
        self._last_child.set_once(parents[tails], children[tails])

    def below(self, row: int, limit: int, *, but: Collection[int]) -> Iterator[int]:
        """Yield the rows below one and before ``limit``, parents first.

        The rows ``but`` and what is below them are left out.
        """
        first, following = self.first_child.view(), self.next_sibling.view()
        pending = [row]
        while pending:
            child = int(first[pending.pop()])
            while child < limit:
                if child not in but:
                    yield child
                    pending.append(child)
                child = int(following[child])

    @property
    def size_bytes(self) -> int:
        """Memory held by the columns."""
        return sum(c.size_bytes for c in (self.first_child, self.next_sibling, self._last_child))
