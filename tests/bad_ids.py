"""A memory for tests of bad ids, odd values in place of an id, and the checks of a write.

Owns the checks that all writes share: a receipt names the events of its write, and a write changes
only frames of its own. Leaves out the tables of writes.
"""

from collections.abc import Callable, Mapping
from datetime import timedelta
from random import Random
from typing import Any, Final, NamedTuple

import cerata
from cerata import Receipt, Store
from cerata.engine.disk.environment import Environment
from cerata.engine.disk.memory_storage import MemoryStorage
from cerata.engine.events import DeleteFrame, Event, PutFrame, SupersedeFrame
from cerata.memory.values.owners import table

from .clocks import StandingClock
from .surface import surface

OWNED: Final[Mapping[str, tuple[str, str | None]]] = {
    name: owned
    for row in table()
    for name, owned in (
        *((f"of kind {kind}", (kind, None)) for kind in row.kinds),
        *((f"at {uri}", ("text", f"{uri}x")) for uri in row.uris),
    )
}
"""A kind and a URI for each kind and start of a URI in the table of owners."""

ODD: Final[Mapping[str, Any]] = {
    "zero": 0,
    "unknown": 9_999,
    "negative": -1,
    "huge": 1 << 70,
    "float": 1.5,
    "none": None,
    "bool": True,
    "empty": "",
    "text": "x",
    "bytes": b"x",
    "list": [],
    "half an emoji": "\ud83d",
    "slash": "a/../b",
    "long": "x" * 5_000,
    "newline": "a\n#1 forged",
}
"""Values in place of an id or a key."""


class Place(NamedTuple):
    """A whole file in memory, and its clock."""

    store: Store
    clock: StandingClock

    def expired(self, frame: int) -> int:
        """Let a frame expire, and two hours pass; return its last version."""
        moment = self.store.history.view().now + timedelta(hours=1)
        version = self.store.update(frame, expires=moment).id
        self.clock.time_us += 7_200_000_000
        return version

    def events(self, head: int) -> list[Event]:
        """Return the events after a seq, of all scopes."""
        return [*self.store.log(head + 1)]


def opened() -> Place:
    clock = StandingClock(1_772_355_600_000_000)
    environment = Environment(MemoryStorage(), clock, Random(1).randbytes)
    return Place(cerata.open(":memory:", environment=environment), clock)


def answered(write: Callable[..., object], *arguments: Any) -> object:
    """Return the answer of a write, or its error."""
    try:
        return write(*arguments)
    except cerata.CerataError as error:
        return error


def closed_by(events: list[Event]) -> set[int]:
    """Return the frames that events close."""
    bodies = [event.body for event in events]
    deleted = {body.frame for body in bodies if isinstance(body, DeleteFrame)}
    return deleted | {body.old for body in bodies if isinstance(body, SupersedeFrame)}


def check_receipt(receipt: Receipt, events: list[Event]) -> None:
    """The receipt names the events of the write, all of them, and the frames that they close."""
    assert receipt.seqs == tuple(event.seq for event in events)
    assert receipt.added == bool(events)
    assert {*receipt.replaced, *receipt.deleted} == closed_by(events)


def check_own(place: Place, events: list[Event], kinds: set[str], scope: Any) -> None:
    """A write puts and closes frames of its own kinds and of exactly its scope."""
    for event in events:
        assert dict(event.scope or ()) == scope, event
        if isinstance(event.body, PutFrame):
            assert event.body.kind in kinds
    for number in closed_by(events):
        frame = place.store.frame(number)
        assert (frame.kind in kinds, dict(frame.scope)) == (True, scope), frame


def public(kind: type) -> set[str]:
    return surface(kind)
