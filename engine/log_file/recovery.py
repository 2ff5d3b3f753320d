"""Recovery: from the bytes of a file to the state that they prove, and the treatment of the rest.

Owns the decision table (docs/reliability.md): the choice of header page or footer, the ring records
that belong to the log, and the verdict on an unreadable rest: a torn tail (cut, quarantined,
reported) or damage to acknowledged data (`Corrupt`). `examine` only reads; `Writer.settle` makes
its result durable under the writer lock.
"""

import msgspec
from msgspec.structs import replace

from ..codec import Batch, SpillRef
from ..disk.storage import StorageFile
from ..errors import Corrupt
from ..format.extent import (
    EXTENT_HEADER_SIZE,
    EXTENT_MAGIC,
    ExtentHeader,
    ExtentKind,
    decode_extent_header,
    extent_is_whole,
    extent_size,
)
from ..format.footer import FOOTER_MAGIC, FOOTER_SIZE, Footer, decode_footer, toc_is_whole
from ..format.page import HeaderPage, is_plausible
from ..format.record import decode_record_header, sectors
from ..format.toc import Ref, Toc, decode_toc
from ..integrity import Tree, chain_start
from ..limits import SECTOR_SIZE
from .file import PAGES_SIZE, LogFile, check_readable
from .newest_events import with_newest
from .ring import Beyond, Cursor, End, Read, look_beyond, walk


class RecoveryReport(msgspec.Struct, frozen=True):
    """The findings and repairs of opening; all zero after a clean close, except ``trimmed_bytes``.

    ``ambiguous_tail``: the cut bytes may hold the last acknowledged but unproven group, since a
    torn write and later damage to such a group look the same. ``cut_offset`` is their place.
    ``bad_witnesses``: the numbers of the witnesses that do not verify. A crash can tear a witness;
    damage that extends from the newest batches to a witness looks the same.
    """

    alone: bool = False
    bad_pages: tuple[int, ...] = ()
    bad_witnesses: tuple[int, ...] = ()
    adopted_footer: bool = False
    rebuilt_toc: bool = False
    sealed_events: int = 0
    cut_bytes: int = 0
    cut_records: int = 0
    cut_offset: int | None = None
    ambiguous_tail: bool = False
    trimmed_bytes: int = 0

    @property
    def is_clean(self) -> bool:
        """True if nothing was recovered; trimming unreferenced bytes does not count."""
        return self == RecoveryReport(alone=self.alone, trimmed_bytes=self.trimmed_bytes)


class RecoveredState(msgspec.Struct, frozen=True):
    """The state that a file proves, before any write.

    ``damage`` is set if acknowledged events are unreadable: the state then ends before them.
    ``named_end`` is the data end that a header page names: beyond it a footer was adopted.
    ``behind`` are the numbers of the witnesses that are damaged, or name less than ``proven``.
    """

    page: HeaderPage
    toc: Toc | None
    batches: list[Batch]
    cursor: Cursor
    end: End
    beyond: list[Beyond]
    proven: int
    damage: Corrupt | None
    report: RecoveryReport
    named_end: int = 0
    behind: tuple[int, ...] = ()

    @property
    def head_seq(self) -> int:
        return self.cursor.next_seq - 1


def examine(
    log_file: LogFile, page: HeaderPage, bad_pages: tuple[int, ...], *, search: bool, alone: bool
) -> RecoveredState:
    """Read the state that the file proves; writes nothing.

    ``search``: look for a footer newer than the header page; required of the only opener, and after
    a bad page.

    Raises:
        Corrupt: the file is shorter than its header names, or no TOC and ring fit together.
    """
    size = log_file.file.size()
    toc: Toc | None = None
    adopted = False
    named_end = page.data_end
    named_seq = page.named_seq
    if search:
        newer = _newest_footer(log_file, page, size)
        if newer is not None:
            page = newer[0]
            toc = newer[1]
            adopted = True
    if size < page.data_end:
        raise Corrupt(
            f"The file is {size:,} bytes; its header names {page.data_end:,}",
            offset=size,
            remedy="Restore a backup of the truncated file, "
            "or open it with OpenOptions(salvage=True).",
        )
    # Before the ring: each event that a witness names is in the ring by now, even if writers
    # append during the walk.
    witnesses = log_file.read_witnesses(page)
    named = [seq for seq in witnesses if seq is not None]
    read = log_file.file.read_at
    result = walk(read, log_file.key, page, Cursor.at_start(page))
    cursor = result.cursor
    head = cursor.next_seq - 1
    beyond, proven = _beyond(log_file, page, cursor, named)
    while head < proven:
        # A proven record precedes its proof on disk, but without the lock the walk may have passed
        # its place before the write. Only a hole that persists is damage.
        rest = walk(read, log_file.key, page, cursor)
        if rest.cursor.next_seq == cursor.next_seq:
            break
        result.batches.extend(rest.batches)
        result = replace(rest, batches=result.batches)
        cursor = result.cursor
        head = cursor.next_seq - 1
        beyond, proven = _beyond(log_file, page, cursor, named)
    damage = _lost_spill(result.batches, log_file.file)
    report = RecoveryReport(
        alone=alone,
        bad_pages=bad_pages,
        bad_witnesses=tuple(number for number in (0, 1) if witnesses[number] is None),
        adopted_footer=adopted,
    )
    if damage is not None:
        pass
    elif not named and head <= named_seq:
        # No crash leaves this: both witnesses are unsynced at once only while durable events follow
        # those that the header page names.
        damage = Corrupt(
            f"Both witnesses of the log's end are damaged, and no event follows event {head:,}: "
            "acknowledged events may be lost",
            offset=page.witness_offsets[0],
            remedy="Restore a backup, or copy the intact events into a new file with "
            "'cerata file doctor --repair --to NEW.cera --drop-damaged'.",
        )
    elif head < proven:
        damage = Corrupt(
            f"Events {head + 1:,} to {proven:,} were acknowledged and cannot be read: "
            f"event {head + 1:,} should start here, but the ring has {result.end.value}",
            offset=cursor.offset,
            remedy="Open it with OpenOptions(salvage=True) to read the intact events, "
            "or restore a backup.",
        )
    else:
        cut = _cut_size(read, log_file.key, page, cursor, result.end, beyond)
        if cut:
            report = replace(
                report,
                cut_bytes=cut,
                cut_records=len(beyond) + (result.end is End.TORN),
                cut_offset=cursor.offset,
                ambiguous_tail=True,
            )
    return RecoveredState(
        page,
        toc,
        result.batches,
        cursor,
        result.end,
        beyond,
        proven,
        damage,
        report,
        named_end,
        tuple(
            number
            for number, seq in enumerate(witnesses)
            if seq is None or (seq < proven > page.sealed_seq)
        ),
    )


def _beyond(
    log_file: LogFile, page: HeaderPage, cursor: Cursor, named: list[int]
) -> tuple[list[Beyond], int]:
    """Return the records beyond a cursor, and the last event that the file proves.

    ``named`` are the seqs that the witnesses, outside the ring, name. The search is needed even if
    an empty sector ends the log: a lost or zeroed record looks the same, and only later records
    reveal it.
    """
    beyond = look_beyond(log_file.file, log_file.key, page, cursor)
    claims = [cursor.durable_through, *(record.durable_through for record in beyond)]
    return beyond, max([*claims, *named, page.closed_seq])


def _lost_spill(batches: list[Batch], file: StorageFile) -> Corrupt | None:
    """Return an error if a large batch lies past the file's end.

    Must run after the ring was read: another process may write, and puts a large batch into the
    file before its record.
    """
    for batch in batches:
        if batch.spill is not None and spill_end(batch.spill) > (size := file.size()):
            return Corrupt(
                f"The file is {size:,} bytes; events {batch.first_seq:,} to {batch.last_seq:,} "
                f"start at offset {batch.spill.offset:,}",
                offset=size,
                remedy="Restore a backup of the truncated file, "
                "or open it with OpenOptions(salvage=True).",
            )
    return None


def spill_end(spill: SpillRef) -> int:
    """Return the offset past a large batch's extent."""
    return spill.offset + extent_size(spill.length)


def _cut_size(
    read: Read, key: bytes, page: HeaderPage, cursor: Cursor, end: End, beyond: list[Beyond]
) -> int:
    """Return the number of bytes after the cursor that belong to an unsynced group."""
    reach = 0
    if end in (End.TORN, End.BAD, End.UNLINKED):
        reach = SECTOR_SIZE
        header = decode_record_header(key, cursor.offset, read(cursor.offset, SECTOR_SIZE))
        if header is not None and cursor.offset + header.size <= page.ring_end:
            reach = header.size
    for record in beyond:
        ahead = (record.offset - cursor.offset) % page.ring_size
        reach = max(reach, ahead + SECTOR_SIZE)
    return min(reach, page.ring_size - cursor.used)


def read_cut(log_file: LogFile, recovered: RecoveredState) -> bytes:
    """Return the ring bytes that recovery will cut; wraps from the ring's end to its start."""
    page = recovered.page
    offset = recovered.cursor.offset
    size = recovered.report.cut_bytes
    first = min(size, page.ring_end - offset)
    read = log_file.file.read_at
    return read(offset, first) + read(page.ring_offset, size - first)


# --- looking for footers and extents -------------------------------------------------------------


def sectors_with(file: StorageFile, magic: bytes, start: int, stop: int) -> list[int]:
    """Return the offsets of the sectors that start with ``magic``."""
    word = int.from_bytes(magic, "little")
    return file.search(sectors(start), stop, word, word)


def _newest_footer(log_file: LogFile, page: HeaderPage, size: int) -> tuple[HeaderPage, Toc] | None:
    """Return the page and TOC of the last whole footer past the page's end.

    A footer that moves the ring does not count. Nothing is in its ring yet: a record goes to a new
    ring only when both header pages name the ring. But a process that joined before the flip died
    may have gone on in the old ring. A footer of another log does not count either: a flip died
    between the TOC and the page that give an empty log the id of the log that it copies.
    """
    footers = sectors_with(log_file.file, FOOTER_MAGIC, page.data_end, size)
    for offset in reversed(footers):
        footer = decode_footer(log_file.key, offset, log_file.file.read_at(offset, FOOTER_SIZE))
        if footer is None or footer.toc_offset < page.data_end:
            continue
        toc = _whole_toc(log_file, footer, page.data_end)
        if toc is None or toc.sealed_seq < page.sealed_seq or toc.log_id != page.log_id:
            continue
        if (toc.ring_offset, toc.ring_size) == (page.ring_offset, page.ring_size):
            newer = replace(
                page,
                generation=toc.generation,
                toc_offset=footer.toc_offset,
                toc_size=footer.toc_size,
                data_end=footer.end,
                ring_offset=toc.ring_offset,
                ring_size=toc.ring_size,
                ring_start=toc.ring_start,
                incarnation=toc.incarnation,
                sealed_seq=toc.sealed_seq,
                link=toc.link,
                recorded=toc.recorded,
                read_features=toc.read_features,
                write_features=toc.write_features,
            )
            check_readable(newer.read_features, log_file.path)
            if is_plausible(newer):
                return newer, toc
    return None


def is_ring_left(log_file: LogFile, page: HeaderPage, sealed_seq: int) -> bool:
    """Return whether a page's ring proves, holds or may have lost no event past ``sealed_seq``."""
    result = walk(log_file.file.read_at, log_file.key, page, Cursor.at_start(page))
    head = result.cursor.next_seq - 1
    named = [seq for seq in log_file.read_witnesses(page) if seq is not None]
    beyond, proven = _beyond(log_file, page, result.cursor, named)
    last = max([head, proven, *(record.first_seq + record.count - 1 for record in beyond)])
    is_torn = head == sealed_seq and result.end in (End.TORN, End.BAD, End.UNLINKED)
    return last <= sealed_seq and not is_torn


def _whole_toc(log_file: LogFile, footer: Footer, older_end: int) -> Toc | None:
    """Return the footer's TOC if it and every extent that it names past ``older_end`` verify."""
    data = log_file.file.read_at(footer.toc_offset, footer.toc_size)
    if not toc_is_whole(log_file.key, footer, data):
        return None
    toc = decode_toc(data, footer.toc_offset)
    pending = list(toc.references())
    while pending:
        ref = pending.pop()
        if ref.offset < older_end:
            continue
        header = _extent_at(log_file, ref.offset)
        if header is None or header.length != ref.length:
            return None
        if not extent_is_whole(log_file.key, log_file.file, header):
            return None
        if header.kind == ExtentKind.MANIFEST:
            # The same flip moved a full list out; its references are equally new.
            for page in log_file.pages(ref):
                pending += page
    return toc


def _extent_at(log_file: LogFile, offset: int) -> ExtentHeader | None:
    data = log_file.file.read_at(offset, EXTENT_HEADER_SIZE)
    return decode_extent_header(log_file.key, offset, data)


def find_segments(log_file: LogFile, stop: int) -> list[ExtentHeader]:
    """Return the headers of all segments before ``stop`` in file order, referenced or not."""
    return [
        header
        for offset in sectors_with(log_file.file, EXTENT_MAGIC, PAGES_SIZE, stop)
        if (header := _extent_at(log_file, offset)) is not None
        and header.kind == ExtentKind.SEGMENT
    ]


def rebuild_toc(log_file: LogFile, page: HeaderPage) -> Toc:
    """Rebuild a lost TOC from the segments, which describe themselves.

    Projections' checkpoints and the runs of idempotency keys are dropped: both are rebuilt from the
    events.

    Raises:
        Corrupt: the remaining segments do not cover every sealed event.
    """
    segments = find_segments(log_file, page.data_end)
    chosen: list[Ref] = []
    expected = page.sealed_seq
    limit = page.data_end
    while expected > 0:
        # Backwards, each time the last match before the previous segment: a crashed flip can leave
        # an unreferenced segment, which lies before its successors.
        best = next(
            (
                header
                for header in reversed(segments)
                if header.last_seq == expected
                and header.offset < limit
                and extent_is_whole(log_file.key, log_file.file, header)
            ),
            None,
        )
        if best is None:
            raise Corrupt(
                f"The TOC is lost, and no whole segment ends with event {expected:,}",
                offset=page.toc_offset,
                remedy="Restore a backup, "
                "or open it with OpenOptions(salvage=True) to read the intact events.",
            )
        chosen.append(Ref(best.offset, best.length, best.first_seq, best.last_seq))
        expected = best.first_seq - 1
        limit = best.offset
    chosen.reverse()
    chain = chain_start(page.log_id)
    tree = Tree()
    if chosen:
        last = log_file.segment(chosen[-1].offset, chosen[-1].length)
        chain = last.index.chain
        tree = Tree(page.sealed_seq, tuple(last.index.peaks))
    return with_newest(Toc.of_page(page, chain, tree, chosen), log_file, chosen)
