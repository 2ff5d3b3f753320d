"""The store: what an agent holds. Every write, and every read at the newest event.

Owns `Store`: the handle, points in time, and when projections are saved. Leaves out writing
(`writing`, `appending`), reading (`reading`, `asking`), and everything about bytes.
"""

import difflib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, Self

from cerata.engine.environment import Environment
from cerata.engine.errors import (
    Corrupt,
    InvalidInput,
    Locked,
    NotFound,
    StorageFailed,
)
from cerata.engine.events import Event, JsonValue, Scope, ScopeValue
from cerata.engine.head import Head
from cerata.engine.loading import loading
from cerata.engine.log import Log, SyncPolicy
from cerata.engine.opening import path_name
from cerata.engine.recovery import RecoveryReport
from cerata.engine.remembered import RememberedHead
from cerata.projections.registry import Registry
from cerata.projections.rows import RowProjection
from cerata.projections.scopes import is_same, is_within
from cerata.projections.times import to_microseconds
from cerata.replay.basis import resolve_basis
from cerata.replay.fold import replay as replayed
from cerata.retrieval.embedders.embedder import Embedder, check_embedder

from .drafting import full_scope
from .layer import Layer
from .values import Context, Receipt
from .view import Basis, View
from .writing import Writes

if TYPE_CHECKING:
    from cerata.replay.verify import Verification

    from .difference import Diff


class Store(Writes):
    """A memory in one file. Any thread may call it; several processes may have the file open.

    `cerata.open` makes one. Reads see everything that was acknowledged, by any process, before
    they began; `at` gives a view that stands still.
    """

    # --- the handle ------------------------------------------------------------------------------

    @property
    def scope(self) -> Scope | None:
        """The scope given at open, which every write has and every read is narrowed to."""
        return self._scope

    @property
    def path(self) -> str:
        """The file's path, or ``:memory:``."""
        return self._log.path

    @property
    def report(self) -> RecoveryReport:
        """What opening the file found and did."""
        return self._log.report

    @property
    def head(self) -> Head:
        """The newest point of the log; its chain hash and Merkle root can be kept elsewhere."""
        end = self._end_of_run()
        return self._log.refresh() if end is None else self.at(end).head

    def commit(self) -> None:
        """Make everything durable that was written under a sync policy of so many bytes."""
        self._log.commit()

    def checkpoint(self) -> None:
        """Save the state of every projection, so that the next opener need not replay.

        Raises:
            ReadOnly: the store was opened for reading.
        """
        self._check_writable()
        self._fold.save()

    def salvaged(self) -> Iterator[Event]:
        """Yield every event that is still readable, also past damage; lost seqs are left out.

        Of a store with a scope those within it.
        """
        scope = self._scope
        events = self._log.salvaged()
        return (one for one in events if scope is None or _is_seen(one, scope))

    def backup(self, path: str | os.PathLike[str], *, through: int | None = None) -> None:
        """Copy the memory as it stands now into a new file, while others may write.

        The copy has the same events, chain and root; its indexes are rebuilt on first use. With
        ``through`` it has the batches that end by this event, as of a file that is damaged after
        it. It appears whole or not at all. Durable on return.

        Raises:
            InvalidInput: the path is none. Conflict: something is at it.
            Corrupt: an event cannot be read.
        """
        self._log.backup(path_name(path), through=through)

    def close(self) -> None:
        """Make everything durable and release the file; calling it twice is harmless.

        State is saved for the next opener if that is worth it and the disk takes it.
        """
        try:
            # A checkpoint saves time and nothing else. On a full disk, over a damaged log, or
            # beside a writer that never ends, an error here would follow writes that were
            # acknowledged and are there.
            with suppress(StorageFailed, Corrupt, Locked):
                if self._log.is_writable and self._log.is_open and self._fold.is_worth_saving():
                    self._fold.save()
        finally:
            self._log.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- reading ---------------------------------------------------------------------------------

    def at(self, basis: Basis, *, valid_at: datetime | str | None = None) -> View:
        """Return the memory as it was at a basis; it stands still while others write.

        With ``valid_at`` its facts are those that were then held true at that instant.

        A number is a seq: exactly the first n events, also inside a batch. A receipt or head is
        the end of its batch; a context, its own basis; a view too, within its scope, and with what
        it has of an open transaction; a time (an aware datetime, or an ISO string, of which a date
        is 00:00 UTC), the last batch recorded by then. ``"HEAD"`` is the newest event and
        ``"HEAD~2"`` two batches before; a tag is what `tag` gave it.

        Raises:
            NotFound: the log does not reach that far. InvalidInput: it cannot be understood, or
            is of another memory.
        """
        if (
            type(basis) is int
            and 0 <= basis <= self._log.snapshot.head_seq
            and valid_at != "now"
            and not self.in_transaction
        ):
            # What was seen once stays: there is nothing to ask the file for.
            instant = None if valid_at is None else to_microseconds(valid_at)
            return View(self._log, self._fold, basis, self._scope, None, instant, self._embedder)
        view = self._at(basis)
        return view if valid_at is None else view.true_at(valid_at)

    def _at(self, basis: Basis) -> View:
        known = self._known_seq()
        now: int | None = None
        if isinstance(basis, View):
            self._check_own(basis.log_id)
            return basis.on(self._log, self._fold).within(self._scope)
        if isinstance(basis, Receipt):
            if basis.head is None:
                raise InvalidInput(
                    "The receipt is of a transaction that has not ended",
                    remedy="Use the transaction's own receipt after its block.",
                )
            basis = basis.head
        if isinstance(basis, Context):
            self._check_own(basis.log_id)
            now = to_microseconds(basis.now)
            basis = basis.basis
        elif isinstance(basis, Head):
            self._check_own(basis.log_id)
            basis = basis.seq
        elif basis == "HEAD":
            now = self._log.environment.now_us()
            basis = known
        seq = resolve_basis(self._log, basis, self._tagged, known)
        return View(self._log, self._fold, seq, self._scope, now, embedder=self._embedder)

    def replay(self, basis: Basis = "HEAD") -> View:
        """Return what `at` returns, folded from the events alone, every checkpoint ignored.

        What a view has of an open transaction is folded anew too.

        Its reads say the same, later: the first of them folds the log up to the basis, in about
        25 ms for 1,000 texts. Nothing is saved of it.
        """
        view = self.at(basis)
        return view.on(self._log, replayed(self._log, view.basis, self._fold.registry))

    def diff(self, a: Basis, b: Basis = "HEAD") -> "Diff":
        """Return what differs between the memory at ``a`` and at ``b``, frame by frame.

        A basis is whatever `at` takes. Of a view the scope counts too, if both are views of it;
        ``diff("HEAD", store.view())`` in a transaction is what the block has gathered.
        Cost: one pass over the frames' columns, and a read of each frame that differs.

        Raises:
            NotFound: the log does not reach that far. InvalidInput: it cannot be understood, the
            views are of different scopes, or neither state goes on from the other.
        """
        with loading("the part that compares"):
            from .difference import diff

        first, second = self.at(a), self.at(b)
        if not is_same(first.scope, second.scope):
            raise InvalidInput(
                "The two states are of different scopes",
                remedy="Give two views of one scope, or points of the log.",
            )
        return diff(first, second)

    def _tagged(self, name: str) -> int | None:
        """Return what a tag stands for; `NotFound` naming the nearest, if one is near."""
        tags = self.at(self._known_seq()).tags()
        near = difflib.get_close_matches(name, [*tags, "HEAD"], n=1)
        if name not in tags and near:
            raise NotFound(
                f"There is no tag {name!r}",
                remedy=f"Did you mean {near[0]!r}? 'cerata tag' lists them; a time is ISO.",
            )
        return tags.get(name)

    def _check_own(self, log_id: bytes) -> None:
        if log_id != self._log.log_id:
            raise InvalidInput(
                "The basis is a point of another memory",
                where=self.path,
                remedy="Give a seq, or what this store has returned.",
            )

    def view(self) -> View:
        """Return the memory as a read sees it now: the newest, as ``at("HEAD")`` gives it.

        Inside a transaction it is the memory as it stood at the block's first read, and over it
        what the block has gathered. Cost: that of folding the drafts that came since the last.
        """
        transaction, end = self._transaction.get(), self._end_of_run()
        if transaction is None:
            return self._newest()
        return transaction.view(self._newest if end is None else lambda: self.at(end))

    def _known_seq(self) -> int:
        """Return the newest event that a caller may know of."""
        end, head = self._end_of_run(), self._log.refresh().seq
        return head if end is None else end

    def _end_of_run(self) -> int | None:
        """Return where the log ended for a keyed transaction that was run before, else None."""
        transaction = self._transaction.get()
        return None if transaction is None else transaction.end

    def _newest(self) -> View:
        now = self._log.environment.now_us()
        head, fold, latest = self._log.refresh().seq, self._fold, self._latest
        if latest is None or latest[0] != fold.replaced or latest[1].n != head:
            self._latest = latest = fold.replaced, Layer(fold, head, self._scope)
        return View(
            self._log, fold, head, self._scope, now, embedder=self._embedder, _base=latest[1]
        )

    def info(self, at: Basis | None = None) -> dict[str, JsonValue]:
        """Return what is in the file and where it stands, as plain values; folds frames.

        Head and frames are as of ``at``; sizes are those of the file as it is.
        """
        with loading("the part that counts"):
            from .info import info

        return info(self._log, self.view() if at is None else self.at(at))

    def digests(self, *, replay: bool = False) -> dict[str, bytes]:
        """Return each projection's digest (32 bytes) at the head.

        From checkpoint plus tail, or with ``replay`` from the log alone, every checkpoint
        ignored: they are equal.
        """
        self._log.refresh()
        fold = replayed(self._log, registry=self._fold.registry) if replay else self._fold
        return fold.digests()

    def verify(
        self,
        progress: Callable[[str, int, int], None] | None = None,
        *,
        against: Head | str | None = None,
    ) -> "Verification":
        """Recompute every hash and projection from the log and compare; writes nothing.

        ``against`` is a head that was kept elsewhere, as ``head.text`` or 'cerata head' gives it.
        The root over its events is recomputed from the events. ``found.against.outcome`` is
        "agrees", "rollback", "fork", "foreign" or "unreadable"; ``found.against.diverged`` is the
        `Diverged` of the three that contradict it, which is not raised. A `Head` of this store
        computes its hashes from this file, so keep the text.

        Raises:
            InvalidInput: ``against`` is no head.
        """
        with loading("the part that verifies"):
            from cerata.replay.verify import verify

        head = None if against is None else RememberedHead.of(against)
        return verify(self._log, self._fold, progress, head)

    def rebuild(
        self,
        projection: str | None = None,
        progress: Callable[[str, int, int], None] | None = None,
    ) -> None:
        """Fold a projection anew from the log, by default every one; the old one serves meanwhile.

        A rebuild that was killed goes on from where it was saved. Durable on return.

        Raises:
            NotFound: no projection has this name.
        """
        with loading("the part that rebuilds"):
            from cerata.replay.rebuild import rebuild

        names = self._fold.registry.names if projection is None else (projection,)
        for name in names:
            rebuild(self._log, self._fold, name, progress)


def _is_seen(event: Event, scope: Scope) -> bool:
    """Tell whether a salvaged event is within a scope; one that cannot be decoded is not."""
    try:
        return is_within(event.scope, scope)
    except Corrupt:
        return False


def open_store(
    path: str | os.PathLike[str],
    *,
    mode: Literal["r", "rw"] = "rw",
    scope: Mapping[str, ScopeValue] | None = None,
    embedder: Embedder | None = None,
    sync: SyncPolicy = "commit",
    lock_timeout: float | None = 30.0,
    ring_bytes: int | None = None,
    salvage: bool = False,
    environment: Environment | None = None,
    projections: Sequence[Callable[[], RowProjection[Any, Any]]] = (),
) -> Store:
    """Open the memory in a file; a missing one is created, unless ``mode="r"``.

    ``":memory:"`` is a store without a file. ``scope`` is stamped on every event and filters
    every read. ``sync``: "commit" makes each call durable before it returns, "open" also
    proves it with a second sync, a number of bytes syncs only that often. ``lock_timeout`` is in
    seconds: 0 fails at once, None waits. ``ring_bytes`` sizes a new file's ring. ``salvage``
    reads what a damaged file still holds. ``environment`` stands in for disk, clock and chance.
    ``embedder`` makes a vector of each text that is put; it is not asked before the first one.
    ``projections`` are your own folds, subclasses of `cerata.RowProjection`.

    Raises:
        NotFound: no such file (mode "r"), naming the nearest. Corrupt: acknowledged data is
        damaged. Locked: somebody held it too long. Unsupported: not a Cerata file, or newer.
    """
    if embedder is not None:
        check_embedder(embedder)
    name = path_name(path)
    registry = Registry(projections)
    log = Log.open(
        name,
        mode=mode,
        environment=environment,
        sync=sync,
        lock_timeout=lock_timeout,
        ring_bytes=ring_bytes,
        salvage=salvage,
    )
    return Store(log, None if scope is None else full_scope(scope, None), registry, embedder)
