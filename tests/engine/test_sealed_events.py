"""Events of a segment by column are those that are read one by one, in every part of a log."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import cast

import msgspec
import numpy as np
import pytest

import cerata
from cerata.engine import codec
from cerata.engine.errors import Corrupt
from cerata.engine.events import Draft, Event, Payload, PutFrame
from cerata.engine.log import Log
from cerata.engine.segments.columnar_events import ColumnarEvents
from cerata.engine.segments.segment_reader import Segment
from cerata.memory.batch.writer import session_of

from ..inside import log_of
from ..replay.erasures import erase
from .words import Disk, other, put


def facts_of(event: Event) -> tuple[object, ...]:
    return (
        event.header,
        event.salt,
        event.payload_bytes,
        event.erased,
        event.body,
        event.scope,
        event.causation,
    )


def check_equal(log: Log, first: int, last: int, size: int) -> int:
    """Compare sequences with single events; return the number of sequences by column."""
    expected = [*log.read(first, last)]
    sequences = [*log.read_in_sequences(first, last, size)]
    assert all(0 < len(events) <= size for events in sequences)
    assert [facts_of(event) for events in sequences for event in events] == [
        facts_of(event) for event in expected
    ]
    for step in (1, 7, 400):
        chosen = log.events_at([*range(first, last + 1, step)])
        assert [*map(facts_of, chosen)] == [*map(facts_of, expected[::step])]
    sealed = [events for events in sequences if isinstance(events, ColumnarEvents)]
    for events in sealed:
        check_columns(events)
        check_columns(events[1:])
        check_columns(events[: len(events) // 2])
    return len(sealed)


def check_columns(events: ColumnarEvents) -> None:
    assert events.types == [event.type for event in events]
    for name in set(events.types):
        columns = events.columns(name)
        singly = [event for event in events if event.type == name]
        assert [*events.seqs(columns.places)] == [event.seq for event in singly]
        assert events.recorded(columns.places) == [event.recorded for event in singly]
        assert [*columns.scopes] == [event.scope for event in singly]
        assert [*columns.bodies] == [event.body for event in singly]


def test_chosen_events_have_their_attachments(tmp_path: Path) -> None:
    """A vector lies beside the events of a segment, of a spill and of the ring."""
    vectors = np.arange(9 * 64, dtype=np.float32).reshape(9, 64)
    with cerata.open(tmp_path / "a.cera") as store:
        store.put_frames(
            [f"{n} " * 9_000 for n in range(3)],
            vectors=cerata.Vectors(dense=vectors[:3], space="s"),
        )
        for n in range(3):
            store.put_frame(f"{n}", vectors=cerata.Vectors(dense=vectors[3 + n], space="s"))
        session_of(store).log.seal()
        for n in range(3):
            store.put_frame(f"{n}", vectors=cerata.Vectors(dense=vectors[6 + n], space="s"))
        events = session_of(store).log.events_at(range(1, 10))
        bodies = [cast("PutFrame", event.body) for event in events]
        data = [
            event.attached(body.embedding.data)
            for event, body in zip(events, bodies, strict=True)
            if body.embedding is not None
        ]
    assert data == [vector.tobytes() for vector in vectors]


def test_chosen_events_are_refused_if_one_is_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A caller reads them one by one then; a part of them would look like all."""
    with cerata.open(tmp_path / "a.cera") as store:
        store.put_frames([f"{n} " + "x" * 100 for n in range(1_000)])
        session_of(store).log.seal()
        monkeypatch.setattr(Segment, "_read_block", damaged_block(2))
        log = session_of(store).log
        assert [event.seq for event in log.events_at([1, 9])] == [1, 9]
        with pytest.raises(Corrupt, match="block 2 does not verify"):
            log.events_at([1, 9, *range(200, 500, 20)])


def write_variety(path: Path) -> None:
    """Write small and large batches, chunks with parents, facts, deletes, a vector, an erasure."""
    with cerata.open(path) as store:
        frames = store.put_frames([f"note {n} of wax" for n in range(1_500)], tags=["t"]).ids
        for n in range(30):
            store.put_frame(f"single {n}", uri=f"uri:{n}", metadata={"n": n, "m": {"k": [n]}})
        chunks = [PutFrame(text=f"c{n}", parent=-1, chunk_index=n) for n in range(2)]
        store.append(PutFrame(text="", chunk_count=2), *chunks)
        store.assert_fact("ada", "likes", "tea")
        store.delete(frames[3])
        odd = other("odd", version=3).body, other("putFrame", version=99).body
        log_of(store).append([Draft(body) for body in odd])
        store.scoped({"tenant": "other", "user": 1}).put_frame("of another", role="user")
        store.put_frame("with a vector", vectors=cerata.Vectors(dense=[1.0, 2.0], space="s"))
        store.put_frames([f"late {n}" for n in range(700)])
        session_of(store).log.seal()
        store.put_frames(["in the ring", "and one more"])


@pytest.mark.parametrize("size", [1, 7, 1_024])
def test_sequences_have_the_events_of_the_log(tmp_path: Path, size: int) -> None:
    path = tmp_path / "a.cera"
    write_variety(path)
    with cerata.open(path, mode="r") as store:
        log = session_of(store).log
        head = log.head.seq
        assert check_equal(log, 1, head, size) > 2
        for first, last in ((1, 1), (700, 1_511), (head - 3, head), (1_499, 1_502)):
            check_equal(log, first, last, size)


def test_an_erased_event_is_read_without_its_payload() -> None:
    disk = Disk()
    with disk.log() as log:
        log.append([put(f"text {n}") for n in range(10)])
        log.append([put("single")])
    erase(disk, {2, 5, 11}, erased=11)
    with disk.log(mode="r") as log:
        assert check_equal(log, 1, 11, 512) == 1
        assert check_equal(log, 3, 11, 4) == 3


def test_a_payload_that_cannot_be_decoded_is_corrupt_by_column(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The column falls back to single events, whose error names the event."""
    encode = codec._encode

    def spoilt(value: object) -> bytes:
        body: object = cast("Payload[object]", value).body if isinstance(value, Payload) else None
        if isinstance(body, PutFrame) and body.text == "bad":
            return msgspec.msgpack.encode([1, 2])
        return encode(value)

    path = tmp_path / "a.cera"
    with cerata.open(path) as store:
        monkeypatch.setattr(codec, "_encode", spoilt)
        store.put_frames(["good", "bad", "good"])
        session_of(store).log.seal()
        monkeypatch.undo()
        (events,) = session_of(store).log.read_in_sequences(1, 3, 10)
        assert isinstance(events, ColumnarEvents)
        with pytest.raises(Corrupt, match="payload of event 2 cannot be decoded"):
            events.columns("putFrame")
    with (
        cerata.open(path, mode="r") as store,
        pytest.raises(Corrupt, match="damaged after event 1"),
    ):
        store.search("good")


def test_events_before_a_damaged_block_are_yielded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Damage of a later block of a sequence must not hide the events before it."""
    path = tmp_path / "a.cera"
    with cerata.open(path) as store:
        store.put_frames([f"{n} " + "x" * 100 for n in range(1_000)])
        session_of(store).log.seal()
    monkeypatch.setattr(Segment, "_read_block", damaged_block(2))
    with cerata.open(path, mode="r") as store:
        log = session_of(store).log
        assert seqs_before_damage(log.read_in_sequences(1, 1_000, 512)) == seqs_before_damage(
            [event] for event in log.read(1, 1_000)
        )


def damaged_block(bad: int) -> Callable[[Segment, int], tuple[bytes, bytes]]:
    """Return the read of a block, which refuses one of a segment."""
    read_block = Segment._read_block

    def damaged(segment: Segment, number: int) -> tuple[bytes, bytes]:
        if number == bad:
            raise Corrupt(f"block {bad} does not verify")
        return read_block(segment, number)

    return damaged


def seqs_before_damage(sequences: Iterable[Sequence[Event]]) -> list[int]:
    seqs: list[int] = []
    with pytest.raises(Corrupt):
        seqs.extend(event.seq for events in sequences for event in events)
    return seqs
