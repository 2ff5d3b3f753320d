"""Events of the log that match a filter: by type, actor, correlation, causation and time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING

from cerata.engine.arguments import expect_integer, expect_text, wrong_type
from cerata.engine.events import Event, EventBody
from cerata.engine.json_value import exact_fields

from ..snapshot.readable_events import readable_events

if TYPE_CHECKING:
    from ..snapshot.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class EventFilter:
    """The events that a read of the log yields; None admits any.

    ``start`` ≤ recorded < ``end``, in microseconds since 1970 UTC.
    """

    type: str | None = None
    actor: str | None = None
    correlation: str | None = None
    causation: int | None = None
    start: int | None = None
    end: int | None = None

    def __post_init__(self) -> None:
        for name in ("type", "actor", "correlation"):
            value = getattr(self, name)
            if value is not None:
                expect_text(name, value)
        exact_fields(self, "causation")
        if self.causation is not None:
            expect_integer("causation", self.causation)

    def admits(self, event: Event) -> bool:
        """Return whether an event has the type, actor, correlation id and cause."""
        return (
            (self.type is None or event.type == self.type)
            and (self.actor is None or event.actor == self.actor)
            and (self.correlation is None or event.correlation == self.correlation)
            and (self.causation is None or event.causation == self.causation)
        )


def type_name(kind: str | type[EventBody] | None) -> str | None:
    """Return the name of an event type. Raises `InvalidInput` for another value."""
    if isinstance(kind, type) and issubclass(kind, EventBody):
        return kind.wire_name
    if kind is None or isinstance(kind, str):
        return kind
    remedy = "Pass a name such as 'putFrame', or a class of cerata.events."
    raise wrong_type("type", "the name or the body of an event type", kind, remedy)


def events_of(
    snapshot: Snapshot, first: int, last: int | None, event_filter: EventFilter
) -> Iterator[Event]:
    """Return the events ``first`` to ``last`` that a filter admits, in seq order."""
    start, end = event_filter.start, event_filter.end
    if start is not None:
        first = max(first, snapshot.recorded_from(start))
    events = readable_events(snapshot, first, last)
    if end is not None:
        # Recorded times never fall, so later events are too late as well.
        events = takewhile(lambda event: event.recorded < end, events)
    return filter(event_filter.admits, events)
