"""The part of a file that a handle has read, and how it follows appended records.

Owns the state between a handle and its file: the current header page, the cursor in the ring, the
batches since the sealed seq, and the seq through which they are durable. Reads, never writes:
`writer` adds to the state, `log` decides the time and the lock.
"""

from collections.abc import Iterator

import msgspec

from ..codec import Batch, SpillRef
from ..errors import Corrupt, Unsupported
from ..events import Event
from ..format.page import HeaderPage
from ..format.record import EMPTY_SECTOR, RECORD_HEADER_SIZE, stored_body_check
from ..limits import SECTOR_SIZE
from ..segments.reader import Reader, Snapshot
from ..segments.recent import RecentBatches
from .file import LogFile, choose_page, is_whole
from .idempotency import KeyIndex
from .recovery import RecoveredState, spill_end
from .ring import Cursor, End, walk

ASK = -1
"""In place of a witness's number: the older witness, to be determined from the file."""

_LOOK_BACK_MAX = 4096
"""Up to this size, the record before the cursor is read together with the sector after it."""


class LogState:
    """A handle's place in a file. Called under the handle's mutex.

    Invariants:
    - ``cursor`` follows the last record read; ``tail`` holds the batches since the sealed seq, in
      order and without a gap;
    - ``durable`` never exceeds the seq that a successful sync, a page or a record has proven;
    - ``next_witness`` is the number of the witness that the next record writes; `ASK` if another
      process may have written since; None before the first record, which writes both, since the
      disk may have lost an earlier process's writes to them.
    """

    def __init__(self, log_file: LogFile, pages: bytes, recovered: RecoveredState) -> None:
        self.log_file = log_file
        self.reader = Reader(log_file)
        self.keys = KeyIndex(log_file)
        self.identity = log_file.file.identity()
        self.pages = pages
        self.page: HeaderPage = recovered.page
        self.cursor: Cursor = recovered.cursor
        self.tail: list[Batch] = recovered.batches
        self.durable = self.shown = recovered.proven
        self.shows_foreign = False
        self.next_witness: int | None = None
        self.recent = RecentBatches(log_file.caches.recent)
        self._spills_end = 0
        for batch in recovered.batches:
            if batch.spill is not None:
                self._note_spill(batch.spill)
        if recovered.toc is not None:
            self.reader.remember_toc(recovered.page, recovered.toc)

    @property
    def head_seq(self) -> int:
        """Seq of the last event read."""
        return self.cursor.next_seq - 1

    @property
    def recorded(self) -> int:
        """Recorded time of the last event read, microseconds since 1970 UTC."""
        return self.tail[-1].recorded if self.tail else self.page.recorded

    def snapshot(self) -> Snapshot:
        """Return a snapshot of all events read; `tail` may grow beyond it."""
        tail, page = self.tail, self.page
        recorded = tail[-1].recorded if tail else page.recorded
        return Snapshot(self.reader, page, tail, len(tail), self.cursor.next_seq - 1, recorded)

    def durable_snapshot(self) -> Snapshot:
        """Return a snapshot of the durable events."""
        if self.head_seq <= self.durable:
            return self.snapshot()
        count = len(self.tail)
        while count and self.tail[count - 1].last_seq > self.durable:
            count -= 1
        if not count:
            page = self.page
            return Snapshot(self.reader, page, self.tail, 0, page.sealed_seq, page.recorded)
        last = self.tail[count - 1]
        return Snapshot(self.reader, self.page, self.tail, count, last.last_seq, last.recorded)

    def events(self, first: int) -> Iterator[Event]:
        """Yield the events read, from ``first`` on; readers may not see all of them yet."""
        return self.reader.events(self.snapshot(), first, self.head_seq)

    def forget(self, page: HeaderPage) -> None:
        """Start again from a header page, as after an interrupt between two steps."""
        cursor = Cursor.at_start(page)
        self.page, self.cursor, self.tail, self.pages = page, cursor, [], b""
        self.next_witness = None
        self.recent.clear()

    def add(self, batch: Batch) -> None:
        """Add a batch that this handle wrote or read."""
        self.tail.append(batch)
        if batch.spill is not None:
            self._note_spill(batch.spill)

    def _note_spill(self, spill: SpillRef) -> None:
        self._spills_end = max(self._spills_end, spill_end(spill))

    def enter(self, log_file: LogFile, page: HeaderPage) -> None:
        """Switch to the file that replaced this file; the log is the same."""
        # Calls that can fail come first: a partial switch would leave a mix of two files.
        reader = Reader(log_file)
        keys = KeyIndex(log_file)
        identity = log_file.file.identity()
        cursor = Cursor.at_start(page)
        self.log_file, self.reader, self.keys, self.identity = log_file, reader, keys, identity
        self.page, self.cursor, self.tail, self.pages = page, cursor, [], b""
        self.next_witness, self._spills_end = None, 0
        self.recent.clear()

    # --- following other writers -----------------------------------------------------------------

    def is_current(self) -> bool:
        """Return whether the file is unchanged: no new page, no record written or lost, no move.

        Raises:
            Corrupt: the file was cut short.
        """
        # A file shorter than the structures that this handle has read was cut. Not by `size`: on
        # Linux, a status call makes the next write update the file's times, which cost a durable
        # append 100 us.
        file = self.log_file.file
        end = max(self.page.data_end, self._spills_end)
        if not file.read_at(end - 1, 1):
            raise self._changed(f"It is {file.size():,} bytes; {end:,} are in use")
        pages = self.log_file.read_turned(self.pages)
        if pages != self.pages or self.page.moved:
            return False
        return self._look(self.cursor) == (EMPTY_SECTOR, True)

    def _look(self, cursor: Cursor) -> tuple[bytes, bool]:
        """Return the sector at a cursor, and whether the record before it is unchanged.

        An older copy of the file lacks that record, or has another record in its place.
        """
        read = self.log_file.file.read_at
        size = cursor.offset - cursor.last
        if not cursor.last:
            return read(cursor.offset, SECTOR_SIZE), True
        if 0 < size <= _LOOK_BACK_MAX:
            data = read(cursor.last, size + SECTOR_SIZE)
            return data[size:], stored_body_check(data) == cursor.link
        # The record is large, or the ring's end lies between.
        header = read(cursor.last, RECORD_HEADER_SIZE)
        return read(cursor.offset, SECTOR_SIZE), stored_body_check(header) == cursor.link

    def choose_page(self, pages: bytes) -> tuple[HeaderPage, tuple[int, ...]]:
        """Return the newest valid header page and the numbers of the bad pages.

        Raises:
            Corrupt: the pages are not those of the opened file.
            Unsupported: a newer Cerata wrote them.
        """
        try:
            page, bad = choose_page(pages, self.log_file.path)
        except Unsupported:
            if is_whole(pages):
                raise
            raise self._changed("Its header pages are gone") from None
        if page.file_id != self.page.file_id:
            raise self._changed("It holds another file")
        return page, bad

    def look_on(self, pages: bytes) -> "TailUpdate":
        """Read on from this state without changing it. Raises the errors of `choose_page`."""
        page = self.page
        cursor = self.cursor
        tail = self.tail
        follows = True
        if pages != self.pages:
            page, bad = self.choose_page(pages)
            # The page beside a bad page is an older page; each new page has a higher flip.
            follows = bool(bad) or page.flip > self.page.flip or page == self.page
            if _ring_state(page) != _ring_state(self.page):
                cursor = Cursor.at_start(page)
                tail = []
        sector, is_unchanged = self._look(cursor)
        follows &= is_unchanged
        if sector == EMPTY_SECTOR:
            return TailUpdate(page, cursor, tail, [], End.EMPTY, follows)
        result = walk(self.log_file.file.read_at, self.log_file.key, page, cursor)
        return TailUpdate(page, result.cursor, tail, result.batches, result.end, follows)

    def take_in(self, pages: bytes, update: "TailUpdate") -> None:
        """Make the result of `look_on` part of this state.

        Raises:
            Corrupt: the file no longer holds events that this handle knows to be durable.
        """
        if not update.follows:
            raise self._changed(f"It no longer holds event {self.head_seq:,} as it was read")
        self.check_forward(update.cursor)
        if pages != self.pages or update.cursor != self.cursor:
            self.next_witness = None if self.next_witness is None else ASK
        self.pages = pages
        self.page = update.page
        self.cursor = update.cursor
        if update.tail is not self.tail:
            self.tail = update.tail
        for batch in update.batches:
            self.add(batch)
        self.durable = max(self.durable, update.page.sealed_seq, update.cursor.durable_through)
        # An integer policy shows unsynced events of this handle, but not of another process.
        self.shows_foreign |= bool(update.batches) and self.head_seq > self.durable

    def check_forward(self, cursor: Cursor) -> None:
        """Refuse a file that lacks events that this handle has shown or knows to be durable."""
        reached = max(self.durable, self.shown)
        if cursor.next_seq <= reached:
            raise self._changed(
                f"The log went back from event {reached:,} to {cursor.next_seq - 1:,}"
            )

    def _changed(self, how: str) -> Corrupt:
        return Corrupt(
            f"The file was cut short, overwritten or restored while it was open. {how}",
            where=self.log_file.path,
            remedy="Open it again, and compare its head with the acknowledged events.",
        )


def _ring_state(page: HeaderPage) -> tuple[int, int, int]:
    """Return the fields of a page that give a place in the ring its meaning."""
    return page.sealed_seq, page.ring_start, page.incarnation


class TailUpdate(msgspec.Struct, frozen=True):
    """The result of reading on: the tail to extend, the batches to add, and the end.

    ``follows``: the file continues the state that this handle had read.
    """

    page: HeaderPage
    cursor: Cursor
    tail: list[Batch]
    batches: list[Batch]
    end: End
    follows: bool
