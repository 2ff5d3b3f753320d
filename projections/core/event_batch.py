"""The events of a step of a fold, read by type and a column at a time.

Owns the choice of events by type, made once for all projections that fold the step. Leaves out the
events themselves. A projection that handles no type of the step does nothing for it.
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import Final, NamedTuple, Self, overload

from cerata.engine.errors import Corrupt, Unsupported
from cerata.engine.events import Erased, EventBody, Scope
from cerata.engine.segments.columnar_events import ColumnarEvents

from .projection import FoldedEvent


class EventColumns(NamedTuple):
    """The parts of the events of one type, in order of seq, a column for each part."""

    seqs: Sequence[int]
    recorded: Sequence[int]
    scopes: Sequence[Scope | None]
    bodies: Sequence[EventBody | Erased]
    hashed: Sequence[Sequence[bytes]] | None = None
    """The attachments of each event, as in `TypeColumns`."""


_NO_EVENTS: Final = EventColumns((), (), (), ())


class EventBatch(Sequence[FoldedEvent]):
    """Consecutive events of a log; they never change."""

    __slots__ = (
        *("_columns", "_events", "_kinds", "_parts", "_types"),
        *("size", "first_seq", "last_seq"),
    )

    def __init__(self, events: Sequence[FoldedEvent]) -> None:
        self._events = events
        self.size = len(events)
        """The number of events."""
        if isinstance(events, ColumnarEvents):
            self._types = events.types
            self.first_seq = events.first_seq
            self.last_seq = self.first_seq + self.size - 1
        else:
            self._types = [event.type for event in events]
            self.first_seq = events[0].seq if events else 0
            self.last_seq = events[-1].seq if events else 0
        self._kinds = frozenset(self._types)
        self._columns: dict[str, EventColumns] = {}
        self._parts: dict[tuple[int, int], Self] = {}

    @classmethod
    def of(cls, events: Sequence[FoldedEvent]) -> "EventBatch":
        """Return the events as a batch; a batch as it is."""
        return events if isinstance(events, EventBatch) else cls(events)

    def __len__(self) -> int:
        return self.size

    @overload
    def __getitem__(self, place: int) -> FoldedEvent: ...
    @overload
    def __getitem__(self, place: slice) -> Self: ...
    def __getitem__(self, place: int | slice) -> "FoldedEvent | EventBatch":
        if isinstance(place, slice):
            first, stop, step = place.indices(self.size)
            if step != 1:
                return type(self)(self._events[place])
            return self if stop - first == self.size else self._part(first, stop)
        return self._events[place]

    def _part(self, first: int, stop: int) -> Self:
        """Return the events of places [first, stop); projections share the parts."""
        part = self._parts.get((first, stop))
        if part is None:
            part = self._parts[first, stop] = type(self)(self._events[first:stop])
        return part

    def has_types(self, names: frozenset[str]) -> bool:
        """Return whether an event is of one of some types."""
        return not self._kinds.isdisjoint(names)

    def of_types(self, names: frozenset[str]) -> Sequence[FoldedEvent]:
        """Return the events of some types, in order of seq."""
        handled = self._kinds & names
        if not handled:
            return ()
        if isinstance(self._events, ColumnarEvents):
            # All bodies of a type at once: the events then have theirs.
            for name in handled:
                with suppress(Corrupt, Unsupported):
                    self._events.columns(name)
        if self._kinds <= names:
            return self._events
        return [
            event for event, name in zip(self._events, self._types, strict=True) if name in names
        ]

    def first_undecodable(self) -> int | None:
        """Return the place of the first event with an undecodable payload, or None."""
        try:
            for name in self._kinds:
                self.columns(name)
        except (Corrupt, Unsupported):
            return next((place for place in range(len(self)) if self._is_undecodable(place)), None)
        return None

    def _is_undecodable(self, place: int) -> bool:
        try:
            _ = self._events[place].body
        except Corrupt:
            return True
        except Unsupported:
            # A body of another version: a projection that handles it raises.
            return False
        return False

    def columns(self, name: str) -> EventColumns:
        """Return the parts of the events of a type; projections share the result.

        Raises:
            Corrupt: a payload cannot be decoded.
            Unsupported: a body is of another version, and cannot be lifted.
        """
        columns = self._columns.get(name)
        if columns is None:
            columns = self._columns[name] = self._columns_of(name)
        return columns

    def _columns_of(self, name: str) -> EventColumns:
        if name not in self._kinds:
            return _NO_EVENTS
        if isinstance(self._events, ColumnarEvents):
            places, scopes, bodies, hashed = self._events.columns(name)
            seqs = self._events.seqs(places)
            return EventColumns(seqs, self._events.recorded(places), scopes, bodies, hashed)
        events = self.of_types(frozenset((name,)))
        # The body first: it is decoded together with the scope.
        bodies = [event.body for event in events]
        return EventColumns(
            [event.seq for event in events],
            [event.recorded for event in events],
            [event.scope for event in events],
            bodies,
        )
