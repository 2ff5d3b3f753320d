"""Aligned ranges of events: what one chunk of a projection covers.

A chunk covers events 4,096·k + 1 to 4,096·(k + 1), or 512 such. Ranges are of seqs, not of rows,
so they are the same for every projection, and losing a chunk costs folding just its events. The
largest that are complete are the layout of a state, so it is a function of the seq alone; what
follows the last of them, fewer than 512 events, may be saved as a partial range.

The ladder ends at 4,096: eight of those joined into one would be an eleventh of a file of 100,000
documents, and the checkpoint that joins them would write it all.
"""

from typing import Final

RANGE_SEQS: Final = 512
"""Events of the smallest range. On disk: a change makes every chunk be written anew."""

RANGE_SEQS_MAX: Final = RANGE_SEQS * 8
"""Events of the largest range: about 100 ms of folding."""

_SIZES: Final = (RANGE_SEQS_MAX, RANGE_SEQS)

Range = tuple[int, int]
"""(after, through): the events ``after + 1`` … ``through``."""


def complete_ranges(seq: int) -> list[Range]:
    """Return the largest complete ranges of the first ``seq`` events, in order.

    >>> complete_ranges(5_000)
    [(0, 4096), (4096, 4608)]
    """
    found: list[Range] = []
    start = 0
    for size in _SIZES:
        while start + size <= seq:
            found.append((start, start + size))
            start += size
    return found


def is_range(after: int, through: int) -> bool:
    """Tell whether a chunk may cover these events: a complete range, or the start of one."""
    size = through - after
    if size in _SIZES:
        return after % size == 0
    return after % RANGE_SEQS == 0 and 0 < size < RANGE_SEQS


def last_complete(seq: int) -> int:
    """Return the end of the last complete range."""
    return seq - seq % RANGE_SEQS
