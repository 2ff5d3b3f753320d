"""Points: from a caller's name for a point of the log, to its seq and to the meaning of "now".

Owns the forms that values of the store have (receipts, heads, contexts), and the search for tags.
Leaves out numbers, times and words (`cerata.replay.basis`), and views (`cerata.memory.view`).
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from datetime import date, datetime
from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple

from cerata.engine.errors import InvalidInput, NotFound
from cerata.engine.head import Head
from cerata.projections.columnar.relative_times import names_time
from cerata.projections.columnar.times import to_microseconds
from cerata.replay.basis import resolve_basis

from ..values.frames import Context, Receipt, end_of

if TYPE_CHECKING:
    from cerata.engine.log import Log

    from .snapshot import Snapshot


Point = int | str | date | Receipt | Head | Context
"""The forms of a point of the log, without views."""


def seq_of_point(
    log: Log,
    point: Point,
    tags: Callable[[], Mapping[str, int]],
    end: int,
    clock: datetime,
) -> tuple[int, int | None]:
    """Return the seq of a point, and the "now" that a context carries, in microseconds.

    Args:
        log: The log.
        point: The point, in any form but a view.
        tags: Returns the seqs of the tags.
        end: The last seq that the caller sees.
        clock: The time from which a point in words counts.

    Raises:
        NotFound: the log, as the caller sees it, ends before the point.
        InvalidInput: the point has no known form, or is a point of another memory.
        Diverged: the point lies on another branch.
    """
    now: int | None = None
    if isinstance(point, Receipt):
        batch_end = end_of(point)
        if batch_end is None:
            raise InvalidInput(
                "The receipt belongs to a transaction that has written nothing",
                remedy="Use it after the block has ended without an error.",
            )
        point = batch_end
    if isinstance(point, Context):
        log.check_point(point.basis, point.identity)
        now = to_microseconds(point.now)
        point = point.basis
    elif isinstance(point, Head):
        log.check_point(point.seq, point.identity)
        point = point.seq
    return resolve_basis(log, point, partial(_tagged, tags), end, clock), now


def _tagged(tags: Callable[[], Mapping[str, int]], name: str) -> int | None:
    seqs = tags()
    near = difflib.get_close_matches(name, [*seqs, "HEAD"], n=1)
    if name not in seqs and near and not names_time(name):
        raise NotFound(
            f"There is no tag {name!r}",
            remedy=f"Did you mean {near[0]!r}? 'cerata time tag' lists them; a time is ISO.",
        )
    return seqs.get(name)


# --- Beginnings: the part of the log, and of drafts, that two states share ------------------------


class Common(NamedTuple):
    """The beginning that two states share: events of the log, and drafts after them."""

    basis: int
    drafts: int

    def has(self, number: int) -> bool:
        """Return whether an id is the same thing in both states."""
        return number <= self.basis if number > 0 else -number <= self.drafts


def common_beginning(a: Snapshot, b: Snapshot) -> Common:
    """Return the beginning that two states share; drafts only of one basis."""
    basis = min(a.basis, b.basis)
    if a.basis != b.basis:
        return Common(basis, 0)
    pairs = zip(a.unsalted_drafts, b.unsalted_drafts, strict=False)
    return Common(basis, sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs)))
