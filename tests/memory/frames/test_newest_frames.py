"""The newest frames and messages: their order, and a cost that does not grow with the frames."""

from collections.abc import Iterator
from random import Random

import numpy as np
import pytest

import cerata
from cerata import agents
from cerata.memory.snapshot.layer import Layer
from cerata.memory.snapshot.layers import Layers
from cerata.memory.snapshot.reader import snapshot_of
from cerata.projections.columnar.columns import I64, Mask

COUNT = 1_200


@pytest.fixture(scope="module")
def store() -> Iterator[cerata.Store]:
    with cerata.open(":memory:") as opened:
        ids = opened.put_frames([f"text {number}" for number in range(COUNT)]).ids
        for number in range(0, COUNT, 100):
            opened.supersede(ids[number], f"new {number}")
        yield opened


def test_messages_are_in_order_of_their_first_versions(seed: int) -> None:
    """Compared with a sort of all messages; versions follow versions, some are deleted."""
    dice = Random(seed)
    with cerata.open(":memory:") as opened:
        firsts: dict[int, int] = {}
        current: list[int] = []
        for number in range(400):
            replaced = current.pop(dice.randrange(len(current))) if number % 3 == 2 else None
            if replaced is None:
                frame = opened.put_frame(str(number), role="user").id
            else:
                frame = opened.supersede(replaced, str(number)).id
            firsts[frame] = frame if replaced is None else firsts[replaced]
            current.append(frame)
        with opened.transaction():
            oldest = min(current, key=firsts.__getitem__)
            opened.supersede(oldest, "pending")
            opened.put_frame("last", role="user")
            ordered = [message["content"] for message in agents.messages(opened)]
            assert ordered[0] == "pending"
            assert ordered[-1] == "last"
        current.remove(oldest)
        expected = sorted(current, key=lambda frame: (firsts[frame], frame))
        texts = [opened.frame(frame).text for frame in expected]
        assert [message["content"] for message in agents.messages(opened)][1:-1] == texts


def rows_read(store: cerata.Store, monkeypatch: pytest.MonkeyPatch) -> int:
    """Return the rows whose ids a read of the ten newest frames computes."""
    count = 0
    ids = Layer.ids

    def counted(layer: Layer, rows: I64) -> I64:
        nonlocal count
        count += len(rows)
        return ids(layer, rows)

    monkeypatch.setattr(Layer, "ids", counted)
    assert len(store.history.last(10)) == 10
    return count


def test_the_newest_frames_are_read_from_the_end(
    store: cerata.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert rows_read(store, monkeypatch) <= 256


def test_a_read_of_all_rows_is_seen(store: cerata.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def newest(layers: Layers, masks: tuple[Mask, ...], *, by_first: bool = False) -> Iterator[int]:
        assert not by_first
        yield from layers.base.ids(np.flatnonzero(masks[0])[::-1]).tolist()

    monkeypatch.setattr(Layers, "newest", newest)
    assert rows_read(store, monkeypatch) > 256


def test_every_frame_is_read_once(store: cerata.Store) -> None:
    """The rows of several steps, each larger than the one before."""
    ids = [frame.id for frame in store.frames()]
    assert ids == sorted(ids, reverse=True)
    assert len(ids) == store.count()[0] == COUNT
    assert ids == [*snapshot_of(store).layers.newest(snapshot_of(store).layers.admitted())]
