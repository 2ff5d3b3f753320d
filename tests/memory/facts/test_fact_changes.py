"""What changed of facts between two states, beside comparing every fact of both."""

from itertools import product
from random import Random

import pytest

import cerata
from cerata import Entity, FactChange, Store, View
from cerata.engine.events import JsonValue
from cerata.memory.view import Basis

from ...timing import seconds
from .acts import KINDS, Act
from .histories import PRELUDE, run
from .world import START_US as START
from .world import STEP_US, VIEWS, time_at


@pytest.fixture
def store() -> Store:
    return cerata.open(":memory:")


def compared(a: View, b: View) -> list[FactChange]:
    """Return the changes by id, from the lists of all facts."""
    old = {fact.id: fact for fact in a.facts(include_ended=True)}
    new = {fact.id: fact for fact in b.facts(include_ended=True)}
    return [
        FactChange(old.get(one), new.get(one))
        for one in sorted(old.keys() | new.keys())
        if old.get(one) != new.get(one)
    ]


def frames(view: View) -> list[dict[str, JsonValue]]:
    """Return all that a view says of its frames, those that are gone too."""
    every = view.frames(where=cerata.Filter(include_deleted=True, include_superseded=True))
    return [frame.to_dict() for frame in every]


def kinds(changes: tuple[FactChange, ...]) -> list[tuple[str, object]]:
    return [(change.kind, change.fact.object) for change in changes]


@pytest.mark.parametrize("seed", range(6))
def test_any_two_states_of_a_random_history(seed: int) -> None:
    """Of two bases, two instants, in either order and in every scope."""
    dice = Random(seed)
    acts: list[Act] = [
        (dice.choice(KINDS), *(dice.randrange(64) for _ in range(4)))  # type: ignore[misc]
        for _ in range(24)
    ]
    with run([*PRELUDE, *[[act] for act in acts]], lambda _: None).open() as store:
        end = store.history.view().basis
        instants = [None, *(time_at(START + dice.randrange(-2, 12) * STEP_US) for _ in range(3))]
        differ = 0
        for scope, first, second in product(VIEWS, instants, instants):
            a, b = dice.randrange(end + 1), dice.choice((end, dice.randrange(end + 1)))
            before = store.at(a, valid_at=first).within(scope)
            after = store.at(b, valid_at=second).within(scope)
            found = store.diff(before, after)
            assert list(found.facts) == compared(before, after)
            assert bool(found) == (bool(found.facts) or frames(before) != frames(after))
            differ += len(found.facts)
        assert differ > 20


def test_what_was_learned_and_what_was_taken_back(store: Store) -> None:
    kept = store.assert_fact("ann", "likes", "tea")
    wrong = store.assert_fact("ann", "likes", "coffee")
    before = store.history.view()
    store.retract_fact(wrong)
    store.assert_fact("ann", "likes", "water")
    assert kinds(store.diff(before).facts) == [("removed", "coffee"), ("added", "water")]
    assert kinds(store.diff("HEAD", before).facts) == [("added", "coffee"), ("removed", "water")]
    assert store.diff(kept, wrong).facts[0].old is None


def test_a_value_that_ended_because_another_began_is_a_change(store: Store) -> None:
    store.graph.declare("lives in", functional=True)
    old = store.assert_fact("ann", "lives in", "paris", valid_from="2020-01-01")
    store.assert_fact("ann", "lives in", "rome", valid_from="2024-01-01")
    [changed, added] = store.diff(old).facts
    assert (changed.kind, changed.fact.object, added.fact.object) == ("changed", "paris", "rome")
    assert changed.old is not None
    assert changed.new is not None
    assert (str(changed.old.valid.end), str(changed.new.valid.end)) == (
        "None",
        "2024-01-01 00:00:00+00:00",
    )
    assert str(changed).startswith("~ #2 ann · lives in · paris, [2020-01-01")


def test_a_merge_changes_whom_a_fact_is_about(store: Store) -> None:
    store.graph.assert_many([("ann", "likes", Entity("ally")), ("bob", "likes", "tea")])
    before = store.history.view()
    store.graph.merge("ally", "ann")
    [changed] = store.diff(before).facts
    assert (str(changed.old), str(changed.new)) == ("ann · likes · ally", "ann · likes · ann")


def test_what_began_and_what_ended_between_two_instants(store: Store) -> None:
    for thing, start, end in (
        ("tea", "2020-01-01", "2024-01-01"),
        ("coffee", "2024-01-01", "2026-01-01"),
        ("water", "2000-01-01", None),
    ):
        store.assert_fact("ann", "likes", thing, valid_from=start, valid_to=end)
    found = store.diff(
        store.at("HEAD", valid_at="2023-01-01"), store.at("HEAD", valid_at="2025-01-01")
    )
    assert kinds(found.facts) == [("removed", "tea"), ("added", "coffee")]
    assert str(found).splitlines()[-1].endswith("facts: 1 added, 1 removed")
    first, second = (store.at("HEAD", valid_at=when) for when in ("2024-06-01", "2025-01-01"))
    assert not store.diff(first, second)


def test_what_a_transaction_has_gathered_is_a_change(store: Store) -> None:
    store.assert_fact("ann", "likes", "tea")
    with store.transaction():
        store.assert_fact("ann", "likes", "water")
        found = store.diff("HEAD", store.history.view())
        assert [(change.kind, change.fact.id) for change in found.facts] == [("added", -1)]
        assert found.to_dict()["facts"]


def test_a_difference_costs_what_changed_also_with_functional_predicates(store: Store) -> None:
    """All facts were compared as soon as one predicate had one value at a time."""
    store.graph.declare("lives in", functional=True)
    store.graph.assert_many([("ann", "likes", number) for number in range(9_000)])
    before = store.assert_fact("ann", "lives in", "paris", valid_from="2020-01-01")
    store.assert_fact("ann", "lives in", "rome", valid_from="2024-01-01")

    def compare(first: Basis) -> None:
        found = store.diff(first).facts
        assert [change.fact.object for change in found][-2:] == ["paris", "rome"]

    assert 10 * seconds(lambda: compare(before)) < seconds(lambda: compare(0))
