"""The one ranking: properties of the whole score, with words, vectors, token vectors and facts."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cerata
from cerata import Entity, Filter, Profile, Store, View, agents
from cerata.memory.values.explanation import Explanation
from cerata.retrieval.embedders.identity import EmbedderIdentity
from cerata.retrieval.ranking.profile import DEFAULT

SPACE = "toy@1/3/cosine"
TOKENS = "toys@1/2/maxsim/i1"
WORDS = ("iron", "copper", "silver", "gold", "lead", "tin", "the")
QUESTIONS = ("iron gold", "Has Mina lead or tin?", '"iron gold" silver', "the", "zinc", "")
EVERY = replace(
    DEFAULT,
    name="every",
    weights={**DEFAULT.weights, "graph": 0.5},
    signals={**DEFAULT.signals, "thread": 0.5, "noun": 0.3, "replies": 0.6},
)
USED = replace(EVERY, name="every used", importance=0.4)
PROFILES = ("default", "words", "continuity", "used", EVERY, USED)

vectors = st.tuples(*[st.sampled_from([-1.0, -0.2, 0.0, 0.3, 1.0])] * 3).filter(any)
tokens = st.lists(
    st.sampled_from([(1.0, 0.0), (0.0, 1.0), (0.6, 0.8), (-1.0, 0.0)]), min_size=1, max_size=3
)


class Toy:
    """An embedder of three numbers that knows a share of each question's words."""

    def __init__(self, knows: float, vector_weight: float) -> None:
        self.identity = EmbedderIdentity("toy", "1", 3, "cosine")
        self.max_tokens = None
        self.vector_weight = vector_weight
        self._knows = knows

    def embed(self, texts: Sequence[str]) -> np.ndarray[Any, Any]:
        drawn = [Random(text) for text in texts]
        return np.array([[each.gauss(0, 1) for _ in range(3)] for each in drawn], np.float32)

    def knows(self, text: str) -> float:
        return self._knows


@st.composite
def histories(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Frames to put, some of them turns, some with vectors, facts and uses, some closed."""
    return [
        {
            "text": " ".join(draw(st.lists(st.sampled_from(WORDS), min_size=1, max_size=5))),
            "role": draw(st.sampled_from([None, "Mina", "Olaf"])),
            "track": draw(st.sampled_from([None, "chat"])),
            "vector": draw(st.none() | vectors),
            "tokens": draw(st.none() | tokens),
            "act": draw(st.sampled_from(["", "", "fact", "use", "delete", "supersede"])),
        }
        for _ in range(draw(st.integers(1, 7)))
    ]


def put(store: Store, number: int, each: dict[str, Any]) -> None:
    given = cerata.Vectors()
    if each["vector"] is not None:
        given = replace(given, dense=each["vector"], space=SPACE)
    if each["tokens"] is not None:
        given = replace(given, tokens=each["tokens"], tokens_space=TOKENS)
    frame = store.put_frame(
        each["text"],
        role=each["role"],
        vectors=given,
        options=cerata.PutOptions(track=each["track"]),
    )
    match each["act"]:
        case "fact":
            store.assert_fact("iron", f"melts {number}", Entity("lead"), evidence=[frame])
        case "use":
            agents.record_access(store, frame)
        case "delete":
            store.delete(frame)
        case "supersede":
            store.supersede(frame, f"{each['text']} tin")
        case _:
            pass


ASKED = cerata.Vectors(
    dense=[1.0, 0.3, -0.2], space=SPACE, tokens=[[1.0, 0.0], [0.6, 0.8]], tokens_space=TOKENS
)
"""Vectors of a question. A named space without vectors is an empty lane."""


def ranked(state: Store | View, question: str, **more: Any) -> list[tuple[int, float]]:
    asked: dict[str, Any] = {"k": 1_000, "page": cerata.Page(group_by="frame"), **more}
    hits = state.search(question, **asked)
    return [(hit.id, hit.score) for hit in hits]


# --- the parts -----------------------------------------------------------------------------------


def check_parts(explanation: Explanation, embedder: Toy, *, is_hybrid: bool) -> None:
    """Check that the parts of a score add up, to the digit, and that trust and weight are in it."""
    total = 0.0
    for lane in explanation.lanes:
        assert lane.added == lane.weight * lane.share
        total += lane.added
    total += sum(signal.added for signal in explanation.signals)
    total = round(total, 9)
    if explanation.boost is not None:
        total = round(total * explanation.boost.factor, 9)
    assert explanation.score == total
    weights = {lane.lane: lane.weight for lane in explanation.lanes}
    trust = 1.0 if explanation.trust is None else explanation.trust.trust
    if is_hybrid and "vectors" in weights:
        assert weights["vectors"] == pytest.approx(trust * embedder.vector_weight)
        assert weights["late"] == pytest.approx(trust)
    step = 0.05 * (1 + weights.get("vectors", 0.0) + weights.get("late", 0.0))
    for signal in explanation.signals:
        # The step counts the lanes of vectors that found frames.
        parts = {step, 0.05, 0.05 * (1 + weights.get("vectors", 0.0))}
        parts.add(0.05 * (1 + weights.get("late", 0.0)))
        worth = signal.added / (signal.weight * signal.value)
        assert any(worth == pytest.approx(part) for part in parts)


@settings(max_examples=30)
@given(
    history=histories(),
    question=st.sampled_from(QUESTIONS),
    profile=st.sampled_from(PROFILES),
    knows=st.sampled_from([0.0, 0.5, 0.55, 1.0]),
    vector_weight=st.sampled_from([0.0, 0.6, 1.0, 3.0]),
    mode=st.sampled_from(["hybrid", "hybrid", "text"]),
    closed=st.booleans(),
)
def test_parts_add_up_to_the_score(
    history: Sequence[dict[str, Any]],
    question: str,
    profile: str | Profile,
    knows: float,
    vector_weight: float,
    mode: Any,
    closed: bool,
) -> None:
    """Also with little trust, the weight of an embedder, a boost, and frames without vectors."""
    embedder = Toy(knows, vector_weight)
    with cerata.open(":memory:", embedder=embedder) as store:
        for number, each in enumerate(history):
            put(store, number, each)
        hits = store.search(
            question,
            k=100,
            profile=profile,
            mode=mode,
            page=cerata.Page(group_by="frame"),
            where=Filter(include_deleted=closed, include_superseded=closed),
            vectors=ASKED,
        )
        for hit in hits:
            explanation = store.history.explain(hit)
            assert (explanation.id, explanation.score) == (hit.id, hit.score)
            check_parts(explanation, embedder, is_hybrid=mode == "hybrid" and question != "")


def test_each_share_is_by_its_formula() -> None:
    """BM25 over twice the idf, a cosine, and the mean of the tokens' cosines, less 0.35."""
    embedder = Toy(0.55, 0.6)
    with cerata.open(":memory:", embedder=embedder) as store:
        both = cerata.Vectors(
            dense=[1.0, 1.0, 0.0], space=SPACE, tokens=[[0.0, 1.0]], tokens_space=TOKENS
        )
        one = store.put_frame("iron gold", vectors=both)
        two = store.put_frame(
            "tin and lead", vectors=cerata.Vectors(dense=[-1.0, 0.0, 0.0], space=SPACE)
        )
        hits = store.search("iron lead zinc", vectors=replace(ASKED, dense=[1.0, 0.0, 0.0]))
        first, second = (store.history.explain(hit) for hit in hits)
        assert (first.id, second.id) == (one.id, two.id)
        words = [math.log(1 + (2 - df + 0.5) / (df + 0.5)) for df in (1, 1, 0)]
        for explanation in (first, second):
            by_name = {lane.lane: lane for lane in explanation.lanes}
            text = by_name["text"]
            assert text.score == pytest.approx(words[0], abs=1e-6)
            assert text.share == pytest.approx(words[0] / (2 * sum(words)), abs=1e-6)
            assert explanation.trust is not None
            assert explanation.trust.trust == pytest.approx(0.5)
            assert by_name["vectors"].weight == pytest.approx(0.5 * 0.6)
            assert by_name["late"].weight == pytest.approx(0.5)
        assert first.lanes[2].share == pytest.approx(0.5**0.5)
        assert first.lanes[3].share == pytest.approx((0 + (0.8 - 0.35)) / 2, abs=0.005)
        # A cosine below 0 counts 0; without token vectors, the least of those that have some.
        assert second.lanes[2].score == pytest.approx(-1)
        assert second.lanes[2].share == 0
        assert second.lanes[3].share == first.lanes[3].share


# --- a lane without hits -------------------------------------------------------------------------


def nothing(store: Store) -> None:
    """Change nothing: the spaces are empty."""


def deleted(store: Store) -> None:
    store.delete(
        store.put_frame(
            "a gong", role="Mina", options=cerata.PutOptions(track="chat"), vectors=ASKED
        )
    )


def of_another(store: Store) -> None:
    store.put_frame(
        "a gong",
        role="Mina",
        options=cerata.PutOptions(track="chat", scope={"user": "ann"}),
        vectors=ASKED,
    )


def fact_of_none(store: Store) -> None:
    store.assert_fact("bronze", "has", "tin")
    store.retract_fact(store.assert_fact("iron", "melts", Entity("lead"), evidence=[1]))


@pytest.mark.parametrize("change", [nothing, deleted, of_another, fact_of_none])
@pytest.mark.parametrize("profile", ["default", EVERY, USED])
def test_a_lane_without_hits_changes_no_order(
    change: Callable[[Store], None], profile: str | Profile
) -> None:
    """Nor any score: else the first vector of another would change an answer."""
    history = [
        {
            "text": f"{text}",
            "role": role,
            "track": "chat",
            "vector": None,
            "tokens": None,
            "act": "",
        }
        for text, role in (("iron gold?", "Mina"), ("iron and tin", "Olaf"), ("gold", "Mina"))
    ]
    with cerata.open(":memory:") as whole:
        ann, store = whole.scoped({"user": "ann"}), whole.scoped({"user": "ben"})
        for number, each in enumerate(history):
            put(store, number, each)
        agents.record_access(store, 2)
        # Token vectors with a cosine of 0 to the question's find nothing.
        store.put_frame("a gong", vectors=cerata.Vectors(tokens=[[-0.8, 0.6]], tokens_space=TOKENS))
        more: dict[str, Any] = {"profile": profile, "mode": "hybrid"}
        questions = [question for question in QUESTIONS if question]
        before = [ranked(store, question, **more) for question in questions]
        assert before[0]
        change(ann if change is of_another else store)
        without = replace(ASKED, tokens=None, tokens_space=None)
        asked = replace(ASKED, tokens=[[0.6, 0.8]])
        for given in (cerata.Vectors(), without, asked):
            after = [ranked(store, question, **more, vectors=given) for question in questions]
            assert after == before


# --- depth, pages and time -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def many() -> Iterator[Store]:
    """500 frames: words, half with vectors, a fourth with token vectors, talk, facts and uses."""
    random = Random(23)
    with cerata.open(":memory:") as store:
        for number in range(500):
            each = {
                "text": " ".join(random.choices(WORDS, k=random.randint(1, 5))),
                "role": random.choice([None, "Mina", "Olaf"]),
                "track": random.choice([None, "a", "b"]),
                "vector": [random.gauss(0, 1) for _ in range(3)] if number % 2 else None,
                "tokens": [[random.gauss(0, 1), 1.0]] if number % 4 == 3 else None,
                "act": "fact" if number in (3, 480) else "use" if number % 97 == 5 else "",
            }
            put(store, number, each)
        yield store


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("question", ["iron gold", "Has Mina lead or tin?"])
def test_a_score_depends_on_no_depth_page_or_filter(
    many: Store, question: str, profile: str | Profile
) -> None:
    more: dict[str, Any] = {"profile": profile, "vectors": ASKED}
    view = many.at("HEAD")
    whole = ranked(view, question, **more)
    scores = dict(whole)
    assert len(scores) == len(whole) > 200
    for k in (1, 10, 127, 129, 300):
        assert ranked(view, question, k=k, **more) == whole[:k]
    for size in (50, 170):
        pages: list[tuple[int, float]] = []
        place = cerata.Page(group_by="frame")
        while page := view.search(question, k=size, page=place, **more):
            pages += [(hit.id, hit.score) for hit in page]
            place = replace(place, after=page[-1])
        assert pages == whole
    for where in (Filter(role="Mina"), Filter(track="b"), Filter(absent=["nothing"])):
        filtered = ranked(view, question, where=where, **more)
        assert filtered
        assert all(scores.get(frame, score) == score for frame, score in filtered)
    assert {hit.id: hit.score for hit in view.search(question, **more)}.items() <= scores.items()


@settings(max_examples=30)
@given(history=histories(), profile=st.sampled_from(PROFILES))
def test_a_view_equals_a_store_that_stopped_there(
    history: Sequence[dict[str, Any]], profile: str | Profile
) -> None:
    with cerata.open(":memory:") as store:
        stopped: list[tuple[int, list[list[tuple[int, float]]]]] = []

        def answers(state: Store | View) -> list[list[tuple[int, float]]]:
            return [
                ranked(state, question, profile=profile, vectors=given)
                for question in QUESTIONS[:4]
                for given in (cerata.Vectors(), ASKED)
            ]

        for number, each in enumerate(history):
            put(store, number, each)
            stopped.append((store.head.seq, answers(store)))
        for basis, answer in stopped:
            assert answers(store.at(basis)) == answer


# --- a word of one passage -----------------------------------------------------------------------

passages = st.lists(
    st.tuples(st.lists(st.sampled_from(WORDS), min_size=1, max_size=6), st.none() | vectors),
    min_size=1,
    max_size=8,
)


def with_zinc(store: Store, others: list[tuple[list[str], Any]], place: int, vector: Any) -> int:
    """Put passages, one of which has the word "zinc", and return its id."""
    at = min(place, len(others))
    texts = [" ".join(words) for words, _ in others]
    texts.insert(at, "zinc and iron")
    of_texts = [vector_of for _, vector_of in others]
    of_texts.insert(at, vector)
    ids: list[int] = []
    for text, each in zip(texts, of_texts, strict=True):
        given = cerata.Vectors(dense=each, space=None if each is None else SPACE)
        ids.append(store.put_frame(text, vectors=given).id)
    return ids[at]


@settings(max_examples=25)
@given(
    others=passages,
    place=st.integers(0, 8),
    vector=st.none() | vectors,
    knows=st.sampled_from([0.0, 0.4]),
)
def test_a_word_that_the_model_does_not_know_finds_its_passage_first(
    others: list[tuple[list[str], Any]], place: int, vector: Any, knows: float
) -> None:
    """Whatever the vectors are."""
    with cerata.open(":memory:", embedder=Toy(knows, 1.0)) as store:
        frame = with_zinc(store, others, place, vector)
        for question in ("zinc", "the zinc", "Where is zinc?"):
            asked = cerata.Vectors(dense=[1.0, 0.3, -0.2], space=SPACE)
            assert ranked(store, question, vectors=asked)[0][0] == frame


@settings(max_examples=30)
@given(others=passages, place=st.integers(0, 8), vector=vectors)
def test_a_word_finds_its_passage_first_unless_vectors_differ_by_more(
    others: list[tuple[list[str], Any]], place: int, vector: Any
) -> None:
    """By more than the share of the word, about a half: so far apart no measured model gets."""
    question = [1.0, 0.3, -0.2]

    def cosine(values: Any) -> float:
        of_both = np.linalg.norm(values) * np.linalg.norm(question)
        return max(0.0, float(np.dot(values, question) / of_both))

    with cerata.open(":memory:") as store:
        frame = with_zinc(store, others, place, vector)
        hits = store.search(
            "zinc",
            vectors=cerata.Vectors(dense=question, space=SPACE),
            page=cerata.Page(group_by="frame"),
        )
        share = next(hit for hit in hits if hit.id == frame).score - cosine(vector)
        assert share > 0.25
        nearest = max((cosine(each) for _, each in others if each is not None), default=0.0)
        assert (hits[0].id == frame) == (nearest < cosine(vector) + share)
