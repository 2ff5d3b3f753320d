"""Blame: for each field of a frame or a fact, the event that gave it its present value.

Owns the comparison of the states of a thing. A new version of a frame carries fields over, and so
does a correction of a fact, so the last event of a thing seldom set all of its fields. Leaves out
the versions (`reads`) and the events that end a thing (`Frame.closed`, `Fact.retracted_by`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, TypeAlias

from cerata.engine.errors import NotFound
from cerata.engine.events import AssertFact, JsonValue, RetractFact
from cerata.engine.plain_value import PlainValue, plain

from ..snapshot.fact_conversion import id_of_seq
from ..snapshot.snapshot import Snapshot
from ..values.acts import Act, act_of
from ..values.facts import Fact
from ..values.frames import Frame

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
    """The events that set the fields of a frame or fact.

    - ``fields`` has each field with a value, in the order of the thing's fields.
    - ``ended`` is the event that closed the frame or retracted the fact; None if there is none, or
      if the scope hides it.
    """

    id: int
    kind: Literal["frame", "fact"]
    fields: tuple[FieldBlame, ...]
    ended: Act | None


def blame_of(snapshot: Snapshot, number: int) -> Blame:
    """Return the events that set the fields of a frame or fact.

    Cost: a read of each version of the frame, or of each assertion of the fact.

    Raises:
        NotFound: no frame or fact with this id exists at the basis within the scope.
    """
    if snapshot.facts_at.row_of(snapshot.seq_of(number)) is not None:
        fact = snapshot.fact_at(number)
        states = _states_of_fact(snapshot, fact)
        ended = None if fact.retracted_by is None else snapshot.act(fact.retracted_by)
        return Blame(fact.id, "fact", tuple(_fields(snapshot, states)), ended)
    if not (snapshot.layers.has(number) and snapshot.visible([number])):
        raise NotFound(
            f"There is no frame or fact {number:,}",
            where=f"basis {snapshot.basis:,}",
            remedy="Find ids with frames, facts or log.",
        )
    frame = snapshot.frame_at(number)
    states = [
        _State(version, _frame_values(snapshot.frame_at(version)))
        for version in _line_of(snapshot, number)
    ]
    return Blame(number, "frame", tuple(_fields(snapshot, states)), frame.closed)


def _fields(snapshot: Snapshot, states: Sequence[_State]) -> Iterator[FieldBlame]:
    """Yield the fields of the last state, each with the event since which it has its value."""
    for name, value in states[-1].values.items():
        if value in _EMPTY and all(state.values.get(name) in _EMPTY for state in states):
            continue
        place = len(states) - 1
        while place and states[place - 1].values.get(name) == value:
            place -= 1
        event = snapshot.event_of(states[place].event)
        if event is None:
            yield FieldBlame(name, value, None, None)
            continue
        header = event.header
        # The rest of a batch is after the view.
        last = min(header.last_seq, snapshot.basis)
        batch = (header.first_seq, last) if event.seq > 0 else None
        yield FieldBlame(name, value, act_of(event), batch)


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
    while (earlier := _corrected(snapshot, line[-1])) is not None:
        line.append(earlier)
    states: list[_State] = []
    for each in reversed(line):
        last = each.to_dict()
        values = {name: last[name] for name in _FACT_FIELDS}
        cited = set[int]()
        for number in _assertions(snapshot, each):
            event = snapshot.event_of(number)
            body = None if event is None else event.body
            if isinstance(body, AssertFact):
                cited.update(snapshot.seq_of(place.frame) for place in body.evidence)
                values = {**values, "confidence": body.confidence, "source": body.source}
            places = [place for place in each.evidence if snapshot.seq_of(place.frame) in cited]
            states.append(_State(number, {**values, "evidence": plain(places)}))
    return states


def _assertions(snapshot: Snapshot, fact: Fact) -> list[int]:
    """Return the ids of a fact's assertion and its repeats, in order."""
    row = snapshot.facts_at.row_of(snapshot.seq_of(fact.id))
    assert row is not None
    seqs = snapshot.facts_at.ids_of([row])
    return [id_of_seq(seq, snapshot.basis) for seq in sorted(seqs)]


def _corrected(snapshot: Snapshot, fact: Fact) -> Fact | None:
    """Return the fact that a fact corrects, or None."""
    cause = snapshot.cause_of(fact.id)
    event = None if cause is None else snapshot.event_of(cause)
    body = None if event is None else event.body
    if not isinstance(body, RetractFact):
        return None
    try:
        return snapshot.fact_at(body.fact)
    except NotFound:
        return None
