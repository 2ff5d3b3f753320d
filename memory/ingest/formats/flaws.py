"""Flaws: the parts of a file that were skipped, or kept with a doubt.

Owns the single type in which every reader of units (lines, conversations, turns, pages) reports a
unit that does not fit. A reader returns the whole units and reports the rest here, so an odd unit
costs itself alone, and nothing is dropped without being counted. Leaves out the readers.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from cerata.engine.plain_value import PlainValue
from cerata.engine.words import counted

FlawOutcome: TypeAlias = Literal["skipped", "doubtful"]

PLACES_MAX: Final = 100
"""Most places that a flaw names; its count goes on. A log may have a bad part on each line."""

NO_TEXT: Final = "a turn without text"
NO_TURNS: Final = "a conversation without turns"
OTHER_BRANCH: Final = "on a branch of the conversation that was not kept"
OTHER_RECORD: Final = "a record of another type, no turn"
USUAL: Final = frozenset((NO_TEXT, NO_TURNS, OTHER_BRANCH, OTHER_RECORD))
"""The faults that are none of the file: its program writes such parts. They count as skipped."""

_PLACES_SHOWN: Final = 5
"""Places in the text of a flaw."""


@dataclass(frozen=True, slots=True)
class Flaw(PlainValue):
    """Parts of a file with the same fault.

    - ``outcome`` is "skipped" if the parts are not remembered, "doubtful" if they are, without the
      piece that ``why`` names.
    - ``count`` is the number of parts; ``places`` names the first hundred.
    """

    outcome: FlawOutcome
    why: str
    count: int
    places: tuple[str, ...]

    def __str__(self) -> str:
        shown = self.places[:_PLACES_SHOWN]
        more = f", and {self.count - len(shown):,} more" if self.count > len(shown) else ""
        parts = counted(self.count, "part")
        between = "; " if any("," in place for place in shown) else ", "
        return f"{parts} {self.outcome}: {self.why} ({between.join(shown)}{more})"

    @property
    def is_usual(self) -> bool:
        """True if whole files of the format have such parts, as an export has empty turns."""
        return self.why in USUAL


class Flaws:
    """Collects the flaws of a file; ``why`` is one of few texts, so the memory is bounded."""

    def __init__(self) -> None:
        self._counts: dict[tuple[FlawOutcome, str], int] = {}
        self._places: dict[tuple[FlawOutcome, str], list[str]] = {}

    def skip(self, why: str, place: str) -> None:
        """Report a part that is not remembered."""
        self._add("skipped", why, place)

    def doubt(self, why: str, place: str) -> None:
        """Report a part that is remembered without a piece of it."""
        self._add("doubtful", why, place)

    def _add(self, outcome: FlawOutcome, why: str, place: str) -> None:
        key = outcome, why
        self._counts[key] = self._counts.get(key, 0) + 1
        places = self._places.setdefault(key, [])
        if len(places) < PLACES_MAX:
            places.append(place)

    def found(self) -> tuple[Flaw, ...]:
        """Return the flaws in the order of their first parts."""
        return tuple(
            Flaw(outcome, why, count, tuple(self._places[outcome, why]))
            for (outcome, why), count in self._counts.items()
        )


def parts_with(flaws: Iterable[Flaw], outcome: FlawOutcome) -> int:
    """Return the count of parts with an outcome."""
    return sum(flaw.count for flaw in flaws if flaw.outcome == outcome)
