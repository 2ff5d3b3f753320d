"""The calendar along a picture: the interval of time that it shows, and its lines.

Owns the choice of interval and lines, and times as texts. Leaves out drawing (`bitemporal`). Times
are microseconds since 1970 UTC.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from cerata.projections.columnar.intervals import BEGINNING, ENDLESS, Interval
from cerata.projections.columnar.times import to_datetime, to_microseconds

_HOUR_US: Final = 3_600_000_000
_DAY_US: Final = 24 * _HOUR_US
_NAMES: Final = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
_YEARS: Final = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
_MONTHS: Final = (1, 3, 6)
_HOURS: Final = (1, 3, 6, 12, 24, 48, 120)
_MARGIN: Final = 0.12
"""Space before the first and after the last time, as a share: room for open ends."""


class Line(NamedTuple):
    """A line of the calendar: its time, and its label."""

    time: int
    label: str


def stretch(times: Iterable[int]) -> Interval:
    """Return the interval to show, around all times but open ends; at least a day."""
    closed = [time for time in times if BEGINNING < time < ENDLESS]
    first, last = (min(closed), max(closed)) if closed else (0, 0)
    room = max(round((last - first) * _MARGIN), _DAY_US // 2)
    start, end = to_datetime(first - room), to_datetime(last + room)
    return Interval(to_microseconds(start), to_microseconds(end))


def lines_in(interval: Interval, count: int) -> list[Line]:
    """Return at most ``count`` lines, at the starts of years, months, days or hours."""
    for candidates in _candidates(interval):
        lines = [line for line in candidates if interval.start < line.time < interval.end]
        if len(lines) <= count:
            return lines
    return []


def _candidates(interval: Interval) -> Iterator[list[Line]]:
    """Yield sets of lines from dense to sparse, without those of 60 lines or more."""
    size = interval.end - interval.start
    first, last = to_datetime(interval.start), to_datetime(interval.end)
    for hours in _HOURS:
        if size / (hours * _HOUR_US) < 60:
            yield list(_by_hours(first, interval.end, hours))
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
    """Return ascending times as texts for people, just exact enough to differ."""
    texts = list[str]()
    for form in ("%Y-%m-%d", "%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S"):
        texts = [to_datetime(time).strftime(form) for time in times]
        if len(set(texts)) == len(texts):
            return texts
    # Times within one second cannot differ, so only the first of them is written.
    return [
        "a moment later" if place and texts[place - 1] == text else text
        for place, text in enumerate(texts)
    ]
