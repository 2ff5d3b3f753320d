"""Position: what one handle has taken in of one file, and how it follows what others append.

Owns the state between a handle and its file: the header page it goes by, the cursor in the ring,
the batches since the sealed seq, and how much of them is known to be durable. Reads, never
writes: `writer` adds to it, `log` decides when and under which lock.
"""

from collections.abc import Iterator

import msgspec

from .codec import Batch
from .errors import Corrupt
from .events import Event
from .file import LogFile, choose_page
from .format.page import HeaderPage
from .format.record import EMPTY_SECTOR
from .idempotency import KeyIndex
from .limits import SECTOR_SIZE
from .reader import Reader, Snapshot
from .recovery import Found
from .ring import Cursor, End, walk


class Position:
    """One handle's place in one file. Called under the handle's mutex.

    Invariants:
    - ``cursor`` stands after the last record taken in; ``tail`` holds the batches since the
      sealed seq, in order and without a gap;
    - ``durable`` never exceeds what a successful sync, a page or a record has proven.
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

    def enter(self, log_file: LogFile, page: HeaderPage) -> None:
        """Go over to the file that took this one's place; the log is the same."""
        # All that can fail comes first: half of a move would be neither file.
        reader, keys, identity = Reader(log_file), KeyIndex(log_file), log_file.file.identity()
        cursor = Cursor.at_start(page)
        self.log_file, self.reader, self.keys, self.identity = log_file, reader, keys, identity
        self.page, self.cursor, self.tail, self.pages = page, cursor, [], b""

    # --- following others ------------------------------------------------------------------------

    def is_current(self, pages: bytes) -> bool:
        """Whether nobody turned a page or wrote a record since we looked."""
        if pages != self.pages:
            return False
        return self.log_file.file.read_at(self.cursor.offset, SECTOR_SIZE) == EMPTY_SECTOR

    def look_on(self, pages: bytes) -> "Seen":
        """Read on from where this handle is; changes nothing."""
        page, cursor, tail = self.page, self.cursor, self.tail
        if pages != self.pages:
            page, _ = choose_page(pages, self.log_file.path)
            if _ring_state(page) != _ring_state(self.page):
                cursor, tail = Cursor.at_start(page), []
        read = self.log_file.file.read_at
        if read(cursor.offset, SECTOR_SIZE) == EMPTY_SECTOR:
            return Seen(page, cursor, tail, [], End.EMPTY)
        found = walk(read, self.log_file.key, page, cursor)
        return Seen(page, found.cursor, tail, found.batches, found.end)

    def take_in(self, pages: bytes, seen: "Seen") -> None:
        """Make what `look_on` read part of this position.

        Raises:
            Corrupt: the file no longer holds what this handle knows to be durable.
        """
        self.check_forward(seen.cursor)
        self.pages = pages
        self.page = seen.page
        self.cursor = seen.cursor
        if seen.tail is not self.tail:
            self.tail = seen.tail
        self.tail.extend(seen.batches)
        self.durable = max(self.durable, seen.page.sealed_seq, seen.cursor.durable_through)
        # Under an integer policy our own unsynced events may be shown, another process's not.
        self.shows_foreign |= bool(seen.batches) and self.head_seq > self.durable

    def check_forward(self, cursor: Cursor) -> None:
        """Refuse a file that no longer holds what this handle knows or has shown."""
        known = max(self.durable, self.shown)
        if cursor.next_seq <= known:
            raise Corrupt(
                f"The log went back from event {known:,} to {cursor.next_seq - 1:,}",
                where=self.log_file.path,
                remedy="The file was damaged, replaced or restored while open; open it again.",
            )


def _ring_state(page: HeaderPage) -> tuple[int, int, int]:
    """What of a page makes a place in the ring mean something else when it changes."""
    return page.sealed_seq, page.ring_start, page.incarnation


class Seen(msgspec.Struct, frozen=True):
    """What looking on found: the tail to extend, the batches to extend it with, and the end."""

    page: HeaderPage
    cursor: Cursor
    tail: list[Batch]
    batches: list[Batch]
    end: End
