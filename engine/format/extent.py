"""The extent: a self-describing stretch of the data region.

::

    0         8        12        16         24            32           40         56        64
    ├─────────┼────────┼─────────┼──────────┼─────────────┼────────────┼──────────┼─────────┤
    │ magic 8 │ kind   │ flags   │ length   │ first seq   │ last seq   │ gener-   │ own     │ body
    │         │ u32    │ u32     │ u64      │ u64         │ u64        │ ation 16 │ check 8 │
    └─────────┴────────┴─────────┴──────────┴─────────────┴────────────┴──────────┴─────────┘

then ``length`` bytes of body and its 24-byte check. Extents start at multiples of 512, so the
data region can be walked from any known end. Both checks are keyed and cover the offset. The
flags are 0 (their low byte is reserved for the codec of the body: 0 is zstd if compressed).
The generation (u64, then 8 zero bytes) is that of the next TOC at the time of the write, which
shows the newer of two extents with the same events.
"""

import struct
from enum import IntEnum

import msgspec

from ..disk.storage import Buffer, StorageFile
from .checksums import (
    CHECK_SIZE,
    CHECK_SIZE_SHORT,
    TAG_EXTENT_BODY,
    TAG_EXTENT_HEADER,
    begin_check,
    check,
)
from .record import sectors

EXTENT_MAGIC = b"CERAXTNT"
EXTENT_HEADER_SIZE = 64
_LAYOUT = struct.Struct("<8sIIQQQQ8s")
assert _LAYOUT.size == EXTENT_HEADER_SIZE - CHECK_SIZE_SHORT

_COPY_SIZE = 4 << 20


class ExtentKind(IntEnum):
    """The content of an extent. On disk: never renumber."""

    SEGMENT = 1
    """Sealed events."""

    SPILL = 2
    """The events of a large batch, written before their seqs are known."""

    MANIFEST = 3
    """A page of references to other extents."""

    CHUNK = 4
    """Part of a projection's state."""

    QUARANTINE = 5
    """Bytes that recovery cut from the ring."""

    KEYS = 6
    """A sorted run of idempotency keys."""

    LEDGER = 7
    """A projection's digests at earlier checkpoints."""


class ExtentHeader(msgspec.Struct, frozen=True, gc=False):
    """The 64 bytes before an extent's body, verified; ``offset`` is the extent's."""

    offset: int
    kind: int
    length: int
    first_seq: int
    last_seq: int
    flags: int
    generation: int
    own_check: bytes

    @property
    def body_offset(self) -> int:
        return self.offset + EXTENT_HEADER_SIZE

    @property
    def end(self) -> int:
        """Offset of the first sector past the extent."""
        return self.offset + extent_size(self.length)


def extent_size(length: int) -> int:
    """Return the bytes that an extent with a body of ``length`` takes, whole sectors."""
    return sectors(EXTENT_HEADER_SIZE + length + CHECK_SIZE)


def encode_extent(
    key: bytes,
    offset: int,
    kind: ExtentKind,
    body: Buffer,
    first_seq: int = 0,
    last_seq: int = 0,
    *,
    generation: int = 0,
) -> list[Buffer]:
    """Return the extent as pieces to be written in order, whole sectors in all."""
    fields = _LAYOUT.pack(EXTENT_MAGIC, kind, 0, len(body), first_seq, last_seq, generation, b"")
    own_check = check(key, TAG_EXTENT_HEADER, offset, fields, size=CHECK_SIZE_SHORT)
    body_check = check(key, TAG_EXTENT_BODY, offset, own_check, body)
    used = EXTENT_HEADER_SIZE + len(body) + CHECK_SIZE
    return [fields + own_check, body, body_check + bytes(sectors(used) - used)]


def decode_extent_header(key: bytes, offset: int, data: Buffer) -> ExtentHeader | None:
    """Decode an extent's first 64 bytes; None if the check fails."""
    if len(data) < EXTENT_HEADER_SIZE:
        return None
    fields = bytes(data[: _LAYOUT.size])
    own_check = bytes(data[_LAYOUT.size : EXTENT_HEADER_SIZE])
    magic, kind, flags, length, first_seq, last_seq, generation, _ = _LAYOUT.unpack(fields)
    if magic != EXTENT_MAGIC:
        return None
    if check(key, TAG_EXTENT_HEADER, offset, fields, size=CHECK_SIZE_SHORT) != own_check:
        return None
    return ExtentHeader(offset, kind, length, first_seq, last_seq, flags, generation, own_check)


def extent_is_whole(key: bytes, file: StorageFile, header: ExtentHeader) -> bool:
    """Return whether the body verifies; reads in steps, so a large body needs little memory."""
    hasher = begin_check(key, TAG_EXTENT_BODY, header.offset)
    hasher.update(header.own_check)
    at = header.body_offset
    left = header.length
    while left:
        piece = file.read_at(at, min(left, _COPY_SIZE))
        if not piece:
            return False
        hasher.update(piece)
        at += len(piece)
        left -= len(piece)
    return hasher.digest(CHECK_SIZE) == file.read_at(at, CHECK_SIZE)
