"""The ring record: one batch, a mark, or padding, in whole sectors.

::

    0        8          12            16              24           48
    ├────────┼──────────┼─────────────┼───────────────┼────────────┼──── body, zeros to 512
    │ first  │ length   │ incarnation │ header check  │ body check │
    │ seq u64│ u32      │ u32         │ 8 bytes       │ 24 bytes   │
    └────────┴──────────┴─────────────┴───────────────┴────────────┴────

The body starts with 40 bytes: durable_through u64, flags u32, count u32, and the link, the body
check of the previous record (24 bytes); then one MessagePack value. The body check covers the
record's offset and the body; the header check covers the offset, first seq, length, incarnation
and the body check, and is verified before the length is used. The link is stored in the body, so a
record verifies even if every record before it is destroyed.

Padding has first seq 0 and no body: its length reaches the ring's end, and the link replaces
the body check, so padding of an earlier lap never connects. A mark has count 0 and
carries only durable_through; its first seq is the next event's. On disk: never renumber or move.
"""

import struct
from typing import Final

import msgspec

from ..disk.storage import Buffer
from ..errors import Unsupported
from ..limits import BATCH_EVENTS_MAX, SECTOR_SIZE
from .checksums import CHECK_SIZE, CHECK_SIZE_SHORT, TAG_RECORD_BODY, TAG_RECORD_HEADER, check

_HEADER = struct.Struct("<QII8s24s")
_COVERED = struct.Struct("<QII")
_PREFIX = struct.Struct("<QII24s")
RECORD_HEADER_SIZE = 48
RECORD_PREFIX_SIZE = 40
assert _HEADER.size == RECORD_HEADER_SIZE
assert _PREFIX.size == RECORD_PREFIX_SIZE

FLAG_SPILLED = 1
"""The events are in a spill extent, which the body names."""

NO_LINK = bytes(CHECK_SIZE)
"""The link of a file's first record."""

EMPTY_SECTOR = bytes(SECTOR_SIZE)
"""The sector after the last record of the log."""


def sectors(size: int) -> int:
    """Return ``size`` rounded up to whole sectors."""
    return (size + SECTOR_SIZE - 1) // SECTOR_SIZE * SECTOR_SIZE


class RecordHeader(msgspec.Struct, frozen=True, gc=False):
    """The 48 bytes before a record's body, already verified."""

    first_seq: int
    length: int
    incarnation: int
    body_check: bytes

    @property
    def is_padding(self) -> bool:
        return self.first_seq == 0

    @property
    def size(self) -> int:
        """Bytes of ring that the record takes, whole sectors."""
        return sectors(RECORD_HEADER_SIZE + self.length)


class RecordPrefix(msgspec.Struct, frozen=True, gc=False):
    """The 40 fixed bytes at the start of a record's body."""

    durable_through: int
    flags: int
    count: int
    link: bytes

    @property
    def is_mark(self) -> bool:
        return self.count == 0


def encode_record(
    key: bytes, offset: int, first_seq: int, incarnation: int, prefix: RecordPrefix, content: bytes
) -> tuple[bytes, bytes]:
    """Return (the record in whole sectors, its body check) for a place in the file."""
    body = _PREFIX.pack(prefix.durable_through, prefix.flags, prefix.count, prefix.link) + content
    size = len(body)
    body_check = check(key, TAG_RECORD_BODY, offset, body)
    record = _encode_header(key, offset, first_seq, size, incarnation, body_check) + body
    return record.ljust(sectors(RECORD_HEADER_SIZE + size), b"\0"), body_check


def encode_padding(key: bytes, offset: int, incarnation: int, size: int, link: bytes) -> bytes:
    """Return the header of a padding record that takes ``size`` bytes of ring."""
    return _encode_header(key, offset, 0, size - RECORD_HEADER_SIZE, incarnation, link)


def _encode_header(
    key: bytes, offset: int, first_seq: int, length: int, incarnation: int, body_check: bytes
) -> bytes:
    covered = _COVERED.pack(first_seq, length, incarnation)
    header_check = check(
        key, TAG_RECORD_HEADER, offset, covered + body_check, size=CHECK_SIZE_SHORT
    )
    return covered + header_check + body_check


def decode_record_header(key: bytes, offset: int, data: Buffer, at: int = 0) -> RecordHeader | None:
    """Decode the header that starts at ``data[at]``; None if its check fails."""
    if len(data) - at < RECORD_HEADER_SIZE:
        return None
    first_seq, length, incarnation, header_check, body_check = _HEADER.unpack_from(data, at)
    covered = bytes(data[at : at + _COVERED.size])
    expected = check(key, TAG_RECORD_HEADER, offset, covered + body_check, size=CHECK_SIZE_SHORT)
    if expected != header_check:
        return None
    return RecordHeader(first_seq, length, incarnation, body_check)


def stored_body_check(data: Buffer) -> bytes:
    """Return the unverified body check in a record's first bytes."""
    return bytes(data[RECORD_HEADER_SIZE - CHECK_SIZE : RECORD_HEADER_SIZE])


def decode_record_body(
    key: bytes, offset: int, header: RecordHeader, body: Buffer
) -> RecordPrefix | None:
    """Verify a body of ``header.length`` bytes and decode its prefix; None if it is invalid."""
    if header.length < RECORD_PREFIX_SIZE or len(body) != header.length:
        return None
    if check(key, TAG_RECORD_BODY, offset, body) != header.body_check:
        return None
    prefix = RecordPrefix(*_PREFIX.unpack_from(body))
    if prefix.flags & ~FLAG_SPILLED:
        # Whole and verified, so not damage: ending the log here would lose the written events.
        raise Unsupported(
            f"A ring record has flags that this Cerata does not know (0x{prefix.flags:x})",
            where=f"offset {offset:,}",
            remedy="Upgrade Cerata.",
        )
    return prefix if prefix.count <= BATCH_EVENTS_MAX else None


RECORD_OVERHEAD: Final = RECORD_HEADER_SIZE + RECORD_PREFIX_SIZE
