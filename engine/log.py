"""The log: append, follow, seal, read. The one door through which anything becomes true.

Owns `Log`, a handle on one file: the append protocol (prepare outside the lock; then under the
writer lock: catch up, validate, write; then unlock, sync, acknowledge), following what other
processes append, sealing, and closing. Leaves out bytes (`format`), what recovery believes
(`recovery`) and reading (`reader`).

Start with `Log.append` and `Log._catch_up`.
"""

import threading
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self, TypeAlias

import msgspec

from .codec import (
    Batch,
    Prepared,
    SpillRef,
    WireBatch,
    encode_content,
    key_hash,
    prepare,
    tenant_of,
)
from .environment import Environment
from .errors import (
    CerataError,
    Closed,
    Conflict,
    Corrupt,
    IdempotencyConflict,
    NotFound,
    OutcomeUnknown,
    ReadOnly,
    StorageFailed,
)
from .events import Attachment, Draft, Event
from .file import PAGES_SIZE, Flip, LogFile, check_writable, choose_page, turned
from .format.extent import ExtentKind, encode_extent, extent_size
from .format.page import HeaderPage
from .format.record import (
    EMPTY_SECTOR,
    FLAG_SPILLED,
    RECORD_OVERHEAD,
    RecordPrefix,
    encode_padding,
    encode_record,
    sectors,
)
from .format.toc import Ref, RefList, Toc
from .idempotency import KeyRuns
from .integrity import chain_next, chain_through, hash_bytes
from .limits import PAGE_SIZE, SECTOR_SIZE
from .locks import held, wait_for
from .reader import Reader, Snapshot, leaves_of, wire_event
from .recovery import Found, examine, read_cut, spill_end
from .ring import Cursor, End, walk
from .segment import SegmentDraft
from .storage import LockName, StorageFile

SyncPolicy: TypeAlias = Literal["commit", "always"] | int
Validate: TypeAlias = Callable[[Sequence[Event]], None]

_QUARANTINE_REFS_MAX = 16
"""Cuts that the TOC remembers; older ones stay in the file until compaction."""

_READ_TRIES = 8


@dataclass(frozen=True)
class Head:
    """A point of the log: what a reader can keep, and later hold the file against.

    ``chain`` and ``root`` are computed when asked for; ``recorded`` is microseconds since 1970.
    """

    seq: int
    recorded: int
    _log: "Log" = field(repr=False, compare=False)

    @property
    def chain(self) -> bytes:
        """The chain hash after event ``seq``."""
        return self._log.chain_at(self.seq)

    @property
    def root(self) -> bytes:
        """The Merkle root over the leaves of events 1 to ``seq``."""
        return self._log.root_at(self.seq)


@dataclass(frozen=True)
class Appended:
    """What an append did. ``replayed``: its idempotency key was there; nothing was written."""

    first_seq: int
    last_seq: int
    durable: bool
    head: Head
    replayed: bool = False


class Log:
    """A handle on the log in one file. Any thread may call it; `open` makes one.

    Invariants, under the mutex:
    - ``_cursor`` stands after the last record this handle has taken in, ``_tail`` holds the
      batches since the sealed seq, in order and without a gap;
    - ``_durable`` never exceeds what a successful sync, a page or a record has proven;
    - ``_snapshot``, which readers see, holds only durable events, save under an integer policy.
    """

    def __init__(
        self,
        log_file: LogFile,
        environment: Environment,
        *,
        writable: bool,
        sync: SyncPolicy,
        lock_timeout: float | None,
        pages: bytes,
        found: Found,
        stored_page: HeaderPage | None = None,
    ) -> None:
        self.path = log_file.path
        self.report = found.report
        self._log_file = log_file
        self._file = log_file.file
        self._environment = environment
        self._writable = writable
        self._sync = sync
        self._lock_timeout = lock_timeout
        self._mutex = threading.RLock()
        self._sync_mutex = threading.Lock()
        self._spill_mutex = threading.Lock()
        self._in_flight = False
        self._left_files: list[StorageFile] = []
        self._salvaging = found.damage is not None
        self._failure: CerataError | None = None
        self._closed = False
        self._reader = Reader(log_file)
        self._keys = KeyRuns(log_file)
        self._pages = pages
        self._unsynced_bytes = 0
        self._shows_foreign = False
        self._chain = -1, b""
        self._keyed = _KeyedTail()
        self._stored_page = stored_page or found.page
        self._page: HeaderPage = found.page
        if found.toc is not None:
            self._reader.remember_toc(found.page, found.toc)
        self._cursor: Cursor = found.cursor
        self._tail: list[Batch] = found.batches
        self._durable = found.proven
        self._publish()

    # --- opening ---------------------------------------------------------------------------------

    @classmethod
    def open(
        cls,
        path: str,
        *,
        mode: Literal["r", "rw"] = "rw",
        environment: Environment | None = None,
        sync: SyncPolicy = "commit",
        lock_timeout: float | None = 30.0,
        ring_bytes: int | None = None,
        salvage: bool = False,
    ) -> "Log":
        """Open the log in a file; ``mode="rw"`` creates a missing one.

        ``sync``: "commit" syncs every batch, "always" also proves it with a second sync, a number
        syncs each time that many bytes were written. ``lock_timeout``: seconds; 0 fails at once,
        None waits. ``salvage`` reads what a damaged file still holds and never writes.

        Raises:
            NotFound: no such file (mode "r"). Corrupt: acknowledged data is damaged.
            Locked: another process held it too long. Unsupported: not ours, or newer.
        """
        from .opening import open_log

        return open_log(
            path,
            mode=mode,
            environment=environment or Environment(),
            sync=sync,
            lock_timeout=lock_timeout,
            ring_bytes=ring_bytes,
            salvage=salvage,
        )

    # --- what is there ---------------------------------------------------------------------------

    @property
    def head(self) -> Head:
        """The newest point that this handle has taken in; `refresh` looks for more."""
        snapshot = self._snapshot
        return Head(snapshot.head_seq, snapshot.recorded, self)

    @property
    def page(self) -> HeaderPage:
        """The header page that the handle goes by."""
        return self._snapshot.page

    @property
    def stored_page(self) -> HeaderPage:
        """The page as the file has it; that of a salvaged handle ends where its prefix does."""
        return self._stored_page if self._salvaging else self.page

    @property
    def log_id(self) -> bytes:
        """The log's 16-byte id, which survives backup and compaction."""
        return self._page.log_id

    @property
    def is_open(self) -> bool:
        """Whether calls can succeed: not closed, not poisoned, not inherited by fork."""
        return not self._closed and self._failure is None

    @property
    def is_writable(self) -> bool:
        return self._writable

    @property
    def environment(self) -> Environment:
        """The environment that every side effect of this handle goes through."""
        return self._environment

    @property
    def file(self) -> LogFile:
        """The open file, for those who read its structures."""
        return self._log_file

    @property
    def snapshot(self) -> Snapshot:
        """The immutable picture that reads go by."""
        self._check_open()
        return self._snapshot

    @property
    def reader(self) -> Reader:
        """Reads over snapshots, for those who hold one."""
        return self._reader

    def toc(self) -> Toc:
        """Return the TOC that the handle goes by."""
        return self._reader.toc(self.snapshot.page)

    def read(self, first: int = 1, last: int | None = None) -> Iterator[Event]:
        """Yield events in seq order, from ``first`` to ``last`` or the head.

        Raises:
            Corrupt: when it meets damage; everything before it was yielded.
        """
        snapshot = self.snapshot
        stop = snapshot.head_seq if last is None else min(last, snapshot.head_seq)
        return self._reader.events(snapshot, max(first, 1), stop)

    def salvaged(self) -> Iterator[Event]:
        """Yield every event that is still readable, also past damage; lost seqs are left out.

        With ``salvage=True`` at opening, `read` ends before the first hole; this goes on.
        """
        from .salvage import salvaged_events

        self._check_open()
        return salvaged_events(self)

    def backup(self, path: str) -> None:
        """Copy the log as it stands now into a new file at ``path``, while others write.

        The copy has the same log id, events, chain and root. It appears whole or not at all, and
        nothing that is there is overwritten. Durable on return.

        Raises:
            Conflict: something is at ``path``. Corrupt: an event cannot be read.
        """
        from .backup import back_up

        self.refresh()
        back_up(self, path)

    def event(self, seq: int) -> Event:
        """Return one event. Raises `NotFound` where the log has no such seq."""
        snapshot = self.snapshot
        if not 1 <= seq <= snapshot.head_seq:
            raise NotFound(
                f"There is no event {seq:,}", remedy=f"The log ends at {snapshot.head_seq:,}."
            )
        return next(self._reader.events(snapshot, seq, seq))

    def attachment(self, seq: int, attachment: Attachment) -> bytes:
        """Return the bytes that a payload of event ``seq`` names; verified against their hash.

        Raises:
            NotFound: the event has no such attachment. Corrupt: its bytes are damaged.
        """
        candidates = self._reader.attachments(self.snapshot, seq)
        for data in candidates:
            if len(data) == attachment.size and hash_bytes(data) == attachment.hash:
                return data
        if any(len(data) == attachment.size for data in candidates):
            raise Corrupt(f"An attachment of event {seq:,} is damaged", where=self.path)
        raise NotFound(f"Event {seq:,} has no such attachment")

    def chain_at(self, seq: int) -> bytes:
        """Return the chain hash after event ``seq``; cost: the events since its segment began."""
        with self._mutex:
            at, chain = self._chain
            snapshot = self._holding(seq)
            if seq < at or seq > snapshot.head_seq or at < snapshot.page.sealed_seq:
                chain, _ = self._reader.chain_and_tree(snapshot, seq)
            else:
                for event in self._reader.events(snapshot, at + 1, seq):
                    chain = chain_next(chain, event.leaf)
            self._chain = seq, chain
            return chain

    def root_at(self, seq: int) -> bytes:
        """Return the Merkle root after event ``seq``."""
        _, tree = self._reader.chain_and_tree(self._holding(seq), seq)
        return tree.root()

    def _holding(self, seq: int) -> Snapshot:
        """Return the snapshot if it holds events 1 to ``seq``."""
        snapshot = self.snapshot
        if not 0 <= seq <= snapshot.head_seq:
            raise NotFound(
                f"There is no event {seq:,}", remedy=f"The log ends at {snapshot.head_seq:,}."
            )
        return snapshot

    # --- appending -------------------------------------------------------------------------------

    def append(
        self,
        drafts: Sequence[Draft],
        *,
        expect: int | None = None,
        key: str | None = None,
        arguments: bytes | None = None,
        validate: Validate | None = None,
        known: int = 0,
    ) -> Appended:
        """Append a batch: all of its events or none, durable on return under the default policy.

        ``expect`` is the head's seq that the caller saw. ``key`` makes the call idempotent:
        again with equal ``arguments`` (a hash) it returns the first result. ``validate`` is
        called under the lock with the events after ``known``, and refuses by raising.

        Raises:
            InvalidInput, Conflict, IdempotencyConflict: refused; nothing was written.
            Locked: another writer held the file too long; nothing was written.
            StorageFailed: the disk refused; nothing was acknowledged.
            OutcomeUnknown: the sync failed; reopen the file and look.
        """
        self._check_writable()
        prepared = prepare(drafts, self._environment.random_bytes, key=key, arguments=arguments)
        earlier = None
        while earlier is None:
            spill = None
            if prepared.size > self._page.ring_size // 4:
                spill = self._write_spill(prepared)
            with self._writing():
                if spill is not None and spill.log_file is not self._log_file:
                    # It was compacted away meanwhile: write the batch into the new file.
                    continue
                if key is not None:
                    earlier = self._replayed(prepared, key)
                    if earlier is not None:
                        continue
                self._expect(expect)
                if validate is not None:
                    validate(list(self._taken_in(known + 1)))
                batch = self._write_batch(prepared, None if spill is None else spill.ref)
            return self._settled(batch)
        # Somebody else may have written it and not synced yet; we say that it is there.
        if not earlier.durable and not isinstance(self._sync, int):
            self._sync_through(earlier.last_seq)
            earlier = replace(earlier, durable=True)
        return earlier

    def _expect(self, expect: int | None) -> None:
        head = self._cursor.next_seq - 1
        if expect is not None and expect != head:
            raise Conflict(
                f"The log is at event {head:,}, not at {expect:,}",
                where=self.path,
                remedy="Read what was appended since, and decide again.",
            )

    def _settled(self, batch: Batch) -> Appended:
        """Sync a batch that was just written, as the policy says, and acknowledge it."""
        policy = self._sync
        due = not isinstance(policy, int) or self._unsynced_bytes >= policy
        if due or self._shows_foreign:
            self._sync_through(batch.last_seq)
            if policy == "always":
                self._prove()
        else:
            with self._mutex:
                self._publish()
        head = Head(batch.last_seq, batch.recorded, self)
        durable = self._durable >= batch.last_seq
        return Appended(batch.first_seq, batch.last_seq, durable, head)

    def commit(self) -> None:
        """Make everything that this handle appended durable."""
        self._check_writable()
        self._sync_through(self._cursor.next_seq - 1)

    def refresh(self) -> Head:
        """Take in what other processes appended; takes no lock, and never goes backwards."""
        self._check_open()
        with self._mutex, self._changing():
            self._check_open()
            if self._salvaging:
                return self.head
            for _ in range(_READ_TRIES):
                pages = self._log_file.read_pages()
                if self._follow_move(pages, locked=False):
                    continue
                state = self._followed(pages)
                if self._log_file.read_pages() == pages:
                    break
            else:
                with self._locked(exclusive=False):
                    pages = self._log_file.read_pages()
                    state = self._followed(pages)
            self._adopt(pages, state)
            head = self._cursor.next_seq - 1
            if head > self._durable:
                # Somebody wrote it and may not have synced it yet: what we show must stay.
                self._file_sync()
                self._durable = head
            self._publish()
        return self.head

    def seal(self) -> None:
        """Move every event from the ring into a segment. Durable on return."""
        self._check_writable()
        with self._writing():
            if self._tail:
                self._flip()

    def publish_projections(
        self, build: Callable[[Flip, Toc], Mapping[str, Mapping[str, Any]]]
    ) -> None:
        """Seal, and save projections' entries in the TOC. Durable on return.

        ``build`` adds chunks to the flip, and returns the entries by projection key; those of
        other projections stay as they are.
        """
        self._check_writable()
        with self._writing():
            self._flip(build=build)

    def close(self) -> None:
        """Make everything durable, prove it, and release the file; twice is harmless.

        After a failure it writes nothing.
        """
        if self._closed:
            return
        try:
            if self._writable and self._failure is None:
                self._sync_through(self._cursor.next_seq - 1)
                self._prove()
        finally:
            with self._spill_mutex, self._sync_mutex, self._mutex:
                try:
                    # Other threads may have appended since; they wait for a sync, and get one.
                    head = self._cursor.next_seq - 1
                    if self._writable and self._failure is None and head > self._durable:
                        self._file_sync()
                        self._durable = head
                finally:
                    self._closed = True
                    self._release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def abandon(self) -> None:
        """Drop the handle without a word to the file: for a child after fork."""
        self._failure = Closed(
            "This handle was inherited by fork",
            where=self.path,
            remedy="Open the file again in the child.",
        )
        self._mutex = threading.RLock()
        self._sync_mutex = threading.Lock()
        self._spill_mutex = threading.Lock()
        self._closed = True
        self._release()

    def _release(self) -> None:
        for file in (self._file, *self._left_files):
            file.close()

    # --- state -----------------------------------------------------------------------------------

    def _check_open(self) -> None:
        if self._failure is not None:
            raise self._failure
        if self._closed:
            raise Closed("The log is closed", where=self.path, remedy="Open it again.")

    def _check_writable(self) -> None:
        self._check_open()
        if not self._writable:
            raise ReadOnly(
                "The log was opened for reading",
                where=self.path,
                remedy="Open it with mode='rw'.",
            )

    def _locked(self, *, exclusive: bool = True) -> AbstractContextManager[None]:
        return held(
            self._file,
            LockName.WRITER,
            exclusive=exclusive,
            clock=self._environment.clock,
            timeout=self._lock_timeout,
            path=self.path,
        )

    @contextmanager
    def _writing(self) -> Generator[None, None, None]:
        """Hold mutex and writer lock over the file that the path names, caught up with it."""
        with self._mutex:
            self._check_writable()
            while True:
                with self._locked(), self._changing():
                    pages = self._log_file.read_pages()
                    if not self._follow_move(pages, locked=True):
                        self._catch_up(pages)
                        # A newer Cerata may have begun what this one would undo.
                        check_writable(self._page, self.path)
                        yield
                        return

    @contextmanager
    def _changing(self) -> Generator[None, None, None]:
        """Mark that this handle's state is being changed.

        An interrupt can strike between any two steps and leave them out of step with each other;
        whoever comes next then forgets the state and takes it in from the file again.
        """
        if self._in_flight:
            page, _ = choose_page(self._log_file.read_pages(), self.path)
            self._page, self._cursor, self._tail = page, Cursor.at_start(page), []
            self._pages = b""
        self._in_flight = True
        try:
            yield
        except StorageFailed:
            raise
        except CerataError:
            # A refusal, raised between two steps.
            self._in_flight = False
            raise
        self._in_flight = False

    def _publish(self) -> None:
        """Show readers this handle's state; one assignment."""
        cursor = self._cursor
        recorded = self._tail[-1].recorded if self._tail else self._page.recorded
        self._snapshot = Snapshot(
            self._page, self._tail, len(self._tail), cursor.next_seq - 1, recorded
        )

    def _taken_in(self, first: int) -> Iterator[Event]:
        """Yield events of the writer's state, which may be ahead of the readers' snapshot."""
        cursor = self._cursor
        state = Snapshot(self._page, self._tail, len(self._tail), cursor.next_seq - 1, 0)
        return self._reader.events(state, first, cursor.next_seq - 1)

    # --- following others ------------------------------------------------------------------------

    def _followed(self, pages: bytes) -> "_State":
        """Read on from where this handle is; changes nothing."""
        page, cursor, tail = self._page, self._cursor, self._tail
        if pages != self._pages:
            page, _ = choose_page(pages, self.path)
            if _ring_state(page) != _ring_state(self._page):
                cursor, tail = Cursor.at_start(page), []
        read = self._file.read_at
        if read(cursor.offset, SECTOR_SIZE) == EMPTY_SECTOR:
            return _State(page, cursor, tail, [], End.EMPTY)
        found = walk(read, self._log_file.key, page, cursor)
        return _State(page, found.cursor, tail, found.batches, found.end)

    def _adopt(self, pages: bytes, state: "_State") -> None:
        """Take in what `_followed` read."""
        self._check_forward(state.cursor)
        self._pages = pages
        self._page = state.page
        self._cursor = state.cursor
        if state.tail is not self._tail:
            self._tail = state.tail
        self._tail.extend(state.batches)
        self._durable = max(self._durable, state.page.sealed_seq, state.cursor.durable_through)
        # Under an integer policy our own unsynced events may be shown, another process's not.
        self._shows_foreign |= bool(state.batches) and state.cursor.next_seq - 1 > self._durable

    def _check_forward(self, cursor: Cursor) -> None:
        """Refuse a file that no longer holds what this handle knows to be durable."""
        known = max(self._durable, self._snapshot.head_seq)
        if cursor.next_seq <= known:
            raise Corrupt(
                f"The log went back from event {known:,} to {cursor.next_seq - 1:,}",
                where=self.path,
                remedy="The file was damaged, replaced or restored while open; open it again.",
            )

    def _catch_up(self, pages: bytes) -> None:
        """Under the writer lock: take in what others appended, mend what a dead writer left."""
        if pages == self._pages:
            sector = self._file.read_at(self._cursor.offset, SECTOR_SIZE)
            if sector == EMPTY_SECTOR:
                return
        if pages != self._pages:
            _, bad = choose_page(pages, self.path)
            if bad:
                self._resettle()
                return
        state = self._followed(pages)
        self._adopt(pages, state)
        if state.end in (End.TORN, End.BAD, End.UNLINKED):
            self._resettle()

    def _resettle(self) -> None:
        """Under the writer lock: look at the file afresh and mend it, as an opener would."""
        self._pages = self._log_file.read_pages()
        page, bad = choose_page(self._pages, self.path)
        found = examine(self._log_file, page, bad, search=bool(bad), alone=False)
        if found.damage is None:
            self._check_forward(found.cursor)
        self.settle(found, alone=False)

    def _follow_move(self, pages: bytes, *, locked: bool) -> bool:
        """Go over to the file that took this one's place, if compaction moved the log there.

        Returns whether it did. Under the writer lock a flag whose compactor died is cleared.
        """
        if pages == self._pages and not self._page.moved:
            return False
        page, _ = choose_page(pages, self.path)
        if not page.moved:
            return False
        storage = self._environment.storage
        there = storage.identity(self.path)
        if there == self._file.identity():
            if locked:
                # No compactor holds the lock now, so the one that set it is dead.
                self._clear_moved(page)
            return False
        if there is None:
            raise NotFound(
                "The log was moved, and its file is gone",
                where=self.path,
                remedy="Open it where it is now.",
            )
        file = storage.open(self.path, mode="rw" if self._writable else "r")
        try:
            if self._writable:
                wait_for(
                    file,
                    LockName.PRESENCE,
                    exclusive=False,
                    clock=self._environment.clock,
                    timeout=self._lock_timeout,
                    path=self.path,
                )
            pages = file.read_at(0, PAGES_SIZE)
            page, _ = choose_page(pages, self.path)
            if page.log_id != self._page.log_id:
                raise Corrupt(
                    "Another log was put in this one's place",
                    where=self.path,
                    remedy="Open it again, if that is the one you mean.",
                )
        except BaseException:
            file.close()
            raise
        # Views and running reads keep the file that they began with.
        self._left_files.append(self._file)
        self._file = file
        self._log_file = LogFile(file, self.path, page.file_id)
        self._reader = Reader(self._log_file)
        self._keys = KeyRuns(self._log_file)
        self._page, self._cursor, self._tail = page, Cursor.at_start(page), []
        self._pages = b""
        return True

    def _clear_moved(self, page: HeaderPage) -> None:
        """Under the writer lock: take back the flag of a compactor that died. Durable on return."""
        check_writable(page, self.path)
        cleared = replace(turned(page), moved=False)
        try:
            self._file.write_at(cleared.number * PAGE_SIZE, cleared.encode())
        except StorageFailed as error:
            raise self._poison(error) from error
        self._file_sync()

    def settle(self, found: Found, *, alone: bool) -> None:
        """Under the writer lock: make what the file proves durable, and mend the rest.

        Events past proven are sealed into a new extent, never trusted to a plain sync of pages
        that an earlier failure may have marked clean. Unconnected rest is cut and kept aside.

        Raises:
            Corrupt: acknowledged events are unreadable; nothing was written.
            Unsupported: a newer Cerata left what this one would undo; nothing was written.
        """
        check_writable(found.page, self.path)
        if found.damage is not None:
            raise found.damage
        report = found.report
        size = self._file.size()
        spills = [spill_end(batch.spill) for batch in found.batches if batch.spill]
        named_end = max([found.page.data_end, *spills])
        if alone and size > named_end:
            # Nobody else is there, and nothing names these bytes: a dead writer's orphans.
            self._file.set_size(named_end)
            report = replace(report, trimmed_bytes=size - named_end)
        toc = found.toc or self._reader.toc(found.page)
        rebuilt = self._reader.rebuilt
        report = replace(report, rebuilt_toc=rebuilt)
        self._page, self._cursor, self._tail = found.page, found.cursor, found.batches
        self._reader.remember_toc(found.page, toc)
        self._durable = found.proven
        unproven = found.head_seq > found.proven
        moved = found.page.moved
        self._page = replace(found.page, moved=False)
        mended = report.cut_bytes or report.bad_pages or report.adopted_footer or rebuilt
        if unproven or moved or mended:
            report = replace(report, sealed_events=found.head_seq - found.page.sealed_seq)
            self._flip(cut=found if report.cut_bytes else None)
        self.report = report
        self._publish()

    # --- writing ---------------------------------------------------------------------------------

    def _write_spill(self, prepared: Prepared) -> "_Spill":
        """Write a large batch's events into an extent of their own; durable on return.

        The place is taken under the writer lock and written outside it, so other writers wait
        only for the allocation. An orphan, if we die here, is trimmed or compacted later.
        """
        draft = SegmentDraft([Batch(0, len(prepared.events), 0, None, prepared.events)])
        # The mutex keeps `close` from giving the descriptor away while it is written to.
        with self._spill_mutex:
            with self._writing():
                log_file = self._log_file
                offset = sectors(max(log_file.file.size(), self._page.data_end))
                log_file.file.set_size(offset + extent_size(draft.size_max))
            body = draft.encode(log_file.key, offset)
            at = offset
            for piece in encode_extent(
                log_file.key, offset, ExtentKind.SPILL, body, generation=self._page.generation + 1
            ):
                log_file.file.write_at(at, piece)
                at += len(piece)
            try:
                log_file.file.sync()
            except StorageFailed as error:
                raise self._poison(error) from error
        return _Spill(log_file, SpillRef(offset, len(body)))

    def _write_batch(self, prepared: Prepared, spill: SpillRef | None) -> Batch:
        """Under the writer lock: give the batch its seqs and time, and write its record."""
        clock = self._environment.clock.now_us()
        last = self._tail[-1].recorded if self._tail else self._page.recorded
        recorded = max(clock, last + 1)
        raw_clock = None if recorded == clock else clock
        count = len(prepared.events)
        events = None if spill else prepared.events
        content = encode_content(WireBatch(recorded, raw_clock, events, spill))
        flags = FLAG_SPILLED if spill else 0
        first_seq = self._cursor.next_seq
        self._write_record(first_seq, count, flags, content)
        batch = Batch(
            first_seq, count, recorded, raw_clock, () if spill else prepared.events, spill
        )
        self._tail.append(batch)
        return batch

    def _write_record(self, first_seq: int, count: int, flags: int, content: bytes) -> None:
        """Under the writer lock: write one record at the cursor and advance over it."""
        size = sectors(RECORD_OVERHEAD + len(content))
        self._make_room(size)
        page, cursor, key = self._page, self._cursor, self._log_file.key
        offset, used = cursor.offset, cursor.used
        if offset + size > page.ring_end:
            padding = page.ring_end - offset
            # Padding first: were the record there without it, it could connect to a later one.
            self._file.write_at(
                offset, encode_padding(key, offset, cursor.incarnation, padding, cursor.link)
            )
            offset, used = page.ring_offset, used + padding
        prefix = RecordPrefix(self._durable, flags, count, cursor.link)
        record, link = encode_record(key, offset, first_seq, page.incarnation, prefix, content)
        following = offset + size
        if following == page.ring_end:
            following = page.ring_offset
            self._file.write_at(following, EMPTY_SECTOR)
            self._file.write_at(offset, record)
        else:
            self._file.write_at(offset, record + EMPTY_SECTOR)
        self._cursor = Cursor(
            following,
            used + size,
            first_seq + count,
            link,
            page.incarnation,
            max(cursor.durable_through, self._durable),
        )
        self._unsynced_bytes += size

    def _make_room(self, size: int) -> None:
        """Seal first if a record of ``size`` and the empty sector after it would not fit."""
        page, cursor = self._page, self._cursor
        padding = page.ring_end - cursor.offset if cursor.offset + size > page.ring_end else 0
        if cursor.used + padding + size + SECTOR_SIZE > page.ring_size:
            self._flip()

    def _flip(
        self,
        *,
        cut: Found | None = None,
        build: Callable[[Flip, Toc], Mapping[str, Mapping[str, Any]]] | None = None,
    ) -> None:
        """Under the writer lock: seal the tail, publish a new TOC and header page.

        With ``cut``, what recovery cut is kept in an extent and a new incarnation begins.
        """
        toc = self._reader.toc(self._page)
        cursor, tail = self._cursor, self._tail
        rebuilt = self._reader.rebuilt
        flip = Flip(self._log_file, self._page)
        head = cursor.next_seq - 1
        toc = replace(
            toc, generation=toc.generation + 1, ring_start=cursor.offset, link=cursor.link
        )
        if rebuilt:
            segments = RefList()
            for ref in toc.segments.walk(self._log_file.manifest):
                segments = flip.append(segments, ref)
            toc = replace(toc, segments=segments)
        if tail:
            toc = self._add_segment(flip, toc, tail)
        if rebuilt:
            toc = replace(toc, keys=self._rebuilt_keys(flip, head))
        incarnation, clear = cursor.incarnation, None
        if cut is not None:
            data = read_cut(self._log_file, cut)
            # Where it stood comes first: its checks cover that, and can be tried again.
            kept = cut.cursor.offset.to_bytes(8, "little") + data
            ref = flip.add(ExtentKind.QUARANTINE, kept, head + 1, head + 1)
            toc = replace(toc, quarantine=(*toc.quarantine, ref)[-_QUARANTINE_REFS_MAX:])
            incarnation = 1 + max([cursor.incarnation, *(row.incarnation for row in cut.beyond)])
            clear = cursor.offset
        toc = replace(toc, incarnation=incarnation)
        if build is not None:
            entries = build(flip, toc)
            # What this process does not know stays as it is.
            toc = replace(toc, projections={**toc.projections, **entries})
        flip.write(toc)
        try:
            page = flip.publish(incarnation=incarnation, clear=clear)
        except StorageFailed as error:
            raise self._poison(error) from error
        self._reader.remember_toc(page, toc)
        self._reader.rebuilt = False
        self._page = page
        self._pages = self._log_file.read_pages()
        self._tail = []
        self._cursor = Cursor.at_start(page)
        self._durable = max(self._durable, head)
        self._unsynced_bytes = 0
        self._publish()

    def take_sealed(self, batches: list[Batch]) -> None:
        """Under the writer lock: take batches of the same log from another file, into a segment.

        They go on from the head, and the ring is empty. Durable on return.
        """
        cursor = self._cursor
        assert not self._tail
        assert batches[0].first_seq == cursor.next_seq
        self._tail = batches
        self._cursor = msgspec.structs.replace(cursor, next_seq=batches[-1].last_seq + 1)
        self._flip()

    def _add_segment(self, flip: Flip, toc: Toc, tail: list[Batch]) -> Toc:
        """Add the tail to the flip as one segment, with its keys."""
        first, last = tail[0].first_seq, tail[-1].last_seq
        leaves: list[bytes] = []
        entries: list[tuple[int, int]] = []
        for batch in tail:
            events = self._reader.wire_events(batch)
            leaves += leaves_of(batch, events)
            entries += self._key_entries([wire_event(batch, 0, events[0])])
        chain = chain_through(toc.chain, leaves)
        tree = toc.tree.extend(leaves)
        body = SegmentDraft(tail, chain, tree).encode(self._log_file.key, flip.offset)
        ref = flip.add(ExtentKind.SEGMENT, body, first, last)
        segments = flip.append(toc.segments, ref)
        try:
            keys = self._keys.extend(toc.keys, entries, first, last, flip)
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
        entries = [entry for event in self._taken_in(1) for entry in self._key_entries([event])]
        return self._keys.extend((), entries, 1, last, flip)

    # --- durability ------------------------------------------------------------------------------

    def _sync_through(self, seq: int) -> None:
        """Return once event ``seq`` is durable; concurrent callers share one sync."""
        with self._sync_mutex:
            if self._durable >= seq:
                with self._mutex:
                    self._publish_durable()
                return
            with self._mutex:
                written = self._cursor.next_seq - 1
                self._unsynced_bytes = 0
            self._file_sync()
            with self._mutex:
                self._durable = max(self._durable, written)
                self._shows_foreign = False
                self._publish_durable()

    def _publish_durable(self) -> None:
        """Show readers the durable part of this handle's state."""
        head = self._cursor.next_seq - 1
        if head <= self._durable:
            self._publish()
            return
        count = len(self._tail)
        while count and self._tail[count - 1].last_seq > self._durable:
            count -= 1
        seq = self._tail[count - 1].last_seq if count else self._page.sealed_seq
        if seq > self._snapshot.head_seq:
            recorded = self._tail[count - 1].recorded if count else self._page.recorded
            self._snapshot = Snapshot(self._page, self._tail, count, seq, recorded)

    def _prove(self) -> None:
        """Write and sync a mark, unless the ring already proves that the head is durable."""
        with self._writing():
            head = self._cursor.next_seq - 1
            if max(self._page.sealed_seq, self._cursor.durable_through) >= head:
                return
            if self._durable < head:
                # Another process's batch came in meanwhile and is not ours to vouch for.
                self._file_sync()
                self._durable = head
            self._write_record(head + 1, 0, 0, b"")
        self._file_sync()

    def _file_sync(self) -> None:
        try:
            self._file.sync()
        except StorageFailed as error:
            raise self._poison(error) from error

    def _poison(self, error: StorageFailed) -> OutcomeUnknown:
        """Refuse every later call: after a failed sync nobody knows what the disk holds."""
        failure = OutcomeUnknown(
            f"A sync failed, so it is not known what the disk holds: {error.what}",
            where=self.path,
            remedy="Open the file again; it recovers, and shows which events survived.",
        )
        self._failure = failure
        return failure

    # --- idempotency -----------------------------------------------------------------------------

    def _key_entries(self, events: Sequence[Event]) -> list[tuple[int, int]]:
        return [
            (key_hash(tenant_of(event.payload.scope), event.payload.key), event.seq)
            for event in events
            if event.header.index == 0
            and event.payload is not None
            and event.payload.key is not None
        ]

    def _replayed(self, prepared: Prepared, key: str) -> Appended | None:
        """Return the first result of this idempotency key, if it was used before."""
        wanted = key_hash(prepared.tenant, key)
        for seq in (*self._keyed_in_segments(wanted), *self._keyed_in_tail(wanted)):
            event = next(self._taken_in(seq))
            payload = event.payload
            if payload is None or payload.key != key or tenant_of(payload.scope) != prepared.tenant:
                continue
            if payload.arguments != prepared.arguments:
                raise IdempotencyConflict(
                    f"The idempotency key {key!r} was used for other arguments by event {seq:,}",
                    where=self.path,
                    remedy="Use a new key for a new request.",
                )
            last_seq = event.header.last_seq
            durable = self._durable >= last_seq
            head = Head(last_seq, event.recorded, self)
            return Appended(seq, last_seq, durable, head, replayed=True)
        return None

    def _keyed_in_segments(self, wanted: int) -> list[int]:
        toc = self._reader.toc(self._page)
        if not self._reader.rebuilt:
            try:
                return list(self._keys.candidates(toc.keys, wanted))
            except Corrupt:
                self._reader.rebuilt = True
        # TOC or run is damaged; the events know their keys, and a flip writes them anew.
        self._flip()
        return list(self._keys.candidates(self._reader.toc(self._page).keys, wanted))

    def _keyed_in_tail(self, wanted: int) -> list[int]:
        """Return the first seqs of the tail's batches whose key has this hash."""
        keyed = self._keyed
        if keyed.tail is not self._tail:
            keyed = self._keyed = _KeyedTail(self._tail)
        for batch in self._tail[keyed.count :]:
            event = next(self._taken_in(batch.first_seq))
            for hashed, seq in self._key_entries([event]):
                keyed.seqs.setdefault(hashed, []).append(seq)
            keyed.count += 1
        return keyed.seqs.get(wanted, [])


def _ring_state(page: HeaderPage) -> tuple[int, int, int]:
    """What of a page makes a place in the ring mean something else when it changes."""
    return page.sealed_seq, page.ring_start, page.incarnation


@dataclass(slots=True)
class _KeyedTail:
    """The idempotency keys of the first ``count`` batches of a tail: hash to first seqs."""

    tail: list[Batch] | None = None
    count: int = 0
    seqs: dict[int, list[int]] = field(default_factory=dict[int, list[int]])


@dataclass(frozen=True, slots=True)
class _Spill:
    """A large batch's extent, and the file that it was written into."""

    log_file: LogFile
    ref: SpillRef


@dataclass(frozen=True, slots=True)
class _State:
    """What following others read: the tail to extend, and the batches to extend it with."""

    page: HeaderPage
    cursor: Cursor
    tail: list[Batch]
    batches: list[Batch]
    end: End
