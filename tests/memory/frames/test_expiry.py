"""Expiry: reads of many frames leave an expired frame out, as of any basis."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import numpy as np
import pytest

import cerata
from cerata import Filter, InvalidInput, Store
from cerata.cli import main
from cerata.engine.disk.environment import Environment
from cerata.engine.disk.memory_storage import MemoryStorage
from cerata.engine.events import PutFrame, RecallContext
from cerata.projections.columnar.times import to_datetime
from cerata.projections.frames.reader import Frames

from ...clocks import StandingClock

START = datetime(2026, 3, 1, 9, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.fixture
def clock() -> StandingClock:
    return StandingClock(int(START.timestamp()) * 1_000_000)


@pytest.fixture
def store(clock: StandingClock) -> Iterator[Store]:
    environment = Environment(MemoryStorage(), clock, Random(1).randbytes)
    with cerata.open(":memory:", environment=environment) as opened:
        yield opened


def _pass(clock: StandingClock, time: timedelta) -> None:
    clock.time_us += time // timedelta(microseconds=1)


def _read(memory: "Store | cerata.View") -> dict[str, object]:
    """Return the ids of every read of many frames."""
    return {
        "count": memory.count(),
        "frames": [frame.id for frame in memory.frames()],
        "closed": [
            frame.id
            for frame in memory.frames(where=Filter(include_superseded=True, include_deleted=True))
        ],
        "timeline": [entry.id for entry in memory.history.timeline().entries],
        "search": [hit.id for hit in memory.search("tea")],
        "vectors": [hit.id for hit in memory.search(np.array([1.0, 0.0]))],
        "recall": [item.id for item in memory.recall("tea").items],
        "newest": [item.id for item in memory.recall("?").items],
        "find_uri": memory.files.by_uri("a"),
        "find_content": memory.files.by_content(cerata.content_hash("tea at four")),
    }


def _put_tea(store: Store) -> int:
    store.put_frame("coffee at ten", vectors=cerata.Vectors(dense=[0.0, 1.0], space="s"))
    vector = [1.0, 0.0]
    expires = START + HOUR
    return store.put_frame(
        "tea at four",
        uri="a",
        vectors=cerata.Vectors(dense=vector, space="s"),
        options=cerata.PutOptions(expires=expires),
    ).id


def test_every_read_of_many_leaves_an_expired_frame_out(store: Store, clock: StandingClock) -> None:
    tea = _put_tea(store)
    before = _read(store)
    assert all(tea in ids for ids in before.values() if isinstance(ids, list)), before
    kept = store.at(store.head.seq)
    _pass(clock, HOUR)
    after = _read(store)
    assert not any(tea in ids for ids in after.values() if isinstance(ids, list)), after
    assert after["count"] == (1, 1)
    # A view's "now" is the recorded time of its basis, so the past does not change.
    assert _read(kept) == before
    frame = store.frame(tea)
    assert (frame.text, frame.expires) == ("tea at four", START + HOUR)
    # A frame is active exactly if `count` counts it as current.
    assert (frame.active, frame.is_expired, frame.closed) == (False, True, None)
    assert (kept.frame(tea).active, kept.frame(tea).is_expired) == (True, False)
    assert frame.to_dict()["is_expired"] is True
    assert "is_expired" not in kept.frame(tea).to_dict()
    assert store.files.content(tea) == b"tea at four"
    assert [version.is_expired for version in store.history.of(tea)] == [True]
    assert store.upkeep.sweep().deleted == (tea,)
    swept = store.frame(tea)
    assert (swept.active, swept.is_expired, swept.closed is None) == (False, False, False)
    assert store.count() == (1, 1)


def test_the_command_line_calls_an_expired_frame_expired(
    clock: StandingClock, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It was shown as current."""
    path = str(tmp_path / "memory.cera")
    with cerata.open(path, environment=Environment(clock=clock)) as opened:
        opened.put_frame("tea", options=cerata.PutOptions(expires=START + HOUR))
        opened.put_frame("milk", options=cerata.PutOptions(expires="9999-01-01"))
    for verb, expected in (
        ("show 1", "expired: 2026-03-01 10:00:00 UTC"),
        ("time history 1", "put  expired"),
        ("show 2", "expires: 9999-01-01 00:00:00 UTC"),
        ("time history 2", "put  current"),
    ):
        assert main(["-f", path, *verb.split()]) == 0
        text = capsys.readouterr().out
        assert expected in text
        assert "closed" not in text
        assert main(["-f", path, *verb.split(), "--json"]) == 0
        assert ('"is_expired": true' in capsys.readouterr().out) == verb.endswith("1")


def test_a_basis_after_the_expiry_leaves_the_frame_out(store: Store, clock: StandingClock) -> None:
    tea = _put_tea(store)
    _pass(clock, HOUR)
    later = store.put_frame("later").id
    assert [frame.id for frame in store.at(tea).frames()] == [tea, 1]
    assert [frame.id for frame in store.at(later).frames()] == [later, 1]


def test_no_other_score_changes(store: Store, clock: StandingClock) -> None:
    store.put_frame("tea for two, and two for tea")
    _put_tea(store)
    scores = {hit.id: hit.score for hit in store.search("tea")}
    _pass(clock, HOUR)
    assert [(hit.id, hit.score) for hit in store.search("tea")] == [(1, scores[1])]
    explained = store.history.explain(store.search("tea", mode="text")[0])
    assert explained.lanes[0].left_out.expired == 1


def test_a_transaction_reads_by_its_time_of_write(store: Store, clock: StandingClock) -> None:
    tea = _put_tea(store)
    _pass(clock, HOUR)
    with store.transaction():
        pending = store.put_frame(
            "tea at five", uri="a", options=cerata.PutOptions(expires=START + 3 * HOUR)
        )
        assert [frame.id for frame in store.frames()] == [pending.id, 1]
        plain = store.put_frame("plain")
        assert [frame.id for frame in store.frames()] == [plain.id, pending.id, 1]
        assert store.files.by_uri("a") == [pending.id]
        assert store.frame(tea).id == tea


def test_pending_frames_without_expiry_stay(store: Store, clock: StandingClock) -> None:
    # An empty tuple as an index marked every row of the drafts as expired.
    _put_tea(store)
    _pass(clock, HOUR)
    with store.transaction():
        plain = store.put_frame("plain")
        assert [frame.id for frame in store.frames()] == [plain.id, 1]


def test_a_past_expiry_is_refused(store: Store) -> None:
    writes: tuple[Callable[[], object], ...] = (
        lambda: store.put_frame("a", options=cerata.PutOptions(expires=START)),
        lambda: store.put_frames(["a"], options=cerata.PutOptions(expires=START - HOUR)),
        lambda: store.remember("a", options=cerata.PutOptions(expires="2026-02-28")),
        lambda: store.append(PutFrame(text="a", expires=5)),
    )
    for write in writes:
        with pytest.raises(InvalidInput, match="not after"):
            write()
    assert store.head.seq == 0


def test_a_repeated_key_is_answered_after_the_expiry(store: Store, clock: StandingClock) -> None:
    first = store.put_frame("a", options=cerata.PutOptions(expires=START + HOUR, key="k"))
    with store.transaction(key="block") as block:
        store.put_frame("b", options=cerata.PutOptions(expires=START + HOUR))
    _pass(clock, 2 * HOUR)
    assert (
        store.put_frame("a", options=cerata.PutOptions(expires=START + HOUR, key="k")).id
        == first.id
    )
    with store.transaction(key="block") as repeated:
        store.put_frame("b", options=cerata.PutOptions(expires=START + HOUR))
    assert block.receipt is not None
    assert repeated.receipt is not None
    assert repeated.receipt.ids == block.receipt.ids


def test_a_document_expires_with_its_chunks_and_can_be_remembered_again(
    store: Store, clock: StandingClock
) -> None:
    text = "\n\n".join(f"# Part {part}\n\n" + "tea " * 300 for part in range(4))
    first = store.remember(text, uri="d", options=cerata.PutOptions(expires=START + HOUR))
    assert len(store.search("tea")) == len(first.ids) - 1
    _pass(clock, HOUR)
    assert store.search("tea") == []
    again = store.remember(text, uri="d", options=cerata.PutOptions(expires=START + 2 * HOUR))
    assert (again.added, again.replaced) == (True, (first.id,))
    assert len(store.search("tea")) == len(first.ids) - 1


def test_an_expired_frame_is_replaced_by_its_uri(store: Store, clock: StandingClock) -> None:
    tea = _put_tea(store)
    _pass(clock, HOUR)
    assert store.put_frame(
        "tea at six", uri="a", options=cerata.PutOptions(replace=True)
    ).replaced == (tea,)


def test_a_filter_still_applies(store: Store, clock: StandingClock) -> None:
    for tag in ("x", "y"):
        store.put_frame(tag, tags=[tag], options=cerata.PutOptions(expires=START + HOUR))
        store.put_frame(tag, tags=[tag])
    _pass(clock, HOUR)
    assert [frame.id for frame in store.frames(Filter(tags=["x"]))] == [2]
    assert [frame.id for frame in store.frames(~Filter(tags=["x"]))] == [4]


def test_a_recorded_recall_is_repeated_byte_for_byte(store: Store, clock: StandingClock) -> None:
    tea = _put_tea(store)
    question = cerata.query("created:2026-03-01")
    where = Filter(recorded=(START, None))
    _pass(clock, HOUR - timedelta(seconds=1))
    shown = store.recall(question, where=where, floor=False, record=True)
    _pass(clock, timedelta(minutes=1))
    # The log did not grow before the expiry: only "now" tells both states apart.
    hidden = store.recall(question, where=where, floor=False)
    assert {item.id for item in shown.items} == {1, tea}
    assert [item.id for item in hidden.items] == [1]
    for context in (shown, hidden):
        again = store.at(context).recall(question, where=where, floor=False)
        assert again.text == context.text
        assert again.now == context.now
    [event] = [event for event in store.log() if event.type == "recall"]
    body = event.body
    assert isinstance(body, RecallContext)
    assert body.now is not None
    assert body.now == int((START + HOUR).timestamp() - 1) * 1_000_000
    day = int(datetime(2026, 3, 1, tzinfo=UTC).timestamp()) * 1_000_000
    assert [(time.time, time.start, time.end) for time in body.times] == [
        ("created", day, day + 86_400_000_000),
        ("recorded", int(START.timestamp()) * 1_000_000, None),
    ]
    assert store.at(body.basis, now=to_datetime(body.now)).recall(question, where=where).text == (
        shown.text
    )


def test_a_memory_without_expiry_pays_nothing(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.put_frame("tea at four", uri="a", vectors=cerata.Vectors(dense=[1.0, 0.0], space="s"))

    def expired(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(Frames, "expired", expired)
    assert all(ids for ids in _read(store).values())
