"""The log: append, follow, seal and read.

Owns `Log`, a handle on one file: the append protocol (prepare outside the lock; then under the
writer lock catch up, validate, write; then unlock, sync, acknowledge), the sync policies, the
snapshot that readers use, and closing. Leaves out the content of writes (`log_file.writer`), locks
and catching up (`log_file.handle_lock`), following other writers (`log_file.log_state`), the
judgement of a file at opening (`log_file.recovery`) and reading (`segments.reader`).

Start with `Log.append`.
"""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias
from weakref import WeakSet

import msgspec

from .arguments import expect_integer
from .codec import Batch, Prepared, SpillRef, key_hash, prepare, tenant_of
from .disk.environment import Environment
from .disk.memory_storage import PrivateMemory
from .disk.watch import Watch
from .draft_validation import check_key, check_scope
from .errors import (
    CerataError,
    Conflict,
    Corrupt,
    IdempotencyConflict,
    NotFound,
    OutcomeUnknown,
    StorageFailed,
)
from .events import Attachment, Draft, Erase, Event, Scope, ScopeValue, chosen
from .format.extent import ExtentKind, encode_extent, extent_size
from .format.page import HeaderPage
from .format.record import sectors
from .format.toc import Toc
from .handle import Handle, Poison
from .head import Appended, Head
from .integrity import Tree, chain_through
from .late import late
from .log_file.file import LogFile, choose_page
from .log_file.handle_lock import HandleLock
from .log_file.horizon import NO_HORIZON, Horizon
from .log_file.lineage import Branch, Identity, branches_of, check_point
from .log_file.log_state import LogState
from .log_file.recovery import RecoveredState, RecoveryReport
from .log_file.relocation import clear_moved, set_moved
from .log_file.writer import Build, Origin, Writer
from .salted_hashes import salted_arguments
from .segments.caches import CacheSizes
from .segments.reader import Reader, Snapshot
from .segments.recent_events import joined_runs, recent_runs
from .segments.segment_index import ColumnKey, PlacedColumn
from .segments.segment_reader import I64, U8
from .segments.segment_writer import SegmentDraft

if TYPE_CHECKING:
    import numpy as np
else:
    np = late("numpy")

SyncPolicy: TypeAlias = Literal["commit", "always"] | int
Validate: TypeAlias = Callable[[Sequence[Event]], None]
Sees: TypeAlias = Callable[[Scope], bool]
"""Returns whether a caller may see an event of a scope."""

_READ_TRIES = 8


@dataclass(frozen=True, slots=True)
class KeyUse:
    """The first use of an idempotency key: its result, and the hash of its arguments.

    The hash is bound to ``salts``, the salts of the batch's events; None marks an erased event.
    """

    appended: Appended
    arguments: bytes | None
    salts: tuple[bytes | None, ...]

    def check(self, key: str, arguments: bytes | None) -> None:
        """Raise `IdempotencyConflict` unless the arguments equal those of the first use.

        After an erasure in the batch no comparison is possible, so every use is refused.
        """
        salts = [salt for salt in self.salts if salt is not None]
        if len(salts) < len(self.salts):
            erased = self.appended.first_seq + self.salts.index(None)
            raise IdempotencyConflict(
                f"The idempotency key {key!r} was used for a batch that has lost event "
                f"{erased:,} to an erasure, so its arguments cannot be compared",
                where=f"event {self.appended.first_seq:,}",
                remedy="Use a new key for a new request.",
            )
        if arguments is not None:
            arguments = salted_arguments(arguments, salts)
        if arguments != self.arguments:
            raise IdempotencyConflict(
                f"The idempotency key {key!r} was used for other arguments "
                f"by event {self.appended.first_seq:,}",
                remedy="Use a new key for a new request.",
            )


class Log(Handle):
    """A handle on the log in one file, opened by `open_log`. Threads may share it.

    Invariants:
    - ``_state`` is read and changed only under the handle's mutex, and written only under the
      writer lock as well;
    - ``_snapshot``, which readers see, holds only durable events, except under an integer policy.
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
        recovered: RecoveredState,
        stored_page: HeaderPage,
    ) -> None:
        self.path = log_file.path
        self.environment = environment
        """The environment that every side effect of this handle goes through."""
        self._sync = sync
        self._sync_mutex = threading.Lock()
        self._spill_mutex = threading.Lock()
        self.compacting = threading.Lock()
        """Held by the thread that compacts the file."""
        self._salvaging = recovered.damage is not None
        self._poison = Poison(log_file.path)
        self._hashes: tuple[int, bytes, Tree] = -1, b"", Tree()
        self._stored_page = stored_page
        self._erased: tuple[HeaderPage | None, int] = None, 0
        self._branches: tuple[int, tuple[Branch, ...]] = 0, ()
        self._watches = WeakSet[Watch]()
        self._horizon: tuple[int, Horizon] = 0, NO_HORIZON
        self._state = LogState(log_file, pages, recovered)
        self._writer = Writer(self._state, environment, self._poison, recovered.report)
        self._lock = HandleLock(
            self._state,
            self._writer,
            environment,
            self._poison,
            writable=writable,
            lock_timeout=lock_timeout,
        )
        self._publish()

    # --- opening ---------------------------------------------------------------------------------

    # --- state -----------------------------------------------------------------------------------

    @property
    def head(self) -> Head:
        """The newest point that this handle has read; `refresh` reads further."""
        snapshot = self._snapshot
        return Head(snapshot.head_seq, snapshot.recorded, self)

    @property
    def report(self) -> RecoveryReport:
        """The result of recovery: at opening, or of the last repair under the writer lock."""
        return self._writer.report

    @property
    def page(self) -> HeaderPage:
        """The header page of the current snapshot."""
        return self._snapshot.page

    @property
    def stored_page(self) -> HeaderPage:
        """The header page as stored; that of a salvaged handle names more than its `page`."""
        return self._stored_page if self._salvaging else self.page

    @property
    def log_id(self) -> bytes:
        """The log's 16-byte id, which survives backup and compaction."""
        return self._state.page.log_id

    @property
    def is_open(self) -> bool:
        """True if calls can succeed: not closed, not poisoned, not inherited by fork."""
        return self._lock.is_open

    @property
    def is_writable(self) -> bool:
        return self._lock.writable

    @property
    def is_lasting(self) -> bool:
        """True if the file can be opened after this handle is closed."""
        return not isinstance(self.environment.storage, PrivateMemory)

    @property
    def caches(self) -> CacheSizes:
        """The sizes of the caches of this handle."""
        return self._state.log_file.caches

    @property
    def file(self) -> LogFile:
        """The open file, for readers of its structures."""
        return self._state.log_file

    @property
    def snapshot(self) -> Snapshot:
        """The immutable snapshot that reads use."""
        self._lock.check_open()
        return self._snapshot

    @property
    def reader(self) -> Reader:
        """The reader of the current snapshot."""
        return self._snapshot.reader

    @property
    def is_moving(self) -> bool:
        """True while a compaction of this handle has the writer lock, and waits must be short."""
        return self._lock.is_moving

    def toc(self) -> Toc:
        """Return the TOC of the current snapshot."""
        snapshot = self.snapshot
        return snapshot.reader.toc(snapshot.page)

    @property
    def erased(self) -> int:
        """Seq of the newest `erase` event that the file reflects, 0 for none.

        State that was computed under another value may hold content that is erased now. Cost: a
        read of the TOC if the file has a new TOC.

        Raises:
            Corrupt: TOC and segments are damaged.
            Unsupported: the TOC is of an older version.
        """
        page, erased = self._erased
        if page is not self._snapshot.page:
            with self._lock.mutex:
                page = self.snapshot.page
                erased = self.reader.toc(page).erased
                self._erased = page, erased
        return erased

    def horizon(self) -> Horizon:
        """Return the event before which the log no longer has all payloads, and the exceptions.

        Cost: nothing if the file reflects no erasure; else a read of one event, once.

        Raises:
            Corrupt: the event cannot be read.
        """
        erased, horizon = self._horizon
        if self.is_open and (newest := self.erased) != erased:
            horizon = NO_HORIZON
            if 0 < newest <= self.snapshot.head_seq:
                body = self.event(newest).body
                # A fork or copy that ends before the erasure names its end instead.
                horizon = Horizon(newest, (), newest)
                if isinstance(body, Erase):
                    horizon = Horizon.of(newest, body)
            self._horizon = newest, horizon
        return horizon

    def branches(self) -> tuple[Branch, ...]:
        """Return the branches of the log, oldest first; none if the log is no fork.

        Cost: nothing for a file without branches; else a read of each branch, once.

        Raises:
            Corrupt: a branch cannot be read.
        """
        newest, branches = self._branches
        if self.is_open and (branch := self.toc().branch) != newest:
            branches = branches_of(branch, self.event)
            self._branches = branch, branches
        return branches

    @property
    def identity(self) -> Identity:
        """The identity of the log: its id, and that of its newest branch."""
        branches = self.branches()
        return Identity(self.log_id, branches[-1].id if branches else None)

    def check_unsalvaged(self) -> None:
        """Refuse a handle that was opened to salvage a damaged file.

        Raises:
            Corrupt: the file has lost events.
        """
        if self._salvaging:
            raise Corrupt(
                "The file has lost events, which a fork would lack without saying so",
                where=self.path,
                remedy="Copy the events before the loss with 'cerata file doctor --repair "
                "--to NEW.cera --drop-damaged', and fork the copy.",
            )

    def check_point(self, seq: int, of: Identity) -> None:
        """Check that event ``seq`` of a log with this identity is an event of this log too.

        Raises:
            InvalidInput: the identity is that of another memory.
            Diverged: the event lies on another branch.
        """
        check_point(seq, of, self.identity, self.branches(), self.path)

    def forget(self) -> None:
        """Drop cached events: decoded blocks and indexes, and the ring's tail."""
        state = self._state
        with self._lock.mutex, self._lock.changing():
            if not self._salvaging:
                log_file = state.log_file
                state.enter(log_file.again(state.page.file_id), state.page)
        self.refresh()

    def read(self, first: int = 1, last: int | None = None) -> Iterator[Event]:
        """Yield events in seq order, from ``first`` to ``last`` or the head.

        Raises:
            Corrupt: at the first damage; all events before it have been yielded.
        """
        snapshot = self.snapshot
        stop = snapshot.head_seq if last is None else min(last, snapshot.head_seq)
        return snapshot.reader.events(snapshot, max(first, 1), stop)

    def read_in_sequences(self, first: int, last: int, size: int) -> Iterator[Sequence[Event]]:
        """Yield the same events as `read` in sequences, for a fold: most make no `Event`.

        Args:
            first: seq of the first event, from 1.
            last: seq of the last event.
            size: a sequence has at most this number of events.

        Raises:
            Corrupt: at the first damage; all events before it have been yielded.
        """
        snapshot = self.snapshot
        stop = min(last, snapshot.head_seq)
        return snapshot.reader.event_batches(snapshot, max(first, 1), stop, size)

    def recent_in_sequences(self, first: int, last: int, size: int) -> Iterator[Sequence[Event]]:
        """Yield the same events as `recent` in sequences, as `read_in_sequences`.

        Raises:
            Corrupt: at the first damage; all events before it have been yielded.
        """
        snapshot = self.snapshot

        def read(start: int, stop: int) -> Iterator[Sequence[Event]]:
            return snapshot.reader.event_batches(snapshot, start, stop, size)

        batches = self._state.recent.within(first, last)
        return joined_runs(recent_runs(batches, first, last, size, read), size)

    def recent(self, first: int, last: int) -> Iterator[Event]:
        """Yield the same events as `read`; the newest of this handle from memory.

        Args:
            first: seq of the first event, from 1.
            last: seq of the last event, at most that of `head`.

        Raises:
            Corrupt: at the first damage; all events before it have been yielded.
        """
        snapshot = self.snapshot
        at = first
        for held in self._state.recent.within(first, last):
            batch = held.batch
            if at < batch.first_seq:
                yield from snapshot.reader.events(snapshot, at, batch.first_seq - 1)
                at = batch.first_seq
            stop = min(last, batch.last_seq) + 1
            yield from held.read(at - batch.first_seq, stop - batch.first_seq)
            at = stop
        if at <= last:
            yield from snapshot.reader.events(snapshot, at, last)

    def drop_recent(self, through: int) -> None:
        """Free the memory of the sealed events up to ``through`` that `recent` would use."""
        with self._lock.mutex:
            state = self._state
            state.recent.drop_through(min(through, state.page.sealed_seq))

    def event(self, seq: int) -> Event:
        """Return one event. Raises `NotFound` if the log has no such seq."""
        self._lock.check_open()
        snapshot = self._snapshot
        if not 1 <= seq <= snapshot.head_seq:
            raise NotFound(
                f"There is no event {seq:,}", remedy=f"Pass a seq of at most {snapshot.head_seq:,}."
            )
        [event] = snapshot.reader.events_at(snapshot, (seq,))
        return event

    def events_at(self, seqs: Sequence[int]) -> list[Event]:
        """Return some events of the log; their seqs ascend, and none is above that of `head`.

        Raises:
            Corrupt: an event is damaged; `event` reads one that is whole.
        """
        snapshot = self.snapshot
        return snapshot.reader.events_at(snapshot, seqs)

    def attachment(self, seq: int, attachment: Attachment) -> bytes:
        """Return the bytes that a payload of event ``seq`` names; verified against their hash.

        Raises:
            NotFound: the event has no such attachment. Corrupt: its bytes are damaged.
        """
        snapshot = self.snapshot
        candidates = snapshot.reader.attachments(snapshot, seq)
        return chosen(candidates, attachment, seq, self.path)

    def check_whole(self, event: Event) -> None:
        """Refuse an event of the log that is damaged in part: `Corrupt`.

        Fields can be read beside a damaged vector or attachment. Cost: a hash of each of these.
        """
        _ = event.leaf
        if event.payload_bytes is not None:
            snapshot = self.snapshot
            reader = snapshot.reader
            attachments = reader.attachments(snapshot, event.seq)
            reader.check_attachments(snapshot, event.seq, event.payload_bytes, attachments)

    def embeddings(self, key: ColumnKey, seqs: I64) -> U8:
        """Return the vectors of events, a row of bytes each, shape (len(seqs), bytes per row).

        ``key`` gives space, dtype and dimension; ``seqs`` ascend. The vectors are not verified: the
        caller has their hashes. Cost: one read for each column of which half of the rows or more
        are requested, else one for each row.

        Raises:
            Corrupt: an event has no such vector, or its place cannot be read.
        """
        snapshot = self.snapshot
        return snapshot.reader.embeddings(snapshot, key, seqs)

    def embedding_columns(self, key: ColumnKey, seqs: I64) -> Iterator[tuple[I64, int]]:
        """Yield the columns that have the vectors of events: their events, and offset in `file`.

        Row r of a column is the vector of event r of the column. Events that are not sealed have no
        column. The offsets never change. Cost: a look-up in each large batch and segment, but of
        large batches in memory none. Raises: Corrupt.
        """
        snapshot = self.snapshot
        is_unknown = np.ones(len(seqs), np.bool_)
        held = self._state.recent.within(int(seqs[0]), int(seqs[-1])) if len(seqs) else ()
        for batch, column in ((each.batch, each.columns.get(key)) for each in held):
            if column is not None:
                low, high = seqs.searchsorted([batch.first_seq, batch.last_seq + 1])
                is_unknown[low:high] = False
                yield np.array(column.events, np.int64) + batch.first_seq, column.offset
        if bool(is_unknown.any()):
            yield from snapshot.reader.embedding_columns(snapshot, key, seqs[is_unknown])

    def chain_at(self, seq: int) -> bytes:
        """Return the chain hash after event ``seq``. Cost: the events since its segment began."""
        return self._hashes_at(seq)[0]

    def root_at(self, seq: int) -> bytes:
        """Return the Merkle root after event ``seq``. Cost: the events since its segment began."""
        return self._hashes_at(seq)[1].root()

    def _hashes_at(self, seq: int) -> tuple[bytes, Tree]:
        """Return chain hash and tree after event ``seq``; extends the last result if possible."""
        with self._lock.mutex:
            at, chain, tree = self._hashes
            snapshot = self._holding(seq)
            if seq == at:
                # The hashes after an event never change, and callers ask for both.
                return chain, tree
            if seq < at or at < snapshot.page.sealed_seq:
                chain, tree = snapshot.reader.chain_and_tree(snapshot, seq)
            else:
                leaves = [event.leaf for event in snapshot.reader.events(snapshot, at + 1, seq)]
                chain = chain_through(chain, leaves)
                tree = tree.extend(leaves)
            self._hashes = seq, chain, tree
            return chain, tree

    def _holding(self, seq: int) -> Snapshot:
        """Return the snapshot. Raises `NotFound` if event ``seq`` lies past its head."""
        snapshot = self.snapshot
        if not 0 <= seq <= snapshot.head_seq:
            raise NotFound(
                f"There is no event {seq:,}", remedy=f"Pass a seq of at most {snapshot.head_seq:,}."
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
        payloads: Sequence[bytes] | None = None,
        sees: Sees | None = None,
    ) -> Appended:
        """Append a batch: all of its events or none, durable on return under the default policy.

        Args:
            drafts: the events, in order.
            expect: the head's seq that the caller saw, or None.
            key: idempotency key: a repeated call with equal ``arguments`` returns the first result.
            arguments: hash of the caller's arguments.
            validate: called under the lock with the events after ``known``; refuses by raising.
            known: seq of the last event that the caller has validated against.
            payloads: the drafts' payloads, if `encode_payloads` has encoded them already.
            sees: as in `find_key`.

        Raises:
            InvalidInput, Conflict, IdempotencyConflict: the batch is refused; nothing was written.
            Locked: another writer held the lock for too long; nothing was written.
            StorageFailed: the disk refused; nothing was acknowledged.
            OutcomeUnknown: the sync failed; reopen the file and look for the batch.
        """
        prepared = prepare(
            drafts, self.environment.random_bytes, payloads=payloads, key=key, arguments=arguments
        )
        earlier = None
        while earlier is None:
            spill = None
            if prepared.size > self._state.page.ring_size // 4:
                spill = self._write_spill(prepared)
            with self._lock.mutex, self._lock.writing():
                if spill is not None and spill.log_file is not self._state.log_file:
                    # Compaction replaced the file: write the batch into the new file.
                    continue
                if key is not None:
                    earlier = self._replayed(prepared, key, sees)
                    if earlier is not None:
                        continue
                if expect is not None:
                    self._expect(expect)
                if validate is not None:
                    validate(list(self._state.events(known + 1)))
                batch = self._writer.write_batch(prepared, None if spill is None else spill.ref)
                self._state.recent.add(batch, prepared, {} if spill is None else spill.columns)
            return self._acknowledged(batch)
        return self._shown(earlier)

    def _expect(self, expect: int) -> None:
        head = self._state.head_seq
        remedy = "Pass the seq of a head, such as store.head.seq."
        expect = expect_integer("expect", expect, "a number", remedy)
        if expect != head:
            raise Conflict(
                f"The log is at event {head:,}, not at {expect:,}",
                where=self.path,
                remedy="Read the events appended since, and decide again.",
            )

    def _acknowledged(self, batch: Batch) -> Appended:
        """Sync a batch that was just written as the policy demands, and return its result."""
        policy = self._sync
        last_seq = batch.last_seq
        due = not isinstance(policy, int) or self._writer.unsynced_bytes >= policy
        if due or self._state.shows_foreign:
            self._sync_through(last_seq)
            if policy == "always":
                self._prove_appended(batch)
        else:
            with self._lock.mutex:
                self._publish()
        head = Head(last_seq, batch.recorded, self)
        durable = self._state.durable >= last_seq
        return Appended(batch.first_seq, last_seq, durable, head)

    def _prove_appended(self, batch: Batch) -> None:
        """Prove a durable batch.

        A failure here does not undo the batch, so the error must not claim that it failed.
        """
        try:
            self._prove()
        except OutcomeUnknown:
            raise
        except CerataError as error:
            raise OutcomeUnknown(
                f"Events {batch.first_seq:,} to {batch.last_seq:,} are durable but not proven "
                f"yet: {error.what}",
                where=self.path,
                remedy="Do not append them again; the next batch or a clean close proves them.",
            ) from error

    def _write_spill(self, prepared: Prepared) -> "_Spill":
        """Write a large batch's events into a separate extent; durable on return.

        The place is allocated under the writer lock and written outside it, so other writers wait
        only for the allocation: the body is encoded for the current end of the file, and encoded
        again under the lock only if the end has moved. A crash here leaves an orphan, which is
        trimmed or compacted later.
        """
        self._lock.check_writable()
        batch = Batch(0, len(prepared.events), 0, None, prepared.events, None, prepared.seed)
        draft = SegmentDraft([batch], bodies=[draft.body for draft in prepared.drafts])
        # The mutex keeps `close` from releasing the descriptor during the write.
        with self._spill_mutex:
            log_file, offset = self._next_place()
            body = draft.encode(log_file.key, offset)
            with self._lock.mutex, self._lock.writing():
                place = self._next_place()
                if place != (log_file, offset):
                    log_file, offset = place
                    body = draft.encode(log_file.key, offset)
                generation = self._state.page.generation + 1
                log_file.file.set_size(offset + extent_size(len(body)))
            at = offset
            for piece in encode_extent(
                log_file.key, offset, ExtentKind.SPILL, body, generation=generation
            ):
                log_file.file.write_at(at, piece)
                at += len(piece)
            try:
                log_file.file.sync()
            except StorageFailed as error:
                raise self._poison.take(error) from error
        return _Spill(log_file, SpillRef(offset, len(body)), draft.placed)

    def _next_place(self) -> tuple[LogFile, int]:
        """Return the file and the offset of its next extent; stable under the writer lock."""
        page = self._state.page
        log_file = self._state.log_file
        return log_file, sectors(max(log_file.file.size(), page.data_end))

    def find_key(
        self, key: str, tenant: ScopeValue, *, sees: Sees | None = None
    ) -> "KeyUse | None":
        """Return the first use of an idempotency key in a tenant, once it is durable.

        With ``sees``, the look-up skips events of scopes that it refuses. Takes the writer lock for
        the look-up, as an append does.

        Raises:
            InvalidInput: the key or the tenant is not valid.
            ReadOnly: the log was opened for reading.
            Locked: another writer held the lock for too long.
        """
        check_key(key)
        check_scope((("tenant", tenant),))
        with self._lock.mutex, self._lock.writing():
            use = self._key_use(key, tenant, sees)
        return None if use is None else replace(use, appended=self._shown(use.appended))

    def _shown(self, earlier: Appended) -> Appended:
        """Return an earlier result, made as durable as the policy demands."""
        # An integer policy shows this handle's unsynced events.
        if earlier.durable or not isinstance(self._sync, int) or self._state.shows_foreign:
            # Another process may have written the batch without a sync: sync before reporting.
            self._sync_through(earlier.last_seq)
            earlier = msgspec.structs.replace(earlier, durable=True)
        return earlier

    def _replayed(self, prepared: Prepared, key: str, sees: Sees | None) -> Appended | None:
        first_use = self._key_use(key, prepared.tenant, sees)
        if first_use is None:
            return None
        first_use.check(key, prepared.arguments)
        return first_use.appended

    def _key_use(self, key: str, tenant: ScopeValue, sees: Sees | None) -> "KeyUse | None":
        """Under the writer lock: return the first use of a key."""
        hash_of_key = key_hash(tenant, key)
        state = self._state
        in_tail = state.keys.in_tail(state.tail, state.reader, hash_of_key)
        for seq in (*self._keyed_in_segments(hash_of_key), *in_tail):
            event = next(state.events(seq))
            payload = event.payload
            if payload is None or payload.key != key:
                continue
            key_tenant = tenant_of(payload.scope)
            # 1 equals True in Python, but they are two tenants.
            if type(key_tenant) is not type(tenant) or key_tenant != tenant:
                continue
            if sees is not None and not sees(payload.scope):
                continue
            last_seq = event.header.last_seq
            durable = state.durable >= last_seq
            head = Head(last_seq, event.recorded, self)
            appended = Appended(seq, last_seq, durable, head, replayed=True)
            batch = state.reader.events(state.snapshot(), seq, last_seq)
            return KeyUse(appended, payload.arguments, tuple(member.salt for member in batch))
        return None

    def _keyed_in_segments(self, hash_of_key: int) -> list[int]:
        state = self._state
        toc = state.reader.toc(state.page)
        if not state.reader.rebuilt:
            try:
                return list(state.keys.candidates(toc.keys, hash_of_key))
            except Corrupt:
                state.reader.rebuilt = True
        # The TOC or a run is damaged: a flip rewrites the keys from the events.
        self._writer.flip()
        return list(state.keys.candidates(state.reader.toc(state.page).keys, hash_of_key))

    def watch(self) -> Watch:
        """Return a watch of the file, which `close` of this handle wakes too."""
        watch = self.environment.watch(self.path)
        with self._lock.mutex:
            self._watches.add(watch)
        return watch

    # --- sealing and following -------------------------------------------------------------------

    def seal(self, *, ring_bytes: int | None = None) -> None:
        """Move every event from the ring into a segment. Durable on return.

        With ``ring_bytes``, later events go to a new ring of this size, in whole sectors.
        """
        with self._lock.mutex, self._lock.writing():
            if self._state.tail or ring_bytes is not None:
                self._writer.flip(ring_size=ring_bytes)
            self._publish()

    def publish_projections(self, build: Build, *, wait: bool = True) -> None:
        """Seal, and save projections' entries in the TOC. Durable on return.

        ``build`` adds chunks to the flip, and returns the entries by projection key; entries of
        other projections stay. Without ``wait`` the writer lock is tried once.

        Raises:
            Locked: another writer held the lock for too long, or at all without ``wait``; nothing
                was written.
        """
        with self._lock.mutex, self._lock.writing(wait=wait):
            self._writer.flip(build=build)
            self._publish()

    def carry(self, names: Mapping[str, Any], build: Build) -> None:
        """Seal, and save names and projections of later versions in the TOC. Durable on return."""
        with self._lock.mutex, self._lock.writing():
            self._writer.flip(build=build, names=names)
            self._publish()

    def take_sealed(self, batches: list[Batch]) -> None:
        """Under the writer lock: move batches of the same log in another file into a segment.

        They continue the head, and the ring is empty. Durable on return.
        """
        self._writer.take_sealed(batches)
        self._publish()

    def move(self, swap: Callable[[Snapshot], None]) -> None:
        """Call ``swap`` with everything in the log, while no process writes, and follow the log.

        ``swap`` puts another file of the log at the path, for `replace_file`.
        """
        with self._lock.mutex, self._lock.writing():
            self._check_in_place()
            # Reads in ``swap`` see the newest events of other processes.
            self._publish_synced()
            self._lock.is_moving = True
            try:
                swap(self._state.snapshot())
            finally:
                self._lock.is_moving = False
                if self._lock.follow_move(self._state.log_file.read_pages(), locked=False):
                    self._take_in()
                self._publish_synced()

    def set_moved(self, *, moved: bool) -> None:
        """Under the writer lock: say in the file whether another file continues the log.

        Durable on return.
        """
        state = self._state
        page, _ = state.choose_page(state.log_file.read_pages())
        try:
            (set_moved if moved else clear_moved)(state.log_file, page)
        except StorageFailed as error:
            raise self._poison.take(error) from error

    def become_copy(self, origin: Origin) -> None:
        """Give a log without events the id of another log, whose events follow. Durable on return.

        Raises:
            Conflict: the log has events.
        """
        with self._lock.mutex, self._lock.writing():
            self._expect(0)
            self._writer.flip(origin=origin)
            self._publish()

    def append_sealed(self, batches: list[Batch], *, expect: int) -> None:
        """Append batches of a copy of this log as a segment. Durable on return.

        Args:
            batches: complete batches with seqs, times and salts, which continue event ``expect``.
            expect: the head's seq that the caller saw.

        Raises:
            Conflict: another writer appended first; nothing was written.
        """
        with self._lock.mutex, self._lock.writing():
            self._expect(expect)
            if self._state.tail:
                self._writer.flip()
            self._writer.take_sealed(batches)
            self._publish()

    def settle(self, recovered: RecoveredState, *, alone: bool) -> None:
        """Under the writer lock: make the state found at opening durable, and repair the rest.

        Raises:
            Corrupt: acknowledged events are unreadable; nothing was written.
            Unsupported: a newer Cerata left data that this version would undo; nothing was written.
        """
        self._writer.settle(recovered, alone=alone)
        self._publish()

    def refresh(self) -> Head:
        """Read the events that other processes appended; takes no lock, never goes back."""
        lock = self._lock
        lock.check_open()
        with lock.mutex:
            if not self._salvaging and not self._shows_all():
                with lock.changing():
                    self._look()
                    self._publish_synced()
        snapshot = self._snapshot
        return Head(snapshot.head_seq, snapshot.recorded, self)

    def refresh_for(self, kind: str) -> Head:
        """Read on as `refresh`, and sync only if the news have an event of this type.

        Else the head stays before the first event that is not known to be durable: for a writer,
        whose next sync covers these events.
        """
        lock = self._lock
        lock.check_open()
        with lock.mutex:
            # Every put in a transaction looks, and most looks find nothing to show.
            if not self._salvaging and not self._shows_all():
                with lock.changing():
                    self._look()
                    self._show_durable(kind)
        snapshot = self._snapshot
        return Head(snapshot.head_seq, snapshot.recorded, self)

    def _show_durable(self, kind: str) -> None:
        """Show readers the durable events, and all if one of a type is new to them."""
        state = self._state
        before = self._snapshot
        if state.head_seq != before.head_seq or state.page is not before.page:
            news = state.events(before.head_seq + 1)
            if state.head_seq <= state.durable or any(event.type == kind for event in news):
                self._publish_synced()
            else:
                self._show_later(state.durable_snapshot())

    def _shows_all(self) -> bool:
        """Return whether readers see all of the file, durably: a look that changes no state."""
        state = self._state
        snapshot = self._snapshot
        head_seq = state.cursor.next_seq - 1
        if self._lock.is_changing or snapshot.page is not state.page:
            return False
        if snapshot.head_seq != head_seq or state.durable < head_seq:
            return False
        # As the check begins: each read looks here.
        if self.environment.storage.identity(self.path) != state.identity:
            self._check_in_place()
        return state.is_current()

    def _look(self) -> None:
        """Take in the file's events, unless the state has all of them."""
        self._check_in_place()
        if not self._state.is_current():
            self._take_in()

    def _take_in(self) -> None:
        """Read on from the current state until no header page changes during the read."""
        state = self._state
        for _ in range(_READ_TRIES):
            pages = state.log_file.read_pages()
            if self._lock.follow_move(pages, locked=False):
                continue
            news = state.look_on(pages)
            if state.log_file.read_pages() == pages:
                break
        else:
            with self._lock.standing_still():
                pages = state.log_file.read_pages()
                news = state.look_on(pages)
        state.take_in(pages, news)

    def _check_in_place(self) -> None:
        """Refuse to continue if the path names another file, or none, and the log did not move.

        The header of a compacted file names its successor, which the handle follows.
        """
        state = self._state
        identity = self.environment.storage.identity(self.path)
        if identity == state.identity:
            return
        page, _ = choose_page(state.log_file.read_pages(), self.path)
        if page.moved:
            return
        change = "removed" if identity is None else "replaced by another"
        raise Corrupt(
            f"The file was {change} while it was open",
            where=self.path,
            remedy="Open the path again; later writes went to a file without a name.",
        )

    # --- durability ------------------------------------------------------------------------------

    def commit(self) -> None:
        """Make everything that this handle appended durable."""
        self._lock.check_writable()
        self._sync_through(self._state.head_seq)

    def _sync_through(self, seq: int) -> None:
        """Return once event ``seq`` is durable; concurrent callers share one sync."""
        state = self._state
        with self._sync_mutex:
            if state.durable < seq:
                with self._lock.mutex:
                    # Before the sync: code that runs after it finds the processor's caches cold.
                    snapshot = state.snapshot()
                    self._writer.unsynced_bytes = 0
                self._file_sync()
                with self._lock.mutex:
                    state.durable = max(state.durable, snapshot.head_seq)
                    state.shows_foreign = False
                    self._show_later(snapshot)
            else:
                with self._lock.mutex:
                    self._show_later(state.durable_snapshot())

    def _prove(self) -> None:
        """Write and sync a mark, unless the ring already proves that the head is durable."""
        state = self._state
        with self._lock.mutex, self._lock.writing():
            head = state.head_seq
            if max(state.page.sealed_seq, state.cursor.durable_through) >= head:
                return
            if state.durable < head:
                # Includes another process's batch, which this handle has not synced.
                self._file_sync()
                state.durable = head
            self._writer.write_mark()
        self._file_sync()

    def _name_head(self) -> None:
        """Prove the head as `_prove` does, and in a header page."""
        with self._lock.mutex, self._lock.writing():
            self._writer.close_log()

    def _file_sync(self) -> None:
        self._writer.sync()

    # --- the handle ------------------------------------------------------------------------------

    def close(self) -> None:
        """Make everything durable, prove it, and release the file; a second call does nothing.

        After a failure nothing is written.
        """
        if self._lock.closed:
            return
        try:
            if self._lock.may_write:
                self._sync_through(self._state.head_seq)
                self._name_head()
        finally:
            with self._spill_mutex, self._sync_mutex, self._lock.mutex:
                try:
                    # Other threads may have appended since, and wait for a sync.
                    head = self._state.head_seq
                    if self._lock.may_write and head > self._state.durable:
                        self._file_sync()
                        self._state.durable = head
                finally:
                    self._lock.release()
                    for watch in self._watches:
                        watch.wake()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def abandon(self) -> None:
        """Drop the handle without writing to the file: for a child after fork."""
        self._lock.abandon()
        # A thread that the child lacks may hold this mutex; the other two are taken after a check.
        self._spill_mutex = threading.Lock()

    def _publish_synced(self) -> None:
        """Show readers every event read, also of other processes, after a sync if one is due."""
        state = self._state
        if state.head_seq > state.durable:
            # The writer may not have synced yet, and shown events must stay.
            self._file_sync()
            state.durable = state.head_seq
        self._publish()

    def _publish(self) -> None:
        self._show(self._state.snapshot())

    def _show_later(self, snapshot: Snapshot) -> None:
        """Show readers a snapshot, unless they have seen a later one."""
        if snapshot.head_seq > self._snapshot.head_seq:
            self._show(snapshot)

    def _show(self, snapshot: Snapshot) -> None:
        """Replace the readers' snapshot, by one assignment."""
        self._state.shown = snapshot.head_seq
        self._snapshot = snapshot


@dataclass(frozen=True, slots=True)
class _Spill:
    """A large batch's extent, the file that holds it, and its columns of embeddings."""

    log_file: LogFile
    ref: SpillRef
    columns: Mapping[ColumnKey, PlacedColumn]
