"""Vectors of neighbouring turns: equal to a plain reference, explained, and of use."""

import dataclasses
import math
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cerata
from cerata import Filter, Profile, Store, View
from cerata.memory.search import vector_lane
from cerata.projections.columnar.columns import F64
from cerata.projections.columnar.turn_order import turn_order
from cerata.projections.vectors import nearest
from cerata.projections.vectors import nearest as vector_window
from cerata.projections.vectors.columns import Matrix
from cerata.projections.vectors.nearest import Metric, QueryVector

from .test_vector_search import embed

SPACE = "toy@1/4/cosine"
QUESTION = [1.0, 0.2, 0.0, -0.1]
BEFORE = [0.5 * 0.7**step for step in range(6)]
AFTER = [0.3 * 0.7**step for step in range(6)]


PROFILE = Profile("mine", 1, {"vectors": 1})


@dataclasses.dataclass
class Turn:
    """A frame of the model: its conversation, its vector and its tag."""

    talk: str | None
    vector: list[float] | None
    tag: str


Model = dict[int, Turn]


def act(store: Store, source: Random, model: Model) -> None:
    """Put a turn or a note, with a vector or without; delete one; or embed one again."""
    chosen = source.choice(("put", "put", "put", "delete", "embed"))
    vector: list[float] | None = [source.choice((-1.0, 0.0, 0.5, 2.0)) for _ in range(4)]
    if chosen == "put" or not model:
        vector = vector if source.random() < 0.8 else None
        talk, tag = source.choice(("a", "b", None)), source.choice("xy")
        more: dict[str, Any] = (
            {} if vector is None else {"vectors": cerata.Vectors(dense=vector, space=SPACE)}
        )
        place: dict[str, Any] = (
            {"role": "mina", "options": cerata.PutOptions(track=talk)}
            if talk
            else {"options": cerata.PutOptions(track="a")}
        )
        model[store.put_frame("text", tags=[tag], **place, **more).id] = Turn(talk, vector, tag)
    elif chosen == "delete":
        frame = source.choice([*model])
        store.delete(frame)
        del model[frame]
    else:
        frame = source.choice([*model])
        embed(store, frame, np.array(vector, np.float32), SPACE)
        model[frame].vector = vector


def cosine(vector: list[float] | None) -> float | None:
    if vector is None:
        return None
    lengths = math.hypot(*vector) * math.hypot(*QUESTION)
    return sum(map(math.prod, zip(vector, QUESTION, strict=True))) / lengths if lengths else 0.0


def expected(model: Model, tag: str | None) -> dict[int, float]:
    """Return the scores of the frames with a vector, by the formula."""
    scores: dict[int, float] = {}
    for frame, turn in model.items():
        own = cosine(turn.vector)
        if own is None or tag not in (None, turn.tag):
            continue
        talk = [near for near in model if turn.talk and model[near].talk == turn.talk]
        place = talk.index(frame) if talk else 0
        total, shares = own, 1.0
        for step in range(6):
            for near, share in ((place - step - 1, BEFORE[step]), (place + step + 1, AFTER[step])):
                if (
                    0 <= near < len(talk)
                    and (score := cosine(model[talk[near]].vector)) is not None
                ):
                    total += share * score
                    shares += share
        scores[frame] = total / shares
    return scores


def is_right(view: View | Store, model: Model, tag: str | None = None) -> bool:
    """Compare a search with the reference; a failed assertion shows the difference."""
    where = None if tag is None else Filter(tags=[tag])
    hits = view.search(
        "nothing",
        profile=PROFILE,
        k=100,
        where=where,
        vectors=cerata.Vectors(dense=QUESTION),
        page=cerata.Page(group_by="frame"),
    )
    means = expected(model, tag)
    least = {frame: max(mean, 0.0) for frame, mean in means.items()}
    assert {hit.id: hit.score for hit in hits} == pytest.approx(least, abs=2e-7)
    for hit in hits[-1:]:
        [lane] = view.history.explain(hit).lanes
        assert lane.score == pytest.approx(means[hit.id], abs=2e-7)
        assert hit.score == lane.added == lane.share == max(lane.score or 0.0, 0.0)
    assert {hit.id: hit.cosine for hit in hits} == pytest.approx(
        {hit.id: cosine(model[hit.id].vector) for hit in hits}, abs=2e-7
    )
    order = [(-hit.score, hit.id < 0, abs(hit.id)) for hit in hits]
    assert order == sorted(order)
    return True


def copied(model: Model) -> Model:
    return {frame: dataclasses.replace(turn) for frame, turn in model.items()}


@given(seed=st.integers(0, 10_000))
def test_scores_equal_the_reference_as_of_every_event(seed: int) -> None:
    """Also inside a transaction, and with a filter."""
    source = Random(seed)
    model: Model = {}
    states: dict[int, Model] = {}
    with cerata.open(":memory:") as store:
        first = store.put_frame(
            "first",
            role="mina",
            vectors=cerata.Vectors(dense=[1] * 4, space=SPACE),
            options=cerata.PutOptions(track="a"),
        )
        model[first.id] = Turn("a", [1.0] * 4, "")
        for _ in range(12):
            act(store, source, model)
            states[store.head.seq] = copied(model)
        before = copied(model)
        with store.transaction():
            inside = copied(model)
            for _ in range(4):
                act(store, source, inside)
            assert is_right(store, inside)
            assert is_right(store, inside, "x")
        assert is_right(store.at(max(states)), before)
        for seq, state in states.items():
            assert is_right(store.at(seq), state)
            assert is_right(store.at(seq), state, "x")


def chat(store: Store, count: int) -> None:
    """Put a conversation of turns with vectors."""
    source = Random(2)
    with store.transaction():
        for place in range(count):
            vector = [source.gauss(0, 1) for _ in range(4)]
            who = ("mina", "olaf")[place % 2]
            store.put_frame(
                "turn",
                role=who,
                vectors=cerata.Vectors(dense=vector, space=SPACE),
                options=cerata.PutOptions(track="a"),
            )


def test_of_many_turns_every_returned_score_is_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    """The best by themselves choose the turns, and no filter changes a score."""
    with cerata.open(":memory:") as store:
        chat(store, 400)
        ask: dict[str, Any] = {"vectors": cerata.Vectors(dense=QUESTION), "profile": PROFILE}
        exact = {
            hit.id: hit.score
            for hit in store.search("x", k=400, page=cerata.Page(group_by="frame"), **ask)
        }
        monkeypatch.setattr(vector_lane, "ALL_ROWS_MAX", 100)
        monkeypatch.setattr(vector_lane, "BEST_ALONE", 20)
        hits = store.search("x", k=20, page=cerata.Page(group_by="frame"), **ask)
        assert {hit.id: hit.score for hit in hits}.items() <= exact.items()
        assert len(hits) == 20


def test_a_turn_beside_close_turns_is_found_first() -> None:
    """The test fails if the window is off."""
    with cerata.open(":memory:") as store:
        for vector in ([1, 0.1], [0.5, 0.9], [1, 0]):
            store.put_frame(
                "t",
                role="mina",
                vectors=cerata.Vectors(dense=vector, space="toy"),
                options=cerata.PutOptions(track="a"),
            )
        store.put_frame("alone", vectors=cerata.Vectors(dense=[0.7, 0.7], space="toy"))
        ask: dict[str, Any] = {"vectors": cerata.Vectors(dense=[1, 0])}
        hits = store.search("x", profile=PROFILE, page=cerata.Page(group_by="frame"), **ask)
        off = store.search("x", mode="vector", page=cerata.Page(group_by="frame"), **ask)
        assert [hit.id for hit in off] == [3, 1, 4, 2]
        assert [hit.id for hit in hits] == [1, 3, 2, 4]
        explanation = store.history.explain(hits[2])
        assert explanation.beside == (1, 3)
        assert "mean of it and, by distance, the turns beside it: #1, #3" in str(explanation)
        assert store.history.explain(off[2]).beside == store.history.explain(hits[3]).beside == ()


def test_a_least_cosine_is_that_of_the_frame_itself() -> None:
    """A turn far from the question is beside close turns."""
    with cerata.open(":memory:") as store:
        chat(store, 300)
        ask: dict[str, Any] = {
            "profile": PROFILE,
            "k": 300,
            "page": cerata.Page(group_by="frame"),
        }
        question = cerata.Vectors(dense=QUESTION)
        for least in (-0.5, 0.5, 0.9):
            near = {
                hit.id
                for hit in store.search("x", vectors=question, **ask)
                if (hit.cosine or 0) >= least
            }
            hits = store.search("x", vectors=replace(question, min_cosine=least), **ask)
            assert {hit.id for hit in hits} == near != set()


def test_a_question_compares_each_vector_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cosines of the hits were computed again, from copies of their vectors."""
    compared: list[int] = []
    whole = nearest.exact_scores

    def count(vectors: Matrix, lengths: F64, query: QueryVector, metric: Metric) -> F64:
        compared.append(len(vectors))
        return whole(vectors, lengths, query, metric)

    monkeypatch.setattr(vector_lane, "exact_scores", count)
    with cerata.open(":memory:") as store:
        chat(store, 300)
        assert all(
            hit.cosine
            for hit in store.search(
                "x",
                profile=PROFILE,
                vectors=cerata.Vectors(dense=QUESTION),
                page=cerata.Page(group_by="frame"),
            )
        )
    assert compared == [300]


@given(share=st.floats(0.01, 1), seed=st.integers(0, 100))
def test_means_are_equal_with_slices_and_with_look_ups(share: float, seed: int) -> None:
    """To the last bit: the number of turns chooses, which differs between states."""
    source = np.random.default_rng(seed)
    order = turn_order(source.integers(-1, 3, 200), source.random(200) < 0.9)
    assert order is not None
    sources = np.flatnonzero(source.random(200) < 0.8)
    rows = sources[source.random(len(sources)) < share]
    scores = source.standard_normal(len(sources))
    results: list[list[float]] = []
    for part in (0, 1 << 20):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(vector_window, "_DENSE_PART", part)
            results.append(vector_window.means(rows, sources, scores, order).tolist())
    assert results[0] == results[1]


@given(seed=st.integers(0, 100))
def test_a_neighbour_counts_by_the_part_of_its_conversation(seed: int) -> None:
    """With the square of the part, of the score and of the total; with part 1 as without parts."""
    source = np.random.default_rng(seed)
    talks = source.integers(-1, 3, 60)
    order = turn_order(talks, np.ones(60, np.bool_))
    assert order is not None
    sources = np.flatnonzero(source.random(60) < 0.8)
    scores = source.standard_normal(len(sources))
    part_of = np.array([1.0, 0.25, 0.0, 0.0])
    parts = np.where(order.is_turn, part_of[talks[order.rows]], 0.0)
    means = vector_window.means(sources, sources, scores, order, parts)
    whole = vector_window.means(sources, sources, scores, order)
    score_of = dict(zip(sources.tolist(), scores.tolist(), strict=True))
    for row, mean, in_full in zip(sources.tolist(), means.tolist(), whole.tolist(), strict=True):
        if talks[row] == 0:
            assert mean == in_full
            continue
        total, weight = score_of[row], 1.0
        for offset, share in vector_window.SHARES if talks[row] == 1 else ():
            near = order.rows[order.places[row] + offset]
            total += share / 16 * score_of.get(int(near), 0.0)
            weight += share / 16 * (int(near) in score_of)
        assert mean == pytest.approx(total / weight, abs=1e-8)


def test_a_search_by_vectors_alone_has_cosines() -> None:
    with cerata.open(":memory:") as store:
        chat(store, 20)
        hits = store.search(
            "x", profile=PROFILE, mode="vector", vectors=cerata.Vectors(dense=QUESTION)
        )
        assert [hit.score for hit in hits] == [hit.cosine for hit in hits]
