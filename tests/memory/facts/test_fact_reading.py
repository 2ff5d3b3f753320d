"""Facts read back: from a checkpoint, by views that are held, from threads, and many at once."""

import datetime as dt
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import cerata
from cerata import Assertion, Store

from ...inside import fold_of
from ...timing import seconds


@pytest.fixture
def store(store: Store) -> Store:
    store.graph.declare("lives in", functional=True)
    return store


def test_a_checkpoint_gives_every_read_back(tmp_path: Path) -> None:
    path = tmp_path / "memory.cera"
    with cerata.open(path) as store:
        store.graph.declare("is", functional=True)
        frame = store.put_frame("text").id
        for number in range(700):
            store.assert_fact(
                f"s{number % 40}",
                "is",
                number,
                valid_from="2020-01-01",
                evidence=[frame],
                options=cerata.FactOptions(assumptions=["x"]),
            )
        store.graph.merge("s1", "s2")
        store.checkpoint()
        store.retract_fact(store.facts("s3")[0])
        kept = [fact.to_dict() for fact in store.facts()], store.stream.digests()
    with cerata.open(path, mode="r") as store:
        assert ([fact.to_dict() for fact in store.facts()], store.stream.digests()) == kept
        assert store.stream.digests(replay=True) == kept[1]
        assert store.verify().ok


def test_a_rebuilt_projection_is_what_the_store_reads_from_then_on(tmp_path: Path) -> None:
    """The store went on reading the state that was rebuilt because it was wrong."""
    path = tmp_path / "memory.cera"
    with cerata.open(path) as store:
        store.assert_fact("a", "is", 1)
        assert store.facts("a")
        wrong = fold_of(store).facts()
        store.upkeep.rebuild("facts")
        assert fold_of(store).facts(wrong.seq) is not wrong


def test_a_view_that_is_held_reads_on_while_facts_are_retracted(store: Store) -> None:
    """What the columns say of closings that came since was looked up among its own: IndexError."""
    store.retract_fact(store.assert_fact("x", "is", 1))
    fact = store.assert_fact("a", "is", 1)
    held = store.history.view()
    before = held.facts()
    store.retract_fact(fact)
    assert store.facts("a") == []
    assert held.facts() == before
    assert held.graph.fact(fact).is_known
    assert [hit.fact.id for hit in held.graph.search("a is")] == [fact.id]
    assert store.at(fact).facts("a") == held.facts("a")
    store.checkpoint()
    assert store.at(fact).facts("a") == held.facts("a")


def test_facts_are_read_from_threads_while_others_are_retracted(store: Store) -> None:
    """Each thread reads its view again and again, and finds in it what it found at first."""
    facts = [store.assert_fact("a", "is", number) for number in range(60)]

    def read() -> bool:
        view = store.history.view()
        first = [fact.id for fact in view.facts("a")]
        return all([fact.id for fact in view.facts("a")] == first for _ in range(40))

    with ThreadPoolExecutor(3) as pool:
        reading = [pool.submit(read) for _ in range(9)]
        for fact in facts:
            store.retract_fact(fact)
        assert all(one.result() for one in reading)


def test_contradictions_are_looked_for_where_there_can_be_any(store: Store) -> None:
    """Each pair of the values of any predicate was compared: 5,000 of them took half a minute."""
    store.graph.assert_many([Assertion("a", "likes", number) for number in range(5_000)])
    store.assert_fact("a", "likes", True)

    def read() -> None:
        assert len(store.facts("a")) == 5_001

    def compare() -> None:
        assert store.graph.conflicts("a") == []

    assert seconds(compare) < 10 * seconds(read)


def test_many_values_of_a_functional_predicate_are_read_in_one_pass(store: Store) -> None:
    """Each was held against all before it: 3,000 of them took a third of a second to read."""
    store.graph.declare("status", functional=True)
    start = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
    store.graph.assert_many(
        [
            Assertion("a", "status", number, valid_from=start + dt.timedelta(hours=number))
            for number in range(4_000)
        ]
    )
    store.graph.assert_many(
        [
            Assertion("b", "notes", number, valid_from=start + dt.timedelta(hours=number))
            for number in range(4_000)
        ]
    )

    def read(subject: str) -> None:
        assert len(store.facts(subject, include_ended=True)) == 4_000

    assert seconds(lambda: read("a")) < 5 * seconds(lambda: read("b"))
