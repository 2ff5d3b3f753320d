"""The newest erasure and the newest branch of a file, searched in its segments.

Owns the search after the loss of the TOC, which names both.
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from msgspec.structs import replace

from ..errors import Corrupt
from ..events import Branch, Erase
from ..format.toc import Ref, Toc
from .file import LogFile

ERASE: Final = Erase.wire_name
BRANCH: Final = Branch.wire_name


def with_newest(toc: Toc, log_file: LogFile, segments: Sequence[Ref]) -> Toc:
    """Return a rebuilt TOC that names the newest erasure and branch of its segments.

    Cost: a read of each segment's index. Damaged segments are skipped.

    Args:
        toc: The TOC.
        log_file: Its file.
        segments: Its segments, in seq order.
    """
    return replace(
        toc,
        erased=_newest(log_file, segments, ERASE),
        branch=_newest(log_file, segments, BRANCH),
    )


def _newest(log_file: LogFile, segments: Sequence[Ref], name: str) -> int:
    """Return the seq of the newest event of a type in segments; 0 without one."""
    for ref in reversed(segments):
        with suppress(Corrupt):
            seq = _newest_in(log_file, ref, name)
            if seq:
                return seq
    return 0


def _newest_in(log_file: LogFile, ref: Ref, name: str) -> int:
    segment = log_file.segment(ref.offset, ref.length)
    for number in reversed(range(len(segment.index.batches))):
        row = segment.index.batches[number]
        source = segment
        first = segment.own_first(number)
        if row.spill is not None:
            source = log_file.segment(row.spill.offset, row.spill.length)
            first = 0
        types = source.types(first, first + row.count)
        if name in types:
            place = row.count - 1 - types[::-1].index(name)
            return ref.first_seq + segment.batch_first(number) + place
    return 0
