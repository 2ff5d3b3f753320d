"""Equal texts take one place of a search; the others are in `Hit.grouped`."""

import pickle
from typing import Any

import pytest

import cerata
from cerata import Filter, Hit, Store

from ..frames.test_work_done_once import python_calls
from .test_pages import QUESTIONS, many
from .test_reranker import Checksums

__all__ = ["many"]  # a fixture


@pytest.mark.parametrize("place", range(len(QUESTIONS)))
def test_equal_contents_take_one_place(many: Store, place: int) -> None:
    """A text under several URIs took as many places, and other texts were not on the page."""
    query, more = QUESTIONS[place]
    whole = many.search(query, k=600, page=cerata.Page(group_by="frame"), **more)
    best: dict[str, int] = {}
    for hit in whole:
        best.setdefault(hit.text, hit.id)
    assert 200 < len(best) < len(whole) - 100
    for k in (1, 10, 150):
        hits = many.search(query, k=k, **more)
        assert [hit.id for hit in hits] == [*best.values()][:k]
        assert all(hit.text == same.text for hit in hits for same in hit.grouped)
    fifth = many.search(query, k=6, **more)[5]
    after = many.search(query, k=4, page=cerata.Page(after=fifth), **more)
    assert [hit.id for hit in after] == [*best.values()][6:10]


@pytest.mark.parametrize("place", range(len(QUESTIONS)))
def test_a_hit_has_its_equals_from_beyond_the_page(many: Store, place: int) -> None:
    """A page without two equal texts is not grouped, and yet a hit names its equals."""
    query, more = QUESTIONS[place]
    whole = many.search(query, k=128, page=cerata.Page(group_by="frame"), **more)
    [hit] = many.search(query, k=1, **more)
    equal = [each for each in whole if each.text == hit.text]
    assert [(each.id, each.score) for each in (hit, *hit.grouped)][: len(equal)] == [
        (each.id, each.score) for each in equal
    ]
    assert len(hit.grouped) > 0
    further = hit.grouped[-1]
    assert further.grouped == ()
    assert many.history.explain(further).score == further.score
    copy: Hit = pickle.loads(pickle.dumps(hit))
    assert copy.to_dict() == hit.to_dict()
    assert [each.id for each in copy.grouped] == [each.id for each in hit.grouped]


def test_equal_contents_are_of_the_basis_the_filter_and_a_transaction() -> None:
    """A hit stands for frames that the same search could return, never for others."""
    long = "\n\n".join(f"The ferry {n} leaves at {n}. " + "Water. " * 150 for n in range(4))
    with cerata.open(":memory:") as store:
        for place in "abc":
            store.put_frame("The ferry is blue.", uri=f"note:{place}")
            store.remember(long, uri=f"file:{place}")
        basis = store.head.seq
        [hit] = store.search("blue", where=Filter(uri_prefix="note:"))
        chunks = store.search("ferry leaves water", k=50)
        assert [len(hit.grouped) for hit in chunks] == [2] * len(chunks)
        assert len(chunks) > 3
        assert len({hit.text for hit in chunks}) == len(chunks)
        store.delete(hit.grouped[0])
        with store.transaction():
            store.put_frame("The ferry is blue.", uri="note:d")
            [pending] = store.search("blue")
            assert len(pending.grouped) == 2
        [now] = store.search("blue")
        [before] = store.at(basis).search("blue")
        assert [len(each.grouped) for each in (hit, pending, now, before)] == [2, 2, 2, 2]
        assert before.to_dict() == hit.to_dict()
        assert now.grouped != before.grouped


def test_only_current_frames_of_equal_text_are_equal() -> None:
    """A closed version answers for itself, and bytes have no text, however equal they are."""
    with cerata.open(":memory:") as store:
        for name in "ab":
            store.put_frame(
                b"blue",
                uri=f"bytes:{name}",
                options=cerata.PutOptions(search_text="The ferry is blue."),
            )
        store.put_frame("blue", uri="text:bytes")
        first = store.put_frame("The ferry is blue.", uri="note:1")
        second = store.supersede(first, "The ferry is blue.")
        third = store.put_frame("The ferry is blue.", uri="note:2")
        hits = store.search("blue ferry", where=Filter(include_superseded=True))
        assert len(hits) == 5
        grouped = {hit.id: [each.id for each in hit.grouped] for hit in hits}
        assert grouped.pop(second.id) == [third.id]
        assert set(grouped) == {1, 2, 3, first.id}
        assert not any(grouped.values())
        with store.transaction():
            store.delete(second)
            assert [hit.grouped for hit in store.search("blue ferry")] == [()] * 4


def test_chunks_are_equal_if_their_document_was_split_alike() -> None:
    """Equal documents of two kinds are split at other places, so their chunks differ."""
    long = "\n\n".join(f"# Ferry {n}\n\n" + f"It leaves at {n}. " * 90 for n in range(8))
    with cerata.open(":memory:") as store:
        for kind in ("text", "markdown", "text"):
            store.remember(long, kind=kind, uri=f"{kind}:{store.head.seq}")
        hits = store.search("ferry leaves", k=100)
        assert all(hit.text == each.text for hit in hits for each in hit.grouped)
        texts = {
            hit.text
            for hit in store.search("ferry leaves", k=100, page=cerata.Page(group_by="frame"))
        }
        assert {hit.text for hit in hits} == texts
        assert sum(len(hit.grouped) for hit in hits) >= 8


def test_vectors_of_equal_texts_take_one_place() -> None:
    """The text is what a person reads, so vectors of the caller do not part equal texts."""
    with cerata.open(":memory:") as store:
        store.put_frame("tea", vectors=cerata.Vectors(dense=[1, 0], space="toy"))
        store.put_frame("tea", vectors=cerata.Vectors(dense=[0, 1], space="toy"))
        [hit] = store.search("", vectors=cerata.Vectors(dense=[0, 1]))
        assert (hit.id, [each.id for each in hit.grouped]) == (2, [1])
        hits = store.search(
            "", vectors=cerata.Vectors(dense=[0, 1]), page=cerata.Page(group_by="frame")
        )
        assert [(each.id, each.grouped) for each in hits] == [(2, ()), (1, ())]


@pytest.mark.parametrize("group_by", [None, "", "title", "Content", True, ["content"], 1])
def test_an_unknown_grouping_is_refused(many: Store, group_by: Any) -> None:
    with pytest.raises(cerata.InvalidInput, match="group_by must be") as caught:
        many.search("gold", page=cerata.Page(group_by=group_by))
    assert "'frame'" in str(caught.value)


def test_distinct_texts_cost_no_look_up_of_each() -> None:
    """The contents of 128 candidates were looked up one by one: three times the calls."""
    with cerata.open(":memory:") as store:
        store.put_frames([f"The ferry {n} is blue." for n in range(1_000)])
        store.search("blue ferry")
        by_frame = python_calls(
            lambda: store.search("blue ferry", page=cerata.Page(group_by="frame"))
        )
        by_content = python_calls(lambda: store.search("blue ferry"))
        assert by_content - by_frame <= 8 < 0.05 * by_frame


def test_a_reranker_reads_a_page_of_equal_texts_once(many: Store) -> None:
    """The grouped order would else have other scores of a model that answers differently."""
    model = Checksums()
    hits = many.search("iron gold", k=100, rerank=model)
    assert any(hit.grouped for hit in hits)
    assert len(model.calls) == 1
    whole = many.search("iron gold", k=700, rerank=Checksums(), page=cerata.Page(group_by="frame"))
    best: dict[str, int] = {}
    for hit in whole:
        best.setdefault(hit.text, hit.id)
    assert [hit.id for hit in hits] == [*best.values()][:100]


def test_a_comparison_of_two_states_is_of_frames() -> None:
    """A copy that a later state has would else be no result of it."""
    with cerata.open(":memory:") as store:
        store.put_frame("The ferry is blue.")
        basis = store.head.seq
        copy = store.put_frame("The ferry is blue.")
        results = store.diff(basis, "HEAD", query="ferry").results
        assert [(change.id, change.new_rank) for change in results or ()] == [(copy.id, 2)]
