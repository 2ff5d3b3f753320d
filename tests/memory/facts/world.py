"""What random facts are made of: a few names, times and scopes, and a clock that stands still."""

from datetime import UTC, datetime, timedelta

import msgspec

from cerata import Entity, View
from cerata.engine.disk.environment import Environment
from cerata.engine.disk.memory_storage import MemoryStorage
from cerata.engine.events import Erased, Scope, ScopeValue, lifted_by
from cerata.memory.snapshot.reader import snapshot_of
from cerata.memory.values.facts import FactObject
from cerata.memory.values.graph import LinkKindName

from ...clocks import StandingClock
from ...projections.facts.fact_model import ModelEvent

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
START_US = 1_700_000_000_000_000
STEP_US = 1_000_000
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

LINK_KINDS: tuple[LinkKindName, ...] = (
    *("invalidates", "invalidates", "supersedes", "supersedes", "depends_on", "derived_from"),
    *("assumes", "generated_from", "contradicts", "contradicts", "supports", "validated_by"),
)


def environment() -> tuple[Environment, StandingClock]:
    """Return an environment in memory whose clock stands still."""
    clock = StandingClock(START_US)
    return Environment(storage=MemoryStorage(), clock=clock), clock


def time_of(number: int) -> datetime:
    """One of a few instants, at most of which something is recorded."""
    return time_at(START_US + number % 5 * STEP_US)


def time_at(time_us: float) -> datetime:
    return EPOCH + timedelta(microseconds=int(time_us))


def events_of(view: View) -> list[ModelEvent]:
    """Return a view's events; those of an open transaction as the next ones of the log."""
    found = list[ModelEvent]()
    # Of every scope: an end that was written in another one ends for this view, too.
    for event in View(msgspec.structs.replace(snapshot_of(view), reach=None, _base=None)).log():
        seq, cause, body = event.seq, event.causation, event.body
        assert not isinstance(body, Erased)
        assert event.scope is not None
        if seq < 0:
            seq, body = view.basis - seq, lifted_by(body, view.basis)
            cause = view.basis - cause if cause is not None and cause < 0 else cause
        found.append(ModelEvent(seq, event.recorded, event.scope, cause, body))
    return found
