"""Aligned ranges of events: what one chunk of a projection covers.

A chunk covers events 512·8^l·k + 1 to 512·8^l·(k + 1), with l at most 2: 512, 4,096 or 32,768 of
them. Ranges are of seqs, not of rows, so they are the same for every projection, and losing a
chunk costs folding just its events. The largest that are complete are the layout of a state, so
it is a function of the seq alone; what follows the last of them, fewer than 512 events, may be
saved as a partial range. The method is that of Bentley and Saxe (1980), with a top: without it a
checkpoint would now and then write everything anew, and one bad byte cost everything.
"""

from typing import Final

RANGE_SEQS: Final = 512
"""Events of the smallest range. On disk: a change makes every chunk be written anew."""

RANGE_SEQS_MAX: Final = 512 * 8 * 8
"""Events of the largest range: about a second of folding."""

_SIZES: Final = (RANGE_SEQS_MAX, RANGE_SEQS * 8, RANGE_SEQS)

Range = tuple[int, int]
"""(after, through): the events ``after + 1`` … ``through``."""


def complete_ranges(seq: int, start: int = 0) -> list[Range]:
    """Return the largest complete ranges of events ``start + 1`` … ``seq``, in order.

    ``start`` is the end of a range of the largest size.

    >>> complete_ranges(5_000)
    [(0, 4096), (4096, 4608)]
    """
    found: list[Range] = []
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


def joins(earlier: Range, through: int) -> int | None:
    """Return the size of the range that eight of ``earlier``'s size, up to ``through``, make."""
    size = earlier[1] - earlier[0]
    whole = size * 8
    return whole if size in _SIZES[1:] and through % whole == 0 else None
