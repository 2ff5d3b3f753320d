"""Which fact is which and who is who: merges and splits, and the same fact again.

docs/facts.md says what each of them means; whole histories are `test_facts_model`'s.
"""

from collections.abc import Iterator

import pytest

import cerata
from cerata import Entity, Store

from .edges import LAST, edge_store
from .world import environment


@pytest.fixture
def store() -> Iterator[Store]:
    with edge_store() as opened:
        yield opened


class TestTakenBack:
    """What was merged or split and is no more reads as if it had never been."""

    def test_a_correction_made_meanwhile_keeps_its_names(self, store: Store) -> None:
        """Not those that they were read as: it would be another one's for ever."""
        fact = store.assert_fact("ally", "knows", Entity("bobby"), confidence=0.5)
        store.graph.assert_many([("alice", "knows", 1), ("bob", "knows", 1)])
        merges = [store.graph.merge("ally", "alice"), store.graph.merge("bobby", "bob")]
        corrected = store.correct_fact(fact, confidence=0.9)
        shown = store.graph.fact(corrected)
        assert (shown.subject, shown.object) == ("alice", Entity("bob"))
        for merge in merges:
            store.graph.unmerge(merge)
        shown = store.graph.fact(corrected)
        assert (shown.subject, shown.object) == ("ally", Entity("bobby"))

    def test_a_correction_of_a_fact_that_was_split_stays_with_whom_it_means(
        self, store: Store
    ) -> None:
        fact = store.assert_fact("john", "lives in", "Rome")
        store.graph.split("john", "john (2)", [fact])
        assert store.graph.fact(store.correct_fact(fact, object="Paris")).subject == "john (2)"

    def test_of_two_splits_the_later_one_holds_until_it_is_taken_back(self, store: Store) -> None:
        fact = store.assert_fact("john", "lives in", "Rome")
        store.graph.split("john", "john (2)", [fact])
        later = store.graph.split("john", "john (3)", [fact])
        assert store.graph.fact(fact).subject == "john (3)"
        store.graph.unsplit(later)
        assert store.graph.fact(fact).subject == "john (2)"

    def test_whom_only_a_split_named_is_gone_with_it(self, store: Store) -> None:
        fact = store.assert_fact("john", "lives in", "Rome")
        before = list(store.graph.entities())
        split = store.graph.split("john", "john (2)", [fact])
        assert [one.name for one in store.graph.entities()] == ["john", "john (2)"]
        store.graph.unsplit(split)
        assert list(store.graph.entities()) == before
        assert store.graph.resolve("john (2)") == []

    def test_in_every_scope_whoever_takes_it_back(self) -> None:
        """A merge and a split of a session are ended by the store that has all sessions."""
        world, _ = environment()
        scope = {"tenant": "default", "session": "s1"}
        with cerata.open("edges.cera", scope=scope, environment=world) as session:
            fact = session.assert_fact("ann", "knows", Entity("bob"))
            session.graph.name("anna")
            merge = session.graph.merge("ann", "anna")
            split = session.graph.split("bob", "carl", [fact])
            assert str(session.graph.fact(fact)) == "anna · knows · carl"
            with cerata.open("edges.cera", environment=world) as every:
                every.graph.unmerge(merge)
                every.graph.unsplit(split)
            assert str(session.graph.fact(fact)) == "ann · knows · bob"


class TestAgain:
    """When the same fact again is the same fact."""

    def test_of_two_that_are_alike_the_known_one_is_said_again(self, store: Store) -> None:
        """Moved away and back, both taken back: the first stay is the one that is known."""
        store.graph.declare("lives in", functional=True)
        first, away, back = (
            store.assert_fact("ann", "lives in", one) for one in ("Rome", "Paris", "Rome")
        )
        store.retract_fact(away)
        store.retract_fact(back)
        again = store.assert_fact("ann", "lives in", "Rome")
        assert store.graph.fact(again).id == first.id

    def test_the_order_of_a_scope_s_names_makes_no_other_scope(self, store: Store) -> None:
        first = store.assert_fact(
            "a",
            "p",
            1,
            valid_from="open",
            options=cerata.FactOptions(scope={"user": "u", "run": 1}),
        )
        again = store.assert_fact(
            "a",
            "p",
            1,
            valid_from="open",
            options=cerata.FactOptions(scope={"run": 1, "user": "u"}),
        )
        assert store.graph.fact(again).id == first.id
        other = store.assert_fact(
            "a",
            "p",
            1,
            valid_from="open",
            options=cerata.FactOptions(scope={"run": True, "user": "u"}),
        )
        assert store.graph.fact(other).id == other.id

    def test_who_moves_back_is_seen_to_under_any_of_her_names(self, store: Store) -> None:
        store.graph.declare("lives in", functional=True)
        store.graph.name("anna")
        store.assert_fact("ann", "lives in", "Rome")
        store.graph.merge("anna", "ann")
        store.assert_fact("anna", "lives in", "Paris")
        store.assert_fact("ann", "lives in", "Rome")
        objects = [one.object for one in store.facts("ann", include_ended=True)]
        assert objects == ["Rome", "Paris", "Rome"]
        assert [one.object for one in store.facts("ann", valid_at=LAST)] == ["Rome"]

    def test_a_move_that_was_split_off_somebody_else_is_seen_to(self, store: Store) -> None:
        store.graph.declare("lives in", functional=True)
        store.assert_fact("carl", "lives in", "Rome")
        moved = store.assert_fact("john", "lives in", "Paris")
        store.graph.split("john", "carl", [moved])
        back = store.assert_fact("carl", "lives in", "Rome")
        assert [one.object for one in store.facts("carl", valid_at=LAST)] == ["Rome"]
        assert store.graph.fact(back).id == back.id

    def test_a_correction_is_as_far_from_what_was_observed(self, store: Store) -> None:
        """So is what a retraction of an earlier batch is named as the cause of."""
        first = store.assert_fact("a", "p", 1)
        second = store.assert_fact("a", "p", 2, options=cerata.FactOptions(because=first))
        corrected = store.correct_fact(second, object=3)
        assert [store.graph.fact(one).depth for one in (first, second, corrected)] == [0, 1, 1]
        gone = store.retract_fact(corrected)
        after = store.assert_fact("a", "p", 4, options=cerata.FactOptions(because=gone))
        assert store.graph.fact(after).depth == 1

    def test_a_fact_that_was_split_away_is_no_move(self, store: Store) -> None:
        store.graph.declare("lives in", functional=True)
        first = store.assert_fact("john", "lives in", "Rome")
        other = store.assert_fact("john", "lives in", "Paris")
        store.graph.split("john", "john (2)", [other, other])
        assert store.graph.fact(store.assert_fact("john", "lives in", "Rome")).id == first.id


class TestEntities:
    """In order of the events and names that made them, whatever another scope has."""

    def test_a_group_stands_where_its_first_name_does(self, store: Store) -> None:
        store.graph.assert_many([("ann", "knows", 1), ("bob", "knows", Entity("carl"))])
        store.graph.merge("ann", "carl")
        assert [one.name for one in store.graph.entities()] == ["carl", "bob"]
        assert [one.first_seen for one in store.graph.entities()] == [1, 2]
        assert store.graph.entity("ann").names == ("carl", "ann")

    def test_order_is_the_same_whatever_another_session_named_before(self) -> None:
        world, _ = environment()
        with cerata.open("edges.cera", environment=world) as store:
            store.graph.name("bob", scope={"session": "s1"})
            store.assert_fact(
                "ann", "knows", Entity("bob"), options=cerata.FactOptions(scope={"session": "s2"})
            )
        scope = {"tenant": "default", "session": "s2"}
        with cerata.open("edges.cera", scope=scope, environment=world) as session:
            assert [one.name for one in session.graph.entities()] == ["ann", "bob"]

    def test_inside_a_transaction_first_seen_is_as_ids_are(self, store: Store) -> None:
        store.graph.name("ann")
        with store.transaction():
            store.graph.name("bob")
            assert [one.first_seen for one in store.graph.entities()] == [1, -1]
            assert store.graph.entity("bob").first_seen == -1
