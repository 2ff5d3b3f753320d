"""Bases: from a caller's name for a point of the log to its seq.

A number is a seq, exactly the first n events; an instant is the last batch recorded at or before
it, and a day or another period the last batch of the period; ``HEAD`` is the newest event and
``HEAD~n`` the end of the batch n batches before; a name that starts with a letter is a tag, or else
a time in words. Of single words, weekdays are times, and yesterday, today, tomorrow and now. A time
after the newest event is the newest event: a day that is not over has no other last batch.
"""

import re
from collections.abc import Callable
from datetime import date, datetime

from cerata.engine.errors import InvalidInput, NotFound, number_text, value_text
from cerata.engine.json_value import exact
from cerata.engine.log import Log
from cerata.projections.columnar.relative_times import Interval, interval_of, names_time

_RELATIVE = re.compile(r"HEAD(?:~(\d{1,18}))?\Z")
_TAG = re.compile(r"[A-Za-z][A-Za-z0-9._/-]{0,99}\Z", re.ASCII)
_NUMBER = re.compile(r"\d{1,18}\Z", re.ASCII)


def check_tag_name(name: object) -> str:
    """Return a valid name for a tag, which no other kind of basis can have.

    Raises:
        InvalidInput: the name is not valid.
    """
    if isinstance(name, str) and _TAG.match(name) and name != "HEAD":
        return name
    raise InvalidInput(
        f"A tag cannot be named {value_text(name)}",
        remedy="Start with a letter, then letters, digits, '.', '_', '-' and '/'; at most 100.",
    )


def batches_back(basis: str) -> int | None:
    """Return n of ``HEAD~n``, 0 for ``HEAD``, and None for other names."""
    relative = _RELATIVE.match(basis)
    return None if relative is None else int(relative.group(1) or 0)


def resolve_basis(
    log: Log,
    basis: int | str | date,
    tagged: Callable[[str], int | None],
    head: int,
    now: datetime,
) -> int:
    """Return the seq of a basis in a log that ends at ``head``.

    ``tagged`` returns the seq of a tag, or None; times in words count from ``now``.

    Cost: O(log n) reads for a time, n reads for ``HEAD~n``, a fold of the tags for a tag.

    Raises:
        NotFound: the log ends earlier, or has no such tag.
        InvalidInput: the basis is not understood.
    """
    basis = exact(basis)
    if isinstance(basis, bool) or not isinstance(basis, int | date | str):
        raise InvalidInput(
            f"A basis cannot be a {type(basis).__name__}",
            remedy="Pass a seq, a receipt, a time, a tag, HEAD or HEAD~n.",
        )
    if isinstance(basis, int):
        if not 0 <= basis <= head:
            raise NotFound(
                f"There is no event {number_text(basis)}",
                remedy=f"Pass a seq up to {number_text(head)}, the end of the log.",
            )
        return basis
    if isinstance(basis, date):
        return _seq_at(log, interval_of(basis, now), head)
    back = batches_back(basis)
    if back is not None:
        return _end_before(log, head, back)
    if _NUMBER.match(basis):
        return resolve_basis(log, int(basis), tagged, head, now)
    if _TAG.match(basis):
        seq = tagged(basis)
        if seq is not None:
            return seq
        if not names_time(basis):
            raise NotFound(
                f"There is no tag {basis!r}",
                remedy="Run 'cerata time tag' for the tags, or pass a time such as 'last month'.",
            )
    try:
        return _seq_at(log, interval_of(basis, now), head)
    except InvalidInput as error:
        raise InvalidInput(
            "The basis is no seq, tag, HEAD or HEAD~n, and "
            f"{error.what[0].lower()}{error.what[1:]}",
            remedy=error.remedy,
        ) from error


def _end_before(log: Log, seq: int, count: int) -> int:
    for back in range(count):
        if seq == 0:
            batches = "1 batch" if back == 1 else f"{back:,} batches"
            raise NotFound(
                f"There is no HEAD~{count}: the log has {batches}",
                remedy=f"Pass HEAD~{back}, the beginning, or a later point.",
            )
        seq = log.event(seq).header.first_seq - 1
    return seq


def _seq_at(log: Log, interval: Interval, head: int) -> int:
    """Bisect for the last event recorded before the end of an interval; O(log n) reads."""
    low = 0
    high = head
    while low < high:
        middle = (low + high + 1) // 2
        if log.event(middle).recorded < interval.end:
            low = middle
        else:
            high = middle - 1
    return low
