"""Counts of a run, which add up over stories, tasks and processes.

Owns the base of every tally, and the form of the result that a sweep prints. Leaves out the counts
of crash states (`campaign`).
"""

from dataclasses import dataclass, field, fields
from typing import Any, Self

_SHOWN = 20
"""Problems that are printed."""


@dataclass(slots=True)
class Counts:
    """Fields that add up: numbers, lists and counters; other mappings are merged.

    A field whose name ends in ``_max`` keeps the greater value, and text stays.
    """

    def add(self, other: Self) -> None:
        """Add the counts of another story, task or process."""
        for column in fields(self):
            mine: Any = getattr(self, column.name)
            theirs: Any = getattr(other, column.name)
            if isinstance(mine, Counts):
                mine.add(theirs)
            elif hasattr(mine, "update"):
                mine.update(theirs)
            elif column.name.endswith("_max"):
                setattr(self, column.name, max(mine, theirs))
            elif not isinstance(mine, str):
                setattr(self, column.name, mine + theirs)


@dataclass(slots=True)
class SweepTally(Counts):
    """The result of a sweep. ``problems`` are sentences; empty if every check held."""

    problems: list[str] = field(default_factory=list[str])

    def summary(self) -> str:
        """Return the counts as a sentence."""
        raise NotImplementedError

    def __str__(self) -> str:
        return "\n".join([self.summary(), *self.problems[:_SHOWN]])


def listed(counts: dict[str, int]) -> str:
    """Return counters as text, in the order of their names."""
    return ", ".join(f"{name} {count:,}" for name, count in sorted(counts.items()))
