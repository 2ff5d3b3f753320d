"""Consecutive events of a segment, by type and a column at a time.

Owns `SealedPiece`, the source of `ColumnarEvents` in a segment or in the extent of a large batch.
Leaves out events with a vector, whose payloads a segment stores without a hash, and events in the
ring; readers yield lists of these.
"""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from .columnar_events import EventPiece, TypeColumns, decoded, lifted, places_of
from .events import Event, EventHeader, kind_named, once
from .segment_reader import Segment


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
