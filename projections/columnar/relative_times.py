"""Times in words: "yesterday", "since last Tuesday", "2 hours ago", resolved against a given now.

Owns the one grammar of a caller's times: `interval_of` reads a time, `bounds_of` a time or a range
such as "since X" or "from X to Y", and `RelativeTime` is a bound that waits for its now. Built on
dateparser, loaded on the first time in words (0.1 s). Its English is lenient ("a" is January) and
guesses the order of 03/04/2026, so the words are checked first, and an ambiguous date is refused;
20/11/2026 has one reading. The result depends on the text and on now: never on the clock, the
locale or the time zone of the system. Weeks begin on Monday, all times are UTC.

- A day, week, month or year is an interval; an hour, minute or second is an instant.
- A weekday, and a month without a year, is the last that began before today.
- "3 weeks ago" is the day three weeks before, and "in 3 weeks" is such a day after; "last week" is
  the calendar week before this one.
- "the last 3 days" are the 72 hours up to now, "the last hour" and "the last day" too end now.
- "last November" is the last that is over; "5pm" is the last that has come.
- "since" and "from" begin with the start of a time, "after" with its end; "before" ends with the
  start of a time, and "until" and "to" with its end.
"""

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Final, Literal, NamedTuple, TypeAlias

from cerata.engine.arguments import wrong_type
from cerata.engine.errors import InvalidInput
from cerata.engine.late import loading
from cerata.engine.limits import TIME_MAX

from .times import to_datetime, to_microseconds

_EXAMPLES: Final = (
    "Write a time as 2026-03-01, 2026-03-01T12:00:00+00:00, 'yesterday', 'last Tuesday', "
    "'2 hours ago', 'tomorrow 5pm' or 'in 2 hours'."
)
_MONTHS: Final = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_WEEKDAYS: Final = (
    *("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"),
)
_DAYS: Final = ("yesterday", "today", "tomorrow", "now")
_NUMBERS: Final = (
    *("a", "an", "one", "two", "three", "four", "five", "six"),
    *("seven", "eight", "nine", "ten", "eleven", "twelve"),
)
_UNITS: Final = ("second", "minute", "hour", "day", "week", "month", "year")
_MONTH_NAMES: Final = frozenset((*_MONTHS, *(month[:3] for month in _MONTHS), "sept"))
_NAMES: Final = frozenset(
    (
        *_MONTH_NAMES,
        *_WEEKDAYS,
        *(weekday[:3] for weekday in _WEEKDAYS),
        *_DAYS,
    )
)
"""Words that name a time; each phrase has such a word, or a unit with a relation."""
_UNIT_WORDS: Final = frozenset(
    ("fortnight", "fortnights", *_UNITS, *(f"{unit}s" for unit in _UNITS))
)
_RELATIONS: Final = frozenset(("ago", "last", "this", "next", "in", "past", "previous"))
_WORDS: Final = frozenset(
    (
        *(*_NAMES, *_UNIT_WORDS, *_RELATIONS, *_NUMBERS),
        *("the", "at", "on", "of", "noon", "midnight", "am", "pm", "utc", "st", "nd", "rd", "th"),
    )
)
_DAYS_APART: Final = {
    "the day before yesterday": "2 days ago",
    "the day after tomorrow": "in 2 days",
    "day before yesterday": "2 days ago",
    "day after tomorrow": "in 2 days",
}
_LONGEST: Final = 60
_RANGE: Final = re.compile(
    r"(?:(?:from\s+)?(?P<first>(?!(?:since|up)\b).+?)\s+(?:to|until|till|through)"
    r"|between\s+(?P<low>.+?)\s+and)\s+(?P<last>.+)"
    r"|(?P<relation>since|from|after|before|until|till|up to|through)\s+(?P<time>.+)",
    re.IGNORECASE,
)
_WITHIN: Final = re.compile(
    r"(?:during|on|in(?= (?:the (?:last|past) .+|(?:last |this )?[a-z]{3,9}(?: \d{4})?|\d{4})\Z))"
    r" (?P<time>.+)"
)
_TOKEN: Final = re.compile(r"[^\W\d]+")
_NUMERIC_DATE: Final = re.compile(r"(?<![\d:.])(\d{1,4})([/.-])(\d{1,2})\2(\d{1,4})(?![\d:])")
_ISO: Final = re.compile(r"\d{4}(?:-\d\d(?:-\d\d)?)?\Z", re.ASCII)
_ISO_PERIOD: Final = re.compile(r"\d{8}|\d{4}-?W\d\d(?P<day>-?[1-7])?", re.ASCII)
_MARKS: Final = re.compile(r"[a-z0-9 :.,/+'\"-]*[?!]*")
"""The characters of a time in words; dateparser leaves out all but these."""
_CLOCK_TIME: Final = re.compile(r"(?<![\d:])(\d{1,2}):(\d{1,2})(?::(\d{1,2}))?(?![\d:])", re.ASCII)
_STARTS_LIKE_ISO: Final = re.compile(r"\d{4}-\d\d-\d\d|\d{8}|\d{4}-?W", re.ASCII)
_ROLLING: Final = re.compile(
    r"(?:the )?(?:(?:last|past) (?P<count>\d{1,4}|[a-z]+)|past|last(?= (?:second|minute|hour|day)))"
    r" (?P<unit>[a-z]+?)s?\Z"
)
_LAST_MONTH: Final = re.compile(rf"(?:the )?last (?P<month>{'|'.join(sorted(_MONTH_NAMES))})\Z")
_CLOCK: Final = re.compile(r"(?:at )?(?P<clock>(?:1[0-2]|0?[1-9])(?::[0-5]\d)? ?[ap]m)\Z", re.ASCII)
_DISTANCE: Final = re.compile(rf"ago\Z|\Ain (?:\d+|{'|'.join(_NUMBERS)}) [a-z]+\Z")
_MONTH_OF_YEAR: Final = re.compile(
    rf"(?:(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?)?(?P<month>{'|'.join(_MONTHS)})"
    r"(?:\s+(?P<after>\d{1,2})(?:st|nd|rd|th)?)?(?:,?\s+|,)(?P<year>\d{4})\Z"
)
_VALIDATION_NOW: Final = datetime(2024, 5, 15, 12, tzinfo=UTC)
"""The now against which a text is checked before there is a view."""


Edge: TypeAlias = Literal["start", "end"]


class Interval(NamedTuple):
    """The times [start, end), in microseconds since 1970 UTC."""

    start: int
    end: int


@lru_cache(maxsize=64)
def _check(text: str) -> None:
    """Raise `InvalidInput` unless a text is a time; its start and its end are one text."""
    interval_of(text, _VALIDATION_NOW)


def interval_of(value: date | str, now: datetime) -> Interval:
    """Return the times that a value names; an instant is one microsecond.

    Args:
        value: An aware datetime; a date; an ISO time, day, month or year; or a time in English
            words.
        now: The time that words count from.

    >>> now = datetime(2026, 11, 23, 15, tzinfo=UTC)
    >>> [str(to_datetime(bound)) for bound in interval_of("last Tuesday", now)]
    ['2026-11-17 00:00:00+00:00', '2026-11-18 00:00:00+00:00']

    Raises:
        InvalidInput: the value is no time, has no zone, is ambiguous, or lies outside the years 1
            to 9999.
    """
    if isinstance(value, datetime):
        return _instant(to_microseconds(value))
    if isinstance(value, date):
        return _iso_period(value.isoformat())
    if not isinstance(value, str):
        raise wrong_type("A time", "an aware datetime, a date or a string", value, _EXAMPLES)
    text = _trimmed(value)
    if _ISO.match(text):
        return _iso_period(text)
    if period := _ISO_PERIOD.fullmatch(text):
        is_day = "W" not in text or period["day"]
        return _period(to_datetime(to_microseconds(text)), "day" if is_day else "week")
    if _STARTS_LIKE_ISO.match(text):
        if _RANGE.fullmatch(text):
            raise _no_time(text)
        return _instant(to_microseconds(text))
    return _in_words(text.lower(), now)


def _trimmed(text: str) -> str:
    """Return a text with single spaces, without the mark that ends its sentence."""
    return " ".join(text.split()).rstrip(".,;!?")


def bounds_of(text: str) -> tuple["int | RelativeTime | None", "int | RelativeTime | None"]:
    """Return the start and the end of a time or a range in a text, which is half-open.

    >>> bounds_of("after last Tuesday")
    (RelativeTime(text='last Tuesday', edge='end'), None)
    >>> start, end = bounds_of("from 2026-03 to 2026-04-09")
    >>> [str(to_datetime(bound)) for bound in (start, end) if isinstance(bound, int)]
    ['2026-03-01 00:00:00+00:00', '2026-04-10 00:00:00+00:00']

    Raises:
        InvalidInput: the text is no time and no range of times, or is ambiguous.
    """
    text = _trimmed(text)
    parts = _RANGE.fullmatch(text)
    if parts is None:
        return _bound(text, "start"), _bound(text, "end")
    first, last = parts["first"] or parts["low"], parts["last"]
    if last is not None:
        start, end = _bound(first, "start"), _bound(last, "end")
        if isinstance(start, int) and isinstance(end, int) and end <= start:
            raise InvalidInput(
                f"{text!r:.80} ends before its start", remedy="Write the earlier time first."
            )
        return start, end
    time = parts["time"]
    match parts["relation"].lower():
        case "since" | "from":
            return _bound(time, "start"), None
        case "after":
            return _bound(time, "end"), None
        case "before":
            return None, _bound(time, "start")
        case _:
            return None, _bound(time, "end")


def _bound(text: str, edge: Edge) -> "int | RelativeTime":
    if is_relative(text):
        return RelativeTime(text, edge)
    interval = interval_of(text, _VALIDATION_NOW)
    return interval.start if edge == "start" else interval.end


def is_relative(value: object) -> bool:
    """Return whether a time is in words, so that it depends on now."""
    if not isinstance(value, str):
        return False
    text = _trimmed(value)
    return _ISO.match(text) is None and _STARTS_LIKE_ISO.match(text) is None


def names_time(word: str) -> bool:
    """Return whether a word that could be a tag is a time: a weekday, or one such as "yesterday".

    Months and short forms are not: "march", "may" and "sat" are likely tags.
    """
    return word.lower() in (*_DAYS, *_WEEKDAYS)


@dataclass(frozen=True, slots=True)
class RelativeTime:
    """The start or the end of a time in words, which a read resolves against its now."""

    text: str
    edge: Edge = "start"

    def __post_init__(self) -> None:
        _check(self.text)

    def at(self, now: datetime | Callable[[], datetime]) -> int:
        """Return the bound in microseconds since 1970 UTC. Raises `InvalidInput`.

        ``now`` may be the source of now, which is called only if the bound depends on it.
        """
        # A month of a year, the most frequent time of a question, needs no now.
        interval = _month_of_year(_trimmed(self.text).lower())
        if interval is None:
            interval = interval_of(self.text, now if isinstance(now, datetime) else now())
        return interval.start if self.edge == "start" else interval.end

    def __str__(self) -> str:
        return self.text if self.edge == "start" else f"end of {self.text}"


# --- ISO -----------------------------------------------------------------------------------------


def _instant(time_us: int) -> Interval:
    return Interval(time_us, time_us + 1)


def _iso_period(text: str) -> Interval:
    try:
        start = to_microseconds(text + "-01-01"[len(text) - len("2026") :])
    except InvalidInput as error:
        raise _no_time(text) from error
    return _period(to_datetime(start), {4: "year", 7: "month"}.get(len(text), "day"))


def _period(moment: datetime, period: str) -> Interval:
    """Return the day, week, month or year of a moment."""
    start = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    if period == "week":
        start -= timedelta(days=start.weekday())
    elif period in ("month", "year"):
        start = start.replace(day=1, month=start.month if period == "month" else 1)
    days = {"day": 1, "week": 7, "month": 31, "year": 366}[period]
    try:
        end = start + timedelta(days=days)
        if period in ("month", "year"):
            end = end.replace(day=1, month=end.month if period == "month" else 1)
        return Interval(to_microseconds(start), to_microseconds(end))
    except OverflowError:
        return Interval(to_microseconds(start), TIME_MAX)


# --- words ---------------------------------------------------------------------------------------


def _in_words(text: str, now: datetime) -> Interval:
    text = _DAYS_APART.get(text, text)
    within = _WITHIN.fullmatch(text)
    if within is not None:
        return interval_of(within["time"], now)
    clock = _CLOCK.match(text)
    if clock:
        moment, _ = _parsed(f"today {clock['clock']}", now)
        if moment > now:
            moment, _ = _parsed(f"yesterday {clock['clock']}", now)
        return _instant(to_microseconds(moment))
    if month := _month_of_year(text):
        return month
    text = _check_words(text)
    last_month = _LAST_MONTH.match(text)
    if last_month:
        return _last_month(last_month["month"], now)
    rolling = _ROLLING.match(text)
    if rolling and rolling["unit"] in (*_UNITS, "fortnight"):
        start, _ = _parsed(f"{rolling['count'] or 1} {rolling['unit']} ago", now)
        return Interval(to_microseconds(start), to_microseconds(now) + 1)
    moment, period = _parsed(text, now)
    if period == "time":
        return _instant(to_microseconds(moment))
    # "3 weeks ago" and "in 3 weeks" name a day, "last week" a week.
    return _period(moment, "day" if _DISTANCE.search(text) else period)


def _last_month(name: str, now: datetime) -> Interval:
    """Return the last month of a name that is over."""
    moment, _ = _parsed(name, now)
    month = _period(moment, "month")
    if month.end <= to_microseconds(now):
        return month
    try:
        return _period(moment.replace(year=moment.year - 1), "month")
    except ValueError as error:
        raise _no_time(f"last {name}") from error


@lru_cache(maxsize=64)
def _month_of_year(text: str) -> Interval | None:
    """Return the times of "may 2023" or "8 may 2023"; dateparser would take milliseconds."""
    match = _MONTH_OF_YEAR.match(text)
    if match is None:
        return None
    days = [day for day in (match["day"], match["after"]) if day]
    if len(days) > 1:
        raise _no_time(match[0])
    month = _MONTHS.index(match["month"]) + 1
    return _iso_period(
        "-".join((match["year"], f"{month:02}", *(f"{int(day):02}" for day in days)))
    )


def _check_words(text: str) -> str:
    """Return a text with the month of a date in numbers in words.

    Raises:
        InvalidInput: the text is not a time in words, which dateparser would guess.
    """
    given, numeric = text, _NUMERIC_DATE.search(text)
    if numeric is not None:
        day = _day_of(text, numeric)
        in_words = f"{day.day} {_MONTHS[day.month - 1]} {day.year:04}"
        text = f"{text[: numeric.start()]}{in_words}{text[numeric.end() :]}"
    words = _TOKEN.findall(text)
    names_time = _NAMES.intersection(words) or (
        _UNIT_WORDS.intersection(words) and _RELATIONS.intersection(words)
    )
    is_known = _MARKS.fullmatch(text) and _WORDS.issuperset(words)
    if len(text) > _LONGEST or not names_time or not is_known:
        raise _no_time(given)
    for hour, minute, second in _CLOCK_TIME.findall(text):
        if int(hour) > 24 or int(minute) > 59 or int(second or 0) > 59:
            raise _no_time(given)
    return text


def _no_time(text: str) -> InvalidInput:
    if _RANGE.fullmatch(text):
        return InvalidInput(
            f"{text!r:.80} is a range of times, and a single time is needed",
            remedy="Write the time alone, such as 2026-03-01 or 'yesterday'; search takes ranges.",
        )
    return InvalidInput(f"{text!r:.80} is not a time", remedy=_EXAMPLES)


def _day_of(text: str, numeric: re.Match[str]) -> date:
    """Return the day of a date in numbers. Raises `InvalidInput` if it may be none or two days."""
    first, _, second, last = numeric.groups()
    year = last if len(last) > 2 else f"20{int(last):02}"
    pairs = [(first, second), (second, first)]
    if len(first) == len("2026"):
        year = first
        pairs = [(last, second), (second, last)]
        if numeric[2] == "-":
            pairs = [(last, second)]
    readings: list[date] = []
    if len(first) == len(last) == len("26") and numeric[2] == "-":
        # The ISO date without its century.
        with suppress(ValueError):
            readings.append(date(2000 + int(first), int(second), int(last)))
    for day, month in pairs:
        with suppress(ValueError):
            readings.append(date(int(year), int(month), int(day)))
    if not readings:
        raise _no_time(text)
    days = [*dict.fromkeys(readings)]
    if len(days) > 1:
        raise InvalidInput(
            f"{text!r:.80} is ambiguous: the order of day and month differs between countries",
            remedy=f"Write the date as {' or '.join(map(str, days))}.",
        )
    return days[0]


@lru_cache(maxsize=64)
def _parsed(text: str, now: datetime) -> tuple[datetime, str]:
    """Return the moment that dateparser finds, and its period: "time", "day", "week" …."""
    with loading("dateparser"):
        from dateparser.date import DateDataParser

    words = _TOKEN.findall(text)
    parser = DateDataParser(
        languages=["en"],
        settings={
            "RELATIVE_BASE": now.astimezone(UTC).replace(tzinfo=None),
            "TIMEZONE": "UTC",
            "TO_TIMEZONE": "UTC",
            "RETURN_AS_TIMEZONE_AWARE": False,
            "RETURN_TIME_AS_PERIOD": True,
            "PREFER_DATES_FROM": "past",
            # The parts that a text leaves out must not come from the clock.
            "PREFER_DAY_OF_MONTH": "first" if _MONTH_NAMES.intersection(words) else "current",
            "PREFER_MONTH_OF_YEAR": "first" if _MONTH_NAMES.intersection(words) else "current",
            "PARSERS": ["relative-time", "absolute-time"],
        },
    )
    try:
        found = parser.get_date_data(text)
    except (ValueError, OverflowError) as error:
        raise _no_time(text) from error
    moment: datetime | None = found.date_obj
    period = str(found.period)
    if moment is None or period not in ("time", "day", "week", "month", "year"):
        raise _no_time(text)
    return moment.replace(tzinfo=UTC), period
