"""Consecutive events of a segment, by type and a column at a time.

Owns `SealedEvents`, a sequence that makes an event only for a caller that reads it: a fold needs
bodies, and no header, salt or object of each event. Leaves out events with a vector, whose
payloads a segment stores without a hash, and events in the ring; readers yield lists of these.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from functools import partial
from operator import attrgetter
from typing import NamedTuple, overload

from .events import (
    UNDECODABLE,
    Erased,
    Event,
    EventBody,
    EventHeader,
    Scope,
    decoders,
    kind_named,
    lifted_by,
    once,
)
from .segment_reader import Segment


class BatchSpan(NamedTuple):
    """Events ``low`` to before ``stop`` of a batch of the log, whose first seq is ``first_seq``."""

    first_seq: int
    batch_size: int
    recorded: int
    clock: int | None
    low: int
    stop: int


class SealedColumns(NamedTuple):
    """The events of one type, in order of seq: their places in a piece, scopes and bodies."""

    places: Sequence[int]
    scopes: Sequence[Scope | None]
    bodies: Sequence[EventBody | Erased]

    def within(self, first: int, stop: int) -> "SealedColumns":
        """Return the columns of the events at places ``first`` to before ``stop``."""
        part = slice(bisect_left(self.places, first), bisect_left(self.places, stop))
        return SealedColumns(self.places[part], self.scopes[part], self.bodies[part])


class SealedPiece:
    """The events of consecutive spans, which are own events of a segment or of a spill."""

    def __init__(self, source: Segment, first_own: int, spans: Sequence[BatchSpan]) -> None:
        self._source = source
        self._first_own = first_own
        self._spans = spans
        self.first_seq = spans[0].first_seq + spans[0].low
        self.starts = [0]
        for span in spans:
            self.starts.append(self.starts[-1] + span.stop - span.low)
        self.count = self.starts[-1]
        stop = first_own + self.count
        self.types = source.types(first_own, stop)
        # Read at once, so that damage shows before any event is used.
        self._stored = source.stored(first_own, stop)
        self._columns: dict[str, SealedColumns] = {}

    @once
    def recorded(self) -> list[int]:
        """The time of each event."""
        times: list[int] = []
        for span in self._spans:
            times += [span.recorded] * (span.stop - span.low)
        return times

    def event(self, place: int) -> Event:
        number = bisect_right(self.starts, place) - 1
        span = self._spans[number]
        index = span.low + place - self.starts[number]
        own_event = self._first_own + place
        source = self._source
        name, version, causation = source.kind_of(own_event)
        header = EventHeader(
            span.first_seq + index,
            span.recorded,
            span.clock,
            name,
            version,
            index,
            span.batch_size,
            causation,
        )
        erased = source.erased(own_event)
        if erased is not None:
            return Event(header, None, None, erased)
        event = Event(header, self._stored.salt(own_event), self._stored.payloads[place])
        parts = vars(event)
        if source.has_attachments:
            parts["held"] = partial(source.attachments_of, own_event)
        columns = self._columns.get(name)
        if columns is not None:
            at = bisect_left(columns.places, place)
            parts["scope"], parts["body"] = columns.scopes[at], columns.bodies[at]
        return event

    def columns(self, name: str) -> SealedColumns:
        """Return the events of a type, with their bodies."""
        columns = self._columns.get(name)
        if columns is None:
            columns = self._columns[name] = self._decoded(name)
        return columns

    def _decoded(self, name: str) -> SealedColumns:
        if self.types.count(name) == self.count:
            places: Sequence[int] = range(self.count)
        else:
            places = [place for place, kind in enumerate(self.types) if kind == name]
        decoded = self._in_one_pass(name, places)
        if decoded is None:
            # An erasure, another version or a damaged payload: each event by itself.
            events = [self.event(place) for place in places]
            bodies = [event.body for event in events]
            return SealedColumns(places, [event.scope for event in events], bodies)
        return decoded

    def _in_one_pass(self, name: str, places: Sequence[int]) -> SealedColumns | None:
        kind = kind_named(name)
        source = self._source
        if kind is None or source.has_erased or not source.is_only(name, kind.wire_version):
            return None
        payloads = self._stored.payloads
        if len(places) < self.count:
            payloads = [payloads[place] for place in places]
        decode = decoders(kind).payload.decode
        try:
            whole = [*map(decode, payloads)]
        except UNDECODABLE:
            return None
        bodies: list[EventBody] = [payload.body for payload in whole]
        if _have_references(kind, bodies):
            bodies = self._lifted(places, bodies)
        return SealedColumns(places, [payload.scope for payload in whole], bodies)

    def _lifted(self, places: Iterable[int], bodies: Iterable[EventBody]) -> list[EventBody]:
        bases: list[int] = []
        for span in self._spans:
            bases += [span.first_seq - 1] * (span.stop - span.low)
        return [lifted_by(body, bases[place]) for place, body in zip(places, bodies, strict=True)]


def _have_references(kind: type[EventBody], bodies: Sequence[EventBody]) -> bool:
    return any(
        [*map(attrgetter(name), bodies)].count(None) < len(bodies) for name in kind.references
    )


class SealedEvents(Sequence[Event]):
    """Consecutive events of a segment; they never change."""

    __slots__ = ("_first", "_piece", "_stop")

    def __init__(self, piece: SealedPiece, first: int, stop: int) -> None:
        self._piece = piece
        self._first = first
        self._stop = stop

    @classmethod
    def read(cls, source: Segment, first_own: int, spans: Sequence[BatchSpan]) -> "SealedEvents":
        """Return the events of consecutive spans; the first is own event ``first_own``.

        Raises:
            Corrupt: a block of the segment does not verify.
        """
        piece = SealedPiece(source, first_own, spans)
        return cls(piece, 0, piece.count)

    def __len__(self) -> int:
        return self._stop - self._first

    @overload
    def __getitem__(self, place: int) -> Event: ...
    @overload
    def __getitem__(self, place: slice) -> "SealedEvents": ...
    def __getitem__(self, place: int | slice) -> "Event | SealedEvents":
        if isinstance(place, slice):
            first, stop, step = place.indices(len(self))
            assert step == 1
            return type(self)(self._piece, self._first + first, self._first + max(first, stop))
        places = range(self._first, self._stop)
        return self._piece.event(places[place])

    @property
    def types(self) -> list[str]:
        """The type of each event."""
        return self._piece.types[self._first : self._stop]

    def seqs(self, places: Sequence[int]) -> Sequence[int]:
        """Return the seqs of the events at places of a column."""
        first = self._piece.first_seq
        if isinstance(places, range):
            return range(first + places.start, first + places.stop)
        return [first + place for place in places]

    def recorded(self, places: Sequence[int]) -> list[int]:
        """Return the times of the events at places of a column."""
        times = self._piece.recorded
        if isinstance(places, range):
            return times[places.start : places.stop]
        return [times[place] for place in places]

    def columns(self, name: str) -> SealedColumns:
        """Return the events of a type, with their places; `seqs` and `recorded` take these.

        Raises:
            Corrupt: a payload is damaged.
        """
        return self._piece.columns(name).within(self._first, self._stop)
