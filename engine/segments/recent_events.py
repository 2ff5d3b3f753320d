"""Consecutive events of batches in memory, by type and a column at a time.

Owns `RecentPiece`, the source of `ColumnarEvents` in the batches that a handle appended last, and
the choice between columns and single events. Leaves out the list of batches (`recent`).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

from ..errors import Corrupt
from ..events import Erased, Event, EventBody, PutFrame, Scope, kind_named, once
from .columnar_events import ColumnarEvents, EventPiece, TypeColumns, decoded, lifted, places_of
from .recent import RecentBatch

_PUT: Final = PutFrame.wire_name

_LONG: Final = 64
"""Events of a run that becomes a sequence."""

Read: TypeAlias = Callable[[int, int], Iterator[Sequence[Event]]]


class RecentSpan(NamedTuple):
    """Events ``low`` to before ``stop`` of a batch in memory."""

    held: RecentBatch
    first_seq: int
    recorded: int
    low: int
    stop: int


class RecentPiece(EventPiece[RecentSpan]):
    """The events of consecutive spans."""

    @once
    def types(self) -> list[str]:
        types: list[str] = []
        for held, _, _, low, stop in self._spans:
            if held.have_bodies:
                types += [_PUT] * (stop - low)
            else:
                types += [wire.type for wire in held.events[low:stop]]
        return types

    def _event(self, place: int, span: RecentSpan, index: int) -> Event:
        return span.held.event(index)

    def _decoded(self, name: str) -> TypeColumns:
        scopes: list[Scope | None] = []
        bodies: list[EventBody | Erased] = []
        hashed: list[Sequence[bytes]] = []
        are_hashed = True
        for span in self._spans:
            indices = _indices_of(name, span)
            if not indices:
                continue
            part = _scopes_and_bodies(name, span.held, indices)
            scopes += part[0]
            bodies += part[1]
            are_hashed = are_hashed and span.held.are_hashed
            hashed += [span.held.events[index].attachments for index in indices]
        return TypeColumns(
            places_of(name, self.types), scopes, bodies, hashed if are_hashed else None
        )


def _indices_of(name: str, span: RecentSpan) -> Sequence[int]:
    """Return the indices in its batch of the events of a span that have a type."""
    held, _, _, low, stop = span
    if held.have_bodies:
        return range(low, stop) if name == _PUT else ()
    return [index for index in range(low, stop) if held.events[index].type == name]


def _scopes_and_bodies(
    name: str, held: RecentBatch, indices: Sequence[int]
) -> tuple[Sequence[Scope | None], Sequence[EventBody | Erased]]:
    """Return the scopes and bodies of events of a type, decoded in one pass if possible."""
    base = held.batch.first_seq - 1
    if held.have_bodies:
        drafts = held.drafts[indices[0] : indices[-1] + 1]
        bodies = [draft.body for draft in drafts]
        return [draft.scope for draft in drafts], lifted(bodies, [base] * len(bodies))
    kind = kind_named(name)
    wires = [held.events[index] for index in indices]
    if kind is not None and all(wire.version == kind.wire_version for wire in wires):
        payloads = decoded(kind, [wire.payload for wire in wires])
        if payloads is not None:
            bodies = [payload.body for payload in payloads]
            return [payload.scope for payload in payloads], lifted(bodies, [base] * len(bodies))
    events = [held.event(index) for index in indices]
    # The body first: it is decoded together with the scope.
    unlike = [event.body for event in events]
    return [event.scope for event in events], unlike


def recent_runs(
    batches: Iterable[RecentBatch], first: int, last: int, size: int, read: Read
) -> Iterator[Sequence[Event]]:
    """Yield events ``first`` to ``last``: runs of batches in memory as columns.

    Args:
        batches: The batches in memory with any of these events, in order of seq.
        first: seq of the first event.
        last: seq of the last event.
        size: A run has at most this number of events.
        read: Reads events of the file, from a first to a last seq.
    """
    at = first
    spans: list[RecentSpan] = []
    room = size
    for held in batches:
        batch = held.batch
        if at < batch.first_seq:
            if spans:
                yield ColumnarEvents.of(RecentPiece(spans))
                spans = []
                room = size
            yield from read(at, batch.first_seq - 1)
            at = batch.first_seq
        base, stop = batch.first_seq, min(last, batch.last_seq) + 1
        while at < stop:
            end = min(stop, at + room)
            spans.append(RecentSpan(held, base, batch.recorded, at - base, end - base))
            room -= end - at
            at = end
            if not room:
                yield ColumnarEvents.of(RecentPiece(spans))
                spans = []
                room = size
    if spans:
        yield ColumnarEvents.of(RecentPiece(spans))
    if at <= last:
        yield from read(at, last)


def joined_runs(runs: Iterable[Sequence[Event]], size: int) -> Iterator[Sequence[Event]]:
    """Yield the events of runs; short runs as lists of at most ``size`` events.

    Each sequence costs a fold some 0.3 ms. Two writers that take turns make many short runs.

    Raises:
        Corrupt: at the first damage; all events before it have been yielded.
    """
    events: list[Event] = []
    try:
        for run in runs:
            if len(run) >= _LONG:
                if events:
                    yield events
                    events = []
                yield run
                continue
            for event in run:
                events.append(event)
                if len(events) == size:
                    yield events
                    events = []
    except Corrupt:
        if events:
            yield events
        raise
    if events:
        yield events
