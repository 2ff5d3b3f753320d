"""Tuning by recorded recalls: the used frames of a recall answer its question, as of its basis."""

from typing import Any

import numpy as np
import pytest

import cerata
from cerata import Filter, InvalidInput, Profile, Store, agents
from cerata.memory.snapshot.reader import snapshot_of
from cerata.packs.tuning.candidates import candidates_of
from cerata.packs.tuning.judgements import UsedRecalls

PLAIN = Profile("plain", 1, {"text": 1})


def used(store: Store) -> list[Any]:
    recalls = UsedRecalls(snapshot_of(store), PLAIN)
    return [*recalls.questions()]


def test_a_use_counts_for_the_newest_earlier_recall_that_showed_the_frame() -> None:
    """An earlier recall had its chance, and a later one had not been asked."""
    with cerata.open(":memory:") as store:
        mill = store.put_frame("the mill")
        ferry = store.put_frame("the ferry")
        agents.record_access(store, mill)
        store.recall("mill?", record=True)
        store.recall("the mill?", record=True)
        store.recall("ferry?", record=True)
        agents.record_access(store, mill, ferry)
        store.recall("mill again?", record=True)
        found = [(each.request.query, [*each.items]) for each in used(store)]
        assert found == [("the mill?", [mill.id]), ("ferry?", [ferry.id])]


def test_a_recall_is_asked_at_its_basis() -> None:
    """Frames that were written later do not compete."""
    with cerata.open(":memory:") as store:
        mill = store.put_frame("the mill")
        context = store.recall("mill?", record=True)
        agents.record_access(store, mill)
        store.put_frame("the other mill")
        store.delete(mill)
        [question] = used(store)
        assert question.snapshot.basis == context.basis
        assert candidates_of(question).before == [mill.id]


def test_recorded_vectors_are_searched_again() -> None:
    """So no embedder is needed."""
    with cerata.open(":memory:") as store:
        near = store.put_frame(
            "near",
            vectors=cerata.Vectors(
                dense=[1, 0],
                space="toy",
                tokens=np.eye(2, dtype=np.float32),
                tokens_space="toy@1/2/maxsim/i1",
            ),
        )
        store.recall(
            "near what?",
            profile="default",
            record=True,
            vectors=cerata.Vectors(
                dense=[1, 0], tokens=np.eye(2, dtype=np.float32), token_weights=[1.0, 0.5]
            ),
        )
        agents.record_access(store, near)
        [question] = used(store)
        lanes = candidates_of(question).listed
        assert [name for name in lanes if lanes[name].any()] == ["text", "vectors", "late"]
        assert question.request.token_weights.tolist() == [1.0, 0.5]


def test_recalls_that_cannot_be_repeated_are_left_out_with_a_notice() -> None:
    """The log has a filter in a form that is only printed."""
    with cerata.open(":memory:") as store:
        for number in range(10):
            frame = store.put_frame(f"the mill {number}", tags=["x"])
            store.recall(f"mill {number}?", record=True)
            agents.record_access(store, frame)
        last = store.put_frame("the mill", tags=["x"])
        store.recall("mill?", where=Filter(tags=["x"]), record=True)
        agents.record_access(store, last)
        tuning = cerata.tuning.tune(store, profile=PLAIN)
        assert tuning.questions == 10
        assert tuning.notices == ("1 recalls with a filter or by vectors alone are left out",)


def test_too_few_used_recalls_are_refused() -> None:
    """The remedy names the calls that record."""
    with cerata.open(":memory:") as store, pytest.raises(InvalidInput, match="record_access"):
        cerata.tuning.tune(store)
