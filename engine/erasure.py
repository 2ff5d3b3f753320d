"""Erasures: the newest erasure that a file reflects, and the search for it.

Owns the search for the newest `erase` event after the loss of the TOC. This version writes no such
event; it reads a file that reflects one, and drops state that was computed before it.
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from .errors import Corrupt
from .file import LogFile
from .format.toc import Ref

ERASE: Final = "erase"
"""The type of the event that records an erasure. On disk: never change it."""


def newest_erasure(log_file: LogFile, segments: Sequence[Ref]) -> int:
    """Return the seq of the newest `erase` event in segments, which are in seq order; or 0.

    Cost: a read of each segment's index. Damaged segments are skipped.
    """
    for ref in reversed(segments):
        with suppress(Corrupt):
            seq = _newest_in(log_file, ref)
            if seq:
                return seq
    return 0


def _newest_in(log_file: LogFile, ref: Ref) -> int:
    segment = log_file.segment(ref.offset, ref.length)
    for number in reversed(range(len(segment.index.batches))):
        row = segment.index.batches[number]
        source = segment
        first = segment.own_first(number)
        if row.spill is not None:
            source = log_file.segment(row.spill.offset, row.spill.length)
            first = 0
        types = source.types(first, first + row.count)
        if ERASE in types:
            place = row.count - 1 - types[::-1].index(ERASE)
            return ref.first_seq + segment.batch_first(number) + place
    return 0
