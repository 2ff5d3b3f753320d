"""The calendar along a picture: what stretch of time it shows, and where its lines are.

Times are microseconds since 1970 UTC.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from cerata.projections.intervals import BEGINNING, ENDLESS, Interval
from cerata.projections.times import to_datetime, to_microseconds

_HOUR_US: Final = 3_600_000_000
_DAY_US: Final = 24 * _HOUR_US
_NAMES: Final = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
_YEARS: Final = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
_MONTHS: Final = (1, 3, 6)
_HOURS: Final = (1, 3, 6, 12, 24, 48, 120)
_MARGIN: Final = 0.12
"""What lies besides the first and last time, as a share: room for what has no end."""


class Line(NamedTuple):
    """A line of the calendar: when, and what is written at it."""

    time: int
    label: str


def stretch(times: Iterable[int]) -> Interval:
    """Return the time to show, around all that are no open ends; a day at least."""
    known = [time for time in times if BEGINNING < time < ENDLESS]
    first, last = (min(known), max(known)) if known else (0, 0)
    room = max(round((last - first) * _MARGIN), _DAY_US // 2)
    start, end = to_datetime(first - room), to_datetime(last + room)
    return Interval(to_microseconds(start), to_microseconds(end))


def lines_in(shown: Interval, count: int) -> list[Line]:
    """Return at most so many lines, at the starts of years, months, days or hours."""
    for candidates in _candidates(shown):
        found = [one for one in candidates if shown.start < one.time < shown.end]
        if len(found) <= count:
            return found
    return []


def _candidates(shown: Interval) -> Iterator[list[Line]]:
    """Yield lines from the densest that are worth a look to the sparsest."""
    size = shown.end - shown.start
    first, last = to_datetime(shown.start), to_datetime(shown.end)
    for hours in _HOURS:
        if size / (hours * _HOUR_US) < 60:
            yield list(_by_hours(first, shown.end, hours))
    years = range(first.year, last.year + 1)
    for months in _MONTHS:
        if size / (months * 30 * _DAY_US) < 60:
            yield [_month(year, month) for year in years for month in range(1, 13, months)]
    for apart in _YEARS:
        yield [_month(year, 1) for year in years if year % apart == 0]


def _month(year: int, month: int) -> Line:
    first = datetime(year, month, 1, tzinfo=UTC)
    return Line(to_microseconds(first), f"{_NAMES[month - 1]} {year}" if month > 1 else str(year))


def _by_hours(first: datetime, end: int, hours: int) -> Iterator[Line]:
    when = first.replace(hour=0, minute=0, second=0, microsecond=0)
    step = timedelta(hours=hours)
    while to_microseconds(when) < end and when < _LAST - step:
        at_midnight = when.hour == 0
        yield Line(to_microseconds(when), f"{when:%Y-%m-%d}" if at_midnight else f"{when:%H:%M}")
        when += step


_LAST: Final = to_datetime(ENDLESS)


def said(times: Sequence[int]) -> list[str]:
    """Return times, ascending, for people, as exactly as it takes to tell them apart."""
    found = list[str]()
    for form in ("%Y-%m-%d", "%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S"):
        found = [to_datetime(time).strftime(form) for time in times]
        if len(set(found)) == len(found):
            return found
    # Of several within a second the first is told.
    return [
        "a moment later" if place and found[place - 1] == text else text
        for place, text in enumerate(found)
    ]
