"""Instants: microseconds since 1970 UTC as aware datetimes."""

from datetime import UTC, datetime, timedelta
from typing import Final

from .limits import TIME_MAX, TIME_MIN

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def to_datetime(time_us: int) -> datetime:
    """Return microseconds since 1970 UTC as an aware datetime."""
    if TIME_MIN <= time_us <= TIME_MAX:
        return EPOCH + timedelta(0, 0, time_us)
    # An event of a faulty writer may lie outside the range of datetime; reads must not fail on it.
    return to_datetime(TIME_MIN if time_us < TIME_MIN else TIME_MAX)
