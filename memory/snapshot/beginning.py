"""Beginnings: the part of the log, and of drafts, that two states share."""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from .snapshot import Snapshot


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
