"""Dates that a text names: "we met yesterday" and "on 8 May 2023", as instants for `content_dates`.

Owns the recogniser and the calendar for texts that are written, where a parser of milliseconds is
too slow. Each phrase means what it means in a question
(`cerata.projections.columnar.relative_times`), relative to the time of the text. Pure: no clock,
no locale; weeks begin on Monday, all times are UTC.

- A day, week, month or year is stored as its first instant, as a date of a caller is 00:00 UTC.
- A period that holds the time of the text ("today", "this month") is stored as that time.
- Phrases with two readings name no date: 03/04/2026, "on Friday", "in May", "in two weeks" (a
  duration), and "a few days ago".

    >>> from cerata.projections.columnar.times import to_datetime, to_microseconds
    >>> now_us = to_microseconds("2026-03-10")
    >>> dates = dates_in("I left last May, and came back two days ago.", now_us)
    >>> [str(to_datetime(date).date()) for date in dates]
    ['2025-05-01', '2026-03-08']
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache
from itertools import accumulate
from operator import itemgetter
from typing import TYPE_CHECKING, Final

from cerata.engine.late import loading

if TYPE_CHECKING:
    from .letter_places import LetterPlaces

DATES_MAX: Final = 16
"""Dates of a text that count, the first; a table of dates is no account of an event."""

SIZE_MAX: Final = 10_000
"""Characters that are read."""

_DAY_US: Final = 86_400_000_000
_EPOCH: Final = date(1970, 1, 1).toordinal()
_MONTHS: Final = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_WEEKDAYS: Final = (
    *("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"),
)
_COUNTS: Final = {
    "a": 1,
    "an": 1,
    "one": 1,
    "two": 2,
    "three": 3,
    "four": 4,
    "five": 5,
    "six": 6,
    "seven": 7,
    "eight": 8,
    "nine": 9,
    "ten": 10,
    "eleven": 11,
    "twelve": 12,
}
_AWAY: Final = {
    "the day before yesterday": -2,
    "yesterday": -1,
    "last night": -1,
    "today": 0,
    "tonight": 0,
    "this morning": 0,
    "this afternoon": 0,
    "this evening": 0,
    "the day after tomorrow": 2,
    "tomorrow": 1,
}
"""Days from the day of the text."""
_SIDES: Final = {"last": -1, "this": 0, "next": 1}
_UNITS: Final = ("day", "week", "month", "year")

_START: Final = r"(?<![\w\x80-\xff-])"
_END: Final = r"(?![\w\x80-\xff-])"
_MONTH: Final = "|".join(_MONTHS)
_YEAR: Final = r"(?:19|20)\d\d"
_NTH: Final = r"\d{1,2}(?:st|nd|rd|th)?"


def _rule(pattern: str) -> re.Pattern[bytes]:
    return re.compile(f"{_START}(?:{pattern}){_END}".encode())


_DAY: Final = _rule(f"(?P<away>{'|'.join(_AWAY)})")
_TURN: Final = _rule(
    r"(?P<away>last night|this (?:morning|afternoon|evening))"
    r"|(?P<side>last|this|next) (?P<period>weekend|week|month|year)"
    rf"|(?P<turn>last|next) (?P<name>{'|'.join(_WEEKDAYS)}|{_MONTH})"
)
_AGO: Final = _rule(rf"(?P<count>\d{{1,3}}|{'|'.join(_COUNTS)}) (?P<unit>{'|'.join(_UNITS)})s? ago")
_DATE: Final = _rule(
    rf"(?:(?P<day>{_NTH}) (?:of )?)?(?P<month>{_MONTH})(?: (?P<after>{_NTH}))?(?:,? |,)"
    rf"(?P<year>{_YEAR})|(?P<iso>{_YEAR}-\d\d-\d\d)(?:t\d\d)?|in (?P<in_year>{_YEAR})"
)
_RULES: Final = (
    *((key, 0, 16, _TURN) for key in (b"last ", b"this ", b"next ")),
    (b" ago", 13, 6, _AGO),
    *((key, 0, 8, _DAY) for key in (b"today", b"tonight")),
    *((key, 15, 10, _DAY) for key in (b"yesterday", b"tomorrow")),
    *((key, 24, 24, _DATE) for key in (b"20", b"19")),
)
"""The letters that each phrase of a rule has; the most characters before them, and from them on,
with one after the phrase; and the rule. To find letters takes a hundredth of the time of a search
for the phrases."""
_KEYS: Final = tuple(key for key, *_ in _RULES)

_PAIRS: Final = (b"la", b"hi", b"xt", b"ag", b"od", b"gh", b"ye", b"rr", b"20", b"19")
"""Two bytes of the letters of each rule, rare in English."""

_LARGE_SIZE: Final = 1 << 13
"""Bytes of a batch from which one pass with numpy takes less time than a search for each rule."""

_GAP: Final = "\0"
"""A character between texts that no phrase has."""


@dataclass(frozen=True, slots=True)
class Phrase:
    """A phrase of time in a text of a batch; ``text`` is the place of the text."""

    text: int
    words: re.Match[bytes]


def dates_in(text: str, time_us: int | None) -> tuple[int, ...]:
    """Return the dates that a text names, distinct, in the order of the text.

    Args:
        text: The text; its first 10,000 characters count, and its first 16 dates.
        time_us: The time of the text, in microseconds since 1970 UTC; without a time, phrases that
            are relative to it name no date.
    """
    return dates_of(phrases_in([text]), [time_us]).get(0, ())


def phrases_in(texts: Sequence[str]) -> list[Phrase]:
    """Return the phrases of texts that may name dates, in their order.

    Cost: 4 us for a call, 0.5 us for 100 characters, 0.2 us in a batch over 8 KiB, and 2 us for
    letters that may begin a phrase.
    """
    texts = [*map(itemgetter(slice(SIZE_MAX)), texts)]
    joined = _GAP.join(texts).encode("utf-8", "replace").lower().replace(b"\n", b" ")
    phrases: dict[int, re.Match[bytes]] = {}
    places_of_rules = _places(joined)
    if not any(places_of_rules):
        return []
    for (_, lead, size, rule), places in zip(_RULES, places_of_rules, strict=True):
        for at in places:
            for phrase in rule.finditer(joined, max(at - lead, 0), at + size):
                # A phrase before the letters may be cut: "May 2023" of "8 May 2023".
                if phrase.start() <= at < phrase.end():
                    phrases[phrase.start()] = phrase
    if not phrases:
        return []
    sizes = [len(text.encode("utf-8", "replace")) for text in texts]
    ends = [*accumulate(size + len(_GAP) for size in sizes)]
    return [Phrase(bisect_right(ends, start), phrases[start]) for start in sorted(phrases)]


def _places(joined: bytes) -> list[list[int]]:
    """Return the places of the letters of each rule."""
    if len(joined) >= _LARGE_SIZE:
        return _letter_places().places(joined)
    find = joined.find
    places: list[list[int]] = []
    for key in _KEYS:
        at = find(key)
        places.append(_places_from(at, joined, key) if at >= 0 else [])
    return places


def _places_from(at: int, joined: bytes, key: bytes) -> list[int]:
    places: list[int] = []
    while at >= 0:
        places.append(at)
        at = joined.find(key, at + len(key))
    return places


@cache
def _letter_places() -> "LetterPlaces":
    # A command that puts a single text runs without numpy.
    with loading("the search for dates"):
        from .letter_places import LetterPlaces

    return LetterPlaces(_KEYS, _PAIRS)


def dates_of(
    phrases: Iterable[Phrase], times_us: Sequence[int | None]
) -> dict[int, tuple[int, ...]]:
    """Return the dates of each text that names dates, by the place of the text; see `dates_in`.

    Args:
        phrases: The phrases of the texts, in their order.
        times_us: The time of each text.
    """
    of_texts: dict[int, dict[int, None]] = {}
    for phrase in phrases:
        date_us = _resolved(phrase.words, times_us[phrase.text])
        if date_us is not None:
            of_texts.setdefault(phrase.text, {})[date_us] = None
    return {text: tuple(dates)[:DATES_MAX] for text, dates in of_texts.items()}


def _resolved(phrase: re.Match[bytes], time_us: int | None) -> int | None:
    parts = {name: part.decode() for name, part in phrase.groupdict().items() if part is not None}
    today = None if time_us is None else _day_of(time_us)
    try:
        if phrase.re is _DATE:
            start, end = _of_date(parts)
        elif today is None:
            return None
        else:
            start, end = _relative(parts, today)
    except (ValueError, OverflowError):
        # No day of the calendar ("31 June 2024"), or outside the years 1 to 9999.
        return None
    if today is not None and start <= today < end:
        return time_us
    return (start.toordinal() - _EPOCH) * _DAY_US


def _day_of(time_us: int) -> date | None:
    """Return the day of a time; None if a clock is outside the years 1 to 9999."""
    try:
        return date.fromordinal(_EPOCH + time_us // _DAY_US)
    except (ValueError, OverflowError):
        return None


def _relative(parts: Mapping[str, str], today: date) -> tuple[date, date]:
    """Return the first day of a phrase, and the day after its last."""
    match parts:
        case {"away": str(words)}:
            return _day(today + timedelta(days=_AWAY[words]))
        case {"count": str(count), "unit": str(unit)}:
            return _day(_before(today, _COUNTS.get(count) or int(count), unit))
        case {"period": str(period), "side": str(side)}:
            return _of_calendar(today, period, _SIDES[side])
        case _:
            return _of_name(today, parts["name"], is_next=parts["turn"] == "next")


def _of_date(parts: Mapping[str, str]) -> tuple[date, date]:
    if "iso" in parts:
        return _day(date.fromisoformat(parts["iso"]))
    if "in_year" in parts:
        return _months(int(parts["in_year"]), 0, 12)
    year = int(parts["year"])
    month = _MONTHS.index(parts["month"])
    days = [parts[name] for name in ("day", "after") if name in parts]
    if not days:
        return _months(year, month, 1)
    [day] = days
    return _day(date(year, month + 1, int(day.rstrip("stndrh"))))


def _day(day: date) -> tuple[date, date]:
    return day, day + timedelta(days=1)


def _months(year: int, month: int, count: int) -> tuple[date, date]:
    """Return months from a month on, counted from 0; it may lie outside the year."""
    first, end = (date(year + each // 12, each % 12 + 1, 1) for each in (month, month + count))
    return first, end


def _before(today: date, count: int, unit: str) -> date:
    """Return the day a count of units before; the last of the month if that has no such day."""
    if unit in ("day", "week"):
        return today - timedelta(days=count * (7 if unit == "week" else 1))
    first, end = _months(today.year, today.month - 1 - count * (12 if unit == "year" else 1), 1)
    return min(first + timedelta(days=today.day - 1), end - timedelta(days=1))


def _of_calendar(today: date, period: str, side: int) -> tuple[date, date]:
    if period == "year":
        return _months(today.year + side, 0, 12)
    if period == "month":
        return _months(today.year, today.month - 1 + side, 1)
    monday = today + timedelta(days=7 * side - today.weekday())
    return monday + timedelta(days=5 if period == "weekend" else 0), monday + timedelta(days=7)


def _of_name(today: date, name: str, *, is_next: bool) -> tuple[date, date]:
    """Return the last weekday or month of a name that is over, or the next that has not begun."""
    if name in _WEEKDAYS:
        ahead = (_WEEKDAYS.index(name) - today.weekday() - 1) % 7 + 1
        behind = (today.weekday() - _WEEKDAYS.index(name) - 1) % 7 + 1
        return _day(today + timedelta(days=ahead if is_next else -behind))
    month = _MONTHS.index(name)
    is_later = month > today.month - 1
    is_earlier = month < today.month - 1
    years = (0 if is_later else 1) if is_next else (0 if is_earlier else -1)
    return _months(today.year + years, month, 1)
