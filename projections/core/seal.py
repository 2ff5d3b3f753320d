"""Seals: counts and hashes of a fold's columns after its last complete step.

Owns a check that is independent of the digest. After each step of a fold the seal counts the items
of every effect column and hashes the new items; before a checkpoint is planned, the columns are
counted and hashed again from memory. An interrupted step, a change of a folded item, and a fault of
memory all show as a difference, so no checkpoint saves them. A seal covers the items since the last
complete block of 4,096 events, or since the last load. Complete blocks are compared with their
leaves, which were hashed when the blocks ended; loaded items, with the digest saved beside the
checkpoint (`cerata.replay.checkpoint`).

Cost: a count per column and step; a hash of each item when folded, and a hash of all covered items
when a checkpoint is planned.
"""

from collections.abc import Callable, Sequence

from blake3 import blake3

from ..columnar.columns import AppendOnly, Column


class StateDamaged(Exception):
    """A fold's state in memory differs from the state after its last complete step."""


class Seal:
    """The counts and hashes of a fold's items after its last complete step.

    - ``columns`` returns the fold's columns in the same order each time, new columns last.
    - ``_starts`` has the counts at the last `restart`, ``_counts`` those after the last step;
      ``_hashers`` have hashed the items in between.
    """

    def __init__(self, columns: Callable[[], Sequence[AppendOnly]]) -> None:
        self._columns = columns
        self._starts: list[int] = []
        self._counts: list[int] = []
        self._hashers: list[blake3] = []

    def extend(self) -> None:
        """Add the items that a complete step appended."""
        counts = self._counts
        for place, items in enumerate(self._columns()):
            if place == len(counts):
                self._starts.append(0)
                counts.append(0)
                self._hashers.append(blake3())
            count = counts[place]
            # Most steps have no event of most projections.
            if items.size != count:
                if type(items) is Column:
                    # As `bytes_from`, without a call for each of the many columns.
                    added = items.buffer[count : items.size].tobytes()
                else:
                    added = items.bytes_from(count)
                self._hashers[place].update(added)
                counts[place] = items.size

    def restart(self) -> None:
        """Cover no items, at the end of a block or after a load."""
        self._starts = [items.size for items in self._columns()]
        self._counts = [*self._starts]
        self._hashers = [blake3() for _ in self._starts]

    def check_counts(self) -> None:
        """Raise `StateDamaged` if items were appended or lost since the last complete step."""
        counts = self._counts
        columns = self._columns()
        is_same = len(columns) >= len(counts)
        for place, items in enumerate(columns):
            is_same &= items.size == (counts[place] if place < len(counts) else 0)
        if not is_same:
            raise StateDamaged("the columns of a fold changed in length after its last step")

    def check(self) -> None:
        """Raise `StateDamaged` if the items since the last `restart` changed."""
        self.check_counts()
        for items, start, hasher in zip(self._columns(), self._starts, self._hashers, strict=False):
            if items.size == start:
                # No item is covered: the hasher has hashed none.
                continue
            if type(items) is Column:
                covered = items.buffer[start : items.size].tobytes()
            else:
                covered = items.bytes_from(start)
            if blake3(covered).digest() != hasher.digest():
                raise StateDamaged("a folded item changed in memory")
