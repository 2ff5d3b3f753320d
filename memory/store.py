"""The store: the handle of an agent, with every write and every read at the newest event.

Owns `Store`: the handle, the maintenance of the file, and when projections are saved. Leaves out
points in time (`points_in_time`), writing (`frames.commands`, `batch.session`), reading
(`frames.reads`, `search.reads`), and everything about bytes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, Self

from cerata.engine.arguments import expect_bool, is_integer
from cerata.engine.environment import Environment
from cerata.engine.errors import Corrupt, InvalidInput, Locked, StorageFailed, value_text
from cerata.engine.events import Draft, Event, JsonValue, RecallContext, Scope, ScopeValue
from cerata.engine.head import Head
from cerata.engine.late import late
from cerata.engine.loading import loading
from cerata.engine.open import open_log, path_name
from cerata.engine.own_packs import add_packs, checked_packs
from cerata.engine.packs import calls_of_packs, target
from cerata.projections.columnar.scopes import (
    MISSING,
    Reach,
    admits,
    check_reach,
    pairs_of,
)

from .batch.author import author_of
from .batch.session import WriteSession
from .compaction import CompactionCommands
from .embeddings.commands import EmbeddingCommands
from .event_interchange import InterchangeCommands
from .event_stream import StreamReads
from .facts.bulk_commands import BulkFactCommands
from .facts.commands import FactCommands
from .facts.reads import FactReads
from .frames.commands import FrameCommands
from .frames.history_reads import HistoryReads
from .frames.log_reads import LogReads
from .frames.reads import FrameReads
from .frames.timeline_reads import TimelineReads
from .frames.version_commands import VersionCommands
from .graph.reads import GraphReads
from .ingest.commands import IngestCommands
from .links.commands import LinkCommands
from .links.reads import LinkReads
from .links.why_reads import WhyReads
from .recall_reads import RecallReads
from .resident_modules import load_resident_modules
from .snapshot.store_embedder import AUTO, Choice
from .values.arguments import full_scope, reach_of
from .values.frames import Context
from .values.owners import check_owners
from .view import Basis

if TYPE_CHECKING:
    from cerata.engine import remembered
    from cerata.engine import salvage as salvage_module
    from cerata.engine.log import SyncPolicy
    from cerata.engine.packs import Pack
    from cerata.engine.recovery import RecoveryReport
    from cerata.projections import registry as projection_registry
    from cerata.projections.rows.row_projection import RowProjection
    from cerata.replay import fold as replay_fold
    from cerata.replay.rebuild import Rebuild
    from cerata.replay.verify import Verification
    from cerata.retrieval.embedders import built_in as built_in_embedders
    from cerata.retrieval.embedders import members as embedder_members
    from cerata.retrieval.embedders.embedder import Embedder

    from .batch.transaction import Transaction
else:
    salvage_module = late("cerata.engine.salvage")
    remembered = late("cerata.engine.remembered")
    replay_fold = late("cerata.replay.fold")
    built_in_embedders = late("cerata.retrieval.embedders.built_in")
    embedder_members = late("cerata.retrieval.embedders.members")
    projection_registry = late("cerata.projections.registry")

WORKERS_MAX: Final = 64
"""Processes of a rebuild, each with the folded state in memory."""


class Store(
    CompactionCommands,
    InterchangeCommands,
    StreamReads,
    FrameCommands,
    VersionCommands,
    FactCommands,
    BulkFactCommands,
    LinkCommands,
    EmbeddingCommands,
    IngestCommands,
    FrameReads,
    HistoryReads,
    TimelineReads,
    LogReads,
    RecallReads,
    FactReads,
    LinkReads,
    WhyReads,
    GraphReads,
):
    """A memory in one file, returned by `cerata.open`.

    - Any thread may call its methods; several processes may have the file open.
    - Reads see every batch that any process acknowledged before the read began.
    - `at` returns a view that does not change.
    """

    # --- the handle ------------------------------------------------------------------------------

    def __repr__(self) -> str:
        scope = "" if self.scope is None else f", scope {dict(self.scope)!r}"
        return f"<cerata.Store {self.path!r}{scope}>"

    if not TYPE_CHECKING:
        # A type checker knows the functions of packs, and no further name of a store.
        def __getattr__(self, name: str) -> Any:
            """Return a function of a pack, such as ``judge`` of the agents, with this store."""
            call = None if name.startswith("_") else calls_of_packs().get(name)
            if call is None:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            return partial(target(call), self)

    @property
    def scope(self) -> Scope | None:
        """The scope passed to `open`: stamped on every write, and a filter of every read."""
        return pairs_of(self._session.reach)

    @property
    def shared(self) -> bool:
        """True if the store was opened with ``shared=True``: reads admit shared events too."""
        return self._session.reach is not None and self._session.reach.shared

    @property
    def actor(self) -> str | None:
        """The actor passed to `open`: recorded with each event, unless a call names another."""
        return self._session.author.actor

    def scoped(
        self,
        scope: Mapping[str, ScopeValue],
        *,
        shared: bool = False,
        actor: str | None = None,
    ) -> Store:
        """Return a store with a scope on the same open file, for example for each request.

        It shares the file, the indexes and the embedder, so a call costs microseconds. Its
        transactions are its own: a block of this store does not collect its writes. Its `close`,
        also at the end of a ``with`` block, leaves the file open; this store closes the file.

        Args:
            scope: Names and values, as in `open`; they narrow the scope of this store.
            shared: Reads also admit events that lack names of ``scope``, as in `open`.
            actor: Name of the writer; default the actor of this store.

        Raises:
            InvalidInput: the scope has no name, would widen that of this store, or is unusable.
        """
        return type(self)(self._session.scoped(scope, shared=shared, actor=actor))

    @property
    def path(self) -> str:
        """The file's path, or ``:memory:``."""
        return self._log.path

    @property
    def report(self) -> RecoveryReport:
        """The damage that opening the file found, and the repairs that it made."""
        return self._log.report

    @property
    def head(self) -> Head:
        """The newest point of the log; keep its text elsewhere to detect edits and rollback."""
        end = self._session.end_of_run
        return self._log.refresh() if end is None else self._session.snapshot_at(end).head

    def refresh(self) -> Head:
        """Load the events of other processes, as every read does, and return the head."""
        return self._log.refresh()

    def commit(self) -> None:
        """Sync the batches that a sync policy in bytes has not synced yet. Durable on return."""
        self._log.commit()

    def checkpoint(self) -> None:
        """Save the state of every projection, so that the next opener need not replay.

        Raises:
            ReadOnly: the store was opened for reading.
        """
        self._session.check_writable()
        self._fold.save()

    def salvaged(self) -> Iterator[Event]:
        """Yield every event that is still readable, also past damage, without the lost seqs.

        A store with a scope yields the events within its scope.

        Raises:
            InvalidInput: the store requires a scope and has none.
        """
        reach = self._session.reach
        check_reach(reach)
        events = salvage_module.salvaged_events(self._log)
        return (event for event in events if reach is None or _is_seen(event, reach))

    def backup(self, path: str | os.PathLike[str], *, through: int | None = None) -> None:
        """Copy the present memory into a new file, while other processes may write.

        The copy has the same events, chain and root; its indexes are rebuilt on first use. The
        file appears whole or not at all. Durable on return.

        Args:
            path: The file to create.
            through: The last event to copy: only batches that end by this seq; default all.

        Raises:
            InvalidInput: ``path`` is not a valid path.
            Conflict: a file exists at ``path``.
            Corrupt: an event cannot be read.
        """
        with loading("the part that backs up"):
            from cerata.engine.backup import back_up

        back_up(self._log, path_name(path), through=through)

    def close(self) -> None:
        """Make all batches durable and release the file; a second call does nothing.

        Saves a checkpoint for the next opener if folding again would take longer than 5 ms. A
        ``:memory:`` store has no next opener. A store that `scoped` returned leaves the file open.
        """
        if not self._session.is_owner:
            return
        try:
            # A checkpoint only saves time. If the disk is full, the log damaged, or another writer
            # holds the lock, an error here would hide that all acknowledged writes are durable.
            with suppress(StorageFailed, Corrupt, Locked):
                if self._log.is_writable and self._log.is_open and self._fold.is_worth_saving():
                    self._fold.save()
        finally:
            self._log.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- transactions ----------------------------------------------------------------------------

    def transaction(
        self,
        *,
        expect: int | None = None,
        key: str | None = None,
        actor: str | None = None,
        reason: str | None = None,
    ) -> AbstractContextManager[Transaction]:
        """Collect the writes of this thread or task into one batch: all of them or none.

        Receipts inside the block carry ids −1, −2, …, which later calls inside may name; after the
        block ``tx.receipt`` has the final ids. Reads inside see the pending events of the block
        over the state at the first such read. The store's `at` reads only the log; the `at` of a
        view from inside the block (``store.view()``) sees the same as that view. A call that cannot
        be appended raises at once and adds nothing. The block holds no lock, and an exception in it
        writes nothing.

        With ``key`` a repeated block reads the state before its first run (`at`, `tag` and `head`
        too), writes nothing, and gets the first receipt, with ``added`` False. The key
        is stored with the first event of the block, so a block that writes nothing leaves it
        unused. The key belongs to the tenant of the first event. If that is not the store's tenant,
        reads before the first write see the newest state, so open a store with that scope instead.

        Args:
            expect: Seq at which the log must end when the block is appended; by default any.
            key: Idempotency key for the calls in the block and their arguments; by default none.
            actor: Name of the writer; default that of the transaction, else of the store.
            reason: The reason, for readers of the log; default that of the transaction.

        Raises:
            Conflict: at the end of the block: another writer closed a frame or fact that a call
                names, or the log does not end at ``expect``.
            IdempotencyConflict: the key was used for other calls, or the calls of the block can no
                longer be repeated.
        """
        return self._session.transaction(expect=expect, key=key, actor=actor, reason=reason)

    def _recorded(
        self,
        context: Context,
        event: RecallContext,
        call: tuple[object, ...],
        actor: str | None,
    ) -> Context:
        scope = full_scope(None, self._session.scope)
        self._session.record_call(scope, "recall", *call)
        receipt = self._session.by(actor).write([Draft(event, scope)])
        return replace(context, recorded=receipt.seqs[0])

    # --- the state of the file -------------------------------------------------------------------

    def info(self, at: Basis | None = None) -> dict[str, JsonValue]:
        """Return the file's head, counts, sizes and checkpoints as plain values; folds frames.

        Args:
            at: The basis of head and frame counts, default the newest; sizes are always current.
        """
        with loading("the part that counts"):
            from .info import info

        state = self._session.state() if at is None else self._at(at)
        return info(self._log, state.of_file)

    def digests(self, *, replay: bool = False) -> dict[str, bytes]:
        """Return each projection's digest (32 bytes) at the head.

        Both ways of folding give equal digests.

        Args:
            replay: Fold from the log alone and ignore checkpoints; default checkpoint plus tail.
        """
        self._log.refresh()
        fold = replay_fold.replay(self._log, registry=self._fold.registry) if replay else self._fold
        return fold.digests()

    def verify(
        self,
        progress: Callable[[str, int, int], None] | None = None,
        *,
        against: Head | str | None = None,
    ) -> Verification:
        """Recompute every hash and projection from the log and compare; writes nothing.

        The root over the events of ``against`` is recomputed from the events. The result's
        ``against.outcome`` is "agrees", "rollback", "fork", "foreign" or "unreadable"; for the
        three that contradict the head, ``against.diverged`` is a `Diverged`, which is not raised.

        Args:
            progress: Called with the name of a part, and how many of how many steps are complete.
            against: A head stored elsewhere, as `Head.text` (a `Head` reads hashes of this file).

        Raises:
            InvalidInput: ``against`` is neither a head nor its text.
        """
        with loading("the part that verifies"):
            from cerata.replay.verify import verify

        head = None if against is None else remembered.RememberedHead.of(against)
        return verify(self._log, self._fold, progress, head)

    def rebuild(
        self,
        projection: str | Sequence[str] | None = None,
        progress: Callable[[str, int, int], None] | None = None,
        *,
        workers: int = 1,
    ) -> Rebuild:
        """Fold projections again from the log; reads use the old states until the new are complete.

        Each new state is compared with the old state, and then replaces it. The result names each
        old state that differed, and the first event from which it differed. A rebuild that was
        killed continues from its last saved chunk. Durable on return.

        Args:
            projection: The projection's name, or several names; default every projection.
            progress: Called with the name of a part, and how many of how many steps are complete.
            workers: Processes that fold built-in projections with a checkpoint, this one included;
                default 1. The new state does not depend on their number.

        Raises:
            NotFound: no projection has this name.
            InvalidInput: ``workers`` is no whole number from 1 to 64.
        """
        if not is_integer(workers) or not 1 <= workers <= WORKERS_MAX:
            raise InvalidInput(
                f"workers must be a whole number from 1 to {WORKERS_MAX}, "
                f"not {value_text(workers):.60}",
                remedy="Pass the number of processors, such as workers=2.",
            )
        with loading("the part that rebuilds"):
            from cerata.replay.rebuild import rebuild

        names = self._fold.registry.names if projection is None else projection
        if isinstance(names, str):
            names = (names,)
        return rebuild(self._log, self._fold, names, progress, workers)


def _is_seen(event: Event, reach: Reach) -> bool:
    """Return whether a reach admits a salvaged event; False if it cannot be decoded."""
    try:
        return admits(event.scope, reach)
    except Corrupt:
        return False


def open_store(
    path: str | os.PathLike[str],
    *,
    mode: Literal["r", "rw"] = "rw",
    scope: Mapping[str, ScopeValue] | None = None,
    shared: bool = False,
    require_scope: bool = False,
    actor: str | None = None,
    embedder: Embedder | str | None = None,
    sync: SyncPolicy = "commit",
    lock_timeout: float | None = 30.0,
    ring_bytes: int | None = None,
    salvage: bool = False,
    cache_bytes: int | None = None,
    environment: Environment | None = None,
    projections: Sequence[Callable[[], RowProjection[Any, Any]]] = (),
    packs: Sequence[Pack] = (),
) -> Store:
    """Open the memory in a file; a missing file is created, unless ``mode="r"``.

    Args:
        path: The file; ``":memory:"`` opens a store without a file.
        mode: "rw", the default, reads and writes; "r" only reads.
        scope: Names and values stamped on every event, and a filter of every read; default none.
        shared: Reads also admit events that lack names of ``scope``, other than the tenant; such
            shared things cannot be changed by this handle. Default False.
        require_scope: Without ``scope``, reads and writes raise `InvalidInput` until
            `Store.scoped`, `View.within` or ``scope=`` of a write gives one. Default False.
        actor: Name of the writer, recorded with each event; a call may name another. Default none.
        embedder: A built-in's name such as "minilm", an object, or "auto" for "static" if the
            memory remembers none; default the remembered one.
        sync: "commit" syncs each call, "always" syncs twice as proof, a number after so many bytes.
        lock_timeout: Seconds to wait for a lock, default 30; 0 fails at once, None never.
        ring_bytes: Size of a new file's ring in bytes; default None, 128 KiB; grows to 512 KiB.
        salvage: Read the events that a damaged file still has, and never write; default False.
        cache_bytes: Bytes of all caches of this handle together; default None, 1 GiB.
        environment: Replacement of disk, clock and randomness, for tests; default None.
        projections: Your projections, subclasses of `cerata.RowProjection`; default none.
        packs: Your packs (docs/packs.md); their events are known to the process from then on.

    Raises:
        InvalidInput: an argument cannot be used.
        NotFound: the file does not exist (mode "r"); the remedy names a similar file.
        Corrupt: acknowledged data is damaged.
        Locked: another process held the lock for ``lock_timeout``.
        InvalidInput: an argument is not valid, such as the name of no built-in embedder.
        Unsupported: the file is not a Cerata file or has a newer format, or the extra of a
            built-in embedder is not installed.
    """
    own_packs = checked_packs(packs)
    check_owners(own_packs)
    author_of(actor)
    choice = _choice(embedder)
    name = path_name(path)
    registry = projection_registry.Registry(projections, own_packs)
    add_packs(own_packs)
    load_resident_modules()
    require_scope = expect_bool("require_scope", require_scope)
    reach = reach_of(scope, shared=shared)
    if reach is None and require_scope:
        reach = MISSING
    log = open_log(
        name,
        mode=mode,
        environment=environment,
        sync=sync,
        lock_timeout=lock_timeout,
        ring_bytes=ring_bytes,
        salvage=salvage,
        cache_bytes=cache_bytes,
    )
    return Store(WriteSession(log, reach, registry, choice, actor))


def _choice(embedder: Embedder | str | None) -> Choice:
    """Return the checked argument ``embedder``; a name other than "auto" as its embedder."""
    if isinstance(embedder, str):
        if embedder == AUTO:
            return AUTO
        embedder = built_in_embedders.built_in(embedder)
    if embedder is not None:
        embedder_members.check_embedder(embedder)
    return embedder


# Errors of Python and help() name the function as users call it.
open_store.__name__ = open_store.__qualname__ = "open"


def owns_file(store: Store) -> bool:
    """Return whether `Store.close` closes the file: False for a store that `scoped` returned."""
    return store._session.is_owner  # pyright: ignore[reportPrivateUsage]
