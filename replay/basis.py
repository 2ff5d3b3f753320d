"""Bases: from what a caller says of a point in time to the seq that it means.

A number is a seq, exactly the first n events; a time is the last batch recorded at or before it;
``HEAD`` is the newest event and ``HEAD~n`` the end of the batch n batches before.
"""

import re
from datetime import UTC, datetime, timedelta

from cerata.engine.errors import InvalidInput, NotFound
from cerata.engine.log import Log

_RELATIVE = re.compile(r"HEAD(?:~(\d{1,18}))?\Z")
_NUMBER = re.compile(r"\d{1,18}\Z", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TIME_MIN = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)
_TIME_MAX = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)


def resolve_basis(log: Log, basis: int | str | datetime) -> int:
    """Return the seq that a basis means.

    Raises:
        NotFound: the log does not reach that far. InvalidInput: it cannot be understood.
    """
    head = log.head.seq
    if isinstance(basis, bool):
        raise InvalidInput("A basis cannot be a bool")
    if isinstance(basis, int):
        if not 0 <= basis <= head:
            raise NotFound(
                f"There is no event {basis:,}", remedy=f"The log ends at event {head:,}."
            )
        return basis
    if isinstance(basis, datetime):
        return _seq_at(log, to_microseconds(basis))
    if not isinstance(basis, str):
        raise InvalidInput(
            f"A basis cannot be a {type(basis).__name__}",
            remedy="Give a seq, a receipt, a time, HEAD or HEAD~n.",
        )
    relative = _RELATIVE.match(basis)
    if relative:
        return _batches_back(log, head, int(relative.group(1) or 0))
    if _NUMBER.match(basis):
        return resolve_basis(log, int(basis))
    return _seq_at(log, to_microseconds(basis))


def _batches_back(log: Log, seq: int, count: int) -> int:
    for _ in range(count):
        if seq == 0:
            raise NotFound("The log has fewer batches than that")
        seq = log.event(seq).header.first_seq - 1
    return seq


def _seq_at(log: Log, time_us: int) -> int:
    """Bisect for the last event recorded at or before a time; O(log n) reads."""
    low, high = 0, log.head.seq
    while low < high:
        middle = (low + high + 1) // 2
        if log.event(middle).recorded <= time_us:
            low = middle
        else:
            high = middle - 1
    return low


def to_microseconds(value: datetime | str) -> int:
    """Return a time in microseconds since 1970 UTC; a date is its 00:00 UTC.

    Raises:
        InvalidInput: not an ISO time, or a time without a zone.
    """
    if not isinstance(value, datetime | str):
        raise InvalidInput(
            f"A time cannot be a {type(value).__name__}",
            remedy="Give an aware datetime or an ISO string.",
        )
    when = value
    if isinstance(when, str):
        try:
            when = datetime.fromisoformat(when)
        except ValueError as error:
            raise InvalidInput(
                f"{value!r} is not a seq, HEAD, HEAD~n or an ISO time",
                remedy="Write a time as 2026-03-01 or 2026-03-01T12:00:00+00:00.",
            ) from error
        if len(str(value)) == len("2026-03-01"):
            when = when.replace(tzinfo=UTC)
    if when.tzinfo is None:
        raise InvalidInput(
            f"The time {value} has no zone", remedy="Add one, for example +00:00 for UTC."
        )
    time_us = (when - _EPOCH) // timedelta(microseconds=1)
    if not _TIME_MIN <= time_us <= _TIME_MAX:
        raise InvalidInput(f"The time {value} lies outside the years 1 to 9999 of UTC")
    return time_us


def to_datetime(time_us: int) -> datetime:
    """Return microseconds since 1970 UTC as an aware datetime."""
    # An event of a faulty writer may lie outside what a datetime can hold; it must not stop a read.
    return _EPOCH + timedelta(microseconds=min(max(time_us, _TIME_MIN), _TIME_MAX))
