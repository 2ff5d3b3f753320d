"""Periods: UTC days, ISO weeks, the months and years of weeks.

Owns their keys, bounds and children. A week belongs to the month and the year of its Thursday, so
every day is in exactly one period of each level.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Final, NamedTuple

from cerata.projections.columnar.times import to_datetime, to_microseconds

LEVELS: Final = ("day", "week", "month", "year")
"""The levels, finest first."""

_DAY: Final = timedelta(days=1)
_WEEK: Final = timedelta(days=7)
_THURSDAY: Final = timedelta(days=3)


class Period(NamedTuple):
    """A period of a level, of whole UTC days.

    ``key`` is ``2026-01-07``, ``2026-W02``, ``2026-01`` or ``2026``.
    """

    level: int
    key: str
    first: date
    end: date
    """The day after the last."""

    @property
    def start_us(self) -> int:
        """The first instant, in microseconds since 1970 UTC."""
        return _microseconds(self.first)

    @property
    def end_us(self) -> int:
        """The first instant after the period, in microseconds since 1970 UTC."""
        return _microseconds(self.end)

    @property
    def above(self) -> Period | None:
        """The period of the next level, of which this period is a part; None for a year."""
        if self.level == len(LEVELS) - 1:
            return None
        if self.level == 0:
            return week_of(self.first)
        thursday = self.first + _THURSDAY if self.level == 1 else self.first + _WEEK
        return month_of(thursday) if self.level == 1 else year_of(thursday)


def day_of(created_us: int) -> Period:
    """Return the UTC day of an instant."""
    day = to_datetime(created_us).astimezone(UTC).date()
    return Period(0, day.isoformat(), day, day + _DAY)


def week_of(day: date) -> Period:
    """Return the ISO week of a day."""
    year, week, weekday = day.isocalendar()
    monday = day - timedelta(days=weekday - 1)
    return Period(1, f"{year:04}-W{week:02}", monday, monday + _WEEK)


def month_of(day: date) -> Period:
    """Return the period of the weeks whose Thursday is in the month of a day."""
    first = day.replace(day=1)
    following = (first + timedelta(days=31)).replace(day=1)
    return Period(2, f"{day:%Y-%m}", _first_week(first), _first_week(following))


def year_of(day: date) -> Period:
    """Return the period of the weeks whose Thursday is in the year of a day."""
    first, following = date(day.year, 1, 1), date(day.year + 1, 1, 1)
    return Period(3, f"{day.year:04}", _first_week(first), _first_week(following))


def named(key: str) -> Period:
    """Return the period with a key. Raises `ValueError`."""
    if "-W" in key:
        year, _, week = key.partition("-W")
        period = week_of(date.fromisocalendar(int(year), int(week), 1))
    elif key.count("-") == 2:
        day = date.fromisoformat(key)
        period = Period(0, day.isoformat(), day, day + _DAY)
    elif "-" in key:
        period = month_of(date.fromisoformat(f"{key}-01"))
    else:
        period = year_of(date(int(key), 1, 1))
    if period.key != key:
        raise ValueError(f"{key!r} is no key of a period")
    return period


def _first_week(first: date) -> date:
    """Return the Monday of the first week whose Thursday is not before a day."""
    monday = week_of(first).first
    return monday if monday + _THURSDAY >= first else monday + _WEEK


def _microseconds(day: date) -> int:
    return to_microseconds(datetime(day.year, day.month, day.day, tzinfo=UTC))
