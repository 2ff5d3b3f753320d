"""Dates in texts: equal to the times of the same words in a question, found in any surroundings."""

import random
from datetime import UTC, datetime, timedelta

import pytest

from cerata.engine.errors import InvalidInput
from cerata.projections.columnar.relative_times import interval_of
from cerata.projections.columnar.times import to_datetime, to_microseconds
from cerata.retrieval import text_dates
from cerata.retrieval.text_dates import DATES_MAX, SIZE_MAX, dates_in, dates_of, phrases_in

NOW = "2026-03-10T15:30:00+00:00"
"""A Tuesday."""

MONTHS = "January February March April May June July August September October November December"
WEEKDAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday"
UNITS = ("day", "week", "month", "year")
SHARED = (
    *("yesterday", "tomorrow", "the day before yesterday", "the day after tomorrow"),
    *(f"{side} {unit}" for side in ("last", "next") for unit in UNITS[1:]),
    *(f"{side} {name}" for side in ("last", "next") for name in WEEKDAYS.split()),
    *(f"last {name}" for name in MONTHS.split()),
    *(f"{count} {unit}s ago" for count in (1, 2, 11, 53) for unit in UNITS),
    *("a week ago", "an hour ago", "two months ago", "twelve years ago"),
    *("8 May 2023", "29th of February 2024", "May 8th, 2023", "August 2022", "2024-02-29"),
)
"""Phrases that questions may have, too."""


def days(text: str, now: str = NOW) -> list[str]:
    return [to_datetime(date).isoformat()[:16] for date in dates_in(text, to_microseconds(now))]


def reference(phrase: str, now_us: int) -> tuple[int, ...]:
    """Read the phrase as a question does; a period that holds now is now."""
    if "hour" in phrase:
        return ()
    try:
        start, end = interval_of(phrase, to_datetime(now_us))
    except InvalidInput:
        return ()
    return (now_us if start <= now_us < end else start,)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("We met yesterday.", ["2026-03-09T00:00"]),
        (
            "It rained LAST NIGHT, and the day before yesterday",
            ["2026-03-09T00:00", "2026-03-08T00:00"],
        ),
        ("I moved last week", ["2026-03-02T00:00"]),
        ("We hiked last weekend", ["2026-03-07T00:00"]),
        ("I paint two\ndays ago", ["2026-03-08T00:00"]),
        ("See you next Friday!", ["2026-03-13T00:00"]),
        ("See you next Tuesday!", ["2026-03-17T00:00"]),
        ("I left last May", ["2025-05-01T00:00"]),
        ("I left last March", ["2025-03-01T00:00"]),
        ("I leave next March", ["2027-03-01T00:00"]),
        ("I leave next May", ["2026-05-01T00:00"]),
        ("We met on 8 May 2023, or on May 9th, 2023", ["2023-05-08T00:00", "2023-05-09T00:00"]),
        ("Rome in 2019, then 2020-02-03", ["2019-01-01T00:00", "2020-02-03T00:00"]),
        ("2026-09-19T17:14:00Z FATAL, 2026-09-20t01", ["2026-09-19T00:00", "2026-09-20T00:00"]),
        ("build 2026-09-19Tx and 2026-09-19a", []),
        ("I am at home today, this week and in 2026", ["2026-03-10T15:30"]),
        ("Yesterday was good. Yesterday!", ["2026-03-09T00:00"]),
    ],
)
def test_the_first_instant_of_a_period_is_its_date(text: str, expected: list[str]) -> None:
    assert days(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        *("on 03/04/2026", "3.4.2026", "on Friday", "in May", "in two weeks", "a few days ago"),
        *("31 June 2024", "2024-02-30", "12019-01-01", "in 20195", "20 May, 20231", "20 19"),
        *("yesterdays", "x-yesterday", "yesterdayé", "éyesterday"),
        *("this picture", "next time", "lasting week", "plain words", ""),
    ],
)
def test_a_phrase_with_two_readings_or_none_names_no_date(text: str) -> None:
    assert days(text) == []


def test_each_phrase_has_the_time_that_a_question_gives_it() -> None:
    """The calendar of this module against the date parser of questions."""
    generator = random.Random(7)
    nows = [
        datetime(2024, 2, 29, 23, 59, tzinfo=UTC),
        datetime(2023, 12, 31, tzinfo=UTC),
        *(
            datetime(2020, 1, 1, tzinfo=UTC) + timedelta(minutes=generator.randrange(3_000_000))
            for _ in range(6)
        ),
    ]
    for now in nows:
        for phrase in SHARED:
            now_us = to_microseconds(now)
            assert dates_in(phrase, now_us) == reference(phrase, now_us), (phrase, now)


def test_phrases_are_found_in_any_surroundings() -> None:
    """The search from letters on equals a reading of each phrase alone."""
    generator = random.Random(8)
    fillers = [
        *("and", "20", "19", "2020", "last", "this", "next", "ago", "May", "8", "in", "the"),
        *("todays", "\U0001f600", "é", "Mountain\n", "of", "a", "2023-05", "İ"),
    ]
    now_us = to_microseconds(NOW)
    texts: list[str] = []
    expected: dict[int, tuple[int, ...]] = {}
    for number in range(400):
        parts: list[str] = []
        dates: dict[int, None] = {}
        for _ in range(generator.randrange(6)):
            parts += [generator.choice(fillers), ";"]
            phrase = generator.choice(SHARED)
            for date in reference(phrase.lower(), now_us):
                dates[date] = None
            parts += [generator.choice((phrase, phrase.upper())), generator.choice(".,;:!?")]
        texts.append(" ".join(parts))
        if dates:
            expected[number] = tuple(dates)
    assert dates_of(phrases_in(texts), [now_us] * len(texts)) == expected
    for number, text in enumerate(texts):
        assert dates_in(text, now_us) == expected.get(number, ())


def test_a_large_batch_has_the_places_that_searches_find(monkeypatch: pytest.MonkeyPatch) -> None:
    """One pass finds the letters of all rules; a search for each is the definition."""
    generator = random.Random(9)
    parts = [
        *("last ", "this ", "next ", " ago", "today", "tonight", "yesterday", "tomorrow", "20"),
        *("19", "2020", "1920", "la", "las", "hi", "xt", "od", "ye", "yesterda", "r", " ", "\0"),
    ]
    monkeypatch.setattr(text_dates, "_LARGE_SIZE", 1 << 40)
    for size in (0, 1, 2, 3, 50, 4_000):
        text = "".join(generator.choices(parts, k=size)).encode()
        for cut in range(min(len(text), 12)):
            part = text[cut : len(text) - cut]
            assert text_dates._letter_places().places(part) == text_dates._places(part)


def test_without_a_time_only_whole_dates_count() -> None:
    assert dates_in("yesterday, 3 days ago, last May, today", None) == ()
    assert dates_in("yesterday, 8 May 2023", None) == (to_microseconds("2023-05-08"),)


def test_the_start_of_a_long_text_counts() -> None:
    many = " ".join(f"in {year}" for year in range(1900, 1900 + 2 * DATES_MAX))
    assert dates_in(many, None) == tuple(
        to_microseconds(f"{year}-01-01") for year in range(1900, 1900 + DATES_MAX)
    )
    assert days("x" * (SIZE_MAX - 10) + " yesterday") == ["2026-03-09T00:00"]
    assert days("x" * SIZE_MAX + " yesterday") == []


@pytest.mark.parametrize("now", ["0001-01-01T00:00:00+00:00", "9999-12-31T23:59:00+00:00"])
def test_a_date_outside_the_calendar_is_left_out(now: str) -> None:
    for phrase in SHARED:
        for date in dates_in(phrase, to_microseconds(now)):
            assert 1 <= to_datetime(date).year <= 9999
    assert dates_in("yesterday, two years ago", to_microseconds("0001-01-01T00:00:00+00:00")) == ()


def test_a_clock_outside_the_calendar_names_no_relative_date() -> None:
    assert dates_in("yesterday and 8 May 2023", 1 << 62) == (to_microseconds("2023-05-08"),)
