"""Blame: for each field of a frame, fact, entity or link, the event that gave it its value.

Owns the comparison of the states of a thing. A new version of a frame carries fields over, and so
does a correction of a fact, so the last event of a thing seldom set all of its fields. Leaves out
all events of a thing (`history`) and the choice of an entity's events
(`cerata.projections.facts.entities`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from cerata.engine.errors import NotFound
from cerata.engine.events import AssertFact, Event, JsonValue, RetractFact
from cerata.engine.plain_value import PlainValue, plain
from cerata.engine.unreadable import event_place, frame_place, readable

from ..links.reads import link_named
from ..snapshot.fact_conversion import id_of_seq
from ..snapshot.snapshot import Snapshot
from ..values.acts import Act, act_of
from ..values.facts import Fact
from ..values.frames import Frame
from .things import Thing, ThingKind, batch_of, entity_events

_FRAME_FIELDS: Final = (
    *("text", "kind", "role", "uri", "title", "track", "tags", "labels"),
    *("created", "content_dates", "expires", "parent", "search_text"),
)
_FACT_FIELDS: Final = (
    *("subject", "predicate", "object", "stated", "confidence", "source", "evidence"),
    "assumptions",
)
_METADATA: Final = "metadata."
_EMPTY: Final[tuple[JsonValue, ...]] = (None, "", [], {})

_Values: TypeAlias = Mapping[str, JsonValue]


class _State(NamedTuple):
    """The fields of a thing after an event, by its id."""

    event: int
    values: _Values


@dataclass(frozen=True, slots=True)
class FieldBlame(PlainValue):
    """The event that gave a field its value, as of a view.

    - ``value`` is the plain form of the value, as in `to_dict` of the thing.
    - ``act`` is the event, with its actor and reason; None if the scope hides the event.
    - ``batch`` are the first and the last seq of its batch up to the view's basis; None for a draft
      or a hidden event.
    """

    field: str
    value: JsonValue
    act: Act | None
    batch: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class Blame(PlainValue):
    """The events that set the fields of a frame, fact, entity or link.

    - ``id`` is the id of the thing, or the name of the entity.
    - ``fields`` has each field with a value, in the order of the thing's fields. An entity has a
      field ``aliases.NAME`` for each alias, and ``names.NAME`` for each entity merged into it.
    - ``ended`` is the event that closed the frame, retracted the fact or removed the link; None if
      there is none, or if the scope hides it.
    """

    id: int | str
    kind: ThingKind
    fields: tuple[FieldBlame, ...]
    ended: Act | None


def blame_of(snapshot: Snapshot, thing: Thing) -> Blame:
    """Return the events that set the fields of a thing.

    Cost: a read of each version of the frame, of each assertion of the fact, or of each event that
    set a field.
    """
    kind, number = thing.kind, thing.number
    if kind == "fact":
        fact = snapshot.fact_at(number)
        states = _states_of_fact(snapshot, fact)
        ended = None if fact.retracted_by is None else snapshot.act(fact.retracted_by)
        return Blame(fact.id, kind, tuple(_fields(snapshot, states)), ended)
    if kind == "entity":
        return _blame_of_entity(snapshot, thing.name)
    if kind == "link":
        return _blame_of_link(snapshot, number)
    frame = snapshot.frame_at(number)
    *earlier, _ = _line_of(snapshot, number)
    versions = readable(earlier, lambda each: (each, snapshot.frame_at(each)), frame_place)
    states = [
        _State(each, _frame_values(version)) for each, version in (*versions, (number, frame))
    ]
    return Blame(number, kind, tuple(_fields(snapshot, states)), frame.closed)


def _blame_of_entity(snapshot: Snapshot, name: str) -> Blame:
    events = entity_events(snapshot, name)
    fields = [
        _field(snapshot, origin.field, origin.value, id_of_seq(origin.seq, snapshot.basis))
        for origin in events.origins()
    ]
    return Blame(str(fields[0].value), "entity", tuple(fields), None)


def _blame_of_link(snapshot: Snapshot, number: int) -> Blame:
    row = link_named(snapshot, number)
    links, basis = snapshot.labelling.links, snapshot.basis
    created = id_of_seq(row.seq, basis)
    ends = "target_frame" if row.is_frame else "target_fact"
    values: dict[str, JsonValue] = {
        "fact": id_of_seq(row.fact, basis),
        "kind": row.kind.name.lower(),
        ends: id_of_seq(row.target, basis),
    }
    fields = [_field(snapshot, name, value, created) for name, value in values.items()]
    closing = links.closing_of(row.row)
    ended = None if closing is None else snapshot.act(id_of_seq(closing[1], basis))
    return Blame(created, "link", tuple(fields), ended)


def _fields(snapshot: Snapshot, states: Sequence[_State]) -> Iterator[FieldBlame]:
    """Yield the fields of the last state, each with the event since which it has its value."""
    for name, value in states[-1].values.items():
        if value in _EMPTY and all(state.values.get(name) in _EMPTY for state in states):
            continue
        place = len(states) - 1
        while place and states[place - 1].values.get(name) == value:
            place -= 1
        yield _field(snapshot, name, value, states[place].event)


def _field(snapshot: Snapshot, name: str, value: JsonValue, number: int) -> FieldBlame:
    event = _event(snapshot, number)
    if event is None:
        return FieldBlame(name, value, None, None)
    return FieldBlame(name, value, act_of(event), batch_of(snapshot, event))


def _event(snapshot: Snapshot, number: int) -> Event | None:
    """Return an event, or None if the scope hides it, or if it cannot be read and is named."""
    return next(readable([number], snapshot.event_of, event_place), None)


def _line_of(snapshot: Snapshot, frame: int) -> list[int]:
    """Return the versions that lead to a frame, oldest first; of several, the newest."""
    line = [frame]
    while earlier := snapshot.visible(snapshot.layers.supersedes_of(line[-1])):
        newest = max(earlier, key=snapshot.layers.moment)
        if newest in line:
            break
        line.append(newest)
    return line[::-1]


def _frame_values(frame: Frame) -> _Values:
    values = {name: plain(getattr(frame, name)) for name in _FRAME_FIELDS}
    return {**values, **{f"{_METADATA}{name}": value for name, value in frame.metadata.items()}}


def _states_of_fact(snapshot: Snapshot, fact: Fact) -> list[_State]:
    """Return the states of a fact and of the facts that it corrects, oldest first."""
    line = [fact]
    while (earlier := corrected_fact(snapshot, line[-1])) is not None:
        line.append(earlier)
    states: list[_State] = []
    for each in reversed(line):
        last = each.to_dict()
        values = {name: last[name] for name in _FACT_FIELDS}
        cited = set[int]()
        for number in assertions(snapshot, each):
            event = _event(snapshot, number)
            body = None if event is None else event.body
            if isinstance(body, AssertFact):
                cited.update(snapshot.seq_of(place.frame) for place in body.evidence)
                values = {**values, "confidence": body.confidence, "source": body.source}
            places = [place for place in each.evidence if snapshot.seq_of(place.frame) in cited]
            states.append(_State(number, {**values, "evidence": plain(places)}))
    return states


def assertions(snapshot: Snapshot, fact: Fact) -> list[int]:
    """Return the ids of a fact's assertion and its repeats, in order."""
    row = snapshot.facts_at.row_of(snapshot.seq_of(fact.id))
    assert row is not None
    seqs = snapshot.facts_at.ids_of([row])
    return [id_of_seq(seq, snapshot.basis) for seq in sorted(seqs)]


def corrected_fact(snapshot: Snapshot, fact: Fact) -> Fact | None:
    """Return the fact that a fact corrects, or None."""
    cause = snapshot.cause_of(fact.id)
    event = None if cause is None else _event(snapshot, cause)
    body = None if event is None else event.body
    if not isinstance(body, RetractFact):
        return None
    try:
        return snapshot.fact_at(body.fact)
    except NotFound:
        return None
