"""Consecutive events of a log, by type and a column at a time.

Owns `ColumnarEvents`, a sequence that makes an event only for a caller that reads it: a fold needs
bodies, and no header, salt or object of each event. Owns the decoded bodies of a piece. Owns the
events of segments, too; those of batches in memory are in `recent_events`.
"""

from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import partial
from operator import attrgetter
from typing import Any, Generic, NamedTuple, Protocol, TypeVar, overload

from ..events import (
    UNDECODABLE,
    Erased,
    Event,
    EventBody,
    EventHeader,
    Payload,
    Scope,
    decoders,
    kind_named,
    lifted_by,
    once,
)
from .segment_reader import Segment


class TypeColumns(NamedTuple):
    """The events of one type, in order of seq: their places in a piece, scopes and bodies.

    ``hashed`` has the attachments of each event if this process has hashed them for the bodies.
    Without it attachments are read event by event.
    """

    places: Sequence[int]
    scopes: Sequence[Scope | None]
    bodies: Sequence[EventBody | Erased]
    hashed: Sequence[Sequence[bytes]] | None = None

    def within(self, first: int, stop: int) -> "TypeColumns":
        """Return the columns of the events at places ``first`` to before ``stop``."""
        part = slice(bisect_left(self.places, first), bisect_left(self.places, stop))
        hashed = None if self.hashed is None else self.hashed[part]
        return TypeColumns(self.places[part], self.scopes[part], self.bodies[part], hashed)


class Span(Protocol):
    """Events ``low`` to before ``stop`` of a batch."""

    @property
    def first_seq(self) -> int:
        """The first event of the batch."""
        ...

    @property
    def recorded(self) -> int: ...
    @property
    def low(self) -> int: ...
    @property
    def stop(self) -> int: ...


SpanType = TypeVar("SpanType", bound=Span)


class EventPiece(ABC, Generic[SpanType]):
    """Consecutive events of spans of one source, which never change.

    - The bodies of a type are decoded at once, for the first reader of that type.
    """

    def __init__(self, spans: Sequence[SpanType]) -> None:
        """Take spans that follow each other."""
        self.first_seq = spans[0].first_seq + spans[0].low
        self._spans = spans
        self._starts = [0]
        for span in spans:
            self._starts.append(self._starts[-1] + span.stop - span.low)
        self.count = self._starts[-1]
        self._columns: dict[str, TypeColumns] = {}

    @once
    @abstractmethod
    def types(self) -> list[str]:
        """The type of each event."""

    @once
    def recorded(self) -> list[int]:
        """The time of each event."""
        times: list[int] = []
        for span in self._spans:
            times += [span.recorded] * (span.stop - span.low)
        return times

    def event(self, place: int) -> Event:
        """Return the event at a place from 0."""
        number = bisect_right(self._starts, place) - 1
        span = self._spans[number]
        event = self._event(place, span, span.low + place - self._starts[number])
        columns = self._columns.get(self.types[place]) if self._columns else None
        if columns is not None:
            at = bisect_left(columns.places, place)
            parts = vars(event)
            parts["scope"], parts["body"] = columns.scopes[at], columns.bodies[at]
        return event

    def columns(self, name: str) -> TypeColumns:
        """Return the events of a type, with their bodies. Raises `Corrupt` for a payload."""
        columns = self._columns.get(name)
        if columns is None:
            columns = self._columns[name] = self._decoded(name)
        return columns

    @abstractmethod
    def _event(self, place: int, span: SpanType, index: int) -> Event:
        """Return the event at a place, which is that at ``index`` of the batch of a span."""

    @abstractmethod
    def _decoded(self, name: str) -> TypeColumns:
        """Return the events of a type, decoded in one pass if possible."""


class ColumnarEvents(Sequence[Event]):
    """Consecutive events of a piece; they never change."""

    __slots__ = ("_first", "_piece", "_stop")

    def __init__(self, piece: EventPiece[Any], first: int, stop: int) -> None:
        self._piece = piece
        self._first = first
        self._stop = stop

    @classmethod
    def of(cls, piece: EventPiece[Any]) -> "ColumnarEvents":
        """Return all events of a piece."""
        return cls(piece, 0, piece.count)

    def __len__(self) -> int:
        return self._stop - self._first

    @overload
    def __getitem__(self, place: int) -> Event: ...
    @overload
    def __getitem__(self, place: slice) -> "ColumnarEvents": ...
    def __getitem__(self, place: int | slice) -> "Event | ColumnarEvents":
        if isinstance(place, slice):
            first, stop, step = place.indices(len(self))
            assert step == 1
            return type(self)(self._piece, self._first + first, self._first + max(first, stop))
        places = range(self._first, self._stop)
        return self._piece.event(places[place])

    @property
    def first_seq(self) -> int:
        """The seq of the first event."""
        return self._piece.first_seq + self._first

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

    def columns(self, name: str) -> TypeColumns:
        """Return the events of a type, with their places; `seqs` and `recorded` take these.

        Raises:
            Corrupt: a payload is damaged.
        """
        return self._piece.columns(name).within(self._first, self._stop)


def places_of(name: str, types: Sequence[str]) -> Sequence[int]:
    """Return the places of the events of a type."""
    if types.count(name) == len(types):
        return range(len(types))
    return [place for place, kind in enumerate(types) if kind == name]


def decoded(
    kind: type[EventBody], payloads: Sequence[bytes]
) -> "Sequence[Payload[EventBody]] | None":
    """Return payloads with bodies of a kind, or None if one cannot be decoded."""
    try:
        return [*map(decoders(kind).payload.decode, payloads)]
    except UNDECODABLE:
        return None


def lifted(bodies: list[EventBody], bases: Sequence[int]) -> list[EventBody]:
    """Return bodies of one kind, with the references −k lifted to the seq of their base + k."""
    if not bodies or not _have_references(bodies):
        return bodies
    return [lifted_by(body, base) for body, base in zip(bodies, bases, strict=True)]


def _have_references(bodies: Sequence[EventBody]) -> bool:
    return any(
        [*map(attrgetter(name), bodies)].count(None) < len(bodies) for name in bodies[0].references
    )


# --- Consecutive events of a segment, by type and a column at a time ------------------------------


class BatchSpan(NamedTuple):
    """Events ``low`` to before ``stop`` of a batch of the log, whose first seq is ``first_seq``."""

    first_seq: int
    batch_size: int
    recorded: int
    clock: int | None
    low: int
    stop: int


class SealedPiece(EventPiece[BatchSpan]):
    """The events of consecutive spans, which are own events of a segment or of a spill."""

    def __init__(self, source: Segment, first_own: int, spans: Sequence[BatchSpan]) -> None:
        """Read the spans, the first from own event ``first_own`` on.

        Raises:
            Corrupt: a block of the source does not verify.
        """
        super().__init__(spans)
        self._source = source
        self._first_own = first_own
        # Read at once, so that damage shows before any event is used.
        self._stored = source.stored(first_own, first_own + self.count)

    @once
    def types(self) -> list[str]:
        return self._source.types(self._first_own, self._first_own + self.count)

    def _event(self, place: int, span: BatchSpan, index: int) -> Event:
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
        if source.has_erased and (erased := source.erased(own_event)) is not None:
            return Event(header, None, None, erased)
        event = Event(header, self._stored.salt(own_event), self._stored.payloads[place])
        if source.has_attachments:
            vars(event)["held"] = partial(source.attachments_of, own_event)
        return event

    def _decoded(self, name: str) -> TypeColumns:
        places = places_of(name, self.types)
        decoded = self._in_one_pass(name, places)
        if decoded is None:
            # An erasure, another version or a damaged payload: each event by itself.
            events = [self.event(place) for place in places]
            bodies = [event.body for event in events]
            return TypeColumns(places, [event.scope for event in events], bodies)
        return decoded

    def _in_one_pass(self, name: str, places: Sequence[int]) -> TypeColumns | None:
        kind = kind_named(name)
        source = self._source
        if kind is None or source.has_erased or not source.is_only(name, kind.wire_version):
            return None
        payloads = self._stored.payloads
        if len(places) < self.count:
            payloads = [payloads[place] for place in places]
        whole = decoded(kind, payloads)
        if whole is None:
            return None
        bodies = lifted([payload.body for payload in whole], self._bases(places))
        return TypeColumns(places, [payload.scope for payload in whole], bodies)

    def _bases(self, places: Sequence[int]) -> list[int]:
        bases: list[int] = []
        for span in self._spans:
            bases += [span.first_seq - 1] * (span.stop - span.low)
        return bases if len(places) == self.count else [bases[place] for place in places]
