"""Raced versions: another writer's event between the look-up and the append changes nothing away.

`update` and `restore` read the frames that they carry over before the lock. Each test lets another
writer append at one of two places: before the rule reads the log, and right before the lock.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest

import cerata
from cerata import Conflict, Draft, Store
from cerata.engine.events import Attachment, Embedding, PutEmbedding
from cerata.engine.integrity import hash_bytes
from cerata.memory.batch.frame_rules import VersionRules

Race = Callable[[Callable[[], object]], list[object]]


@pytest.fixture
def rival(tmp_path: Path) -> Iterator[Store]:
    """Another handle of the file."""
    with cerata.open(tmp_path / "memory.cera") as opened:
        yield opened


@pytest.fixture
def store(tmp_path: Path, rival: Store) -> Iterator[Store]:
    with cerata.open(tmp_path / "memory.cera") as opened:
        yield opened


@pytest.fixture(params=["take", "check"])
def race(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Race:
    """Return a function that lets another writer act once, in the next call with a version."""

    def begin(act: Callable[[], object]) -> list[object]:
        results: list[object] = []
        step: Callable[..., Any] = getattr(VersionRules, request.param)

        def raced(self: VersionRules, *arguments: Any) -> object:
            result = step(self, *arguments)
            if result and not results:
                results.append(None)
                results[0] = act()
            return result

        monkeypatch.setattr(VersionRules, request.param, raced)
        return results

    return begin


def _id(results: list[object]) -> int:
    [receipt] = results
    assert isinstance(receipt, cerata.Receipt)
    return receipt.id


def _vector(store: Store, frame: int) -> None:
    data = np.array([0, 1], "<f4").tobytes()
    embedding = Embedding("s", "f4", 2, Attachment(hash_bytes(data), len(data)))
    store.append(Draft(PutEmbedding(frame=frame, embedding=embedding), attachments=(data,)))


def test_a_frame_put_below_at_the_last_moment_moves_along(
    store: Store, rival: Store, race: Race
) -> None:
    """It was closed with the old version."""
    root = store.put_frame("root").id
    child = race(lambda: rival.put_frame("child", options=cerata.PutOptions(parent=root)))
    new = store.update(root, tags=["x"])
    assert new.replaced == (_id(child), root)
    assert {frame.text: frame.parent for frame in store.frames()} == {"root": None, "child": new.id}


def test_a_frame_put_below_a_frame_that_is_left_out_moves_along(
    store: Store, rival: Store, race: Race
) -> None:
    root = store.put_frame("root").id
    closed = store.put_frame("closed", options=cerata.PutOptions(parent=root)).id
    store.delete(closed)
    race(lambda: rival.put_frame("child", options=cerata.PutOptions(parent=closed)))
    new = store.update(root, tags=["x"])
    assert {frame.text: frame.parent for frame in store.frames()} == {"root": None, "child": new.id}


def test_a_vector_put_at_the_last_moment_is_carried_over(
    store: Store, rival: Store, race: Race
) -> None:
    """It was left behind at the old version."""
    root = store.put_frame("root").id
    race(lambda: _vector(rival, root))
    new = store.update(root, tags=["x"])
    assert str(store.embeddings.of(new, "s")) == "[0. 1.]"


def test_two_handles_restore_a_frame_once(store: Store, rival: Store, race: Race) -> None:
    """Both copies were current."""
    frame = store.put_frame("tea").id
    store.delete(frame)
    copy = race(lambda: rival.history.restore(frame))
    with pytest.raises(Conflict, match="was restored as"):
        store.history.restore(frame)
    assert [current.id for current in store.frames()] == [_id(copy)]


def test_a_restored_frame_does_not_join_a_new_frame_of_its_uri(
    store: Store, rival: Store, race: Race
) -> None:
    frame = store.put_frame("old", uri="a").id
    store.delete(frame)
    new = race(lambda: rival.put_frame("new", uri="a", options=cerata.PutOptions(replace=True)))
    with pytest.raises(Conflict, match="has the URI"):
        store.history.restore(frame)
    assert store.files.by_uri("a") == [_id(new)]


def test_unrelated_writes_cause_no_second_attempt(store: Store, rival: Store, race: Race) -> None:
    """Every write of any writer did, once a frame had frames below."""
    root = store.put_frame("root").id
    child = store.put_frame("child", options=cerata.PutOptions(parent=root)).id
    race(lambda: rival.put_frame("unrelated"))
    new = store.update(root, tags=["x"])
    assert new.replaced == (child, root)
    assert store.head.seq == 3 + len(new.seqs)


@pytest.mark.parametrize("act", ["child", "vector", "restored", "unrelated"])
def test_a_block_that_was_raced_raises_and_writes_nothing(store: Store, act: str) -> None:
    """A frame that was put below during the block was closed by its end."""
    root, gone = store.put_frame("root").id, store.put_frame("gone").id
    store.delete(gone)
    acts: dict[str, Callable[[], object]] = {
        "child": lambda: store.put_frame("child", options=cerata.PutOptions(parent=root)),
        "vector": lambda: _vector(store, root),
        "restored": lambda: store.history.restore(gone),
        "unrelated": lambda: store.put_frame("unrelated"),
    }

    def block() -> None:
        with store.transaction():
            store.update(root, tags=["x"])
            store.history.restore(gone)
            thread = Thread(target=acts[act])
            thread.start()
            thread.join()

    if act == "unrelated":
        block()
        assert len(store) == 3
        return
    with pytest.raises(Conflict, match="new version"):
        block()
    assert store.frame(root).active
    assert store.head.seq == 4


def test_without_the_rule_the_frame_below_is_closed(
    store: Store, rival: Store, race: Race, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Breaks the mechanism, to show that the first test would notice.
    root = store.put_frame("root").id
    race(lambda: rival.put_frame("child", options=cerata.PutOptions(parent=root)))

    def admit(*_: object) -> None:
        return

    monkeypatch.setattr(VersionRules, "_check_raced", admit)
    store.update(root, tags=["x"])
    assert [frame.text for frame in store.frames()] == ["root"]
