"""What a handle has just appended comes from memory, everything else from the file."""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from unittest import mock

from cerata.engine.codec import Batch, prepare
from cerata.engine.events import Event
from cerata.engine.log import Log
from cerata.engine.reader import Reader, Snapshot
from cerata.engine.recent import RecentBatches

from .words import RING, Disk, put


@contextmanager
def reads() -> Generator[list[tuple[int, int]]]:
    """Record the ranges of events that are read from the file."""
    ranges: list[tuple[int, int]] = []
    events = Reader.events

    def recorded(self: Reader, snapshot: Snapshot, first: int, last: int) -> Iterator[Event]:
        ranges.append((first, last))
        return events(self, snapshot, first, last)

    with mock.patch.object(Reader, "events", recorded):
        yield ranges


def pieces(log: Log, first: int, last: int) -> list[tuple[int, object, object]]:
    return [(event.seq, event.body, event.leaf) for event in log.recent(first, last)]


def test_every_range_has_the_events_of_the_file() -> None:
    """Two writers take turns; one batch goes beside the ring."""
    disk = Disk()
    with disk.log() as log, disk.log() as other:
        log.append([put("a"), put("b")])
        other.append([put("c")])
        log.append([put("d"), put("e" * RING), put("f")])
        other.append([put("g"), put("h")])
        log.append([put("i")])
        head = log.refresh().seq
        stored = {event.seq: (event.seq, event.body, event.leaf) for event in log.read()}
        for first in range(1, head + 1):
            for last in range(first, head + 1):
                expected = [stored[seq] for seq in range(first, last + 1)]
                assert pieces(log, first, last) == expected
        with reads() as ranges:
            pieces(log, 1, head)
            pieces(log, 2, 3)
            pieces(log, 5, 5)
        assert ranges == [(3, 3), (7, 8), (3, 3)]


def test_sealed_events_are_dropped_and_no_later_ones() -> None:
    """The seal needs the events of a large batch, so they stay until then."""
    disk = Disk()
    with disk.log() as log:
        log.append([put("a")])
        log.append([put("b")])
        log.drop_recent(2)
        with reads() as ranges:
            pieces(log, 1, 2)
        assert ranges == []
        log.seal()
        log.append([put("c")])
        log.drop_recent(1)
        with reads() as ranges:
            pieces(log, 1, 3)
        assert ranges == [(1, 1)]


def test_the_oldest_batches_make_room() -> None:
    """Half of the size goes at once; a batch over the limit leaves the list empty."""

    def add(recent: RecentBatches, first_seq: int, size: int) -> Batch:
        prepared = prepare([put("x" * size)], bytes)
        batch = Batch(first_seq, 1, first_seq, None, prepared.events)
        recent.add(batch, prepared)
        return batch

    recent = RecentBatches(5_000)
    batches = [add(recent, seq, 1_000) for seq in range(1, 5)]
    assert [held.batch for held in recent.within(2, 3)] == batches[1:3]
    assert all(recent.events_of(batch) == batch.events for batch in batches)
    last = add(recent, 5, 1_000)
    assert [held.batch for held in recent.within(1, 9)] == [batches[3], last]
    assert recent.events_of(batches[0]) is None
    assert 2_000 < recent.size_bytes < 2_500
    add(recent, 6, 5_000)
    assert (recent.size_bytes, list(recent.within(1, 9))) == (0, [])


def test_a_batch_read_back_has_no_events_in_the_list() -> None:
    """The state may have been read again after an interrupt; only the same batch counts."""
    recent = RecentBatches(5_000)
    prepared = prepare([put("a")], bytes)
    recent.add(Batch(1, 1, 1, None, prepared.events), prepared)
    assert recent.events_of(Batch(1, 1, 1, None, prepared.events)) is None
