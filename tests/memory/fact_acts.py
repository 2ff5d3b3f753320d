"""Random acts on facts, and every read of them held against the model.

An act is a name and a few small numbers; what these mean depends on what is there, so that every
list of acts is a history that a store accepts. The clock stands still within an act and times are
drawn from the same few seconds, so that starts, ends and recordings are often equal.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, TypeAlias

import msgspec
import pytest
from hypothesis import strategies as st

import cerata
from cerata import Allen, Entity, Fact, Store, View
from cerata.engine.environment import Environment
from cerata.engine.errors import Conflict, InvalidInput, NotFound
from cerata.engine.events import (
    AssertFact,
    Draft,
    Erased,
    LinkFacts,
    MergeEntities,
    RetractFact,
    Scope,
    ScopeValue,
    SplitEntity,
    lifted_by,
)
from cerata.engine.memory import MemoryStorage
from cerata.memory.drafting import full_scope
from cerata.memory.fact_values import FactObject
from cerata.memory.link_values import Link, LinkKindName

from ..projections.fact_model import (
    EVER,
    FactModel,
    ModelAnswer,
    ModelEntity,
    ModelEvent,
    Range,
    Value,
    value_of,
)
from ..projections.link_model import LinkedModel, ModelLink

Act: TypeAlias = tuple[str, int, int, int, int]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
START_US = 1_700_000_000_000_000
STEP_US = 1_000_000

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
NAMES = ("ann", "bob", "Big Blue")
ALIASES = ("ANN", "Bob!", "big  blue", "Änn", "the boss")
PREDICATES = ("lives in", "likes")
OBJECTS: tuple[FactObject, ...] = (
    *(Entity("ann"), Entity("bob"), Entity("Big Blue"), True, False, "ann", 1, 1.0, -0.0, 0),
    *(b"ann", datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC), ""),
)
_PLAIN = tuple(dict[str, ScopeValue]() for _ in range(9))
SCOPES: tuple[dict[str, ScopeValue], ...] = (
    *_PLAIN,
    {"session": "s1"},
    {"session": "s2"},
    {"tenant": "t2"},
    {"trial": True, "session": "s1"},
    {"session": "s1", "trial": True},
    {"trial": 1},
)
VIEWS: tuple[Scope | None, ...] = (
    None,
    (("tenant", "default"),),
    (("tenant", "default"), ("session", "s1")),
    (("tenant", "t2"),),
    (("tenant", "default"), ("trial", 1)),
)

PRELUDE: Sequence[Sequence[Act]] = [
    [("functional", 0, 1, 0, 0)],
    [("functional", 1, 1, 0, 0), ("functional", 0, 1, 0, 4)],
]
"""Both predicates have one value at a time; in the other tenant one has."""


def _begun(count: int, batches: list[list[Act]]) -> list[Sequence[Act]]:
    return [*PRELUDE[:count], *batches]


def batches_of(kinds: Sequence[str]) -> st.SearchStrategy[list[Sequence[Act]]]:
    """Return what draws histories of acts of some kinds."""
    acts: st.SearchStrategy[Act] = st.tuples(
        st.sampled_from(kinds), *[st.integers(0, 59) for _ in range(4)]
    )
    batches = st.lists(st.lists(acts, min_size=1, max_size=3), min_size=8, max_size=20)
    return st.builds(_begun, st.integers(0, len(PRELUDE)), batches)


BATCHES = batches_of(KINDS)


class StandingClock:
    """A clock that goes on when it is told to, and by a microsecond for each thing waited for."""

    def __init__(self) -> None:
        self.time_us = START_US

    def now_us(self) -> int:
        return self.time_us

    def monotonic(self) -> float:
        return self.time_us / 1e6

    def sleep(self, seconds: float) -> None:
        self.time_us += max(1, int(seconds * 1e6))


def environment() -> tuple[Environment, StandingClock]:
    """Return an environment in memory whose clock stands still."""
    clock = StandingClock()
    return Environment(storage=MemoryStorage(), clock=clock), clock


def time_of(number: int) -> datetime:
    """One of a few instants, at most of which something is recorded."""
    return time_at(START_US + number % 5 * STEP_US)


def time_at(time_us: float) -> datetime:
    return EPOCH + timedelta(microseconds=int(time_us))


def start_of(number: int) -> datetime | str | None:
    return (None, None, "open", time_of(number // 7), time_of(number // 7))[number % 5]


def end_of(number: int) -> datetime | str | None:
    if number % 11 == 3:  # It has begun only if nothing was recorded in this microsecond.
        return time_at(START_US + number % 7 * STEP_US // 2 + 1)
    return (None, None, "open", time_of(number // 5))[number % 4]


# --- acts ----------------------------------------------------------------------------------------


def perform(store: Store, act: Act) -> None:
    """Do one act, as far as there is something to do it to; what must be refused is refused."""
    kind, i, j, k, m = act
    scope = SCOPES[m % len(SCOPES)]
    asserted = [event for event in events_of(store.view()) if isinstance(event.body, AssertFact)]
    recent = asserted[-3:] if j % 2 else asserted
    fact = recent[i % len(recent)] if recent else None
    if kind == "assert":
        write(store, i, j, k, m, scope)
    elif kind == "many":
        some = [assertion(i, j + 3 * one, k + one, m + one) for one in range(3)]
        with suppress(InvalidInput):
            store.assert_facts([one for one in some if one], scope=scope)
    elif kind == "moves":
        moves(store, i, j, k, scope)
    elif kind == "frame":
        store.put_frame("Ann lives in Big Blue.", created="2026-03-01")
    elif kind == "link" and fact is not None:
        link(store, fact, asserted[j % len(asserted)], (k, m))
    elif kind == "unlink":
        links = [one for one in events_of(store.view()) if isinstance(one.body, LinkFacts)]
        if links:
            store.unlink(shown_id(store, links[i % len(links)].seq))
    elif kind == "drop":
        drop(store, i, j)
    elif kind == "functional":
        store.declare_predicate(PREDICATES[i % 2], functional=j % 4 != 0, scope=scope)
    elif kind == "entity":
        store.put_entity(
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
        with suppress(NotFound):
            if scope:
                store.append(Draft(split, full_scope(scope, None)))
            else:
                store.split_entity(split.entity, split.into, split.facts)
    elif kind in ("unmerge", "unsplit"):
        made = MergeEntities if kind == "unmerge" else SplitEntity
        those = [one for one in events_of(store.view()) if isinstance(one.body, made)]
        if those:
            end: Callable[[int], object] = getattr(store, kind)
            with suppress(Conflict, NotFound):
                end(shown_id(store, those[i % len(those)].seq))
    elif fact is not None:
        on_fact(store, kind, fact, (j, k, m))


LINK_KINDS: Sequence[LinkKindName] = (
    *("invalidates", "invalidates", "supersedes", "supersedes", "depends_on", "derived_from"),
    *("assumes", "generated_from", "contradicts", "contradicts", "supports", "validated_by"),
)


def link(store: Store, one: ModelEvent, other: ModelEvent, numbers: tuple[int, int]) -> None:
    """Link a fact to another or to a frame, in its scope or in another of its tenant."""
    k, m = numbers
    kind = LINK_KINDS[k % len(LINK_KINDS)]
    frames = [frame.id for frame in store.frames(include_deleted=True, include_superseded=True)]
    fact, target = shown_id(store, one.seq), shown_id(store, other.seq)
    if frames and m % 4 == 0:
        target = frames[m // 4 % len(frames)]
    scope = one.scope if m % 3 else full_scope(None, None)
    with suppress(InvalidInput):
        store.link(fact, kind, target, scope=dict(scope))


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
    store.assert_fact(name, PREDICATES[0], home, scope=scope)
    gone = store.assert_fact(other, PREDICATES[0], away, scope=scope)
    if k % 5 == 0:
        store.append(Draft(RetractFact(fact=gone.id), full_scope(scope, None)))
    store.assert_fact(name, PREDICATES[0], home, scope=scope)


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
        model = FactModel(events_of(store.view()))
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
                assumptions=one.assumptions,
                because=one.because,
                evidence=places,
                scope=scope,
            )


def merge(store: Store, entity: str, into: str, scope: dict[str, ScopeValue]) -> None:
    """Merge two entities where that is allowed; else it is refused."""
    tenant = dict(full_scope(scope, None))["tenant"]
    model = FactModel(events_of(store.view()), (("tenant", tenant),))
    merged = {one.body.entity for one in model.merges}
    is_known = all(model.entity(name) for name in (entity, into))
    is_free = entity not in merged and model.reading(tenant, into) != entity
    if is_known and is_free:
        store.merge_entities(entity, into, scope=scope)
    else:
        with pytest.raises(Conflict if is_known else NotFound):
            store.merge_entities(entity, into, scope=scope)


def shown_id(store: Store, seq: int) -> int:
    """Return how a store names an event: of an open transaction by −1, −2, …."""
    basis = store.view().basis
    return seq if seq <= basis else basis - seq


@dataclass
class History:
    """What acts made: the environment that the store lives in, and its clock."""

    environment: Environment
    clock: StandingClock
    path: str = "facts.cera"

    def open(self) -> Store:
        return cerata.open(self.path, environment=self.environment)


def run(batches: Sequence[Sequence[Act]], within: Callable[[Store], None]) -> History:
    """Write a history: a batch of one act is a call, of several a transaction.

    ``within`` is called in each transaction, after each of its acts.
    """
    history = History(*environment())
    with history.open() as store:
        for acts in batches:
            history.clock.time_us += STEP_US // 2
            if len(acts) == 1:
                _perform_alone(store, acts[0], history)
                continue
            with store.transaction():
                for act in acts:
                    perform(store, act)
                    within(store)
    return history


def _perform_alone(store: Store, act: Act, history: History) -> None:
    if act[0] == "wait":
        history.clock.time_us += act[1] % 4 * STEP_US // 2
    elif act[0] == "checkpoint":
        store.checkpoint()
    else:
        perform(store, act)


# --- what a view says, and what the model says of it ---------------------------------------------


def events_of(view: View) -> list[ModelEvent]:
    """Return a view's events; those of an open transaction as the next ones of the log."""
    found = list[ModelEvent]()
    for event in view.within(None).log():
        seq, cause, body = event.seq, event.causation, event.body
        assert not isinstance(body, Erased)
        if seq < 0:
            seq, body = view.basis - seq, lifted_by(body, view.basis)
            cause = view.basis - cause if cause is not None and cause < 0 else cause
        found.append(ModelEvent(seq, event.recorded, event.scope, cause, body))
    return found


Shown = Callable[[int | None], int | None]


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


# --- questions -----------------------------------------------------------------------------------

Question: TypeAlias = tuple[str, tuple[Any, ...], dict[str, Any]]
"""A read, and its arguments; times are microseconds, and ranges as the model has them."""


def times_in(events: Sequence[ModelEvent]) -> list[int]:
    """Return the instants that events name or were recorded at, and those next to them."""
    times = {event.recorded for event in events}
    for event in events:
        if isinstance(event.body, AssertFact):
            ends = (event.body.valid_from, event.body.valid_to)
            times |= {time for time in ends if time is not None and abs(time) < 1 << 60}
    return sorted({time + near for time in times for near in (-1, 0, 1)})


_EVERYTHING: Sequence[Question] = [
    ("facts", (), {"include_retracted": True, "include_invalid": True}),
    ("conflicts", (), {}),
    ("links", (None, None), {"include_unlinked": True}),
    ("entities", (), {}),
]


def questions(view: View) -> list[Question]:
    """Return every question of every shape about what a view's events name."""
    return list(_questions(events_of(view)))


def _questions(events: Sequence[ModelEvent]) -> Iterator[Question]:
    names = (*NAMES, "carl", "nobody")
    for call in ("fact_history", "conflicts"):
        yield from ((call, (name, *rest), {}) for name in names for rest in ((), PREDICATES[:1]))
    yield "conflicts", (), {}
    yield "conflicts", (None, PREDICATES[1]), {}
    yield "entities", (), {}
    yield from (("entities", (kind,), {}) for kind in ("person", "company"))
    for name in (*names, *ALIASES, "dora"):
        yield "resolve", (name,), {}
        yield "entity", (name,), {}
    yield from (("fact", (event.seq,), {}) for event in events)
    yield "fact", (len(events) + 1,), {}
    for event in events:
        yield "links", (event.seq, None), {}
        yield "links", (event.seq, "supersedes"), {"include_unlinked": True}
    bound = [
        (subject, predicate, object_)
        for subject in (None, *names)
        for predicate in (None, *PREDICATES)
        for object_ in (None, *OBJECTS)
    ]
    for retracted in ({}, {"include_retracted": True}, {"include_invalid": True}):
        yield from (("facts", given, retracted) for given in bound)
        few = [(), ("ann",), (None, "lives in"), ("bob", "lives in"), (None, None, OBJECTS[1])]
        times = times_in(events)
        periods = [(a, b) for a in (-EVER, *times[1::3]) for b in (*times[1::3], EVER) if a < b]
        for given in few:
            for time in times:
                yield "facts", given, {"valid_at": time, **retracted}
            for period in periods:
                yield "facts", given, {"overlapping": period, **retracted}
                for name in Allen:
                    yield "facts", given, {"allen": (str(name), period), **retracted}
        for time in times[1::3]:
            yield "facts", (), {"valid_at": time, "overlapping": (time, time + STEP_US)}


def _as_period(one: Range) -> tuple[datetime | str | None, datetime | str | None]:
    start = "open" if one[0] == -EVER else time_at(one[0])
    return start, None if one[1] == EVER else time_at(one[1])


def answer_of(view: View, question: Question) -> object:
    """Return what a view says to a question, as plain values."""
    name, given, how = question
    told = dict(how)
    if "valid_at" in told:
        told["valid_at"] = time_at(told["valid_at"])
    if "overlapping" in told:
        told["overlapping"] = _as_period(told["overlapping"])
    if "allen" in told:
        told["allen"] = (told["allen"][0], _as_period(told["allen"][1]))
    end = view.basis + len(view.gathered)
    if name in ("fact", "links") and given[0] is not None and view.basis < given[0] <= end:
        given = (view.basis - given[0], *given[1:])
    try:
        said = getattr(view, name)(*given, **told)
    except NotFound:
        return "NotFound"
    if name == "conflicts":
        return [
            (plain_fact(one.first), plain_fact(one.second), plain_period(one.period), one.link)
            for one in said
        ]
    if name == "links":
        return [plain_link(one) for one in said]
    if name in ("facts", "fact_history"):
        return [plain_fact(one) for one in said]
    if name == "fact":
        return plain_fact(said)
    return list(said) if name == "entities" else said


def model_answer(model: LinkedModel, question: Question, shown: Shown) -> object:
    """Return what the model says to a question, as plain values."""
    name, given, how = question
    if name in ("fact", "entity"):
        found: Any = getattr(model, name)(*given)
        if found is None:
            return "NotFound"
        return (
            modelled_fact(model, found, shown) if name == "fact" else modelled_entity(found, shown)
        )
    if name == "links":
        links = model.links(*given, include_unlinked=how.get("include_unlinked", False))
        return "NotFound" if links is None else [modelled_link(one, shown) for one in links]
    if name == "resolve":
        return model.resolve(*given)
    if name == "entities":
        return [modelled_entity(one, shown) for one in model.entities(*given)]
    if name == "conflicts":
        return [
            (
                modelled_fact(model, one, shown),
                modelled_fact(model, other, shown),
                plain_range(shared),
                shown(link),
            )
            for one, other, shared, link in model.conflicts(*given)
        ]
    if name == "fact_history":
        every = model.facts(*given, include_retracted=True, include_invalid=True)
        return [modelled_fact(model, one, shown) for one in every]
    subject, predicate, object_ = (*given, None, None, None)[:3]
    value = None if object_ is None else value_in(object_)
    told = {"relation" if key == "allen" else key: given for key, given in how.items()}
    return [
        modelled_fact(model, one, shown) for one in model.facts(subject, predicate, value, **told)
    ]


def drawn(view: View, count: int, seed: int) -> list[Question]:
    """Return the questions that ask for everything, and some by chance of any shape."""
    dice, events = Random(seed), events_of(view)
    times = times_in(events) or [START_US]
    return [*_EVERYTHING, *(_drawn(dice, times, len(events)) for _ in range(count))]


_OTHERS = ("fact", "fact_history", "conflicts", "entity", "resolve", "links")


def _drawn(dice: Random, times: Sequence[int], end: int) -> Question:
    name = dice.choice((*NAMES, *NAMES, "carl", "dora", "nobody"))
    bound = name if dice.random() < 0.4 else None
    predicate = dice.choice((None, *PREDICATES))
    call = dice.choice(("facts",) * 9 + _OTHERS)
    if call == "fact":
        return call, (dice.randrange(end + 2),), {}
    if call == "links":
        return call, (dice.randrange(end + 2), dice.choice((None, *LINK_KINDS))), {}
    if call in ("fact_history", "conflicts"):
        return call, (name if call == "fact_history" else bound, predicate), {}
    if call in ("entity", "resolve"):
        return call, (dice.choice((name, *ALIASES)),), {}
    how: dict[str, Any] = {"include_retracted": True} if dice.random() < 0.3 else {}
    how |= {"include_invalid": True} if dice.random() < 0.3 else {}
    start, stop = sorted(dice.choices([-EVER, *times[1::3], *times[1::3], EVER], k=2))
    if dice.random() < 0.4:
        how["valid_at"] = dice.choice(times)
    if start < stop:
        if dice.random() < 0.3:
            how["overlapping"] = start, stop
        if dice.random() < 0.4:
            how["allen"] = str(dice.choice(list(Allen))), (start, stop)
    return call, (bound, predicate, dice.choice((None, None, *OBJECTS))), how


def ask(view: View, asked: Sequence[Question]) -> int:
    """Hold a view against the model of its events by some questions; return how many."""
    model = LinkedModel(events_of(view), view.scope)

    def shown(seq: int | None) -> int | None:
        return seq if seq is None or seq <= view.basis else view.basis - seq

    for question in asked:
        said, expected = answer_of(view, question), model_answer(model, question, shown)
        assert said == expected, f"{question} at {view.basis} in {view.scope}"
    return len(asked)
