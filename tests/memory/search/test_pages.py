"""Pages of a search: one order, of which each page is a part; hits grouped by document."""

import pickle
from collections.abc import Iterator
from contextlib import suppress
from random import Random
from typing import Any

import numpy as np
import pytest

import cerata
from cerata import Filter, Hit, Profile, Store
from cerata.memory.search.request import Grouping

SIGNALS = Profile("signals", 1, {"text": 1, "vectors": 1}, signals={"count": 0.7, "short": -0.3})
WORDS = ("iron", "copper", "silver", "gold", "lead", "tin")
SPACE = "toy"


@pytest.fixture
def many() -> Iterator[Store]:
    """700 frames with words and vectors, and facts: three lanes, each deeper than a block."""
    random = Random(17)
    with cerata.open(":memory:") as store:
        texts = [" ".join(random.choices(WORDS, k=random.randint(1, 5))) for _ in range(700)]
        vectors = np.array([[random.gauss(0, 1) for _ in range(4)] for _ in texts], np.float32)
        store.put_frames(texts, embeddings=vectors, space=SPACE)
        store.assert_fact("iron", "melts at", 1538, evidence=[3, 600])
        yield store


QUESTIONS: list[tuple[str, dict[str, Any]]] = [
    ("iron gold", {}),
    ("iron gold", {"embedding": [1, 0, 0, 0.5]}),
    ("iron gold", {"embedding": [1, 0, 0, 0.5], "profile": "continuity"}),
    ("iron gold", {"embedding": [1, 0, 0, 0.5], "profile": "used"}),
    ("iron gold", {"profile": "used", "mode": "text"}),
    ("", {"embedding": [1, 0, 0, 0.5], "mode": "vector"}),
]


@pytest.mark.parametrize("group_by", ["content", "frame"])
@pytest.mark.parametrize("place", range(len(QUESTIONS)))
def test_pages_join_to_the_order_of_a_single_search(
    many: Store, place: int, group_by: Grouping
) -> None:
    """The candidates depend on the depth of the lanes, so a page could repeat or skip a hit."""
    query, asked = QUESTIONS[place]
    more: dict[str, Any] = {**asked, "group_by": group_by}
    many.record_access(5, 9, 300)
    whole = [(hit.id, hit.score) for hit in many.search(query, k=600, **more)]
    assert len(whole) == len({number for number, _ in whole}) > 200
    for size in (7, 100, 250):
        pages: list[tuple[int, float]] = []
        while len(pages) < len(whole):
            page = many.search(query, k=size, offset=len(pages), **more)
            pages += [(hit.id, hit.score) for hit in page]
            assert page
        assert pages[: len(whole)] == whole


class _Stop(Exception):
    """Ends a transaction, which then writes nothing."""


def test_a_cursor_shows_no_other_state() -> None:
    """A cursor returned shared frames to a private view, and later frames to an older view."""
    with cerata.open(":memory:", scope={"user": "ann"}, shared=True) as store:
        store.put_frames([f"gold {number}" for number in range(6)])
        [*_, last] = store.search("gold", k=2)
        older = store.at(3)
        for reader in (older, store.view().within((), shared=False), store.at(6, valid_at="now")):
            with pytest.raises(cerata.InvalidInput, match="another question, scope, state"):
                reader.search("gold", k=2, after=last)
        pending = last
        with suppress(_Stop), store.transaction():
            store.put_frame("gold in a block")
            [*_, pending] = store.search("gold", k=2)
            assert len(store.search("gold", k=9, after=pending)) == 5
            raise _Stop
        with pytest.raises(cerata.InvalidInput):
            store.search("gold", k=2, after=pending)


def test_an_explanation_of_a_deep_hit_adds_up(many: Store) -> None:
    """Its score is that of its block, not of the deepest."""
    hits = many.search("iron gold", embedding=[1, 0, 0, 0.5], k=5, offset=300)
    assert len(hits) == 5
    for hit in hits:
        explanation = many.explain(hit)
        assert sum(share.added for share in explanation.lanes) == pytest.approx(hit.score)


def test_a_page_after_a_hit_has_the_state_of_the_hit(many: Store) -> None:
    """Frames that are written between two pages neither repeat nor move a hit."""
    expected = [hit.id for hit in many.search("gold", k=20)]
    first = many.search("gold", k=10)
    view = many.view()
    for _ in range(5):
        many.put_frame("gold")
    second = many.search("gold", k=10, after=first[-1])
    assert [hit.id for hit in [*first, *second]] == expected
    assert many.search("gold", k=1)[0].score != first[0].score
    third = many.search("gold", k=10, after=second[-1])
    assert third[0].id not in expected
    assert [hit.id for hit in view.search("gold", k=10, after=first[-1])] == expected[10:]


def test_a_hit_of_another_question_is_refused(many: Store) -> None:
    [hit] = many.search("gold", k=1)
    vector = many.search("gold", k=1, embedding=[1, 0, 0, 0])[0]
    copy: Hit = pickle.loads(pickle.dumps(hit))
    with cerata.open(":memory:") as other:
        other.put_frame("gold")
        [foreign] = other.search("gold")
    cases: list[tuple[str, dict[str, Any]]] = [
        ("silver", {"after": hit}),
        ("gold", {"after": hit, "where": Filter(kind="note")}),
        ("gold", {"after": hit, "offset": 1}),
        ("gold", {"after": hit, "group_by": "document"}),
        ("gold", {"after": hit, "min_score": 0.1}),
        ("gold", {"after": vector}),
        ("gold", {"after": vector, "embedding": [0, 1, 0, 0]}),
        ("gold", {"after": copy}),
        ("gold", {"after": foreign}),
        ("gold", {"after": 3}),
        ("gold", {"offset": -1}),
        ("gold", {"group_by": "title"}),
    ]
    for query, more in cases:
        with pytest.raises(cerata.InvalidInput):
            many.search(query, **more)


def test_hits_are_grouped_by_document(store: Store) -> None:
    """A long document filled the whole result."""
    parts = ("iron " * 200 + "\n\n") * 8
    long = store.remember(parts, title="long")
    short = store.remember("iron and copper", title="short")
    alone = store.put_frame("copper, then iron, among other metals")
    assert len({hit.frame.parent for hit in store.search("iron", k=5)}) == 1
    hits = store.search("iron", k=2, group_by="document")
    more = store.search("iron", k=2, group_by="document", after=hits[-1])
    groups = {hit.frame.parent or hit.id: hit for hit in [*hits, *more]}
    assert set(groups) == {long.ids[0], short.ids[0], alone.id}
    best = groups[long.ids[0]]
    assert {item.frame.parent for item in best.grouped} == {long.ids[0]}
    assert all(item.score <= best.score for item in best.grouped)
    assert len(best.grouped) == len(store.chunks(long)) - 1
    assert best.to_dict()["grouped"]
    assert "grouped" not in groups[alone.id].to_dict()
    assert [hit.id for hit in store.search("iron", k=1, offset=2, group_by="document")] == [
        more[0].id
    ]
    with pytest.raises(cerata.InvalidInput, match="further hit"):
        store.search("iron", k=2, group_by="document", after=best.grouped[0])


def test_a_summary_says_that_more_frames_may_match(many: Store) -> None:
    """The words "7 of 100 shown" looked like the number of matches."""
    assert "of the first 1" in many.recall("gold").summary
    assert "of the first" not in many.recall("gold", where=Filter(recorded="2020")).summary


@pytest.mark.parametrize("space", ["toy@1/4/cosine", "toy@1/4/dot"])
@pytest.mark.parametrize(
    "more",
    [
        {"min_cosine": 0.4},
        {"min_cosine": 0.4, "mode": "vector"},
        {"min_cosine": 0.4, "profile": "used"},
        {"min_cosine": 0.4, "rerank": True, "token_embedding": [[1, 0]]},
        {"min_score": 0.5},
        {"min_score": 0.5, "profile": "continuity"},
        {"min_score": 0.5, "profile": SIGNALS},
        {"min_score": 0.5, "profile": "used"},
        {"min_cosine": 0.4, "profile": SIGNALS},
        {"min_score": 0.3, "min_cosine": 0.2, "profile": "used"},
        {"min_score": 0.5, "mode": "vector"},
        {"min_score": 0.2, "mode": "text"},
        {"min_score": 0.3, "min_cosine": 0.2},
    ],
)
def test_every_hit_within_the_bounds_is_on_a_page(space: str, more: dict[str, Any]) -> None:
    """The bounds were applied after the blocks were counted: hits past the first were lost."""
    random = Random(3)
    with cerata.open(":memory:") as store:
        with store.transaction():
            for number in range(700):
                store.put_frame(
                    " ".join(random.choices(WORDS, k=random.randint(1, 5))),
                    embedding=[random.gauss(0, 1 + number % 3) for _ in range(4)],
                    space=space,
                    token_embedding=None if number % 7 else [[1, number % 5]],
                    tokens_space=None if number % 7 else "toy@1/2/maxsim/i1",
                )
        store.record_access(5, 9, 300)
        bounds = {name: more[name] for name in ("min_cosine", "min_score") if name in more}
        ask: dict[str, Any] = {name: more[name] for name in more if name not in bounds}
        ask["embedding"] = [1, 0, 0, 0.5]
        within = [
            (hit.id, hit.score)
            for hit in store.search("iron gold", k=9_999, **ask, group_by="frame")
            if hit.score >= bounds.get("min_score", -99)
            and (hit.cosine is None or hit.cosine >= bounds.get("min_cosine", -2))
        ]
        assert 128 < len(within) < 700
        for size in (60, len(within) + 1):
            pages: list[tuple[int, float]] = []
            while page := store.search(
                "iron gold", k=size, offset=len(pages), **ask, **bounds, group_by="frame"
            ):
                pages += [(hit.id, hit.score) for hit in page]
            assert pages == within


@pytest.mark.parametrize("least", [0.65, 0.95, 1.15])
@pytest.mark.parametrize("where", [None, Filter(tags=["plain"])])
def test_a_least_score_finds_frames_without_vectors(least: float, where: Filter | None) -> None:
    """They count as near as the 128th, so deeper they are nearer than the last of the list."""
    random = Random(5)
    with cerata.open(":memory:") as store:
        for number in range(900):
            vector = None if number % 3 else [1, random.gauss(0, 1), random.gauss(0, 1)]
            store.put_frame(
                " ".join(random.choices(WORDS, k=4)),
                tags=["plain"] if vector is None else [],
                embedding=vector,
                space=None if vector is None else "toy",
            )
        ask: dict[str, Any] = {"embedding": [1, 0, 0], "group_by": "frame", "where": where}
        whole = store.search("iron gold", k=9_999, **ask)
        within = [(hit.id, hit.score) for hit in whole if hit.score >= least]
        hits = store.search("iron gold", k=9_999, min_score=least, **ask)
        assert [(hit.id, hit.score) for hit in hits] == within
        assert len(within) > 100


def test_a_bound_that_few_hits_reach_ranks_no_deeper(many: Store) -> None:
    """A search for ten hits above a cosine ranked the whole memory if only nine reach it."""
    cases: list[dict[str, Any]] = [
        {"min_cosine": 0.99},
        {"min_score": 1.5},
        {"min_score": 99.0, "mode": "text"},
    ]
    for more in cases:
        hits = many.search("iron gold", k=600, embedding=[1, 0, 0, 0.5], space=SPACE, **more)
        [hit, *_] = hits or many.search("iron gold", k=1)
        assert len(hits) < 128
        assert len(getattr(hit.made_by, "blocks", [])) == 1


@pytest.mark.parametrize("profile", ["default", SIGNALS, "used"])
def test_a_least_score_ends_at_the_bound_of_what_is_deeper(
    many: Store, profile: str | Profile
) -> None:
    """Any profile with signals ranked all frames; so did a least score that no deeper hit has."""
    ask: dict[str, Any] = {"embedding": [1, 0, 0, 0.5], "space": SPACE, "profile": profile}
    [best] = many.search("iron gold", k=1, **ask, group_by="frame")
    for least, blocks in ((best.score, 1), (0.0, 3)):
        hits = many.search("iron gold", k=690, min_score=least, **ask, group_by="frame")
        assert hits[0].id == best.id
        assert len(getattr(hits[0].made_by, "blocks", [])) == blocks
