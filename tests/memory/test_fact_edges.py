"""The edges of facts: ranges, times and objects at which one meaning ends and another begins.

docs/facts.md says what each of them means; whole histories are `test_facts_model`'s.
"""

import enum
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta, timezone
from itertools import combinations, product
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest

import cerata
from cerata import Allen, Entity, Store
from cerata.engine.errors import InvalidInput, NotFound
from cerata.engine.events import AssertFact, Draft, Evidence
from cerata.memory.fact_values import FactObject

from ..projections.fact_model import EVER, allen
from .fact_answers import value_in
from .fact_world import STEP_US, environment, time_at

MICROSECOND = timedelta(microseconds=1)
T = [time_at(1_600_000_000_000_000 + place * STEP_US) for place in range(6)]
BERLIN = ZoneInfo("Europe/Berlin")
FIRST, LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


class Colour(enum.StrEnum):
    RED = "red"


class Count(enum.IntEnum):
    ONE = 1


class Name(str):
    """As libraries have them: a string and more."""

    __slots__ = ()

    def __str__(self) -> str:
        return "not this"


@pytest.fixture
def store() -> Iterator[Store]:
    world, _ = environment()
    with cerata.open("edges.cera", environment=world) as opened:
        yield opened
        assert opened.verify().ok


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
        assert store.view().basis == 0

    def test_a_correction_to_an_inverted_range_is_refused_whole(self, store: Store) -> None:
        fact = store.assert_fact("a", "p", 1, valid_from=T[1], valid_to=T[3])
        for start, end in ((None, T[1]), (T[3], None), (T[4], None), (T[2], T[2])):
            with pytest.raises(InvalidInput, match="would end at"):
                store.correct_fact(fact, valid_from=start, valid_to=end)
        assert store.fact(fact).is_known

    def test_a_range_of_one_microsecond_has_one_instant(self, store: Store) -> None:
        store.assert_fact("a", "p", 1, valid_from=T[0], valid_to=T[0] + MICROSECOND)
        near = [T[0] - MICROSECOND, T[0], T[0] + MICROSECOND]
        assert [len(store.facts(valid_at=when)) for when in near] == [0, 1, 0]

    def test_ranges_that_meet_share_nothing(self, store: Store) -> None:
        """Half-open: what ends where the next begins neither overlaps nor contradicts it."""
        store.declare_predicate("p", functional=True)
        first = store.assert_fact("a", "p", 1, valid_from=T[0], valid_to=T[1])
        store.assert_fact("a", "p", 2, valid_from=T[1], valid_to=T[2])
        assert [true_at(store, when) for when in T[:3]] == [[1], [2], []]
        assert store.fact(first).ended_by is None
        assert store.conflicts() == []

    def test_one_range_twice_with_another_value_overlaps_and_contradicts(
        self, store: Store
    ) -> None:
        store.declare_predicate("p", functional=True)
        store.assert_fact("a", "p", 1, valid_from=T[0], valid_to=T[2])
        second = store.assert_fact("a", "p", 2, valid_from=T[0], valid_to=T[1])
        assert true_at(store, T[0]) == [1, 2]
        [conflict] = store.conflicts()
        assert conflict.period == cerata.Period(T[0], T[1])
        store.retract_fact(second)
        assert store.conflicts() == []

    def test_of_values_that_begin_at_once_the_first_asserted_is_named_as_the_next(
        self, store: Store
    ) -> None:
        store.declare_predicate("p", functional=True)
        old = store.assert_fact("a", "p", 1, valid_from=T[0])
        next_one = store.assert_fact("a", "p", 2, valid_from=T[1])
        store.assert_fact("a", "p", 3, valid_from=T[1])
        assert store.fact(old).ended_by == next_one.id
        store.retract_fact(next_one)
        assert store.fact(old).valid.end == T[1]

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
        store.declare_predicate("p", functional=True)
        store.assert_fact("a", "p", 1, valid_from="open")
        store.assert_fact("a", "p", 2, valid_from=FIRST)
        assert true_at(store, FIRST) == [2]
        store.assert_fact("a", "p", 3, valid_from="open")
        [conflict] = store.conflicts()
        assert conflict.period == cerata.Period(None, FIRST)

    def test_what_had_ended_when_it_was_recorded_is_never_true(self) -> None:
        """The log gives each batch a later microsecond, if need be ahead of the clock."""
        world, clock = environment()
        with cerata.open("edges.cera", environment=world) as store:
            store.declare_predicate("p", functional=True)
            value = store.assert_fact("a", "p", 1, valid_from="open")
            gone = store.assert_fact("a", "p", 2, valid_to=time_at(clock.time_us + 1))
            fact = store.fact(gone)
            assert fact.valid == cerata.Period(fact.known.start, time_at(clock.time_us + 1))
            assert fact.valid.end is not None
            assert fact.valid.start is not None
            assert fact.valid.end < fact.valid.start
            assert [one.id for one in store.facts(overlapping=(None, None))] == [value.id]
            assert all(store.facts(allen=(name, (T[0], None))) != [fact] for name in Allen)
            assert store.fact(value).ended_by is None
            assert store.conflicts() == []

    def test_what_another_writer_stored_inverted_is_never_true(self, store: Store) -> None:
        body = AssertFact(
            subject="a", predicate="p", object_kind="integer", object=1, valid_from=5, valid_to=3
        )
        store.append(body)
        assert [fact.object for fact in store.facts("a")] == [1]
        assert store.facts(overlapping=(None, None)) == []
        assert [one for name in Allen for one in store.facts(allen=(name, (T[0], T[1])))] == []


class TestAllen:
    """Thirteen relations, of which one holds."""

    def test_each_of_two_ranges_has_one_relation_and_it_is_the_model_s(self, store: Store) -> None:
        """All ranges over four instants and the two open ends, each against each: 225 pairs."""
        marks: list[datetime | None] = [None, *T[:4], None]
        numbers = [-EVER, 0, 1, 2, 3, EVER]
        ranges = list(combinations(range(6), 2))
        store.assert_facts(
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
        ids = {store.fact(store.assert_fact("a", "p", 1, valid_from=one)).id for one in names}
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

    @pytest.mark.parametrize(
        "when",
        [
            datetime(2024, 3, 1),  # noqa: DTZ001 - what is tested
            "2024-03-01T12:00:00",
            "2024-03-01T23:59:60Z",
            "yesterday",
            "",
            date(2024, 3, 1),
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
        assert store.view().basis == 1

    def test_the_first_and_last_instants(self, store: Store) -> None:
        store.assert_fact("a", "p", FIRST, valid_from=FIRST, valid_to=LAST)
        [fact] = store.facts(object=FIRST)
        assert (fact.valid, fact.object) == (cerata.Period(FIRST, LAST), FIRST)
        near = [FIRST, FIRST + MICROSECOND, LAST - MICROSECOND, LAST]
        assert [len(store.facts(valid_at=when)) for when in near] == [1, 1, 1, 0]

    def test_recorded_at_one_instant_the_later_is_a_microsecond_later(self, store: Store) -> None:
        """The clock stands still here; order is by seq, and no two batches share an instant."""
        store.declare_predicate("p", functional=True)
        first = store.assert_fact("a", "p", 1)
        second = store.assert_fact("a", "p", 2)
        assert store.fact(first).valid.end == store.fact(second).known.start
        assert store.conflicts() == []

    def test_in_one_batch_two_values_begin_at_one_instant(self, store: Store) -> None:
        store.declare_predicate("p", functional=True)
        store.assert_facts([("a", "p", 1), ("a", "p", 2)])
        [conflict] = store.conflicts()
        assert (conflict.first.object, conflict.second.object) == (1, 2)


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
            assert [value_in(fact.object) for fact in store.facts(object=one)] == [value_in(one)]

    def test_all_of_them_are_other_values_of_one_predicate(self, store: Store) -> None:
        store.declare_predicate("p", functional=True)
        some = self.SAME[:7]
        for one in some:
            store.assert_fact("a", "p", one, valid_from=T[0])
        assert len(store.conflicts()) == len(list(combinations(some, 2)))

    def test_minus_zero_is_zero(self, store: Store) -> None:
        first = store.assert_fact("a", "p", 0.0, valid_from=T[0])
        assert store.fact(store.assert_fact("a", "p", -0.0, valid_from=T[0])).id == first.id
        assert [str(fact.object) for fact in store.facts(object=-0.0)] == ["0.0"]

    @pytest.mark.parametrize(
        ("given", "kept"),
        [
            (np.float64(1.5), 1.5),
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
            assert [store.fact(gathered).object] == [one.object for one in store.facts("a")]
        [fact] = store.facts(object=given)
        assert value_in(fact.object) == value_in(kept)

    @pytest.mark.parametrize(
        "given",
        [
            *(float("nan"), float("inf"), -float("inf"), np.float64("nan")),
            *(2**63, -(2**63) - 1, 2**64, 10**30),
            *(None, b"".join, [], {}, (1,), 1j, bytearray(b"x"), date(2024, 3, 1), np.int64(1)),
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
        assert store.view().basis == 0


class TestNames:
    """Strings that are not empty, compared as they are."""

    @pytest.mark.parametrize("name", ["", " ", "\t\n", "\ud800", "a\udfff", None, 1, b"a"])
    def test_what_is_no_name_is_refused(self, store: Store, name: Any) -> None:
        fact = store.assert_fact("a", "p", 1)
        calls: list[Callable[[], object]] = [
            lambda: store.assert_fact(name, "p", 1),
            lambda: store.assert_fact("a", name, 1),
            lambda: store.assert_fact("a", "p", 1, assumptions=[name]),
            lambda: store.declare_predicate(name, functional=True),
            lambda: store.put_entity(name),
            lambda: store.put_entity("a", aliases=[name]),
            lambda: store.merge_entities("a", name),
            lambda: store.merge_entities(name, "a"),
            lambda: store.split_entity("a", name, [fact]),
            lambda: store.split_entity(name, "b", [fact]),
            lambda: store.entity(name),
            lambda: store.resolve(name),
        ]
        if name is not None:
            calls += [
                lambda: store.put_entity("a", kind=name),
                lambda: store.facts(name),
                lambda: store.facts(None, name),
                lambda: store.fact_history(name),
                lambda: store.conflicts(name),
            ]
        for call in calls:
            with pytest.raises(InvalidInput):
                call()
        assert store.view().basis == 1

    def test_names_are_compared_as_they_are(self, store: Store) -> None:
        """NUL ends nothing, and what looks alike is not."""
        names = ["a", "a\0", "\0a", "A", "a ", "é", "e\u0301", "a" * 1_000]
        store.assert_facts([(name, name, name) for name in names])
        for name in names:
            assert [fact.object for fact in store.facts(name)] == [name]
            assert [fact.object for fact in store.facts(None, name)] == [name]
            assert store.entity(name).names == (name,)
        assert [one.name for one in store.entities()] == names

    def test_a_name_without_a_word_is_found_as_it_is(self, store: Store) -> None:
        store.put_entity("??", aliases=["!"])
        assert store.resolve("??") == ["??"]
        assert store.resolve("...") == []


class TestIds:
    """An id is the seq of an event that asserted the fact."""

    @pytest.mark.parametrize("number", [0, -1, -2, 2, 3, 4, 2**63, -(2**63), 2**70])
    def test_what_nothing_has_is_not_found(self, store: Store, number: int) -> None:
        store.assert_fact("a", "p", 1)
        store.put_entity("b")
        with pytest.raises(NotFound):
            store.fact(number)
        with pytest.raises(NotFound):
            store.retract_fact(number)

    def test_inside_a_transaction_only_its_own_are_negative(self, store: Store) -> None:
        first = store.assert_fact("a", "p", 1)
        with store.transaction():
            gathered = store.assert_fact("b", "p", 1)
            assert gathered.id == -1
            assert [store.fact(one).subject for one in (first.id, -1)] == ["a", "b"]
            for number in (0, 2, 3, -2):
                with pytest.raises(NotFound):
                    store.fact(number)

    @pytest.mark.parametrize("number", [True, 1.0, "1", None, [1]])
    def test_what_is_no_id_is_refused(self, store: Store, number: Any) -> None:
        store.assert_fact("a", "p", 1)
        for call in (store.fact, store.retract_fact, store.unmerge, store.unsplit):
            with pytest.raises(InvalidInput):
                call(number)


class TestSayings:
    """What is said of a fact besides."""

    @pytest.mark.parametrize(
        "given",
        [
            *product(["confidence"], (-0.1, 1.1, float("nan"), True, "1", None)),
            *product(["source"], ("", "Observed", None, [])),
            *product(["evidence"], ([(1, 2, 2)], [(1, 3, 2)], [(1, -1, 2)], [(1, None, 2)])),
            *product(["evidence"], (1, "1", [None], [(1,)], [1.5])),
            *product(["assumptions"], ("one", [1], 1)),
        ],
    )
    def test_what_cannot_be_is_refused(self, store: Store, given: tuple[str, Any]) -> None:
        """Of evidence the range of bytes too; frame 1 is there."""
        store.put_frame("Ann lives in Paris.")
        with pytest.raises(InvalidInput):
            store.assert_fact("a", "p", 1, **{given[0]: given[1]})
        assert store.view().basis == 1

    def test_confidence_is_kept_in_millionths(self, store: Store) -> None:
        said = [0, 1, 0.5, 1 / 3, 0.000_000_4]
        found = [store.fact(store.assert_fact("a", "p", 1, confidence=one)) for one in said]
        assert [fact.confidence for fact in found] == [0.0, 1.0, 0.5, 0.333333, 0.0]

    def test_evidence_that_was_given_before_is_not_given_twice(self, store: Store) -> None:
        frame = store.put_frame("Ann lives in Paris.")
        part = cerata.FactEvidence(frame.id, 0, 3)
        whole = cerata.FactEvidence(frame.id)
        for places in ([part], [part, whole], [whole, whole]):
            store.assert_fact("ann", "p", 1, valid_from=T[0], evidence=places)
        [fact] = store.facts("ann")
        assert fact.evidence == (
            cerata.FactEvidence(frame.id, 0, 3),
            cerata.FactEvidence(frame.id),
        )

    def test_evidence_comes_back_as_the_text_that_was_read(self, store: Store) -> None:
        frame = store.put_frame("Ann lives in Orléans. She likes it.", title="Notes").id
        fact = store.assert_fact("ann", "lives in", "x", evidence=[(frame, 13, 21), frame])
        part, whole = store.evidence(fact)
        assert (part.text, part.is_intact, part.is_current) == ("Orléans", True, True)
        assert part.place.quote == cerata.content_hash("Orléans")
        assert part.source.startswith(f"#{frame} · Notes · ")
        assert (whole.text, whole.is_intact) == ("Ann lives in Orléans. She likes it.", None)
        new = store.supersede(frame, "Ann lives in Rome.")
        assert [one.is_current for one in store.evidence(fact)] == [False, False]
        assert store.at(new).evidence(fact)[0].text == "Orléans"

    def test_evidence_of_a_transaction_is_read_in_it(self, store: Store) -> None:
        with store.transaction():
            frame = store.put_frame("Ann lives in Paris.")
            fact = store.assert_fact("ann", "lives in", "x", evidence=[(frame, 13, 18)])
            assert store.evidence(fact)[0].text == "Paris"
        [said] = store.evidence(store.facts("ann")[0])
        assert (said.place.frame, said.text, said.is_intact) == (1, "Paris", True)

    @pytest.mark.parametrize(
        ("span", "message"),
        [((0, 99), "ends at byte 99 of a text of 22"), ((13, 17), "cuts a character in two")],
    )
    def test_evidence_that_is_no_part_of_its_text_is_refused(
        self, store: Store, span: tuple[int, int], message: str
    ) -> None:
        frame = store.put_frame("Ann lives in Orléans.").id
        with pytest.raises(InvalidInput, match=message):
            store.assert_fact("ann", "lives in", "x", evidence=[(frame, *span)])
        assert store.view().basis == frame

    def test_evidence_that_another_text_stands_in_is_told(self, store: Store) -> None:
        """Another writer's hash, or a frame whose bytes were exchanged: what was read is gone."""
        frame = store.put_frame("Ann lives in Paris.").id
        wrong = Evidence(frame, 13, 18, cerata.content_hash("Rome"))
        body = AssertFact(
            subject="ann", predicate="p", object_kind="integer", object=1, evidence=(wrong,)
        )
        fact = store.write([Draft(body)]).id
        [said] = store.evidence(fact)
        assert (said.text, said.is_intact) == ("Paris", False)

    def test_a_correction_keeps_the_evidence_and_its_hash(self, store: Store) -> None:
        frame = store.put_frame("Ann lives in Paris.").id
        fact = store.assert_fact("ann", "lives in", "paris", evidence=[(frame, 13, 18)])
        store.delete(frame)
        right = store.correct_fact(fact, object="Paris")
        [said] = store.evidence(right)
        assert (said.text, said.is_intact, said.is_current) == ("Paris", True, False)


class TestTakenBack:
    """What was merged or split and is no more reads as if it had never been."""

    def test_a_correction_made_meanwhile_keeps_its_names(self, store: Store) -> None:
        """Not those that they were read as: it would be another one's for ever."""
        fact = store.assert_fact("ally", "knows", Entity("bobby"), confidence=0.5)
        store.assert_facts([("alice", "knows", 1), ("bob", "knows", 1)])
        merges = [store.merge_entities("ally", "alice"), store.merge_entities("bobby", "bob")]
        corrected = store.correct_fact(fact, confidence=0.9)
        shown = store.fact(corrected)
        assert (shown.subject, shown.object) == ("alice", Entity("bob"))
        for merge in merges:
            store.unmerge(merge)
        shown = store.fact(corrected)
        assert (shown.subject, shown.object) == ("ally", Entity("bobby"))

    def test_a_correction_of_a_fact_that_was_split_stays_with_whom_it_means(
        self, store: Store
    ) -> None:
        fact = store.assert_fact("john", "lives in", "Rome")
        store.split_entity("john", "john (2)", [fact])
        assert store.fact(store.correct_fact(fact, object="Paris")).subject == "john (2)"

    def test_of_two_splits_the_later_one_holds_until_it_is_taken_back(self, store: Store) -> None:
        fact = store.assert_fact("john", "lives in", "Rome")
        store.split_entity("john", "john (2)", [fact])
        later = store.split_entity("john", "john (3)", [fact])
        assert store.fact(fact).subject == "john (3)"
        store.unsplit(later)
        assert store.fact(fact).subject == "john (2)"

    def test_whom_only_a_split_named_is_gone_with_it(self, store: Store) -> None:
        fact = store.assert_fact("john", "lives in", "Rome")
        before = list(store.entities())
        split = store.split_entity("john", "john (2)", [fact])
        assert [one.name for one in store.entities()] == ["john", "john (2)"]
        store.unsplit(split)
        assert list(store.entities()) == before
        assert store.resolve("john (2)") == []

    def test_in_every_scope_whoever_takes_it_back(self) -> None:
        """A merge and a split of a session are ended by the store that has all sessions."""
        world, _ = environment()
        scope = {"tenant": "default", "session": "s1"}
        with cerata.open("edges.cera", scope=scope, environment=world) as session:
            fact = session.assert_fact("ann", "knows", Entity("bob"))
            session.put_entity("anna")
            merge = session.merge_entities("ann", "anna")
            split = session.split_entity("bob", "carl", [fact])
            assert str(session.fact(fact)) == "anna · knows · carl"
            with cerata.open("edges.cera", environment=world) as every:
                every.unmerge(merge)
                every.unsplit(split)
            assert str(session.fact(fact)) == "ann · knows · bob"


class TestAgain:
    """When the same fact again is the same fact."""

    def test_of_two_that_are_alike_the_known_one_is_said_again(self, store: Store) -> None:
        """Moved away and back, both taken back: the first stay is the one that is known."""
        store.declare_predicate("lives in", functional=True)
        first, away, back = (
            store.assert_fact("ann", "lives in", one) for one in ("Rome", "Paris", "Rome")
        )
        store.retract_fact(away)
        store.retract_fact(back)
        again = store.assert_fact("ann", "lives in", "Rome")
        assert store.fact(again).id == first.id

    def test_the_order_of_a_scope_s_names_makes_no_other_scope(self, store: Store) -> None:
        first = store.assert_fact("a", "p", 1, valid_from="open", scope={"user": "u", "run": 1})
        again = store.assert_fact("a", "p", 1, valid_from="open", scope={"run": 1, "user": "u"})
        assert store.fact(again).id == first.id
        other = store.assert_fact("a", "p", 1, valid_from="open", scope={"run": True, "user": "u"})
        assert store.fact(other).id == other.id

    def test_who_moves_back_is_seen_to_under_any_of_her_names(self, store: Store) -> None:
        store.declare_predicate("lives in", functional=True)
        store.put_entity("anna")
        store.assert_fact("ann", "lives in", "Rome")
        store.merge_entities("anna", "ann")
        store.assert_fact("anna", "lives in", "Paris")
        store.assert_fact("ann", "lives in", "Rome")
        assert [one.object for one in store.facts("ann")] == ["Rome", "Paris", "Rome"]
        assert [one.object for one in store.facts("ann", valid_at=LAST)] == ["Rome"]

    def test_a_move_that_was_split_off_somebody_else_is_seen_to(self, store: Store) -> None:
        store.declare_predicate("lives in", functional=True)
        store.assert_fact("carl", "lives in", "Rome")
        moved = store.assert_fact("john", "lives in", "Paris")
        store.split_entity("john", "carl", [moved])
        back = store.assert_fact("carl", "lives in", "Rome")
        assert [one.object for one in store.facts("carl", valid_at=LAST)] == ["Rome"]
        assert store.fact(back).id == back.id

    def test_a_correction_is_as_far_from_what_was_observed(self, store: Store) -> None:
        """So is what a retraction of an earlier batch is named as the cause of."""
        first = store.assert_fact("a", "p", 1)
        second = store.assert_fact("a", "p", 2, because=first)
        corrected = store.correct_fact(second, object=3)
        assert [store.fact(one).depth for one in (first, second, corrected)] == [0, 1, 1]
        gone = store.retract_fact(corrected)
        after = store.assert_fact("a", "p", 4, because=gone)
        assert store.fact(after).depth == 1

    def test_a_fact_that_was_split_away_is_no_move(self, store: Store) -> None:
        store.declare_predicate("lives in", functional=True)
        first = store.assert_fact("john", "lives in", "Rome")
        other = store.assert_fact("john", "lives in", "Paris")
        store.split_entity("john", "john (2)", [other, other])
        assert store.fact(store.assert_fact("john", "lives in", "Rome")).id == first.id


class TestEntities:
    """In order of the events and names that made them, whatever another scope has."""

    def test_a_group_stands_where_its_first_name_does(self, store: Store) -> None:
        store.assert_facts([("ann", "knows", 1), ("bob", "knows", Entity("carl"))])
        store.merge_entities("ann", "carl")
        assert [one.name for one in store.entities()] == ["carl", "bob"]
        assert [one.first_seen for one in store.entities()] == [1, 2]
        assert store.entity("ann").names == ("carl", "ann")

    def test_order_is_the_same_whatever_another_session_named_before(self) -> None:
        world, _ = environment()
        with cerata.open("edges.cera", environment=world) as store:
            store.put_entity("bob", scope={"session": "s1"})
            store.assert_fact("ann", "knows", Entity("bob"), scope={"session": "s2"})
        scope = {"tenant": "default", "session": "s2"}
        with cerata.open("edges.cera", scope=scope, environment=world) as session:
            assert [one.name for one in session.entities()] == ["ann", "bob"]

    def test_inside_a_transaction_first_seen_is_as_ids_are(self, store: Store) -> None:
        store.put_entity("ann")
        with store.transaction():
            store.put_entity("bob")
            assert [one.first_seen for one in store.entities()] == [1, -1]
            assert store.entity("bob").first_seen == -1


def test_no_facts_at_all_are_refused(store: Store) -> None:
    """Alone and in a transaction, which may be of anything else."""
    for call in (store.assert_facts, store.retract_facts):
        with pytest.raises(InvalidInput):
            call([])
        with store.transaction():
            store.put_entity("ann")
            with pytest.raises(InvalidInput):
                call([])
    assert store.view().basis == 2


def test_every_edge_survives_a_checkpoint_and_a_replay() -> None:
    """All objects over all ranges, read back by one who opens the file, and from the log."""
    world, _ = environment()
    starts: tuple[datetime | str, ...] = ("open", FIRST, T[0])
    ends: tuple[datetime | str, ...] = ("open", LAST, T[1])
    with cerata.open("edges.cera", environment=world) as store:
        store.assert_facts(
            [
                cerata.Assertion("a", "p", one, start, end)
                for one, start, end in product(TestObjects.SAME, starts, ends)
            ]
        )
        said = [fact.to_dict() for fact in store.facts()]
        store.checkpoint()
    with cerata.open("edges.cera", environment=world) as store:
        assert [fact.to_dict() for fact in store.facts()] == said
        assert [fact.to_dict() for fact in store.replay().facts()] == said
    assert len(said) == 9 * len(TestObjects.SAME)
