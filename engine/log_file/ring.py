"""Reading the ring: the records that connect, the log's end, and the records beyond.

Owns the walk over connected records from a cursor, and the search for valid records that do not
connect. Only reads and decides nothing: `recovery` judges the result, `log_state` follows the ring
while other processes write.
"""

from collections.abc import Callable
from enum import Enum

import msgspec

from ..codec import Batch, decode_content
from ..disk.storage import StorageFile
from ..format.page import HeaderPage
from ..format.record import (
    EMPTY_SECTOR,
    RECORD_HEADER_SIZE,
    RECORD_PREFIX_SIZE,
    RecordHeader,
    RecordPrefix,
    decode_record_body,
    decode_record_header,
)
from ..limits import BATCH_EVENTS_MAX, RING_SIZE_GROWN, SECTOR_SIZE

_STEP = 64 << 10
_GROWTH_RATIO = 8
"""A ring grows in a file of at least this many times its new size."""

Read = Callable[[int, int], bytes]
"""Reads (file offset, size); shorter only at the end of the file."""


def grown_size(page: HeaderPage) -> int | None:
    """Return the size of the ring that replaces a full ring; None if the ring stays.

    A file grows its ring once: a full ring seals, which costs two syncs and a TOC, and only a large
    file hides the larger ring and the space of the old ring.
    """
    is_large = page.data_end >= _GROWTH_RATIO * RING_SIZE_GROWN
    return RING_SIZE_GROWN if is_large and page.ring_size < RING_SIZE_GROWN else None


class Cursor(msgspec.Struct, frozen=True, gc=False):
    """A place in the ring between two records.

    ``offset`` is a file offset inside the ring, ``used`` the bytes from the ring's start to it,
    ``next_seq`` the seq expected there, ``link`` the body check of the previous record.
    ``durable_through`` is the highest seq that an earlier record claims to be durable. ``last`` is
    the offset of the previous record, 0 at the ring's start.
    """

    offset: int
    used: int
    next_seq: int
    link: bytes
    incarnation: int
    durable_through: int
    last: int = 0

    @classmethod
    def at_start(cls, page: HeaderPage) -> "Cursor":
        """Return the cursor before the first unsealed record."""
        return cls(
            offset=page.ring_start,
            used=0,
            next_seq=page.sealed_seq + 1,
            link=page.link,
            incarnation=page.incarnation,
            durable_through=page.sealed_seq,
        )


class End(Enum):
    """The content of the ring at the end of the connected records."""

    EMPTY = "an empty sector"
    TORN = "a record whose body does not verify"
    BAD = "bytes that are no record"
    STALE = "a record of an earlier lap or incarnation"
    UNLINKED = "a record that does not follow from the one before"
    FULL = "the ring's own start"


class Walk(msgspec.Struct, frozen=True):
    """Connected records: their batches, the cursor after them, and the cause of the end."""

    batches: list[Batch]
    cursor: Cursor
    end: End


def walk(read: Read, key: bytes, page: HeaderPage, cursor: Cursor) -> Walk:
    """Follow the records that connect to ``cursor``; reads in steps of 64 KiB."""
    batches: list[Batch] = []
    data = b""
    base = cursor.offset
    while True:
        if cursor.used >= page.ring_size:
            return Walk(batches, cursor, End.FULL)
        at = cursor.offset - base
        if not 0 <= at < len(data):
            base = cursor.offset
            at = 0
            data = read(base, min(_STEP, page.ring_end - base))
        header = decode_record_header(key, cursor.offset, data, at)
        if header is None:
            sector = data[at : at + SECTOR_SIZE]
            return Walk(batches, cursor, End.EMPTY if sector == EMPTY_SECTOR else End.BAD)
        if header.incarnation < cursor.incarnation:
            return Walk(batches, cursor, End.STALE)
        if header.is_padding:
            if header.body_check != cursor.link:
                return Walk(batches, cursor, End.STALE)
            if cursor.offset + header.size != page.ring_end:
                return Walk(batches, cursor, End.BAD)
            cursor = _advance(cursor, page, header)
            continue
        if header.first_seq < cursor.next_seq:
            return Walk(batches, cursor, End.STALE)
        if header.first_seq > cursor.next_seq:
            return Walk(batches, cursor, End.UNLINKED)
        if cursor.offset + header.size > page.ring_end:
            return Walk(batches, cursor, End.BAD)
        stop = at + RECORD_HEADER_SIZE + header.length
        if stop > len(data):
            base = cursor.offset
            at = 0
            stop = RECORD_HEADER_SIZE + header.length
            data = read(base, max(header.size, min(_STEP, page.ring_end - base)))
        body = memoryview(data)[at + RECORD_HEADER_SIZE : stop]
        prefix = decode_record_body(key, cursor.offset, header, body)
        if prefix is None or prefix.durable_through >= header.first_seq:
            return Walk(batches, cursor, End.TORN)
        if prefix.link != cursor.link:
            return Walk(batches, cursor, End.UNLINKED)
        if not prefix.is_mark:
            content = body[RECORD_PREFIX_SIZE:]
            batches.append(decode_content(header.first_seq, prefix.count, content, cursor.offset))
        cursor = _advance(cursor, page, header, prefix)


def _advance(
    cursor: Cursor, page: HeaderPage, header: RecordHeader, prefix: RecordPrefix | None = None
) -> Cursor:
    """Return the cursor after a record, or after padding, which has no prefix."""
    size = header.size
    offset = cursor.offset + size
    # Built directly: this runs once per record at every open, and `replace` takes three times as
    # long.
    return Cursor(
        page.ring_offset if offset >= page.ring_end else offset,
        cursor.used + size,
        cursor.next_seq if prefix is None else cursor.next_seq + prefix.count,
        cursor.link if prefix is None else header.body_check,
        header.incarnation,
        cursor.durable_through
        if prefix is None
        else max(cursor.durable_through, prefix.durable_through),
        cursor.last if prefix is None else cursor.offset,
    )


class Beyond(msgspec.Struct, frozen=True, gc=False):
    """A valid record that does not connect to the previous record."""

    offset: int
    first_seq: int
    count: int
    durable_through: int
    incarnation: int


def look_beyond(file: StorageFile, key: bytes, page: HeaderPage, cursor: Cursor) -> list[Beyond]:
    """Find valid records after ``cursor`` of its incarnation or later, in ring order.

    Skips records of earlier laps (lower seqs), records that were cut (lower incarnations) and
    connected records. Cost: a search of the whole ring, then a read and two checks for each sector
    that may begin a record.
    """
    # A higher seq would need more records than the ring has sectors.
    furthest = cursor.next_seq + BATCH_EVENTS_MAX * (page.ring_size // SECTOR_SIZE)
    records: list[Beyond] = []
    for offset in file.search(page.ring_offset, page.ring_end, cursor.next_seq, furthest):
        header = decode_record_header(key, offset, file.read_at(offset, SECTOR_SIZE))
        if header is None or header.incarnation < cursor.incarnation:
            continue
        body_offset = offset + RECORD_HEADER_SIZE
        body = file.read_at(body_offset, min(header.length, page.ring_end - body_offset))
        prefix = decode_record_body(key, offset, header, body)
        if prefix is None:
            continue
        # A connected mark has the next event's seq, and so has a mark from before the last seal.
        # Neither adds information.
        if not (prefix.is_mark and header.first_seq == cursor.next_seq):
            records.append(
                Beyond(
                    offset,
                    header.first_seq,
                    prefix.count,
                    prefix.durable_through,
                    header.incarnation,
                )
            )
    return sorted(records, key=lambda record: (record.offset - cursor.offset) % page.ring_size)
