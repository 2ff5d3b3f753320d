"""Appending: the events of a call become a batch, or join the open transaction.

Owns transactions, the checks before an append, and receipts. Leaves out the calls
(`frames.commands`) and bytes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from copy import copy
from dataclasses import replace
from functools import partial
from operator import attrgetter
from types import GeneratorType, MappingProxyType
from typing import TYPE_CHECKING, Final
from weakref import ref

import msgspec

from cerata.engine.arguments import expect_integer
from cerata.engine.codec import encode_payloads, tenant_of
from cerata.engine.errors import Conflict, IdempotencyConflict, InvalidInput, NotFound, ReadOnly
from cerata.engine.events import (
    MAKERS,
    AssertFact,
    Branch,
    DeleteFrame,
    Draft,
    Erase,
    EventBody,
    PutFrame,
    Scope,
    ScopeValue,
    SupersedeFrame,
    UseEmbedder,
)
from cerata.engine.json_value import shown_id
from cerata.engine.late import late
from cerata.engine.packs import Role
from cerata.projections.columnar.scopes import Reach, admits, check_reach

from ..values.arguments import (
    arguments_hash,
    chosen_reach,
    full_scope,
    within_scope,
)
from ..values.frames import Receipt
from .author import NO_AUTHOR, author_of

if TYPE_CHECKING:
    from cerata.engine.head import Appended
    from cerata.engine.log import Log, Sees
    from cerata.projections.registry import Registry
    from cerata.projections.rows.built_in import Used
    from cerata.replay import fold as replay_fold
    from cerata.retrieval.embedders import built_in
    from cerata.retrieval.embedders.embedder import Embedder

    from ..snapshot import layer as snapshot_layer
    from ..snapshot import snapshot as snapshots
    from ..snapshot import store_embedder
    from ..snapshot.layer import LogLayer
    from ..snapshot.snapshot import Snapshot
    from ..snapshot.store_embedder import Choice
    from ..values.pending_ids import PendingIds
    from . import block as batch_block
    from . import conditional_draft as conditional_drafts
    from . import embedder_use as embedder_uses
    from . import owner_rules, recent_triples, validation
    from . import transaction as transactions
    from .block import Block
    from .rule import Proof
    from .transaction import Transaction
    from .vector_rules import LogShapes
else:
    batch_block = late("cerata.memory.batch.block")
    conditional_drafts = late("cerata.memory.batch.conditional_draft")
    embedder_uses = late("cerata.memory.batch.embedder_use")
    owner_rules = late("cerata.memory.batch.owner_rules")
    recent_triples = late("cerata.memory.batch.recent_triples")
    transactions = late("cerata.memory.batch.transaction")
    validation = late("cerata.memory.batch.validation")
    built_in = late("cerata.retrieval.embedders.built_in")
    snapshot_layer = late("cerata.memory.snapshot.layer")
    snapshots = late("cerata.memory.snapshot.snapshot")
    replay_fold = late("cerata.replay.fold")
    store_embedder = late("cerata.memory.snapshot.store_embedder")


_NO_BLOCKS: Final[Mapping[object, Block]] = MappingProxyType({})


class WriteSession:
    """A log opened for writing, the fold of it, and the open transaction of each task.

    `by` copies a session for one call, `scoped` for a scope. So its attributes are set once, when
    the file is opened; state that changes is in objects that all copies share, and ``_latest`` is
    only a cache.
    """

    def __init__(
        self,
        log: Log,
        reach: Reach | None,
        registry: Registry | None = None,
        embedder: Choice = None,
        actor: str | None = None,
    ) -> None:
        self.log = log
        self.fold = replay_fold.Fold(log, registry)
        self.reach = reach
        """The filter of every read; `MISSING` if a scope is required and there is none."""
        self.is_owner = True
        """True if the log is closed together with the store of this session."""
        self.embedders = store_embedder.StoreEmbedder(embedder)
        self.author = author_of(actor)
        """The store's author: the actor of each event that no draft, call or block names."""
        self._call = NO_AUTHOR
        self.role = Role.PROGRAM
        """The writer: the table of owners lists the frames and events that it may write."""
        self.request_id: Callable[[], str | None] | None = None
        """Returns the correlation id of the present request, for each draft without one."""
        # The open blocks of this thread or task by the key of their session. There is one variable
        # for each log, since a context keeps a variable as long as its thread runs.
        self._blocks: ContextVar[Mapping[object, Block]] = ContextVar("blocks", default=_NO_BLOCKS)
        self._key = object()
        # The layer of the newest view, reused until an append.
        self._latest: tuple[int, LogLayer] | None = None
        self._past = snapshot_layer.PastLayers()
        self._shapes: LogShapes = {}
        self.uses = embedder_uses.EmbedderUse(self.fold)
        self.recent_triples = recent_triples.RecentTriples(self.fold)
        self.waiting_line = threading.Lock()
        """Held by a writer that repeats an attempt, so that the writers of a process take turns."""

    def by(self, actor: str | None, reason: str | None = None) -> WriteSession:
        """Return this session for a call that names an actor or a reason; its writes get them.

        Raises:
            InvalidInput: the actor or the reason cannot be stored.
        """
        if actor is None and reason is None:
            return self
        session = copy(self)
        session._call = author_of(actor, reason)
        return session

    def scoped(
        self, scope: Mapping[str, ScopeValue], *, shared: bool = False, actor: str | None = None
    ) -> WriteSession:
        """Return a session of a scope on the same log, with transactions of its own.

        Raises:
            InvalidInput: the scope has no name, is unusable or would widen the session's, or the
                actor cannot be stored.
        """
        session = copy(self)
        session.reach = chosen_reach(scope, self.reach, shared=shared)
        session.author = author_of(actor).over(self.author)
        session.is_owner = False
        session._key = object()
        session._latest = None
        session._past = snapshot_layer.PastLayers()
        # Names of vector spaces are unique within a reach.
        session._shapes = {}
        return session

    def acting(self, role: Role) -> WriteSession:
        """Return this session, with the transactions of this, for a role; only a program gets one.

        A session that has a role keeps it, since a call may narrow the rights and never widen them.
        """
        session = copy(self)
        if self.role is Role.PROGRAM:
            session.role = role
        return session

    def correlated(self, request_id: Callable[[], str | None]) -> WriteSession:
        """Return this session, with the transactions of this, whose events name their request.

        Args:
            request_id: Returns the correlation id of the request that writes now, or None.
        """
        session = copy(self)
        session.request_id = request_id
        return session

    @property
    def scope(self) -> Scope | None:
        """The store's scope, stamped on every write. Raises `InvalidInput` if it is missing."""
        return None if self.reach is None else self.reach.pairs

    def transaction(
        self,
        *,
        expect: int | None = None,
        key: str | None = None,
        actor: str | None = None,
        reason: str | None = None,
    ) -> AbstractContextManager[Transaction]:
        """Gather the writes of this thread or task; see `Store.transaction`."""
        check_reach(self.reach)

        def begin() -> Generator[Transaction]:
            checks = validation.BatchChecks(
                self.log, self.fold, self.reach, self._shapes, self.uses
            )
            find = None if key is None else partial(self.log.find_key, key, sees=self.sees)
            block = batch_block.Block(checks, self._is_current, find, author_of(actor, reason))
            steps = self._steps(block, expect, key)
            assert isinstance(steps, GeneratorType)
            block.steps = ref(steps)
            return steps

        return contextmanager(begin)()

    def _is_current(self, block: Block) -> bool:
        return self.open_block is block

    def _steps(self, block: Block, expect: int | None, key: str | None) -> Generator[Transaction]:
        if expect is not None:
            expect = expect_integer("expect", expect)
        if self.in_transaction:
            raise Conflict("A transaction is open already", remedy="Use the open transaction.")
        block.look_up(tenant_of(full_scope(None, self.scope)))
        try:
            # Inside the `try` that resets it, because an interrupt may follow at once.
            self._set_block(block)
            yield transactions.Transaction(block)
        except (Conflict, InvalidInput, NotFound) as error:
            if block.first is None:
                raise
            # The first run succeeded over the same state, so the calls differ.
            raise IdempotencyConflict(
                f"The idempotency key {key!r} was used for other calls, "
                f"or these calls can no longer be repeated: {error.what}",
                where=f"event {block.first.appended.first_seq:,}",
                remedy="Use a new key for a new request; the first request is written.",
            ) from error
        finally:
            self._set_block(None)
        block.check_whole()
        if not block.drafts:
            block.look_up_again()
        if block.first is not None and key is not None:
            if block.drafts:
                hashed = block.arguments or arguments_hash(contents_of(block.drafts))
                block.first.check(key, hashed)
            elif block.arguments is not None:
                block.first.check(key, block.arguments)
            block.end_with(self._receipt((), block.first.appended))
        elif block.drafts:
            receipt = self._append(
                block.drafts,
                expect=expect,
                key=key,
                arguments=block.arguments,
                payloads=block.payloads,
            )
            block.end_with(receipt)
        else:
            head = self.log.refresh()
            block.end_with(Receipt(0, (), (), head, durable=True, added=False))

    @property
    def open_block(self) -> Block | None:
        """The open block of this thread or task."""
        block = self._blocks.get().get(self._key)
        return block if block is not None and block.is_open else None

    def _set_block(self, block: Block | None) -> None:
        """Make a block that of this session, and leave the open blocks of other sessions."""
        others = self._blocks.get().items()
        blocks = {key: each for key, each in others if key is not self._key and each.is_open}
        if block is not None:
            blocks[self._key] = block
        self._blocks.set(blocks)

    @property
    def ids(self) -> PendingIds | None:
        """The ids of the open block; None outside a block."""
        block = self.open_block
        return None if block is None else block.ids

    @property
    def drafted_triples(self) -> Collection[int]:
        """The `triple_hash` of each assertion that the open transaction has drafted."""
        block = self.open_block
        return () if block is None else block.triples

    @property
    def in_transaction(self) -> bool:
        """True if this thread or task has a transaction open."""
        return self.open_block is not None

    def record_call(
        self, scope: Scope, *arguments: object, drafts: Sequence[Draft] | None = None
    ) -> None:
        """Record a call of a keyed transaction by the caller's arguments."""
        block = self.open_block
        if block is not None and block.is_keyed:
            block.look_up(tenant_of(scope))
            block.record_call(*arguments, *(() if drafts is None else (contents_of(drafts),)))

    def first_use(self, key: str, tenant: ScopeValue) -> Receipt | None:
        """Return the receipt of an idempotency key's first use in a tenant, or None.

        A first use outside the store's scope gives None, too. Cost: takes the writer lock for the
        look-up.

        Raises:
            InvalidInput: the key or tenant is unusable.
            ReadOnly: the store was opened for reading.
            Locked: another process holds the writer lock.
        """
        use = self.log.find_key(key, tenant, sees=self.sees)
        return None if use is None else self._receipt((), use.appended)

    @property
    def sees(self) -> Sees | None:
        """A function that returns whether a scope is within the store's; None without a scope.

        A shared event is not within: the store's key is no repetition of it.
        """
        if self.reach is None:
            return None
        check_reach(self.reach)
        reach = self.reach.private
        return lambda scope: admits(scope, reach)

    def next_place(self) -> int:
        """Return the place, from 1, that the next event will have in its batch."""
        block = self.open_block
        return 1 if block is None else len(block.drafts) + 1

    # --- the state that reads see ----------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """Return the newest state or, in a transaction, that of its first read and its drafts.

        Raises:
            InvalidInput: the store requires a scope and has none.
        """
        if self.reach is not None:
            check_reach(self.reach)
        return self._newest() if self.open_block is None else self.state()

    def state(self) -> Snapshot:
        """Return `snapshot` also if a scope is missing; then every read of the state raises."""
        block = self.open_block
        if block is None:
            return self._newest()
        end = block.end
        return block.snapshot(self._newest if end is None else lambda: self.snapshot_at(end))

    def snapshot_at(
        self, seq: int, now_us: int | None = None, valid_at_us: int | None = None
    ) -> Snapshot:
        """Return the state at an event of the log."""
        base = self._past.at(self.fold, seq, self.log.head.seq, self.reach)
        return snapshots.Snapshot(
            self.log,
            self.fold,
            seq,
            self.reach,
            now_us,
            valid_at_us,
            embedders=self.embedders,
            _base=base,
        )

    def newest_seq(self) -> int:
        """Return the newest seq that the caller can see, within a repeated block an earlier seq."""
        end, head = self.end_of_run, self.log.refresh().seq
        return head if end is None else end

    def newest_known_seq(self) -> int:
        """Return a seq that has every event of an embedder that the caller can see.

        For a write: unlike `newest_seq` without a sync of the events that other processes wrote.
        """
        end, head = self.end_of_run, self.log.refresh_for(UseEmbedder.wire_name).seq
        return head if end is None else end

    @property
    def end_of_run(self) -> int | None:
        """Return the last seq before the first run of a repeated keyed transaction, else None."""
        block = self.open_block
        return None if block is None else block.end

    def _newest(self) -> Snapshot:
        now = self.log.environment.now_us()
        head, fold, latest = self.log.refresh(), self.fold, self._latest
        seq = head.seq
        replaced = fold.replaced
        if latest is None or latest[0] != replaced:
            self._latest = latest = replaced, snapshot_layer.LogLayer(fold, seq, self.reach)
        elif latest[1].n != seq:
            self._latest = latest = replaced, latest[1].at(seq)
        return snapshots.Snapshot(
            self.log,
            fold,
            seq,
            self.reach,
            now,
            embedders=self.embedders,
            _base=latest[1],
            _head=head,
        )

    # --- the embedder ----------------------------------------------------------------------------

    @property
    def embedder(self) -> Embedder | None:
        """The embedder passed to `open`, else the remembered embedder if it can run here."""
        return self.embedders.passed or self.embedder_at(self.newest_seq())

    def embedder_at(self, through: int) -> Embedder | None:
        """Return the embedder as of an event, so that several reads look at the log once."""
        return self.embedders.passed or self.embedders.of(self.uses.used(self.scope, through))

    def embedder_obstacle(self, scope: Scope, through: int) -> str | None:
        """Return why a text of a tenant gets no vector although the tenant has vectors, or None.

        Args:
            scope: The scope of the text.
            through: The last event that counts.
        """
        used = self.uses.used(scope, through)
        if used is None:
            return None
        obstacle = self.embedders.obstacle(used)
        embedder = self.embedder_at(through)
        if obstacle is not None or embedder is None:
            return obstacle
        if used.spaces == built_in.spaces_of(embedder):
            return None
        space = embedder.identity.space
        return f"the vectors are of {used.space!r}, not of the store's {space!r}; open it by tenant"

    def used_embedder(self, scope: Scope | None) -> Used | None:
        """Return the embedder that the memory uses now for a scope's tenant."""
        return self.uses.used(scope, self.newest_seq())

    def _with_use(
        self, drafts: Sequence[Draft], payloads: Sequence[bytes] | None
    ) -> tuple[Sequence[Draft], Sequence[bytes] | None]:
        """Return a batch with an event for each tenant whose first vectors it has, at its end.

        The event comes last so that the ids of the batch stay dense.

        Raises:
            InvalidInput: the batch has no place for the event.
        """
        if not embedder_uses.has_vectors(drafts):
            return drafts, payloads
        # Without a look at the file: if another process has just recorded the first embedder, its
        # tenant needs no event.
        end = self.end_of_run
        embedder = self.embedder_at(self.log.head.seq if end is None else end)
        if embedder is None:
            return drafts, payloads
        uses = [
            msgspec.structs.replace(embedder_uses.use_of(embedder, draft.scope), actor=draft.actor)
            for draft in embedder_uses.embedded_in(drafts, embedder.identity.space)
            if self.used_embedder(draft.scope[:1]) is None
        ]
        if not uses:
            return drafts, payloads
        embedder_uses.check_room(len(drafts), len(uses))
        uses = [
            conditional_drafts.conditional(use, embedder=built_in.spaces_of(embedder))
            for use in uses
        ]
        if payloads is not None:
            payloads = [*payloads, *encode_payloads(uses, first=len(drafts) + 1)]
        return [*drafts, *uses], payloads

    # --- writing ---------------------------------------------------------------------------------

    def write(
        self,
        drafts: Sequence[Draft],
        *,
        expect: int | None = None,
        key: str | None = None,
        arguments: bytes | None = None,
        proof: Proof | None = None,
    ) -> Receipt:
        """Append drafts as one batch, or add them to the open transaction.

        Drafts with the default scope get the store's. A draft without an actor or a reason gets
        that of the call, else of the transaction, else of the store. ``arguments`` is the hash to
        store with the key; by default that of the drafts. With a ``rule`` the batch is appended
        only if the proof holds until then.

        Raises:
            InvalidInput: a draft's scope is outside the store's, the store requires a scope and
                has none, or a draft has a salt.
            Refused: the session's role may not write a draft.
        """
        if self.reach is not None:
            check_reach(self.reach)
        kinds: set[type] = set()
        is_salted = False
        for draft in drafts:
            kinds.add(type(draft.body))
            is_salted |= draft.salt is not None
        if Branch in kinds:
            raise InvalidInput(
                "A branch is the first event of a fork, which only upkeep.fork() writes",
                remedy="Call upkeep.fork().",
            )
        if Erase in kinds:
            raise InvalidInput(
                "An erase event says that contents were left out, which only upkeep.compact() does",
                remedy="Call compact(horizon=…).",
            )
        if is_salted:
            raise InvalidInput(
                "A draft must have no salt, since a shared salt survives the erasure of one event",
                remedy="Leave salt=None; the store draws one for each event.",
            )
        block = self.open_block
        call = self._call if block is None else self._call.over(block.author)
        scoped = drafts if self.reach is None else within_scope(drafts, self.reach)
        drafts = call.over(self.author).signed(scoped)
        if self.request_id is not None:
            drafts = self._with_request(self.request_id(), drafts)
        if self.role is not Role.PROGRAM:
            # A proof has frames of this role, so a batch that names only these looks nothing up.
            own = () if proof is None else proof.open_frames
            owner_rules.check_owners(self.role, drafts, self.next_place(), self.snapshot, own)
        if block is None:
            return self._append(drafts, expect=expect, key=key, arguments=arguments, proof=proof)
        if expect is not None or key is not None:
            raise InvalidInput(
                "expect and key belong to the transaction", remedy="Pass them to transaction()."
            )
        self.check_writable()
        return block.add(drafts)

    def _with_request(self, request: str | None, drafts: Sequence[Draft]) -> Sequence[Draft]:
        if request is None:
            return drafts
        return [
            draft
            if draft.correlation is not None
            else msgspec.structs.replace(draft, correlation=request)
            for draft in drafts
        ]

    def unchanged(self, snapshot: Snapshot, number: int, ids: tuple[int, ...] = ()) -> Receipt:
        """Return the receipt of a call that wrote nothing, since the memory has everything.

        Args:
            snapshot: The state that has everything.
            number: The id of the thing that the call would make or change; 0 for none.
            ids: All ids of the receipt; default none.
        """
        block = self.ids
        head = snapshot.head if block is None else None
        return Receipt(
            shown_id(number),
            tuple(map(shown_id, ids)),
            (),
            head,
            durable=block is None,
            added=False,
            _block=block,
        )

    def with_notices(self, receipt: Receipt, notices: Sequence[str]) -> Receipt:
        """Return a receipt with notices, which the receipt of an open transaction gets too."""
        block = self.open_block
        if block is not None:
            block.notices.update(dict.fromkeys(notices))
        return replace(receipt, notices=tuple(notices))

    def check_writable(self) -> None:
        if not self.log.is_writable:
            raise ReadOnly(
                "The store was opened for reading",
                where=self.log.path,
                remedy="Open it with mode='rw'.",
            )

    def _append(
        self,
        drafts: Sequence[Draft],
        *,
        expect: int | None,
        key: str | None,
        arguments: bytes | None = None,
        payloads: Sequence[bytes] | None = None,
        proof: Proof | None = None,
    ) -> Receipt:
        if key is not None and arguments is None:
            arguments = arguments_hash(contents_of(drafts))
        drafts, payloads = self._with_use(drafts, payloads)
        checks = validation.BatchChecks(self.log, self.fold, self.reach, self._shapes, self.uses)
        checks.gather(drafts)
        end, validate = checks.check(proof)
        appended = self.log.append(
            drafts,
            expect=expect,
            key=key,
            arguments=arguments,
            validate=validate,
            known=end,
            payloads=payloads,
            sees=self.sees,
        )
        if not appended.replayed:
            checks.appended()
            self.uses.note_appended(drafts, appended)
            self.recent_triples.note_appended(drafts, appended)
        self.fold.save_gradually(len(drafts))
        return self._receipt(drafts, appended)

    def _receipt(self, drafts: Sequence[Draft], appended: Appended) -> Receipt:
        first = appended.first_seq
        seqs = tuple(range(first, appended.last_seq + 1))
        bodies: list[tuple[str, object]] = []
        if appended.replayed:
            # The repeated call's drafts may differ from the stored events; read these.
            self.log.refresh()
            bodies += [(event.type, event.body) for event in self.log.read(seqs[0], seqs[-1])]
        elif {*map(type, map(attrgetter("body"), drafts))} == {PutFrame}:
            return Receipt(first, seqs, seqs, appended.head, durable=appended.durable)
        else:
            for draft in drafts:
                bodies.append((draft.body.wire_name, draft.body))
        ids: list[int] = []
        replaced: list[int] = []
        deleted: list[int] = []
        for seq, (kind, body) in zip(seqs, bodies, strict=True):
            if kind in MAKERS:
                ids.append(seq)
            # A negative id is a frame's place in the same batch.
            if isinstance(body, SupersedeFrame):
                replaced.append(body.old if body.old > 0 else first - body.old - 1)
            elif isinstance(body, DeleteFrame):
                deleted.append(body.frame if body.frame > 0 else first - body.frame - 1)
        return Receipt(
            id=ids[0] if ids else first,
            ids=(*ids,),
            seqs=seqs,
            head=appended.head,
            durable=appended.durable,
            added=not appended.replayed,
            replaced=(*replaced,),
            deleted=(*deleted,),
        )


def contents_of(drafts: Sequence[Draft]) -> list[tuple[str, Scope, EventBody]]:
    """Return the contents of drafts, to be hashed as a call's arguments.

    Derived values are left out, so that a later version recognises the keys of this version.
    """
    return [(draft.body.wire_name, draft.scope, _without_derived(draft.body)) for draft in drafts]


def _without_derived(body: EventBody) -> EventBody:
    if isinstance(body, PutFrame):
        return msgspec.structs.replace(body, content_hash=None)
    if isinstance(body, AssertFact) and any(place.quote is not None for place in body.evidence):
        # The salt of a frame in the same block, and so the hash of a quote, differs in each run.
        places = [msgspec.structs.replace(place, quote=None) for place in body.evidence]
        return msgspec.structs.replace(body, evidence=tuple(places))
    return body
