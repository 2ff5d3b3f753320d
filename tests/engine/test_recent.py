"""What a handle has just appended comes from memory, everything else from the file."""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from unittest import mock

from msgspec.structs import replace

from cerata.engine.codec import Batch, prepare
from cerata.engine.events import Draft, Event, PutFrame
from cerata.engine.log import Log
from cerata.engine.segments.columnar_events import ColumnarEvents
from cerata.engine.segments.reader import Reader, Snapshot
from cerata.engine.segments.recent import RecentBatches

from .test_sealed_events import check_columns, facts_of
from .words import RING, Disk, blob, other, put


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


def plain(count: int) -> list[Draft]:
    """Return drafts of frames whose maker has checked them."""
    return [Draft(PutFrame(text=f"text {n}"), is_checked=True) for n in range(count)]


def check_sequences(log: Log, first: int, last: int, size: int) -> list[bool]:
    """Compare sequences with single events; return for each whether it is by column."""
    sequences = [*log.recent_in_sequences(first, last, size)]
    assert all(0 < len(events) <= size for events in sequences)
    assert [facts_of(event) for events in sequences for event in events] == [
        facts_of(event) for event in log.read(first, last)
    ]
    for events in sequences:
        if isinstance(events, ColumnarEvents):
            check_columns(events)
            check_columns(events[1:])
            check_columns(events[: len(events) // 2])
            check_bodies(log, events)
    return [isinstance(events, ColumnarEvents) for events in sequences]


def check_bodies(log: Log, events: ColumnarEvents) -> None:
    """Compare columns with the file; an event of the sequence takes its body from its column."""
    stored = [*log.read(events.first_seq, events.first_seq + len(events) - 1)]
    assert events.first_seq == stored[0].seq
    for name in set(events.types):
        of_type = [event for event in stored if event.type == name]
        columns = events.columns(name)
        assert [*columns.bodies] == [event.body for event in of_type]
        assert [*columns.scopes] == [event.scope for event in of_type]
    singly = [*events]
    assert [facts_of(event) for event in singly] == [facts_of(event) for event in stored]


def test_a_body_of_a_draft_is_not_decoded() -> None:
    """Only a body that no caller can change counts; a map of metadata may be the caller's."""
    disk = Disk()
    with disk.log() as log:
        kept = plain(1)[0]
        changeable = replace(kept, body=replace(kept.body, metadata={"a": 1}))
        log.append([kept, changeable, put("of a caller")])
        events = [*log.recent(1, 3)]
        assert events[0].body is kept.body
        assert events[0].scope is kept.scope
        assert all("body" not in vars(event) for event in events[1:])
        assert [vars(event).get("hashed") for event in events] == [(), (), None]


def test_columns_in_memory_have_the_events_of_the_file() -> None:
    """Frames, references within a batch, metadata, facts of other kinds and attachments."""
    disk = Disk()
    with disk.log() as log, disk.log() as writer:
        log.append([*plain(70), Draft(PutFrame(text="below", parent=-3), is_checked=True)])
        log.append([put(f"m {n}", metadata={"n": n}, parent=-1 if n else None) for n in range(90)])
        log.append([other("odd"), blob(b"bytes"), other("putFrame", version=99), *plain(80)])
        for _ in range(40):
            writer.append([put("of another writer")])
            log.append(plain(1))
        for _ in range(80):
            log.append(plain(1))
        writer.append([put("the last")])
        head = log.refresh().seq
        assert any(check_sequences(log, 1, head, 1_024))
        for size in (64, 100):
            assert any(check_sequences(log, 1, head, size))
        for first, last in ((1, 1), (60, 200), (71, 72), (160, 260), (head - 3, head)):
            check_sequences(log, first, last, 1_024)


def test_short_runs_share_a_sequence() -> None:
    """Two writers took turns: a sequence for each batch would cost each fold 0.3 ms."""
    disk = Disk()
    with disk.log() as log, disk.log() as writer:
        for _ in range(50):
            writer.append(plain(2))
            log.append(plain(3))
        assert check_sequences(log, 1, log.refresh().seq, 1_024) == [False]
        log.append(plain(64))
        assert check_sequences(log, 1, log.head.seq, 1_024) == [False, True]


def test_only_attachments_that_their_maker_hashed_count_as_hashed() -> None:
    """A draft of a caller is checked by the append, which keeps no account of its hashes."""
    disk = Disk()
    with disk.log() as log:
        log.append(plain(70))
        log.append([*plain(70), put("of a caller")])
        [events] = log.recent_in_sequences(1, 70, 100)
        assert isinstance(events, ColumnarEvents)
        assert events.columns("putFrame").hashed == [()] * 70
        [events] = log.recent_in_sequences(1, 141, 200)
        assert isinstance(events, ColumnarEvents)
        assert events.columns("putFrame").hashed is None
