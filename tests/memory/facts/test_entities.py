"""Who is who: entities, their names, merges and splits."""

import pytest

from cerata import Conflict, Entity, FactOptions, NotFound, Store

from .answers import said

PARIS, ROME = Entity("paris"), Entity("rome")


@pytest.fixture
def store(store: Store) -> Store:
    store.graph.declare("lives in", functional=True)
    return store


class TestWho:
    def test_a_merge_holds_until_it_is_taken_back(self, store: Store) -> None:
        store.assert_fact("IBM", "makes", "mainframes")
        store.assert_fact("Big Blue", "hired", Entity("ann"))
        before = store.head
        merge = store.graph.merge("Big Blue", "IBM")
        assert [fact.subject for fact in store.facts("Big Blue")] == ["IBM", "IBM"]
        assert store.graph.entity("Big Blue").names == ("IBM", "Big Blue")
        assert store.at(before).graph.entity("IBM").mentions == 1
        store.graph.unmerge(merge)
        assert [fact.subject for fact in store.facts("Big Blue")] == ["Big Blue"]
        with pytest.raises(Conflict):
            store.graph.unmerge(merge)

    def test_a_merge_in_a_circle_or_of_what_is_merged_is_refused(self, store: Store) -> None:
        for name in ("a", "b", "c"):
            store.graph.name(name)
        store.graph.merge("a", "b")
        with pytest.raises(Conflict, match="circle"):
            store.graph.merge("b", "a")
        with pytest.raises(Conflict, match="merged into 'b' already"):
            store.graph.merge("a", "c")
        with pytest.raises(NotFound):
            store.graph.merge("b", "nobody")
        with store.transaction():
            store.graph.merge("b", "c")
            with pytest.raises(Conflict, match="circle"):
                store.graph.merge("c", "a")
            store.graph.unmerge(-1)
        assert store.graph.entity("a").name == "b"

    def test_values_of_merged_entities_are_those_of_one(self, store: Store) -> None:
        store.assert_fact("al", "lives in", PARIS, valid_from="2020-01-01")
        store.assert_fact("alice", "lives in", ROME, valid_from="2022-01-01")
        store.graph.merge("al", "alice")
        assert said(store.facts("alice", include_ended=True)) == ["paris 2020-2022", "rome 2022-"]

    def test_a_split_moves_facts_until_it_is_taken_back(self, store: Store) -> None:
        first = store.assert_fact("smith", "is", "a baker")
        second = store.assert_fact("smith", "is", "a smith")
        third = store.assert_fact("ann", "knows", Entity("smith"))
        split = store.graph.split("smith", "smith the elder", [second, third])
        assert [fact.id for fact in store.facts("smith")] == [first.id]
        assert [fact.id for fact in store.facts("smith the elder")] == [second.id]
        assert store.graph.fact(third).object == Entity("smith the elder")
        assert store.facts(object=Entity("smith")) == []
        store.graph.unsplit(split)
        assert len(store.facts("smith")) == 2

    def test_names_are_exact_and_aliases_folded(self, store: Store) -> None:
        store.graph.name("org:ibm", kind="company", aliases=["Big Blue", "IBM"])
        store.graph.name("person:blue", aliases=["big  BLUE"])
        assert store.graph.resolve("BIG-blue") == ["org:ibm", "person:blue"]
        assert store.graph.entity("org:ibm").kind == "company"
        assert store.graph.entity("org:ibm").aliases == ("Big Blue", "IBM")
        assert store.graph.entity("ibm").name == "org:ibm"
        with pytest.raises(NotFound, match="org:ibm"):
            store.graph.entity("Org IBM")
        assert [one.name for one in store.graph.entities(kind="company")] == ["org:ibm"]


def test_a_merge_names_entities_of_its_own_tenant(store: Store) -> None:
    """It was accepted for names that other tenants have, and made entities of them here."""
    for tenant in ("t", "u"):
        store.assert_fact("ally", "is", tenant, options=FactOptions(scope={"tenant": tenant}))
    store.assert_fact("bob", "is", "u", options=FactOptions(scope={"tenant": "u"}))
    with pytest.raises(NotFound, match="ally"):
        store.graph.merge("ally", "bob")
    with pytest.raises(NotFound, match="bob"):
        store.graph.merge("ally", "bob", scope={"tenant": "t"})
    with pytest.raises(NotFound, match="bob"):
        store.graph.split("bob", "rob", [1], scope={"tenant": "t"})
    store.graph.merge("ally", "bob", scope={"tenant": "u"})
    assert [one.name for one in store.graph.entities()] == ["ally", "bob"]
