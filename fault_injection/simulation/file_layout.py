"""The format's geometry, for the ordering monitor.

The only module of this room that decodes structures of the file; it uses the engine's decoder of
header pages, which the monitor does not test.
"""

from cerata.engine.format.page import decode_page
from cerata.engine.format.record import RECORD_HEADER_SIZE

from .write_order_monitor import Layout

_COUNT_OFFSET = RECORD_HEADER_SIZE + 12
"""Offset of the count of events: behind durable_through u64 and flags u32 of a record's body."""


class FileGeometry:
    """Geometry of format version 1."""

    def layout(self, page: bytes, number: int) -> Layout | None:
        header = decode_page(page, number)
        if header is None:
            return None
        return Layout(
            order=header.flip,
            data_end=header.data_end,
            ring_offset=header.ring_offset,
            ring_end=header.ring_end,
            sealed_seq=header.sealed_seq,
            witnesses=header.witness_offsets,
        )

    def first_seq(self, record: bytes) -> int:
        # Padding has no seq; a mark has the seq of the next event, and the count 0.
        count = record[_COUNT_OFFSET : _COUNT_OFFSET + 4]
        return int.from_bytes(record[:8], "little") if any(count) else 0

    def witnessed_seq(self, sector: bytes) -> int:
        return int.from_bytes(sector[8:16], "little")
