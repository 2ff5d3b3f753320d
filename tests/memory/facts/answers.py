"""What a view says of facts, links and entities, and what the model says, as plain values."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import cerata
from cerata import Entity, Fact
from cerata.memory.values.facts import plain_object
from cerata.memory.values.graph import Link

from ...projections.facts.fact_model import (
    EVER,
    FactModel,
    ModelAnswer,
    ModelEntity,
    Range,
    Value,
    value_of,
)
from ...projections.links.link_model import ModelLink
from .world import EPOCH, time_at

Shown = Callable[[int | None], int | None]
"""How a store shows the seq of an event."""


def plain_time(when: datetime | None) -> int | None:
    return None if when is None else (when - EPOCH) // timedelta(microseconds=1)


def plain_period(period: cerata.Period) -> tuple[int | None, int | None]:
    return plain_time(period.start), plain_time(period.end)


def plain_range(one: Range) -> tuple[float | None, float | None]:
    return (None if one[0] == -EVER else one[0]), (None if one[1] == EVER else one[1])


def value_in(given: object) -> Value:
    """Return the model's value of an object."""
    if isinstance(given, Entity):
        return value_of("entity", given.name)
    if isinstance(given, datetime):
        return value_of("timestamp", plain_time(given))
    kinds: dict[type, str] = {
        bool: "bool",
        int: "integer",
        float: "float",
        str: "string",
        bytes: "bytes",
    }
    plain = 0.0 if given == 0 and type(given) is float else given
    return value_of(kinds[type(given)], plain)


def plain_fact(fact: Fact) -> tuple[object, ...]:
    """Return all that a store says of a fact."""
    return (
        fact.id,
        fact.subject,
        fact.predicate,
        value_in(fact.object),
        str(fact.object),
        plain_period(fact.valid),
        plain_period(fact.stated),
        plain_period(fact.known),
        fact.confidence,
        fact.source,
        tuple((one.frame, one.start, one.end) for one in fact.evidence),
        fact.assumptions,
        fact.depth,
        dict(fact.scope),
        fact.ended_by,
        fact.retracted_by,
        str(fact.standing),
    )


def modelled_fact(model: FactModel, answer: ModelAnswer, shown: Shown) -> tuple[object, ...]:
    """Return all that a store must say of a fact."""
    fact = answer.fact
    evidence = [
        (shown(one.frame), one.start, one.end) for body in fact.said for one in body.evidence
    ]
    stored: Any = answer.value[1]
    return (
        shown(fact.id),
        answer.subject,
        fact.stated.predicate,
        answer.value,
        str(time_at(stored[1]) if answer.value[0] == "timestamp" else stored[1]),
        plain_range(answer.valid),
        plain_range(fact.range),
        (fact.recorded, fact.retracted[0] if fact.retracted else None),
        fact.said[-1].confidence,
        fact.said[-1].source,
        tuple(dict.fromkeys(evidence)),
        tuple(dict.fromkeys(text for body in fact.said for text in body.assumptions)),
        fact.depth,
        dict(fact.scope),
        shown(answer.ended_by),
        shown(fact.retracted[1] if fact.retracted else None),
        model.standing(fact),
    )


def plain_link(link: Link) -> tuple[object, ...]:
    """Return all that a store says of a link."""
    ends = link.fact, link.kind, link.target, link.is_frame
    return link.id, *ends, plain_period(link.known), dict(link.scope), link.unlinked_by


def modelled_link(said: tuple[ModelLink, int, int], shown: Shown) -> tuple[object, ...]:
    """Return all that a store must say of a link."""
    link, fact, target = said
    ended = None if link.ended is None else link.ended.recorded
    return (
        shown(link.event.seq),
        shown(fact),
        link.body.kind,
        shown(target),
        link.body.frame is not None,
        (link.event.recorded, ended),
        dict(link.event.scope),
        shown(None if link.ended is None else link.ended.seq),
    )


def modelled_entity(entity: ModelEntity, shown: Shown) -> cerata.EntityInfo:
    return cerata.EntityInfo(
        entity.name,
        entity.kind,
        entity.aliases,
        entity.names,
        shown(entity.first_seen) or 0,
        entity.mentions,
    )


def said(facts: list[Fact]) -> list[str]:
    """What facts say and when: the year that each begins and ends, open ends left out."""
    return [
        f"{plain_object(fact.object)} {fact.valid.start.year if fact.valid.start else ''}"
        f"-{fact.valid.end.year if fact.valid.end else ''}"
        for fact in facts
    ]
