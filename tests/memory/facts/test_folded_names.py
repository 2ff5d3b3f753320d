"""Facts by names in another spelling, and by an `Entity` in each place of a name."""

from pathlib import Path
from random import Random
from typing import Any

import pytest

import cerata
from cerata import Assertion, Entity, InvalidInput, Store
from cerata.projections.fulltext.analyzer import folded_name


@pytest.fixture
def store() -> Store:
    store = cerata.open(":memory:")
    store.assert_fact("alice", "lives in", Entity("Paris"))
    store.assert_fact("Bob", "Lives In", "paris")
    store.assert_fact("Ren\u00e9e", "likes", "C++")
    return store


def ids(facts: list[cerata.Fact]) -> list[int]:
    return [fact.id for fact in facts]


def test_names_match_in_any_case(store: Store) -> None:
    """facts("Alice") was empty without a word."""
    assert ids(store.facts("Alice")) == ids(store.facts("ALICE  ")) == [1]
    assert ids(store.facts("renee")) == [3]
    assert ids(store.facts(predicate="LIVES-in")) == [1, 2]
    assert ids(store.facts(object="PARIS")) == [1, 2]
    assert ids(store.facts(object=Entity("paris"))) == [1]
    assert ids(store.facts("BOB", "lives in", "Paris")) == [2]
    assert ids(store.graph.versions("bob")) == [2]
    assert store.facts("ali") == store.facts(object=b"paris") == []


def test_names_without_letters_and_long_names_match_exactly(store: Store) -> None:
    long_name = "Name " * 50
    for name in ("!!", "??", long_name):
        store.assert_fact(name, "is", "!!")
    assert ids(store.facts("!!")) == [4]
    assert ids(store.facts(object="!!")) == [4, 5, 6]
    assert ids(store.facts(long_name)) == [6]
    assert store.facts(long_name.lower()) == []


def test_contradictions_and_merges_follow_folded_names(store: Store) -> None:
    store.graph.declare("has", functional=True)
    for value in (1, 2):
        store.assert_fact("alice", "has", value, valid_from="2020-01-01")
    assert len(store.graph.conflicts("ALICE")) == 1
    store.graph.name("ally")
    store.graph.merge("alice", "ally")
    assert ids(store.facts("Ally")) == ids(store.facts("Alice")) == [1, 5, 6]
    assert ids(store.facts(object="paris")) == [1, 2]


def test_an_entity_is_a_name_wherever_a_name_is(store: Store) -> None:
    ann = Entity("ann")
    fact = store.assert_fact(ann, "likes", "tea")
    store.graph.assert_many([(ann, "likes", "rum"), Assertion(ann, "likes", "gin")])
    assert len(store.facts(ann)) == len(store.graph.versions(ann)) == 3
    assert store.graph.conflicts(ann) == []
    assert store.graph.entity(ann).name == store.graph.resolve(ann)[0] == "ann"
    assert len(store.graph.search(ann)) == 3
    store.graph.name(Entity("anna"), kind="person")
    merge = store.graph.merge(ann, Entity("anna"))
    assert store.graph.fact(fact).subject == "anna"
    store.graph.unmerge(merge)
    store.graph.split(ann, Entity("anna"), [fact])
    assert ids(store.facts(Entity("Anna"))) == [fact.id]
    for wrong in (Entity(""), Entity(3), 3):  # type: ignore[arg-type]
        with pytest.raises(InvalidInput):
            store.facts(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", range(4))
def test_folded_matches_are_those_of_a_model_at_every_basis(seed: int, tmp_path: Path) -> None:
    """Of a file that saved its checkpoints, and of a transaction."""
    dice = Random(seed)
    spellings = ["ann", "Ann", "ANN", "A-nn", "a nn", "b\u00e9a", "Bea", "!", "", "cy"]
    path = str(tmp_path / "m.cera")

    def draw(*, text: bool = True) -> Any:
        name = dice.choice([one for one in spellings if one])
        return name if text or dice.random() < 0.5 else Entity(name)

    with cerata.open(path) as store:
        for _ in range(40):
            store.assert_fact(draw(), draw(), draw(text=False))
            if dice.random() < 0.1:
                store.checkpoint()
        _check(store, draw)
        store.checkpoint()
    with cerata.open(path) as store:
        _check(store, draw)
        for basis in range(0, store.head.seq + 1, 8):
            _check(store.at(basis), draw)
        with store.transaction():
            store.assert_fact("aNN", "BEA", "New")
            assert store.facts("ann", "bea", "new")[-1].id == -1
            _check(store, draw)


def _check(view: Any, draw: Any) -> None:
    every = view.facts()
    for _ in range(12):
        subject, predicate, value = draw(), draw(), draw(text=False)
        for bound in (
            (subject,),
            (None, predicate),
            (None, None, value),
            (subject, predicate, value),
        ):
            expected = [fact for fact in every if _matches(fact, *bound)]
            assert view.facts(*bound) == expected, bound


def _matches(fact: Any, subject: Any = None, predicate: Any = None, value: Any = None) -> bool:
    is_entity = isinstance(fact.object, Entity)
    return (
        (subject is None or _equal(fact.subject, subject))
        and (predicate is None or _equal(fact.predicate, predicate))
        and (value is None or is_entity or not isinstance(value, Entity))
        and (value is None or _equal(str(fact.object), str(value)))
    )


def _equal(first: str, second: str) -> bool:
    return first == second or (folded_name(first) or None) == folded_name(second)


def test_a_name_that_was_looked_up_matches_later_spellings(store: Store) -> None:
    """The codes of a name are cached only while no string is added."""
    store.assert_fact("Ann Lee", "lives in", "Oslo")
    for _ in range(2):
        assert len(store.facts("ann lee", "LIVES IN", "oslo")) == 1
    early = store.history.view()
    store.assert_fact("ANN LEE", "Lives in", "OSLO")
    assert len(store.facts("ann lee", "LIVES IN", "oslo")) == 2
    assert len(early.facts("ann lee", "LIVES IN", "oslo")) == 1
    with store.transaction():
        store.assert_fact("Ann lee", "lives IN", "oSLO")
        assert len(store.facts("ann lee", "LIVES IN", "oslo")) == 3
    assert len(store.facts("ann lee", "LIVES IN", "oslo")) == 3
