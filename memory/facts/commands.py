"""Writing facts: the calls that assert, retract and correct facts, and name and merge entities.

Owns the events of each call. Leaves out appending them (`batch.session`) and the state that follows
from them (`cerata.projections.facts.reader`).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING, Final, Never

from cerata.engine.arguments import expect_bool, expect_integer
from cerata.engine.codec import tenant_of
from cerata.engine.errors import Conflict, InvalidInput
from cerata.engine.events import (
    Draft,
    EventBody,
    MergeEntities,
    PutEntity,
    PutPredicate,
    RetractFact,
    ScopeValue,
    SplitEntity,
    UnmergeEntities,
    UnsplitEntity,
)
from cerata.engine.json_value import shown_id
from cerata.engine.late import late

from ..batch.author import Author, author_of
from ..batch.session import contents_of
from ..batch.writer import Writer, takes_scope
from ..values.arguments import arguments_hash, full_scope, listed, scope_under
from ..values.frames import Receipt, id_in
from ..values.options import FACT, FactOptions, checked
from ..values.renamed import refuse

if TYPE_CHECKING:
    from cerata.projections.facts.repeats import Repeats

    from ..snapshot import fact_conversion
    from ..snapshot.snapshot import Snapshot
    from ..values import facts as fact_values
    from ..values.facts import Entity, FactId, FactObject
    from . import aliases as fact_aliases
    from . import corrections as fact_corrections
    from . import drafts as fact_drafts
    from . import drafts as fact_evidence
    from . import reads as fact_reads
    from . import repeats as fact_repeats
    from .drafts import Assertion, EvidenceLike
    from .repeats import Twin
else:
    fact_conversion = late("cerata.memory.snapshot.fact_conversion")
    fact_values = late("cerata.memory.values.facts")
    fact_aliases = late("cerata.memory.facts.aliases")
    fact_corrections = late("cerata.memory.facts.corrections")
    fact_drafts = late("cerata.memory.facts.drafts")
    fact_evidence = late("cerata.memory.facts.drafts")
    fact_reads = late("cerata.memory.facts.reads")
    fact_repeats = late("cerata.memory.facts.repeats")


_OF_NO_THING: Final = ("declare_predicate", "put_entity")
"""The calls whose event has no id among `Receipt.ids`."""


class FactBatches(Writer):
    """The batches of facts, which a store and its graph write."""

    @takes_scope
    def _assert_all(
        self,
        facts: Iterable[Assertion | tuple[str | Entity, str, FactObject]],
        *,
        scope: Mapping[str, ScopeValue] | None = None,
        key: str | None = None,
        actor: str | None = None,
    ) -> Receipt:
        stamped = full_scope(scope, self._session.scope)
        now = self._session.log.environment.now_us()
        drafts: list[Draft] = []
        for fact in listed("facts", facts):
            if not isinstance(fact, fact_drafts.Assertion):
                fact = fact_drafts.Assertion(*fact_drafts.triple(fact))
            drafts.append(fact_drafts.assertion_draft(fact, stamped, now))
        self._session.record_call(stamped, "assert_facts", drafts=drafts)
        session = self._session.by(actor)
        # The caller's words, since an alias may be of another entity at a second call.
        arguments = None if key is None else arguments_hash(contents_of(drafts))
        if key is not None and (
            session.in_transaction or session.first_use(key, tenant_of(stamped)) is not None
        ):
            # The stored batch answers, or the call is refused.
            return session.write(
                [fact_evidence.quoted(self._snapshot, draft) for draft in drafts],
                key=key,
                arguments=arguments,
            )
        # One look at the log serves both.
        known_facts = session.recent_triples.facts_through(session.newest_seq())
        drafts = fact_aliases.about_entities(
            session, self._snapshot, drafts, known_facts=known_facts
        )
        repeats = fact_repeats.repeated(session, self._snapshot, drafts, now, known_facts)
        stored: list[int] = []
        for repeat in repeats:
            if isinstance(repeat, int):
                stored.append(repeat)
        if drafts and len(stored) == len(drafts):
            return self._unchanged(self._snapshot(), (*stored,))
        # A key is recorded with all facts of its call, so that the call can be recognised.
        new = drafts if key is not None or not any(repeats) else _new(drafts, repeats)
        quoted: list[Draft] = []
        for draft in new:
            quoted.append(fact_evidence.quoted(self._snapshot, draft))
        receipt = session.write(quoted, key=key, arguments=arguments)
        if len(new) == len(drafts):
            return receipt
        written = iter(receipt.ids)
        ids = list[int]()
        for known in repeats:
            if isinstance(known, fact_repeats.Twin):
                ids.append(ids[known.index])
            else:
                ids.append(next(written) if known is None else known)
        return replace(receipt, id=ids[0], ids=tuple(ids))

    def _retract_all(
        self,
        facts: Iterable[FactId],
        *,
        actor: str | None = None,
        reason: str | None = None,
    ) -> Receipt:
        scope = full_scope(None, self._session.scope)
        numbers = [fact_values.fact_id(fact) for fact in listed("facts", facts)]
        self._session.record_call(scope, "retract_facts", numbers)
        drafts = [Draft(RetractFact(fact=number), scope) for number in numbers]
        with self._naming_current(numbers):
            return self._session.by(actor, reason).write(drafts)

    @contextmanager
    def _naming_current(self, numbers: Sequence[int]) -> Generator[None]:
        """Name the newest correction in the refusal of a fact that was corrected already."""
        try:
            yield
        except Conflict as error:
            snapshot = self._snapshot()
            for number in numbers:
                current = fact_corrections.current_fact(snapshot, snapshot.fact_at(number))
                if current is not None and not snapshot.fact_at(number).is_known:
                    raise Conflict(
                        f"Fact {number:,} was corrected by fact {current.id:,}",
                        where=error.where,
                        remedy=f"Pass fact {current.id:,} instead.",
                    ) from error
            raise

    def _unchanged(self, snapshot: Snapshot, ids: tuple[int, ...], call: str = "") -> Receipt:
        """Return the receipt of a call that adds nothing to things with ids."""
        self._session.check_writable()
        block = self._session.ids
        head = None if block is not None else snapshot.head
        ids = tuple(map(shown_id, ids))
        made = () if call in _OF_NO_THING else ids
        return Receipt(ids[0], made, (), head, durable=block is None, added=False, _block=block)


class FactCommands(FactBatches):
    """The calls that write a fact; each is a durable batch, or joins the open transaction."""

    def assert_fact(
        self,
        subject: str | Entity,
        predicate: str,
        object: FactObject,  # noqa: A002 - the word of the field
        *,
        valid_from: date | str | None = None,
        valid_to: date | str | None = None,
        confidence: float = 1.0,
        source: str = "observed",
        evidence: Sequence[EvidenceLike] = (),
        options: FactOptions = FACT,
        **_moved: Never,
    ) -> Receipt:
        """Assert that a fact is true during [valid_from, valid_to). Durable on return.

        The time "open" means no beginning, or no end. A repeated assertion of a known fact adds to
        its evidence; without anything new it writes nothing: ``added`` is False (docs/facts.md).

        Args:
            subject: Name of the entity that the fact is about, or an `Entity`.
            predicate: Name of the property or relation.
            object: The value, or an `Entity`.
            valid_from: Aware datetime, ISO string, or "open"; by default when it is recorded.
            valid_to: Aware datetime, ISO string, or "open", which is the default.
            confidence: Probability that the fact is true, from 0 to 1.
            source: "observed", "inferred", "hypothesis" or "synthetic".
            evidence: Frames in which the fact was read, or (frame, start, end) in UTF-8 bytes.
            options: Assumptions, the fact that led to this fact, and where the write goes. A call
                with a key that writes nothing leaves the key unused.

        Raises:
            InvalidInput: a value cannot be stored, or the period is empty or inverted.
            NotFound: evidence names no frame, or ``because`` no event.
        """
        if _moved:
            refuse("assert_fact", _moved)
        if options is not FACT:
            checked("options", options, FactOptions)
        assertion = fact_drafts.Assertion(
            subject,
            predicate,
            object,
            valid_from,
            valid_to,
            confidence,
            source,
            evidence,
            options.assumptions,
            options.because,
        )
        return self._assert_all(
            [assertion], scope=options.scope, key=options.key, actor=options.actor
        )

    def retract_fact(
        self,
        fact: FactId,
        *,
        actor: str | None = None,
        reason: str | None = None,
    ) -> Receipt:
        """Retract a fact: it is no longer known; earlier views keep it. Durable on return.

        Args:
            fact: The fact, its id, or its receipt.
            actor: Name of the writer; default that of the transaction, else of the store.
            reason: The reason, for readers of the log; default that of the transaction.

        Raises:
            NotFound: no such fact exists.
            Conflict: the fact is retracted already.
        """
        return self._retract_all([fact], actor=actor, reason=reason)

    def correct_fact(
        self,
        fact: FactId,
        *,
        object: FactObject | None = None,  # noqa: A002 - the word of the field
        valid_from: date | str | None = None,
        valid_to: date | str | None = None,
        confidence: float | None = None,
        evidence: Sequence[EvidenceLike] = (),
        actor: str | None = None,
        reason: str | None = None,
    ) -> Receipt:
        """Retract a fact and assert a corrected one in the same batch. Durable on return.

        The new fact keeps the stated values that no argument replaces, and names entities as before
        any merge. The receipt's id is the new fact's, whose cause is the retraction.

        Args:
            fact: The fact to correct, its id, or its receipt.
            object: The right value; by default unchanged.
            valid_from: The right beginning; "open" for none; by default unchanged.
            valid_to: The right end; "open" for none; by default unchanged.
            confidence: The right confidence, from 0 to 1; by default unchanged.
            evidence: More places in which the fact was read; added to the old evidence.
            actor: Name of the writer; default that of the transaction, else of the store.
            reason: The reason, for readers of the log; default that of the transaction.

        Raises:
            NotFound: no such fact exists, or evidence names no frame.
            Conflict: the fact is retracted already.
            InvalidInput: no argument changes the fact, or a value cannot be stored.
        """
        number = fact_values.fact_id(fact)
        known = self._snapshot().fact_at(number)
        scope = scope_under(tuple(known.scope.items()), self._session.scope)
        changes = (object, valid_from, valid_to, confidence)
        more = listed("evidence", evidence)
        if all(value is None for value in changes) and not more:
            raise InvalidInput(
                "correct_fact got no change",
                remedy="Pass object=, valid_from=, valid_to=, confidence= or evidence=.",
            )
        self._session.record_call(
            scope,
            "correct_fact",
            number,
            changes,
            [fact_drafts.evidence_of(place) for place in more],
        )
        # Only now, since a repeated block reads the state before its first run.
        snapshot = self._snapshot()
        old = snapshot.fact_at(number)
        subject, its_object = fact_reads.as_named(snapshot, old)
        corrected = fact_drafts.Assertion(
            subject,
            old.predicate,
            its_object if object is None else object,
            (old.stated.start or fact_values.OPEN) if valid_from is None else valid_from,
            (old.stated.end or fact_values.OPEN) if valid_to is None else valid_to,
            old.confidence if confidence is None else confidence,
            old.source,
            [*old.evidence, *more],
            old.assumptions,
        )
        place = self._session.next_place()
        draft = fact_drafts.assertion_draft(
            corrected, scope, self._session.log.environment.now_us()
        )
        [draft] = fact_aliases.about_entities(self._session, self._snapshot, [draft])
        draft = fact_evidence.quoted(self._snapshot, draft)
        with self._naming_current([number]):
            return self._session.by(actor, reason).write(
                [Draft(RetractFact(fact=old.id), scope), Draft(draft.body, scope, causation=-place)]
            )


class FactGraphCommands(FactBatches):
    """The calls that write many facts, predicates and entities; each is a durable batch."""

    def assert_many(
        self,
        facts: Iterable[Assertion | tuple[str | Entity, str, FactObject]],
        *,
        scope: Mapping[str, ScopeValue] | None = None,
        key: str | None = None,
        actor: str | None = None,
    ) -> Receipt:
        """Assert many facts as one batch: all of them or none. Durable on return.

        Facts that are known without a change are not written; ``ids`` names them, too.

        Args:
            facts: Each an `Assertion`, or (subject, predicate, object); at most 10,000.
            scope: Names and values that narrow the store's scope.
            key: Idempotency key; the same call again returns the first receipt. A call that writes
                nothing leaves the key unused.
            actor: Name of the writer; default that of the transaction, else of the store.

        Raises:
            InvalidInput: as `assert_fact`.
            NotFound: as `assert_fact`.
        """
        return self._assert_all(facts, scope=scope, key=key, actor=actor)

    def retract_many(
        self,
        facts: Iterable[FactId],
        *,
        actor: str | None = None,
        reason: str | None = None,
    ) -> Receipt:
        """Retract many facts as one batch: all of them or none. Durable on return.

        Args:
            facts: The facts, their ids, or their receipts.
            actor: Name of the writer; default that of the transaction, else of the store.
            reason: The reason, for readers of the log; default that of the transaction.

        Raises:
            NotFound: a fact does not exist.
            Conflict: a fact is retracted already, or named twice.
        """
        return self._retract_all(facts, actor=actor, reason=reason)

    # --- predicates and entities -----------------------------------------------------------------

    @takes_scope
    def declare(
        self,
        predicate: str,
        *,
        functional: bool,
        scope: Mapping[str, ScopeValue] | None = None,
        actor: str | None = None,
    ) -> Receipt:
        """Declare whether a subject has a single value of a predicate at a time. Durable on return.

        A value of a functional predicate ends when the next begins, in all later reads
        (docs/facts.md).

        Args:
            predicate: Name of the predicate.
            functional: True if a subject has a single value at a time.
            scope: Names and values that narrow the store's scope.
            actor: Name of the writer; default that of the transaction, else of the store.
        """
        functional = expect_bool("functional", functional)
        body = PutPredicate(
            predicate=fact_values.checked_name("A predicate", predicate), functional=functional
        )
        stamped = full_scope(scope, self._session.scope)
        return self._one(
            "declare_predicate",
            body,
            scope,
            author_of(actor),
            lambda repeats: repeats.declaration(stamped, predicate, functional=functional),
        )

    @takes_scope
    def name(
        self,
        name: str | Entity,
        *,
        kind: str | None = None,
        aliases: Sequence[str] = (),
        scope: Mapping[str, ScopeValue] | None = None,
        actor: str | None = None,
    ) -> Receipt:
        """Record an entity's kind, and further names that find it. Durable on return.

        Args:
            name: The entity's name.
            kind: Its kind, such as "person"; by default the kind stays as it is.
            aliases: Names to add.
            scope: Names and values that narrow the store's scope.
            actor: Name of the writer; default that of the transaction, else of the store.
        """
        body = PutEntity(
            entity=fact_values.entity_name("An entity's name", name),
            kind=None if kind is None else fact_values.checked_name("An entity's kind", kind),
            aliases=tuple(
                fact_values.checked_name("An alias", alias) for alias in listed("aliases", aliases)
            ),
        )
        stamped = full_scope(scope, self._session.scope)
        return self._one(
            "put_entity",
            body,
            scope,
            author_of(actor),
            lambda repeats: repeats.entity(stamped, body),
        )

    @takes_scope
    def merge(
        self,
        entity: str | Entity,
        into: str | Entity,
        *,
        scope: Mapping[str, ScopeValue] | None = None,
        actor: str | None = None,
    ) -> Receipt:
        """Read an entity as another from here on, until `graph.unmerge`. Durable on return.

        Args:
            entity: Name of the entity that disappears from reads.
            into: Name of the entity that takes its place.
            scope: Names and values that narrow the store's scope.
            actor: Name of the writer; default that of the transaction, else of the store.

        Raises:
            Conflict: entity is merged already, or ``into`` is read as entity.
            NotFound: no event names one of the entities.
        """
        source = self._meant(scope, fact_values.entity_name("An entity's name", entity))
        target = self._meant(scope, fact_values.entity_name("An entity's name", into))
        self._check_named(scope, source, target)
        body = MergeEntities(entity=source, into=target)
        stamped = full_scope(scope, self._session.scope)
        return self._one(
            "merge_entities",
            body,
            scope,
            author_of(actor),
            lambda repeats: repeats.merge(stamped, source, target),
        )

    def unmerge(
        self,
        merge: int | Receipt,
        *,
        actor: str | None = None,
        reason: str | None = None,
    ) -> Receipt:
        """End a merge. Durable on return.

        Args:
            merge: The merge's id, or its receipt.
            actor: Name of the writer; default that of the transaction, else of the store.
            reason: The reason, for readers of the log; default that of the transaction.

        Raises:
            NotFound: no such merge exists.
            Conflict: the merge has ended already.
        """
        return self._one(
            "unmerge", UnmergeEntities(merge=_event_id(merge)), None, author_of(actor, reason)
        )

    @takes_scope
    def split(
        self,
        entity: str | Entity,
        into: str | Entity,
        facts: Sequence[FactId],
        *,
        scope: Mapping[str, ScopeValue] | None = None,
        actor: str | None = None,
    ) -> Receipt:
        """Let an entity that some facts name mean another, from here on. Durable on return.

        Args:
            entity: Name of the entity in the facts.
            into: Name of the entity that the facts mean.
            facts: The facts, their ids, or their receipts; at least one.
            scope: Names and values that narrow the store's scope.
            actor: Name of the writer; default that of the transaction, else of the store.

        Raises:
            NotFound: no such entity or fact exists.
            InvalidInput: facts is empty.
        """
        source = self._meant(scope, fact_values.entity_name("An entity's name", entity))
        target = self._meant(scope, fact_values.entity_name("An entity's name", into))
        self._check_named(scope, source)
        numbers = tuple(fact_values.fact_id(fact) for fact in listed("facts", facts))
        if not numbers:
            raise InvalidInput(
                "facts must name a fact, and is empty",
                remedy="Pass the facts that mean the other entity.",
            )
        body = SplitEntity(entity=source, into=target, facts=numbers)
        return self._one("split_entity", body, scope, author_of(actor))

    def _meant(self, scope: Mapping[str, ScopeValue] | None, name: str) -> str:
        stamped = full_scope(scope, self._session.scope)
        return fact_aliases.entity_meant(self._session, self._snapshot(), stamped, name)

    def _check_named(self, scope: Mapping[str, ScopeValue] | None, *names: str) -> None:
        """Raise `NotFound` unless a call may name these entities.

        A call of a store without a scope may name the entities of the call's tenant.
        """
        snapshot = self._snapshot()
        allowed = (
            snapshot
            if self._session.scope is not None
            else snapshot.within(full_scope(scope, None)[:1])
        )
        fact_reads.check_entities(allowed, names)

    def unsplit(
        self,
        split: int | Receipt,
        *,
        actor: str | None = None,
        reason: str | None = None,
    ) -> Receipt:
        """End a split. Durable on return.

        Args:
            split: The split's id, or its receipt.
            actor: Name of the writer; default that of the transaction, else of the store.
            reason: The reason, for readers of the log; default that of the transaction.

        Raises:
            NotFound: no such split exists.
            Conflict: the split has ended already.
        """
        return self._one(
            "unsplit", UnsplitEntity(split=_event_id(split)), None, author_of(actor, reason)
        )

    def _one(
        self,
        name: str,
        body: EventBody,
        scope: Mapping[str, ScopeValue] | None,
        author: Author,
        repeated: Callable[[Repeats], int | None] | None = None,
    ) -> Receipt:
        """Write one event, unless ``repeated`` returns the event that it would only repeat.

        The look-up precedes the lock. If another writer appends an equal event in between, the
        repeat is written, and changes nothing.
        """
        drafts = [Draft(body, full_scope(scope, self._session.scope))]
        self._session.record_call(drafts[0].scope, name, drafts=drafts)
        if repeated is not None:
            snapshot = self._snapshot()
            seq = repeated(snapshot.repeats)
            if seq is not None:
                return self._unchanged(
                    snapshot, (fact_conversion.id_of_seq(seq, snapshot.basis),), name
                )
        session = self._session.by(*author)
        try:
            return session.write(drafts)
        except Conflict:
            # Another writer may have appended the equal merge just before.
            snapshot = self._snapshot()
            seq = None if repeated is None else repeated(snapshot.repeats)
            if seq is None:
                raise
            return self._unchanged(
                snapshot, (fact_conversion.id_of_seq(seq, snapshot.basis),), name
            )


def _new(drafts: Sequence[Draft], repeats: Sequence[int | Twin | None]) -> list[Draft]:
    return [draft for draft, known in zip(drafts, repeats, strict=True) if known is None]


def _event_id(value: int | Receipt) -> int:
    number = id_in(value) if isinstance(value, Receipt) else value
    return expect_integer(
        "An event", number, "a seq or a receipt", "Pass the seq of an event, or a receipt."
    )
