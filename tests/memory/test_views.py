"""Views of the past: at any event, every read says what the store said that stopped there."""

from hypothesis import given, settings
from hypothesis import strategies as st

import cerata
from cerata.engine.environment import Environment
from cerata.engine.events import JsonValue
from cerata.memory.view import View
from cerata.replay.fold import replay

from .acts import ACTS, Act, everything, perform


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
            assert seen == everything(View(store._log, replay(store._log, n), n))
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
