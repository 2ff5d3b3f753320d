"""Reading segments: random access to one event, by its block.

Owns `Segment`, over the bodies of SEGMENT and SPILL extents. A segment covers a range of seqs; a
spill is a large batch that is written before its seqs are known, and that a segment references
instead of copying. Leaves out writing (`segment_writer`); the layout is in `segment_index`.
"""

import bisect
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, pairwise, repeat
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import zstandard

from ..codec import WireEvent
from ..disk.storage import StorageFile
from ..draft_validation import DTYPE_SIZES
from ..errors import Corrupt, StorageFailed
from ..events import UNDECODABLE, once
from ..format.checksums import CHECK_SIZE_BLOCK, TAG_BLOCK, TAG_INDEX, check
from ..format.extent import EXTENT_HEADER_SIZE
from ..integrity import SALT_SIZE, SEED_SIZE, Tree, derived_salts, hash_bytes
from ..late import late
from ..limits import BLOB_SIZE_MAX, BLOCK_SIZE_TARGET, SEGMENT_INDEX_SIZE_MAX
from ..salted_hashes import CHECK_SIZE, with_hash
from .segment_index import (
    COLUMN_ALIGNMENT,
    SEGMENT_PREFIX,
    BatchRow,
    ColumnKey,
    ColumnRow,
    SegmentIndex,
    codecs,
    decode_index,
    integers,
)

if TYPE_CHECKING:
    import numpy as np
else:
    np = late("numpy")


_BLOCKS_KEPT_MAX = 16
_INDEX_COPIES = 4
"""Bytes in memory for each byte of an index, whose columns are decoded and summed up."""
_ROW_SIZE = 200
"""Bytes in memory of a row of blocks or batches."""
_PLACE_SIZE = 200
"""Bytes in memory of the place of an attachment."""
_EVENT_SIZE = 40
"""Bytes in memory of the event of a vector."""
_BLOCK_RAW_SIZE_MAX = BLOB_SIZE_MAX + BLOCK_SIZE_TARGET
_AHEAD_SIZE = 1 << 20

I64: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"
U8: TypeAlias = "np.ndarray[Any, np.dtype[np.uint8]]"


def forget_oldest(kept: "dict[Any, Any]", count_max: int) -> None:
    """Drop the oldest entries of a cache, so that ``count_max`` remain."""
    if len(kept) > count_max:
        for oldest in list(kept)[:-count_max]:
            # Another thread may have dropped it already.
            kept.pop(oldest, None)


def _salt(salts: bytes, index: int) -> bytes:
    return salts[SALT_SIZE * index : SALT_SIZE * (index + 1)]


def _decompressed(stored: bytes, raw_size: int) -> bytes:
    """Decompress a frame of ``raw_size`` bytes; the size in the frame is not trusted.

    Raises:
        ZstdError: the frame is damaged, or of another size.
    """
    if zstandard.get_frame_parameters(stored).content_size != raw_size:
        raise zstandard.ZstdError("its size differs from the index")
    return codecs.decompressor.decompress(stored, max_output_size=raw_size)


def _column(data: bytes, dtype: str) -> "np.ndarray[tuple[int], np.dtype[np.unsignedinteger[Any]]]":
    """Return a column of little-endian numbers; empty if the data is truncated."""
    whole = len(data) % np.dtype(dtype).itemsize == 0
    return np.frombuffer(data if whole else b"", dtype)


class StoredEvents(NamedTuple):
    """The stored payloads of consecutive events, and the salts of each of their blocks."""

    payloads: list[bytes]
    salts: list[tuple[int, bytes]]
    """The first event of a block, and the salts of all its events."""

    def salt(self, own_event: int) -> bytes:
        """Return the salt of an event."""
        block = bisect.bisect_right(self.salts, own_event, key=itemgetter(0)) - 1
        first, salts = self.salts[block]
        return _salt(salts, own_event - first)


class Segment:
    """Reads a segment or spill in place; the index is decoded once, blocks on demand.

    "Own" events are those not in spills, numbered from 0: ``own_event`` is such a number. Cost: two
    reads and about 21 us per block; at most 16 decoded blocks are cached.
    """

    def __init__(
        self,
        file: StorageFile,
        key: bytes,
        offset: int,
        length: int,
        grown: Callable[[int], None] | None = None,
    ) -> None:
        """Read the index; ``grown`` is called with the bytes by which `size_bytes` grows later."""
        self._file = file
        self._key = key
        self.offset = offset
        self._base = offset + EXTENT_HEADER_SIZE
        self._length = length
        self._grown = grown
        self.index = index = self._read_index()
        self._codes = integers(index.type_codes, "I")
        self._sizes = integers(index.payload_sizes, "I")
        self.own_count = len(self._codes)
        self._starts = array("q", accumulate(self._sizes, initial=0))
        self._block_firsts = [row.first for row in index.blocks]
        self._block_stops = [*self._block_firsts[1:], self.own_count]
        batches = index.batches
        self._batch_firsts = list(accumulate((row.count for row in batches), initial=0))
        self.count = self._batch_firsts[-1]
        """Number of events, including those in spills."""
        self.has_attachments = len(index.attachment_events) > 0
        """True if any event has an attachment."""
        self._own_firsts = list(
            accumulate((0 if row.spill else row.count for row in batches), initial=0)
        )
        self._causations = dict(index.causations)
        self._erased = dict(index.erased)
        self.has_erased = bool(self._erased)
        """True if any event was erased."""
        self._cut_firsts = [row.first for row in index.cuts]
        self._check_shape()
        self.size_bytes = _INDEX_COPIES * self._index_size + _ROW_SIZE * (
            len(index.blocks) + len(index.batches)
        )
        self._salt_places = self._places_of_salts()
        self._blocks: dict[int, tuple[bytes, bytes]] = {}
        # The start of the last read for attachments, and its bytes.
        self._ahead: tuple[int, bytes] = (0, b"")

    def kinds(self) -> Counter[tuple[str, int]]:
        """Return the number of events of each type and version, without those in spills."""
        counts = Counter(self._codes)
        return Counter({kind: counts[code] for code, kind in enumerate(self.index.types)})

    @property
    def tree(self) -> Tree:
        """The tree's peaks after the last event; the caller knows the size."""
        return Tree(0, tuple(self.index.peaks))

    def stored_size(self, own_events: I64) -> int:
        """Return about how many bytes the payloads and attachments of events take."""
        raw = sum(row.raw_size for row in self.index.blocks)
        stored = sum(row.stored_size for row in self.index.blocks)
        chosen: frozenset[int] = frozenset(own_events.tolist())
        payloads = sum(self._sizes[event] for event in chosen)
        attached = zip(
            integers(self.index.attachment_events, "I"),
            integers(self.index.attachment_sizes, "Q"),
            strict=True,
        )
        sizes = sum(size for event, size in attached if event in chosen)
        return payloads * stored // max(raw, 1) + sizes

    def batch_of(self, event: int) -> int:
        """Return the number of the batch that holds event ``event`` (from 0) of the segment."""
        return bisect.bisect_right(self._batch_firsts, event) - 1

    def locate(self, events: I64) -> tuple[I64, I64]:
        """Return the events' batches, and their ``own_event`` numbers, undefined in spills."""
        firsts = np.array(self._batch_firsts)
        own_firsts = np.array(self._own_firsts)
        batches = firsts.searchsorted(events, "right") - 1
        return batches, own_firsts[batches] + events - firsts[batches]

    def numbers_of(self, own_events: I64) -> I64:
        """Return the segment's numbers of events that are numbered as ``own_event``."""
        own_firsts = np.array(self._own_firsts)
        # A spilled batch has no such event: of two batches with one first, the later has it.
        batches = own_firsts.searchsorted(own_events, "right") - 1
        numbers: I64 = own_events - own_firsts[batches] + np.array(self._batch_firsts)[batches]
        return numbers

    def batch_first(self, batch: int) -> int:
        """Return the segment's number of the batch's first event."""
        return self._batch_firsts[batch]

    def own_first(self, batch: int) -> int:
        """Return the ``own_event`` of the batch's first event; undefined for a spilled batch."""
        return self._own_firsts[batch]

    def types(self, first: int, stop: int) -> list[str]:
        """Return the types of events ``first`` to before ``stop``, numbered as ``own_event``."""
        return [self.index.types[code][0] for code in self._codes[first:stop]]

    def places(self, events: Sequence[int], start: int) -> list[tuple[BatchRow, int, int]]:
        """Return the batch of each of some events, its first event, and the event's number.

        Events are numbered from ``start``, which is the segment's first, but the first of a batch
        from 0; the number is the ``own_event``, or that in the spill that holds the batch.
        """
        places: list[tuple[BatchRow, int, int]] = []
        for seq in events:
            event = seq - start
            number = bisect.bisect_right(self._batch_firsts, event) - 1
            row, first = self.index.batches[number], self._batch_firsts[number]
            own_first = 0 if row.spill is not None else self._own_firsts[number]
            places.append((row, first, own_first + event - first))
        return places

    def events_at(self, own_events: Sequence[int]) -> list[WireEvent]:
        """Return some ascending events without their attachments."""
        events: list[WireEvent] = []
        first, stop = 0, 0
        data, salts = b"", b""
        for own_event in own_events:
            name, version = self.index.types[self._codes[own_event]]
            causation = self._causations.get(own_event)
            erased = self._erased.get(own_event)
            if erased is not None:
                events.append(WireEvent(name, version, causation, None, erased))
                continue
            if own_event >= stop:
                block = bisect.bisect_right(self._block_firsts, own_event) - 1
                first, stop = self._block_firsts[block], self._block_stops[block]
                data, salts = self._block(block)
            start = self._starts[own_event] - self._starts[first]
            payload = data[start : start + self._sizes[own_event]]
            if self._cut_firsts:
                payload = self._whole(payload, own_event, self._hashes(own_event, own_event + 1))
            at = SALT_SIZE * (own_event - first)
            events.append(WireEvent(name, version, causation, salts[at : at + SALT_SIZE], payload))
        return events

    def events(self, first: int, stop: int, *, attachments: bool = True) -> Iterator[WireEvent]:
        """Yield events ``first`` to before ``stop``, numbered as ``own_event``."""
        if first >= stop:
            return
        types = self.index.types
        codes = self._codes[first:stop]
        sizes = self._sizes[first:stop]
        with_attachments = attachments and self.has_attachments
        block = bisect.bisect_right(self._block_firsts, first) - 1
        block_first = self._block_firsts[block]
        data, salts = self._block(block)
        at = self._starts[first] - self._starts[block_first]
        is_cut = bool(self._cut_firsts)
        hashes: dict[int, bytes | None] = {}
        if is_cut:
            hashes = self._hashes(first, min(stop, self._block_stops[block]))
        for own_event in range(first, stop):
            if block + 1 < len(self._block_firsts) and own_event >= self._block_firsts[block + 1]:
                block += 1
                block_first = own_event
                data, salts = self._block(block)
                at = 0
                if is_cut:
                    hashes = self._hashes(own_event, min(stop, self._block_stops[block]))
            name, version = types[codes[own_event - first]]
            causation = self._causations.get(own_event)
            if own_event in self._erased:
                yield WireEvent(name, version, causation, None, self._erased[own_event])
                continue
            size = sizes[own_event - first]
            salt = _salt(salts, own_event - block_first)
            attached = tuple(self.attachments(own_event)) if with_attachments else ()
            payload = data[at : at + size]
            if is_cut:
                payload = self._whole(payload, own_event, hashes)
            yield WireEvent(name, version, causation, salt, payload, attached)
            at += size

    def stored(self, first: int, stop: int) -> "StoredEvents":
        """Return the stored payloads and salts of events ``first`` to before ``stop``.

        The payload of an erased event is empty; that of an event with a vector lacks its hash.
        """
        payloads: list[bytes] = []
        salts: list[tuple[int, bytes]] = []
        block = bisect.bisect_right(self._block_firsts, first) - 1
        at = first
        while at < stop:
            data, block_salts = self._block(block)
            block_first = self._block_firsts[block]
            block_stop = self._block_stops[block]
            base = self._starts[block_first]
            bounds = [place - base for place in self._starts[at : min(stop, block_stop) + 1]]
            payloads += [data[low:high] for low, high in pairwise(bounds)]
            salts.append((block_first, block_salts))
            at = block_stop
            block += 1
        return StoredEvents(payloads, salts)

    def kind_of(self, own_event: int) -> tuple[str, int, int | None]:
        """Return the type, version and stored causation of an event."""
        name, version = self.index.types[self._codes[own_event]]
        return name, version, self._causations.get(own_event)

    def erased(self, own_event: int) -> bytes | None:
        """Return the commitment of an erased event, or None."""
        return self._erased.get(own_event)

    @property
    def is_cut(self) -> bool:
        """True if payloads lack the hashes of their vectors."""
        return bool(self._cut_firsts)

    def is_only(self, name: str, version: int) -> bool:
        """Return whether the events of a type all have this version."""
        return all(kind != name or number == version for kind, number in self.index.types)

    def _whole(self, stored: bytes, own_event: int, hashes: "dict[int, bytes | None]") -> bytes:
        """Return a payload with the hash that it is stored without."""
        cut = bisect.bisect_right(self._cut_firsts, own_event) - 1
        if cut < 0:
            return stored
        after = self.index.cuts[cut].after
        if after is None:
            return stored
        return with_hash(stored, after, hashes.get(own_event))

    def _hashes(self, first: int, stop: int) -> "dict[int, bytes | None]":
        """Return the hashes of the vectors of events ``first`` to before ``stop``.

        None for a damaged vector, nothing for a vector that cannot be found: the fields of its
        event can still be read. Cost: a read for each column, and a hash of each vector.
        """
        hashes: dict[int, bytes | None] = {}
        checks = self.index.attachment_checks
        try:
            columns = self._column_events
        except Corrupt:
            return hashes
        for column, events in columns:
            low = bisect.bisect_left(events, first)
            high = bisect.bisect_left(events, stop, low)
            if low == high:
                continue
            at = CHECK_SIZE * (column.first + low)
            for event, row in zip(events[low:high], self._rows(column, low, high), strict=True):
                hashed = None if row is None else hash_bytes(row)
                is_whole = hashed is not None and hashed.startswith(checks[at : at + CHECK_SIZE])
                hashes[event] = hashed if is_whole else None
                at += CHECK_SIZE
        return hashes

    def _rows(self, column: ColumnRow, first: int, stop: int) -> Iterator[memoryview | None]:
        """Yield rows of a column, None for a row that cannot be read."""
        size = column.row_size
        try:
            data = memoryview(self._read(column.offset + first * size, (stop - first) * size))
        except (Corrupt, StorageFailed):
            if stop - first == 1:
                yield None
                return
            for row in range(first, stop):
                yield from self._rows(column, row, row + 1)
            return
        for at in range(0, len(data), size):
            yield data[at : at + size]

    @once
    def _column_events(self) -> list[tuple[ColumnRow, list[int]]]:
        """The columns, and the events of the rows of each, ascending."""
        events = np.frombuffer(self.index.attachment_events, "<u4").tolist()
        self._grow(_EVENT_SIZE * len(events))
        return [(row, events[row.first : row.first + row.count]) for row in self.columns]

    def attachments(self, own_event: int) -> list[bytes]:
        """Return the attachments of event ``own_event``, in order."""
        return [self._read_ahead(at, size) for at, size in self._places_of(own_event)]

    def attachments_of(self, own_event: int, exact_size: int) -> list[bytes]:
        """Return only the attachments of a size: reading a vector skips the blob beside it."""
        places = self._places_of(own_event)
        return [self._read_ahead(at, size) for at, size in places if size == exact_size]

    def _places_of(self, own_event: int) -> list[tuple[int, int]]:
        events, places = self._attached
        low = bisect.bisect_left(events, own_event)
        high = bisect.bisect_right(events, own_event, low)
        return places[low:high]

    @once
    def _attached(self) -> tuple[list[int], list[tuple[int, int]]]:
        """The events that have attachments, ascending, and the offset and size of each attachment.

        Built on demand: reading the texts of frames with vectors needs no attachments.
        """
        index = self.index
        events = _column(self.index.attachment_events, "<u4")
        _ = self.columns
        order = np.lexsort((np.frombuffer(index.attachment_ordinals, "<u4"), events))
        offsets = np.frombuffer(index.attachment_offsets, "<u8")[order].tolist()
        sizes = np.frombuffer(index.attachment_sizes, "<u8")[order].tolist()
        self._grow(_PLACE_SIZE * len(offsets))
        return events[order].tolist(), list(zip(offsets, sizes, strict=True))

    def _read_ahead(self, at: int, size: int) -> bytes:
        """Read an attachment; a small read includes the next attachments, mostly read next."""
        start, data = self._ahead
        if not start <= at <= at + size <= start + len(data):
            if size > _AHEAD_SIZE:
                return self._read(at, size)
            start = at
            held = len(data)
            data = self._read(at, min(_AHEAD_SIZE, self._length - at))
            self._ahead = start, data
            self._grow(len(data) - held)
        return data[at - start : at - start + size]

    def embeddings(self, key: ColumnKey, own_events: I64) -> U8:
        """Return the rows of a column that belong to events, ascending; not verified.

        Shape: (len(own_events), bytes per row). Cost: one read if half of a stretch or more is
        requested, else one per row.
        """
        column, places = self._rows_of(key, own_events)
        size = column.row_size
        first = int(places[0])
        last = int(places[-1]) + 1
        if 2 * len(places) >= last - first:
            data = self._read(column.offset + first * size, (last - first) * size)
            stretch = np.frombuffer(data, np.uint8).reshape(-1, size)
            return stretch if len(places) == len(stretch) else stretch[places - first]
        parts = [self._read(column.offset + row * size, size) for row in places.tolist()]
        return np.frombuffer(b"".join(parts), np.uint8).reshape(-1, size)

    def embedding_column(self, key: ColumnKey, own_events: I64) -> tuple[I64, int]:
        """Return all events of the column with the rows of some events, and its file offset.

        Raises:
            Corrupt: one of the events has no row in it.
        """
        column, _ = self._rows_of(key, own_events)
        rows = slice(column.first, column.first + column.count)
        events = np.frombuffer(self.index.attachment_events, "<u4")[rows].astype(np.int64)
        return events, self._base + column.offset

    def _rows_of(self, key: ColumnKey, own_events: I64) -> tuple[ColumnRow, I64]:
        """Return the column with a key, and the rows of events in it. Raises `Corrupt`."""
        column = next((row for row in self.columns if row.key == key), None)
        if column is None:
            raise self._corrupt(f"it has no vectors of {key[0]!r}")
        rows = slice(column.first, column.first + column.count)
        events = np.frombuffer(self.index.attachment_events, "<u4")[rows].astype(np.int64)
        places = events.searchsorted(own_events)
        if int(places.max()) >= len(events) or not bool((events[places] == own_events).all()):
            raise self._corrupt(f"an event has no vector of {key[0]!r}")
        return column, places

    def _read(self, at: int, size: int) -> bytes:
        """Read ``size`` bytes at ``at`` of the body. Raises `Corrupt` if the file is shorter."""
        if at < 0 or size < 0 or at + size > self._length:
            raise self._corrupt("a part lies outside the segment")
        data = self._file.read_at(self._base + at, size)
        if len(data) != size:
            raise self._corrupt("the file ends inside the segment")
        return data

    def _read_index(self) -> SegmentIndex:
        stored_size, raw_size, digest = SEGMENT_PREFIX.unpack(self._read(0, SEGMENT_PREFIX.size))
        at = self._length - stored_size
        stored = self._read(at, stored_size)
        if check(self._key, TAG_INDEX, self._base + at, stored) != digest:
            raise self._corrupt("its index does not verify")
        if raw_size > SEGMENT_INDEX_SIZE_MAX:
            raise self._corrupt("its index is over the limit")
        self._index_size = raw_size
        try:
            return decode_index(_decompressed(stored, raw_size))
        except (zstandard.ZstdError, ValueError, *UNDECODABLE) as error:
            raise self._corrupt(f"its index cannot be decoded: {error}") from error

    def _block(self, number: int) -> tuple[bytes, bytes]:
        """Return a block's payloads and salts; the blocks read last are cached."""
        block = self._blocks.get(number)
        if block is None:
            block = self._blocks[number] = self._read_block(number)
            self._grow(len(block[0]) + len(block[1]))
            # A block of one large text is not worth the memory of a whole segment.
            self._drop_blocks(_BLOCKS_KEPT_MAX if len(block[0]) <= _AHEAD_SIZE else 1)
        return block

    def _drop_blocks(self, count_max: int) -> None:
        """Drop the oldest blocks; another thread may have dropped one already."""
        if len(self._blocks) <= count_max:
            return
        for number in list(self._blocks)[:-count_max]:
            block = self._blocks.pop(number, None)
            if block is not None:
                self._grow(-len(block[0]) - len(block[1]))

    def _grow(self, size: int) -> None:
        self.size_bytes += size
        if self._grown is not None:
            self._grown(size)

    def _read_block(self, number: int) -> tuple[bytes, bytes]:
        """Return a block's payloads and its events' salts, verified together."""
        row = self.index.blocks[number]
        stop = self._block_stops[number]
        place = self._base + row.offset
        stored = self._read(row.offset, row.stored_size)
        first_place, stop_place = self._salt_places[row.first], self._salt_places[stop]
        salts = self._read(
            SEGMENT_PREFIX.size + SALT_SIZE * first_place, SALT_SIZE * (stop_place - first_place)
        )
        if check(self._key, TAG_BLOCK, place, stored, salts, size=CHECK_SIZE_BLOCK) != row.check:
            raise self._corrupt(f"block {number} does not verify", place)
        if stop_place - first_place < stop - row.first:
            salts = self._with_derived(salts, row.first, stop)
        if row.raw_size == 0:
            return b"", salts
        try:
            return _decompressed(stored, row.raw_size), salts
        except zstandard.ZstdError as error:
            raise self._corrupt(f"block {number} cannot be decoded: {error}") from error

    def _places_of_salts(self) -> "array[int]":
        """Return for each own event the count of salts stored before its salt, then the total."""
        places = array("q", [0])
        for row in self.index.batches:
            if not row.spill:
                place = places[-1]
                if row.seed is None:
                    places.extend(range(place + 1, place + row.count + 1))
                else:
                    places.extend(repeat(place, row.count))
        return places

    def _with_derived(self, stored: bytes, first: int, stop: int) -> bytes:
        """Return the salts of events ``first`` to before ``stop``, given those stored."""
        parts: list[bytes] = []
        at = 0
        for number, row in enumerate(self.index.batches):
            batch_first = self._own_firsts[number]
            low = max(first, batch_first)
            count = min(stop, self._own_firsts[number + 1]) - low
            if count <= 0:
                continue
            if row.seed is None:
                parts.append(stored[at : at + SALT_SIZE * count])
                at += SALT_SIZE * count
            else:
                parts.append(derived_salts(row.seed, low - batch_first, count))
        return b"".join(parts)

    def _check_shape(self) -> None:
        """Refuse an index whose parts are inconsistent, before any part is used."""
        index = self.index
        attachments = len(integers(index.attachment_events, "I"))
        count = self.own_count
        fits = (
            len(self._sizes) == count
            and count == self._own_firsts[-1]
            and (count == 0 or max(self._codes) < len(index.types))
            and (count == 0) == (not index.blocks)
            and (not index.blocks or index.blocks[0].first == 0)
            and all(a.first < b.first for a, b in pairwise(index.blocks))
            and all(row.first < count for row in index.blocks)
            and all(0 <= row.raw_size <= _BLOCK_RAW_SIZE_MAX for row in index.blocks)
            and all(row.count > 0 for row in index.batches)
            and all(row.seed is None or len(row.seed) == SEED_SIZE for row in index.batches)
            and len(index.attachment_ordinals) == 4 * attachments
            and len(index.attachment_offsets) == 8 * attachments
            and len(index.attachment_sizes) == 8 * attachments
            and len(index.attachment_checks) == CHECK_SIZE * attachments
            and all(a.first < b.first for a, b in pairwise(index.cuts))
        )
        if not fits:
            raise self._corrupt("its index contradicts itself")
        for row, following in pairwise([*self._block_firsts, count]):
            number = bisect.bisect_left(self._block_firsts, row)
            if self._starts[following] - self._starts[row] != index.blocks[number].raw_size:
                raise self._corrupt("its blocks do not fit its events")
        if attachments and max(integers(index.attachment_sizes, "Q")) > BLOB_SIZE_MAX:
            raise self._corrupt("an attachment is over the limit")

    @once
    def columns(self) -> list[ColumnRow]:
        """The columns; each must be a contiguous run of its attachments in seq order."""
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
                owners = events[rows]
                fits = (
                    bool((sizes[rows] == column.row_size).all())
                    and bool((offsets[rows] == places + np.uint64(column.offset)).all())
                    and bool((owners[1:] > owners[:-1]).all())
                )
            if not fits:
                raise self._corrupt("a column does not fit")
        return self.index.columns

    def _corrupt(self, fault: str, offset: int | None = None) -> Corrupt:
        return Corrupt(
            f"A segment is damaged: {fault}",
            offset=self.offset if offset is None else offset,
            remedy="Run 'cerata file verify' to see what is affected.",
        )
