"""The header page: a cache of the newest footer, stored twice (at 0 and at 4,096).

=======  ====  =====  ==================================================================
offset   size  type   field
=======  ====  =====  ==================================================================
0        8     bytes  magic, ``89 43 45 52 41 54 41 0A``
8        2     u16    format version, 1
10       2     u16    page number, 0 or 1
12       4     u32    flags: bit 0 moved
16       16    bytes  file id
32       16    bytes  log id
48       8     u64    flip: how many times a page was written
56       8     u64    generation of the newest footer
64       8     u64    TOC offset
72       8     u64    TOC size in bytes
80       8     u64    data end: offset past the newest footer
88       8     u64    ring offset
96       8     u64    ring size in bytes
104      8     u64    ring start: offset of the next record after the sealed records
112      8     u64    sealed seq
120      24    bytes  link: body check of the last sealed record
144      8     i64    recorded time of the sealed seq, microseconds since 1970 UTC
152      8     i64    created, microseconds since 1970 UTC
160      4     u32    incarnation
164      4     u32    features that a reader must know (a reader refuses unknown bits)
168      4     u32    features that a writer must know (with unknown bits, a writer only reads)
172      8     u64    closed seq: the head at the last clean close
180      3884         zero
4064     32    bytes  check of the page number's offset and bytes 0 to 4,063
=======  ====  =====  ==================================================================

All integers are little-endian. On disk: never renumber or move.
"""

import struct

import msgspec
from blake3 import blake3
from msgspec.structs import replace

from ..limits import PAGE_SIZE, RING_SIZE_MAX, RING_SIZE_MIN, SECTOR_SIZE, TOC_SIZE_MAX
from .checksums import CHECK_SIZE, TAG_PAGE
from .witness import WITNESS_SPACE

MAGIC = b"\x89CERATA\n"
VERSION = 1
FLAG_MOVED = 1

READ_FEATURES = 0
WRITE_FEATURES = 0
"""The features that this version knows: none yet. A later feature that an older process would
misread or undo gets a bit, never a silent field. The bit is set in both pages and in the TOC before
any stored bytes depend on the feature."""

_LAYOUT = struct.Struct("<8sHHI16s16sQQQQQQQQQ24sqqIIIQ")
PAGE_FIELDS_SIZE = _LAYOUT.size
PAGE_CHECK_SIZE = 32
_CHECK_OFFSET = PAGE_SIZE - PAGE_CHECK_SIZE
_PLACE = struct.Struct("<cQ")
_FLAGS_OFFSET = 12
_RESERVED = bytes(_CHECK_OFFSET - PAGE_FIELDS_SIZE)
RING_OFFSET = 2 * PAGE_SIZE + WITNESS_SPACE
"""Offset of the ring in a new file."""
assert PAGE_FIELDS_SIZE == 180  # the table above


class HeaderPage(msgspec.Struct, frozen=True, gc=False):
    """A decoded header page; see the module's table for the fields.

    Invariants: the ring and its witnesses lie behind the pages; ring start is inside the ring and a
    multiple of 512; the TOC ends before the data end.
    """

    number: int
    file_id: bytes
    log_id: bytes
    flip: int
    generation: int
    toc_offset: int
    toc_size: int
    data_end: int
    ring_offset: int
    ring_size: int
    ring_start: int
    sealed_seq: int
    link: bytes
    recorded: int
    created: int
    incarnation: int
    read_features: int = 0
    write_features: int = 0
    closed_seq: int = 0
    moved: bool = False

    @property
    def named_seq(self) -> int:
        """The last event that this page names as durable: sealed, or the head at a clean close."""
        return max(self.sealed_seq, self.closed_seq)

    @property
    def ring_end(self) -> int:
        """Offset past the ring."""
        return self.ring_offset + self.ring_size

    @property
    def witness_offsets(self) -> tuple[int, int]:
        """Offsets of the two witnesses."""
        return self.ring_offset - WITNESS_SPACE, self.ring_end

    @property
    def fixed_size(self) -> int:
        """Bytes of the pages, the ring and its witnesses; the offset of the data in a new file."""
        return RING_OFFSET + self.ring_size + WITNESS_SPACE

    def encode(self) -> bytes:
        """Return the page's 4,096 bytes."""
        fields = _LAYOUT.pack(
            MAGIC,
            VERSION,
            self.number,
            FLAG_MOVED if self.moved else 0,
            self.file_id,
            self.log_id,
            self.flip,
            self.generation,
            self.toc_offset,
            self.toc_size,
            self.data_end,
            self.ring_offset,
            self.ring_size,
            self.ring_start,
            self.sealed_seq,
            self.link,
            self.recorded,
            self.created,
            self.incarnation,
            self.read_features,
            self.write_features,
            self.closed_seq,
        )
        body = fields.ljust(_CHECK_OFFSET, b"\0")
        return body + _page_check(self.number, body)


def _page_check(number: int, body: bytes) -> bytes:
    place = _PLACE.pack(TAG_PAGE, number * PAGE_SIZE)
    return blake3(place + body).digest(PAGE_CHECK_SIZE)


def decode_page(data: bytes, number: int) -> HeaderPage | None:
    """Decode page ``number`` from its 4,096 bytes; None if any part is invalid."""
    if len(data) != PAGE_SIZE or not data.startswith(MAGIC):
        return None
    body = data[:_CHECK_OFFSET]
    if _page_check(number, body) != data[_CHECK_OFFSET:]:
        return None
    _, version, stored_number, flags, *rest = _LAYOUT.unpack_from(body)
    if version != VERSION or stored_number != number:
        return None
    page = HeaderPage(number, *rest)
    if flags & FLAG_MOVED:
        page = replace(page, moved=True)
    return page if is_plausible(page) else None


def is_plausible(page: HeaderPage) -> bool:
    """Check the invariants: a page can verify and still come from a faulty or hostile writer."""
    return (
        RING_SIZE_MIN <= page.ring_size <= RING_SIZE_MAX
        and page.ring_size % SECTOR_SIZE == 0
        and page.ring_offset % SECTOR_SIZE == 0
        and page.ring_offset >= RING_OFFSET
        and page.ring_offset <= page.ring_start < page.ring_end
        and page.ring_start % SECTOR_SIZE == 0
        and page.toc_size <= TOC_SIZE_MAX
        and page.toc_offset >= 2 * PAGE_SIZE
        and page.toc_offset + page.toc_size <= page.data_end
        and len(page.link) == CHECK_SIZE
    )


def unknown_content(data: bytes, page: HeaderPage) -> str | None:
    """Return the content of a verified page that this Cerata does not know; None if nothing.

    An unknown feature bit explains such content, and is checked separately.
    """
    if page.read_features & ~READ_FEATURES or page.write_features & ~WRITE_FEATURES:
        return None
    unknown = int.from_bytes(data[_FLAGS_OFFSET : _FLAGS_OFFSET + 4], "little") & ~FLAG_MOVED
    if unknown:
        return f"flags 0x{unknown:x}"
    if data[PAGE_FIELDS_SIZE:_CHECK_OFFSET] != _RESERVED:
        return f"bytes from offset {PAGE_FIELDS_SIZE} on"
    return None


def newer_version(data: bytes, number: int) -> int | None:
    """Return the version of a whole page of a newer format, or None for any other page.

    In every version the magic, the version and the check are at the same offsets.
    """
    version = stored_version(data)
    if version is None or version <= VERSION or len(data) != PAGE_SIZE:
        return None
    body = data[:_CHECK_OFFSET]
    return version if _page_check(number, body) == data[_CHECK_OFFSET:] else None


def stored_version(data: bytes) -> int | None:
    """Return the format version that a page claims, or None if the magic is not Cerata's."""
    if len(data) < 10 or not data.startswith(MAGIC):
        return None
    return int.from_bytes(data[8:10], "little")
