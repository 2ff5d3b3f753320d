"""A graph chooses what is compared: only where it is asked for, and the result says so."""

import sys

import numpy as np
import numpy.typing as npt
import pytest

import cerata
from cerata import Filter, Store
from cerata.replay import hnsw

COUNT = 3_000
DIMENSION = 32
ROWS = np.random.default_rng(8).standard_normal((COUNT, DIMENSION)).astype(np.float32)
ASKED = np.random.default_rng(9).standard_normal((20, DIMENSION)).astype(np.float32)


def filled(rows: npt.NDArray[np.float32] = ROWS) -> Store:
    store = cerata.open(":memory:")
    for start in range(0, len(rows), 500):
        tags = [["a"] if row % 2 else ["b"] for row in range(start, start + 500)]
        for tag in ("a", "b"):
            chosen = [row for row, own in enumerate(tags, start) if own == [tag]]
            store.put_frames(
                ["x"] * len(chosen),
                tags=[tag],
                vectors=cerata.Vectors(dense=rows[chosen], space="s"),
            )
    return store


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hnswlib", None)
    with cerata.open(":memory:") as store:
        store.put_frame("a", vectors=cerata.Vectors(dense=[1, 0], space="s"))
        with pytest.raises(cerata.Unsupported, match=r"hnswlib.*'\.\[hnsw\]'"):
            store.search(
                np.array([1, 0]),
                vectors=cerata.Vectors(approximate=True),
                page=cerata.Page(group_by="frame"),
            )
        assert store.search(np.array([1, 0]), page=cerata.Page(group_by="frame"))[0].lanes == (
            "vectors",
        )


@pytest.mark.hnsw
def test_it_finds_nearly_what_is_nearest_and_says_how() -> None:
    store, other = filled(), filled()
    found = 0
    for asked in ASKED:
        hits = store.search(
            asked, vectors=cerata.Vectors(approximate=True), page=cerata.Page(group_by="frame")
        )
        assert {hit.lanes for hit in hits} == {("vectors (hnsw)",)}
        exact = {
            hit.id: hit.score for hit in store.search(asked, page=cerata.Page(group_by="frame"))
        }
        found += len(exact.keys() & {hit.id for hit in hits})
        # What is found has its exact score, in the exact order.
        assert all(exact.get(hit.id, hit.score) == hit.score for hit in hits)
        assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
        again = other.search(
            asked, vectors=cerata.Vectors(approximate=True), page=cerata.Page(group_by="frame")
        )
        assert [hit.id for hit in again] == [hit.id for hit in hits]
    assert found >= 0.9 * 200
    context = store.recall("x", vectors=cerata.Vectors(dense=ASKED[0], approximate=True))
    assert "vectors (hnsw)" in context.lanes


@pytest.mark.hnsw
def test_filters_deletes_and_the_past_hold_in_it() -> None:
    store = filled()
    gone = [hit.id for hit in store.search(ASKED[0], k=5, page=cerata.Page(group_by="frame"))]
    then = store.head
    for one in gone:
        store.delete(one)
    hits = store.search(
        ASKED[0],
        where=Filter(tags=["a"]),
        vectors=cerata.Vectors(approximate=True),
        page=cerata.Page(group_by="frame"),
    )
    assert len(hits) == 10
    assert not {hit.id for hit in hits} & {*gone}
    assert {hit.frame.tags for hit in hits} == {("a",)}
    past = store.at(then).search(
        ASKED[0], k=5, vectors=cerata.Vectors(approximate=True), page=cerata.Page(group_by="frame")
    )
    assert [hit.id for hit in past] == gone
    early = store.at(700).search(
        ASKED[1], vectors=cerata.Vectors(approximate=True), page=cerata.Page(group_by="frame")
    )
    assert {hit.id for hit in early} <= {*range(1, 701)}


@pytest.mark.hnsw
def test_it_grows_with_what_comes_and_small_spaces_need_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = filled(ROWS[:1_000])
    store.search(
        ASKED[0], vectors=cerata.Vectors(approximate=True), page=cerata.Page(group_by="frame")
    )
    new = store.put_frame("new", vectors=cerata.Vectors(dense=ASKED[0], space="s")).id
    assert (
        store.search(
            ASKED[0], vectors=cerata.Vectors(approximate=True), page=cerata.Page(group_by="frame")
        )[0].id
        == new
    )
    monkeypatch.setattr(hnsw.Graph, "_grown", None)
    few = store.search(
        ASKED[0],
        where=Filter(tags=["none"]),
        vectors=cerata.Vectors(approximate=True),
        page=cerata.Page(group_by="frame"),
    )
    assert few == []
