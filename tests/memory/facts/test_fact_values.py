"""The edges of objects, names and ids: what is kept as it is, what is equal, what is refused.

docs/facts.md says what each of them means; whole histories are `test_facts_model`'s.
"""

import enum
from collections.abc import Callable, Iterator
from datetime import date, datetime
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest

import cerata
from cerata import Entity, Store
from cerata.engine.errors import InvalidInput, NotFound
from cerata.memory.values.facts import FactObject

from ...projections.facts.fact_model import folded
from .answers import value_in
from .edges import FIRST, LAST, T, edge_store
from .world import environment, time_at


class Colour(enum.StrEnum):
    RED = "red"


class Count(enum.IntEnum):
    ONE = 1


class Name(str):
    """As libraries have them: a string and more."""

    __slots__ = ()

    def __str__(self) -> str:
        return "not this"


def is_alike(name: str, other: str) -> bool:
    """Return whether names are equal in folded form; without letters and digits, as they are."""
    return folded(name) == folded(other) if folded(name) else name == other


def is_found_by(argument: FactObject, value: FactObject) -> bool:
    """Return whether ``facts(object=argument)`` admits an object, by the page."""
    if isinstance(argument, Entity):
        return isinstance(value, Entity) and is_alike(argument.name, value.name)
    if isinstance(argument, str):
        name = value.name if isinstance(value, Entity) else value
        return isinstance(name, str) and is_alike(argument, name)
    return value_in(value) == value_in(argument)


@pytest.fixture
def store() -> Iterator[Store]:
    with edge_store() as opened:
        yield opened


class TestObjects:
    """Seven kinds, of which two are never equal."""

    SAME: tuple[FactObject, ...] = (
        *("1", 1, 1.0, True, b"1", Entity("1"), time_at(1)),
        *("", 0, 0.0, False, b"", time_at(0)),
        *("\0", b"\0", Entity("\0"), "\0\0", b"\xff", "ÿ", "e\u0301", "é", "\U0010ffff"),
        *(2**63 - 1, -(2**63), 5e-324, 1.7976931348623157e308, 2.0**63),
    )

    def test_each_is_its_own_and_comes_back_as_it_was(self, store: Store) -> None:
        for one in self.SAME:
            store.assert_fact("a", "p", one)
        found = [fact.object for fact in store.facts("a", "p")]
        assert [value_in(one) for one in found] == [value_in(one) for one in self.SAME]
        assert [type(one) for one in found] == [type(one) for one in self.SAME]
        for one in self.SAME:
            found = [fact.object for fact in store.facts(object=one)]
            assert found == [other for other in self.SAME if is_found_by(one, other)]
            assert value_in(one) in [value_in(other) for other in found]

    def test_all_of_them_are_other_values_of_one_predicate(self, store: Store) -> None:
        store.graph.declare("p", functional=True)
        some = self.SAME[:7]
        for one in some:
            store.assert_fact("a", "p", one, valid_from=T[0])
        assert len(store.graph.conflicts()) == len(list(combinations(some, 2)))

    def test_minus_zero_is_zero(self, store: Store) -> None:
        first = store.assert_fact("a", "p", 0.0, valid_from=T[0])
        assert store.graph.fact(store.assert_fact("a", "p", -0.0, valid_from=T[0])).id == first.id
        assert [str(fact.object) for fact in store.facts(object=-0.0)] == ["0.0"]

    @pytest.mark.parametrize(
        ("given", "kept"),
        [
            (np.float64(1.5), 1.5),
            (np.int64(1), 1),
            (Colour.RED, "red"),
            (Count.ONE, 1),
            (Name("tea"), "tea"),
            (np.str_("tea"), "tea"),
            (Entity(Name("tea")), Entity("tea")),
        ],
    )
    def test_what_is_a_kind_and_more_is_kept_as_that_kind(
        self, store: Store, given: Any, kept: object
    ) -> None:
        """Also inside a transaction, where nothing was decoded yet."""
        with store.transaction():
            gathered = store.assert_fact("a", "p", given)
            assert [store.graph.fact(gathered).object] == [one.object for one in store.facts("a")]
        [fact] = store.facts(object=given)
        assert value_in(fact.object) == value_in(kept)

    @pytest.mark.parametrize(
        "given",
        [
            *(float("nan"), float("inf"), -float("inf"), np.float64("nan")),
            *(2**63, -(2**63) - 1, 2**64, 10**30),
            *(None, b"".join, [], {}, (1,), 1j, bytearray(b"x"), date(2024, 3, 1)),
            *("\ud800", Entity("\ud800"), Entity(""), Entity(" \t")),
            datetime(2024, 3, 1),  # noqa: DTZ001 - what is tested
        ],
    )
    def test_what_is_no_object_is_refused(self, store: Store, given: Any) -> None:
        with pytest.raises(InvalidInput):
            store.assert_fact("a", "p", given)
        if given is not None:
            with pytest.raises(InvalidInput):
                store.facts(object=given)
        assert store.history.view().basis == 0


class TestNames:
    """Strings that are not empty, kept as they are, and found in any spelling."""

    @pytest.mark.parametrize("name", ["", " ", "\t\n", "\ud800", "a\udfff", None, 1, b"a"])
    def test_what_is_no_name_is_refused(self, store: Store, name: Any) -> None:
        fact = store.assert_fact("a", "p", 1)
        calls: list[Callable[[], object]] = [
            lambda: store.assert_fact(name, "p", 1),
            lambda: store.assert_fact("a", name, 1),
            lambda: store.assert_fact("a", "p", 1, options=cerata.FactOptions(assumptions=[name])),
            lambda: store.graph.declare(name, functional=True),
            lambda: store.graph.name(name),
            lambda: store.graph.name("a", aliases=[name]),
            lambda: store.graph.merge("a", name),
            lambda: store.graph.merge(name, "a"),
            lambda: store.graph.split("a", name, [fact]),
            lambda: store.graph.split(name, "b", [fact]),
            lambda: store.graph.entity(name),
            lambda: store.graph.resolve(name),
        ]
        if name is not None:
            calls += [
                lambda: store.graph.name("a", kind=name),
                lambda: store.facts(name),
                lambda: store.facts(None, name),
                lambda: store.graph.versions(name),
                lambda: store.graph.conflicts(name),
            ]
        for call in calls:
            with pytest.raises(InvalidInput):
                call()
        assert store.history.view().basis == 1

    def test_names_are_kept_as_they_are_and_found_in_any_spelling(self, store: Store) -> None:
        """NUL ends nothing; entities of one folded form stay apart; long names match exactly."""
        groups = [["a", "a\0", "\0a", "A", "a "], ["é", "e\u0301"], ["a" * 1_000], ["A" * 1_000]]
        names = [name for group in groups for name in group]
        store.graph.assert_many([(name, name, name) for name in names])
        for group in groups:
            for name in group:
                assert [fact.object for fact in store.facts(name)] == group
                assert [fact.object for fact in store.facts(None, name)] == group
                assert store.graph.entity(name).names == (name,)
        assert [one.name for one in store.graph.entities()] == names

    def test_a_name_without_a_word_is_found_as_it_is(self, store: Store) -> None:
        store.graph.name("??", aliases=["!"])
        assert store.graph.resolve("??") == ["??"]
        assert store.graph.resolve("...") == []


class TestIds:
    """An id is the seq of an event that asserted the fact."""

    @pytest.mark.parametrize("number", [0, -1, -2, 2, 3, 4, 2**63, -(2**63), 2**70])
    def test_what_nothing_has_is_not_found(self, store: Store, number: int) -> None:
        store.assert_fact("a", "p", 1)
        store.graph.name("b")
        with pytest.raises(NotFound):
            store.graph.fact(number)
        with pytest.raises(NotFound):
            store.retract_fact(number)

    def test_inside_a_transaction_only_its_own_are_negative(self, store: Store) -> None:
        first = store.assert_fact("a", "p", 1)
        with store.transaction():
            gathered = store.assert_fact("b", "p", 1)
            assert gathered.id == -1
            assert [store.graph.fact(one).subject for one in (first.id, -1)] == ["a", "b"]
            for number in (0, 2, 3, -2):
                with pytest.raises(NotFound):
                    store.graph.fact(number)

    @pytest.mark.parametrize("number", [True, 1.0, "1", None, [1]])
    def test_what_is_no_id_is_refused(self, store: Store, number: Any) -> None:
        store.assert_fact("a", "p", 1)
        for call in (
            store.graph.fact,
            store.retract_fact,
            store.graph.unmerge,
            store.graph.unsplit,
        ):
            with pytest.raises(InvalidInput):
                call(number)


def test_no_facts_at_all_are_refused(store: Store) -> None:
    """Alone and in a transaction, which may be of anything else."""
    for call in (store.graph.assert_many, store.graph.retract_many):
        with pytest.raises(InvalidInput):
            call([])
        with store.transaction():
            assert store.graph.name(call.__name__).added
            with pytest.raises(InvalidInput):
                call([])
    assert store.history.view().basis == 2


def test_every_edge_survives_a_checkpoint_and_a_replay() -> None:
    """All objects over all ranges, read back by one who opens the file, and from the log."""
    world, _ = environment()
    starts: tuple[datetime | str, ...] = ("open", FIRST, T[0])
    ends: tuple[datetime | str, ...] = ("open", LAST, T[1])
    with cerata.open("edges.cera", environment=world) as store:
        store.graph.assert_many(
            [
                cerata.Assertion("a", "p", one, start, end)
                for one, start, end in product(TestObjects.SAME, starts, ends)
            ]
        )
        said = [fact.to_dict() for fact in store.facts(include_ended=True)]
        store.checkpoint()
    with cerata.open("edges.cera", environment=world) as store:
        assert [fact.to_dict() for fact in store.facts(include_ended=True)] == said
        assert [fact.to_dict() for fact in store.stream.replay().facts(include_ended=True)] == said
    assert len(said) == 9 * len(TestObjects.SAME)
