"""Facts that have ended: left out of `facts` by default, and marked in every result."""

from collections.abc import Iterator

import pytest

import cerata
from cerata import Entity, Store
from cerata.engine.events import RecallContext
from cerata.projections.columnar.times import to_datetime

from .world import environment

DAY = 86_400_000_000
"""In microseconds."""

T2026 = 1_767_225_600_000_000
"""2026-01-01."""


@pytest.fixture
def store() -> Iterator[Store]:
    with cerata.open(":memory:") as store:
        yield store


def test_facts_leaves_out_what_has_ended(store: Store) -> None:
    store.graph.declare("lives in", functional=True)
    old = store.assert_fact("alice", "lives in", Entity("oslo"), valid_from="2020-01-01")
    new = store.assert_fact("alice", "lives in", Entity("rome"), valid_from="2022-01-01")
    assert [fact.id for fact in store.facts("alice")] == [new.id]
    every = store.facts("alice", include_ended=True)
    assert [(fact.id, fact.is_ended) for fact in every] == [(old.id, True), (new.id, False)]
    assert [fact.id for fact in store.at(old).facts("alice")] == [old.id]


def test_a_question_of_a_time_is_answered_with_facts_that_have_ended_since(store: Store) -> None:
    old = store.assert_fact("a", "is", 1, valid_from="2020-01-01", valid_to="2021-01-01")
    [fact] = store.facts("a", valid_at="2020-06-01")
    assert (fact.id, fact.is_ended) == (old.id, False)
    assert store.at("HEAD", valid_at="2020-06-01").facts("a") == [fact]
    assert [one.is_ended for one in store.facts("a", overlapping=("2020-01-01", None))] == [True]
    assert [one.id for one in store.facts("a", allen=("meets", ("2021-01-01", None)))] == [old.id]
    assert [one.is_ended for one in store.graph.versions("a")] == [True]
    assert store.graph.fact(old).is_ended
    assert store.graph.fact(old).to_dict()["is_ended"] is True
    assert store.facts("a") == []


def test_a_fact_that_was_retracted_and_has_ended_needs_both_words(store: Store) -> None:
    old = store.assert_fact("a", "is", 1, valid_from="2020-01-01", valid_to="2021-01-01")
    store.retract_fact(old)
    assert store.facts("a", include_retracted=True) == store.facts("a", include_ended=True) == []
    assert len(store.facts("a", include_ended=True, include_retracted=True)) == 1


def test_a_fact_ends_when_its_time_comes_without_an_event() -> None:
    """By the clock at the head, also in a context, whose `now` makes it repeatable."""
    clean, clock = environment()
    clock.time_us = T2026
    with cerata.open(":memory:", environment=clean) as store:
        fact = store.assert_fact("alice", "visits", Entity("oslo"), valid_to="2026-01-03")
        assert not store.graph.fact(fact).is_ended
        before = store.recall("where is alice?")
        assert "(ended)" not in before.text
        clock.time_us += 3 * DAY
        assert store.facts("alice") == []
        assert store.graph.fact(fact).is_ended
        assert not store.at(fact).graph.fact(fact).is_ended
        assert store.graph.search("alice")[0].fact.is_ended
        after = store.recall("where is alice?", record=True)
        assert "until 2026-01-03 (ended)" in after.text
        store.put_frame("A later event.")
        assert store.recall("where is alice?").text == after.text
        for context in (before, after):
            assert store.at(context).recall("where is alice?").text == context.text
        assert store.at(fact).recall("where is alice?").text == before.text
        body = next(store.log(after.recorded or 0)).body
        assert isinstance(body, RecallContext)
        assert body.now is not None
        view = store.at(body.basis, now=to_datetime(body.now))
        assert view.recall(body.query).text == after.text


def test_a_context_has_facts_that_have_ended_marked_and_last(store: Store) -> None:
    store.assert_fact("alice", "lives in", "oslo", valid_from="2020-01-01", valid_to="2022-01-01")
    store.assert_fact("alice", "lives in", "rome by the sea", valid_from="2022-01-01")
    text = store.recall("where does alice live?").text
    assert text.index("rome by the sea, since 2022-01-01\n") < text.index(
        "oslo, since 2020-01-01, until 2022-01-01 (ended)"
    )
    then = store.at("HEAD", valid_at="2021-01-01").recall("where does alice live?")
    assert "until 2022-01-01" in then.text
    assert "(ended)" not in then.text


def test_exports_and_conflicts_have_what_has_ended(store: Store) -> None:
    store.graph.declare("is", functional=True)
    for value in (1, 2):
        store.assert_fact("a", "is", value, valid_from="2020-01-01", valid_to="2021-01-01")
    assert len(store.graph.conflicts()) == 1
    with cerata.open(":memory:") as copy:
        copy.interchange.import_facts(store.interchange.export_facts())
        assert len(copy.facts("a", include_ended=True)) == 2
