"""The writer: everything that a handle puts into the file, under the writer lock.

Owns the record of a batch, the flip that seals and publishes, and the settling of what recovery
found. Leaves out following others (`position`), and locks, syncs and policies (`log`).
"""

from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace

from .codec import Batch, Prepared, SpillRef, WireBatch, encode_content
from .environment import Environment
from .errors import Corrupt, InvalidInput, StorageFailed
from .file import Flip, check_writable, choose_page
from .format.extent import ExtentKind
from .format.record import (
    EMPTY_SECTOR,
    FLAG_SPILLED,
    RECORD_OVERHEAD,
    RECORD_PREFIX_SIZE,
    RecordPrefix,
    decode_record_header,
    encode_padding,
    encode_record,
    sectors,
)
from .format.toc import Ref, RefList, Toc
from .idempotency import key_entries
from .integrity import chain_through
from .limits import RECORDED_MAX, SECTOR_SIZE
from .poison import Poison
from .position import ASK, Position
from .reader import leaves_of, wire_event
from .recovery import Found, RecoveryReport, examine, read_cut, spill_end
from .ring import Cursor, End
from .segment_draft import SegmentDraft

Build = Callable[[Flip, Toc], Mapping[str, Mapping[str, Any] | None]]
"""Adds projections' chunks to a flip and returns their entries for the TOC; None drops one."""

_QUARANTINE_REFS_MAX = 16
"""Cuts that the TOC remembers; older ones stay in the file until compaction."""


class Writer:
    """Writes from one position. Every call needs the mutex and the writer lock.

    ``poison`` is taken where a flip failed at a sync. ``report`` says what was last mended.
    """

    def __init__(
        self,
        position: Position,
        environment: Environment,
        poison: Poison,
        report: RecoveryReport,
    ) -> None:
        self._position = position
        self._environment = environment
        self._poison = poison
        self.unsynced_bytes = 0
        self.report = report
        self._mark: tuple[Cursor, int, bytes] | None = None
        """The mark that the ring ended with at opening, its offset, and the place behind it."""

    # --- records ---------------------------------------------------------------------------------

    def write_batch(self, prepared: Prepared, spill: SpillRef | None) -> Batch:
        """Give a batch its seqs and time, and write its record."""
        position = self._position
        clock = self._environment.now_us()
        recorded = max(clock, position.recorded + 1)
        if recorded > RECORDED_MAX:
            raise InvalidInput(
                f"The log's last batch was recorded at {position.recorded:,} microseconds since "
                f"1970, and none can be recorded after {RECORDED_MAX:,}",
                where=position.log_file.path,
                remedy="Copy the batches before it with backup(path, through=…), and write there.",
            )
        raw_clock = None if recorded == clock else clock
        count = len(prepared.events)
        events = None if spill else prepared.events
        content = encode_content(WireBatch(recorded, raw_clock, events, spill))
        flags = FLAG_SPILLED if spill else 0
        first_seq = position.cursor.next_seq
        self.write_record(first_seq, count, flags, content)
        batch = Batch(
            first_seq, count, recorded, raw_clock, () if spill else prepared.events, spill
        )
        position.add(batch)
        return batch

    def _repeat_mark(self) -> None:
        """Write the mark that stood last at opening over itself, before a record follows it.

        The sync after it may have failed: then the system shows it and the disk never got it, and
        no record behind it would connect. It holds no events.
        """
        mark, self._mark = self._mark, None
        if mark is not None and mark[0] == self._position.cursor:
            self._position.log_file.file.write_at(mark[1], mark[2])

    def _last_mark(self) -> tuple[Cursor, int, bytes] | None:
        """Return the place behind the mark that the ring ends with, its offset and sector."""
        page, cursor = self._position.page, self._position.cursor
        if not cursor.used:
            return None
        log_file = self._position.log_file
        end = page.ring_end if cursor.offset == page.ring_offset else cursor.offset
        offset = end - SECTOR_SIZE
        data = log_file.file.read_at(offset, SECTOR_SIZE)
        header = decode_record_header(log_file.key, offset, data)
        if header is None or header.is_padding or header.length != RECORD_PREFIX_SIZE:
            return None
        return cursor, offset, data

    def write_mark(self) -> None:
        """Write a record without events, which proves what is durable."""
        self.write_record(self._position.cursor.next_seq, 0, 0, b"")

    def write_record(self, first_seq: int, count: int, flags: int, content: bytes) -> None:
        """Write one record at the cursor and advance over it; seals first if there is no room."""
        size = sectors(RECORD_OVERHEAD + len(content))
        self._make_room(size)
        self._repeat_mark()
        self._witness(both=count == 0)
        position = self._position
        page, cursor, key = position.page, position.cursor, position.log_file.key
        file = position.log_file.file
        offset, used, ring_end = cursor.offset, cursor.used, page.ring_end
        if offset + size > ring_end:
            padding = ring_end - offset
            # Padding first: were the record there without it, it could connect to a later one.
            file.write_at(
                offset, encode_padding(key, offset, cursor.incarnation, padding, cursor.link)
            )
            offset, used = page.ring_offset, used + padding
        prefix = RecordPrefix(position.durable, flags, count, cursor.link)
        record, link = encode_record(key, offset, first_seq, page.incarnation, prefix, content)
        following = offset + size
        try:
            if following == ring_end:
                following = page.ring_offset
                file.write_at(following, EMPTY_SECTOR)
                file.write_at(offset, record)
            else:
                file.write_at(offset, record + EMPTY_SECTOR)
        except StorageFailed as error:
            if self._stands(offset, record):
                raise self._poison.take(error) from error
            raise
        position.cursor = Cursor(
            following,
            used + size,
            first_seq + count,
            link,
            page.incarnation,
            max(cursor.durable_through, position.durable),
            offset,
        )
        self.unsynced_bytes += size

    def _witness(self, *, both: bool) -> None:
        """Name what is durable outside the ring, too, before a record says the same in it.

        The sync that covers the record covers it. In turn: the older one stays whole if a crash
        tears the other, and a range that damage takes from the ring to one leaves the other. A
        mark writes both, since no later record may follow it.
        """
        position = self._position
        log_file, page = position.log_file, position.page
        durable, number = position.durable, position.next_witness
        if durable <= page.sealed_seq:
            return  # The header pages name it.
        if number is None or both:
            numbers: tuple[int, ...] = 0, 1
        elif durable > position.cursor.durable_through:
            numbers = (log_file.older_witness(page) if number == ASK else number,)
        else:
            return  # The record before brought it.
        log_file.write_witnesses(page, durable, numbers)
        position.next_witness = 1 - numbers[-1]

    def _stands(self, offset: int, record: bytes) -> bool:
        """Tell whether a record whose write failed is there all the same, as far as can be known.

        What is not whole is cut by whoever comes next; what is, everybody takes for appended.
        """
        try:
            return self._position.log_file.file.read_at(offset, len(record)) == record
        except StorageFailed:
            return True

    def _make_room(self, size: int) -> None:
        """Seal first if a record of ``size`` and the empty sector after it would not fit."""
        page, cursor = self._position.page, self._position.cursor
        padding = page.ring_end - cursor.offset if cursor.offset + size > page.ring_end else 0
        if cursor.used + padding + size + SECTOR_SIZE > page.ring_size:
            self.flip()

    def _sync(self) -> None:
        try:
            self._position.log_file.file.sync()
        except StorageFailed as error:
            raise self._poison.take(error) from error

    # --- flips -----------------------------------------------------------------------------------

    def flip(self, *, cut: Found | None = None, build: Build | None = None) -> None:
        """Seal the tail, publish a new TOC and header page. Durable on return.

        With ``cut``, what recovery cut is kept in an extent and a new incarnation begins.
        """
        position = self._position
        reader, cursor, tail = position.reader, position.cursor, position.tail
        toc = reader.toc(position.page)
        rebuilt = reader.rebuilt
        flip = Flip(position.log_file, position.page)
        if rebuilt:
            segments = RefList()
            for ref in toc.segments.walk(position.log_file.manifest):
                segments = flip.append(segments, ref)
            toc = replace(toc, segments=segments)
        if tail:
            toc = self._add_segment(flip, toc, tail)
        head = toc.sealed_seq
        if rebuilt:
            toc = replace(toc, keys=self._rebuilt_keys(flip, head))
        incarnation, clear = cursor.incarnation, None
        if cut is not None:
            data = read_cut(position.log_file, cut)
            # Where it stood comes first: its checks cover that, and can be tried again.
            kept = cut.cursor.offset.to_bytes(8, "little") + data
            ref = flip.add(ExtentKind.QUARANTINE, kept, head + 1, head + 1)
            toc = replace(toc, quarantine=(*toc.quarantine, ref)[-_QUARANTINE_REFS_MAX:])
            incarnation = 1 + max([cursor.incarnation, *(row.incarnation for row in cut.beyond)])
            clear = cursor.offset
        toc = replace(
            toc,
            generation=toc.generation + 1,
            ring_start=cursor.offset,
            link=cursor.link,
            incarnation=incarnation,
        )
        if build is not None:
            # What this process does not know stays as it is.
            merged = {**toc.projections, **build(flip, toc)}
            entries = {key: entry for key, entry in merged.items() if entry is not None}
            toc = replace(toc, projections=entries)
        flip.write(toc)
        try:
            page = flip.publish(incarnation=incarnation, clear=clear)
        except StorageFailed as error:
            raise self._poison.take(error) from error
        reader.remember_toc(page, toc)
        reader.rebuilt = False
        position.page = page
        position.pages = position.log_file.read_pages()
        position.tail = []
        position.cursor = Cursor.at_start(page)
        position.durable = max(position.durable, head)
        self.unsynced_bytes = 0

    def take_sealed(self, batches: list[Batch]) -> None:
        """Take batches of the same log from another file, into a segment. Durable on return.

        They go on from the head, and the ring is empty.
        """
        assert not self._position.tail
        assert batches[0].first_seq == self._position.cursor.next_seq
        self._position.tail = batches
        self.flip()

    def _add_segment(self, flip: Flip, toc: Toc, tail: list[Batch]) -> Toc:
        """Add the tail to the flip as one segment, with its keys."""
        position = self._position
        first, last = tail[0].first_seq, tail[-1].last_seq
        leaves: list[bytes] = []
        entries: list[tuple[int, int]] = []
        for batch in tail:
            events = position.reader.wire_events(batch)
            leaves += leaves_of(batch, events)
            entries += key_entries([wire_event(batch, 0, events[0])])
        chain = chain_through(toc.chain, leaves)
        tree = toc.tree.extend(leaves)
        body = SegmentDraft(tail, chain, tree).encode(position.log_file.key, flip.offset)
        ref = flip.add(ExtentKind.SEGMENT, body, first, last)
        segments = flip.append(toc.segments, ref)
        try:
            keys = position.keys.extend(toc.keys, entries, first, last, flip)
        except Corrupt:
            # A damaged run must not stop the log: the events know their keys.
            keys = self._rebuilt_keys(flip, last)
        return replace(
            toc,
            sealed_seq=last,
            recorded=tail[-1].recorded,
            chain=chain,
            tree=tree,
            segments=segments,
            keys=keys,
        )

    def _rebuilt_keys(self, flip: Flip, last: int) -> tuple[Ref, ...]:
        """Collect the keys of all events into one run, read from the events themselves."""
        position = self._position
        entries = [entry for event in position.events(1) for entry in key_entries([event])]
        return position.keys.extend((), entries, 1, last, flip)

    # --- mending ---------------------------------------------------------------------------------

    def catch_up(self, pages: bytes) -> None:
        """Take in what others appended, and mend what a dead writer left."""
        position = self._position
        if position.is_current(pages):
            return
        if pages != position.pages:
            _, bad = position.choose_page(pages)
            if bad:
                self._resettle()
                return
        seen = position.look_on(pages)
        position.take_in(pages, seen)
        if seen.end in (End.TORN, End.BAD, End.UNLINKED):
            self._resettle()

    def _resettle(self) -> None:
        """Look at the file afresh and mend it, as an opener would."""
        position = self._position
        log_file = position.log_file
        position.pages = log_file.read_pages()
        page, bad = choose_page(position.pages, log_file.path)
        found = examine(log_file, page, bad, search=bool(bad), alone=False)
        if found.damage is None:
            position.check_forward(found.cursor)
        self.settle(found, alone=False)

    def settle(self, found: Found, *, alone: bool) -> None:
        """Make what the file proves durable, mend the rest, and say in ``report`` what was done.

        Events past proven are sealed into a new extent, never trusted to a plain sync of pages
        that an earlier failure may have marked clean; what an adopted footer names is written
        again for the same reason. Unconnected rest is cut and kept aside.

        Raises:
            Corrupt: acknowledged events are unreadable; nothing was written.
            Unsupported: a newer Cerata left what this one would undo; nothing was written.
        """
        position = self._position
        log_file, reader = position.log_file, position.reader
        check_writable(found.page, log_file.path)
        if found.damage is not None:
            raise found.damage
        report = found.report
        size = log_file.file.size()
        spills = [spill_end(batch.spill) for batch in found.batches if batch.spill]
        named_end = max([found.page.data_end, *spills])
        if alone and size > named_end:
            # Nobody else is there, and nothing names these bytes: a dead writer's orphans.
            log_file.file.set_size(named_end)
            report = replace(report, trimmed_bytes=size - named_end)
        if alone and report.adopted_footer:
            log_file.write_again(found.named_end, found.page.data_end)
        toc = found.toc or reader.toc(found.page)
        rebuilt = reader.rebuilt
        report = replace(report, rebuilt_toc=rebuilt)
        reader.remember_toc(found.page, toc)
        position.cursor, position.tail = found.cursor, found.batches
        position.durable = found.proven
        position.page = replace(found.page, moved=False)
        unproven = found.head_seq > found.proven
        mended = report.cut_bytes or report.bad_pages or report.adopted_footer or rebuilt
        if unproven or found.page.moved or mended:
            report = replace(report, sealed_events=found.head_seq - found.page.sealed_seq)
            if report.bad_witnesses:
                log_file.write_witnesses(found.page, found.proven)
            self.flip(cut=found if report.cut_bytes else None)
        else:
            self._mark = self._last_mark()
            if report.bad_witnesses or found.witnessed < found.proven > found.page.sealed_seq:
                # A crash came between a mark and its witnesses, or tore one; or damage did.
                log_file.write_witnesses(found.page, found.proven)
                self._sync()
        self.report = report
