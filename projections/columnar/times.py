"""Times: conversion of a caller's times to microseconds since 1970 UTC, and back.

A time is an aware datetime, a date, or an ISO string; a date means 00:00 UTC.
"""

from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from typing import Final, NamedTuple

from cerata.engine.errors import InvalidInput
from cerata.engine.instants import EPOCH
from cerata.engine.instants import to_datetime as to_datetime  # noqa: PLC0414 - re-exported
from cerata.engine.json_value import type_name
from cerata.engine.limits import TIME_MAX, TIME_MIN

_MICROSECOND: Final = timedelta(microseconds=1)


def to_microseconds(value: datetime | date | str) -> int:
    """Return a time in microseconds since 1970 UTC; a date means 00:00 UTC.

    Raises:
        InvalidInput: ``value`` is no ISO time, has no zone, or lies outside the years 1 to 9999.
    """
    when = value
    if isinstance(when, str):
        try:
            when = datetime.fromisoformat(when)
        except ValueError as error:
            raise InvalidInput(
                f"{value!r} is not an ISO time",
                remedy="Write a time as 2026-03-01 or 2026-03-01T12:00:00+00:00.",
            ) from error
        # A day or a week without a clock, such as 20260301 and 2026-W09.
        if len(str(value)) <= len("2026-03-01"):
            when = when.replace(tzinfo=UTC)
    elif not isinstance(when, datetime):
        if not isinstance(when, date):
            raise InvalidInput(
                f"A time cannot be a {type_name(value)}",
                remedy="Pass an aware datetime, a date, or an ISO string.",
            )
        when = datetime.combine(when, time(), UTC)
    if when.tzinfo is None:
        raise InvalidInput(
            f"The time {value} has no zone", remedy="Add a zone, for example +00:00 for UTC."
        )
    try:
        time_us = (when - EPOCH) // _MICROSECOND
    except Exception as error:
        # A zone is a class of the caller, which may raise anything, or know no offset.
        raise InvalidInput(
            f"The zone of the time cannot be used: {type(error).__name__}: {error}",
            remedy="Pass a time in UTC.",
        ) from error
    if not TIME_MIN <= time_us <= TIME_MAX:
        raise InvalidInput(
            f"The time {value} lies outside the years 1 to 9999 of UTC",
            remedy="Pass a time of the years 1 to 9999.",
        )
    return time_us


# --- Half-open ranges of time, [start, end) in microseconds since 1970 UTC, and their relations
#
# Between any two ranges that are not empty exactly one relation holds (J. F. Allen, Maintaining
# Knowledge about Temporal Intervals, CACM 26(11), 1983).


BEGINNING: Final = -(1 << 63) + 1
"""The start of a range without a start. On disk: never renumber."""

ENDLESS: Final = (1 << 63) - 1
"""The end of a range without an end. On disk: never renumber."""


class Interval(NamedTuple):
    """The instants [start, end); empty unless start < end."""

    start: int
    end: int

    def contains(self, time_us: int) -> bool:
        """Return whether an instant lies within the range."""
        return self.start <= time_us < self.end

    def overlaps(self, other: "Interval") -> bool:
        """Return whether two ranges share an instant, like OVERLAPS in SQL:2011.

        Allen's relation of the same name is narrower: see `Allen.OVERLAPS`.
        """
        return max(self.start, other.start) < min(self.end, other.end)


class Allen(StrEnum):
    """The relation of a range to a second range; the value reads "the first … the second"."""

    PRECEDES = "precedes"
    MEETS = "meets"
    OVERLAPS = "overlaps"
    STARTS = "starts"
    DURING = "during"
    FINISHES = "finishes"
    EQUALS = "equals"
    FINISHED_BY = "finished by"
    CONTAINS = "contains"
    STARTED_BY = "started by"
    OVERLAPPED_BY = "overlapped by"
    MET_BY = "met by"
    PRECEDED_BY = "preceded by"

    @property
    def inverse(self) -> "Allen":
        """The relation of the second range to the first."""
        order = list(Allen)
        return order[len(order) - 1 - order.index(self)]


_WITHIN: Final = {
    # By the order of the starts and of the ends, if the ranges share an instant.
    (-1, -1): Allen.OVERLAPS,
    (-1, 0): Allen.FINISHED_BY,
    (-1, 1): Allen.CONTAINS,
    (0, -1): Allen.STARTS,
    (0, 0): Allen.EQUALS,
    (0, 1): Allen.STARTED_BY,
    (1, -1): Allen.DURING,
    (1, 0): Allen.FINISHES,
    (1, 1): Allen.OVERLAPPED_BY,
}


def relation(first: Interval, second: Interval) -> Allen:
    """Return the relation of ``first`` to ``second``; neither range is empty."""
    if first.end <= second.start:
        return Allen.MEETS if first.end == second.start else Allen.PRECEDES
    if second.end <= first.start:
        return Allen.MET_BY if second.end == first.start else Allen.PRECEDED_BY
    return _WITHIN[_sign(first.start, second.start), _sign(first.end, second.end)]


def _sign(left: int, right: int) -> int:
    return (left > right) - (left < right)
