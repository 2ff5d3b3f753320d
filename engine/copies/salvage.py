"""Salvage: reading the intact events of a damaged file, without writing.

Owns the state of a damaged file opened with ``salvage=True`` (the longest readable prefix; lost
header pages and a lost TOC are searched by their magic), and the walk over every event that is
still readable, past the holes. A lost event shows as a missing seq.
"""

from collections.abc import Iterator

import msgspec
from msgspec.structs import replace

from ..codec import Batch, decode_content
from ..disk.storage import StorageFile
from ..errors import Corrupt, Unsupported
from ..events import Event
from ..format.checksums import file_key
from ..format.extent import ExtentHeader
from ..format.footer import FOOTER_MAGIC, FOOTER_SIZE, decode_footer, stored_toc_size, toc_is_whole
from ..format.page import RING_OFFSET, HeaderPage, is_plausible
from ..format.record import RECORD_HEADER_SIZE, RECORD_PREFIX_SIZE, decode_record_header, sectors
from ..format.toc import Ref, Toc, decode_toc
from ..integrity import Tree, chain_start
from ..limits import PAGE_SIZE, SECTOR_SIZE
from ..log import Log
from ..log_file.file import LogFile, check_readable
from ..log_file.newest_events import with_newest
from ..log_file.recovery import (
    RecoveredState,
    RecoveryReport,
    examine,
    find_segments,
    is_ring_left,
    sectors_with,
    spill_end,
)
from ..log_file.ring import Cursor, look_beyond, walk
from ..segments.reader import wire_event
from ..segments.segment_reader import Segment


def page_from_footer(file: StorageFile, path: str) -> HeaderPage | None:
    """Find the newest footer whose TOC is whole, and build a header page from the two.

    The TOC has the file id that keys every check, so no header page is needed. If that flip moved
    the ring, and the ring before holds later events, the flip was never published: the footer
    before counts.

    Raises:
        Unsupported: the TOC names a feature that this Cerata does not know.
    """
    pages = _pages_from_footers(file, path)
    newest = next(pages, None)
    if newest is None or newest.ring_offset == RING_OFFSET:
        return newest
    before = next((page for page in pages if page.ring_offset != newest.ring_offset), None)
    if before is None or before.file_id != newest.file_id:
        return newest
    log_file = LogFile(file, path, before.file_id)
    return newest if is_ring_left(log_file, before, newest.sealed_seq) else before


def _pages_from_footers(file: StorageFile, path: str) -> Iterator[HeaderPage]:
    """Yield the pages of the whole footers, newest first."""
    for offset in reversed(sectors_with(file, FOOTER_MAGIC, 2 * PAGE_SIZE, file.size())):
        data = file.read_at(offset, FOOTER_SIZE)
        toc_size = stored_toc_size(data)
        if toc_size is None or sectors(toc_size) > offset:
            continue
        stored = file.read_at(offset - sectors(toc_size), toc_size)
        try:
            toc = decode_toc(stored, offset)
        except (Corrupt, Unsupported):
            # These bytes only look like a footer; a whole footer would identify the file.
            continue
        key = file_key(toc.file_id)
        footer = decode_footer(key, offset, data)
        if footer is not None and toc_is_whole(key, footer, stored):
            page = HeaderPage(
                number=0,
                file_id=toc.file_id,
                log_id=toc.log_id,
                flip=0,
                generation=toc.generation,
                toc_offset=footer.toc_offset,
                toc_size=footer.toc_size,
                data_end=footer.end,
                ring_offset=toc.ring_offset,
                ring_size=toc.ring_size,
                ring_start=toc.ring_start,
                sealed_seq=toc.sealed_seq,
                link=toc.link,
                recorded=toc.recorded,
                created=toc.created,
                incarnation=toc.incarnation,
                read_features=toc.read_features,
                write_features=toc.write_features,
            )
            check_readable(page.read_features, path)
            if is_plausible(page):
                yield page


def examine_damaged(
    log_file: LogFile, page: HeaderPage, bad_pages: tuple[int, ...]
) -> RecoveredState:
    """Return the longest prefix that the file still proves; ``damage`` is the damage after it."""
    try:
        state = examine(log_file, page, bad_pages, search=bool(bad_pages), alone=False)
        if state.toc is None:
            log_file.read_toc(state.page)
    except Corrupt as damage:
        return _longest_prefix(log_file, page, bad_pages, damage)
    return _before_lost_spill(log_file, state)


def _before_lost_spill(log_file: LogFile, state: RecoveredState) -> RecoveredState:
    """End the tail before the first large batch whose extent is past the file's end."""
    size = log_file.file.size()
    for number, batch in enumerate(state.batches):
        if batch.spill is not None and spill_end(batch.spill) > size:
            cursor = msgspec.structs.replace(state.cursor, next_seq=batch.first_seq)
            return replace(
                state, batches=state.batches[:number], cursor=cursor, proven=batch.first_seq - 1
            )
    return state


def _longest_prefix(
    log_file: LogFile, page: HeaderPage, bad_pages: tuple[int, ...], damage: Corrupt
) -> RecoveredState:
    chosen: list[Ref] = []
    for ref in _segments_by_scan(log_file, page):
        if ref.first_seq != (chosen[-1].last_seq + 1 if chosen else 1):
            break
        try:
            log_file.segment(ref.offset, ref.length)
        except Corrupt:
            break
        chosen.append(ref)
    sealed = chosen[-1].last_seq if chosen else 0
    chain = chain_start(page.log_id)
    tree = Tree()
    if chosen:
        index = log_file.segment(chosen[-1].offset, chosen[-1].length).index
        chain = index.chain
        tree = Tree(sealed, tuple(index.peaks))
    left = replace(page, sealed_seq=sealed)
    toc = with_newest(Toc.of_page(left, chain, tree, chosen), log_file, chosen)
    # The ring continues the sealed events: after a hole it does not connect.
    at_start = Cursor.at_start(left if sealed == page.sealed_seq else page)
    result = walk(log_file.file.read_at, log_file.key, page, at_start)
    joined = sealed == page.sealed_seq
    cursor = result.cursor if joined else Cursor.at_start(left)
    batches = result.batches if joined else []
    report = RecoveryReport(bad_pages=bad_pages, rebuilt_toc=True)
    proven = cursor.next_seq - 1
    left_over = RecoveredState(left, toc, batches, cursor, result.end, [], proven, damage, report)
    return _before_lost_spill(log_file, left_over)


def _segments_by_scan(log_file: LogFile, page: HeaderPage) -> list[Ref]:
    """Find the segments without a TOC, in seq order.

    Of two that overlap, the later in the file counts: a crashed flip leaves an unreferenced
    segment, which lies before the segments of later flips.
    """
    chosen: list[ExtentHeader] = []
    for header in reversed(find_segments(log_file, log_file.file.size())):
        overlaps = any(
            header.first_seq <= newer.last_seq and newer.first_seq <= header.last_seq
            for newer in chosen
        )
        if header.last_seq <= page.sealed_seq and not overlaps:
            chosen.append(header)
    chosen.sort(key=lambda header: header.first_seq)
    return [Ref(row.offset, row.length, row.first_seq, row.last_seq) for row in chosen]


def salvaged_events(log: Log) -> Iterator[Event]:
    """Yield every event that is still readable, in seq order, past any hole.

    With ``salvage=True`` at opening, `Log.read` raises at the first hole.
    """
    return _salvaged_events(log, log.snapshot.page)


def _salvaged_events(log: Log, page: HeaderPage) -> Iterator[Event]:
    log_file = log.file
    last = 0
    # The page of a salvaged handle ends at its prefix; the stored page names the rest.
    stored = log.stored_page
    for ref in _segments(log, stored):
        if ref.first_seq > last:
            yield from _readable(log_file, ref)
            last = ref.last_seq
    for batch in _ring_batches(log_file, stored):
        if batch.first_seq > max(last, page.sealed_seq):
            yield from _batch_events(log_file, batch)
            last = batch.last_seq


def _segments(log: Log, stored: HeaderPage) -> list[Ref]:
    log_file = log.file
    try:
        toc = log_file.read_toc(stored)
        return list(toc.segments.walk(log_file.manifest))
    except Corrupt:
        return _segments_by_scan(log_file, stored)


def _readable(log_file: LogFile, ref: Ref) -> Iterator[Event]:
    """Yield a segment's readable events; damage to a block costs the block."""
    try:
        segment = log_file.segment(ref.offset, ref.length)
    except Corrupt:
        return
    for number, row in enumerate(segment.index.batches):
        first_seq = ref.first_seq + segment.batch_first(number)
        source = segment
        base = segment.own_first(number)
        if row.spill is not None:
            try:
                source = log_file.segment(row.spill.offset, row.spill.length)
            except Corrupt:
                continue
            base = 0
        batch = Batch(first_seq, row.count, row.recorded, row.clock, (), row.spill)
        yield from _each(source, base, batch)


def _each(source: Segment, base: int, batch: Batch) -> Iterator[Event]:
    for index in range(batch.count):
        try:
            [wire] = source.events_at([base + index])
        except Corrupt:
            continue
        yield wire_event(batch, index, wire)


def _ring_batches(log_file: LogFile, page: HeaderPage) -> Iterator[Batch]:
    """Yield the ring's batches: the connected batches, then every valid batch beyond."""
    read = log_file.file.read_at
    key = log_file.key
    result = walk(read, key, page, Cursor.at_start(page))
    yield from result.batches
    for record in look_beyond(log_file.file, key, page, result.cursor):
        header = decode_record_header(key, record.offset, read(record.offset, SECTOR_SIZE))
        if header is None or record.count == 0:
            continue
        body = read(record.offset + RECORD_HEADER_SIZE, header.length)
        try:
            yield decode_content(
                record.first_seq, record.count, body[RECORD_PREFIX_SIZE:], record.offset
            )
        except Corrupt:
            continue


def _batch_events(log_file: LogFile, batch: Batch) -> Iterator[Event]:
    if batch.spill is None:
        for index, wire in enumerate(batch.events):
            yield wire_event(batch, index, wire)
        return
    try:
        source = log_file.segment(batch.spill.offset, batch.spill.length)
    except Corrupt:
        return
    yield from _each(source, 0, batch)
