"""Facts through a store: asserted, ended, corrected, contradicted."""

import datetime as dt
from pathlib import Path
from typing import Any

import pytest

import cerata
from cerata import Allen, Assertion, Conflict, Entity, InvalidInput, NotFound, Period, Store
from cerata.engine.disk.memory_storage import MemoryStorage

from ...clocks import StandingClock
from .answers import said
from .world import START_US

PARIS, ROME, OSLO = Entity("paris"), Entity("rome"), Entity("oslo")


@pytest.fixture
def store(store: Store) -> Store:
    store.graph.declare("lives in", functional=True)
    return store


class TestClocks:
    def test_what_was_known_and_what_was_true_are_two_questions(self, store: Store) -> None:
        first = store.assert_fact("alice", "lives in", PARIS, valid_from="2020-01-01")
        store.assert_fact("alice", "lives in", ROME, valid_from="2023-05-01")
        assert said(store.facts("alice", valid_at="2021-06-01")) == ["paris 2020-2023"]
        assert said(store.facts("alice", valid_at="2024-01-01")) == ["rome 2023-"]
        assert said(store.at(first).facts("alice", valid_at="2024-01-01")) == ["paris 2020-"]
        assert said(store.at(first, valid_at="2024-01-01").facts("alice")) == ["paris 2020-"]

    def test_a_range_is_half_open(self, store: Store) -> None:
        store.assert_fact("a", "is", 1, valid_from="2020-01-01", valid_to="2021-01-01")
        assert store.facts("a", valid_at="2020-01-01")
        assert not store.facts("a", valid_at="2021-01-01")
        assert not store.facts("a", valid_at="2019-12-31T23:59:59.999999+00:00")

    def test_without_a_start_a_fact_is_true_from_when_it_is_recorded(self, store: Store) -> None:
        number = store.assert_fact("a", "is", 1).id
        fact = store.graph.fact(number)
        assert fact.valid.start == fact.known.start
        assert not store.facts("a", valid_at="2020-01-01")
        assert store.facts("a", valid_at="now") == [fact]

    def test_now_is_never_before_the_last_event_though_the_clock_goes_back(self) -> None:
        clock = StandingClock(START_US)
        environment = cerata.Environment(clock=clock, storage=MemoryStorage())
        with cerata.open("m", environment=environment) as store:
            store.assert_fact("a", "is", 1)
            clock.time_us -= 60_000_000
            assert store.facts("a", valid_at="now")

    def test_an_open_start_is_before_every_time(self, store: Store) -> None:
        store.assert_fact("water", "boils at", 100, valid_from="open")
        (fact,) = store.facts("water", valid_at="0001-01-01")
        assert fact.valid == Period(None, None)

    def test_zones_name_one_instant(self, store: Store) -> None:
        store.assert_fact("a", "is", 1, valid_from="2024-03-31T03:00:00+02:00")
        assert store.facts("a", valid_at="2024-03-31T01:00:00+00:00")
        assert not store.facts("a", valid_at="2024-03-31T00:59:59+00:00")

    def test_periods_that_overlap_and_every_relation_of_allen(self, store: Store) -> None:
        store.assert_fact("a", "is", 1, valid_from="2020-01-01", valid_to="2021-01-01")
        assert store.facts("a", overlapping=("2020-06-01", None))
        assert not store.facts("a", overlapping=("2021-01-01", None))
        period = ("2021-01-01", "2022-01-01")
        assert [name for name in Allen if store.facts("a", allen=(name, period))] == [Allen.MEETS]
        assert store.facts("a", allen=("during", ("2019-01-01", None)))
        with pytest.raises(InvalidInput, match="not a relation of periods"):
            store.facts("a", allen=("beside", period))


class TestOneValueAtATime:
    def test_late_news_ends_nothing_that_began_after_it(self, store: Store) -> None:
        """In whatever order they are learned, open ends mean until the next value."""
        store.assert_fact("a", "lives in", ROME, valid_from="2022-01-01")
        store.assert_fact("a", "lives in", PARIS, valid_from="2020-01-01")
        assert said(store.facts("a", include_ended=True)) == ["rome 2022-", "paris 2020-2022"]
        assert store.graph.conflicts() == []

    def test_a_given_end_is_shortened_by_newer_facts_only(self, store: Store) -> None:
        store.assert_fact("a", "lives in", ROME, valid_from="2022-01-01")
        store.assert_fact("a", "lives in", OSLO, valid_from="2020-01-01", valid_to="2025-01-01")
        assert said(store.facts("a", include_ended=True)) == ["rome 2022-", "oslo 2020-2025"]
        (found,) = store.graph.conflicts("a")
        assert (found.first.object, found.second.object) == (ROME, OSLO)
        assert found.period.start == dt.datetime(2022, 1, 1, tzinfo=dt.UTC)

    def test_retract_the_next_value_and_the_one_before_goes_on(self, store: Store) -> None:
        first = store.assert_fact("a", "lives in", PARIS, valid_from="2020-01-01")
        second = store.assert_fact("a", "lives in", ROME, valid_from="2022-01-01")
        assert store.graph.fact(first).ended_by == second.id
        store.retract_fact(second)
        assert said(store.facts("a", include_ended=True)) == ["paris 2020-"]
        assert said(store.at(second).facts("a", include_ended=True)) == [
            "paris 2020-2022",
            "rome 2022-",
        ]

    def test_two_values_from_one_instant_are_a_contradiction(self, store: Store) -> None:
        one = store.assert_fact("a", "lives in", PARIS, valid_from="2020-01-01")
        store.assert_fact("a", "lives in", ROME, valid_from="2020-01-01")
        (found,) = store.graph.conflicts()
        assert found.first.id == one.id
        assert found.period == found.first.valid
        assert store.at(one).graph.conflicts() == []

    def test_who_moves_back_has_lived_there_twice(self, store: Store) -> None:
        for city in (PARIS, ROME, PARIS, PARIS):
            store.assert_fact("a", "lives in", city)
        facts = store.facts("a", "lives in", include_ended=True)
        assert [fact.object for fact in facts] == [PARIS, ROME, PARIS]
        assert [fact.object for fact in store.facts("a", valid_at="now")] == [PARIS]

    def test_a_predicate_has_many_values_unless_it_is_declared(self, store: Store) -> None:
        store.assert_fact("a", "likes", PARIS, valid_from="2020-01-01")
        store.assert_fact("a", "likes", ROME, valid_from="2021-01-01")
        assert len(store.facts("a", valid_at="2022-01-01")) == 2
        declared = store.graph.declare("likes", functional=True)
        assert len(store.facts("a", valid_at="2022-01-01")) == 1
        store.graph.declare("likes", functional=False)
        assert len(store.facts("a", valid_at="2022-01-01")) == 2
        assert len(store.at(declared).facts("a", valid_at="2022-01-01")) == 1

    def test_true_and_false_contradict_each_other_of_any_predicate(self, store: Store) -> None:
        store.assert_fact("a", "smokes", True, valid_from="2020-01-01", valid_to="2022-01-01")
        store.assert_fact("a", "smokes", False, valid_from="2021-01-01")
        assert [found.second.object for found in store.graph.conflicts("a")] == [False]


class TestTheSameFact:
    def test_the_same_again_adds_its_evidence(self, store: Store) -> None:
        frames = [store.put_frame(text).id for text in ("Ann likes Bob", "she does like him")]
        first = store.assert_fact("ann", "likes", "bob", evidence=[(frames[0], 0, 3)])
        again = store.assert_fact("ann", "likes", "bob", confidence=0.5, evidence=[frames[1]])
        assert [fact.id for fact in store.facts("ann")] == [first.id]
        fact = store.graph.fact(again)
        assert fact.id == first.id
        assert fact.confidence == 0.5
        assert [(one.frame, one.start, one.end) for one in fact.evidence] == [
            (frames[0], 0, 3),
            (frames[1], None, None),
        ]
        assert len(store.at(first).graph.fact(first).evidence) == 1

    def test_another_range_scope_or_type_is_another_fact(self, store: Store) -> None:
        store.assert_fact("a", "is", 1, valid_from="2020-01-01")
        store.assert_fact("a", "is", 1, valid_from="2021-01-01")
        store.assert_fact(
            "a",
            "is",
            1,
            valid_from="2020-01-01",
            options=cerata.FactOptions(scope={"session_id": "s"}),
        )
        store.assert_fact("a", "is", 1.0, valid_from="2020-01-01")
        store.assert_fact("a", "is", True, valid_from="2020-01-01")
        store.assert_fact("a", "is", "1", valid_from="2020-01-01")
        assert [fact.object for fact in store.facts("a")] == [1, 1, 1, 1.0, True, "1"]
        assert [len(store.facts("a", "is", value)) for value in (1, 1.0, True, "1")] == [3, 1, 1, 1]

    def test_after_a_retraction_it_is_a_new_fact(self, store: Store) -> None:
        first = store.assert_fact("a", "is", 1, valid_from="2020-01-01")
        store.retract_fact(first)
        second = store.assert_fact("a", "is", 1, valid_from="2020-01-01")
        assert [fact.id for fact in store.facts("a")] == [second.id]
        assert [fact.id for fact in store.graph.versions("a")] == [first.id, second.id]

    def test_by_the_id_of_a_repetition_the_fact_is_retracted(self, store: Store) -> None:
        first = store.assert_fact("a", "is", 1, valid_from="2020-01-01")
        again = store.assert_fact("a", "is", 1, valid_from="2020-01-01")
        store.retract_fact(again)
        assert not store.facts("a")
        with pytest.raises(Conflict):
            store.retract_fact(first)


class TestEndings:
    def test_a_retracted_fact_is_kept_in_the_past_and_in_its_history(self, store: Store) -> None:
        first = store.assert_fact("a", "is", 1)
        gone = store.retract_fact(first)
        assert store.facts("a") == []
        assert store.at(first).facts("a")[0].is_known
        (fact,) = store.facts("a", include_retracted=True)
        assert fact.retracted_by == gone.id
        assert fact.known.end is not None

    def test_what_is_not_there_or_ended_cannot_be_retracted(self, store: Store) -> None:
        frame = store.put_frame("text").id
        number = store.assert_fact("a", "is", 1).id
        for missing in (frame, 99, -1):
            with pytest.raises(NotFound):
                store.retract_fact(missing)
        with pytest.raises(Conflict, match="twice"):
            store.graph.retract_many([number, number])
        store.retract_fact(number)
        with pytest.raises(Conflict, match="retracted already"):
            store.retract_fact(number)

    def test_what_another_writer_retracted_just_before_is_a_conflict(self, tmp_path: Path) -> None:
        path = tmp_path / "memory.cera"
        with cerata.open(path) as one, cerata.open(path) as other:
            number = one.assert_fact("a", "is", 1).id

            def race() -> None:
                with other.transaction():
                    other.retract_fact(number)
                    one.retract_fact(number)

            with pytest.raises(Conflict):
                race()
            assert other.facts("a") == []

    def test_a_correction_is_one_batch_and_keeps_what_it_does_not_change(
        self, store: Store
    ) -> None:
        frame = store.put_frame("Alice, of Paris since 2019").id
        wrong = store.assert_fact(
            "alice",
            "lives in",
            PARIS,
            valid_from="2020-01-01",
            source="inferred",
            evidence=[frame],
            options=cerata.FactOptions(assumptions=["one Alice"]),
        )
        right = store.correct_fact(wrong, valid_from="2019-01-01")
        assert len(right.seqs) == 2
        (fact,) = store.facts("alice")
        assert fact.id == right.id
        assert said([fact]) == ["paris 2019-"]
        assert (fact.source, fact.assumptions) == ("inferred", ("one Alice",))
        assert [one.frame for one in fact.evidence] == [frame]
        assert said(store.at(wrong).facts("alice")) == ["paris 2020-"]
        with pytest.raises(InvalidInput, match="got no change"):
            store.correct_fact(right)

    def test_depth_says_how_far_a_fact_is_from_what_was_observed(self, store: Store) -> None:
        seen = store.assert_fact("a", "is", 1)
        led = store.assert_fact(
            "a", "is", 2, source="inferred", options=cerata.FactOptions(because=seen)
        )
        further = store.assert_fact(
            "a", "is", 3, source="inferred", options=cerata.FactOptions(because=led)
        )
        assert [store.graph.fact(one).depth for one in (seen, led, further)] == [0, 1, 2]
        corrected = store.correct_fact(further, object=4)
        assert store.graph.fact(corrected).depth == 2


class TestScopes:
    def test_tenants_share_nothing(self) -> None:
        environment = cerata.Environment.in_memory()
        with (
            cerata.open("m", environment=environment, scope={"tenant": "x"}) as one,
            cerata.open("m", environment=environment, scope={"tenant": "y"}) as other,
        ):
            one.graph.declare("is", functional=True)
            number = one.assert_fact("a", "is", 1, valid_from="2020-01-01").id
            other.assert_fact("a", "is", 2, valid_from="2021-01-01")
            other.assert_fact("a", "is", 3, valid_from="2022-01-01")
            assert [fact.object for fact in one.facts("a", valid_at="2023-01-01")] == [1]
            assert [fact.object for fact in other.facts("a", valid_at="2023-01-01")] == [2, 3]
            for act in (other.graph.fact, other.retract_fact):
                with pytest.raises(NotFound):
                    act(number)
            one.graph.name("b")
            one.graph.merge("b", "a")
            assert [info.name for info in other.graph.entities()] == ["a"]
        with cerata.open("m", environment=environment) as every:
            assert len(every.facts("b")) == 1
            assert len(every.facts("a")) == 3

    def test_a_session_sees_its_own(self) -> None:
        environment = cerata.Environment.in_memory()
        with cerata.open("m", environment=environment) as store:
            store.assert_fact("a", "is", 1, options=cerata.FactOptions(scope={"session_id": "s"}))
            store.assert_fact("a", "is", 2)
            view = store.history.view().within((("tenant", "default"), ("session_id", "s")))
            assert [fact.object for fact in view.facts("a")] == [1]


class TestTransactions:
    def test_reads_inside_see_what_is_gathered(self, store: Store) -> None:
        known = store.assert_fact("a", "is", 1).id
        with store.transaction() as gathered:
            frame = store.put_frame("a is 2")
            made = store.assert_fact(
                "a", "is", 2, evidence=[frame], options=cerata.FactOptions(because=known)
            )
            store.retract_fact(known)
            (fact,) = store.facts("a")
            assert (fact.id, fact.evidence[0].frame, fact.depth) == (made.id, frame.id, 1)
            assert fact.id < 0
            assert store.graph.fact(known).retracted_by == -3
            store.correct_fact(made, object=3)
            assert [one.object for one in store.facts("a")] == [3]
        (fact,) = store.facts("a")
        assert (fact.object, fact.evidence[0].frame) == (3, gathered.receipt.ids[0])

    def test_a_key_makes_an_assertion_once(self, store: Store) -> None:
        first = store.assert_fact("a", "is", 1, options=cerata.FactOptions(key="k"))
        again = store.assert_fact("a", "is", 1, options=cerata.FactOptions(key="k"))
        assert (again.id, again.added) == (first.id, False)
        assert store.head.seq == first.id


REFUSED: list[tuple[str, tuple[Any, ...], dict[str, Any], str]] = [
    ("an empty subject", ("", "p", 1), {}, "subject is empty"),
    ("a subject that is none", (3, "p", 1), {}, "must be a string"),
    ("a lone surrogate", ("a", "p", "\ud800"), {}, "not valid Unicode"),
    ("a list", ("a", "p", [1]), {}, "not list"),
    ("no object", ("a", "p", None), {}, "not NoneType"),
    ("not a number", ("a", "p", float("nan")), {}, "nan"),
    ("no end", ("a", "p", float("inf")), {}, "inf"),
    ("65 bits", ("a", "p", 1 << 63), {}, "64 bits"),
    ("digits", ("a", "p", 10**5_000), {}, "64 bits"),
    ("inverted", ("a", "p", 1), {"valid_from": "2021-01-01", "valid_to": "2020-01-01"}, "end at"),
    ("empty", ("a", "p", 1), {"valid_from": "2020-01-01", "valid_to": "2020-01-01"}, "end at"),
    ("over before it begins", ("a", "p", 1), {"valid_to": "2020-01-01"}, "when it is recorded"),
    ("no zone", ("a", "p", dt.datetime(2020, 1, 1)), {}, "no zone"),  # noqa: DTZ001
    ("no zone of a range", ("a", "p", 1), {"valid_from": "2020-01-01T10:00"}, "no zone"),
    ("a source that is none", ("a", "p", 1), {"source": "guess"}, "source must be"),
    ("too sure", ("a", "p", 1), {"confidence": 1.5}, "confidence must be"),
    ("no confidence", ("a", "p", 1), {"confidence": True}, "confidence must be"),
    ("evidence that is none", ("a", "p", 1), {"evidence": [(1, 5, 5)]}, "not a range of bytes"),
]


@pytest.mark.parametrize(("arguments", "more", "what"), [row[1:] for row in REFUSED],
                         ids=[row[0] for row in REFUSED])  # fmt: skip
def test_what_cannot_be_is_refused_and_nothing_is_written(
    store: Store, arguments: tuple[Any, ...], more: dict[str, Any], what: str
) -> None:
    before = store.head.seq
    with pytest.raises(InvalidInput, match=what):
        store.assert_fact(*arguments, **more)
    assert store.head.seq == before


def test_evidence_must_be_a_frame(store: Store) -> None:
    fact = store.assert_fact("a", "is", 1).id
    for missing in (fact, 99):
        with pytest.raises(NotFound):
            store.assert_fact("a", "is", 2, evidence=[missing])


def test_many_at_once_are_all_or_none(store: Store) -> None:
    with pytest.raises(InvalidInput):
        store.graph.assert_many([("a", "is", 1), Assertion("", "is", 2)])
    assert store.facts() == []
    receipt = store.graph.assert_many(
        [("a", "is", 1), Assertion("a", "is", b"\xff", confidence=0.25)]
    )
    assert [store.graph.fact(one).object for one in receipt.ids] == [1, b"\xff"]
