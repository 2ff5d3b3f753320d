"""Reading events: from the sealed segments, then from the ring's tail.

Owns `Snapshot`, an immutable state of the log, and the reads over it. A snapshot holds events by
seq, never by ring offset, and segments are never overwritten, so a snapshot stays valid for ever
while other processes write.
"""

from bisect import bisect_right
from collections import Counter, OrderedDict
from collections.abc import Iterator, Sequence
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, cast

import msgspec

from ..codec import Batch, SpillRef, WireEvent
from ..disk.storage import StorageFile
from ..draft_validation import DTYPE_SIZES
from ..errors import Corrupt, NotFound
from ..events import Event, EventHeader, Held, attachments_of_size
from ..format.extent import ExtentHeader, ExtentKind, extent_is_whole
from ..format.page import HeaderPage
from ..format.toc import Ref, Toc
from ..integrity import Tree, chain_start, chain_through, commitment_of, hash_bytes, leaf_of
from ..late import late
from ..log_file.file import LogFile
from ..log_file.recovery import rebuild_toc
from .columnar_events import BatchSpan, ColumnarEvents, SealedPiece
from .segment_index import BatchRow, ColumnKey
from .segment_reader import I64, U8, Segment
from .segment_writer import columns_of

if TYPE_CHECKING:
    import numpy as np
else:
    np = late("numpy")


_first_seq = attrgetter("first_seq")


class Snapshot(msgspec.Struct, frozen=True):
    """The log at one moment: the sealed part by its page, the tail by its batches.

    ``tail`` may grow beyond ``tail_count``; its earlier entries never change. ``reader`` reads the
    file that the page is of, also after compaction has put another file in its place.
    """

    reader: "Reader"
    page: HeaderPage
    tail: list[Batch]
    tail_count: int
    head_seq: int
    recorded: int

    def tail_from(self, seq: int) -> Iterator[Batch]:
        """Return the tail's batches from the batch that holds ``seq``, or the first after it."""
        start = max(0, bisect_right(self.tail, seq, 0, self.tail_count, key=_first_seq) - 1)
        if start < self.tail_count and self.tail[start].last_seq < seq:
            start += 1
        return map(self.tail.__getitem__, range(start, self.tail_count))


class Reader:
    """Reads events, hashes and attachments of snapshots of one file."""

    def __init__(self, log_file: LogFile) -> None:
        self._log_file = log_file
        self._tocs: OrderedDict[int, Toc] = OrderedDict()
        self.rebuilt = False

    def toc(self, page: HeaderPage) -> Toc:
        """Return the TOC that a page names, reading it at most once.

        A damaged TOC is rebuilt from the segments, which sets ``rebuilt``.
        """
        toc = self._tocs.get(page.toc_offset)
        if toc is None:
            try:
                toc = self._log_file.read_toc(page)
            except Corrupt:
                toc = rebuild_toc(self._log_file, page)
                self.rebuilt = True
            self.remember_toc(page, toc)
        return toc

    def remember_toc(self, page: HeaderPage, toc: Toc) -> None:
        """Cache a TOC that was just written or rebuilt."""
        self._tocs[page.toc_offset] = toc
        while len(self._tocs) > 8:
            self._tocs.popitem(last=False)

    def events(self, snapshot: Snapshot, first: int, last: int) -> Iterator[Event]:
        """Yield events ``first`` to ``last`` in seq order; both within the snapshot.

        Cost: one read and one decompression per 16 KiB of payloads.
        """
        sealed = snapshot.page.sealed_seq
        if first <= sealed:
            toc = self.toc(snapshot.page)
            at = first
            while at <= min(last, sealed):
                ref = self._segment_ref(toc, at)
                yield from self._segment_events(ref, at, min(last, ref.last_seq))
                at = ref.last_seq + 1
        for batch in snapshot.tail_from(first):
            if batch.first_seq > last:
                return
            yield from self._batch_events(
                batch, max(first, batch.first_seq), min(last, batch.last_seq)
            )

    def events_at(self, snapshot: Snapshot, seqs: Sequence[int]) -> list[Event]:
        """Return some events of a snapshot; their seqs ascend.

        Cost: as `events`, but events of one segment or block share its look-up.

        Raises:
            Corrupt: an event is damaged.
        """
        events: list[Event] = []
        sealed = snapshot.page.sealed_seq
        at = 0
        while at < len(seqs):
            seq = seqs[at]
            if seq <= sealed:
                ref = self._segment_ref(self.toc(snapshot.page), seq)
                stop = bisect_right(seqs, ref.last_seq, at)
                events += self._segment_events_at(ref, seqs[at:stop])
            else:
                batch = next(snapshot.tail_from(seq))
                stop = bisect_right(seqs, batch.last_seq, at)
                for seq in seqs[at:stop]:
                    if batch.spill is None:
                        place = seq - batch.first_seq
                        events.append(wire_event(batch, place, batch.events[place]))
                    else:
                        events += self._batch_events(batch, seq, seq)
            at = stop
        return events

    def event_batches(
        self, snapshot: Snapshot, first: int, last: int, size: int
    ) -> Iterator[Sequence[Event]]:
        """Yield the events of `events` in sequences of at most ``size``.

        A segment gives its events as columns (`ColumnarEvents`).

        Raises:
            Corrupt: at the first damage; all events before it have been yielded.
        """
        at = first
        sealed = min(last, snapshot.page.sealed_seq)
        while at <= sealed:
            ref = self._segment_ref(self.toc(snapshot.page), at)
            for source, first_own, spans in self._spans(ref, at, min(sealed, ref.last_seq), size):
                stop = spans[-1].first_seq + spans[-1].stop
                sequence = None if source.is_cut else _whole_sequence(source, first_own, spans)
                if sequence is None:
                    # Up to a damaged block if there is one, and else with the hashes of vectors.
                    yield from in_sequences(self.events(snapshot, at, stop - 1), size)
                else:
                    yield sequence
                at = stop
        if at <= last:
            yield from in_sequences(self.events(snapshot, at, last), size)

    def _spans(
        self, ref: Ref, first: int, last: int, size: int
    ) -> Iterator[tuple[Segment, int, list[BatchSpan]]]:
        """Yield (source, own event, spans): the parts of batches that lie in one source.

        The spans have at most ``size`` events together.
        """
        segment = self._segment(ref)
        spans: list[BatchSpan] = []
        first_own = 0
        room = size
        number = segment.batch_of(first - ref.first_seq)
        at = first
        while at <= last:
            row = segment.index.batches[number]
            batch_first = ref.first_seq + segment.batch_first(number)
            is_own = row.spill is None
            source = segment
            if row.spill is not None:
                if spans:
                    yield segment, first_own, spans
                    spans = []
                    room = size
                source = self._spill(row.spill.offset, row.spill.length)
            end = min(last + 1, batch_first + row.count)
            while at < end:
                stop = min(end, at + room)
                if not spans:
                    first_own = at - batch_first
                    first_own += segment.own_first(number) if is_own else 0
                low = at - batch_first
                clock, count = row.clock, row.count
                spans.append(
                    BatchSpan(batch_first, count, row.recorded, clock, low, stop - batch_first)
                )
                room -= stop - at
                if not is_own or room == 0:
                    yield source, first_own, spans
                    spans = []
                    room = size
                at = stop
            number += 1
        if spans:
            yield segment, first_own, spans

    def batches(self, snapshot: Snapshot, first: int = 1) -> Iterator[Batch]:
        """Yield each batch, beginning with that of ``first``, with its events and attachments.

        Events in spills are included.
        """
        for ref in self.segment_refs(snapshot):
            if ref.last_seq >= first:
                yield from self.segment_batches(ref, first=first)
        for batch in snapshot.tail_from(first):
            if batch.spill is None:
                yield batch
            else:
                source = self._spill(batch.spill.offset, batch.spill.length)
                events = tuple(source.events(0, batch.count))
                seed = source.index.batches[0].seed
                yield msgspec.structs.replace(batch, events=events, spill=None, seed=seed)

    def segment_batches(
        self, ref: Ref, *, first: int = 1, attachments: bool = True, spilled: bool = True
    ) -> Iterator[Batch]:
        """Yield a segment's batches with their events, in the segment or in spills.

        Batches that end before event ``first`` are left out. ``attachments=False`` leaves out the
        attachments, ``spilled=False`` the events in spills.
        """
        segment = self._segment(ref)
        before = segment.batch_of(first - ref.first_seq) if first > ref.first_seq else 0
        for number, row in enumerate(segment.index.batches[before:], start=before):
            source = segment
            base = segment.own_first(number)
            first_seq = ref.first_seq + segment.batch_first(number)
            if row.spill is not None:
                if not spilled:
                    yield Batch(first_seq, row.count, row.recorded, row.clock, (), row.spill)
                    continue
                source = self._spill(row.spill.offset, row.spill.length)
                base = 0
            seed = row.seed if row.spill is None else source.index.batches[0].seed
            events = tuple(source.events(base, base + row.count, attachments=attachments))
            yield Batch(first_seq, row.count, row.recorded, row.clock, events, None, seed)

    def wire_events(self, batch: Batch) -> tuple[WireEvent, ...]:
        """Return a batch's events; those in a spill without their attachments."""
        if batch.spill is None:
            return batch.events
        source = self._spill(batch.spill.offset, batch.spill.length)
        return tuple(source.events(0, batch.count, attachments=False))

    def attachments(self, snapshot: Snapshot, seq: int) -> tuple[bytes, ...]:
        """Return the attachments of one event, in order."""
        if seq > snapshot.page.sealed_seq:
            batch = next(snapshot.tail_from(seq), None)
            if batch is None:
                raise NotFound(
                    f"There is no event {seq:,}", remedy="Pass a seq from 1 to the head's."
                )
            index = seq - batch.first_seq
            if batch.spill is None:
                return batch.events[index].attachments
            return tuple(self._spill(batch.spill.offset, batch.spill.length).attachments(index))
        ref = self._segment_ref(self.toc(snapshot.page), seq)
        segment = self._log_file.segment(ref.offset, ref.length)
        event = seq - ref.first_seq
        number = segment.batch_of(event)
        row = segment.index.batches[number]
        index = event - segment.batch_first(number)
        if row.spill is None:
            return tuple(segment.attachments(segment.own_first(number) + index))
        return tuple(self._spill(row.spill.offset, row.spill.length).attachments(index))

    def check_attachments(
        self, snapshot: Snapshot, seq: int, payload: bytes, attachments: Sequence[bytes]
    ) -> None:
        """Refuse the attachments of an event if they are damaged, by the hashes in its payload.

        A payload of an unknown type may not name them: the checks of their extents decide then.

        Raises:
            Corrupt: an attachment is damaged.
        """
        if all(hash_bytes(data) in payload for data in attachments):
            return
        if all(extent_is_whole(*extent) for extent in self._extents_of(snapshot, seq)):
            return
        raise Corrupt(
            f"An attachment of event {seq:,} is damaged",
            where=self._log_file.path,
            remedy="Run 'cerata file verify' to see what is affected.",
        )

    def _extents_of(
        self, snapshot: Snapshot, seq: int
    ) -> Iterator[tuple[bytes, StorageFile, ExtentHeader]]:
        """Yield the extents that hold an event, as `extent_is_whole` takes them."""
        log_file = self._log_file
        spill: SpillRef | None = None
        if seq <= snapshot.page.sealed_seq:
            ref = self._segment_ref(self.toc(snapshot.page), seq)
            yield log_file.key, log_file.file, log_file.extent_header(ref, ExtentKind.SEGMENT)
            segment = self._segment(ref)
            spill = segment.index.batches[segment.batch_of(seq - ref.first_seq)].spill
        else:
            # The record's check covers a batch in the ring.
            spill = next(snapshot.tail_from(seq)).spill
        if spill is not None:
            ref = Ref(spill.offset, spill.length, 0, 0)
            yield log_file.key, log_file.file, log_file.extent_header(ref, ExtentKind.SPILL)

    def embeddings(self, snapshot: Snapshot, key: ColumnKey, seqs: I64) -> U8:
        """Return the vectors of events in ascending order, a row of bytes each."""
        vectors = np.empty((len(seqs), DTYPE_SIZES[key[1]] * key[2]), np.uint8)
        for rows, source, numbers in self._holding(snapshot, seqs):
            if isinstance(source, Segment):
                vectors[rows] = source.embeddings(key, numbers)
            else:
                for row, number in zip(rows, numbers, strict=True):
                    vectors[row] = _vector_of(source.events[int(number)], key)
        return vectors

    def embedding_columns(
        self, snapshot: Snapshot, key: ColumnKey, seqs: I64
    ) -> Iterator[tuple[I64, int]]:
        """Yield events and file offset of each column with a vector of some ascending events.

        A column has a row for each of its events, in order. Events in the ring have no column.
        """
        for rows, source, numbers in self._holding(snapshot, seqs):
            if isinstance(source, Segment):
                own_events, offset = source.embedding_column(key, numbers)
                first = int(seqs[rows[0]] - source.numbers_of(numbers[:1])[0])
                yield source.numbers_of(own_events) + first, offset

    def _holding(
        self, snapshot: Snapshot, seqs: I64
    ) -> Iterator[tuple[I64, "Segment | Batch", I64]]:
        """Yield (rows, source, numbers) of the segments and batches that hold some of the events.

        ``rows`` are indexes into ``seqs``, which ascend; ``numbers`` are the events' numbers in the
        source.
        """
        sealed = snapshot.page.sealed_seq
        at = 0
        rows = np.arange(len(seqs))
        while at < len(seqs):
            seq = int(seqs[at])
            if seq <= sealed:
                ref = self._segment_ref(self.toc(snapshot.page), seq)
                stop = int(seqs.searchsorted(ref.last_seq, "right"))
                yield from self._holding_in(ref, seqs[at:stop], rows[at:stop])
            else:
                batch = next(snapshot.tail_from(seq))
                stop = int(seqs.searchsorted(batch.last_seq, "right"))
                spill = batch.spill
                source = batch if spill is None else self._spill(spill.offset, spill.length)
                yield rows[at:stop], source, seqs[at:stop] - batch.first_seq
            at = stop

    def _holding_in(self, ref: Ref, seqs: I64, places: I64) -> Iterator[tuple[I64, Segment, I64]]:
        """Yield the same for events of one segment and of the spills that it names."""
        segment = self._segment(ref)
        events = seqs - ref.first_seq
        batches, numbers = segment.locate(events)
        rows = segment.index.batches
        is_own = np.ones(len(seqs), np.bool_)
        firsts = np.flatnonzero(np.diff(batches, prepend=-1))
        for number in cast("list[int]", batches[firsts].tolist()):
            spill = rows[number].spill
            if spill is not None:
                low, high = batches.searchsorted([number, number + 1])
                is_own[low:high] = False
                source = self._spill(spill.offset, spill.length)
                yield places[low:high], source, events[low:high] - segment.batch_first(number)
        if bool(is_own.any()):
            yield places[is_own], segment, numbers[is_own]

    def stored_size(self, snapshot: Snapshot, seqs: I64) -> int:
        """Return about how many bytes of the file the contents of ascending events take."""
        total = 0
        for _, source, numbers in self._holding(snapshot, seqs):
            if isinstance(source, Segment):
                total += source.stored_size(numbers)
            else:
                rows: list[int] = numbers.tolist()
                events = [source.events[row] for row in rows]
                total += sum(
                    len(event.payload) + sum(map(len, event.attachments)) for event in events
                )
        return total

    def chain_and_tree(self, snapshot: Snapshot, seq: int) -> tuple[bytes, Tree]:
        """Return chain hash and Merkle tree after event ``seq``; reads from its segment's start."""
        page = snapshot.page
        toc = self.toc(page)
        if seq >= page.sealed_seq:
            at = page.sealed_seq
            chain = toc.chain
            tree = toc.tree
        else:
            at = 0
            chain = chain_start(page.log_id)
            tree = Tree()
            if seq > 0:
                ref = self._segment_ref(toc, seq)
                if ref.first_seq > 1:
                    before = self._segment_ref(toc, ref.first_seq - 1)
                    index = self._log_file.segment(before.offset, before.length).index
                    at = before.last_seq
                    chain = index.chain
                    tree = Tree(at, tuple(index.peaks))
        leaves = [event.leaf for event in self.events(snapshot, at + 1, seq)]
        return chain_through(chain, leaves), tree.extend(leaves)

    def segment_refs(self, snapshot: Snapshot) -> Iterator[Ref]:
        """Yield the segments of the sealed part in seq order."""
        return self.toc(snapshot.page).segments.walk(self._log_file.manifest)

    def kinds(self, snapshot: Snapshot) -> Counter[tuple[str, int]]:
        """Return the number of events of each type and version.

        Cost: a read of each segment's index. Raises: Corrupt.
        """
        counts = Counter[tuple[str, int]]()
        for ref in self.segment_refs(snapshot):
            segment = self._segment(ref)
            counts += segment.kinds()
            for row in segment.index.batches:
                if row.spill is not None:
                    counts += self._spill(row.spill.offset, row.spill.length).kinds()
        for batch in snapshot.tail_from(1):
            if batch.spill is not None:
                counts += self._spill(batch.spill.offset, batch.spill.length).kinds()
            counts.update((event.type, event.version) for event in batch.events)
        return counts

    def _segment_ref(self, toc: Toc, seq: int) -> Ref:
        ref = toc.segments.find(seq, self._log_file.manifest)
        if ref is None:
            raise Corrupt(
                f"No segment holds event {seq:,}",
                where=self._log_file.path,
                remedy="Run 'cerata file verify' to see what is affected.",
            )
        return ref

    def _segment_events_at(self, ref: Ref, seqs: Sequence[int]) -> list[Event]:
        segment = self._segment(ref)
        places = segment.places(seqs, ref.first_seq)
        own_events: list[int] = []
        for row, _, number in places:
            if row.spill is None:
                own_events.append(number)
        own = iter(segment.events_at(own_events))
        has_attachments = segment.has_attachments
        events: list[Event] = []
        for seq, (row, first, number) in zip(seqs, places, strict=True):
            batch = Batch(ref.first_seq + first, row.count, row.recorded, row.clock, (), row.spill)
            if row.spill is not None:
                events += self._batch_events(batch, seq, seq)
                continue
            held = partial(segment.attachments_of, number) if has_attachments else None
            events.append(wire_event(batch, seq - batch.first_seq, next(own), held))
        return events

    def _segment_events(self, ref: Ref, first: int, last: int) -> Iterator[Event]:
        segment = self._segment(ref)
        number = segment.batch_of(first - ref.first_seq)
        while number < len(segment.index.batches):
            row = segment.index.batches[number]
            batch_first = ref.first_seq + segment.batch_first(number)
            if batch_first > last:
                return
            low = max(first, batch_first) - batch_first
            stop = min(last, batch_first + row.count - 1) - batch_first + 1
            yield from self._row_events(segment, number, row, batch_first, low, stop)
            number += 1

    def _row_events(
        self, segment: Segment, number: int, row: BatchRow, batch_first: int, low: int, stop: int
    ) -> Iterator[Event]:
        source = segment
        base = segment.own_first(number)
        if row.spill is not None:
            source = self._spill(row.spill.offset, row.spill.length)
            base = 0
        batch = Batch(batch_first, row.count, row.recorded, row.clock, (), row.spill)
        yield from _events_in(source, base, batch, low, stop)

    def _batch_events(self, batch: Batch, first: int, last: int) -> Iterator[Event]:
        low = first - batch.first_seq
        stop = last - batch.first_seq + 1
        if batch.spill is None:
            for index, event in enumerate(batch.events[low:stop], start=low):
                yield wire_event(batch, index, event)
            return
        spill = self._spill(batch.spill.offset, batch.spill.length)
        yield from _events_in(spill, 0, batch, low, stop)

    def _segment(self, ref: Ref) -> Segment:
        """Return a segment, whose event count must match its reference."""
        segment = self._log_file.segment(ref.offset, ref.length)
        if segment.count != ref.last_seq - ref.first_seq + 1:
            raise Corrupt(
                f"A segment has {segment.count:,} events, not the number in its reference",
                offset=ref.offset,
            )
        return segment

    def _spill(self, offset: int, length: int) -> Segment:
        return self._log_file.segment(offset, length)


def _whole_sequence(
    source: Segment, first_own: int, spans: Sequence[BatchSpan]
) -> ColumnarEvents | None:
    """Return the events of spans, or None if a block of the source does not verify."""
    try:
        return ColumnarEvents.of(SealedPiece(source, first_own, spans))
    except Corrupt:
        return None


def in_sequences(events: Iterator[Event], size: int) -> Iterator[Sequence[Event]]:
    """Yield events in lists of at most ``size``.

    Raises:
        Corrupt: at the first damage; all events before it have been yielded.
    """
    pieces: list[Event] = []
    try:
        for event in events:
            pieces.append(event)
            if len(pieces) == size:
                yield pieces
                pieces = []
    except Corrupt:
        if pieces:
            yield pieces
        raise
    if pieces:
        yield pieces


_encode = msgspec.msgpack.Encoder().encode


def leaves_of(batch: Batch, events: Sequence[WireEvent]) -> list[bytes]:
    """Return the leaves of a batch; sealing needs nothing else of its events."""
    first = batch.first_seq
    recorded = batch.recorded
    clock = batch.clock
    count = batch.count
    leaves: list[bytes] = []
    for index, wire in enumerate(events):
        seq = first + index
        # The fields of an `EventHeader`, which has the same bytes.
        header = seq, recorded, clock, wire.type, wire.version, index, count, wire.causation
        salt = wire.salt
        commitment = wire.payload if salt is None else commitment_of(salt, wire.payload, seq)
        leaves.append(leaf_of(_encode(header), commitment))
    return leaves


def _events_in(source: Segment, base: int, batch: Batch, low: int, stop: int) -> Iterator[Event]:
    """Yield events ``low`` to before ``stop`` of a batch whose first event is number ``base``.

    Their attachments are read on demand.
    """
    events = source.events(base + low, base + stop, attachments=False)
    for index, event in enumerate(events, start=low):
        # Most events have no attachments, and a partial would be an extra object for each.
        of_size = partial(source.attachments_of, base + index) if source.has_attachments else None
        yield wire_event(batch, index, event, of_size)


def _vector_of(event: WireEvent, key: ColumnKey) -> U8:
    for column, data in columns_of(event):
        if column == key:
            return np.frombuffer(data, np.uint8)
    raise Corrupt(f"An event has no vector of {key[0]!r}", remedy="Run 'cerata file verify'.")


def wire_event(batch: Batch, index: int, wire: WireEvent, held: Held | None = None) -> Event:
    """Return the event at ``index`` of a batch; ``held`` returns its attachments."""
    header = EventHeader(
        batch.first_seq + index,
        batch.recorded,
        batch.clock,
        wire.type,
        wire.version,
        index,
        batch.count,
        wire.causation,
    )
    if wire.salt is None:
        return Event(header, None, None, wire.payload)
    event = Event(header, wire.salt, wire.payload)
    if held is not None:
        vars(event)["held"] = held
    elif wire.attachments:
        vars(event)["held"] = partial(attachments_of_size, wire.attachments)
    return event
