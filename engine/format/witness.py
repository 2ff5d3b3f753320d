"""The witness: the seq of a durable event, stored outside the ring, once on each side.

::

    0         8                 16         40
    ├─────────┼─────────────────┼──────────┼──── zeros to 512
    │ magic 8 │ durable through │ own      │
    │         │ u64             │ check 24 │
    └─────────┴─────────────────┴──────────┴────

Witness 0 is 4,096 bytes before the ring, witness 1 at the ring's end. Each has 4,096 bytes, the
rest of them zero, so that no disk writes a witness together with a record. A range of bytes from a
record to a witness does not reach the other witness, unless the range covers the whole ring.
"""

import struct

from ..disk.storage import Buffer
from ..limits import PAGE_SIZE, SECTOR_SIZE
from .checksums import CHECK_SIZE, TAG_WITNESS, check

WITNESS_MAGIC = b"CERAWITN"
WITNESS_SPACE = PAGE_SIZE
"""Bytes reserved for each witness."""

WITNESS_SIZE = 40
_LAYOUT = struct.Struct("<8sQ")
assert _LAYOUT.size == WITNESS_SIZE - CHECK_SIZE


def encode_witness(key: bytes, offset: int, durable_through: int) -> bytes:
    """Return the sector of the witness at ``offset``."""
    fields = _LAYOUT.pack(WITNESS_MAGIC, durable_through)
    return (fields + check(key, TAG_WITNESS, offset, fields)).ljust(SECTOR_SIZE, b"\0")


def decode_witness(key: bytes, offset: int, data: Buffer) -> int | None:
    """Return the seq that a witness names; None if its check fails."""
    fields = bytes(data[: _LAYOUT.size])
    if check(key, TAG_WITNESS, offset, fields) != data[_LAYOUT.size : WITNESS_SIZE]:
        return None
    magic, durable_through = _LAYOUT.unpack(fields)
    return durable_through if magic == WITNESS_MAGIC else None
