"""The layout of a segment or spill: its body and the index of it.

Owns the rows of the index and its limits, shared by the writer of segments (`segment_writer`) and
their reader (`segment_reader`).

Body::

    index size u32 │ index raw size u32 │ index check 24 │ salts │ blocks │ attachments │ index

The index is one MessagePack value, compressed. Blocks are payloads joined to about 16 KiB and
compressed, each with its check, so reading one event costs one block. Attachments are raw; the
embeddings of one space form a contiguous column in seq order, aligned to 64 bytes in the file.
"""

import struct
import sys
import threading
from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import msgspec
import zstandard
from msgspec.structs import replace

from ..codec import SpillRef
from ..late import late

if TYPE_CHECKING:
    import numpy as np
else:
    np = late("numpy")


SEGMENT_PREFIX = struct.Struct("<II24s")
_COMPRESSION_LEVEL = 3
COLUMN_ALIGNMENT = 64
"""Alignment of a column in the file, so that its bytes can be read into aligned memory."""


class _Codecs(threading.local):
    """A compressor and decompressor per thread: building one costs more than a small block."""

    def __init__(self) -> None:
        self.compressor = zstandard.ZstdCompressor(level=_COMPRESSION_LEVEL)
        self.decompressor = zstandard.ZstdDecompressor()


codecs = _Codecs()


class BatchRow(msgspec.Struct, frozen=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """A batch of a segment; ``spill`` is set if its events are in a spill.

    With a ``seed``, the salts of its events are derived from the seed, and not stored.
    """

    count: int
    recorded: int
    clock: int | None
    spill: SpillRef | None = None
    seed: bytes | None = None


class BlockRow(msgspec.Struct, frozen=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """A compressed block: ``first`` is the number of its first event."""

    first: int
    offset: int
    stored_size: int
    raw_size: int
    check: bytes


class CutRow(msgspec.Struct, frozen=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """The hash that the payloads from event ``first`` to the next row are stored without.

    ``after`` is the count of bytes in the whole payload after the hash of the event's vector in a
    column; None if the payloads are stored whole.
    """

    first: int
    after: int | None


ColumnKey: TypeAlias = tuple[str, str, int]
"""The identity of a column: space, dtype and dimension."""


class PlacedColumn(NamedTuple):
    """A column of embeddings in the file: the number of each row's event, and its file offset."""

    events: Sequence[int]
    offset: int


class ColumnRow(msgspec.Struct, frozen=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """A contiguous column of embeddings: ``count`` rows of ``row_size`` bytes at ``offset``.

    Rows are in seq order; ``first`` is the number of the first row's attachment. The column's
    offset in the file is a multiple of 64 bytes.
    """

    space: str
    dtype: str
    dimension: int
    offset: int
    row_size: int
    first: int
    count: int

    @property
    def key(self) -> ColumnKey:
        return self.space, self.dtype, self.dimension


class SegmentIndex(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """All data of a segment's events except their payloads.

    "Own" events are those not in spills, numbered from 0. Columns are little-endian: type codes u32
    and payload sizes u32 of these events; per attachment its event's number u32, its ordinal u32,
    its offset u64 in the body and its size u64. ``erased`` pairs numbers with commitments. A
    block's check covers its compressed bytes and its events' stored salts. Payloads are stored
    without the hashes that ``cuts`` names; their sizes are those stored. ``attachment_checks``
    has a u32 per attachment: the first bytes of its hash if its payload is stored without it,
    otherwise 0.
    """

    batches: list[BatchRow]
    types: list[tuple[str, int]]
    type_codes: bytes
    payload_sizes: bytes
    causations: list[tuple[int, int]]
    erased: list[tuple[int, bytes]]
    blocks: list[BlockRow]
    attachment_events: bytes
    attachment_ordinals: bytes
    attachment_offsets: bytes
    attachment_sizes: bytes
    columns: list[ColumnRow]
    cuts: list[CutRow]
    attachment_checks: bytes
    chain: bytes
    peaks: list[bytes]


def encode_index(index: SegmentIndex) -> bytes:
    """Return the bytes of an index before compression.

    Columns are stored in forms that compress better: sizes with the lowest bytes first, events and
    offsets of attachments as differences, which are mostly equal.
    """
    return msgspec.msgpack.encode(
        replace(
            index,
            payload_sizes=_planes(index.payload_sizes),
            attachment_events=_differences(index.attachment_events, "<u4"),
            attachment_offsets=_differences(index.attachment_offsets, "<u8"),
        )
    )


def decode_index(data: bytes) -> SegmentIndex:
    """Return the index with these bytes, its columns in the form that `SegmentIndex` describes.

    Raises:
        DecodeError, ValueError: `encode_index` cannot have returned the bytes.
    """
    index = _INDEX.decode(data)
    return replace(
        index,
        payload_sizes=_from_planes(index.payload_sizes),
        attachment_events=_sums(index.attachment_events, "<u4"),
        attachment_offsets=_sums(index.attachment_offsets, "<u8"),
    )


_INDEX = msgspec.msgpack.Decoder(SegmentIndex)


def integers(data: bytes, form: Literal["I", "Q"]) -> "array[int]":
    """Return a column of little-endian numbers; empty if the data is truncated.

    A process that reads a few events needs no numpy.
    """
    column = array(form)
    if len(data) % column.itemsize == 0:
        column.frombytes(data)
    if sys.byteorder == "big":
        column.byteswap()
    return column


def _planes(data: bytes) -> bytes:
    """Return the bytes of u32 numbers with the lowest bytes first."""
    return b"".join(data[place::4] for place in range(4))


def _from_planes(data: bytes) -> bytes:
    """Return the bytes that `_planes` took apart. Raises `ValueError` if the size is wrong."""
    size = len(data) // 4
    joined = bytearray(len(data))
    for place in range(4):
        joined[place::4] = data[place * size : (place + 1) * size]
    return bytes(joined)


def _differences(data: bytes, dtype: str) -> bytes:
    column = np.frombuffer(data, dtype).copy()
    column[1:] -= column[:-1].copy()
    return column.tobytes()


def _sums(data: bytes, dtype: str) -> bytes:
    if not data:
        return b""
    column = np.frombuffer(data, dtype)
    return column.cumsum(dtype=column.dtype).tobytes()
