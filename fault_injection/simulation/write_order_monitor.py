"""Checks the order of writes and syncs, without any crash, and raises at the first violation.

Wraps any `Storage`, real or simulated, at the cost of a few comparisons a write; reads pass through
untouched. The assertions, at every write and every acknowledgement:

- pages: a header page is written only when everything before it is synced;
- two pages: the two header pages are never both unsynced;
- settled: no byte below the data end of a synced header page is changed or cut, except in the
  header pages and the ring;
- ring: no sector of the ring that holds a synced record is changed, until a synced header page
  shows that its events are sealed;
- witness: a witness names no batch whose record is not synced;
- acknowledged: an acknowledgement comes only after a sync that covers it.

The idea is that of SQLite's journal-test VFS, and of the pre-conditions on writes in PoWER (OSDI
2025). A `Geometry` decodes the header pages, so the monitor knows no format. A file that never had
a synced header page is still being created and may be written in any order.
"""

import itertools
import threading
from dataclasses import dataclass, replace
from typing import Literal, Protocol

from cerata.engine.disk.storage import Buffer, Identity, LockName, Storage, StorageFile
from cerata.engine.disk.watch import Watch

from ..crash_states.operations import SECTOR
from .disk import ProcessKilled

PAGE = 4096
PAGES_END = 2 * PAGE


@dataclass(frozen=True, slots=True)
class Layout:
    """The fields of a header page. ``order`` grows with each page written.

    ``witnesses`` are the offsets of the sectors that name a durable seq outside the ring.
    """

    order: int
    data_end: int
    ring_offset: int
    ring_end: int
    sealed_seq: int
    witnesses: tuple[int, ...] = ()


class Geometry(Protocol):
    """Decodes the parts of the format that the monitor needs."""

    def layout(self, page: bytes, number: int) -> Layout | None:
        """Return the layout in header page ``number``; None if the page is not valid."""
        ...

    def first_seq(self, record: bytes) -> int:
        """Return the first seq of the ring record that starts these bytes; 0 for no events."""
        ...

    def witnessed_seq(self, sector: bytes) -> int:
        """Return the seq that a witness names."""
        ...


class OrderViolation(AssertionError):
    """The engine wrote, synced or acknowledged in an order that a crash could expose."""


@dataclass(frozen=True, slots=True)
class _Pending:
    """A write that no sync has covered yet."""

    offset: int
    end: int
    owner: int
    first_seq: int
    page: bytes | None
    held_end: int
    """Offset past the last byte that is not zero: zeros at the end mark the end of the log."""
    changes_page: bool
    """False for a header page with the bytes of the file, which a handle writes again."""


class _Watched:
    """The monitor's state of one file, shared by all handles that have the file open."""

    def __init__(self) -> None:
        self.layout: Layout | None = None
        self.pending: dict[int, _Pending] = {}
        """By the number of the write: several syncs may be in progress, each covering some writes.
        """
        self.numbers = itertools.count()
        self.synced: dict[int, int] = {}
        """Ring sectors that hold synced records, and the seq whose sealing frees each."""
        self.newest = 0
        """First seq of the newest batch in ``synced``; a record without events is freed with it."""
        self.reserved: dict[tuple[int, int], int] = {}
        """Ranges that an owner grew the file by and may still fill, even after a page names them.
        """
        self.guard = threading.Lock()
        self.users = 0

    def may_fill(self, owner: int, offset: int, end: int) -> bool:
        """Return whether this owner reserved a range and has not synced it since."""
        return any(
            holder == owner and start <= offset and end <= stop
            for (start, stop), holder in self.reserved.items()
        )


class OrderingMonitor:
    """Checks every file that is opened through its wrappers; one monitor per disk."""

    def __init__(self, geometry: Geometry) -> None:
        self.geometry = geometry
        self.violations: list[str] = []
        self.writes = 0
        self._files: dict[Identity, _Watched] = {}

    def storage(self, inner: Storage) -> "MonitoredStorage":
        """Wrap a storage."""
        return MonitoredStorage(inner, self)

    def acknowledge(self, identity: Identity, seq: int) -> None:
        """Assert that everything up to ``seq`` is synced, since it was acknowledged."""
        watched = self._files.get(identity)
        if watched is None:
            return
        for write in list(watched.pending.values()):
            if 0 < write.first_seq <= seq:
                self.object(
                    f"acknowledged: seq {seq} was acknowledged while the record of seq"
                    f" {write.first_seq} at offset {write.offset} was not synced"
                )
                return

    def object(self, what: str) -> None:
        self.violations.append(what)
        raise OrderViolation(what)

    def watch(self, file: StorageFile, *, fresh: bool) -> _Watched:
        """Return the state of a file, read from its header pages at the first open."""
        identity = file.identity()
        watched = self._files.get(identity)
        # A new file may have the inode number of a removed file; and after every handle closed a
        # file, processes without a monitor may have changed it.
        shared = watched is not None and watched.users > 0 and not fresh
        if watched is None or not shared:
            watched = self._files[identity] = _Watched()
        # Counted before the pages are read: another open may start in between, and must share this
        # state.
        watched.users += 1
        if not shared and not fresh:
            for number in (0, 1):
                self._believe(watched, file.read_at(number * PAGE, PAGE), number)
        return watched

    def before_write(
        self, watched: _Watched, owner: int, offset: int, data: Buffer, file: StorageFile
    ) -> _Pending:
        """Check a write against the state of the file, and return it as pending."""
        self.writes += 1
        end = offset + len(data)
        layout = watched.layout
        page: bytes | None = None
        changes_page = False
        first_seq = 0
        held_end = offset
        if layout is None:
            page = bytes(data) if offset < PAGES_END else None
            changes_page = page is not None
        elif offset < PAGES_END:
            page = bytes(data)
            changes_page = not _is_there(file, offset, data)
            self._check_page(watched, layout, owner, offset, data, file)
        elif offset < layout.ring_end and end > layout.ring_offset:
            content = bytes(data).rstrip(b"\0")
            held_end = offset + len(content)
            first_seq = self.geometry.first_seq(bytes(data[:SECTOR]))
            self._check_ring(watched, layout, offset, data, file)
        elif offset in layout.witnesses and len(data) == SECTOR:
            self._check_witness(watched, self.geometry.witnessed_seq(bytes(data)))
        elif (
            offset < layout.data_end
            and not watched.may_fill(owner, offset, end)
            and not _is_there(file, offset, data)
        ):
            self.object(
                f"settled: offsets {offset} to {end} are overwritten, below the data end"
                f" {layout.data_end} of a synced header page"
            )
        return _Pending(offset, end, owner, first_seq, page, held_end, changes_page)

    def _check_page(
        self,
        watched: _Watched,
        layout: Layout,
        owner: int,
        offset: int,
        data: Buffer,
        file: StorageFile,
    ) -> None:
        end = offset + len(data)
        number = offset // PAGE
        if offset % PAGE or end > (number + 1) * PAGE:
            self.object(f"pages: a write of {offset} to {end} is not one header page")
        for write in list(watched.pending.values()):
            if write.offset < PAGES_END:
                if write.offset // PAGE != number:
                    self.object(f"two pages: page {number} is written while the other is unsynced")
                continue
            in_ring = layout.ring_offset <= write.offset < layout.ring_end
            if in_ring and write.held_end == write.offset:
                continue  # Zeros over a cut tail: the log ends there with or without them.
            # Another process may be writing an extent that this page does not name.
            if (in_ring or write.owner == owner) and not _is_there(file, offset, data):
                self.object(
                    f"pages: header page {number} is written while {write.offset} to {write.end}"
                    " is not synced"
                )

    def _check_ring(
        self, watched: _Watched, layout: Layout, offset: int, data: Buffer, file: StorageFile
    ) -> None:
        end = offset + len(data)
        if offset < layout.ring_offset or end > layout.ring_end:
            self.object(f"ring: a write of {offset} to {end} crosses the ring's edge")
        sectors = range(offset // SECTOR, -(-end // SECTOR))
        if any(sector in watched.synced for sector in sectors):
            self._read_pages(watched, file)
        for sector in sectors:
            if sector in watched.synced and not _is_there(file, offset, data):
                self.object(
                    f"ring: the sector at {sector * SECTOR} holds a synced record and is"
                    " overwritten before a synced header page freed it"
                )
                return

    def _check_witness(self, watched: _Watched, named: int) -> None:
        for write in list(watched.pending.values()):
            if 0 < write.first_seq <= named:
                self.object(
                    f"witness: seq {named} is named while the record of seq {write.first_seq}"
                    f" at offset {write.offset} is not synced"
                )
                return

    def before_resize(self, watched: _Watched, owner: int, old: int, size: int) -> None:
        """Check a cut; remember growth as space that its owner may fill later."""
        if size > old:
            watched.reserved[old, size] = owner
        if watched.layout is not None and size < watched.layout.data_end:
            self.object(
                f"settled: the file is cut to {size}, below the data end"
                f" {watched.layout.data_end} of a synced header page"
            )

    def after_sync(self, watched: _Watched, owner: int, covered: int) -> None:
        """Settle the writes that were pending when the sync began."""
        with watched.guard:
            settled = [
                watched.pending.pop(number)
                for number in sorted(watched.pending)
                if number < covered
            ]
            if watched.reserved:
                filled = [write.offset for write in settled if write.owner == owner]
                watched.reserved = {
                    (start, stop): holder
                    for (start, stop), holder in watched.reserved.items()
                    if not any(start <= offset < stop for offset in filled)
                }
            for write in settled:
                if write.held_end > write.offset:
                    watched.newest = max(watched.newest, write.first_seq)
                    sectors = range(write.offset // SECTOR, -(-write.held_end // SECTOR))
                    watched.synced.update(dict.fromkeys(sectors, watched.newest))
            for write in settled:
                for start in range(0, len(write.page or b"") - PAGE + 1, PAGE):
                    number = (write.offset + start) // PAGE
                    if write.page is not None and number < 2:
                        self._believe(watched, write.page[start : start + PAGE], number)

    def _read_pages(self, watched: _Watched, file: StorageFile) -> None:
        """Read the file's header pages again, unless an unsynced write of this monitor changes one.

        An unmonitored process may have flipped them: it syncs them itself.
        """
        # Read outside the guard: on a simulated disk another process may get its turn during a
        # read, and take the guard. `_believe` ignores a page older than the current layout.
        pages = [file.read_at(number * PAGE, PAGE) for number in (0, 1)]
        with watched.guard:
            if watched.layout is None or any(
                write.changes_page for write in watched.pending.values()
            ):
                return
            for number, page in enumerate(pages):
                self._believe(watched, page, number)

    def _believe(self, watched: _Watched, page: bytes, number: int) -> None:
        new = self.geometry.layout(page, number)
        old = watched.layout
        if new is None or (old is not None and new.order <= old.order):
            return
        watched.layout = new
        if old is not None and (old.ring_offset, old.ring_end) != (new.ring_offset, new.ring_end):
            watched.synced.clear()
        else:
            # By seq, not by place: unmonitored writers may have led the ring around since the last
            # page seen here, so its start may be anywhere, also on a sector freed long ago.
            sealed = new.sealed_seq
            watched.synced = {sector: seq for sector, seq in watched.synced.items() if seq > sealed}


def _is_there(file: StorageFile, offset: int, data: Buffer) -> bool:
    """Return whether a write changes no byte: writes are repeated if a sync may have failed."""
    return file.read_at(offset, len(data)) == bytes(data)


class MonitoredFile:
    """A file whose writes and syncs are checked; all other calls pass straight through."""

    def __init__(
        self, inner: StorageFile, monitor: OrderingMonitor, process: object, *, fresh: bool
    ) -> None:
        self._inner = inner
        self._monitor = monitor
        # Stored, so that no later process can get its id while this file is open.
        self._process = process
        self._watched = monitor.watch(inner, fresh=fresh)
        self._closed = False

    @property
    def _owner(self) -> int:
        """Identifies the writing thread: threads share a file, and each writes separate extents."""
        return hash((id(self._process), threading.get_ident()))

    def acknowledge(self, seq: int) -> None:
        """Assert that everything up to ``seq`` is synced, since it was acknowledged."""
        self._monitor.acknowledge(self.identity(), seq)

    def read_at(self, offset: int, size: int) -> bytes:
        return self._inner.read_at(offset, size)

    def search(self, offset: int, stop: int, low: int, high: int) -> list[int]:
        return self._inner.search(offset, stop, low, high)

    def size(self) -> int:
        return self._inner.size()

    def identity(self) -> Identity:
        return self._inner.identity()

    def try_lock(self, name: LockName, *, exclusive: bool) -> bool:
        return self._inner.try_lock(name, exclusive=exclusive)

    def unlock(self, name: LockName) -> None:
        self._inner.unlock(name)

    def close(self) -> None:
        self._inner.close()
        if not self._closed:
            self._closed = True
            self._watched.users -= 1

    def write_at(self, offset: int, data: Buffer) -> None:
        watched = self._watched
        pending = self._monitor.before_write(watched, self._owner, offset, data, self._inner)
        # Recorded before the write: a write that fails half-way is unsynced all the same.
        with watched.guard:
            number = next(watched.numbers)
            watched.pending[number] = pending
        try:
            self._inner.write_at(offset, data)
        except ProcessKilled:
            with watched.guard:
                watched.pending.pop(number, None)
            raise
        except BaseException:
            # Any part of the write may be on the disk, but no caller counts on its record.
            with watched.guard:
                if number in watched.pending:
                    watched.pending[number] = replace(pending, first_seq=0, held_end=offset)
            raise

    def sync(self) -> None:
        watched = self._watched
        with watched.guard:
            covered = next(watched.numbers)
        self._inner.sync()
        self._monitor.after_sync(watched, self._owner, covered)

    def set_size(self, size: int) -> None:
        self._monitor.before_resize(self._watched, self._owner, self._inner.size(), size)
        self._inner.set_size(size)


class MonitoredStorage:
    """A storage whose files are watched."""

    def __init__(self, inner: Storage, monitor: OrderingMonitor) -> None:
        self._inner = inner
        self._monitor = monitor

    def link(self, source: str, target: str) -> bool:
        return self._inner.link(source, target)

    def rename(self, source: str, target: str) -> None:
        self._inner.rename(source, target)

    def unlink(self, path: str) -> None:
        self._inner.unlink(path)

    def sync_dir(self, path: str) -> None:
        self._inner.sync_dir(path)

    def identity(self, path: str) -> Identity | None:
        return self._inner.identity(path)

    def siblings(self, path: str) -> list[str]:
        return self._inner.siblings(path)

    def watch(self, path: str) -> Watch | None:
        return self._inner.watch(path)

    def real_path(self, path: str) -> str:
        return self._inner.real_path(path)

    def link_count(self, path: str) -> int:
        return self._inner.link_count(path)

    def copy_permissions(self, source: str, target: str) -> None:
        self._inner.copy_permissions(source, target)

    def free_space(self, path: str) -> int:
        return self._inner.free_space(path)

    def open(self, path: str, *, mode: Literal["r", "rw"]) -> MonitoredFile:
        inner = self._inner.open(path, mode=mode)
        return MonitoredFile(inner, self._monitor, self, fresh=False)

    def create(self, path: str, *, known_as: str | None = None) -> MonitoredFile:
        file = self._inner.create(path, known_as=known_as)
        return MonitoredFile(file, self._monitor, self, fresh=True)
