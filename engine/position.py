"""Position: what one handle has taken in of one file, and how it follows what others append.

Owns the state between a handle and its file: the header page it goes by, the cursor in the ring,
the batches since the sealed seq, and how much of them is known to be durable. Reads, never
writes: `writer` adds to it, `log` decides when and under which lock.
"""

from collections.abc import Iterator

import msgspec

from .codec import Batch
from .errors import Corrupt, Unsupported
from .events import Event
from .file import LogFile, choose_page, is_whole
from .format.page import HeaderPage
from .format.record import EMPTY_SECTOR, RECORD_HEADER_SIZE, stored_body_check
from .idempotency import KeyIndex
from .limits import SECTOR_SIZE
from .reader import Reader, Snapshot
from .recovery import Found, spill_end
from .ring import Cursor, End, walk

ASK = -1
"""In place of a witness's number: the older one, as the file has them."""

_LOOK_BACK_MAX = 4096
"""A record before the cursor of up to this many bytes is read together with what follows it."""


class Position:
    """One handle's place in one file. Called under the handle's mutex.

    Invariants:
    - ``cursor`` stands after the last record taken in; ``tail`` holds the batches since the
      sealed seq, in order and without a gap;
    - ``durable`` never exceeds what a successful sync, a page or a record has proven;
    - ``next_witness`` is the one of the two that the next record writes: `ASK` if others may have
      written since, None before the first one: then it writes both, since the disk may have
      refused what an earlier process left in them.
    """

    def __init__(self, log_file: LogFile, pages: bytes, found: Found) -> None:
        self.log_file = log_file
        self.reader = Reader(log_file)
        self.keys = KeyIndex(log_file)
        self.identity = log_file.file.identity()
        self.pages = pages
        self.page: HeaderPage = found.page
        self.cursor: Cursor = found.cursor
        self.tail: list[Batch] = found.batches
        self.durable = self.shown = found.proven
        self.shows_foreign = False
        self.next_witness: int | None = None
        self._spills_end = 0
        for batch in found.batches:
            self._note_spill(batch)
        if found.toc is not None:
            self.reader.remember_toc(found.page, found.toc)

    @property
    def head_seq(self) -> int:
        """Seq of the last event taken in."""
        return self.cursor.next_seq - 1

    @property
    def recorded(self) -> int:
        """Recorded time of the last event taken in, microseconds since 1970 UTC."""
        return self.tail[-1].recorded if self.tail else self.page.recorded

    def snapshot(self) -> Snapshot:
        """Return a picture of everything taken in; `tail` may grow behind it."""
        return Snapshot(self.page, self.tail, len(self.tail), self.head_seq, self.recorded)

    def durable_snapshot(self) -> Snapshot:
        """Return a picture of what is known to be durable."""
        if self.head_seq <= self.durable:
            return self.snapshot()
        count = len(self.tail)
        while count and self.tail[count - 1].last_seq > self.durable:
            count -= 1
        if not count:
            page = self.page
            return Snapshot(page, self.tail, 0, page.sealed_seq, page.recorded)
        last = self.tail[count - 1]
        return Snapshot(self.page, self.tail, count, last.last_seq, last.recorded)

    def events(self, first: int) -> Iterator[Event]:
        """Yield the events taken in from ``first`` on; readers may not see all of them yet."""
        return self.reader.events(self.snapshot(), first, self.head_seq)

    def forget(self, page: HeaderPage) -> None:
        """Start again from a header page, as after an interrupt between two steps."""
        cursor = Cursor.at_start(page)
        self.page, self.cursor, self.tail, self.pages = page, cursor, [], b""
        self.next_witness = None

    def add(self, batch: Batch) -> None:
        """Take in a batch that this handle wrote."""
        self.tail.append(batch)
        self._note_spill(batch)

    def _note_spill(self, batch: Batch) -> None:
        if batch.spill is not None:
            self._spills_end = max(self._spills_end, spill_end(batch.spill))

    def enter(self, log_file: LogFile, page: HeaderPage) -> None:
        """Go over to the file that took this one's place; the log is the same."""
        # All that can fail comes first: half of a move would be neither file.
        reader, keys, identity = Reader(log_file), KeyIndex(log_file), log_file.file.identity()
        cursor = Cursor.at_start(page)
        self.log_file, self.reader, self.keys, self.identity = log_file, reader, keys, identity
        self.page, self.cursor, self.tail, self.pages = page, cursor, [], b""
        self.next_witness, self._spills_end = None, 0

    # --- following others ------------------------------------------------------------------------

    def is_current(self, pages: bytes) -> bool:
        """Whether the file is as this handle left it: no page turned, no record written or lost."""
        return pages == self.pages and self._look(self.cursor) == (EMPTY_SECTOR, True)

    def _look(self, cursor: Cursor) -> tuple[bytes, bool]:
        """Return the sector at a cursor, and whether the record before it still stands there.

        An older copy of the file lacks that record, or holds another one in its place.
        """
        read, size = self.log_file.file.read_at, cursor.offset - cursor.last
        if not cursor.last:
            return read(cursor.offset, SECTOR_SIZE), True
        if 0 < size <= _LOOK_BACK_MAX:
            data = read(cursor.last, size + SECTOR_SIZE)
            return data[size:], stored_body_check(data) == cursor.link
        # It is large, or the ring's end lies between.
        header = read(cursor.last, RECORD_HEADER_SIZE)
        return read(cursor.offset, SECTOR_SIZE), stored_body_check(header) == cursor.link

    def choose_page(self, pages: bytes) -> tuple[HeaderPage, tuple[int, ...]]:
        """Return the newest valid header page and the numbers of the bad ones.

        Raises:
            Corrupt: the pages are not those of the file that was opened.
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

    def check_size(self) -> None:
        """Refuse a file that ends before what this handle knows to be in it."""
        file, end = self.log_file.file, max(self.page.data_end, self._spills_end)
        # Not by `size`: on Linux a file that was asked for its status updates its times with each
        # write after it, which took a durable append 100 us more.
        if not file.read_at(end - 1, 1):
            raise self._changed(f"It is {file.size():,} bytes; {end:,} are in use")

    def look_on(self, pages: bytes) -> "Seen":
        """Read on from where this handle is; changes nothing. Raises what `choose_page` does."""
        page, cursor, tail, follows = self.page, self.cursor, self.tail, True
        if pages != self.pages:
            page, bad = self.choose_page(pages)
            # Beside a bad page stands an older one; each page that is turned has a higher flip.
            follows = bool(bad) or page.flip > self.page.flip or page == self.page
            if _ring_state(page) != _ring_state(self.page):
                cursor, tail = Cursor.at_start(page), []
        sector, stands = self._look(cursor)
        follows &= stands
        if sector == EMPTY_SECTOR:
            return Seen(page, cursor, tail, [], End.EMPTY, follows)
        found = walk(self.log_file.file.read_at, self.log_file.key, page, cursor)
        return Seen(page, found.cursor, tail, found.batches, found.end, follows)

    def take_in(self, pages: bytes, seen: "Seen") -> None:
        """Make what `look_on` read part of this position.

        Raises:
            Corrupt: the file no longer holds what this handle knows to be durable.
        """
        if not seen.follows:
            raise self._changed(f"It no longer holds event {self.head_seq:,} as it was read")
        self.check_forward(seen.cursor)
        if pages != self.pages or seen.cursor != self.cursor:
            self.next_witness = None if self.next_witness is None else ASK
        self.pages = pages
        self.page = seen.page
        self.cursor = seen.cursor
        if seen.tail is not self.tail:
            self.tail = seen.tail
        for batch in seen.batches:
            self.add(batch)
        self.durable = max(self.durable, seen.page.sealed_seq, seen.cursor.durable_through)
        # Under an integer policy our own unsynced events may be shown, another process's not.
        self.shows_foreign |= bool(seen.batches) and self.head_seq > self.durable

    def check_forward(self, cursor: Cursor) -> None:
        """Refuse a file that no longer holds what this handle knows or has shown."""
        known = max(self.durable, self.shown)
        if cursor.next_seq <= known:
            raise self._changed(
                f"The log went back from event {known:,} to {cursor.next_seq - 1:,}"
            )

    def _changed(self, how: str) -> Corrupt:
        return Corrupt(
            f"The file was cut short, overwritten or restored while it was open. {how}",
            where=self.log_file.path,
            remedy="Open it again, and compare its head with what was acknowledged.",
        )


def _ring_state(page: HeaderPage) -> tuple[int, int, int]:
    """What of a page makes a place in the ring mean something else when it changes."""
    return page.sealed_seq, page.ring_start, page.incarnation


class Seen(msgspec.Struct, frozen=True):
    """What looking on found: the tail to extend, the batches to extend it with, and the end.

    ``follows``: the file goes on from what this handle had taken in.
    """

    page: HeaderPage
    cursor: Cursor
    tail: list[Batch]
    batches: list[Batch]
    end: End
    follows: bool
