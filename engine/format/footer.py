"""The footer: 64 bytes that end a flip's writes and name its TOC.

::

    0         8            16            40           48           56          64
    ├─────────┼────────────┼─────────────┼────────────┼────────────┼───────────┤
    │ magic 8 │ TOC length │ TOC hash 24 │ generation │ sealed seq │ own check │
    │         │ u64        │             │ u64        │ u64        │ 8         │
    └─────────┴────────────┴─────────────┴────────────┴────────────┴───────────┘

A footer starts at a multiple of 512, directly after its TOC, which is filled with zeros to whole
sectors. Both checks are keyed and cover the offset.
"""

import struct

import msgspec

from ..disk.storage import Buffer
from ..limits import SECTOR_SIZE, TOC_SIZE_MAX
from .checksums import CHECK_SIZE_SHORT, TAG_FOOTER, TAG_TOC, check
from .record import sectors

FOOTER_MAGIC = b"CERAFOOT"
FOOTER_SIZE = 64
_LAYOUT = struct.Struct("<8sQ24sQQ")
assert _LAYOUT.size == FOOTER_SIZE - CHECK_SIZE_SHORT


class Footer(msgspec.Struct, frozen=True, gc=False):
    """A verified footer and its ``offset``."""

    offset: int
    toc_size: int
    toc_hash: bytes
    generation: int
    sealed_seq: int

    @property
    def toc_offset(self) -> int:
        return self.offset - sectors(self.toc_size)

    @property
    def end(self) -> int:
        """Offset past the footer's sector."""
        return self.offset + SECTOR_SIZE


def encode_footer(key: bytes, offset: int, toc: bytes, generation: int, sealed_seq: int) -> bytes:
    """Return the footer's sector for a TOC that ends at ``offset``."""
    toc_hash = check(key, TAG_TOC, offset - sectors(len(toc)), toc)
    fields = _LAYOUT.pack(FOOTER_MAGIC, len(toc), toc_hash, generation, sealed_seq)
    own_check = check(key, TAG_FOOTER, offset, fields, size=CHECK_SIZE_SHORT)
    return (fields + own_check).ljust(SECTOR_SIZE, b"\0")


def decode_footer(key: bytes, offset: int, data: Buffer) -> Footer | None:
    """Decode the footer at ``offset`` from its first 64 bytes; None if it is invalid."""
    if len(data) < FOOTER_SIZE:
        return None
    fields = bytes(data[: _LAYOUT.size])
    magic, toc_size, toc_hash, generation, sealed_seq = _LAYOUT.unpack(fields)
    if magic != FOOTER_MAGIC or not 0 < toc_size <= TOC_SIZE_MAX or sectors(toc_size) > offset:
        return None
    own_check = check(key, TAG_FOOTER, offset, fields, size=CHECK_SIZE_SHORT)
    if own_check != data[_LAYOUT.size : FOOTER_SIZE]:
        return None
    return Footer(offset, toc_size, toc_hash, generation, sealed_seq)


def stored_toc_size(data: Buffer) -> int | None:
    """Return the TOC's size that an unverified footer claims; None if it cannot be a footer."""
    if len(data) < FOOTER_SIZE:
        return None
    magic, toc_size, _, _, _ = _LAYOUT.unpack_from(data)
    return toc_size if magic == FOOTER_MAGIC and 0 < toc_size <= TOC_SIZE_MAX else None


def toc_is_whole(key: bytes, footer: Footer, toc: bytes) -> bool:
    """Return whether ``toc`` is the TOC that the footer names."""
    return check(key, TAG_TOC, footer.toc_offset, toc) == footer.toc_hash
