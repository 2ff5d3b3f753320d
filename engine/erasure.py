"""Erasures: what a file says of the newest one, and how that is found again.

Owns the search for the newest `erase` event where the TOC is lost. Nothing in this version writes
such an event; a file that reflects one is read, and what was computed before it is dropped.
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
    """Return the seq of the newest `erase` event in segments, which are in seq order; 0 for none.

    Cost: a read of each segment's index. Damaged segments are passed over.
    """
    for ref in reversed(segments):
        with suppress(Corrupt):
            found = _newest_in(log_file, ref)
            if found:
                return found
    return 0


def _newest_in(log_file: LogFile, ref: Ref) -> int:
    segment = log_file.segment(ref.offset, ref.length)
    for number in reversed(range(len(segment.index.batches))):
        row = segment.index.batches[number]
        source, first = segment, segment.own_first(number)
        if row.spill is not None:
            source, first = log_file.segment(row.spill.offset, row.spill.length), 0
        types = source.types(first, first + row.count)
        if ERASE in types:
            place = row.count - 1 - types[::-1].index(ERASE)
            return ref.first_seq + segment.batch_first(number) + place
    return 0
