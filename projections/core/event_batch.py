"""The events of a step of a fold, read by type and a column at a time.

Owns the choice of events by type, made once for all projections that fold the step. Leaves out the
events themselves. A projection that handles no type of the step does nothing for it.
"""

from collections.abc import Sequence
from typing import NamedTuple, Self, overload

from cerata.engine.events import Erased, EventBody, Scope

from .projection import FoldedEvent


class EventColumns(NamedTuple):
    """The parts of the events of one type, in order of seq, a column for each part."""

    seqs: Sequence[int]
    recorded: Sequence[int]
    scopes: Sequence[Scope | None]
    bodies: Sequence[EventBody | Erased]


class EventBatch(Sequence[FoldedEvent]):
    """Consecutive events of a log; they never change."""

    __slots__ = ("_columns", "_events", "_kinds", "_types")

    def __init__(self, events: Sequence[FoldedEvent]) -> None:
        self._events = events
        self._types = [event.type for event in events]
        self._kinds = frozenset(self._types)
        self._columns: dict[str, EventColumns] = {}

    @classmethod
    def of(cls, events: Sequence[FoldedEvent]) -> "EventBatch":
        """Return the events as a batch; a batch as it is."""
        return events if isinstance(events, EventBatch) else cls(events)

    def __len__(self) -> int:
        return len(self._events)

    @overload
    def __getitem__(self, place: int) -> FoldedEvent: ...
    @overload
    def __getitem__(self, place: slice) -> Self: ...
    def __getitem__(self, place: int | slice) -> "FoldedEvent | EventBatch":
        if isinstance(place, slice):
            whole = place.indices(len(self._events)) == (0, len(self._events), 1)
            return self if whole else type(self)(self._events[place])
        return self._events[place]

    def of_types(self, names: frozenset[str]) -> Sequence[FoldedEvent]:
        """Return the events of some types, in order of seq."""
        if self._kinds.isdisjoint(names):
            return ()
        if self._kinds <= names:
            return self._events
        return [
            event for event, name in zip(self._events, self._types, strict=True) if name in names
        ]

    def columns(self, name: str) -> EventColumns:
        """Return the parts of the events of a type; projections share the result."""
        columns = self._columns.get(name)
        if columns is None:
            events = self.of_types(frozenset((name,)))
            # The body first: it is decoded together with the scope.
            bodies = [event.body for event in events]
            columns = self._columns[name] = EventColumns(
                [event.seq for event in events],
                [event.recorded for event in events],
                [event.scope for event in events],
                bodies,
            )
        return columns
