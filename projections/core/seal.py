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
from functools import lru_cache
from typing import Final

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


# --- Aligned ranges of events: the range that a chunk of a projection covers ----------------------
#
# A chunk covers events 4,096·k + 1 to 4,096·(k + 1), or 512 events aligned alike. Ranges count
# seqs, not rows, so every projection has the same ranges, and a lost chunk costs a fold of its
# events only. The layout of a state is its largest complete ranges, a function of the seq alone;
# the events after the last of them, fewer than 512, may be saved as a partial range.
#
# The sizes end at 4,096: a range eight times as large would be an eleventh of a file of 100,000
# documents, all written by the checkpoint that joins its parts.


RANGE_SEQS: Final = 512
"""Events of the smallest range. On disk: after a change every chunk is written again."""

RANGE_SEQS_MAX: Final = RANGE_SEQS * 8
"""Events of the largest range: about 100 ms of folding."""

_SIZES: Final = (RANGE_SEQS_MAX, RANGE_SEQS)

Range = tuple[int, int]
"""(after, through): the events ``after + 1`` … ``through``."""


@lru_cache(maxsize=4)
def complete_ranges(seq: int) -> tuple[Range, ...]:
    """Return the largest complete ranges of the first ``seq`` events, in order.

    >>> complete_ranges(5_000)
    ((0, 4096), (4096, 4608))
    """
    ranges: list[Range] = []
    start = 0
    for size in _SIZES:
        while start + size <= seq:
            ranges.append((start, start + size))
            start += size
    return (*ranges,)


@lru_cache(maxsize=4)
def layout(seq: int) -> tuple[Range, ...]:
    """Return the ranges of a checkpoint at ``seq``, a partial range at the end included."""
    ranges = complete_ranges(seq)
    end = seq - seq % RANGE_SEQS
    return (*ranges, (end, seq)) if end < seq else ranges


def is_range(after: int, through: int) -> bool:
    """Return whether a chunk may cover these events: a complete range, or the start of a range."""
    size = through - after
    if size in _SIZES:
        return after % size == 0
    return after % RANGE_SEQS == 0 and 0 < size < RANGE_SEQS


def last_complete(seq: int) -> int:
    """Return the end of the last complete range."""
    return seq - seq % RANGE_SEQS
