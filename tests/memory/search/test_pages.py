"""Pages of a search: one order, of which each page is a part; hits grouped by document."""

import pickle
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from random import Random
from typing import Any, cast

import numpy as np
import pytest

import cerata
from cerata import Filter, Hit, Profile, Store, agents
from cerata.memory.values.options import Grouping

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
        store.put_frames(texts, vectors=cerata.Vectors(dense=vectors, space=SPACE))
        store.assert_fact("iron", "melts at", 1538, evidence=[3, 600])
        yield store


QUESTIONS: list[tuple[str, dict[str, Any]]] = [
    ("iron gold", {}),
    ("iron gold", {"vectors": cerata.Vectors(dense=[1, 0, 0, 0.5])}),
    ("iron gold", {"vectors": cerata.Vectors(dense=[1, 0, 0, 0.5]), "profile": "continuity"}),
    ("iron gold", {"vectors": cerata.Vectors(dense=[1, 0, 0, 0.5]), "profile": "used"}),
    ("iron gold", {"profile": "used", "mode": "text"}),
    ("", {"vectors": cerata.Vectors(dense=[1, 0, 0, 0.5]), "mode": "vector"}),
]


@pytest.mark.parametrize("group_by", ["content", "frame"])
@pytest.mark.parametrize("place", range(len(QUESTIONS)))
def test_pages_join_to_the_order_of_a_single_search(
    many: Store, place: int, group_by: Grouping
) -> None:
    """The candidates depend on the depth of the lanes, so a page could repeat or skip a hit."""
    query, asked = QUESTIONS[place]
    agents.record_access(many, 5, 9, 300)
    whole = [
        (hit.id, hit.score)
        for hit in many.search(query, k=600, page=cerata.Page(group_by=group_by), **asked)
    ]
    assert len(whole) == len({number for number, _ in whole}) > 200
    for size in (7, 100, 250):
        pages: list[tuple[int, float]] = []
        while len(pages) < len(whole):
            part = cerata.Page(offset=len(pages), group_by=group_by)
            page = many.search(query, k=size, page=part, **asked)
            pages += [(hit.id, hit.score) for hit in page]
            assert page
        assert pages[: len(whole)] == whole


class _Stop(Exception):
    """Ends a transaction, which then writes nothing."""


def test_a_cursor_shows_no_other_state() -> None:
    """A cursor returned shared frames to a private view, and later frames to an older view."""
    with cerata.open(
        ":memory:", scope={"user": "ann"}, options=cerata.OpenOptions(shared=True)
    ) as store:
        store.put_frames([f"gold {number}" for number in range(6)])
        [*_, last] = store.search("gold", k=2)
        older = store.at(3)
        for reader in (
            older,
            store.history.view().within((), shared=False),
            store.at(6, valid_at="now"),
        ):
            with pytest.raises(cerata.InvalidInput, match="another question, scope, state"):
                reader.search("gold", k=2, page=cerata.Page(after=last))
        pending = last
        with suppress(_Stop), store.transaction():
            store.put_frame("gold in a block")
            [*_, pending] = store.search("gold", k=2)
            assert len(store.search("gold", k=9, page=cerata.Page(after=pending))) == 5
            raise _Stop
        with pytest.raises(cerata.InvalidInput):
            store.search("gold", k=2, page=cerata.Page(after=pending))


def test_an_explanation_of_a_deep_hit_adds_up(many: Store) -> None:
    """Its score is that of its block, not of the deepest."""
    hits = many.search(
        "iron gold", k=5, vectors=cerata.Vectors(dense=[1, 0, 0, 0.5]), page=cerata.Page(offset=300)
    )
    assert len(hits) == 5
    for hit in hits:
        explanation = many.history.explain(hit)
        assert sum(share.added for share in explanation.lanes) == pytest.approx(hit.score)


def test_a_page_after_a_hit_has_the_state_of_the_hit(many: Store) -> None:
    """Frames that are written between two pages neither repeat nor move a hit."""
    expected = [hit.id for hit in many.search("gold", k=20)]
    first = many.search("gold", k=10)
    view = many.history.view()
    for _ in range(5):
        many.put_frame("gold")
    second = many.search("gold", k=10, page=cerata.Page(after=first[-1]))
    assert [hit.id for hit in [*first, *second]] == expected
    assert many.search("gold", k=1)[0].score != first[0].score
    third = many.search("gold", k=10, page=cerata.Page(after=second[-1]))
    assert third[0].id not in expected
    assert [
        hit.id for hit in view.search("gold", k=10, page=cerata.Page(after=first[-1]))
    ] == expected[10:]


def test_a_hit_of_another_question_is_refused(many: Store) -> None:
    [hit] = many.search("gold", k=1)
    vector = many.search("gold", k=1, vectors=cerata.Vectors(dense=[1, 0, 0, 0]))[0]
    copy: Hit = pickle.loads(pickle.dumps(hit))
    with cerata.open(":memory:") as other:
        other.put_frame("gold")
        [foreign] = other.search("gold")
    cases: list[tuple[str, dict[str, Any]]] = [
        ("silver", {"page": cerata.Page(after=hit)}),
        ("gold", {"page": cerata.Page(after=hit), "where": Filter(kind="note")}),
        ("gold", {"page": cerata.Page(after=hit, offset=1)}),
        ("gold", {"page": cerata.Page(after=hit, group_by="document")}),
        ("gold", {"page": cerata.Page(after=hit), "floor": 0.1}),
        ("gold", {"page": cerata.Page(after=vector)}),
        (
            "gold",
            {"page": cerata.Page(after=vector), "vectors": cerata.Vectors(dense=[0, 1, 0, 0])},
        ),
        ("gold", {"page": cerata.Page(after=copy)}),
        ("gold", {"page": cerata.Page(after=foreign)}),
        ("gold", {"page": cerata.Page(after=cast("Any", 3))}),
        ("gold", {"page": cerata.Page(offset=-1)}),
        ("gold", {"page": cerata.Page(group_by=cast("Any", "title"))}),
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
    hits = store.search("iron", k=2, page=cerata.Page(group_by="document"))
    more = store.search("iron", k=2, page=cerata.Page(group_by="document", after=hits[-1]))
    groups = {hit.frame.parent or hit.id: hit for hit in [*hits, *more]}
    assert set(groups) == {long.ids[0], short.ids[0], alone.id}
    best = groups[long.ids[0]]
    assert {item.frame.parent for item in best.grouped} == {long.ids[0]}
    assert all(item.score <= best.score for item in best.grouped)
    assert len(best.grouped) == len(store.files.chunks(long)) - 1
    assert best.to_dict()["grouped"]
    assert "grouped" not in groups[alone.id].to_dict()
    assert [
        hit.id for hit in store.search("iron", k=1, page=cerata.Page(offset=2, group_by="document"))
    ] == [more[0].id]
    with pytest.raises(cerata.InvalidInput, match="further hit"):
        store.search("iron", k=2, page=cerata.Page(group_by="document", after=best.grouped[0]))


def test_a_summary_says_that_more_frames_may_match(many: Store) -> None:
    """The words "7 of 100 shown" looked like the number of matches."""
    assert "of the first 1" in many.recall("gold").summary
    assert "of the first" not in many.recall("gold", where=Filter(recorded="2020")).summary


@pytest.mark.parametrize("space", ["toy@1/4/cosine", "toy@1/4/dot"])
@pytest.mark.parametrize(
    "more",
    [
        {"vectors": cerata.Vectors(min_cosine=0.4)},
        {"vectors": cerata.Vectors(min_cosine=0.4), "mode": "vector"},
        {"vectors": cerata.Vectors(min_cosine=0.4), "profile": "used"},
        {"vectors": cerata.Vectors(min_cosine=0.4, tokens=[[1, 0]]), "rerank": True},
        {"floor": 0.5},
        {"floor": 0.5, "profile": "continuity"},
        {"floor": 0.5, "profile": SIGNALS},
        {"floor": 0.5, "profile": "used"},
        {"vectors": cerata.Vectors(min_cosine=0.4), "profile": SIGNALS},
        {"floor": 0.3, "vectors": cerata.Vectors(min_cosine=0.2), "profile": "used"},
        {"floor": 0.5, "mode": "vector"},
        {"floor": 0.2, "mode": "text"},
        {"floor": 0.3, "vectors": cerata.Vectors(min_cosine=0.2)},
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
                    vectors=cerata.Vectors(
                        dense=[random.gauss(0, 1 + number % 3) for _ in range(4)],
                        space=space,
                        tokens=None if number % 7 else [[1, number % 5]],
                        tokens_space=None if number % 7 else "toy@1/2/maxsim/i1",
                    ),
                )
        agents.record_access(store, 5, 9, 300)
        bounds = replace(more.get("vectors", cerata.Vectors()), dense=[1, 0, 0, 0.5])
        unbounded = {**more, "floor": None, "vectors": replace(bounds, min_cosine=None)}
        least = -2 if bounds.min_cosine is None else bounds.min_cosine
        page = cerata.Page(group_by="frame")
        within = [
            (hit.id, hit.score)
            for hit in store.search("iron gold", k=9_999, page=page, **unbounded)
            if hit.score >= more.get("floor", -99) and (hit.cosine is None or hit.cosine >= least)
        ]
        assert 128 < len(within) < 700
        for size in (60, len(within) + 1):
            pages: list[tuple[int, float]] = []
            ask = {**more, "vectors": bounds}
            while hits := store.search(
                "iron gold", k=size, page=replace(page, offset=len(pages)), **ask
            ):
                pages += [(hit.id, hit.score) for hit in hits]
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
                vectors=cerata.Vectors(dense=vector, space=None if vector is None else "toy"),
            )
        ask: dict[str, Any] = {
            "vectors": cerata.Vectors(dense=[1, 0, 0]),
            "page": cerata.Page(group_by="frame"),
            "where": where,
        }
        whole = store.search("iron gold", k=9_999, **ask)
        within = [(hit.id, hit.score) for hit in whole if hit.score >= least]
        hits = store.search("iron gold", k=9_999, floor=least, **ask)
        assert [(hit.id, hit.score) for hit in hits] == within
        assert len(within) > 100


def test_a_bound_that_few_hits_reach_ranks_no_deeper(many: Store) -> None:
    """A search for ten hits above a cosine ranked the whole memory if only nine reach it."""
    asked = cerata.Vectors(dense=[1, 0, 0, 0.5], space=SPACE)
    cases: list[dict[str, Any]] = [
        {"vectors": replace(asked, min_cosine=0.99)},
        {"floor": 1.5, "vectors": asked},
        {"floor": 99.0, "mode": "text", "vectors": asked},
    ]
    for more in cases:
        hits = many.search("iron gold", k=600, **more)
        [hit, *_] = hits or many.search("iron gold", k=1)
        assert len(hits) < 128
        assert len(getattr(hit.made_by, "blocks", [])) == 1


@pytest.mark.parametrize("profile", ["default", SIGNALS, "used"])
def test_a_least_score_ends_at_the_bound_of_what_is_deeper(
    many: Store, profile: str | Profile
) -> None:
    """Any profile with signals ranked all frames; so did a least score that no deeper hit has."""
    ask: dict[str, Any] = {
        "vectors": cerata.Vectors(dense=[1, 0, 0, 0.5], space=SPACE),
        "profile": profile,
    }
    [best] = many.search("iron gold", k=1, page=cerata.Page(group_by="frame"), **ask)
    for least, blocks in ((best.score, 1), (0.0, 3)):
        hits = many.search(
            "iron gold", k=690, page=cerata.Page(group_by="frame"), floor=least, **ask
        )
        assert hits[0].id == best.id
        assert len(getattr(hits[0].made_by, "blocks", [])) == blocks
