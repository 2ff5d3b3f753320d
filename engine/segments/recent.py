"""The events that a handle appended last, in memory, up to a size.

Owns the list: sealing a large batch takes its events from here instead of reading its extent back,
and so does a fold (`Log.recent`). The list holds nothing that the file lacks, and any part may be
missing: the reader then reads the file. Events of another process are never in it.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from ..codec import Batch, Prepared, WireEvent
from ..events import Draft, Event, PutFrame, lifted_by, once
from .reader import wire_event
from .segment_index import ColumnKey, PlacedColumn


class RecentBatch:
    """A batch that this handle has written, with its events and the drafts that they came from."""

    def __init__(
        self, batch: Batch, prepared: Prepared, columns: Mapping[ColumnKey, PlacedColumn]
    ) -> None:
        """``columns`` are those of its extent, by key; none for a batch in the ring."""
        self.batch = batch
        self.columns = columns
        self.events = prepared.events
        self.drafts = prepared.drafts
        self.size = prepared.size

    @once
    def have_bodies(self) -> bool:
        """True if all events put frames whose bodies are those of their drafts."""
        # By column, which takes half of the time of `_has_body` for each draft.
        bodies = [draft.body for draft in self.drafts if isinstance(draft.body, PutFrame)]
        is_put = self.are_hashed and len(bodies) == len(self.drafts)
        return is_put and not any([body.metadata for body in bodies])  # noqa: C419

    @once
    def are_hashed(self) -> bool:
        """True if the makers of the drafts have hashed all attachments for their bodies."""
        return [draft.is_checked for draft in self.drafts].count(True) == len(self.drafts)

    def event(self, index: int) -> Event:
        """Return the event at ``index`` of the batch as it would be read back.

        The body is that of the draft only if equal bytes decode to an equal body, which no caller
        can change; else a read of it decodes the payload.
        """
        batch, wire, draft = self.batch, self.events[index], self.drafts[index]
        event = wire_event(batch, index, wire)
        parts = vars(event)
        if _has_body(draft):
            parts["scope"] = draft.scope
            parts["body"] = lifted_by(draft.body, batch.first_seq - 1)
        if draft.is_checked:
            parts["hashed"] = wire.attachments
        return event

    def read(self, low: int, stop: int) -> Iterator[Event]:
        """Yield events ``low`` to before ``stop`` of the batch."""
        return map(self.event, range(low, stop))


def _has_body(draft: Draft) -> bool:
    body = draft.body
    return draft.is_checked and isinstance(body, PutFrame) and not body.metadata


class RecentBatches:
    """The last batches of a handle in order of seq; changed under the handle's mutex.

    Readers without the mutex iterate over a copy, so a change never disturbs them.
    """

    def __init__(self, size_max: int) -> None:
        self._size_max = size_max
        self._batches: list[RecentBatch] = []
        self.size_bytes = 0

    def add(
        self,
        batch: Batch,
        prepared: Prepared,
        columns: Mapping[ColumnKey, PlacedColumn] = MappingProxyType({}),
    ) -> None:
        """Add the batch that this handle has just written; the oldest batches make room."""
        size = prepared.size
        if size > self._size_max:
            self.clear()
            return
        self._batches.append(RecentBatch(batch, prepared, columns))
        self.size_bytes += size
        if self.size_bytes > self._size_max:
            self._drop(self._size_max // 2)

    def _drop(self, size_max: int) -> None:
        """Drop the oldest batches: half of the size at once, so that few calls copy the list."""
        dropped = 0
        while self.size_bytes > size_max:
            self.size_bytes -= self._batches[dropped].size
            dropped += 1
        self._batches = self._batches[dropped:]

    def drop_through(self, seq: int) -> None:
        """Drop the batches up to event ``seq``, which no fold needs any more."""
        self._batches = [held for held in self._batches if held.batch.last_seq > seq]
        self.size_bytes = sum(held.size for held in self._batches)

    def clear(self) -> None:
        """Drop everything: an erasure or another file may have changed the events."""
        self._batches = []
        self.size_bytes = 0

    def events_of(self, batch: Batch) -> tuple[WireEvent, ...] | None:
        """Return the events of a batch of the tail, if they are still here."""
        batches = self._batches
        place = _first_from(batches, batch.first_seq)
        if place < len(batches) and batches[place].batch is batch:
            return batches[place].events
        return None

    def within(self, first: int, last: int) -> Iterator[RecentBatch]:
        """Yield the batches with any of the events ``first`` to ``last``, in order of seq."""
        batches = self._batches
        for place in range(_first_from(batches, first), len(batches)):
            held = batches[place]
            if held.batch.first_seq > last:
                return
            yield held


def _first_from(batches: Sequence[RecentBatch], seq: int) -> int:
    """Return the place of the first batch that ends at event ``seq`` or later."""
    return bisect_left(batches, seq, key=lambda held: held.batch.last_seq)
