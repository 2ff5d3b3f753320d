"""Reading facts: known and true facts, contradictions, and entities.

Owns the reads of facts and entities, for a view and for a store at its newest event. Leaves out
the look-up of facts at a basis (`cerata.projections.facts.reader`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date
from typing import TYPE_CHECKING, TypeAlias, cast

from cerata.engine.arguments import expect_bool
from cerata.engine.errors import InvalidInput, value_text
from cerata.engine.events import (
    AssertFact,
    EventBody,
    MergeEntities,
    PutEntity,
    SplitEntity,
    UnmergeEntities,
    UnsplitEntity,
)
from cerata.engine.late import late, loading
from cerata.engine.unreadable import readable

from ..snapshot.reader import Reader

if TYPE_CHECKING:
    from cerata.projections.columnar import times
    from cerata.projections.columnar import times as intervals
    from cerata.projections.columnar.times import Allen, Interval
    from cerata.projections.facts import entities as entities_module
    from cerata.projections.facts import objects
    from cerata.projections.facts.entities import EntityRow
    from cerata.projections.facts.objects import ObjectKind
    from cerata.projections.facts.reader import FactsAt
    from cerata.projections.facts.validity import FactSpan

    from ..snapshot import fact_conversion
    from ..snapshot.snapshot import Snapshot
    from ..values import facts as fact_values
    from ..values.facts import (
        Contradiction,
        Entity,
        EntityInfo,
        EvidenceText,
        Fact,
        FactId,
        FactObject,
        Period,
    )
    from . import corrections
    from . import drafts as fact_evidence
    from . import search as fact_search
    from .search import FactHit
else:
    intervals = late("cerata.projections.columnar.times")
    times = late("cerata.projections.columnar.times")
    entities_module = late("cerata.projections.facts.entities")
    objects = late("cerata.projections.facts.objects")
    fact_conversion = late("cerata.memory.snapshot.fact_conversion")
    fact_values = late("cerata.memory.values.facts")
    corrections = late("cerata.memory.facts.corrections")
    fact_evidence = late("cerata.memory.facts.drafts")
    fact_search = late("cerata.memory.facts.search")


PeriodLike: TypeAlias = "Period | tuple[date | str | None, date | str | None]"


class FactReads(Reader):
    """The reads of facts and entities."""

    def facts(
        self,
        subject: str | Entity | None = None,
        predicate: str | None = None,
        object: FactObject | None = None,  # noqa: A002 - the word of the field
        *,
        valid_at: date | str | None = None,
        overlapping: PeriodLike | None = None,
        allen: tuple[Allen | str, PeriodLike] | None = None,
        include_ended: bool = False,
        include_retracted: bool = False,
        include_invalid: bool = False,
    ) -> list[Fact]:
        """Return the facts that match all arguments, oldest first.

        Facts that ended by the view's ``now`` are left out, unless an argument or the view limits
        the time in which they are true. Cost: a look at the facts with the subject or object;
        without either a pass over all.

        Args:
            subject: Name or alias of the subject, or an `Entity`; by default any. Names and
                strings match in any spelling that folds alike (docs/facts.md).
            predicate: Name of the predicate; by default any.
            object: The value, or an `Entity`; a string also matches entities; by default any.
            valid_at: Instant at which the facts are true, or "now"; by default the view's, or any.
            overlapping: Period, or (start, end), with at least an instant at which they are true.
            allen: Relation of their period to another, such as ``("during", (start, end))``.
            include_ended: Also return facts that have ended; see `Fact.is_ended`.
            include_retracted: Also return retracted facts, with the period as stated.
            include_invalid: Also return facts that their links make invalid, with that period.

        Raises:
            InvalidInput: a name, object, time, period or relation is unusable.
        """
        snapshot = self._snapshot()
        instant = snapshot.valid_instant(valid_at)
        facts, rows = _find(
            snapshot,
            subject,
            predicate,
            object,
            closed=include_retracted,
            invalid=include_invalid,
            instant=instant,
        )
        if not rows and overlapping is None and allen is None:
            return []
        spans = fact_conversion.spans_of(facts, rows) if include_retracted else facts.spans(rows)
        if instant is not None and facts.roles.any_functional:
            # Only a later value of a functional predicate changes the stated period.
            spans = [span for span in spans if span.valid.start <= instant < span.valid.end]
        if overlapping is not None:
            period = _interval(overlapping)
            spans = [span for span in spans if span.valid.overlaps(period)]
        if allen is not None:
            spans = _related(spans, allen)
        present = snapshot.present_us if instant is None else instant
        if not include_ended and (instant, overlapping, allen) == (None, None, None):
            spans = [span for span in spans if span.valid.end > present]
        to_fact, basis = fact_conversion.to_fact, snapshot.basis
        results: list[Fact] = []
        for span in spans:
            results.append(to_fact(facts, span, basis, present))
        return results


class FactGraphReads(Reader):
    """The reads of one fact, and of entities."""

    def fact(self, fact: FactId) -> Fact:
        """Return a fact, retracted or not, as of this view.

        Args:
            fact: The fact's id, a receipt, or a fact; the id of a repeated assertion is valid, too.

        Raises:
            NotFound: no fact with this id exists at this basis, or the fact is out of scope.
        """
        snapshot = self._snapshot()
        return snapshot.fact_at(fact_values.fact_id(fact, snapshot.ids))

    def versions(self, subject: str | Entity, predicate: str | None = None) -> list[Fact]:
        """Return every fact of a subject, oldest first; also ended, retracted and invalid facts.

        Each has its valid period and its known period.

        Args:
            subject: Name of the subject, or an `Entity`; names match as in `facts`.
            predicate: Name of the predicate; by default any.
        """
        snapshot = self._snapshot()
        facts, rows = _find(snapshot, subject, predicate, None, closed=True, invalid=True)
        present = snapshot.present_us
        return [
            fact_conversion.to_fact(facts, span, snapshot.basis, present)
            for span in fact_conversion.spans_of(facts, rows)
        ]

    def evidence(self, fact: FactId) -> list[EvidenceText]:
        """Return the places in which a fact was read, with their text, in order of assertion.

        Cost: a read of each frame.

        Args:
            fact: The fact, its id, or its receipt.

        Raises:
            NotFound: no fact with this id exists at this basis, or the fact is out of scope.
        """
        snapshot = self._snapshot()
        read = snapshot.fact_at(fact_values.fact_id(fact, snapshot.ids))
        return [
            *readable(
                read.evidence,
                lambda place: fact_evidence.evidence_text(snapshot, place),
                lambda place: f"Evidence in frame {place.frame:,}",
            )
        ]

    def conflicts(
        self, subject: str | Entity | None = None, predicate: str | None = None
    ) -> list[Contradiction]:
        """Return the pairs of known facts that cannot both be true, with the period; in id order.

        Two facts contradict each other if they are values of a functional predicate at the same
        time, True and False of any predicate, or joined by a link "contradicts". Invalid facts
        contradict nothing.

        Args:
            subject: Name of the subject, or an `Entity`; by default any. Names match as in `facts`.
            predicate: Name of the predicate; by default any.
        """
        snapshot = self._snapshot()
        facts, rows = _find(snapshot, subject, predicate, None, closed=False)
        pairs = {(pair[0].row, pair[1].row): pair for pair in corrections.pairs_among(facts, rows)}
        links = dict[tuple[int, int], int]()
        among = None if subject is None and predicate is None else frozenset(rows)
        for row_a, row_b, link in snapshot.labelling.contradictions():
            if among is not None and row_a not in among and row_b not in among:
                continue
            overlapping = _overlapping(facts, row_a, row_b)
            if overlapping is not None:
                pairs.setdefault((row_a, row_b), overlapping)
                links.setdefault((row_a, row_b), link)
        return [
            fact_values.Contradiction(
                fact_conversion.to_fact(facts, first, snapshot.basis, snapshot.present_us),
                fact_conversion.to_fact(facts, second, snapshot.basis, snapshot.present_us),
                fact_values.period_of(shared),
                fact_conversion.id_of_seq(links[key], snapshot.basis) if key in links else None,
            )
            for key, (first, second, shared) in sorted(pairs.items())
        ]

    def search(
        self, query: str | Entity, *, k: int = 10, valid_at: date | str | None = None
    ) -> list[FactHit]:
        """Return the best ``k`` facts for a question in plain language, best first.

        Facts about entities that the question names, by a name or an alias, come first, those with
        more of these entities before the rest; then facts that share words with the question. Cost:
        a pass over the columns of facts.

        Args:
            query: The question, or an `Entity` for the facts about it.
            k: Most facts to return.
            valid_at: Instant at which the facts are true; by default the view's, if it has one.

        Raises:
            InvalidInput: the question is no string, or k is not positive.
        """
        snapshot = self._snapshot()
        if valid_at is not None:
            snapshot = snapshot.true_at(valid_at)
        return fact_search.search_facts(
            snapshot, query.name if isinstance(query, fact_values.Entity) else query, k
        )

    def resolve(self, name: str | Entity) -> list[str]:
        """Return the names of the entities with a name or alias, in order of their first event.

        Names match exactly, or folded: without case, accents, punctuation and runs of spaces. A
        merged entity is returned as the entity that it is read as.

        Args:
            name: A name or an alias.
        """
        return entities_module.Entities(self._snapshot().facts_at).resolve(
            fact_values.entity_name("A name", name)
        )

    def entity(self, name: str | Entity) -> EntityInfo:
        """Return an entity by its exact name, that of an entity merged into it, or an alias.

        Args:
            name: The name.

        Raises:
            NotFound: no event names the entity at this basis.
            InvalidInput: the name is an alias of several entities.
        """
        snapshot = self._snapshot()
        return _entity_info(fact_conversion.entity_named(snapshot.facts_at, name), snapshot)

    def entities(self, kind: str | None = None) -> Iterator[EntityInfo]:
        """Yield the entities, in order of their first event.

        Cost: a pass over the facts, and a look-up for each entity.

        Args:
            kind: The kind of the entities; by default any.
        """
        snapshot = self._snapshot()
        for row in entities_module.Entities(snapshot.facts_at).all():
            info = _entity_info(row, snapshot)
            if kind is None or info.kind == kind:
                yield info


class FactExport(Reader):
    """The read that exports facts."""

    def export_facts(self, *, history: bool = False) -> Iterator[str]:
        """Yield the facts and entities as JSON Lines, without line ends.

        Another memory takes them with `interchange.import_facts` (docs/facts.md). Cost: a pass over
        the log.

        Args:
            history: Also yield retracted facts, each with its retraction.

        Raises:
            InvalidInput: the view has pending events of an open transaction.
        """
        with loading("the part that exports facts"):
            from .export import export_facts

        return export_facts(self._snapshot(), history=expect_bool("history", history))

    # --- entities --------------------------------------------------------------------------------


def _entity_info(row: EntityRow, snapshot: Snapshot) -> EntityInfo:
    return fact_values.EntityInfo(
        *row._replace(first_seq=fact_conversion.id_of_seq(row.first_seq, snapshot.basis))
    )


def check_entities(snapshot: Snapshot, names: Iterable[str]) -> None:
    """Raise `NotFound` unless each exact name is of an entity in a view.

    Cost: a look-up for each name; for a name that the log lacks, a pass over the pending events.
    The fork of the facts is read only if the transaction ended a merge or split, since the
    ended event may be the only one that names an entity.
    """
    drafts = snapshot.layers.drafts
    ends = any(isinstance(draft.body, UnmergeEntities | UnsplitEntity) for draft in drafts)
    entities = entities_module.Entities(snapshot.facts_at if ends else snapshot.log_only.facts_at)
    for name in names:
        fact_values.checked_name("An entity's name", name)
        if not entities.has(name) and (ends or not _is_pending(snapshot, name)):
            raise fact_conversion.no_entity(entities_module.Entities(snapshot.facts_at), name)


def _is_pending(snapshot: Snapshot, name: str) -> bool:
    """Return whether the open transaction names an entity within the scope of a view."""
    return any(
        name in _entities_of(draft.body) and snapshot.sees(draft.scope)
        for draft in snapshot.layers.drafts
    )


def _entities_of(body: EventBody) -> tuple[object, ...]:
    if isinstance(body, AssertFact):
        is_entity = body.object_kind == objects.ObjectKind.ENTITY.name.lower()
        return (body.subject, body.object) if is_entity else (body.subject,)
    if isinstance(body, PutEntity):
        return (body.entity,)
    return (body.entity, body.into) if isinstance(body, MergeEntities | SplitEntity) else ()


def _find(
    snapshot: Snapshot,
    subject: str | Entity | None,
    predicate: str | None,
    object_: FactObject | None,
    *,
    closed: bool,
    invalid: bool = False,
    instant: int | None = None,
) -> tuple[FactsAt, list[int]]:
    name = None if subject is None else fact_values.entity_name("The subject", subject)
    if predicate is not None:
        fact_values.checked_name("The predicate", predicate)
    facts = snapshot.facts_at
    subjects = [(name, None)] if name is None or not facts.any_aliases else _subjects(facts, name)
    values = [(None, None)] if object_ is None else _objects(facts, object_)
    rows: list[list[int]] = []
    for subject_name, of_subject in subjects:
        for stored, of_object in values:
            matches = facts.find(
                subject_name,
                predicate,
                stored,
                folded=True,
                closed=closed,
                invalid=invalid,
                instant=instant,
            )
            for tenant in (of_subject, of_object):
                matches = matches if tenant is None else facts.of_tenant(matches, tenant)
            rows.append(matches)
    return facts, rows[0] if len(rows) == 1 else sorted(set[int]().union(*rows))


_Subject: TypeAlias = "tuple[str | None, int | None]"
_Value: TypeAlias = "tuple[tuple[ObjectKind, object] | None, int | None]"


def _subjects(facts: FactsAt, name: str) -> list[_Subject]:
    """Return a name, and the names of the entities that have it as an alias, with their tenants."""
    return [(name, None), *_of_alias(facts, name)]


def _of_alias(facts: FactsAt, name: str) -> list[tuple[str, int]]:
    entities = entities_module.Entities(facts)
    return [(entities.name_of(key), key[0]) for key in entities.of_alias(name)]


def _objects(facts: FactsAt, value: FactObject) -> list[_Value]:
    """Return an object, and the entities that it names: a string by its name, both by an alias."""
    kind, stored = fact_values.stored_object(value)
    values: list[_Value] = [((kind, stored), None)]
    of_entity = objects.ObjectKind.ENTITY
    if kind in (of_entity, objects.ObjectKind.STRING) and str(stored).strip():
        if kind is not of_entity:
            values.append(((of_entity, stored), None))
        aliases = _of_alias(facts, str(stored)) if facts.any_aliases else ()
        values += [((of_entity, name), tenant) for name, tenant in aliases]
    return values


def _interval(period: PeriodLike) -> Interval:
    """Return a caller's period in microseconds. Raises `InvalidInput` if the period is empty."""
    if isinstance(period, fact_values.Period):
        interval = period.interval
    elif isinstance(period, tuple) and len(period) == 2:
        start, end = period
        interval = intervals.Interval(
            intervals.BEGINNING
            if start is None or start == fact_values.OPEN
            else times.to_microseconds(start),
            intervals.ENDLESS
            if end is None or end == fact_values.OPEN
            else times.to_microseconds(end),
        )
    else:
        raise InvalidInput(
            f"A period must be (start, end) or a cerata.Period, not {value_text(period):.60}",
            remedy="Pass (start, end), or a cerata.Period.",
        )
    if interval.start >= interval.end:
        raise InvalidInput(
            "The period is empty or inverted", remedy="Pass an end that comes after the start."
        )
    return interval


def _related(spans: Iterable[FactSpan], allen: tuple[Allen | str, PeriodLike]) -> list[FactSpan]:
    if not isinstance(allen, tuple) or len(cast("tuple[object, ...]", allen)) != 2:
        raise InvalidInput(
            f"allen must be a name and a period, not {value_text(allen):.60}",
            remedy='Pass a name and a period, such as ("during", (start, end)).',
        )
    name, period_like = allen
    try:
        named_relation = intervals.Allen(name)
    except ValueError as error:
        raise InvalidInput(
            f"{name!r} is not a relation of periods",
            remedy=f"Use one of {', '.join(intervals.Allen)}.",
        ) from error
    period = _interval(period_like)
    return [
        span
        for span in spans
        if span.valid.start < span.valid.end
        and intervals.relation(span.valid, period) is named_relation
    ]


def _overlapping(
    facts: FactsAt, row_a: int, row_b: int
) -> tuple[FactSpan, FactSpan, Interval] | None:
    first, second = facts.spans([row_a, row_b])
    start = max(first.valid.start, second.valid.start)
    shared = intervals.Interval(start, min(first.valid.end, second.valid.end))
    is_real = all(span.valid.start < span.valid.end for span in (first, second))
    return (first, second, shared) if is_real and shared.start < shared.end else None


def as_named(snapshot: Snapshot, fact: Fact) -> tuple[str, FactObject]:
    """Return the subject and object of a fact by their names before any merge."""
    facts = snapshot.facts_at
    row = facts.row_of(snapshot.seq_of(fact.id))
    assert row is not None
    subject, entity = facts.asserted_names(row)
    return subject, fact.object if entity is None else fact_values.Entity(entity)
