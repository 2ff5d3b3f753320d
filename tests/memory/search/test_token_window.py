"""Late interaction with weights and neighbouring turns: equal to a plain reference, and of use."""

import dataclasses
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cerata
from cerata import Filter, Profile, Store, View
from cerata.engine.events import RecallContext
from cerata.projections.vectors import maxsim as maxsim_module

from ..embeddings.test_token_vectors import embed
from .test_late import Tokens, drawn

SPACE = "m@1/6/maxsim/i1"
LATE = Profile("tokens", 1, {"late": 1})
BEFORE = [0.7 * 0.7**step for step in range(4)]
AFTER = [0.5 * 0.7**step for step in range(4)]
UNITS = np.eye(6, dtype=np.int8) * 127


@dataclasses.dataclass
class Turn:
    """A frame of the model: its conversation, its token vectors and its tag."""

    talk: str | None
    tokens: Tokens | None
    tag: str


Model = dict[int, Turn]


def act(store: Store, source: Random, model: Model) -> None:
    """Put a turn or a note, with token vectors or without; delete one; or embed one again."""
    chosen = source.choice(("put", "put", "put", "delete", "embed"))
    if chosen == "put" or not model:
        tokens = drawn(source) if source.random() < 0.8 else None
        talk, tag = source.choice(("a", "b", None)), source.choice("xy")
        vectors: dict[str, Any] = (
            {} if tokens is None else {"vectors": cerata.Vectors(tokens=tokens, tokens_space=SPACE)}
        )
        place: dict[str, Any] = (
            {"role": "mina", "options": cerata.PutOptions(track=talk)}
            if talk
            else {"options": cerata.PutOptions(track="a")}
        )
        frame = store.put_frame("text", tags=[tag], **place, **vectors).id
        model[frame] = Turn(talk, tokens, tag)
    elif chosen == "delete":
        frame = source.choice([*model])
        store.delete(frame)
        del model[frame]
    else:
        frame = source.choice([*model])
        model[frame].tokens = tokens = drawn(source)
        store.put_frame("unrelated")
        embed(store, frame, tokens, SPACE)


def evidence(tokens: Tokens | None, query: Tokens) -> list[float]:
    """Return the evidence for each token of the question, by the formula."""
    if tokens is None:
        return [0.0] * len(query)
    return [
        max(0.0, max(int(a.astype(int) @ b.astype(int)) for b in tokens) / 127**2 - 0.35)
        for a in query
    ]


def expected(
    model: Model, query: Tokens, weights: list[float], tag: str | None
) -> dict[int, float]:
    """Return the scores above 0 of the frames with token vectors, by the formula."""
    scores: dict[int, float] = {}
    for frame, turn in model.items():
        if turn.tokens is None or tag not in (None, turn.tag):
            continue
        best = evidence(turn.tokens, query)
        talk = [near for near in model if turn.talk and model[near].talk == turn.talk]
        place = talk.index(frame) if talk else 0
        for step in range(4):
            for near, share in ((place - step - 1, BEFORE[step]), (place + step + 1, AFTER[step])):
                if 0 <= near < len(talk):
                    found = evidence(model[talk[near]].tokens, query)
                    best = [max(a, share * b) for a, b in zip(best, found, strict=True)]
        total = sum(weight * value for weight, value in zip(weights, best, strict=True))
        if total > 1e-9:
            scores[frame] = total / sum(weights)
    return scores


def is_right(
    view: View | Store, model: Model, query: Tokens, weights: list[float], tag: str | None = None
) -> bool:
    """Compare a search with the reference; a failed assertion shows the difference."""
    hits = view.search(
        "",
        k=100,
        mode="vector",
        profile=LATE,
        where=None if tag is None else Filter(tags=[tag]),
        vectors=cerata.Vectors(tokens=query, token_weights=weights, tokens_space=SPACE),
        page=cerata.Page(group_by="frame"),
    )
    assert {hit.id: hit.score for hit in hits} == pytest.approx(
        expected(model, query, weights, tag), abs=2e-9
    )
    order = [(-hit.score, hit.id < 0, abs(hit.id)) for hit in hits]
    assert order == sorted(order)
    return True


def copied(model: Model) -> Model:
    return {frame: dataclasses.replace(turn) for frame, turn in model.items()}


@given(seed=st.integers(0, 10_000))
def test_scores_equal_the_reference_as_of_every_event(seed: int) -> None:
    """Also inside a transaction, with a filter, and for tokens of weight 0."""
    source = Random(seed)
    query = drawn(source)
    weights = [source.choice((0.0, 0.5, 1.0, 2.25)) for _ in query]
    weights[0] = weights[0] or 1.0
    model: Model = {}
    states: dict[int, Model] = {}
    with cerata.open(":memory:") as store:
        store.put_frame("first", vectors=cerata.Vectors(tokens=drawn(source), tokens_space=SPACE))
        store.delete(1)
        for _ in range(12):
            act(store, source, model)
            states[store.head.seq] = copied(model)
        before = copied(model)
        with store.transaction():
            inside = copied(model)
            for _ in range(4):
                act(store, source, inside)
            assert is_right(store, inside, query, weights)
            assert is_right(store, inside, query, weights, "x")
        assert is_right(store.at(max(states)), before, query, weights)
        for seq, state in states.items():
            assert is_right(store.at(seq), state, query, weights)
            assert is_right(store.at(seq), state, query, weights, "x")


def test_of_many_frames_every_returned_score_is_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    """The signs choose the frames, and no filter changes a score."""
    source = Random(3)
    model: Model = {}
    with cerata.open(":memory:") as store:
        for _ in range(120):
            act(store, source, model)
        query = drawn(source)
        weights = [1.0 + place for place in range(len(query))]
        scores = expected(model, query, weights, None)
        monkeypatch.setattr(maxsim_module, "ALL_FRAMES_MAX", 20)
        monkeypatch.setattr(maxsim_module, "CANDIDATES_MIN", 8)
        asked: dict[str, Any] = {
            "vectors": cerata.Vectors(tokens=query, token_weights=weights),
            "profile": LATE,
            "k": 5,
        }
        hits = store.search("", mode="vector", page=cerata.Page(group_by="frame"), **asked)
        tagged = store.search(
            "", mode="vector", where=Filter(tags=["y"]), page=cerata.Page(group_by="frame"), **asked
        )
        assert len(hits) == len(tagged) == 5
        for hit in (*hits, *tagged):
            assert hit.score == pytest.approx(scores[hit.id], abs=2e-9)
        with cerata.open(":memory:") as stopped:
            again, source = dict[int, Turn](), Random(3)
            for _ in range(120):
                act(stopped, source, again)
            seq = stopped.head.seq
            found = [
                (hit.id, hit.score)
                for hit in stopped.search(
                    "", mode="vector", page=cerata.Page(group_by="frame"), **asked
                )
            ]
        for _ in range(10):
            act(store, source, model)
        view = store.at(seq)
        assert [
            (hit.id, hit.score)
            for hit in view.search("", mode="vector", page=cerata.Page(group_by="frame"), **asked)
        ] == found


def test_an_answer_beside_the_words_of_its_question_is_found() -> None:
    """Without the window the answer, which has none of the words, has no evidence."""
    with cerata.open(":memory:") as store:
        for token in (0, 5, 4):
            store.put_frame(
                "turn",
                role="mina",
                vectors=cerata.Vectors(tokens=UNITS[[token]], tokens_space=SPACE),
                options=cerata.PutOptions(track="t"),
            )
        asked: dict[str, Any] = {"vectors": cerata.Vectors(tokens=UNITS[[0, 1]]), "profile": LATE}
        hits = [
            (hit.id, hit.score)
            for hit in store.search("", mode="vector", page=cerata.Page(group_by="frame"), **asked)
        ]
        assert hits == [(1, 0.325), (2, 0.2275), (3, 0.15925)]
        [_, answer, _] = store.search(
            "", mode="vector", page=cerata.Page(group_by="frame"), **asked
        )
        explanation = store.history.explain(answer)
        assert [share.to_dict() for share in explanation.tokens] == [
            {
                "token": "1",
                "weight": 1.0,
                "cosine": 1.0,
                "turn": 1,
                "factor": 0.7,
                "added": pytest.approx(0.2275),
            },
            {
                "token": "2",
                "weight": 1.0,
                "cosine": 0.0,
                "turn": None,
                "factor": 1.0,
                "added": 0.0,
            },
        ]
        text = str(explanation)
        assert "1  0.227 (weight 1.000, cosine 1.000 in #1 beside it x 0.700)" in text
        assert "no match: 2" in text


def test_weights_of_the_caller_decide_the_order() -> None:
    with cerata.open(":memory:") as store:
        for token in (0, 1):
            store.put_frame(
                "note", vectors=cerata.Vectors(tokens=UNITS[[token]], tokens_space=SPACE)
            )
        for weights, best in (([1, 2], 2), ([2, 1], 1), ([0, 1], 2)):
            asked: dict[str, Any] = {
                "vectors": cerata.Vectors(tokens=UNITS[[0, 1]], token_weights=weights)
            }
            hits = store.search("", mode="vector", profile=LATE, **asked)
            assert next(iter(hits)).id == best
        assert not store.search(
            "",
            mode="vector",
            profile=LATE,
            vectors=cerata.Vectors(tokens=UNITS[:2], token_weights=[0, 0]),
        )


@pytest.mark.parametrize(
    ("weights", "fault"),
    [
        ([1.0], "must be 2 numbers"),
        ([1.0, -1.0], "must be 0 to"),
        ([1.0, np.nan], "must be 0 to"),
        ([1.0, np.inf], "must be 0 to"),
        (["a", "b"], "token_weights"),
    ],
)
def test_weights_that_are_no_weights_are_refused(weights: Any, fault: str) -> None:
    with cerata.open(":memory:") as store:
        store.put_frame("note", vectors=cerata.Vectors(tokens=UNITS[[0]], tokens_space=SPACE))
        with pytest.raises(cerata.InvalidInput, match=fault):
            store.search("note", vectors=cerata.Vectors(tokens=UNITS[:2], token_weights=weights))
        with pytest.raises(cerata.InvalidInput, match="token_weights came without tokens"):
            store.search("note", vectors=cerata.Vectors(token_weights=[1.0]))


def test_a_recorded_recall_has_the_weights_and_is_repeated_by_them() -> None:
    with cerata.open(":memory:") as store:
        for token in (0, 1):
            store.put_frame(
                f"note {token}", vectors=cerata.Vectors(tokens=UNITS[[token]], tokens_space=SPACE)
            )
        context = store.recall(
            "which?",
            record=True,
            vectors=cerata.Vectors(tokens=UNITS[:2], token_weights=[1, 3]),
            floor=False,
        )
        [event] = store.log(context.recorded or 0, context.recorded)
        assert isinstance(event.body, RecallContext)
        weights = np.frombuffer(event.body.token_weights or b"", "<f8")
        assert weights.tolist() == [1.0, 3.0]
        again = store.at(event.body.basis).recall(
            "which?", vectors=cerata.Vectors(tokens=UNITS[:2], token_weights=weights), floor=False
        )
        assert again.text == context.text
        assert [item.id for item in again.items] == [2, 1]
