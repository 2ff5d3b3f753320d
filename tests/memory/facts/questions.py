"""Questions to facts of every shape, asked of a view and of the model."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from operator import attrgetter
from random import Random
from typing import Any, TypeAlias

from cerata import Allen, View
from cerata.engine.errors import InvalidInput, NotFound
from cerata.engine.events import AssertFact
from cerata.memory.snapshot.reader import snapshot_of

from ...projections.facts.fact_model import EVER, ModelEvent, Range
from ...projections.links.link_model import LinkedModel
from .answers import (
    Shown,
    modelled_entity,
    modelled_fact,
    modelled_link,
    plain_fact,
    plain_link,
    plain_period,
    plain_range,
    plain_time,
    value_in,
)
from .world import (
    ALIASES,
    LINK_KINDS,
    NAMES,
    OBJECTS,
    PREDICATES,
    START_US,
    STEP_US,
    events_of,
    time_at,
)

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


_CALLS = {
    "fact_history": "graph.versions",
    **{name: f"graph.{name}" for name in ("conflicts", "entities", "entity", "fact", "links")},
    "resolve": "graph.resolve",
}
"""The calls of a view that have another name than the question."""

_EVERYTHING: Sequence[Question] = [
    ("facts", (), {"include_ended": True, "include_retracted": True, "include_invalid": True}),
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
    for retracted in (
        {},
        {"include_ended": True},
        {"include_ended": True, "include_retracted": True},
        {"include_invalid": True},
    ):
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
    end = view.basis + len(snapshot_of(view).unsalted_drafts)
    if name in ("fact", "links") and given[0] is not None and view.basis < given[0] <= end:
        given = (view.basis - given[0], *given[1:])
    try:
        said = attrgetter(_CALLS.get(name, name))(view)(*given, **told)
    except (NotFound, InvalidInput) as error:
        return type(error).__name__
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
        try:
            found: Any = getattr(model, name)(*given)
        except InvalidInput as error:
            return type(error).__name__
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
        every = model.facts(
            *given, include_ended=True, include_retracted=True, include_invalid=True
        )
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
    how |= {"include_ended": True} if dice.random() < 0.6 else {}
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
    model = LinkedModel(events_of(view), view.scope, present=plain_time(view.now) or 0)

    def shown(seq: int | None) -> int | None:
        return seq if seq is None or seq <= view.basis else view.basis - seq

    for question in asked:
        said, expected = answer_of(view, question), model_answer(model, question, shown)
        assert said == expected, f"{question} at {view.basis} in {view.scope}"
    return len(asked)
