"""Segments: sealed events in compressed blocks, with random access to one event.

Owns the body of the SEGMENT and SPILL extents. A segment covers a range of seqs; a spill is one
large batch written before its seqs are known, and a segment then names it instead of copying it.
Leaves out where extents stand and when sealing happens.

Body::

    index size u32 │ index raw size u32 │ index check 24 │ salts 16·n │ blocks │ attachments │ index

The index is one MessagePack value, compressed; blocks are payloads joined to about 16 KiB and
compressed, each with a check of its own, so one event costs one block. Attachments stand raw,
those of one size side by side in seq order: the embeddings of a space form a contiguous column.
"""

import bisect
import struct
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
import zstandard

from .codec import Batch, SpillRef, WireEvent
from .errors import Corrupt
from .format.checks import CHECK_SIZE_BLOCK, TAG_BLOCK, TAG_INDEX, check
from .format.extent import EXTENT_HEADER_SIZE
from .integrity import SALT_SIZE, Tree
from .limits import BLOB_SIZE_MAX, BLOCK_SIZE_TARGET, SEGMENT_INDEX_SIZE_MAX
from .storage import StorageFile

_PREFIX = struct.Struct("<II24s")
_COMPRESSION_LEVEL = 3
_BLOCK_RAW_SIZE_MAX = BLOB_SIZE_MAX + BLOCK_SIZE_TARGET


class BatchRow(msgspec.Struct, frozen=True, array_like=True):
    """One batch of a segment; ``spill`` where its events stand elsewhere."""

    count: int
    recorded: int
    clock: int | None
    spill: SpillRef | None = None


class BlockRow(msgspec.Struct, frozen=True, array_like=True):
    """One compressed block: ``first`` is the index of its first own event."""

    first: int
    offset: int
    stored_size: int
    raw_size: int
    check: bytes


class SegmentIndex(msgspec.Struct, frozen=True, array_like=True):
    """Everything about a segment's events except their payloads.

    "Own" events are those not in spills, numbered from 0. Columns are little-endian: type codes
    u32 and payload sizes u32 per own event; per attachment its own event u32, its ordinal u32,
    its offset u64 in the body and its size u64. ``erased`` pairs own events with commitments.
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
        # (size, own event, ordinal, bytes): those of one size stand side by side.
        self._attachments = sorted(
            (
                (len(data), index, ordinal, data)
                for index, event in enumerate(events)
                for ordinal, data in enumerate(event.attachments)
            ),
            key=lambda row: row[:3],
        )

    @property
    def size_max(self) -> int:
        """Bytes that the body takes at most, wherever it will stand."""
        index = len(msgspec.msgpack.encode(self._index(b"", 0)))
        # zstd's bound for incompressible input.
        return self._content_size + index + index // 128 + 512

    @property
    def _content_size(self) -> int:
        return (
            _PREFIX.size
            + len(self._salts)
            + sum(len(block.data) for block in self._blocks)
            + sum(row[0] for row in self._attachments)
        )

    def encode(self, key: bytes, offset: int) -> bytes:
        """Return the body for an extent at file offset ``offset``."""
        base = offset + EXTENT_HEADER_SIZE
        index = msgspec.msgpack.encode(self._index(key, base))
        stored = zstandard.compress(index, _COMPRESSION_LEVEL)
        own = check(key, TAG_INDEX, base + self._content_size, stored)
        return b"".join(
            [
                _PREFIX.pack(len(stored), len(index), own),
                self._salts,
                *(block.data for block in self._blocks),
                *(row[3] for row in self._attachments),
                stored,
            ]
        )

    def _index(self, key: bytes, base: int) -> SegmentIndex:
        """Build the index for a body whose first byte stands at file offset ``base``."""
        at = _PREFIX.size + len(self._salts)
        rows: list[BlockRow] = []
        for block in self._blocks:
            own = (
                check(key, TAG_BLOCK, base + at, block.data, size=CHECK_SIZE_BLOCK)
                if key
                else bytes(CHECK_SIZE_BLOCK)
            )
            rows.append(BlockRow(block.first, at, len(block.data), block.raw_size, own))
            at += len(block.data)
        ends = np.cumsum([at, *(row[0] for row in self._attachments)], dtype="<u8")
        types: dict[tuple[str, int], int] = {}
        events = self._events
        codes = [types.setdefault((event.type, event.version), len(types)) for event in events]
        return SegmentIndex(
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
            attachment_events=np.array([row[1] for row in self._attachments], "<u4").tobytes(),
            attachment_ordinals=np.array([row[2] for row in self._attachments], "<u4").tobytes(),
            attachment_offsets=ends[:-1].tobytes(),
            attachment_sizes=np.array([row[0] for row in self._attachments], "<u8").tobytes(),
            chain=self._chain,
            peaks=self._peaks,
        )


class _Block(msgspec.Struct, frozen=True):
    """Compressed payloads, and the own event that they start with."""

    first: int
    data: bytes
    raw_size: int


def _compressed_blocks(events: Sequence[WireEvent], sizes: Sequence[int]) -> Iterator[_Block]:
    """Gather payloads into blocks of about 16 KiB, cut between events, and compress them."""
    compress = zstandard.ZstdCompressor(level=_COMPRESSION_LEVEL).compress
    first = 0
    while first < len(events):
        stop = first
        raw_size = 0
        while stop < len(events) and (raw_size == 0 or raw_size + sizes[stop] <= BLOCK_SIZE_TARGET):
            raw_size += sizes[stop]
            stop += 1
        raw = b"".join(event.payload for event in events[first:stop] if event.salt is not None)
        yield _Block(first, compress(raw), raw_size)
        first = stop


def _decompressed(stored: bytes, raw_size: int) -> bytes:
    """Decompress a frame that must give ``raw_size`` bytes: the frame's own claim is not trusted.

    Raises:
        ZstdError: it is damaged, or of another size.
    """
    if zstandard.get_frame_parameters(stored).content_size != raw_size:
        raise zstandard.ZstdError("it is of another size than the index says")
    return zstandard.ZstdDecompressor().decompress(stored, max_output_size=raw_size)


def _column(data: bytes, dtype: str) -> "np.ndarray[tuple[int], np.dtype[np.unsignedinteger[Any]]]":
    """Return a column of little-endian numbers; one that is cut short is left empty."""
    whole = len(data) % np.dtype(dtype).itemsize == 0
    return np.frombuffer(data if whole else b"", dtype)


class Segment:
    """Reads one segment or spill in place; the index is decoded once, blocks on demand.

    Cost: one read and about 21 us a block; at most 16 decoded blocks are kept.
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
        self._starts = np.concatenate([[0], np.cumsum(self._sizes, dtype=np.int64)]).astype(int)
        self._block_firsts = [row.first for row in index.blocks]
        self._batch_firsts = [0]
        for row in index.batches:
            self._batch_firsts.append(self._batch_firsts[-1] + row.count)
        self._own_firsts = [0]
        for row in index.batches:
            own = 0 if row.spill else row.count
            self._own_firsts.append(self._own_firsts[-1] + own)
        self._causations = dict(index.causations)
        self._erased = dict(index.erased)
        attachment_events = _column(index.attachment_events, "<u4")
        self._check_shape(len(attachment_events))
        ordinals = np.frombuffer(index.attachment_ordinals, "<u4")
        self._attachment_order = np.lexsort((ordinals, attachment_events))
        self._attachment_events = attachment_events[self._attachment_order]
        self._attachment_offsets = np.frombuffer(index.attachment_offsets, "<u8")
        self._attachment_sizes = np.frombuffer(index.attachment_sizes, "<u8")
        self._block = lru_cache(maxsize=16)(self._read_block)

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
        name, version = self.index.types[self._codes[own]]
        causation = self._causations.get(own)
        erased = self._erased.get(own)
        if erased is not None:
            return WireEvent(name, version, causation, None, erased)
        block = bisect.bisect_right(self._block_firsts, own) - 1
        start = int(self._starts[own] - self._starts[self._block_firsts[block]])
        payload = self._block(block)[start : start + int(self._sizes[own])]
        salt = self._read(_PREFIX.size + SALT_SIZE * own, SALT_SIZE)
        held = tuple(self.attachments(own)) if attachments else ()
        return WireEvent(name, version, causation, salt, payload, held)

    def events(self, first: int, stop: int, *, attachments: bool = True) -> Iterator[WireEvent]:
        """Yield own events from ``first`` to before ``stop``, one read of salts for all."""
        salts = self._read(_PREFIX.size + SALT_SIZE * first, SALT_SIZE * (stop - first))
        types = self.index.types
        codes = self._codes[first:stop].tolist()
        sizes = self._sizes[first:stop].tolist()
        with_attachments = attachments and len(self._attachment_events) > 0
        block = bisect.bisect_right(self._block_firsts, first) - 1
        data = self._block(block) if first < stop else b""
        at = int(self._starts[first] - self._starts[self._block_firsts[block]]) if data else 0
        for own in range(first, stop):
            if block + 1 < len(self._block_firsts) and own >= self._block_firsts[block + 1]:
                block += 1
                data, at = self._block(block), 0
            name, version = types[codes[own - first]]
            causation = self._causations.get(own)
            if own in self._erased:
                yield WireEvent(name, version, causation, None, self._erased[own])
                continue
            size = sizes[own - first]
            salt = salts[SALT_SIZE * (own - first) : SALT_SIZE * (own - first + 1)]
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

    def _read_block(self, number: int) -> bytes:
        row = self.index.blocks[number]
        stored = self._read(row.offset, row.stored_size)
        own = check(self._key, TAG_BLOCK, self._base + row.offset, stored, size=CHECK_SIZE_BLOCK)
        if own != row.check:
            raise self._corrupt(f"block {number} does not verify", self._base + row.offset)
        if row.raw_size == 0:
            return b""
        try:
            return _decompressed(stored, row.raw_size)
        except zstandard.ZstdError as error:
            raise self._corrupt(f"block {number} cannot be decoded: {error}") from error

    def _check_shape(self, attachments: int) -> None:
        """Refuse an index whose parts do not fit together, before any is used."""
        index = self.index
        count = self.own_count
        fits = (
            len(self._sizes) == count
            and count == self._own_firsts[-1]
            and all(code < len(index.types) for code in set(self._codes.tolist()))
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

    def _corrupt(self, what: str, offset: int | None = None) -> Corrupt:
        return Corrupt(
            f"A segment is damaged: {what}",
            offset=self.offset if offset is None else offset,
            remedy="Run 'cerata verify' to see what is affected.",
        )
