"""Times in words in every read: relative to the view's now, and recorded as instants."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

import cerata
from cerata import Filter, Store
from cerata.engine.disk.environment import Environment
from cerata.engine.events import RecallContext
from cerata.projections.columnar.times import to_datetime, to_microseconds

from ..clocks import StandingClock

DAY = timedelta(days=1)
MONDAY = datetime(2026, 11, 16, 9, tzinfo=UTC)


@pytest.fixture
def clock() -> StandingClock:
    return StandingClock(to_microseconds(MONDAY))


@pytest.fixture
def week(clock: StandingClock) -> Iterator[Store]:
    """A frame at 9:00 and one at 18:00 of each day from Monday to Sunday; now Monday 15:00."""
    environment = replace(Environment(), clock=clock)
    with cerata.open(":memory:", environment=environment) as store:
        for day in range(7):
            for hour in (9, 18):
                clock.time_us = to_microseconds(MONDAY.replace(hour=hour) + day * DAY)
                store.put_frame(f"day {day} at {hour}")
        clock.time_us = to_microseconds(MONDAY.replace(hour=15) + 7 * DAY)
        yield store


def texts(store: Store, where: Filter) -> list[str]:
    return [frame.text for frame in store.frames(where)]


def test_a_bare_date_as_a_basis_is_the_end_of_that_day(week: Store) -> None:
    """The basis "Tuesday" gave the state of Monday evening."""
    for basis in ("2026-11-17", "Tuesday", "last Tuesday", "6 days ago"):
        assert week.at(basis).basis == 4, basis
    assert week.at("2026-11-17T00:00:00Z").basis == 2
    assert week.at(datetime(2026, 11, 17, 9, tzinfo=UTC)).basis == 3
    assert week.at("2026-11").basis == week.at("last week").basis == 14
    assert week.at("yesterday").basis == 14
    assert week.at("24 hours ago").basis == 13
    assert week.at("last month").basis == 0


def test_a_time_after_the_newest_event_is_the_newest_event(week: Store) -> None:
    """Today is not over, so its last batch so far is meant."""
    for basis in ("today", "tomorrow", "this week", "2030-01-01", "2030-01-01T00:00Z"):
        assert week.at(basis).basis == week.head.seq


def test_a_tag_comes_before_a_time_of_the_same_name(week: Store) -> None:
    week.history.tag("yesterday", at=3)
    assert week.at("yesterday").basis == 3


@pytest.mark.parametrize("word", ["march", "March", "may", "sat", "nov"])
def test_a_month_by_itself_is_a_tag(week: Store, word: str) -> None:
    """A misspelt or missing tag "march" was the last day of March."""
    with pytest.raises(cerata.NotFound, match=f"no tag '{word}'"):
        week.at(word)
    week.history.tag(word, at=3)
    assert week.at(word).basis == 3


def test_valid_at_a_day_is_its_first_instant(week: Store) -> None:
    week.assert_fact(
        "anna", "lives in", "oslo", valid_from="2026-11-17T00:00Z", valid_to="2026-11-18"
    )
    assert [
        len(week.at("HEAD", valid_at=day).facts("anna")) for day in ("2026-11-17", "2026-11-18")
    ] == [1, 0]
    assert len(week.at("HEAD", valid_at="last Tuesday").facts("anna")) == 1
    assert len(week.at(15, valid_at="last Wednesday").facts("anna")) == 0


def test_a_filter_resolves_words_against_the_now_of_each_view(week: Store) -> None:
    """The same filter value selects other frames in a view of the past."""
    yesterday = Filter(created="yesterday")
    assert texts(week, yesterday) == ["day 6 at 18", "day 6 at 9"]
    assert [frame.text for frame in week.at(4).frames(yesterday)] == ["day 0 at 18", "day 0 at 9"]
    assert len(texts(week, Filter(recorded="last week"))) == 14
    assert texts(week, Filter(content=("2 days ago", "yesterday"))) == ["day 5 at 18", "day 5 at 9"]
    assert texts(
        week, ~Filter(created=("3 days ago", None)) & Filter(created=("Thursday", None))
    ) == [
        "day 3 at 18",
        "day 3 at 9",
    ]
    assert texts(week, Filter(created="last 24 hours")) == ["day 6 at 18"]


def test_a_query_takes_words_for_times(week: Store) -> None:
    query = cerata.query("day created:[saturday TO yesterday]")
    assert sorted(hit.text for hit in week.search(query)) == [
        "day 5 at 18",
        "day 5 at 9",
        "day 6 at 18",
        "day 6 at 9",
    ]


def test_the_timeline_takes_words_and_refuses_a_reversed_range(week: Store) -> None:
    """A reversed range was an empty page, where a filter refuses it."""
    page = week.history.timeline(start="yesterday", newest_first=False)
    assert [entry.frame.text for entry in page.entries] == ["day 6 at 9", "day 6 at 18"]
    with pytest.raises(cerata.InvalidInput, match="before its start"):
        week.history.timeline(start="2026-11-18", end="2026-11-17")


def test_a_recorded_recall_has_instants_in_place_of_words(
    week: Store, clock: StandingClock
) -> None:
    """Asked for again a week later, "yesterday" is still that day."""
    where = Filter(created="yesterday")
    context = week.recall(cerata.query("day created:yesterday"), where=where, record=True)
    assert context.recorded is not None
    event = next(week.log(context.recorded, context.recorded)).body
    assert isinstance(event, RecallContext)
    assert event.where is not None
    assert json.loads(event.where) == {
        "field": "created",
        "from": "2026-11-22T00:00:00+00:00",
        "before": "2026-11-23T00:00:00+00:00",
    }
    assert "yesterday" not in event.query
    assert str(to_microseconds("2026-11-22")) in event.query


def test_a_repeated_transaction_may_recall_yesterday_on_another_day(
    week: Store, clock: StandingClock
) -> None:
    """An idempotency key covers the caller's words, not the day that they named."""
    added: list[bool] = []
    for _ in range(2):
        with week.transaction(key="k") as tx:
            week.recall("day", where=Filter(created="yesterday"), record=True)
        assert tx.receipt is not None
        added.append(tx.receipt.added)
        clock.time_us += to_microseconds(MONDAY + DAY) - to_microseconds(MONDAY)
    assert added == [True, False]


def test_a_filter_in_words_is_a_value() -> None:
    assert Filter(created="yesterday") == Filter(created="yesterday")
    assert hash(Filter(created="yesterday")) != hash(Filter(created="today"))
    assert Filter(created="yesterday").to_dict() == {
        "field": "created",
        "from": "yesterday",
        "before": "end of yesterday",
    }
    assert Filter(created="2026-11") == Filter(created=("2026-11-01", "2026-12-01"))


def test_a_resolved_range_that_ends_before_its_start_is_refused(week: Store) -> None:
    """Such a range selected nothing, in silence."""
    with pytest.raises(cerata.InvalidInput, match="before its start"):
        texts(week, Filter(created=("today", "yesterday")))
    assert to_datetime(to_microseconds(MONDAY)) == MONDAY


def test_a_question_narrows_in_time_only_if_the_caller_asks(week: Store) -> None:
    """A guess about a time must not hide an answer."""
    question = "what happened on a day last Tuesday?"
    assert len(week.search(question, k=20)) == 14
    found = week.search(question, where=Filter(content="question"))
    assert sorted(hit.text for hit in found) == ["day 1 at 18", "day 1 at 9"]
    assert len(week.search("what happened on a day?", k=20, where=Filter(content="question"))) == 14
    assert len(week.search("day", k=20, where=Filter(content="yesterday"))) == 2
    assert len(week.search("day", k=20, where=Filter(content=("yesterday", None)))) == 2
    assert len(week.search("day", where=Filter(kind="note", content="yesterday"))) == 0
    with pytest.raises(cerata.InvalidInput, match="not a time"):
        week.search("day", where=Filter(content="soon"))


def test_a_recorded_question_has_the_interval_that_it_named(week: Store) -> None:
    context = week.recall("the day of last Tuesday", record=True, where=Filter(content="question"))
    assert context.recorded is not None
    event = next(week.log(context.recorded, context.recorded)).body
    assert isinstance(event, RecallContext)
    assert event.where is not None
    assert json.loads(event.where) == {
        "field": "content",
        "from": "2026-11-17T00:00:00+00:00",
        "before": "2026-11-18T00:00:00+00:00",
    }
    first, *more = week.search("day of last week", k=3, where=Filter(content="question"))
    assert [
        hit.id
        for hit in week.search(
            "day of last week", k=2, page=cerata.Page(after=first), where=Filter(content="question")
        )
    ] == [hit.id for hit in more]
