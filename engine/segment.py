"""Reading segments: random access to one event, by its block.

Owns `Segment`, over the bodies of SEGMENT and SPILL extents. A segment covers a range of seqs; a
spill is one large batch written before its seqs are known, and a segment then names it instead of
copying it. Leaves out writing them (`segment_draft`); the layout is in `segment_index`.
"""

import bisect
from collections import Counter
from collections.abc import Iterator
from itertools import accumulate, pairwise
from typing import Any, TypeAlias

import msgspec
import numpy as np
import zstandard

from .codec import WireEvent
from .draft_checks import DTYPE_SIZES
from .errors import Corrupt
from .events import UNDECODABLE, once
from .format.checks import CHECK_SIZE_BLOCK, TAG_BLOCK, TAG_INDEX, check
from .format.extent import EXTENT_HEADER_SIZE
from .integrity import SALT_SIZE, Tree
from .limits import BLOB_SIZE_MAX, BLOCK_SIZE_TARGET, SEGMENT_INDEX_SIZE_MAX
from .segment_index import (
    COLUMN_ALIGNMENT,
    SEGMENT_PREFIX,
    ColumnKey,
    ColumnRow,
    SegmentIndex,
    codecs,
)
from .storage import StorageFile

_BLOCKS_KEPT_MAX = 16
_BLOCK_RAW_SIZE_MAX = BLOB_SIZE_MAX + BLOCK_SIZE_TARGET
_AHEAD_SIZE = 1 << 20
_INDEX = msgspec.msgpack.Decoder(SegmentIndex)

I64: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"
U8: TypeAlias = "np.ndarray[Any, np.dtype[np.uint8]]"


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
    return codecs.decompressor.decompress(stored, max_output_size=raw_size)


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
        self._check_shape()
        self._blocks: dict[int, tuple[bytes, bytes]] = {}
        # Where bytes start that were read last for attachments, and these.
        self._ahead: tuple[int, bytes] = (0, b"")

    @property
    def count(self) -> int:
        """Number of events, those in spills included."""
        return self._batch_firsts[-1]

    def kinds(self) -> Counter[tuple[str, int]]:
        """Return how many events of each type and version there are, without those in spills."""
        counts: list[int] = np.bincount(self._codes, minlength=len(self.index.types)).tolist()
        return Counter(dict(zip(self.index.types, counts, strict=True)))

    @property
    def tree(self) -> Tree:
        """The tree's peaks after the last event; its size is the caller's to know."""
        return Tree(0, tuple(self.index.peaks))

    def batch_of(self, event: int) -> int:
        """Return the number of the batch that holds event ``event`` (from 0) of the segment."""
        return bisect.bisect_right(self._batch_firsts, event) - 1

    def locate(self, events: I64) -> tuple[I64, I64]:
        """Return the batches of the segment's events, and their own numbers, if not in a spill."""
        firsts, own = np.array(self._batch_firsts), np.array(self._own_firsts)
        batches = firsts.searchsorted(events, "right") - 1
        return batches, own[batches] + events - firsts[batches]

    def batch_first(self, batch: int) -> int:
        """Return the segment's number of the batch's first event."""
        return self._batch_firsts[batch]

    def own_first(self, batch: int) -> int:
        """Return the own number of the batch's first event; meaningless for a spilled batch."""
        return self._own_firsts[batch]

    def types(self, first: int, stop: int) -> list[str]:
        """Return the types of own events from ``first`` to before ``stop``."""
        return [self.index.types[int(code)][0] for code in self._codes[first:stop]]

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
        with_attachments = attachments and self.has_attachments
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

    @property
    def has_attachments(self) -> bool:
        """Whether any event has one."""
        return len(self.index.attachment_events) > 0

    def attachments(self, own: int) -> list[bytes]:
        """Return the attachments of own event ``own`` in their order."""
        return [self._read_ahead(at, size) for at, size in self._places_of(own)]

    def attachments_of(self, own: int, wanted: int) -> list[bytes]:
        """Return those that have ``wanted`` bytes: a vector is read without the blob beside it."""
        places = self._places_of(own)
        return [self._read_ahead(at, size) for at, size in places if size == wanted]

    def _places_of(self, own: int) -> list[tuple[int, int]]:
        """Return where the attachments of an own event stand, and their sizes."""
        events, places = self._attached
        low = bisect.bisect_left(events, own)
        high = bisect.bisect_right(events, own, low)
        return places[low:high]

    @once
    def _attached(self) -> tuple[list[int], list[tuple[int, int]]]:
        """The own events that have attachments, ascending, and where each of these stands.

        Who reads a text of a batch whose frames have vectors needs none of them.
        """
        index, events = self.index, _column(self.index.attachment_events, "<u4")
        _ = self.columns
        order = np.lexsort((np.frombuffer(index.attachment_ordinals, "<u4"), events))
        offsets = np.frombuffer(index.attachment_offsets, "<u8")[order].tolist()
        sizes = np.frombuffer(index.attachment_sizes, "<u8")[order].tolist()
        return events[order].tolist(), list(zip(offsets, sizes, strict=True))

    def _read_ahead(self, at: int, size: int) -> bytes:
        """Read an attachment; with small ones those after it, mostly asked for next."""
        start, data = self._ahead
        if not start <= at <= at + size <= start + len(data):
            if size > _AHEAD_SIZE:
                return self._read(at, size)
            start, data = at, self._read(at, min(_AHEAD_SIZE, self._length - at))
            self._ahead = start, data
        return data[at - start : at - start + size]

    def embeddings(self, key: ColumnKey, own: I64) -> U8:
        """Return rows of a column, those of own events ``own``, ascending; not verified.

        Shape: (len(own), bytes a row). Cost: one read where half of a stretch is asked for or more,
        else one a row.
        """
        column, places = self._rows_of(key, own)
        size, first, last = column.row_size, int(places[0]), int(places[-1]) + 1
        if 2 * len(places) >= last - first:
            data = self._read(column.offset + first * size, (last - first) * size)
            stretch = np.frombuffer(data, np.uint8).reshape(-1, size)
            return stretch if len(places) == len(stretch) else stretch[places - first]
        held = [self._read(column.offset + row * size, size) for row in places.tolist()]
        return np.frombuffer(b"".join(held), np.uint8).reshape(-1, size)

    def embedding_offsets(self, key: ColumnKey, own: I64) -> I64:
        """Return the file offsets of rows of a column, those of own events ``own``, ascending."""
        column, places = self._rows_of(key, own)
        return self._base + column.offset + places * column.row_size

    def _rows_of(self, key: ColumnKey, own: I64) -> tuple[ColumnRow, I64]:
        """Return the column with a key, and its rows that own events have. Raises `Corrupt`."""
        column = next((one for one in self.columns if one.key == key), None)
        if column is None:
            raise self._corrupt(f"it has no vectors of {key[0]!r}")
        rows = slice(column.first, column.first + column.count)
        events = np.frombuffer(self.index.attachment_events, "<u4")[rows].astype(np.int64)
        places = events.searchsorted(own)
        if int(places.max()) >= len(events) or not bool((events[places] == own).all()):
            raise self._corrupt(f"an event has no vector of {key[0]!r}")
        return column, places

    def _read(self, at: int, size: int) -> bytes:
        """Read ``size`` bytes at ``at`` of the body; damage to the file's length is Corrupt."""
        if at < 0 or size < 0 or at + size > self._length:
            raise self._corrupt("a part lies outside the segment")
        data = self._file.read_at(self._base + at, size)
        if len(data) != size:
            raise self._corrupt("the file ends inside the segment")
        return data

    def _read_index(self) -> SegmentIndex:
        stored_size, raw_size, own = SEGMENT_PREFIX.unpack(self._read(0, SEGMENT_PREFIX.size))
        at = self._length - stored_size
        stored = self._read(at, stored_size)
        if check(self._key, TAG_INDEX, self._base + at, stored) != own:
            raise self._corrupt("its index does not verify")
        if raw_size > SEGMENT_INDEX_SIZE_MAX:
            raise self._corrupt("its index is over the limit")
        try:
            return _INDEX.decode(_decompressed(stored, raw_size))
        except (zstandard.ZstdError, *UNDECODABLE) as error:
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
        salts = self._read(
            SEGMENT_PREFIX.size + SALT_SIZE * row.first, SALT_SIZE * (stop - row.first)
        )
        if check(self._key, TAG_BLOCK, place, stored, salts, size=CHECK_SIZE_BLOCK) != row.check:
            raise self._corrupt(f"block {number} does not verify", place)
        if row.raw_size == 0:
            return b"", salts
        try:
            return _decompressed(stored, row.raw_size), salts
        except zstandard.ZstdError as error:
            raise self._corrupt(f"block {number} cannot be decoded: {error}") from error

    def _check_shape(self) -> None:
        """Refuse an index whose parts do not fit together, before any is used."""
        index = self.index
        attachments = len(_column(index.attachment_events, "<u4"))
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

    @once
    def columns(self) -> list[ColumnRow]:
        """The columns; one that is not its attachments, in seq order, without a gap, is refused."""
        events = _column(self.index.attachment_events, "<u4")
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
        return self.index.columns

    def _corrupt(self, what: str, offset: int | None = None) -> Corrupt:
        return Corrupt(
            f"A segment is damaged: {what}",
            offset=self.offset if offset is None else offset,
            remedy="Run 'cerata verify' to see what is affected.",
        )
