"""The events that a handle appended last, in memory, up to a size.

Owns the list: sealing a large batch takes its events from here instead of reading its extent back,
and so does a fold (`Log.recent`). The list holds nothing that the file lacks, and any part may be
missing: the reader then reads the file. Events of another process are never in it.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from .codec import Batch, Prepared, WireEvent
from .events import Draft, Event, PutFrame, lifted_by
from .reader import wire_event


class RecentBatch(NamedTuple):
    """A batch that this handle has written, with its events and the drafts that they came from."""

    batch: Batch
    events: tuple[WireEvent, ...]
    drafts: Sequence[Draft]
    size: int

    def read(self, low: int, stop: int) -> Iterator[Event]:
        """Yield events ``low`` to before ``stop`` of the batch as they would be read back.

        The body is that of the draft only if equal bytes decode to an equal body, which no caller
        can change; else it is decoded from the payload when it is asked for.
        """
        batch = self.batch
        base = batch.first_seq - 1
        pairs = zip(self.events[low:stop], self.drafts[low:stop], strict=True)
        for index, (wire, draft) in enumerate(pairs, start=low):
            event = wire_event(batch, index, wire)
            body = draft.body
            if draft.is_checked and isinstance(body, PutFrame) and not body.metadata:
                parts = vars(event)
                parts["scope"] = draft.scope
                parts["body"] = body if body.parent is None else lifted_by(body, base)
                parts["hashed"] = wire.attachments
            yield event


class RecentBatches:
    """The last batches of a handle in order of seq; changed under the handle's mutex.

    Readers without the mutex iterate over a copy, so a change never disturbs them.
    """

    def __init__(self, size_max: int) -> None:
        self._size_max = size_max
        self._batches: list[RecentBatch] = []
        self.size_bytes = 0

    def add(self, batch: Batch, prepared: Prepared) -> None:
        """Add the batch that this handle has just written; the oldest batches make room."""
        size = prepared.size
        if size > self._size_max:
            self.clear()
            return
        self._batches.append(RecentBatch(batch, prepared.events, prepared.drafts, size))
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
