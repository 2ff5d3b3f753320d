"""Searching facts: by the names that a question has, by its words, and as a lane of a search."""

import pytest

import cerata
from cerata import Entity, Filter, Store
from cerata.engine.errors import InvalidInput
from cerata.memory.snapshot.reader import snapshot_of
from cerata.projections.facts.entities import Entities


@pytest.fixture
def store() -> Store:
    """Of Alice two facts, of Bob one, and the notes that two were read in."""
    store = cerata.open(":memory:")
    store.put_frame("Alice moved to Paris in spring.")
    store.put_frame("The weather in Rome is fine.")
    store.graph.name("alice", aliases=["Ally Smith"])
    store.assert_fact("alice", "lives in", Entity("paris"), valid_from="2024-03-01", evidence=[1])
    store.assert_fact("alice", "favourite drink", "green tea", valid_from="2020-01-01")
    store.assert_fact("bob", "lives in", Entity("rome"), valid_from="2020-01-01", evidence=[2])
    return store


def found(store: Store, question: str, **asked: object) -> list[tuple[object, tuple[str, ...]]]:
    hits = store.graph.search(question, **asked)  # type: ignore[arg-type]
    return [(hit.fact.object, hit.named) for hit in hits]


def test_an_alias_brings_the_facts_of_its_entity(store: Store) -> None:
    """None of its words is in a fact, or in a frame."""
    named = [(Entity("paris"), ("alice",)), ("green tea", ("alice",))]
    assert sorted(found(store, "ALLY  smith?"), key=str) == sorted(named, key=str)


def test_a_fact_that_names_more_of_the_question_comes_first(store: Store) -> None:
    assert found(store, "what has Paris to do with alice")[0] == (
        Entity("paris"),
        ("paris", "alice"),
    )


def test_the_words_of_a_question_order_the_facts_of_whom_it_names(store: Store) -> None:
    assert found(store, "where does Alice live")[0][0] == Entity("paris")
    assert found(store, "what are Alice's favourite drinks")[0][0] == "green tea"


def test_a_question_that_names_nobody_finds_facts_by_their_words(store: Store) -> None:
    assert found(store, "favourite drinks") == [("green tea", ())]
    assert found(store, "nothing of that kind") == []


def test_a_longer_name_is_taken_before_a_part_of_it(store: Store) -> None:
    store.assert_fact("Smith", "is", "somebody else")
    folded = ["ally", "smith"]
    assert Entities(snapshot_of(store).facts_at).entities_in(folded) == [(1, "alice")]
    assert Entities(snapshot_of(store).facts_at).entities_in(folded[1:]) == [(1, "Smith")]


def test_facts_are_found_as_they_were_known_and_true(store: Store) -> None:
    before = store.history.view()
    store.retract_fact(store.facts("alice", "lives in")[0])
    store.graph.merge("alice", "bob")
    assert found(store, "Ally Smith") == [(Entity("rome"), ("bob",)), ("green tea", ("bob",))]
    assert [hit.fact.object for hit in before.graph.search("Ally Smith lives")] == [
        Entity("paris"),
        "green tea",
        Entity("rome"),
    ]
    assert found(store, "Ally Smith", valid_at="2019-01-01") == []
    then = store.at(before, valid_at="2021-01-01")
    assert [hit.fact.object for hit in then.graph.search("Ally Smith", k=1)] == ["green tea"]


def test_a_value_that_has_ended_is_passed_over_for_those_after_it(store: Store) -> None:
    """More are looked for until k of them are true."""
    store.graph.declare("eats", functional=True)
    for year in range(2000, 2020):
        store.assert_fact("carl", "eats", f"dish {year}", valid_from=f"{year}-01-01")
    store.assert_fact("dora", "eats", "dish", valid_from="2000-01-01")
    hits = store.graph.search("dish", k=2, valid_at="2010-06-01")
    assert sorted(str(hit.fact) for hit in hits) == [
        "carl · eats · dish 2010",
        "dora · eats · dish",
    ]


def test_a_search_has_the_frames_that_facts_were_read_in_as_a_lane(store: Store) -> None:
    [hit] = store.search("where does Ally Smith live?")
    assert (hit.id, hit.lanes, hit.score) == (1, ("facts",), 0.1)
    [both] = store.search("who lives in Rome")
    assert (both.id, both.lanes) == (2, ("text", "facts"))
    [alone] = store.search("who lives in Rome", profile="words")
    assert both.score == pytest.approx(alone.score + 0.1)
    assert store.search("the weather")[0].lanes == ("text",)
    assert store.search("Ally Smith", where=Filter(kind="note")) == []
    store.delete(1)
    assert store.search("Ally Smith") == []


def test_a_context_says_what_is_known_of_whom_the_question_names(store: Store) -> None:
    context = store.recall("where does Ally Smith live?")
    assert context.text.startswith(
        "[#4 · fact · #1]\nalice · lives in · paris, since 2024-03-01\n\n[#5 · fact]\n"
    )
    assert [item.id for item in context.items] == [4, 5, 1]
    assert not context.fallback
    assert [item.id for item in store.recall("Ally Smith", max_tokens=149).items] == [1]


def test_facts_of_an_open_transaction_are_found_in_it(store: Store) -> None:
    with store.transaction():
        store.assert_fact("alice", "plays", "chess")
        assert found(store, "does Ally Smith play anything")[0] == ("chess", ("alice",))
        assert found(store, "chess") == [("chess", ())]
    assert found(store, "chess") == [("chess", ())]


def test_tenants_find_their_own_facts_alone(store: Store) -> None:
    store.assert_fact(
        "alice", "lives in", Entity("oslo"), options=cerata.FactOptions(scope={"tenant": "other"})
    )
    other = store.history.view().within((("tenant", "other"),))
    assert [hit.fact.object for hit in other.graph.search("where does alice live")] == [
        Entity("oslo")
    ]
    assert other.graph.search("Ally Smith") == []


def test_an_alias_of_another_tenant_names_nobody_here(store: Store) -> None:
    """The name that it stands for was looked up in every tenant."""
    store.assert_fact(
        "alice", "likes", "rum", options=cerata.FactOptions(scope={"tenant": "other"})
    )
    assert {fact for fact, _ in found(store, "Ally Smith")} == {Entity("paris"), "green tea"}


def test_a_word_that_says_nothing_names_nobody(store: Store) -> None:
    """One fact about "it" stood before whatever was asked."""
    store.assert_fact("It", "is", Entity("What"), evidence=[2])
    assert found(store, "is it about the favourite drink")[0] == ("green tea", ())
    assert found(store, "it")[0][1] == ("It",)


def test_a_past_view_ranks_its_own_facts_though_the_fold_of_words_stands_elsewhere(
    store: Store,
) -> None:
    """Equal counts of rows were taken for equal rows, whatever events both folds stood at."""
    store.assert_fact("bob", "keeps", "a zebra", valid_from="2020-01-01")
    store.assert_fact("bob", "keeps", "a zebra", valid_from="2020-01-01", confidence=0.5)
    store.assert_fact("dan", "drinks", "grog")
    then = store.history.view()
    assert [hit.fact.object for hit in then.graph.search("zebra")] == ["a zebra"]
    store.assert_fact("eve", "reads", "a book")
    store.facts()
    assert len(snapshot_of(then).fact_text.seqs) == 6
    assert snapshot_of(store).facts_at.row_count == 6
    again = store.at(then)
    assert [hit.fact.subject for hit in again.graph.search("grog")] == ["dan"]
    assert [hit.fact.subject for hit in again.graph.search("zebra")] == ["bob"]


def test_fewer_hits_are_the_first_of_more(store: Store) -> None:
    """How deep a lane was fused went by how many hits were asked for."""
    store.put_frames([f"Alice and rome, note {number}" for number in range(130)])
    store.assert_fact("alice", "wrote", "notes", evidence=list(range(60, 130)))
    many = [hit.id for hit in store.search("alice notes", k=120)]
    assert len(many) == 120
    assert [hit.id for hit in store.search("alice notes", k=20)] == many[:20]


@pytest.mark.parametrize(("question", "k"), [(7, 1), ("a", 0), ("a", True)])
def test_a_question_that_is_none_is_refused(store: Store, question: str, k: int) -> None:
    with pytest.raises(InvalidInput):
        store.graph.search(question, k=k)
