"""Damage of single events: the reader of every open log refuses the reads of some events.

A block on a disk holds several events; here a test knows which item is lost.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from cerata.engine.errors import Corrupt
from cerata.engine.events import Event
from cerata.engine.segments.reader import Reader, in_sequences


class Damage:
    """Makes events unreadable: ``damage(7)`` one, ``damage(None)`` none; the patch mends all."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._bad = frozenset[int]()
        changed: dict[str, Callable[[Any], Any]] = {
            "events": self._events,
            "events_at": self._events_at,
            "event_batches": self._event_batches,
            "batches": self._batches,
            "attachments": self._attachments,
            "embeddings": self._embeddings,
        }
        for name, change in changed.items():
            patch.setattr(Reader, name, change(vars(Reader)[name]))

    def __call__(self, *seqs: int | None) -> None:
        self._bad = frozenset(seq for seq in seqs if seq is not None)

    def _check(self, first: int, last: int) -> None:
        for seq in sorted(self._bad):
            if first <= seq <= last:
                raise Corrupt(f"Event {seq} is damaged")

    def _events(self, read: Any) -> Any:
        def events(reader: Reader, snapshot: Any, first: int, last: int) -> Iterator[Event]:
            for event in read(reader, snapshot, first, last):
                self._check(event.seq, event.seq)
                yield event

        return events

    def _events_at(self, read: Any) -> Any:
        def events(reader: Reader, snapshot: Any, seqs: Sequence[int]) -> list[Event]:
            for seq in seqs:
                self._check(seq, seq)
            whole: list[Event] = read(reader, snapshot, seqs)
            return whole

        return events

    def _event_batches(self, read: Any) -> Any:
        def batches(
            reader: Reader, snapshot: Any, first: int, last: int, size: int
        ) -> Iterator[Sequence[Event]]:
            if any(first <= seq <= last for seq in self._bad):
                return in_sequences(reader.events(snapshot, first, last), size)
            whole: Iterator[Sequence[Event]] = read(reader, snapshot, first, last, size)
            return whole

        return batches

    def _batches(self, read: Any) -> Any:
        def batches(reader: Reader, snapshot: Any, first: int = 1) -> Iterator[Any]:
            for batch in read(reader, snapshot, first):
                self._check(batch.first_seq, batch.last_seq)
                yield batch

        return batches

    def _attachments(self, read: Any) -> Any:
        def attachments(reader: Reader, snapshot: Any, seq: int) -> Any:
            self._check(seq, seq)
            return read(reader, snapshot, seq)

        return attachments

    def _embeddings(self, read: Any) -> Any:
        def embeddings(reader: Reader, snapshot: Any, key: Any, seqs: Any) -> Any:
            for seq in seqs.tolist():
                self._check(seq, seq)
            return read(reader, snapshot, key, seqs)

        return embeddings
