"""The edges of ranges and times, at which one meaning ends and another begins.

docs/facts.md says what each of them means; whole histories are `test_facts_model`'s.
"""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta, timezone
from itertools import combinations
from typing import Any
from zoneinfo import ZoneInfo

import pytest

import cerata
from cerata import Allen, Store
from cerata.engine.errors import InvalidInput
from cerata.engine.events import AssertFact

from ...projections.facts.fact_model import EVER, allen
from .edges import FIRST, LAST, MICROSECOND, T, edge_store
from .world import environment, time_at

BERLIN = ZoneInfo("Europe/Berlin")


@pytest.fixture
def store() -> Iterator[Store]:
    with edge_store() as opened:
        yield opened


def true_at(store: Store, when: datetime | str) -> list[object]:
    return [fact.object for fact in store.facts(valid_at=when)]


class TestRanges:
    """Half-open, and not empty."""

    @pytest.mark.parametrize(
        ("start", "end"),
        [
            (T[1], T[0]),
            (T[1], T[1]),
            (T[1], T[1] - MICROSECOND),
            (T[1], T[1].astimezone(timezone(timedelta(hours=9)))),
            (LAST, FIRST),
            (None, T[0]),
        ],
    )
    def test_an_empty_or_inverted_range_is_refused(
        self, store: Store, start: datetime | None, end: datetime
    ) -> None:
        """Also one that begins now and has ended, and one instant in two zones."""
        with pytest.raises(InvalidInput, match="would end at"):
            store.assert_fact("a", "p", 1, valid_from=start, valid_to=end)
        if start is not None:
            with pytest.raises(InvalidInput, match="empty or inverted"):
                store.facts(overlapping=(start, end))
            with pytest.raises(InvalidInput, match="empty or inverted"):
                store.facts(allen=("during", (start, end)))
        assert store.history.view().basis == 0

    def test_a_correction_to_an_inverted_range_is_refused_whole(self, store: Store) -> None:
        fact = store.assert_fact("a", "p", 1, valid_from=T[1], valid_to=T[3])
        for start, end in ((None, T[1]), (T[3], None), (T[4], None), (T[2], T[2])):
            with pytest.raises(InvalidInput, match="would end at"):
                store.correct_fact(fact, valid_from=start, valid_to=end)
        assert store.graph.fact(fact).is_known

    def test_a_range_of_one_microsecond_has_one_instant(self, store: Store) -> None:
        store.assert_fact("a", "p", 1, valid_from=T[0], valid_to=T[0] + MICROSECOND)
        near = [T[0] - MICROSECOND, T[0], T[0] + MICROSECOND]
        assert [len(store.facts(valid_at=when)) for when in near] == [0, 1, 0]

    def test_ranges_that_meet_share_nothing(self, store: Store) -> None:
        """Half-open: what ends where the next begins neither overlaps nor contradicts it."""
        store.graph.declare("p", functional=True)
        first = store.assert_fact("a", "p", 1, valid_from=T[0], valid_to=T[1])
        store.assert_fact("a", "p", 2, valid_from=T[1], valid_to=T[2])
        assert [true_at(store, when) for when in T[:3]] == [[1], [2], []]
        assert store.graph.fact(first).ended_by is None
        assert store.graph.conflicts() == []

    def test_one_range_twice_with_another_value_overlaps_and_contradicts(
        self, store: Store
    ) -> None:
        store.graph.declare("p", functional=True)
        store.assert_fact("a", "p", 1, valid_from=T[0], valid_to=T[2])
        second = store.assert_fact("a", "p", 2, valid_from=T[0], valid_to=T[1])
        assert true_at(store, T[0]) == [1, 2]
        [conflict] = store.graph.conflicts()
        assert conflict.period == cerata.Period(T[0], T[1])
        store.retract_fact(second)
        assert store.graph.conflicts() == []

    def test_of_values_that_begin_at_once_the_first_asserted_is_named_as_the_next(
        self, store: Store
    ) -> None:
        store.graph.declare("p", functional=True)
        old = store.assert_fact("a", "p", 1, valid_from=T[0])
        next_one = store.assert_fact("a", "p", 2, valid_from=T[1])
        store.assert_fact("a", "p", 3, valid_from=T[1])
        assert store.graph.fact(old).ended_by == next_one.id
        store.retract_fact(next_one)
        assert store.graph.fact(old).valid.end == T[1]

    def test_open_ends(self, store: Store) -> None:
        for name, start, end in (
            ("both", "open", "open"),
            ("start", "open", T[1]),
            ("end", T[1], "open"),
        ):
            store.assert_fact("a", "p", name, valid_from=start, valid_to=end)
        assert true_at(store, FIRST) == ["both", "start"]
        assert true_at(store, T[1] - MICROSECOND) == ["both", "start"]
        assert true_at(store, T[1]) == ["both", "end"]
        assert true_at(store, LAST) == ["both", "end"]
        [both] = store.facts(object="both")
        assert both.valid == cerata.Period(None, None)
        assert both.valid.to_dict() == {"start": None, "end": None}
        assert len(store.facts(overlapping=(None, None))) == 3

    def test_a_value_without_a_beginning_is_ended_by_the_next(self, store: Store) -> None:
        store.graph.declare("p", functional=True)
        store.assert_fact("a", "p", 1, valid_from="open")
        store.assert_fact("a", "p", 2, valid_from=FIRST)
        assert true_at(store, FIRST) == [2]
        store.assert_fact("a", "p", 3, valid_from="open")
        [conflict] = store.graph.conflicts()
        assert conflict.period == cerata.Period(None, FIRST)

    def test_what_had_ended_when_it_was_recorded_is_never_true(self) -> None:
        """The log gives each batch a later microsecond, if need be ahead of the clock."""
        world, clock = environment()
        with cerata.open("edges.cera", environment=world) as store:
            store.graph.declare("p", functional=True)
            value = store.assert_fact("a", "p", 1, valid_from="open")
            gone = store.assert_fact("a", "p", 2, valid_to=time_at(clock.time_us + 1))
            fact = store.graph.fact(gone)
            assert fact.valid == cerata.Period(fact.known.start, time_at(clock.time_us + 1))
            assert fact.valid.end is not None
            assert fact.valid.start is not None
            assert fact.valid.end < fact.valid.start
            assert [one.id for one in store.facts(overlapping=(None, None))] == [value.id]
            assert all(store.facts(allen=(name, (T[0], None))) != [fact] for name in Allen)
            assert store.graph.fact(value).ended_by is None
            assert store.graph.conflicts() == []

    def test_what_another_writer_stored_inverted_is_never_true(self, store: Store) -> None:
        body = AssertFact(
            subject="a", predicate="p", object_kind="integer", object=1, valid_from=5, valid_to=3
        )
        store.append(body)
        assert [fact.object for fact in store.facts("a", include_ended=True)] == [1]
        assert store.facts(overlapping=(None, None)) == []
        assert [one for name in Allen for one in store.facts(allen=(name, (T[0], T[1])))] == []


class TestAllen:
    """Thirteen relations, of which one holds."""

    def test_each_of_two_ranges_has_one_relation_and_it_is_the_model_s(self, store: Store) -> None:
        """All ranges over four instants and the two open ends, each against each: 225 pairs."""
        marks: list[datetime | None] = [None, *T[:4], None]
        numbers = [-EVER, 0, 1, 2, 3, EVER]
        ranges = list(combinations(range(6), 2))
        store.graph.assert_many(
            [
                cerata.Assertion("a", "p", place, marks[i] or "open", marks[j])
                for place, (i, j) in enumerate(ranges)
            ]
        )
        pairs = 0
        for c, d in ranges:
            found: dict[object, Allen] = {}
            for name in Allen:
                for fact in store.facts(allen=(name, (marks[c], marks[d]))):
                    assert fact.object not in found
                    found[fact.object] = name
            for place, (a, b) in enumerate(ranges):
                one, other = (numbers[a], numbers[b]), (numbers[c], numbers[d])
                assert allen(one, other) == [found[place].value]
                assert allen(other, one) == [found[place].inverse.value]
                pairs += 1
        assert pairs == 225

    @pytest.mark.parametrize(
        "given",
        [
            "during",
            ("during",),
            ("near", (T[0], T[1])),
            (None, (T[0], T[1])),
            ([], (T[0], T[1])),
            ("during", T[0]),
            ("during", (T[0],)),
            ("during", (T[0].replace(tzinfo=None), T[1])),
        ],
    )
    def test_what_is_no_relation_or_period_is_refused(self, store: Store, given: Any) -> None:
        store.assert_fact("a", "p", 1)
        with pytest.raises(InvalidInput):
            store.facts(allen=given)


class TestTimes:
    """One instant, whatever it is called."""

    def test_zones_and_strings_name_one_instant(self, store: Store) -> None:
        names: list[datetime | str] = [
            datetime(2024, 3, 1, tzinfo=UTC),
            datetime(2024, 3, 1, 9, tzinfo=timezone(timedelta(hours=9))),
            datetime(2024, 2, 29, 18, 15, tzinfo=timezone(-timedelta(hours=5, minutes=45))),
            datetime(2024, 3, 1, 1, tzinfo=BERLIN),
            "2024-03-01",
            "2024-03-01T00:00:00Z",
            "2024-03-01T01:00+01:00",
            "20240301T000000+0000",
        ]
        ids = {store.graph.fact(store.assert_fact("a", "p", 1, valid_from=one)).id for one in names}
        assert len(ids) == 1
        objects = [one for one in names if isinstance(one, datetime)]
        for when in objects:
            store.assert_fact("a", "when", when, valid_from="open")
        [fact] = store.facts("a", "when")
        assert fact.object == datetime(2024, 3, 1, tzinfo=UTC)
        assert [len(store.facts(object=when)) for when in objects] == [1, 1, 1, 1]
        assert all(len(store.facts(valid_at=one)) == 2 for one in names)

    def test_an_hour_that_comes_twice_is_two_hours(self, store: Store) -> None:
        """In Berlin the clocks went back on 2024-10-27 at 3:00; ``fold`` says which 2:30 it is."""
        half_past = datetime(2024, 10, 27, 2, 30, tzinfo=BERLIN)
        store.assert_fact("a", "p", 1, valid_from=half_past, valid_to=half_past.replace(fold=1))
        [fact] = store.facts()
        assert fact.valid == cerata.Period(
            datetime(2024, 10, 27, 0, 30, tzinfo=UTC), datetime(2024, 10, 27, 1, 30, tzinfo=UTC)
        )

    def test_an_hour_that_does_not_come_is_read_as_python_reads_it(self, store: Store) -> None:
        """2024-03-31 2:30 in Berlin: by the offset before the change it is 1:30 UTC."""
        store.assert_fact("a", "p", 1, valid_from=datetime(2024, 3, 31, 2, 30, tzinfo=BERLIN))
        assert store.facts()[0].valid.start == datetime(2024, 3, 31, 1, 30, tzinfo=UTC)

    def test_a_date_is_the_beginning_of_its_day(self, store: Store) -> None:
        store.assert_fact("a", "p", 1, valid_from=date(2024, 3, 1))
        assert store.facts()[0].valid.start == datetime(2024, 3, 1, tzinfo=UTC)

    @pytest.mark.parametrize(
        "when",
        [
            datetime(2024, 3, 1),  # noqa: DTZ001 - what is tested
            "2024-03-01T12:00:00",
            "2024-03-01T23:59:60Z",
            "",
            1_709_251_200,
            datetime.min.replace(tzinfo=timezone(timedelta(hours=14))),
            datetime.max.replace(tzinfo=timezone(-timedelta(hours=14))),
        ],
    )
    def test_what_names_no_instant_is_refused(self, store: Store, when: Any) -> None:
        """Naive times, which are another instant elsewhere; what lies outside years 1 to 9999."""
        fact = store.assert_fact("a", "p", 1, valid_from=T[0])
        calls = (
            lambda: store.assert_fact("a", "q", 1, valid_from=when),
            lambda: store.assert_fact("a", "q", 1, valid_from=T[0], valid_to=when),
            lambda: store.correct_fact(fact, valid_to=when),
            lambda: store.correct_fact(fact, valid_from=when),
            lambda: store.facts(valid_at=when),
            lambda: store.facts(overlapping=(T[0], when)),
            lambda: store.facts(allen=("during", (when, T[0]))),
        )
        for call in calls:
            with pytest.raises(InvalidInput):
                call()
        assert store.history.view().basis == 1

    def test_words_name_a_time_to_read_at_and_none_to_store(self, store: Store) -> None:
        """A stored time in words would depend on the day of the call."""
        fact = store.assert_fact("a", "p", 1, valid_from=T[0])
        for when in ("yesterday", "2 hours ago"):
            for call in (
                lambda when=when: store.assert_fact("a", "q", 1, valid_from=when),
                lambda when=when: store.assert_fact("a", "q", 1, valid_from=T[0], valid_to=when),
                lambda when=when: store.correct_fact(fact, valid_to=when),
                lambda when=when: store.facts(overlapping=(T[0], when)),
            ):
                with pytest.raises(InvalidInput, match="not an ISO time"):
                    call()
        assert store.history.view().basis == 1
        day = store.history.view().now.date()
        today, yesterday = str(day), str(day - timedelta(days=1))
        store.assert_fact("b", "p", 1, valid_from=yesterday, valid_to=today)
        read = [fact.subject for fact in store.facts(valid_at="yesterday")]
        assert "b" in read
        assert read == [fact.subject for fact in store.facts(valid_at=yesterday)]
        assert "b" not in [fact.subject for fact in store.facts(valid_at="today")]

    def test_the_first_and_last_instants(self, store: Store) -> None:
        store.assert_fact("a", "p", FIRST, valid_from=FIRST, valid_to=LAST)
        [fact] = store.facts(object=FIRST)
        assert (fact.valid, fact.object) == (cerata.Period(FIRST, LAST), FIRST)
        near = [FIRST, FIRST + MICROSECOND, LAST - MICROSECOND, LAST]
        assert [len(store.facts(valid_at=when)) for when in near] == [1, 1, 1, 0]

    def test_recorded_at_one_instant_the_later_is_a_microsecond_later(self, store: Store) -> None:
        """The clock stands still here; order is by seq, and no two batches share an instant."""
        store.graph.declare("p", functional=True)
        first = store.assert_fact("a", "p", 1)
        second = store.assert_fact("a", "p", 2)
        assert store.graph.fact(first).valid.end == store.graph.fact(second).known.start
        assert store.graph.conflicts() == []

    def test_in_one_batch_two_values_begin_at_one_instant(self, store: Store) -> None:
        store.graph.declare("p", functional=True)
        store.graph.assert_many([("a", "p", 1), ("a", "p", 2)])
        [conflict] = store.graph.conflicts()
        assert (conflict.first.object, conflict.second.object) == (1, 2)
