"""Views of the past: at any event, every read says what the store said that stopped there."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cerata
from cerata.engine.disk.environment import Environment
from cerata.engine.events import JsonValue
from cerata.engine.format.toc import Ref
from cerata.engine.log_file.file import LogFile
from cerata.replay import fold
from cerata.replay.checkpoint import Chunk, read_chunk

from ..acts import ACTS, Act, everything, perform


@pytest.mark.slow("compares every read at every event")
@settings(max_examples=25)
@given(st.lists(ACTS, min_size=1, max_size=9), st.integers(0, 8))
def test_every_read_at_n_is_that_of_the_store_that_stopped_at_n(
    acts: list[Act], saved_after: int
) -> None:
    """At ends of batches and inside them, from memory, a checkpoint and its tail, and a replay."""
    environment = Environment.in_memory()
    stopped: dict[int, dict[str, JsonValue]] = {}
    with cerata.open("m", environment=environment) as store:
        stopped[0] = everything(store)
        for number, act in enumerate(acts):
            perform(store, act)
            stopped[store.head.seq] = everything(store)
            if number == saved_after:
                store.checkpoint()
        held = {n: store.at(n) for n in range(store.head.seq + 1)}
        for n, view in held.items():
            seen = everything(view)
            assert seen == everything(store.stream.replay(n))
            assert n not in stopped or seen == stopped[n]
    with cerata.open("m", mode="r", environment=environment) as reopened:
        for n, said in stopped.items():
            assert everything(reopened.at(n)) == said


def test_a_view_is_safe_to_hold_and_to_share_while_others_write() -> None:
    """Its state is a prefix of what grows; nothing of it is copied, and nothing changes."""
    with cerata.open(":memory:") as store:
        store.put_frames([f"harbour {number}" for number in range(200)])
        view = store.at("HEAD")
        hits = [hit.to_dict() for hit in view.search("harbour", k=300)]
        for number in range(1, 200):
            store.supersede(number, f"harbour bridge {number}")
        assert [hit.to_dict() for hit in view.search("harbour", k=300)] == hits
        assert len(view) == 200
        assert len(hits) == 200


def test_a_replay_takes_any_basis_and_no_checkpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is `at` from the events alone: the proof by hand that a checkpoint only saves time."""
    scope = {"tenant": "default", "user_id": "u1"}
    environment = Environment.in_memory()
    with cerata.open("m", environment=environment) as store:
        first = store.put_frame("the harbour opens")
        store.put_frame("the bridge opens", options=cerata.PutOptions(scope=scope))
        store.history.tag("opened")
        store.delete(first)
        for basis in (first, "opened", "HEAD~1", "HEAD", 2):
            assert everything(store.stream.replay(basis)) == everything(store.at(basis))
        assert store.stream.replay(first).now == store.at(first).now
        store.checkpoint()
    loaded: list[Ref] = []

    def counted(log_file: LogFile, ref: Ref) -> Chunk:
        loaded.append(ref)
        return read_chunk(log_file, ref)

    monkeypatch.setattr(fold, "read_chunk", counted)
    with cerata.open("m", environment=environment, scope=scope) as store:
        assert [frame.text for frame in store.stream.replay().frames()] == ["the bridge opens"]
        assert loaded == []
        assert [frame.text for frame in store.at("HEAD").frames()] == ["the bridge opens"]
        assert len(loaded) == 1
