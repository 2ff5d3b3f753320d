"""Half-open ranges of time, [start, end) in microseconds since 1970 UTC, and their relations.

Owns the open ends and Allen's thirteen relations. Between any two ranges that are not empty exactly
one relation holds (J. F. Allen, Maintaining Knowledge about Temporal Intervals, CACM 26(11), 1983).
"""

from enum import StrEnum
from typing import Final, NamedTuple

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
