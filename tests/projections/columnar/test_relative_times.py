"""Times in words: each resolves against a given now, and against nothing else."""

import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import cerata
from cerata.engine.errors import InvalidInput
from cerata.projections.columnar.relative_times import (
    RelativeTime,
    bounds_of,
    interval_of,
    is_relative,
)
from cerata.projections.columnar.times import to_datetime, to_microseconds

from ...clocks import StandingClock

NOW = datetime(2026, 11, 23, 15, 30, tzinfo=UTC)
"""A Monday."""

PERIODS = {
    "2026": ("2026-01-01", "2027-01-01"),
    "2026-12": ("2026-12-01", "2027-01-01"),
    "2026-11-17": ("2026-11-17", "2026-11-18"),
    "yesterday": ("2026-11-22", "2026-11-23"),
    " Today ": ("2026-11-23", "2026-11-24"),
    "tomorrow": ("2026-11-24", "2026-11-25"),
    "day before yesterday": ("2026-11-21", "2026-11-22"),
    "2026-11-17.": ("2026-11-17", "2026-11-18"),
    "20261117": ("2026-11-17", "2026-11-18"),
    "2026-W47": ("2026-11-16", "2026-11-23"),
    "2026W47": ("2026-11-16", "2026-11-23"),
    "2026-W47-2": ("2026-11-17", "2026-11-18"),
    "Yesterday?": ("2026-11-22", "2026-11-23"),
    "the day before yesterday": ("2026-11-21", "2026-11-22"),
    "Tuesday": ("2026-11-17", "2026-11-18"),
    "last Tuesday": ("2026-11-17", "2026-11-18"),
    "monday": ("2026-11-16", "2026-11-17"),
    "two days ago": ("2026-11-21", "2026-11-22"),
    "3 weeks ago": ("2026-11-02", "2026-11-03"),
    "in 3 weeks": ("2026-12-14", "2026-12-15"),
    "in a month": ("2026-12-23", "2026-12-24"),
    "a month ago": ("2026-10-23", "2026-10-24"),
    "this week": ("2026-11-23", "2026-11-30"),
    "last week": ("2026-11-16", "2026-11-23"),
    "last month": ("2026-10-01", "2026-11-01"),
    "last year": ("2025-01-01", "2026-01-01"),
    "march": ("2026-03-01", "2026-04-01"),
    "december": ("2025-12-01", "2026-01-01"),
    "March 2024": ("2024-03-01", "2024-04-01"),
    "3 March 2024": ("2024-03-03", "2024-03-04"),
    "nov 17": ("2026-11-17", "2026-11-18"),
    "last November": ("2025-11-01", "2025-12-01"),
    "the last nov": ("2025-11-01", "2025-12-01"),
    "last march": ("2026-03-01", "2026-04-01"),
    "last December": ("2025-12-01", "2026-01-01"),
}

INSTANTS = {
    "now": NOW,
    "2 hours ago": NOW - timedelta(hours=2),
    "an hour ago": NOW - timedelta(hours=1),
    "3:30 PM": NOW,
    "at 3pm": NOW - timedelta(minutes=30),
    "12am": datetime(2026, 11, 23, tzinfo=UTC),
    "12 pm": datetime(2026, 11, 23, 12, tzinfo=UTC),
    "5pm": datetime(2026, 11, 22, 17, tzinfo=UTC),
    "yesterday 5pm": datetime(2026, 11, 22, 17, tzinfo=UTC),
    "yesterday 14:00": datetime(2026, 11, 22, 14, tzinfo=UTC),
    "2026-11-17T12:00+02:00": datetime(2026, 11, 17, 10, tzinfo=UTC),
}


@pytest.mark.parametrize("text", PERIODS)
def test_a_period_in_words_is_whole(text: str) -> None:
    """A filter by a day or a week has no frame of another."""
    start, end = map(to_microseconds, PERIODS[text])
    assert interval_of(text, NOW) == (start, end)


@pytest.mark.parametrize("text", INSTANTS)
def test_an_instant_in_words_is_a_microsecond(text: str) -> None:
    start = to_microseconds(INSTANTS[text])
    assert interval_of(text, NOW) == (start, start + 1)


def test_the_last_days_end_now() -> None:
    """The last 3 days are 72 hours, and include an event of this moment."""
    start, end = interval_of("the last 3 days", NOW)
    assert to_datetime(start) == NOW - timedelta(days=3)
    assert end == to_microseconds(NOW) + 1
    assert interval_of("past week", NOW)[0] == to_microseconds(NOW - timedelta(days=7))
    for unit in ("second", "minute", "hour", "day"):
        start = to_microseconds(NOW - timedelta(**{f"{unit}s": 1}))
        for text in (f"the last {unit}", f"last {unit}", f"past {unit}", f"the last 1 {unit}"):
            assert interval_of(text, NOW) == (start, end), text


@pytest.mark.parametrize(
    "text",
    [
        *("", "a", "10", "1", "soon", "may i", "second", "two weeks", "ago", "last", "14:00"),
        *(
            "13pm",
            "0am",
            "5:60pm",
            "5",
            "pm",
            "last pm",
            "the last",
            "last weekday",
            "last may day",
        ),
    ],
)
def test_words_that_the_parser_would_guess_are_refused(text: str) -> None:
    """The parser alone takes "a" for January and "10" for October."""
    with pytest.raises(InvalidInput, match="is not a time"):
        interval_of(text, NOW)


@pytest.mark.parametrize("text", ["31.02.2024", "29/02/2023", "2023-2-29", "13/13/2020", "0.0.26"])
def test_a_date_that_no_calendar_has_is_not_ambiguous(text: str) -> None:
    """The remedy was to write 2024-02-31."""
    with pytest.raises(InvalidInput, match="is not a time") as caught:
        interval_of(text, NOW)
    assert "2024-02-31" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("03/04/2026", "2026-04-03 or 2026-03-04"),
        ("3.4.26", "2026-04-03 or 2026-03-04"),
        ("03-04-2026 12:00", "2026-04-03 or 2026-03-04"),
    ],
)
def test_an_ambiguous_date_is_refused_with_its_readings(text: str, remedy: str) -> None:
    with pytest.raises(InvalidInput, match="ambiguous") as caught:
        interval_of(text, NOW)
    assert (caught.value.remedy or "").endswith(f"{remedy}.")


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("29.02.2024", "2024-02-29"),
        ("13/04/2026", "2026-04-13"),
        ("2026/11/20", "2026-11-20"),
        ("on 2026-11-12", "2026-11-12"),
        ("05/05/26", "2026-05-05"),
    ],
)
def test_a_date_with_one_reading_is_not_ambiguous(text: str, day: str) -> None:
    """The order of day and month matters only if both orders give a day."""
    assert interval_of(text, NOW) == interval_of(day, NOW)


def days_of(text: str) -> list[str | None]:
    bounds = bounds_of(text)
    times = (each.at(NOW) if isinstance(each, RelativeTime) else each for each in bounds)
    return [None if time is None else f"{to_datetime(time):%m-%d}" for time in times]


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("2026-11-20", "11-20", "11-21"),
        ("since 2026-11-20", "11-20", None),
        ("Since  last week", "11-16", None),
        ("from 2026-11", "11-01", None),
        ("after last Tuesday", "11-18", None),
        ("after 2026-10", "11-01", None),
        ("before yesterday", None, "11-22"),
        ("until 2026-11-20", None, "11-21"),
        ("up to last week", None, "11-23"),
        ("since 20/11/2026", "11-20", None),
        ("from 2026-03 to 2026-04", "03-01", "05-01"),
        ("between last monday and yesterday", "11-16", "11-23"),
        ("from 2026-11-20 until today", "11-20", "11-24"),
        ("during last week", "11-16", "11-23"),
        ("in October 2026", "10-01", "11-01"),
        ("in the last 3 days", "11-20", "11-23"),
    ],
)
def test_a_range_in_words_has_the_start_and_the_end_of_its_times(
    text: str, start: str | None, end: str | None
) -> None:
    assert days_of(text) == [start, end]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("since 03/04/2026", "'03/04/2026' is ambiguous"),
        ("since soon", "'soon' is not a time"),
        ("since after yesterday", "'after yesterday' is a range of times"),
        ("from 2026-12 to 2026-11", "ends before its start"),
        ("since 2026-11-20T10:00", "has no zone"),
        ("between yesterday", "is not a time"),
    ],
)
def test_a_range_of_no_times_is_refused(text: str, fault: str) -> None:
    with pytest.raises(InvalidInput, match=fault):
        bounds_of(text)


@pytest.mark.parametrize("text", ["2026-11-17T12:00", "99999 years ago", "in 9999 years"])
def test_a_time_without_a_zone_or_out_of_range_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        interval_of(text, NOW)


@pytest.mark.parametrize("text", ["5pm", "last november"])
def test_a_time_before_the_first_year_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="is not a time"):
        interval_of(text, datetime(1, 1, 1, 1, tzinfo=UTC))


def test_a_bound_is_checked_when_it_is_made_and_resolved_later() -> None:
    with pytest.raises(InvalidInput):
        RelativeTime("yestrday")
    bound = RelativeTime("yesterday", "end")
    assert to_datetime(bound.at(NOW)) == datetime(2026, 11, 23, tzinfo=UTC)
    assert to_datetime(bound.at(NOW - timedelta(days=1))) == datetime(2026, 11, 22, tzinfo=UTC)
    assert is_relative("yesterday")
    assert not is_relative("2026-11-17")


_PROGRAM = f"""
from datetime import UTC, datetime, timedelta
from cerata.projections.columnar.relative_times import interval_of
now = datetime(2026, 11, 23, 15, 30, tzinfo=UTC)
print([interval_of(text, now) for text in {[*PERIODS, *INSTANTS]!r}])
"""


def test_neither_zone_nor_locale_nor_clock_changes_a_result() -> None:
    """The parser knows the system's zone, and must not use it."""
    expected = repr([tuple(interval_of(text, NOW)) for text in (*PERIODS, *INSTANTS)])
    folder = Path(__file__).resolve().parents[3]
    for zone in ("Pacific/Kiritimati", "America/Los_Angeles"):
        environment = {**os.environ, "TZ": zone, "LC_ALL": "de_DE.UTF-8", "PYTHONPATH": str(folder)}
        program = _PROGRAM.replace(
            "interval_of(text, now) for", "tuple(interval_of(text, now)) for"
        )
        done = subprocess.run(
            [sys.executable, "-c", program],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.strip() == expected


@pytest.mark.parametrize(
    "text",
    [
        *(
            ">= 2026-11-17",
            ">2026-11-17",
            "<= yesterday",
            "=yesterday",
            "~yesterday",
            "yesterday #5",
        ),
        *("today 25:00", "yesterday 10:75", "26-03-01", "01-02-03", "2026-W60", "20261340"),
    ],
)
def test_no_part_of_a_time_is_left_out(text: str) -> None:
    """The sign of ">= 2026-11-17" was left out, and so was 25:00; 26-03-01 was of 2001."""
    with pytest.raises(InvalidInput):
        interval_of(text, NOW)
    with pytest.raises(InvalidInput):
        bounds_of(text)


def test_a_range_needs_no_from() -> None:
    expected = bounds_of("from 2026-03-01 to 2026-04")
    for text in ("2026-03-01 to 2026-04", "2026-03-01 UNTIL 2026-04.", "2026-03-01 till 2026-04"):
        assert bounds_of(text) == expected
    for text in ("since yesterday until today", "from 2026-03-01 to 2026-04 until 2026-05"):
        with pytest.raises(InvalidInput):
            bounds_of(text)
    with pytest.raises(InvalidInput, match="is a range of times"):
        interval_of("2026-03-01 to 2026-04", NOW)


def test_a_range_in_words_that_ends_before_its_start_is_refused() -> None:
    """It was empty: on a Wednesday, "Wednesday" is that of last week."""
    clock = StandingClock(to_microseconds("2026-11-25T15:00Z"))
    with cerata.open(":memory:", environment=cerata.Environment(clock=clock)) as store:
        store.put_frame("tea", options=cerata.PutOptions(created="2026-11-20"))
        view = store.history.view()
        for text in ("between Monday and Wednesday", "from today to yesterday"):
            with pytest.raises(InvalidInput, match="before its start"):
                view.search("tea", where=cerata.Filter(content=text))
        assert len(view.search("tea", where=cerata.Filter(content="Friday to Monday"))) == 1
