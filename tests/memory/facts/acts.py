"""Random acts on facts, links and entities.

An act is a name and a few small numbers; what these mean depends on what is there, so that every
list of acts is a history that a store accepts.
"""

from collections.abc import Callable
from contextlib import nullcontext, suppress
from datetime import datetime
from typing import Any, TypeAlias

import msgspec
import pytest

import cerata
from cerata import Store
from cerata.engine.errors import Conflict, InvalidInput, NotFound
from cerata.engine.events import (
    AssertFact,
    Draft,
    LinkFacts,
    MergeEntities,
    RetractFact,
    ScopeValue,
    SplitEntity,
)
from cerata.memory.values.arguments import full_scope

from ...projections.facts.fact_model import FactModel, ModelEvent
from .world import (
    ALIASES,
    LINK_KINDS,
    NAMES,
    OBJECTS,
    PREDICATES,
    SCOPES,
    START_US,
    STEP_US,
    events_of,
    time_at,
    time_of,
)

Act: TypeAlias = tuple[str, int, int, int, int]

KINDS = (
    *("assert",) * 8,
    *("many",) * 4,
    *("moves",) * 3,
    *("again",) * 3,
    *("retract",) * 2,
    *(
        "correct",
        "correct",
        "because",
        "because",
        "entity",
        "frame",
        "drop",
        "wait",
        "checkpoint",
        "functional",
    ),
    *("merge", "merge", "unmerge", "split", "split", "unsplit"),
)
LINKED_KINDS = (*KINDS, *("link",) * 40, *("unlink",) * 4)
"""The same, with many links."""


def start_of(number: int) -> datetime | str | None:
    return (None, None, "open", time_of(number // 7), time_of(number // 7))[number % 5]


def end_of(number: int) -> datetime | str | None:
    if number % 11 == 3:  # It has begun only if nothing was recorded in this microsecond.
        return time_at(START_US + number % 7 * STEP_US // 2 + 1)
    return (None, None, "open", time_of(number // 5))[number % 4]


def perform(store: Store, act: Act) -> None:
    """Do one act, as far as there is something to do it to; what must be refused is refused."""
    kind, i, j, k, m = act
    scope = SCOPES[m % len(SCOPES)]
    asserted = [
        event for event in events_of(store.history.view()) if isinstance(event.body, AssertFact)
    ]
    recent = asserted[-3:] if j % 2 else asserted
    fact = recent[i % len(recent)] if recent else None
    if kind == "assert":
        write(store, i, j, k, m, scope)
    elif kind == "many":
        some = [assertion(i, j + 3 * one, k + one, m + one) for one in range(3)]
        with suppress(InvalidInput):
            store.graph.assert_many([one for one in some if one], scope=scope)
    elif kind == "moves":
        moves(store, i, j, k, scope)
    elif kind == "frame":
        store.put_frame("Ann lives in Big Blue.", options=cerata.PutOptions(created="2026-03-01"))
    elif kind == "link" and fact is not None:
        link(store, fact, asserted[j % len(asserted)], (k, m))
    elif kind == "unlink":
        links = [one for one in events_of(store.history.view()) if isinstance(one.body, LinkFacts)]
        if links:
            store.graph.unlink(shown_id(store, links[i % len(links)].seq))
    elif kind == "drop":
        drop(store, i, j)
    elif kind == "functional":
        store.graph.declare(PREDICATES[i % 2], functional=j % 4 != 0, scope=scope)
    elif kind == "entity":
        store.graph.name(
            NAMES[i % 3] if j % 4 else "carl",
            kind=(None, "person", "company")[j % 3],
            aliases=ALIASES[k % 4 : k % 4 + m % 3],
            scope=scope,
        )
    elif kind == "merge":
        merge(store, NAMES[i % 3], NAMES[j % 3], scope)
    elif kind == "split" and fact is not None:
        facts = {shown_id(store, one.seq) for one in (fact, asserted[j % len(asserted)])}
        split = SplitEntity(
            entity=NAMES[k % 3], into=("carl", *NAMES)[m // 5 % 4], facts=tuple(sorted(facts))
        )
        with suppress(InvalidInput, NotFound):
            if scope:
                store.append(Draft(split, full_scope(scope, None)))
            else:
                store.graph.split(split.entity, split.into, split.facts)
    elif kind in ("unmerge", "unsplit"):
        made = MergeEntities if kind == "unmerge" else SplitEntity
        those = [one for one in events_of(store.history.view()) if isinstance(one.body, made)]
        if those:
            end: Callable[[int], object] = getattr(store.graph, kind)
            with suppress(Conflict, NotFound):
                end(shown_id(store, those[i % len(those)].seq))
    elif fact is not None:
        on_fact(store, kind, fact, (j, k, m))


def link(store: Store, one: ModelEvent, other: ModelEvent, numbers: tuple[int, int]) -> None:
    """Link a fact to another or to a frame, in its scope or in another of its tenant."""
    k, m = numbers
    kind = LINK_KINDS[k % len(LINK_KINDS)]
    frames = [
        frame.id
        for frame in store.frames(
            where=cerata.Filter(include_deleted=True, include_superseded=True)
        )
    ]
    fact, target = shown_id(store, one.seq), shown_id(store, other.seq)
    if frames and m % 4 == 0:
        target = frames[m // 4 % len(frames)]
    scope = one.scope if m % 3 else full_scope(None, None)
    with suppress(InvalidInput):
        store.graph.link(fact, kind, target, scope=dict(scope))


def drop(store: Store, i: int, j: int) -> None:
    """Delete a frame, or put another in its place."""
    frames = [frame.id for frame in store.frames()]
    if frames and j % 2:
        store.delete(frames[i % len(frames)])
    elif frames:
        store.supersede(frames[i % len(frames)], "Bob lives in Big Blue.")


def moves(store: Store, i: int, j: int, k: int, scope: dict[str, ScopeValue]) -> None:
    """Somebody moves away and back, under some of the names, and perhaps was never away."""
    name, other = NAMES[i % 3], NAMES[(i if k % 2 else i // 3) % 3]
    home, away = OBJECTS[j % 5], OBJECTS[(j + 1) % 5]
    store.assert_fact(name, PREDICATES[0], home, options=cerata.FactOptions(scope=scope))
    gone = store.assert_fact(other, PREDICATES[0], away, options=cerata.FactOptions(scope=scope))
    if k % 5 == 0:
        store.append(Draft(RetractFact(fact=gone.id), full_scope(scope, None)))
    store.assert_fact(name, PREDICATES[0], home, options=cerata.FactOptions(scope=scope))


def on_fact(store: Store, kind: str, event: ModelEvent, numbers: tuple[int, int, int]) -> None:
    """Do an act on the fact that an event asserts."""
    j, k, m = numbers
    number = shown_id(store, event.seq)
    is_default = dict(event.scope)["tenant"] == "default"
    if kind == "again":
        assert isinstance(event.body, AssertFact)
        again = msgspec.structs.replace(
            event.body,
            confidence=(event.body.confidence, 0.125, 0.75)[j % 3],
            source=("observed", "hypothesis")[k % 2],
            assumptions=("weekdays", "sober")[: m % 3],
        )
        store.append(Draft(again, event.scope))
    elif kind == "because" and is_default:
        write(store, j, k, m, m, {}, because=number)
    elif kind == "retract":
        model = FactModel(events_of(store.history.view()))
        answer = model.fact(event.seq)
        assert answer is not None
        is_closed = answer.fact.retracted is not None
        with pytest.raises(Conflict) if is_closed else nullcontext():
            if is_default and k % 2:
                store.retract_fact(number)
            else:
                store.append(Draft(RetractFact(fact=number), event.scope))
    elif kind == "correct" and is_default:
        with suppress(Conflict, InvalidInput):
            store.correct_fact(
                number,
                object=OBJECTS[j % len(OBJECTS)] if j % 3 else None,
                valid_from=start_of(k),
                valid_to=end_of(m),
                confidence=0.25 if m % 2 else None,
            )


def assertion(
    i: int, j: int, k: int, m: int, because: int | None = None
) -> cerata.Assertion | None:
    """Return a fact of small alphabets, or none where its range would be inverted."""
    start, end = start_of(k), end_of(j + m)
    if isinstance(start, datetime) and isinstance(end, datetime) and end <= start:
        return None
    return cerata.Assertion(
        NAMES[i // 2 % 3 if i % 4 else 0] if i % 11 else "dora",
        PREDICATES[i % 4 // 3],
        OBJECTS[j % len(OBJECTS) if j % 3 == 0 else j // 3 % 5],
        start,
        end,
        confidence=(1.0, 0.5)[k % 2],
        source=("observed", "inferred")[m % 2],
        assumptions=("weekdays",) if j % 5 == 0 else (),
        because=because,
    )


def write(
    store: Store,
    i: int,
    j: int,
    k: int,
    m: int,
    scope: dict[str, ScopeValue],
    because: int | None = None,
) -> None:
    """Assert one fact, with some frame as evidence now and then; one that has ended is refused."""
    one = assertion(i, j, k, m, because)
    frames = [frame.id for frame in store.frames()]
    places: list[Any] = [(frames[0], 0, 3), frames[-1]][: j % 3] if frames and not scope else []
    if one is not None:
        with suppress(InvalidInput):
            store.assert_fact(
                one.subject,
                one.predicate,
                one.object,
                valid_from=one.valid_from,
                valid_to=one.valid_to,
                confidence=one.confidence,
                source=one.source,
                evidence=places,
                options=cerata.FactOptions(
                    assumptions=one.assumptions, because=one.because, scope=scope
                ),
            )


def meant(model: FactModel, name: str) -> str:
    """Return the entity that a write means by a name. `InvalidInput` if there are several."""
    entity = model.entity(name)
    return name if entity is None or name in entity.names else entity.name


def merge(store: Store, entity: str, into: str, scope: dict[str, ScopeValue]) -> None:
    """Merge two entities where that is allowed; again, it adds nothing; else it is refused."""
    tenant = dict(full_scope(scope, None))["tenant"]
    model = FactModel(events_of(store.history.view()), (("tenant", tenant),))
    try:
        meant_entity, meant_into = meant(model, entity), meant(model, into)
    except InvalidInput:
        with pytest.raises((InvalidInput, NotFound)):
            store.graph.merge(entity, into, scope=scope)
        return
    merged = {one.body.entity for one in model.merges}
    is_known = all(model.entity(name) for name in (entity, into))
    is_free = meant_entity not in merged and model.reading(tenant, meant_into) != meant_entity
    body = MergeEntities(entity=meant_entity, into=meant_into)
    stamped = full_scope(scope, None)
    same = [one.seq for one in model.merges if (one.body, one.scope) == (body, stamped)]
    if is_known and same:
        again = store.graph.merge(entity, into, scope=scope)
        assert (again.id, again.added) == (shown_id(store, same[0]), False)
    elif is_known and is_free:
        assert store.graph.merge(entity, into, scope=scope).added
    else:
        with pytest.raises(Conflict if is_known else NotFound):
            store.graph.merge(entity, into, scope=scope)


def shown_id(store: Store, seq: int) -> int:
    """Return how a store names an event: of an open transaction by −1, −2, …."""
    basis = store.history.view().basis
    return seq if seq <= basis else basis - seq
