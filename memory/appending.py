"""Appending: how what a call wants becomes one batch, or joins the open transaction.

Owns transactions, what is checked before a batch is appended, and the receipt. Leaves out what
the calls are (`writing`) and everything about bytes.
"""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial

import msgspec

from cerata.engine.codec import tenant_of
from cerata.engine.errors import Conflict, IdempotencyConflict, InvalidInput, NotFound, ReadOnly
from cerata.engine.events import (
    AssertFact,
    Draft,
    Event,
    EventBody,
    PutFrame,
    Scope,
    ScopeValue,
    SupersedeFrame,
)
from cerata.engine.handle import Handle
from cerata.engine.head import Appended, Head
from cerata.engine.log import Log, Sees, Validate
from cerata.projections.registry import Registry
from cerata.projections.scopes import is_within
from cerata.projections.tags import Tags
from cerata.replay.fold import Fold
from cerata.retrieval.embedders.embedder import Embedder

from .checks import Checks
from .drafting import (
    SOURCE_HASH,
    SPAN,
    arguments_hash,
    check_number,
    full_scope,
    within_scope,
)
from .fact_rules import Ended, FactRules
from .layer import DOCUMENT_KIND, Layer
from .link_rules import LinkRules
from .reading import Reads
from .references import References
from .spaces import Shape, SpaceName, Spaces
from .tagging import Tagging
from .transaction import MAKERS, Transaction
from .values import Receipt


class Appends(Reads, Handle):
    """A log that is written to, what is folded of it, and the open transaction of each task."""

    def __init__(
        self,
        log: Log,
        scope: Scope | None,
        registry: Registry | None = None,
        embedder: Embedder | None = None,
    ) -> None:
        self._log = log
        self._scope = scope
        self._embedder = embedder
        self._fold = Fold(log, registry)
        self._transaction: ContextVar[Transaction | None] = ContextVar("transaction", default=None)
        # What was worked out for the newest view serves the next, while nothing is appended.
        self._latest: tuple[int, Layer] | None = None
        # Of spaces that have vectors in the log, and `Fold.replaced` when they were learned.
        self._shapes: dict[SpaceName, Shape] = {}
        self._shapes_of = 0

    def refresh(self) -> Head:
        """Take in what other processes wrote, as every read does, and return the head."""
        return self._log.refresh()

    @contextmanager
    def transaction(
        self, *, expect: int | None = None, key: str | None = None
    ) -> Generator[Transaction]:
        """Gather the writes of this thread or task into one batch: all of them or none.

        Inside, receipts carry ids −1, −2, …, which later calls inside may name; afterwards
        ``tx.receipt`` has the real ones. Reads of frames (`search`, `recall`, `frame`, `content`,
        `frames`, `timeline`, `len`) see what the block has gathered over the memory as it stood
        at the first of them; `at` gives what is in the log alone, but of a view that was taken
        inside (``store.view()``) what that has. A call that cannot be appended is refused when it
        is made, and nothing of it is gathered. No lock is held while the block runs; an exception
        in it writes nothing. What others closed after the call, or ``expect``, is a `Conflict` at
        the end.

        ``key`` makes the block idempotent: it stands for the calls in it and what they were
        given. Run again, the block reads the memory as it was before its first run (`at`,
        `tag` and `head` too), writes nothing, and ``tx.receipt`` is the first one, with ``added``
        False. A block that gathers nothing leaves no key. The key stands in the tenant of the
        first event: where that is not the store's own, whoever reads before the first write reads
        the newest memory, so open a store with that scope instead.

        Raises:
            IdempotencyConflict: the key was used for other calls, or these can be made no longer.
        """
        if expect is not None:
            check_number("expect", expect)
        if self._transaction.get() is not None:
            raise Conflict("A transaction is open already", remedy="Use the open one.")
        checks = Checks(self._log, self._fold, self._scope)
        find = None if key is None else partial(self._log.find_key, key, sees=self._sees)
        transaction = Transaction(checks, find)
        transaction.look_up(tenant_of(full_scope(None, self._scope)))
        try:
            # Inside the block that resets it, since an interrupt may follow at once.
            self._transaction.set(transaction)
            yield transaction
        except (Conflict, InvalidInput, NotFound) as error:
            if transaction.first is None:
                raise
            # The first run was refused nothing over the same memory.
            raise IdempotencyConflict(
                f"The idempotency key {key!r} was used for other calls, "
                f"or these can no longer be made: {error.what}",
                where=f"event {transaction.first.appended.first_seq:,}",
                remedy="What it was used for is done. Use a new key for a new request.",
            ) from error
        finally:
            self._transaction.set(None)
        transaction.check_whole()
        if not transaction.drafts:
            transaction.look_up_again()
        if transaction.first is not None and key is not None:
            if transaction.drafts:
                hashed = transaction.arguments or arguments_hash(asked(transaction.drafts))
                transaction.first.check(key, hashed)
            elif transaction.arguments is not None:
                transaction.first.check(key, transaction.arguments)
            transaction.receipt = self._receipt((), transaction.first.appended)
        elif transaction.drafts:
            transaction.receipt = self._append(
                transaction.drafts,
                expect=expect,
                key=key,
                arguments=transaction.arguments,
                payloads=transaction.payloads,
            )

    @property
    def in_transaction(self) -> bool:
        """Whether this thread or task has a transaction open."""
        return self._transaction.get() is not None

    def _called(
        self, scope: Scope, *arguments: object, drafts: Sequence[Draft] | None = None
    ) -> None:
        """Take down a call in a keyed transaction, by what the caller gave."""
        transaction = self._transaction.get()
        if transaction is not None and transaction.is_keyed:
            transaction.look_up(tenant_of(scope))
            transaction.called(*arguments, *(() if drafts is None else (asked(drafts),)))

    def first_use(self, key: str, tenant: ScopeValue) -> Receipt | None:
        """Return the receipt of what an idempotency key was first used for in a tenant, or None.

        It is None, too, where that is outside the store's scope. Cost: takes the writer lock for
        the look-up. Raises: InvalidInput, ReadOnly, Locked.
        """
        found = self._log.find_key(key, tenant, sees=self._sees)
        return None if found is None else self._receipt((), found.appended)

    @property
    def _sees(self) -> Sees | None:
        """Whether an event of a scope is within the store's; None where every event is."""
        scope = self._scope
        return None if scope is None else lambda found: is_within(found, scope)

    def next_place(self) -> int:
        """Return the place, from 1, that the next event will have in its batch."""
        transaction = self._transaction.get()
        return 1 if transaction is None else len(transaction.drafts) + 1

    def _fields_of(self, frame: int) -> tuple[PutFrame, Scope]:
        """Return what a new version takes over from a frame, there or about to be put."""
        found = self.view().frame(frame)
        if not found.scope:
            raise NotFound(
                f"Frame {found.id:,} was erased, and the scope that it had is unknown",
                remedy="Put a new frame with put_frame.",
            )
        fields = PutFrame(
            kind="text" if found.kind == DOCUMENT_KIND else found.kind,
            role=found.role,
            uri=found.uri,
            title=found.title,
            tags=found.tags,
            labels=found.labels,
            metadata={
                name: value
                for name, value in found.metadata.items()
                # These say of the old text where it is from.
                if name not in (SOURCE_HASH, SPAN)
            },
        )
        return fields, tuple(found.scope.items())

    def write(
        self,
        drafts: Sequence[Draft],
        *,
        expect: int | None = None,
        key: str | None = None,
        arguments: bytes | None = None,
    ) -> Receipt:
        """Append drafts as one batch, or add them to the open transaction.

        Drafts without a scope of their own get the store's. ``arguments`` is the hash of what the
        key stands for, where that is not what the drafts say.

        Raises:
            InvalidInput: the scope of one is outside the store's, or one has a salt.
        """
        if any(draft.salt is not None for draft in drafts):
            raise InvalidInput(
                "A draft must have no salt: a salt that two events share outlives either of them",
                remedy="Leave salt=None; the store draws one for each event.",
            )
        transaction = self._transaction.get()
        if transaction is None:
            return self._append(
                within_scope(drafts, self._scope), expect=expect, key=key, arguments=arguments
            )
        if expect is not None or key is not None:
            raise InvalidInput(
                "expect and key belong to the transaction", remedy="Pass them to transaction()."
            )
        self._check_writable()
        return transaction.add(drafts)

    def _check_writable(self) -> None:
        if not self._log.is_writable:
            raise ReadOnly(
                "The store was opened for reading",
                where=self._log.path,
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
    ) -> Receipt:
        references = References(drafts)
        if key is not None and arguments is None:
            arguments = arguments_hash(asked(drafts))
        tagging, rules = Tagging(drafts, self._scope), FactRules(drafts, within=self._scope)
        spaces = Spaces(drafts, self._scope)
        checks: list[Validate] = []
        if self._shapes_of != self._fold.replaced:
            # An erasure may have left a space without vectors.
            self._shapes, self._shapes_of = {}, self._fold.replaced
        if self._shapes.items() >= spaces.shapes.items():
            # What the log has of a space once, it has for good.
            spaces = Spaces((), self._scope)
        is_checked = references or references.causes or tagging or spaces or rules
        known = self._log.refresh().seq if is_checked else 0
        references.check_causes(self._log, self._scope, known)
        if references:
            named = self._fold.facts(known) if references.names_facts else None
            references.check_exist(self._log, self._scope, known, named)
        if references.names_frames:
            checks.append(partial(references.check_open, self._fold.frames(known)))
        links = LinkRules(drafts)
        if links:
            links.check(self._fold.facts(known), self._fold.frames(known))
        if rules:
            facts = self._fold.facts(known)
            rules.check(facts, facts.seq, Ended())
            checks.append(partial(rules.check_delta, facts))
        if tagging:
            tagging.check(self._log, known)
            checks.append(partial(tagging.check_free, self._fold.own(Tags.name, known).rows))
        if spaces:
            frames = self._fold.frames(known)
            spaces.check(self._log, frames, frames.seq)
            checks.append(spaces.check_delta)

        def validate(delta: Sequence[Event]) -> None:
            for check in checks:
                check(delta)

        appended = self._log.append(
            drafts,
            expect=expect,
            key=key,
            arguments=arguments,
            validate=validate if checks else None,
            known=known,
            payloads=payloads,
            sees=self._sees,
        )
        if not appended.replayed:
            self._shapes.update(spaces.shapes)
        self._fold.save_if_due()
        return self._receipt(drafts, appended)

    def _receipt(self, drafts: Sequence[Draft], appended: Appended) -> Receipt:
        seqs = tuple(range(appended.first_seq, appended.last_seq + 1))
        if appended.replayed:
            # What was asked for again may not be what was put then: the log says.
            self._log.refresh()
            said = [(event.type, event.body) for event in self._log.read(seqs[0], seqs[-1])]
        else:
            said = [(draft.body.wire_name, draft.body) for draft in drafts]
        made = tuple(seq for seq, (kind, _) in zip(seqs, said, strict=True) if kind in MAKERS)
        olds = [body.old for _, body in said if isinstance(body, SupersedeFrame)]
        return Receipt(
            id=made[0] if made else appended.first_seq,
            ids=made,
            seqs=seqs,
            head=appended.head,
            durable=appended.durable,
            added=not appended.replayed,
            # A frame of the same batch is named by its place there.
            replaced=tuple(old if old > 0 else appended.first_seq - old - 1 for old in olds),
        )


def asked(drafts: Sequence[Draft]) -> list[tuple[str, Scope, EventBody]]:
    """Return what drafts say, where they are all that a caller gave.

    Left out is what is derived from it, so that a key of today is known to a later version.
    """
    return [(draft.body.wire_name, draft.scope, _given(draft.body)) for draft in drafts]


def _given(body: EventBody) -> EventBody:
    if isinstance(body, PutFrame):
        return msgspec.structs.replace(body, content_hash=None)
    if isinstance(body, AssertFact) and any(place.quote is not None for place in body.evidence):
        # A quote of a frame of the same block differs from run to run, as the frame's salt does.
        places = [msgspec.structs.replace(place, quote=None) for place in body.evidence]
        return msgspec.structs.replace(body, evidence=tuple(places))
    return body
