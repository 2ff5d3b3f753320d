"""Fact conversion: the values that a caller gets, from the stored rows of facts.

Owns `to_fact`, ids in a view, and the look-up of an entity by name. Leaves out the choice of rows
(`facts.reads`, `facts.search`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from cerata.engine.errors import InvalidInput, NotFound
from cerata.engine.json_value import shown_id
from cerata.projections.columnar.times import to_datetime
from cerata.projections.facts.entities import Entities, EntityKey, EntityRow
from cerata.projections.facts.objects import ObjectKind

from ..values.facts import (
    Entity,
    Fact,
    FactEvidence,
    Period,
    entity_name,
    period_of,
    shown_object,
)

if TYPE_CHECKING:
    from cerata.projections.facts.reader import EvidencePlace, FactsAt
    from cerata.projections.facts.validity import FactSpan

_ENTITY: Final = int(ObjectKind.ENTITY)


def to_fact(facts: FactsAt, span: FactSpan, basis: int, present: int) -> Fact:
    """Return the fact of a row with its valid period, in a view of the log at ``basis``.

    ``present`` is the instant, in microseconds, by which a fact may have ended.
    """
    (
        seq,
        subject,
        predicate,
        kind,
        value,
        (recorded, retracted, retracted_by),
        (confidence, source),
        evidence,
        assumptions,
        depth,
        scope,
        standing,
    ) = facts.contents(span.row)
    is_entity = kind == _ENTITY
    valid = period_of(span.valid)
    by = span.by
    return Fact(
        seq if seq <= basis else shown_id(basis - seq),
        subject,
        predicate,
        Entity(value) if is_entity and isinstance(value, str) else shown_object(kind, value),
        valid,
        valid if by is None else period_of(facts.stated(span.row).valid),
        Period(to_datetime(recorded), None if retracted is None else to_datetime(retracted)),
        confidence,
        source,
        _evidence_of(evidence, basis) if evidence else (),
        tuple(assumptions),
        depth,
        scope,
        None if by is None else id_of_seq(facts.seq_of(by), basis),
        None if retracted_by is None else id_of_seq(retracted_by, basis),
        standing,
        span.valid.end <= present,
    )


def _evidence_of(places: Sequence[EvidencePlace], basis: int) -> tuple[FactEvidence, ...]:
    return tuple(
        [
            FactEvidence(id_of_seq(place.frame, basis), place.start, place.end, place.quote)
            for place in places
        ]
    )


def id_of_seq(seq: int, basis: int) -> int:
    """Return the id of a seq: pending events, after the log's end, are −1, −2, …."""
    return seq if seq <= basis else basis - seq


def fact_of(facts: FactsAt, row: int, basis: int, present: int) -> Fact:
    """Return the fact of a row, known or not; the arguments are those of `to_fact`."""
    return to_fact(facts, spans_of(facts, [row])[0], basis, present)


def spans_of(facts: FactsAt, rows: Sequence[int]) -> list[FactSpan]:
    """Return the periods in which rows are true; of retracted facts, the periods as stated."""
    known_rows = [row for row in rows if facts.is_known(row)]
    if len(known_rows) == len(rows):
        return facts.spans(rows)
    spans = {span.row: span for span in facts.spans(known_rows)}
    return [spans[row] if row in spans else facts.stated(row) for row in rows]


def entity_named(facts: FactsAt, name: str | Entity) -> EntityRow:
    """Return an entity by its exact name, by that of an entity merged into it, or by an alias.

    Raises:
        NotFound: no event names the entity.
        InvalidInput: the name is an alias of several entities.
    """
    name = entity_name("An entity's name", name)
    entities = Entities(facts)
    keys = entities.denoted(name)
    if not keys:
        raise no_entity(entities, name)
    if len(keys) > 1:
        raise several_entities(entities, name, keys)
    return entities.row(keys[0])


def several_entities(entities: Entities, name: str, keys: Sequence[EntityKey]) -> InvalidInput:
    """Return the error for an alias that several entities have."""
    names = [repr(entities.name_of(key)) for key in keys]
    return InvalidInput(
        f"{name!r:.80} is an alias of {len(names)} entities: {', '.join(names):.200}",
        remedy="Pass the name of one of them.",
    )


def no_entity(entities: Entities, name: str) -> NotFound:
    """Return the error for a name that no entity has."""
    near = entities.resolve(name)
    remedy = f"Did you mean {near[0]!r}?" if near else "Create the entity with graph.name()."
    return NotFound(f"There is no entity {name!r}", remedy=remedy)
