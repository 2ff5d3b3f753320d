"""The writer: every write of a handle to its file, under the writer lock.

Owns the record of a batch, the flip that seals and publishes, and the settling of a recovered
state. Leaves out following other writers (`log_state`), and locks, syncs and policies (`log`).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from ..codec import Batch, Prepared, SpillRef, WireBatch, WireEvent, encode_content
from ..disk.environment import Environment
from ..errors import Corrupt, InvalidInput, StorageFailed
from ..events import Erase
from ..format.extent import ExtentKind
from ..format.page import HeaderPage, decode_page
from ..format.record import (
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
from ..format.toc import Ref, RefList, Toc
from ..handle import Poison
from ..integrity import chain_start, chain_through
from ..limits import PAGE_SIZE, RECORDED_MAX, SECTOR_SIZE
from ..segments.reader import leaves_of, wire_event
from ..segments.segment_writer import SegmentDraft
from .file import Flip, check_writable, choose_page, turned
from .idempotency import key_entries
from .log_state import ASK, LogState
from .newest_events import BRANCH, ERASE
from .recovery import RecoveredState, RecoveryReport, examine, read_cut, spill_end
from .ring import Cursor, End, grown_size

Build = Callable[[Flip, Toc], Mapping[str, Mapping[str, Any] | None]]
"""Adds projections' chunks to a flip and returns their TOC entries; None drops an entry."""


class Origin(NamedTuple):
    """The log of which a log without events becomes a copy: its id, and when it was created."""

    log_id: bytes
    created: int

    def named_by(self, page: HeaderPage, toc: Toc) -> tuple[HeaderPage, Toc]:
        """Return page and TOC of the log without events, as those of the copy."""
        log_id, created = self
        return (
            replace(page, log_id=log_id, created=created),
            replace(toc, log_id=log_id, created=created, chain=chain_start(log_id)),
        )


_QUARANTINE_REFS_MAX = 16
"""Cuts that the TOC references; older cuts stay in the file until compaction."""


class Writer:
    """Writes from one state. Every call needs the mutex and the writer lock.

    A flip that fails at a sync sets ``handle``. ``report`` describes the last repair.
    """

    def __init__(
        self, state: LogState, environment: Environment, poison: Poison, report: RecoveryReport
    ) -> None:
        self._state = state
        self._environment = environment
        self._poison = poison
        self.unsynced_bytes = 0
        self.report = report
        self._mark: tuple[Cursor, int, bytes] | None = None
        """The mark at the ring's end at opening: the cursor after it, its offset and sector."""
        self._named_twice: bytes | None = None
        """The header pages that were last seen to name the same ring."""
        self._written_pages: bytes | None = None
        """The header pages of which this handle wrote the newest, perhaps again."""
        self._synced: tuple[bytes | None, Cursor | None] = None, None
        """These pages and the cursor before the last sync, which covers them."""

    # --- records ---------------------------------------------------------------------------------

    def write_batch(self, prepared: Prepared, spill: SpillRef | None) -> Batch:
        """Assign seqs and a time to a batch, and write its record."""
        state = self._state
        clock = self._environment.now_us()
        recorded = max(clock, state.recorded + 1)
        if recorded > RECORDED_MAX:
            raise InvalidInput(
                f"The log's last batch was recorded at {state.recorded:,} microseconds since "
                f"1970; the next must not be recorded after {RECORDED_MAX:,}",
                where=state.log_file.path,
                remedy="Copy the batches before it with backup(path, through=…), and write there.",
            )
        raw_clock = None if recorded == clock else clock
        count = len(prepared.events)
        events = None if spill else prepared.events
        seed = None if spill else prepared.seed
        content = encode_content(WireBatch(recorded, raw_clock, events, spill, seed))
        flags = FLAG_SPILLED if spill else 0
        first_seq = state.cursor.next_seq
        self.write_record(first_seq, count, flags, content)
        batch = Batch(
            first_seq, count, recorded, raw_clock, () if spill else prepared.events, spill, seed
        )
        state.add(batch)
        return batch

    def _repeat_mark(self) -> None:
        """Rewrite the mark that was last at opening, before a record follows it.

        The sync after the mark may have failed: then the system shows the mark but the disk lacks
        it, and no later record would connect. The mark holds no events.
        """
        mark = self._mark
        self._mark = None
        if mark is not None and mark[0] == self._state.cursor:
            self._state.log_file.file.write_at(mark[1], mark[2])

    def _last_mark(self) -> tuple[Cursor, int, bytes] | None:
        """Return the cursor after the mark that ends the ring, its offset and its sector."""
        page = self._state.page
        cursor = self._state.cursor
        if not cursor.used:
            return None
        log_file = self._state.log_file
        end = page.ring_end if cursor.offset == page.ring_offset else cursor.offset
        offset = end - SECTOR_SIZE
        data = log_file.file.read_at(offset, SECTOR_SIZE)
        header = decode_record_header(log_file.key, offset, data)
        if header is None or header.is_padding or header.length != RECORD_PREFIX_SIZE:
            return None
        return cursor, offset, data

    def write_mark(self) -> None:
        """Write a record without events, which names the last durable event."""
        state = self._state
        if state.page.number == 0 and self._synced[0] is state.pages:
            # For `close_log`, which writes the older page. Page 0 is whole on the disk.
            self._write_page(turned(state.page))
        elif state.pages is not self._written_pages:
            self._repeat_page()
        self.write_record(state.cursor.next_seq, 0, 0, b"")

    def write_record(self, first_seq: int, count: int, flags: int, content: bytes) -> None:
        """Write one record at the cursor and advance past it; seals first if the ring is full."""
        size = sectors(RECORD_OVERHEAD + len(content))
        self._make_room(size)
        self._name_ring_twice()
        self._repeat_mark()
        self._witness(write_both=count == 0)
        state = self._state
        page = state.page
        cursor = state.cursor
        key = state.log_file.key
        file = state.log_file.file
        offset = cursor.offset
        used = cursor.used
        ring_end = page.ring_end
        if offset + size > ring_end:
            padding = ring_end - offset
            # Padding first: without padding, the record could connect to a later record.
            file.write_at(
                offset, encode_padding(key, offset, cursor.incarnation, padding, cursor.link)
            )
            offset = page.ring_offset
            used += padding
        prefix = RecordPrefix(state.durable, flags, count, cursor.link)
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
            if self._is_stored(offset, record):
                raise self._poison.take(error) from error
            raise
        state.cursor = Cursor(
            following,
            used + size,
            first_seq + count,
            link,
            page.incarnation,
            max(cursor.durable_through, state.durable),
            offset,
        )
        self.unsynced_bytes += size

    def _witness(self, *, write_both: bool) -> None:
        """Name the durable seq outside the ring as well, before a record names it inside.

        The sync that covers the record also covers the witness. The two alternate: the older
        witness stays whole if a crash tears the other, and damage that extends from the ring into
        one spares the other. A mark writes both, since it may be the last record.
        """
        state = self._state
        log_file = state.log_file
        page = state.page
        durable = state.durable
        number = state.next_witness
        if durable <= page.named_seq:
            # So an event that the page does not name is durable when a crash can tear both
            # witnesses, and recovery can tell that crash from damage.
            return
        if number is None or write_both:
            numbers: tuple[int, ...] = 0, 1
        elif durable > state.cursor.durable_through:
            numbers = (log_file.older_witness(page) if number == ASK else number,)
        else:
            return  # The previous record wrote this seq.
        log_file.write_witnesses(page, durable, numbers)
        state.next_witness = 1 - numbers[-1]

    def _is_stored(self, offset: int, record: bytes) -> bool:
        """Return whether a record whose write failed may be whole in the file.

        The next writer cuts a partial record; every process takes a whole record for appended.
        """
        try:
            return self._state.log_file.file.read_at(offset, len(record)) == record
        except StorageFailed:
            return True

    def _make_room(self, size: int) -> None:
        """Seal first if a record of ``size`` and the empty sector after it do not fit."""
        page = self._state.page
        cursor = self._state.cursor
        padding = page.ring_end - cursor.offset if cursor.offset + size > page.ring_end else 0
        if cursor.used + padding + size + SECTOR_SIZE > page.ring_size:
            self.flip(ring_size=grown_size(page))

    def _name_ring_twice(self) -> None:
        """Let both header pages name the ring, before a record goes to it.

        The sync of the page that moved the ring may have failed, for this process or another. The
        system then shows a page that the disk lacks, or has in part: a power loss would bring the
        old ring back, without the records of the new ring. So the page is written again first, and
        a crash during the write of the other page finds it whole.
        """
        state = self._state
        if state.pages is self._named_twice:
            return
        page = state.page
        ring = page.ring_offset, page.ring_size
        other = 1 - page.number
        stored = decode_page(state.pages[other * PAGE_SIZE : (other + 1) * PAGE_SIZE], other)
        if stored is None or (stored.ring_offset, stored.ring_size) != ring:
            for copy in (page, turned(page)):
                self._write_page(copy)
                self.sync()
        if state.page.number == 0 and state.pages is not self._written_pages:
            # For `write_mark`: the sync of the record covers the page as well.
            self._repeat_page()
        self._named_twice = state.pages

    def sync(self) -> None:
        """Sync the file. After a failure the handle refuses all further calls."""
        covered = self._written_pages, self._state.cursor
        try:
            self._state.log_file.file.sync()
        except StorageFailed as error:
            raise self._poison.take(error) from error
        self._synced = covered

    # --- a clean close ---------------------------------------------------------------------------

    def close_log(self) -> None:
        """Prove the head, and name the head in a header page, far from the ring. Durable on return.

        Damage to one range that holds the ring and both witnesses spares page 0, so page 0 gets the
        head. Cost: one sync more than a mark, two if another process wrote page 0 after the last
        record of this handle; none if the newest page names the head.
        """
        state = self._state
        head = state.head_seq
        if head <= state.page.named_seq:
            return
        if state.durable < head:
            # Includes another process's batch, which this handle has not synced.
            self.sync()
            state.durable = head
        if state.cursor.durable_through < head:
            self.write_mark()
            self.sync()
        elif self._synced != (state.pages, state.cursor) or state.next_witness in (None, ASK):
            # Another process wrote the mark or the page, and its sync may have failed.
            self._repeat_page()
            state.log_file.write_witnesses(state.page, head)
            self.sync()
        if head > state.page.sealed_seq:
            # The newest page and both witnesses are durable by now.
            if state.page.number == 0:
                # Another process wrote it after the last record of this handle.
                self._write_page(turned(state.page))
                self.sync()
            self._write_page(replace(turned(state.page), closed_seq=head))
            self.sync()

    def _write_page(self, page: HeaderPage) -> None:
        state = self._state
        state.log_file.file.write_at(page.number * PAGE_SIZE, page.encode())
        state.page = page
        state.pages = self._named_twice = self._written_pages = state.log_file.read_pages()

    # --- flips -----------------------------------------------------------------------------------

    def flip(
        self,
        *,
        cut: RecoveredState | None = None,
        build: Build | None = None,
        ring_size: int | None = None,
        origin: Origin | None = None,
        names: Mapping[str, Any] | None = None,
    ) -> None:
        """Seal the tail, publish a new TOC and header page. Durable on return.

        With ``cut``, an extent receives the bytes that recovery cut, and a new incarnation begins.
        With ``ring_size``, the log continues in a new ring of this size, and nothing writes to the
        old ring again. With ``origin``, a log without events becomes a copy of another. With
        ``names``, the TOC has these names of later versions.
        """
        state = self._state
        reader = state.reader
        cursor = state.cursor
        tail = state.tail
        toc = reader.toc(state.page)
        rebuilt = reader.rebuilt
        before = state.page
        if origin is not None:
            assert not state.head_seq
            before, toc = origin.named_by(before, toc)
        flip = Flip(state.log_file, before)
        if rebuilt:
            toc = replace(toc, segments=self._gathered(flip, toc))
        if tail:
            toc = self._add_segment(flip, toc, tail)
        head = toc.sealed_seq
        if rebuilt:
            toc = replace(toc, keys=self._rebuilt_keys(flip, head))
        incarnation = cursor.incarnation
        clear = None
        if cut is not None:
            data = read_cut(state.log_file, cut)
            # The offset comes first: the checks of the cut records cover it, so tools can verify
            # them later.
            quarantined = cut.cursor.offset.to_bytes(8, "little") + data
            ref = flip.add(ExtentKind.QUARANTINE, quarantined, head + 1, head + 1)
            toc = replace(toc, quarantine=(*toc.quarantine, ref)[-_QUARANTINE_REFS_MAX:])
            incarnation = 1 + max([cursor.incarnation, *(row.incarnation for row in cut.beyond)])
            clear = cursor.offset
        toc = replace(
            toc,
            generation=toc.generation + 1,
            ring_start=cursor.offset,
            link=cursor.link,
            incarnation=incarnation,
            unknown=toc.unknown if names is None else names,
        )
        if ring_size is not None:
            # No record of the old ring lacks a segment now, and nothing of it was cut: recovery
            # takes a record behind the sealed events as proof that this flip was never published.
            assert cut is None
            offset = flip.add_ring(ring_size, head)
            toc = replace(toc, ring_offset=offset, ring_size=ring_size, ring_start=offset)
        if build is not None:
            # Entries that this process does not know stay.
            merged = {**toc.projections, **build(flip, toc)}
            entries = {key: entry for key, entry in merged.items() if entry is not None}
            toc = replace(toc, projections=entries)
        self._repeat_page()
        self._repeat_witnesses()
        flip.write(toc)
        page = self._published(flip, incarnation, clear)
        reader.remember_toc(page, toc)
        reader.rebuilt = False
        state.page = page
        state.pages = self._written_pages = state.log_file.read_pages()
        state.tail = []
        state.cursor = Cursor.at_start(page)
        self._synced = state.pages, state.cursor
        state.durable = max(state.durable, head)
        self.unsynced_bytes = 0

    def _repeat_page(self) -> None:
        """Write the newest header page over itself; the flip syncs it before it writes the other.

        The sync of the page may have failed, for this process or another. The system then shows a
        page that the disk has in part, and a power loss during the write of the other page would
        leave no valid page.
        """
        state = self._state
        start = state.page.number * PAGE_SIZE
        state.log_file.file.write_at(start, state.pages[start : start + PAGE_SIZE])
        self._written_pages = state.pages

    def _repeat_witnesses(self) -> None:
        """Write both witnesses again before a flip seals the events that they are needed for.

        A failed sync may have torn both on the disk, for this process or another. Once a page names
        every event, recovery takes two torn witnesses for damage.
        """
        state = self._state
        if state.durable > state.page.named_seq:
            state.log_file.write_witnesses(state.page, state.durable)

    def _published(self, flip: Flip, incarnation: int, clear: int | None) -> HeaderPage:
        try:
            return flip.publish(incarnation=incarnation, clear=clear)
        except StorageFailed as error:
            raise self._poison.take(error) from error

    def _gathered(self, flip: Flip, toc: Toc) -> RefList:
        """Return the segments of a rebuilt TOC, a long list in manifest pages."""
        segments = RefList()
        for ref in toc.segments.walk(self._state.log_file.manifest):
            segments = flip.append(segments, ref)
        return segments

    def take_sealed(self, batches: list[Batch]) -> None:
        """Move batches of the same log in another file into a segment. Durable on return.

        They continue the head, and the ring is empty.
        """
        assert not self._state.tail
        assert batches[0].first_seq == self._state.cursor.next_seq
        self._state.tail = batches
        try:
            self.flip()
        finally:
            # After an error the file does not hold them.
            self._state.tail = []

    def _add_segment(self, flip: Flip, toc: Toc, tail: list[Batch]) -> Toc:
        """Add the tail to the flip as a segment, with its keys."""
        state = self._state
        first = tail[0].first_seq
        last = tail[-1].last_seq
        leaves: list[bytes] = []
        entries: list[tuple[int, int]] = []
        branch, erased = toc.branch, toc.erased
        for batch in tail:
            events = state.recent.events_of(batch) or state.reader.wire_events(batch)
            leaves += leaves_of(batch, events)
            if events[0].type == BRANCH:
                branch = batch.first_seq
            elif events[0].type == ERASE and self._reflects(batch, events):
                # The batch of an erasure has no other events.
                erased = batch.last_seq
            entries += key_entries([wire_event(batch, 0, events[0])])
        chain = chain_through(toc.chain, leaves)
        tree = toc.tree.extend(leaves)
        body = SegmentDraft(tail, chain, tree).encode(state.log_file.key, flip.offset)
        ref = flip.add(ExtentKind.SEGMENT, body, first, last)
        segments = flip.append(toc.segments, ref)
        try:
            keys = state.keys.extend(toc.keys, entries, first, last, flip)
        except Corrupt:
            # A damaged run must not stop the log: rebuild the keys from the events.
            keys = self._rebuilt_keys(flip, last)
        return replace(
            toc,
            sealed_seq=last,
            recorded=tail[-1].recorded,
            chain=chain,
            tree=tree,
            segments=segments,
            keys=keys,
            erased=erased,
            branch=branch,
        )

    def _reflects(self, batch: Batch, events: Sequence[WireEvent]) -> bool:
        """Return whether the file lacks the payloads that a batch of erasures names.

        A copy of the log that has the events from before keeps their payloads when it gets the
        batch. It has the oldest if it has any, so the first of each range suffices.
        """
        state = self._state
        for index, wire in enumerate(events):
            body = wire_event(batch, index, wire).body
            for first, _ in body.targets[:1] if isinstance(body, Erase) else ():
                if not 1 <= first < batch.first_seq:
                    return False
                target = next(state.reader.events(state.snapshot(), first, first))
                if target.payload_bytes is not None:
                    return False
        return True

    def _rebuilt_keys(self, flip: Flip, last: int) -> tuple[Ref, ...]:
        """Collect the keys of all events into one run, read from the events."""
        state = self._state
        events = state.reader.events(state.snapshot(), 1, last)
        entries = [entry for event in events for entry in key_entries([event])]
        return state.keys.extend((), entries, 1, last, flip)

    # --- repair ----------------------------------------------------------------------------------

    def catch_up(self, pages: bytes) -> None:
        """Read appended batches, and repair the remains of a crashed writer."""
        state = self._state
        if pages != state.pages:
            _, bad = state.choose_page(pages)
            if bad:
                self._resettle()
                return
        news = state.look_on(pages)
        state.take_in(pages, news)
        if news.end in (End.TORN, End.BAD, End.UNLINKED):
            self._resettle()

    def _resettle(self) -> None:
        """Examine the file from scratch and repair it, as an opener would."""
        state = self._state
        log_file = state.log_file
        state.pages = log_file.read_pages()
        page, bad = choose_page(state.pages, log_file.path)
        recovered = examine(log_file, page, bad, search=bool(bad), alone=False)
        if recovered.damage is None:
            state.check_forward(recovered.cursor)
        self.settle(recovered, alone=False)

    def settle(self, recovered: RecoveredState, *, alone: bool) -> None:
        """Make the recovered state durable, repair the rest, and set ``report``.

        Events after the proven seq are sealed into a new extent: a plain sync does not suffice,
        since an earlier failed sync may have marked their pages clean. For the same reason, the
        extents of an adopted footer are written again. An unconnected rest is cut and quarantined.

        Raises:
            Corrupt: acknowledged events are unreadable; nothing was written.
            Unsupported: a newer Cerata left data that this version would undo; nothing was written.
        """
        state = self._state
        log_file = state.log_file
        reader = state.reader
        check_writable(recovered.page, log_file.path)
        if recovered.damage is not None:
            raise recovered.damage
        report = recovered.report
        size = log_file.file.size()
        spills = [spill_end(batch.spill) for batch in recovered.batches if batch.spill]
        named_end = max([recovered.page.data_end, *spills])
        if alone and size > named_end:
            # No other process has the file, and nothing references these bytes: a crashed writer's
            # orphans.
            log_file.file.set_size(named_end)
            report = replace(report, trimmed_bytes=size - named_end)
        if alone and report.adopted_footer:
            log_file.write_again(recovered.named_end, recovered.page.data_end)
        toc = recovered.toc or reader.toc(recovered.page)
        rebuilt = reader.rebuilt
        report = replace(report, rebuilt_toc=rebuilt)
        reader.remember_toc(recovered.page, toc)
        state.cursor = recovered.cursor
        state.tail = recovered.batches
        state.durable = recovered.proven
        state.page = replace(recovered.page, moved=False)
        if recovered.behind:
            # A crash came between a mark and its witnesses or tore a witness, or damage did.
            log_file.write_witnesses(recovered.page, recovered.proven, recovered.behind)
        unproven = recovered.head_seq > recovered.proven
        damaged = report.cut_bytes or report.bad_pages or report.adopted_footer or rebuilt
        if unproven or recovered.page.moved or damaged:
            report = replace(report, sealed_events=recovered.head_seq - recovered.page.sealed_seq)
            self.flip(cut=recovered if report.cut_bytes else None)
        else:
            self._mark = self._last_mark()
            if recovered.behind:
                self.sync()
        self.report = report
