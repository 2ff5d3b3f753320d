"""Times: conversion of a caller's times to microseconds since 1970 UTC, and back.

A time is an aware datetime, a date, or an ISO string; a date means 00:00 UTC.
"""

from datetime import UTC, date, datetime, time, timedelta
from typing import Final

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
