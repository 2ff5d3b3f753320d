"""Segments: sealed events in compressed blocks, with random access to one event.

Owns the body of the SEGMENT and SPILL extents. A segment covers a range of seqs; a spill is one
large batch written before its seqs are known, and a segment then names it instead of copying it.
Leaves out where extents stand and when sealing happens.

Body::

    index size u32 │ index raw size u32 │ index check 24 │ salts 16·n │ blocks │ attachments │ index

The index is one MessagePack value, compressed; blocks are payloads joined to about 16 KiB and
compressed, each with a check of its own, so one event costs one block. Attachments stand raw; the
embeddings of one space form a contiguous column in seq order, aligned to 64 bytes in the file.
"""

import bisect
import struct
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import accumulate, groupby, pairwise
from typing import Any, NamedTuple

import msgspec
import numpy as np
import zstandard

from .codec import DTYPE_SIZES, Batch, SpillRef, WireEvent
from .errors import Corrupt
from .events import Embedding, Payload
from .format.checks import CHECK_SIZE_BLOCK, TAG_BLOCK, TAG_INDEX, check
from .format.extent import EXTENT_HEADER_SIZE
from .integrity import SALT_SIZE, Tree, hash_bytes
from .limits import BLOB_SIZE_MAX, BLOCK_SIZE_TARGET, SEGMENT_INDEX_SIZE_MAX
from .storage import StorageFile

_PREFIX = struct.Struct("<II24s")
_COMPRESSION_LEVEL = 3
COLUMN_ALIGNMENT = 64
"""Where a column starts in the file, so that it can be read into aligned memory as it is."""

_BLOCKS_KEPT_MAX = 16
_BLOCK_RAW_SIZE_MAX = BLOB_SIZE_MAX + BLOCK_SIZE_TARGET


class _Codecs(threading.local):
    """One compressor and decompressor a thread: making one costs more than a small block."""

    def __init__(self) -> None:
        self.compressor = zstandard.ZstdCompressor(level=_COMPRESSION_LEVEL)
        self.decompressor = zstandard.ZstdDecompressor()


_codecs = _Codecs()


class BatchRow(msgspec.Struct, frozen=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """One batch of a segment; ``spill`` where its events stand elsewhere."""

    count: int
    recorded: int
    clock: int | None
    spill: SpillRef | None = None


class BlockRow(msgspec.Struct, frozen=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """One compressed block: ``first`` is the index of its first own event."""

    first: int
    offset: int
    stored_size: int
    raw_size: int
    check: bytes


class ColumnRow(msgspec.Struct, frozen=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """A contiguous column of embeddings: ``count`` rows of ``row_size`` bytes at ``offset``.

    Rows are in seq order, ``first`` is the number of the first one's attachment. The column's
    place in the file is a multiple of 64 bytes.
    """

    space: str
    dtype: str
    dimension: int
    offset: int
    row_size: int
    first: int
    count: int


class SegmentIndex(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Everything about a segment's events except their payloads.

    "Own" events are those not in spills, numbered from 0. Columns are little-endian: type codes
    u32 and payload sizes u32 per own event; per attachment its own event u32, its ordinal u32,
    its offset u64 in the body and its size u64. ``erased`` pairs own events with commitments.
    A block's check covers its compressed bytes and its events' salts.
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
    chain: bytes
    peaks: list[bytes]


_INDEX = msgspec.msgpack.Decoder(SegmentIndex)


class SegmentDraft:
    """A segment or spill encoded except for its place: blocks are compressed already.

    ``chain`` and ``tree`` are those after the last event; a spill has none.
    """

    def __init__(
        self, batches: Sequence[Batch], chain: bytes = b"", tree: Tree | None = None
    ) -> None:
        events = [event for batch in batches if batch.spill is None for event in batch.events]
        sizes = [0 if event.salt is None else len(event.payload) for event in events]
        self._batches = batches
        self._events = events
        self._sizes = sizes
        self._chain = chain
        self._peaks = list(tree.peaks) if tree else []
        self._salts = b"".join(event.salt or bytes(SALT_SIZE) for event in events)
        self._blocks = list(_compressed_blocks(events, sizes))
        self._attachments = sorted(
            (
                _Attached(*column, index, ordinal, data)
                for index, event in enumerate(events)
                for ordinal, (column, data) in enumerate(_columns_of(event))
            ),
            key=lambda row: (row.space, row.dtype, row.dimension, row.event, row.ordinal),
        )

    @property
    def size_max(self) -> int:
        """Bytes that the body takes at most, wherever it will stand."""
        index, pieces = self._laid_out(bytes(32), EXTENT_HEADER_SIZE)
        raw = len(msgspec.msgpack.encode(index))
        # zstd's bound for incompressible input. Extents stand at sectors, so columns are padded
        # alike in all places.
        return sum(map(len, pieces)) + raw + raw // 128 + 512

    def encode(self, key: bytes, offset: int) -> bytes:
        """Return the body for an extent at file offset ``offset``."""
        base = offset + EXTENT_HEADER_SIZE
        index, pieces = self._laid_out(key, base)
        raw = msgspec.msgpack.encode(index)
        stored = _codecs.compressor.compress(raw)
        at = _PREFIX.size + sum(map(len, pieces))
        own = check(key, TAG_INDEX, base + at, stored)
        return b"".join([_PREFIX.pack(len(stored), len(raw), own), *pieces, stored])

    def _laid_out(self, key: bytes, base: int) -> tuple[SegmentIndex, list[bytes]]:
        """Return the index, and what stands between prefix and index.

        ``base`` is the file offset of the body's first byte.
        """
        pieces = [self._salts]
        at = _PREFIX.size + len(self._salts)
        rows: list[BlockRow] = []
        for block in self._blocks:
            salts = self._salts[SALT_SIZE * block.first : SALT_SIZE * block.stop]
            own = check(key, TAG_BLOCK, base + at, block.data, salts, size=CHECK_SIZE_BLOCK)
            rows.append(BlockRow(block.first, at, len(block.data), block.raw_size, own))
            pieces.append(block.data)
            at += len(block.data)
        columns: list[ColumnRow] = []
        offsets: list[int] = []
        for (space, dtype, dimension), group in groupby(self._attachments, key=_column_key):
            held = list(group)
            if dtype:
                padding = -(base + at) % COLUMN_ALIGNMENT
                pieces.append(bytes(padding))
                at += padding
                row_size = len(held[0].data)
                columns.append(
                    ColumnRow(space, dtype, dimension, at, row_size, len(offsets), len(held))
                )
            for row in held:
                offsets.append(at)
                pieces.append(row.data)
                at += len(row.data)
        types: dict[tuple[str, int], int] = {}
        events = self._events
        codes = [types.setdefault((event.type, event.version), len(types)) for event in events]
        index = SegmentIndex(
            batches=[
                BatchRow(batch.count, batch.recorded, batch.clock, batch.spill)
                for batch in self._batches
            ],
            types=list(types),
            type_codes=np.array(codes, "<u4").tobytes(),
            payload_sizes=np.array(self._sizes, "<u4").tobytes(),
            causations=[
                (row, event.causation)
                for row, event in enumerate(events)
                if event.causation is not None
            ],
            erased=[(row, event.payload) for row, event in enumerate(events) if event.salt is None],
            blocks=rows,
            attachment_events=_packed([row.event for row in self._attachments], "<u4"),
            attachment_ordinals=_packed([row.ordinal for row in self._attachments], "<u4"),
            attachment_offsets=_packed(offsets, "<u8"),
            attachment_sizes=_packed([len(row.data) for row in self._attachments], "<u8"),
            columns=columns,
            chain=self._chain,
            peaks=self._peaks,
        )
        return index, pieces


class _Attached(NamedTuple):
    """An attachment on its way into a segment; ``dtype`` is empty outside a column."""

    space: str
    dtype: str
    dimension: int
    event: int
    ordinal: int
    data: bytes


class _Vectors(msgspec.Struct, frozen=True, gc=False):
    """The one field of a body that says which column an attachment belongs to."""

    embedding: Embedding | None = None


_VECTORS = msgspec.msgpack.Decoder(_Vectors)
_PAYLOAD = msgspec.msgpack.Decoder(Payload)
_NO_COLUMN = ("", "", 0)


def _column_key(row: _Attached) -> tuple[str, str, int]:
    return row.space, row.dtype, row.dimension


def _columns_of(event: WireEvent) -> Iterator[tuple[tuple[str, str, int], bytes]]:
    """Pair an event's attachments with the column that each belongs to."""
    embedding = _embedding_of(event) if event.attachments else None
    for data in event.attachments:
        if (
            embedding is not None
            and len(data) == embedding.data.size
            and hash_bytes(data) == embedding.data.hash
        ):
            yield (embedding.space, embedding.dtype, embedding.dimension), data
            # Once: a blob may have the same bytes, and a column has one row an event.
            embedding = None
        else:
            yield _NO_COLUMN, data


def _embedding_of(event: WireEvent) -> Embedding | None:
    """Return an event's embedding where its values fill a row of a column."""
    if event.salt is None:
        return None
    # A body of another kind, or of a later version, may have anything under this name.
    with suppress(msgspec.DecodeError, RecursionError):
        embedding = _VECTORS.decode(_PAYLOAD.decode(event.payload).body).embedding
        if embedding is not None:
            row_size = DTYPE_SIZES.get(embedding.dtype, 0) * embedding.dimension
            return embedding if 0 < row_size == embedding.data.size else None
    return None


def _packed(numbers: Sequence[int], dtype: str) -> bytes:
    return np.array(numbers, dtype).tobytes()


class _Block(msgspec.Struct, frozen=True, gc=False):
    """Compressed payloads of own events ``first`` to before ``stop``."""

    first: int
    stop: int
    data: bytes
    raw_size: int


def _compressed_blocks(events: Sequence[WireEvent], sizes: Sequence[int]) -> Iterator[_Block]:
    """Gather payloads into blocks of about 16 KiB, cut between events, and compress them."""
    compress = _codecs.compressor.compress
    first = 0
    while first < len(events):
        stop = first
        raw_size = 0
        while stop < len(events) and (raw_size == 0 or raw_size + sizes[stop] <= BLOCK_SIZE_TARGET):
            raw_size += sizes[stop]
            stop += 1
        raw = b"".join(event.payload for event in events[first:stop] if event.salt is not None)
        yield _Block(first, stop, compress(raw), raw_size)
        first = stop


def forget_oldest(kept: "dict[Any, Any]", count_max: int) -> None:
    """Drop the entries of a cache that were added first, so that ``count_max`` stay."""
    if len(kept) > count_max:
        for oldest in list(kept)[:-count_max]:
            # Another thread may have dropped it already.
            kept.pop(oldest, None)


def _salt(salts: bytes, index: int) -> bytes:
    return salts[SALT_SIZE * index : SALT_SIZE * (index + 1)]


def _decompressed(stored: bytes, raw_size: int) -> bytes:
    """Decompress a frame that must give ``raw_size`` bytes: the frame's own claim is not trusted.

    Raises:
        ZstdError: it is damaged, or of another size.
    """
    if zstandard.get_frame_parameters(stored).content_size != raw_size:
        raise zstandard.ZstdError("it is of another size than the index says")
    return _codecs.decompressor.decompress(stored, max_output_size=raw_size)


def _column(data: bytes, dtype: str) -> "np.ndarray[tuple[int], np.dtype[np.unsignedinteger[Any]]]":
    """Return a column of little-endian numbers; one that is cut short is left empty."""
    whole = len(data) % np.dtype(dtype).itemsize == 0
    return np.frombuffer(data if whole else b"", dtype)


class Segment:
    """Reads one segment or spill in place; the index is decoded once, blocks on demand.

    Cost: two reads and about 21 us a block; at most 16 decoded blocks are kept.
    """

    def __init__(self, file: StorageFile, key: bytes, offset: int, length: int) -> None:
        self._file = file
        self._key = key
        self.offset = offset
        self._base = offset + EXTENT_HEADER_SIZE
        self._length = length
        self.index = index = self._read_index()
        self._codes = _column(index.type_codes, "<u4")
        self._sizes = _column(index.payload_sizes, "<u4")
        self.own_count = len(self._codes)
        self._starts = np.zeros(len(self._sizes) + 1, np.int64)
        self._sizes.cumsum(out=self._starts[1:])
        self._block_firsts = [row.first for row in index.blocks]
        self._block_stops = [*self._block_firsts[1:], self.own_count]
        batches = index.batches
        self._batch_firsts = list(accumulate((row.count for row in batches), initial=0))
        self._own_firsts = list(
            accumulate((0 if row.spill else row.count for row in batches), initial=0)
        )
        self._causations = dict(index.causations)
        self._erased = dict(index.erased)
        attachment_events = _column(index.attachment_events, "<u4")
        self._check_shape(len(attachment_events))
        self._check_columns(attachment_events)
        ordinals = np.frombuffer(index.attachment_ordinals, "<u4")
        self._attachment_order = np.lexsort((ordinals, attachment_events))
        self._attachment_events = attachment_events[self._attachment_order]
        self._attachment_offsets = np.frombuffer(index.attachment_offsets, "<u8")
        self._attachment_sizes = np.frombuffer(index.attachment_sizes, "<u8")
        self._blocks: dict[int, tuple[bytes, bytes]] = {}

    @property
    def count(self) -> int:
        """Number of events, those in spills included."""
        return self._batch_firsts[-1]

    @property
    def tree(self) -> Tree:
        """The tree's peaks after the last event; its size is the caller's to know."""
        return Tree(0, tuple(self.index.peaks))

    def batch_of(self, event: int) -> int:
        """Return the number of the batch that holds event ``event`` (from 0) of the segment."""
        return bisect.bisect_right(self._batch_firsts, event) - 1

    def batch_first(self, batch: int) -> int:
        """Return the segment's number of the batch's first event."""
        return self._batch_firsts[batch]

    def own_first(self, batch: int) -> int:
        """Return the own number of the batch's first event; meaningless for a spilled batch."""
        return self._own_firsts[batch]

    def event(self, own: int, *, attachments: bool = True) -> WireEvent:
        """Return own event ``own``; its attachments are left out on request."""
        name, version = self.index.types[int(self._codes[own])]
        causation = self._causations.get(own)
        erased = self._erased.get(own)
        if erased is not None:
            return WireEvent(name, version, causation, None, erased)
        block = bisect.bisect_right(self._block_firsts, own) - 1
        start = int(self._starts[own] - self._starts[self._block_firsts[block]])
        data, salts = self._block(block)
        payload = data[start : start + int(self._sizes[own])]
        salt = _salt(salts, own - self._block_firsts[block])
        held = tuple(self.attachments(own)) if attachments else ()
        return WireEvent(name, version, causation, salt, payload, held)

    def events(self, first: int, stop: int, *, attachments: bool = True) -> Iterator[WireEvent]:
        """Yield own events from ``first`` to before ``stop``."""
        if first >= stop:
            return
        types = self.index.types
        codes: list[int] = self._codes[first:stop].tolist()
        sizes: list[int] = self._sizes[first:stop].tolist()
        with_attachments = attachments and len(self._attachment_events) > 0
        block = bisect.bisect_right(self._block_firsts, first) - 1
        block_first = self._block_firsts[block]
        data, salts = self._block(block)
        at = int(self._starts[first] - self._starts[block_first])
        for own in range(first, stop):
            if block + 1 < len(self._block_firsts) and own >= self._block_firsts[block + 1]:
                block += 1
                block_first = own
                (data, salts), at = self._block(block), 0
            name, version = types[codes[own - first]]
            causation = self._causations.get(own)
            if own in self._erased:
                yield WireEvent(name, version, causation, None, self._erased[own])
                continue
            size = sizes[own - first]
            salt = _salt(salts, own - block_first)
            held = tuple(self.attachments(own)) if with_attachments else ()
            yield WireEvent(name, version, causation, salt, data[at : at + size], held)
            at += size

    def attachments(self, own: int) -> list[bytes]:
        """Return the attachments of own event ``own`` in their order."""
        low, high = np.searchsorted(self._attachment_events, [own, own + 1])
        return [
            self._read(int(self._attachment_offsets[row]), int(self._attachment_sizes[row]))
            for row in self._attachment_order[low:high]
        ]

    def _read(self, at: int, size: int) -> bytes:
        """Read ``size`` bytes at ``at`` of the body; damage to the file's length is Corrupt."""
        if at < 0 or size < 0 or at + size > self._length:
            raise self._corrupt("a part lies outside the segment")
        data = self._file.read_at(self._base + at, size)
        if len(data) != size:
            raise self._corrupt("the file ends inside the segment")
        return data

    def _read_index(self) -> SegmentIndex:
        stored_size, raw_size, own = _PREFIX.unpack(self._read(0, _PREFIX.size))
        at = self._length - stored_size
        stored = self._read(at, stored_size)
        if check(self._key, TAG_INDEX, self._base + at, stored) != own:
            raise self._corrupt("its index does not verify")
        if raw_size > SEGMENT_INDEX_SIZE_MAX:
            raise self._corrupt("its index is over the limit")
        try:
            return _INDEX.decode(_decompressed(stored, raw_size))
        except (zstandard.ZstdError, msgspec.DecodeError, RecursionError) as error:
            raise self._corrupt(f"its index cannot be decoded: {error}") from error

    def _block(self, number: int) -> tuple[bytes, bytes]:
        """Return a block's payloads and salts; the last few that were read are kept."""
        found = self._blocks.get(number)
        if found is None:
            found = self._blocks[number] = self._read_block(number)
            forget_oldest(self._blocks, _BLOCKS_KEPT_MAX)
        return found

    def _read_block(self, number: int) -> tuple[bytes, bytes]:
        """Return a block's payloads and its events' salts, verified together."""
        row = self.index.blocks[number]
        stop = self._block_stops[number]
        place = self._base + row.offset
        stored = self._read(row.offset, row.stored_size)
        salts = self._read(_PREFIX.size + SALT_SIZE * row.first, SALT_SIZE * (stop - row.first))
        if check(self._key, TAG_BLOCK, place, stored, salts, size=CHECK_SIZE_BLOCK) != row.check:
            raise self._corrupt(f"block {number} does not verify", place)
        if row.raw_size == 0:
            return b"", salts
        try:
            return _decompressed(stored, row.raw_size), salts
        except zstandard.ZstdError as error:
            raise self._corrupt(f"block {number} cannot be decoded: {error}") from error

    def _check_shape(self, attachments: int) -> None:
        """Refuse an index whose parts do not fit together, before any is used."""
        index = self.index
        count = self.own_count
        fits = (
            len(self._sizes) == count
            and count == self._own_firsts[-1]
            and (count == 0 or int(self._codes.max()) < len(index.types))
            and (count == 0) == (not index.blocks)
            and (not index.blocks or index.blocks[0].first == 0)
            and all(a.first < b.first for a, b in pairwise(index.blocks))
            and all(row.first < count for row in index.blocks)
            and all(0 <= row.raw_size <= _BLOCK_RAW_SIZE_MAX for row in index.blocks)
            and all(row.count > 0 for row in index.batches)
            and len(index.attachment_ordinals) == 4 * attachments
            and len(index.attachment_offsets) == 8 * attachments
            and len(index.attachment_sizes) == 8 * attachments
        )
        if not fits:
            raise self._corrupt("its index contradicts itself")
        for row, following in pairwise([*self._block_firsts, count]):
            number = bisect.bisect_left(self._block_firsts, row)
            if self._starts[following] - self._starts[row] != index.blocks[number].raw_size:
                raise self._corrupt("its blocks do not fit its events")
        sizes = np.frombuffer(index.attachment_sizes, "<u8")
        if attachments and int(sizes.max()) > BLOB_SIZE_MAX:
            raise self._corrupt("an attachment is over the limit")

    def _check_columns(self, events: "np.ndarray[tuple[int], np.dtype[Any]]") -> None:
        """Refuse a column that is not its attachments, in seq order, without a gap."""
        offsets = np.frombuffer(self.index.attachment_offsets, "<u8")
        sizes = np.frombuffer(self.index.attachment_sizes, "<u8")
        for column in self.index.columns:
            rows = slice(column.first, column.first + column.count)
            item_size = DTYPE_SIZES.get(column.dtype)
            fits = (
                min(column.first, column.offset) >= 0
                and min(column.count, column.row_size, column.dimension) > 0
                and rows.stop <= len(events)
                and column.offset + column.row_size * column.count <= self._length
                and (self._base + column.offset) % COLUMN_ALIGNMENT == 0
                and (item_size is None or item_size * column.dimension == column.row_size)
            )
            if fits:
                places = np.arange(column.count, dtype="<u8") * np.uint64(column.row_size)
                held = events[rows]
                fits = (
                    bool((sizes[rows] == column.row_size).all())
                    and bool((offsets[rows] == places + np.uint64(column.offset)).all())
                    and bool((held[1:] > held[:-1]).all())
                )
            if not fits:
                raise self._corrupt("a column does not fit")

    def _corrupt(self, what: str, offset: int | None = None) -> Corrupt:
        return Corrupt(
            f"A segment is damaged: {what}",
            offset=self.offset if offset is None else offset,
            remedy="Run 'cerata verify' to see what is affected.",
        )
