"""The store: the handle of an agent, with every write and every read at the newest event.

Owns `Store`: the handle, the maintenance of the file, and when projections are saved. Leaves out
points in time (`points_in_time`), writing (`frames.commands`, `batch.session`), reading
(`frames.reads`, `search.reads`), and everything about bytes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, Never, NoReturn, Self

from cerata.engine.arguments import expect_bool
from cerata.engine.disk.environment import Environment
from cerata.engine.errors import Corrupt, Locked, StorageFailed
from cerata.engine.events import Draft, RecallContext, Scope, ScopeValue
from cerata.engine.head import Head
from cerata.engine.late import late, loading
from cerata.engine.open import open_log, path_name
from cerata.engine.own_packs import add_packs, checked_packs
from cerata.projections.columnar.scopes import (
    MISSING,
    pairs_of,
)

from .batch.author import author_of
from .batch.session import WriteSession
from .compaction import CompactionCommands
from .facts.commands import FactCommands
from .facts.reads import FactReads
from .forks import ForkCommands
from .frames.commands import FrameCommands
from .frames.log_reads import LogReads
from .frames.reads import FrameReads
from .frames.version_commands import SweepCommands, VersionCommands
from .handles import (
    Embeddings,
    Files,
    Graph,
    History,
    Interchange,
    StoreHandle,
    Stream,
)
from .ingest.commands import IngestCommands
from .points_in_time import PointsInTime, Speculation
from .resident_modules import load_resident_modules
from .search.reads import SearchReads
from .snapshot.store_embedder import AUTO, Choice
from .upkeep import FileUpkeep
from .values.arguments import full_scope, reach_of
from .values.frames import Context
from .values.options import OPEN, OpenOptions, checked
from .values.owners import check_owners
from .values.renamed import moved_to, refuse
from .view import Basis

if TYPE_CHECKING:
    from cerata.engine import remembered
    from cerata.engine.log_file.recovery import RecoveryReport
    from cerata.engine.packs import Pack
    from cerata.projections import registry as projection_registry
    from cerata.projections.rows.row_projection import RowProjection
    from cerata.replay.verify import Verification
    from cerata.retrieval.embedders import built_in as built_in_embedders
    from cerata.retrieval.embedders import built_in as embedder_members
    from cerata.retrieval.embedders.embedder import Embedder

    from .batch.transaction import Transaction
else:
    remembered = late("cerata.engine.remembered")
    built_in_embedders = late("cerata.retrieval.embedders.built_in")
    embedder_members = late("cerata.retrieval.embedders.built_in")
    projection_registry = late("cerata.projections.registry")


class Upkeep(CompactionCommands, ForkCommands, SweepCommands, FileUpkeep, Speculation):
    """The care of the file: space, projections, and forks."""

    def fork(
        self,
        at: Basis = "HEAD",
        path: str | os.PathLike[str] | None = None,
        *,
        progress: Callable[[str, int, int], None] | None = None,
    ) -> Store:
        """Return a memory that continues this one from a point on its own; close it after use.

        Writes to one are not seen by the other. The fork's first event is a `branch`. A fork in
        memory shares the file up to the point; it ends with its handle. A fork in a file appears
        whole or not at all. The fork has the scope, actor and embedder of this store.

        Args:
            at: The end of a batch, as the method `at` takes it; default the newest event.
            path: The file to create; default in memory.
            progress: Called with the name of a part, and how many of how many bytes are copied.

        Raises:
            InvalidInput: ``at`` lies inside a batch, or a memory without a file has a ``path``.
            Conflict: a file exists at ``path``.
            Corrupt: an event cannot be read.
        """
        return Store(self._forked(at, path, progress))


class Store(
    PointsInTime,
    FrameCommands,
    VersionCommands,
    FactCommands,
    IngestCommands,
    FrameReads,
    LogReads,
    SearchReads,
    FactReads,
):
    """A memory in one file, returned by `cerata.open`.

    - Any thread may call its methods; several processes may have the file open.
    - Reads see every batch that any process acknowledged before the read began.
    - `at` returns a view that does not change.
    """

    graph = StoreHandle(Graph)
    history = StoreHandle(History)
    files = StoreHandle(Files)
    stream = StoreHandle(Stream)
    interchange = StoreHandle(Interchange)
    upkeep = StoreHandle(Upkeep)
    embeddings = StoreHandle(Embeddings)

    # --- the handle ------------------------------------------------------------------------------

    def __repr__(self) -> str:
        scope = "" if self.scope is None else f", scope {dict(self.scope)!r}"
        return f"<cerata.Store {self.path!r}{scope}>"

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            """Name the new place of a call that moved."""
            raise AttributeError(moved_to("Store", name), name=name, obj=self)

    @property
    def scope(self) -> Scope | None:
        """The scope passed to `open`: stamped on every write, and a filter of every read."""
        return pairs_of(self._session.reach)

    @property
    def shared(self) -> bool:
        """True if the store was opened with `OpenOptions.shared`: reads admit shared events too."""
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

    def checkpoint(self) -> None:
        """Save the state of every projection, so that the next opener need not replay.

        Raises:
            ReadOnly: the store was opened for reading.
        """
        self._session.check_writable()
        self._fold.save()

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
            from cerata.engine.copies.backup import back_up

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
        view from inside the block (``store.history.view()``) sees the same as that view. A call
        that cannot be appended raises at once and adds nothing. The block holds no lock, and an
        exception in it writes nothing.

        With ``key`` a repeated block reads the state before its first run (`at`, `history.tag` and
        `head` too), writes nothing, and gets the first receipt, with ``added`` False. The key is
        stored with the first event of the block, so a block that writes nothing leaves it unused.
        The key belongs to the tenant of the first event. If that is not the store's tenant, reads
        before the first write see the newest state, so open a store with that scope instead.

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


def open_store(
    path: str | os.PathLike[str],
    *,
    mode: Literal["r", "rw"] = "rw",
    scope: Mapping[str, ScopeValue] | None = None,
    actor: str | None = None,
    embedder: Embedder | str | None = None,
    packs: Sequence[Pack] = (),
    projections: Sequence[Callable[[], RowProjection[Any, Any]]] = (),
    options: OpenOptions = OPEN,
    environment: Environment | None = None,
    **_moved: Never,
) -> Store:
    """Open the memory in a file; a missing file is created, unless ``mode="r"``.

    Args:
        path: The file; ``":memory:"`` opens a store without a file.
        mode: "rw", the default, reads and writes; "r" only reads.
        scope: Names and values stamped on every event, and a filter of every read; default none.
        actor: Name of the writer, recorded with each event; a call may name another. Default none.
        embedder: A built-in's name such as "minilm", an object, or "auto" for "static" if the
            memory remembers none; default the remembered one.
        packs: Your packs (docs/packs.md); their events are known to the process from then on.
        projections: Your projections, subclasses of `cerata.RowProjection`; default none.
        options: Options of scopes, syncs, locks, caches and salvage.
        environment: Replacement of disk, clock and randomness, for tests; default None.

    Raises:
        InvalidInput: an argument cannot be used.
        NotFound: the file does not exist (mode "r"); the remedy names a similar file.
        Corrupt: acknowledged data is damaged.
        Locked: another process held the lock for `OpenOptions.lock_timeout`.
        InvalidInput: an argument is not valid, such as the name of no built-in embedder.
        Unsupported: the file is not a Cerata file or has a newer format, or the extra of a
            built-in embedder is not installed.
    """
    if _moved:
        refuse("open", _moved)
    checked("options", options, OpenOptions)
    own_packs = checked_packs(packs)
    check_owners(own_packs)
    author_of(actor)
    choice = _choice(embedder)
    name = path_name(path)
    registry = projection_registry.Registry(projections, own_packs)
    add_packs(own_packs)
    load_resident_modules()
    reach = reach_of(scope, shared=options.shared)
    if reach is None and expect_bool("require_scope", options.require_scope):
        reach = MISSING
    log = open_log(
        name,
        mode=mode,
        environment=environment,
        sync=options.sync,
        lock_timeout=options.lock_timeout,
        ring_bytes=options.ring_bytes,
        salvage=options.salvage,
        cache_bytes=options.cache_bytes,
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
