"""Aligned ranges of events: the range that a chunk of a projection covers.

Owns the layout of ranges. A chunk covers events 4,096·k + 1 to 4,096·(k + 1), or 512 events aligned
alike. Ranges count seqs, not rows, so every projection has the same ranges, and a lost chunk costs
a fold of its events only. The layout of a state is its largest complete ranges, a function of the
seq alone; the events after the last of them, fewer than 512, may be saved as a partial range.

The sizes end at 4,096: a range eight times as large would be an eleventh of a file of 100,000
documents, all written by the checkpoint that joins its parts.
"""

from functools import lru_cache
from typing import Final

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
