"""Feedback: the question's vector moves toward the best hits, as a plain reference says."""

import dataclasses
import math
import os
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cerata
from cerata import Filter, Profile, Store, View
from cerata.retrieval.ranking.profiles import PROFILES

from .test_vector_search import embed

SPACE = "toy@1/4/cosine"
QUESTION = [1.0, 0.2, 0.0, -0.1]
WORDS = ("tea", "cup", "iron", "gold")
BOTH = {"text": 0.3, "vectors": 0.7}
SIGNALS = {"count": 0.6, "short": -0.6}


def profile(feedback: int, **more: Any) -> Profile:
    options: dict[str, Any] = {"method": "zscore", "signals": SIGNALS, **more}
    return Profile("mine", 1, options.pop("weights", BOTH), feedback=feedback, **options)


Vectors = dict[int, list[float] | None]


def act(store: Store, source: Random, model: Vectors) -> None:
    """Put a frame, with a vector or without; delete one; or embed one again."""
    chosen = source.choice(("put", "put", "put", "delete", "embed"))
    vector: list[float] | None = [source.choice((-1.0, 0.0, 0.5, 2.0)) for _ in range(4)]
    if chosen == "put" or not model:
        vector = vector if source.random() < 0.8 else None
        more: dict[str, Any] = {} if vector is None else {"embedding": vector, "space": SPACE}
        text = " ".join(source.choices(WORDS, k=source.randint(1, 4)))
        role = source.choice(("Mina", None))
        model[store.put_frame(text, role=role, tags=[source.choice("xy")], **more).id] = vector
    elif chosen == "delete":
        frame = source.choice([*model])
        store.delete(frame)
        del model[frame]
    else:
        frame = source.choice([*model])
        assert vector is not None
        embed(store, frame, np.array(vector, np.float32), SPACE)
        model[frame] = vector


def moved(vectors: Sequence[Sequence[float]]) -> list[float] | None:
    """Return the question's vector plus half the mean of others, all of length 1."""
    units = [
        [number / math.hypot(*vector) for number in vector] for vector in vectors if any(vector)
    ]
    if not units:
        return None
    length = math.hypot(*QUESTION)
    return [
        number / length + sum(unit[place] for unit in units) / len(units) / 2
        for place, number in enumerate(QUESTION)
    ]


def is_right(view: View | Store, model: Vectors, feedback: int, tag: str | None = None) -> bool:
    """Compare with a search by the vector that the best hits of a search without feedback give."""
    ask: dict[str, Any] = {"k": 100, "where": None if tag is None else Filter(tags=[tag])}
    first = view.search("tea iron", embedding=QUESTION, profile=profile(0), **ask)
    best = [hit.id for hit in first[:feedback]]
    vector = moved([found for frame in best if (found := model[frame]) is not None])
    expected = view.search("tea iron", embedding=vector or QUESTION, profile=profile(0), **ask)
    hits = view.search("tea iron", embedding=QUESTION, profile=profile(feedback), **ask)
    assert [hit.id for hit in hits] == [hit.id for hit in expected]
    assert [hit.score for hit in hits] == pytest.approx([hit.score for hit in expected], abs=1e-5)
    # The cosine of a hit stays that of the question.
    cosines = {hit.id: hit.cosine for hit in first}
    assert {hit.id: hit.cosine for hit in hits} == cosines
    return True


@given(seed=st.integers(0, 10_000), feedback=st.integers(1, 4))
def test_scores_equal_the_reference_as_of_every_event(seed: int, feedback: int) -> None:
    """Also inside a transaction, with a filter, and for frames without vectors."""
    source = Random(seed)
    model: Vectors = {}
    states: dict[int, Vectors] = {}
    with cerata.open(":memory:") as store:
        model[store.put_frame("tea", embedding=[1, 0, 0, 0], space=SPACE).id] = [1, 0, 0, 0]
        for _ in range(10):
            act(store, source, model)
            states[store.head.seq] = dict(model)
        before = dict(model)
        with store.transaction():
            inside = dict(model)
            for _ in range(4):
                act(store, source, inside)
            assert is_right(store, inside, feedback)
            assert is_right(store, inside, feedback, "x")
        assert is_right(store.at(max(states)), before, feedback)
        for seq, state in states.items():
            assert is_right(store.at(seq), state, feedback)
            assert is_right(store.at(seq), state, feedback, "x")


@contextmanager
def large() -> Generator[Store]:
    """Yield a memory of 900 frames with vectors."""
    source = Random(3)
    with cerata.open(":memory:") as store:
        with store.transaction():
            for _ in range(900):
                vector = [source.gauss(0, 1) for _ in range(4)]
                store.put_frame(source.choice(WORDS), embedding=vector, space=SPACE)
        yield store


@pytest.fixture
def topic() -> Any:
    """A memory in which the best hit, by words, has another vector than the question."""
    with cerata.open(":memory:") as store:
        store.put_frame("green tea, tea", embedding=[0.0, 1.0], space="toy")
        store.put_frame("a pot", embedding=[0.3, 0.9], space="toy")
        store.put_frame("the rail", embedding=[0.9, -0.1], space="toy")
        store.put_frame("a road", embedding=[1.0, -1.0], space="toy")
        yield store


def by_words(feedback: int) -> Profile:
    return profile(feedback, weights={"text": 5, "vectors": 1}, signals={})


def order(store: Store, feedback: int, **more: Any) -> list[int]:
    ask: dict[str, Any] = {"embedding": [1, 0.3], "profile": by_words(feedback), **more}
    return [hit.id for hit in store.search("tea", **ask)]


def test_feedback_finds_what_is_near_the_best_hit(topic: Store) -> None:
    """The test fails if feedback is off."""
    assert order(topic, 0) == [1, 3, 2, 4]
    assert order(topic, 1) == [1, 2, 3, 4]


def test_documents_have_feedback_which_changes_the_order() -> None:
    documents = PROFILES["documents"]
    with large() as store:
        ask: dict[str, Any] = {"embedding": [1, 0, 0, 0.5]}
        hits = store.search("gold", **ask, profile=documents)
        off = dataclasses.replace(documents, feedback=0)
        assert [*hits] != [*store.search("gold", **ask, profile=off)]
        assert len(store.explain(hits[0]).feedback) == 3


def test_a_search_by_vectors_alone_has_cosines(topic: Store) -> None:
    assert order(topic, 0, mode="vector") == order(topic, 1, mode="vector")
    hits = topic.search("tea", embedding=[1, 0.3], mode="vector", profile=by_words(1))
    assert [hit.score for hit in hits] == [hit.cosine for hit in hits]


def test_an_explanation_names_the_frames_of_the_feedback(topic: Store) -> None:
    """The score of the lane is that of the moved vector; `Hit.cosine` is that of the question."""
    hit = topic.search("tea", embedding=[1, 0.3], profile=by_words(1))[1]
    explanation = topic.explain(hit)
    assert explanation.feedback == (1,)
    assert "question moved toward #1" in str(explanation)
    assert explanation.to_dict()["feedback"] == [1]
    [share] = [share for share in explanation.lanes if share.lane == "vectors"]
    assert share.score is not None
    assert hit.cosine is not None
    question, best = np.array([1, 0.3]) / math.hypot(1, 0.3), np.array([0, 0.5])
    near = np.array([0.3, 0.9]) / math.hypot(0.3, 0.9)
    assert share.score == pytest.approx(
        float((question + best) @ near) / float(np.linalg.norm(question + best)), abs=1e-6
    )
    assert hit.cosine == pytest.approx(float(question @ near), abs=1e-6)
    off = topic.explain(topic.search("tea", embedding=[1, 0.3], profile=by_words(0))[1])
    assert off.feedback == ()
    assert "moved" not in str(off)


def test_frames_of_another_scope_or_outside_a_filter_move_nothing(topic: Store) -> None:
    topic.put_frame("plain", tags=["x"], embedding=[1, 0], space="toy")
    topic.put_frame("plain iron", tags=["x"], embedding=[0, 1], space="toy")
    hit = topic.search("tea", embedding=[1, 0.3], profile=profile(2), where=Filter(tags=["x"]))[0]
    assert set(topic.explain(hit).feedback) == {5, 6}


def test_vectors_without_direction_move_nothing() -> None:
    """A vector of length 0 has no unit vector."""
    with cerata.open(":memory:") as store:
        store.put_frame("tea", embedding=[0, 0], space="toy")
        store.put_frame("cup", embedding=[1, 0], space="toy")
        assert order(store, 1) == order(store, 0)
        for vector in ([0, 0], [1e38, 1e38], [1e-38, 0]):
            assert len(order(store, 2, embedding=vector)) == 2


def test_inner_products_are_moved_too() -> None:
    with cerata.open(":memory:") as store:
        for text, vector in (("tea", [0, 9]), ("a", [3, 0]), ("b", [1, 4])):
            store.put_frame(text, embedding=vector, space="toy@1/2/dot")
        assert order(store, 0) == [1, 2, 3]
        assert order(store, 1) == [1, 3, 2]


ELSEWHERE = """
import sys, cerata
from cerata import Profile
with cerata.open(sys.argv[1], mode="r") as store:
    for n in range(1, store.head.seq + 1):
        profile = Profile("mine", 1, {"text": 0.3, "vectors": 0.7}, method="zscore", feedback=3)
        print([(hit.id, hit.score) for hit in store.at(n).search(
            "tea iron", embedding=[1.0, 0.2, 0.0, -0.1], profile=profile)])
"""


def test_two_processes_return_equal_scores(tmp_path: Path) -> None:
    """As of every event, whatever the seed of hashes."""
    path = tmp_path / "m.cera"
    source = Random(5)
    with cerata.open(path) as store:
        model: Vectors = {}
        store.put_frame("tea", embedding=[1, 0, 0, 0], space=SPACE)
        for _ in range(20):
            act(store, source, model)
    results = [
        subprocess.run(
            [sys.executable, "-c", ELSEWHERE, str(path)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert results[0] == results[1]
    assert results[0].count(b"[(") > 10


def test_a_least_cosine_is_of_the_question_and_ends_the_search() -> None:
    """The ranking of the moved vector has other scores, and a least one of them says nothing."""
    with large() as store:
        ask: dict[str, Any] = {"embedding": [1, 0, 0, 0.5], "profile": profile(3)}
        cosines = [hit for hit in store.search("gold", k=9_999, **ask) if hit.cosine is not None]
        for least in (0.2, 0.6, 0.95, 0.9999):
            within = {hit.id for hit in cosines if (hit.cosine or 0) >= least}
            hits = store.search("gold", k=900, min_cosine=least, **ask)
            assert {hit.id for hit in hits} == within
        few = store.search("gold", k=900, min_cosine=0.98, **ask)
        result: Any = few[0].made_by
        assert 0 < len(few) < 30
        assert len(result.blocks) < 3
