"""The format's geometry, as the ordering monitor asks for it.

The only module of this room that decodes the file's structures; it uses the engine's own decoder
of header pages, which the monitor is not out to test.
"""

from cerata.engine.format.page import decode_page

from .monitor import Layout


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
            ring_start=header.ring_start,
        )

    def first_seq(self, record: bytes) -> int:
        return int.from_bytes(record[:8], "little")
