"""The events of a snapshot, without those that are damaged.

Owns their order and the warning for each run of damage. Leaves out filters (`frames.events`).
"""

from collections.abc import Iterator

from cerata.engine.errors import Corrupt
from cerata.engine.events import Erased, Event, EventBody
from cerata.engine.unreadable import event_place, events_place, leave_out, readable

from .snapshot import Snapshot


def readable_events(snapshot: Snapshot, first: int, last: int | None) -> Iterator[Event]:
    """Yield events, and go on after damaged ones, each run of which is one warning."""
    at = max(first, 1)
    while True:
        try:
            for event in snapshot.events(at, last):
                at = event.seq + 1
                yield event
        except Corrupt as error:
            stop = snapshot.basis if last is None else min(last, snapshot.basis)
            start, at = _damaged(snapshot, at, stop)
            leave_out(events_place(start, at - 1), error)
        else:
            return


def readable_bodies(
    snapshot: Snapshot, first: int, last: int | None
) -> Iterator[tuple[Event, EventBody | Erased]]:
    """Yield events with their bodies, without events of which either is damaged."""
    events = readable_events(snapshot, first, last)
    return readable(events, lambda event: (event, event.body), lambda event: event_place(event.seq))


def _damaged(snapshot: Snapshot, at: int, stop: int) -> tuple[int, int]:
    """Return the first damaged event from a place, and the first readable one after it."""
    start = None
    while at <= stop:
        try:
            snapshot.event_of(at)
        except Corrupt:
            start = at if start is None else start
        else:
            if start is not None:
                break
        at += 1
    return (at if start is None else start), at
