"""Writing facts: the calls that assert, retract, correct, and say who is who.

Owns what each call says in events. Leaves out how they are appended (`appending`) and what
follows from them (`cerata.projections.fact_table`).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import cast

from cerata.engine.errors import InvalidInput
from cerata.engine.events import (
    AssertFact,
    Draft,
    EventBody,
    Evidence,
    MergeEntities,
    PutEntity,
    PutPredicate,
    RetractFact,
    Scope,
    ScopeValue,
    SplitEntity,
    UnmergeEntities,
    UnsplitEntity,
)
from cerata.projections.intervals import BEGINNING
from cerata.projections.times import to_datetime, to_microseconds

from .appending import Appends
from .drafting import full_scope, listed
from .evidence import quoted
from .fact_reading import as_named, check_entities
from .fact_values import (
    OPEN,
    SOURCES,
    FactEvidence,
    FactId,
    FactObject,
    checked_name,
    fact_id,
    stored_object,
)
from .values import FrameId, Receipt, frame_id

EvidenceLike = FactEvidence | FrameId | tuple[FrameId, int, int]
"""A frame, or a frame and the UTF-8 bytes [start, end) of its text."""


@dataclass(frozen=True, slots=True)
class Assertion:
    """What `FactWrites.assert_facts` is told of one fact; fields as in `assert_fact`."""

    subject: str
    predicate: str
    object: FactObject
    valid_from: datetime | str | None = None
    valid_to: datetime | str | None = None
    confidence: float = 1.0
    source: str = "observed"
    evidence: Sequence[EvidenceLike] = ()
    assumptions: Sequence[str] = ()
    because: FactId | None = None


class FactWrites(Appends):
    """The calls that write facts; each is its own durable batch, or joins the open transaction."""

    def assert_fact(
        self,
        subject: str,
        predicate: str,
        object: FactObject,  # noqa: A002 - the word of the field
        *,
        valid_from: datetime | str | None = None,
        valid_to: datetime | str | None = None,
        confidence: float = 1.0,
        source: str = "observed",
        evidence: Sequence[EvidenceLike] = (),
        assumptions: Sequence[str] = (),
        because: FactId | None = None,
        scope: Mapping[str, ScopeValue] | None = None,
        key: str | None = None,
    ) -> Receipt:
        """Assert that a fact is true during [valid_from, valid_to). Durable on return.

        Without ``valid_from`` it is true from when it is recorded, and with "open" it has no
        beginning; without ``valid_to`` it is true until further notice. ``source`` is observed,
        inferred, hypothesis or synthetic; ``because`` is the fact that led to it. The same fact
        again adds to its evidence (docs/facts.md).

        Raises:
            InvalidInput: a value that cannot be stored, a period that is empty or inverted.
            NotFound: evidence names no frame, or ``because`` no event.
        """
        one = Assertion(
            subject,
            predicate,
            object,
            valid_from,
            valid_to,
            confidence,
            source,
            evidence,
            assumptions,
            because,
        )
        return self.assert_facts([one], scope=scope, key=key)

    def assert_facts(
        self,
        facts: Iterable[Assertion | tuple[str, str, FactObject]],
        *,
        scope: Mapping[str, ScopeValue] | None = None,
        key: str | None = None,
    ) -> Receipt:
        """Assert many facts as one batch: all of them or none. Durable on return.

        Each is an `Assertion`, or a subject, predicate and object. At most 10,000.

        Raises:
            As `assert_fact`.
        """
        stamped = full_scope(scope, self._scope)
        now = self._log.environment.now_us()
        drafts = [
            assertion_draft(
                one if isinstance(one, Assertion) else Assertion(*_triple(one)), stamped, now
            )
            for one in listed("facts", facts)
        ]
        self._called(stamped, "assert_facts", drafts=drafts)
        return self.write([quoted(self.view, draft) for draft in drafts], key=key)

    def retract_fact(self, fact: FactId) -> Receipt:
        """End what is known of a fact; views before still have it. Durable on return.

        Raises:
            NotFound: no such fact. Conflict: it is retracted already.
        """
        return self.retract_facts([fact])

    def retract_facts(self, facts: Iterable[FactId]) -> Receipt:
        """End what is known of many facts as one batch: of all of them or of none.

        Raises:
            NotFound: one of them is not there. Conflict: one is retracted already, or named twice.
        """
        scope = full_scope(None, self._scope)
        numbers = [fact_id(fact) for fact in listed("facts", facts)]
        self._called(scope, "retract_facts", numbers)
        return self.write([Draft(RetractFact(fact=number), scope) for number in numbers])

    def correct_fact(
        self,
        fact: FactId,
        *,
        object: FactObject | None = None,  # noqa: A002 - the word of the field
        valid_from: datetime | str | None = None,
        valid_to: datetime | str | None = None,
        confidence: float | None = None,
        evidence: Sequence[EvidenceLike] = (),
    ) -> Receipt:
        """Retract a fact, and assert it as it should have been, in one batch. Durable on return.

        What is not given stays as it was stated, entities by the names that they had before they
        were merged; "open" takes an end away. The receipt's id is the
        new fact's, whose cause is the retraction.

        Raises:
            NotFound: no such fact. Conflict: it is retracted already. InvalidInput.
        """
        view = self.view()
        was = view.fact(fact)
        subject, its_object = as_named(view, was)
        number, scope = was.id, tuple(was.scope.items())
        given = (object, valid_from, valid_to, confidence)
        if all(value is None for value in given) and not evidence:
            raise InvalidInput("Nothing is corrected", remedy="Give what should be different.")
        corrected = Assertion(
            subject,
            was.predicate,
            its_object if object is None else object,
            (was.stated.start or OPEN) if valid_from is None else valid_from,
            (was.stated.end or OPEN) if valid_to is None else valid_to,
            was.confidence if confidence is None else confidence,
            was.source,
            [*was.evidence, *listed("evidence", evidence)],
            was.assumptions,
        )
        self._called(scope, "correct_fact", number, corrected)
        place = self.next_place()
        draft = assertion_draft(corrected, scope, self._log.environment.now_us())
        draft = quoted(self.view, draft)
        return self.write(
            [
                Draft(RetractFact(fact=number), scope),
                Draft(draft.body, scope, causation=-place),
            ]
        )

    # --- predicates and entities -----------------------------------------------------------------

    def declare_predicate(
        self,
        predicate: str,
        *,
        functional: bool,
        scope: Mapping[str, ScopeValue] | None = None,
    ) -> Receipt:
        """Say whether a subject has one value of a predicate at a time. Durable on return.

        Then a value ends where the next begins, in every read from here on (docs/facts.md).
        """
        if not isinstance(functional, bool):
            raise InvalidInput(
                f"functional must be True or False, not {functional!r}",
                remedy="Pass functional=True or functional=False.",
            )
        body = PutPredicate(predicate=checked_name("A predicate", predicate), functional=functional)
        return self._one("declare_predicate", body, scope)

    def put_entity(
        self,
        name: str,
        *,
        kind: str | None = None,
        aliases: Sequence[str] = (),
        scope: Mapping[str, ScopeValue] | None = None,
    ) -> Receipt:
        """Say an entity's kind, and more names by which it is found. Durable on return."""
        body = PutEntity(
            entity=checked_name("An entity's name", name),
            kind=None if kind is None else checked_name("An entity's kind", kind),
            aliases=tuple(checked_name("An alias", one) for one in listed("aliases", aliases)),
        )
        return self._one("put_entity", body, scope)

    def merge_entities(
        self, entity: str, into: str, *, scope: Mapping[str, ScopeValue] | None = None
    ) -> Receipt:
        """Read an entity as another from here on; `unmerge` of the receipt ends it.

        Raises:
            Conflict: it is merged already, or ``into`` is read as it. NotFound: nothing names it.
        """
        self._check_named(scope, entity, into)
        body = MergeEntities(entity=entity, into=into)
        return self._one("merge_entities", body, scope)

    def unmerge(self, merge: int | Receipt) -> Receipt:
        """End a merge, by the id that it has. Durable on return.

        Raises:
            NotFound: no such merge. Conflict: it has ended already.
        """
        return self._one("unmerge", UnmergeEntities(merge=_event_id(merge)), None)

    def split_entity(
        self,
        entity: str,
        into: str,
        facts: Sequence[FactId],
        *,
        scope: Mapping[str, ScopeValue] | None = None,
    ) -> Receipt:
        """Say that where these facts name an entity they mean another, from here on.

        Raises:
            NotFound: no such entity or fact. InvalidInput: no facts are given.
        """
        self._check_named(scope, entity)
        numbers = tuple(fact_id(one) for one in listed("facts", facts))
        if not numbers:
            raise InvalidInput("No facts are given", remedy="Name those that mean the other.")
        body = SplitEntity(
            entity=entity, into=checked_name("An entity's name", into), facts=numbers
        )
        return self._one("split_entity", body, scope)

    def _check_named(self, scope: Mapping[str, ScopeValue] | None, *names: str) -> None:
        """Raise `NotFound` unless a call may name these entities.

        In a store without a scope it may name those of its tenant.
        """
        view = self.view()
        own = view if self._scope is not None else view.within(full_scope(scope, None)[:1])
        check_entities(own, names)

    def unsplit(self, split: int | Receipt) -> Receipt:
        """End a split, by the id that it has. Durable on return.

        Raises:
            NotFound: no such split. Conflict: it has ended already.
        """
        return self._one("unsplit", UnsplitEntity(split=_event_id(split)), None)

    def _one(self, name: str, body: EventBody, scope: Mapping[str, ScopeValue] | None) -> Receipt:
        drafts = [Draft(body, full_scope(scope, self._scope))]
        self._called(drafts[0].scope, name, drafts=drafts)
        return self.write(drafts)


def _triple(given: object) -> tuple[str, str, FactObject]:
    if not isinstance(given, tuple) or len(cast("tuple[object, ...]", given)) != 3:
        raise InvalidInput(
            f"A fact cannot be {given!r:.60}",
            remedy="Give (subject, predicate, object), or a cerata.Assertion.",
        )
    return cast("tuple[str, str, FactObject]", given)


def _event_id(value: int | Receipt) -> int:
    number = value.id if isinstance(value, Receipt) else value
    if isinstance(number, bool) or not isinstance(number, int):
        raise InvalidInput(
            f"A {type(number).__name__} names no event",
            remedy="Pass the seq of an event, or a receipt.",
        )
    return number


def assertion_draft(one: Assertion, scope: Scope, now_us: int) -> Draft:
    """Return the event that asserts a fact. Raises `InvalidInput`."""
    kind, value = stored_object(one.object)
    start = _time("valid_from", one.valid_from, BEGINNING)
    end = _time("valid_to", one.valid_to, None)
    if end is not None and end <= (now_us if start is None else start):
        begins = "when it is recorded" if start is None else to_datetime(start).isoformat()
        raise InvalidInput(
            f"The fact would end at {to_datetime(end).isoformat()}, and begin at {begins}",
            where="valid_to",
            remedy="Give a valid_from that comes before it; 'open' is no beginning.",
        )
    if one.source not in SOURCES:
        raise InvalidInput(f"source is {one.source!r}", remedy=f"There are {', '.join(SOURCES)}.")
    confidence: object = one.confidence
    if isinstance(confidence, bool) or not isinstance(confidence, int | float):
        raise InvalidInput(
            f"confidence must be a number, not {type(confidence).__name__}",
            remedy="Pass a number from 0 to 1.",
        )
    if not 0 <= confidence <= 1:
        raise InvalidInput(f"confidence is {confidence}", remedy="Give 0 to 1.")
    body = AssertFact(
        subject=checked_name("The subject", one.subject),
        predicate=checked_name("The predicate", one.predicate),
        object_kind=kind.name.lower(),
        object=value,
        valid_from=start,
        valid_to=end,
        confidence=float(confidence),
        source=one.source,
        evidence=tuple([_evidence(place) for place in listed("evidence", one.evidence)]),
        assumptions=tuple(
            [checked_name("An assumption", text) for text in listed("assumptions", one.assumptions)]
        ),
    )
    return Draft(body, scope, causation=None if one.because is None else fact_id(one.because))


def _time(name: str, given: datetime | str | None, if_open: int | None) -> int | None:
    if given is None:
        return None
    if given == OPEN:
        return if_open
    try:
        return to_microseconds(given)
    except InvalidInput as error:
        raise InvalidInput(error.what, where=name, remedy=error.remedy) from error


def _evidence(place: EvidenceLike) -> Evidence:
    """Return where a fact is said, as it is stored. Raises `InvalidInput`."""
    if isinstance(place, FactEvidence):
        start, end = place.start, place.end
        frame = place.frame
    elif isinstance(place, tuple):
        if len(place) != 3:
            raise InvalidInput(
                f"Evidence cannot be {place!r:.60}", remedy="Give (frame, start, end)."
            )
        frame, start, end = frame_id(place[0]), place[1], place[2]
    else:
        frame, start, end = frame_id(place), None, None
    if start is None and end is None:
        return Evidence(frame)
    if not isinstance(start, int) or not isinstance(end, int) or not 0 <= start < end:
        raise InvalidInput(
            f"The evidence [{start}, {end}) of frame {frame} is no range of bytes",
            remedy="Give 0 <= start < end, in bytes of the frame's UTF-8.",
        )
    return Evidence(frame, start, end)
