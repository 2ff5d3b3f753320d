"""Relevance: how well a memory answers a question, by the best score of its frames.

Owns `Floor`, the two marks on a score, and the measured marks. A nearest vector always exists, and
one common word occurs somewhere, so without marks an unrelated question gets the least unrelated
notes. Leaves out which hits a context then shows (`cerata.memory.search.relevance`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, TypeAlias

from cerata.engine.arguments import is_number
from cerata.engine.errors import InvalidInput, value_text
from cerata.engine.plain_value import PlainValue

Confidence: TypeAlias = Literal["clear", "unclear", "none"]
"""How well a memory answers: clearly, perhaps, or not at all."""


@dataclass(frozen=True, slots=True)
class Floor(PlainValue):
    """Two marks on the best score of a question, from 0: a half is each word of it once.

    Args:
        clear: from this score a context is as full as its budget
        least: below this score a context has no entry; between the two it has the closest entries,
            in half of its budget, and says that none clearly answers

    >>> Floor(0.45, 0.2).confidence_at(0.3)
    'unclear'

    Raises:
        InvalidInput: a mark is no number from 0 to 10, or ``least`` is above ``clear``.
    """

    clear: float
    least: float = 0.0

    def __post_init__(self) -> None:
        for name, value in (("clear", self.clear), ("least", self.least)):
            if not is_number(value) or not 0 <= value <= _MARK_MAX:
                raise InvalidInput(
                    f"A floor's {name} must be a number from 0 to 10, not {value_text(value):.60}",
                    remedy="Pass a form such as Floor(0.45, 0.2), or floor=False for none.",
                )
        if self.least > self.clear:
            raise InvalidInput(
                f"A floor's least mark, {self.least:g}, is above its clear mark, {self.clear:g}",
                remedy="Pass the larger mark first, such as Floor(0.45, 0.2).",
            )

    def confidence_at(self, score: float) -> Confidence:
        """Return the confidence of an answer with a best score.

        Args:
            score: the best score of a frame
        """
        if score >= self.clear:
            return "clear"
        return "unclear" if score >= self.least else "none"

    def toward(self, floor: "Floor", part: float) -> "Floor":
        """Return the marks of a part of the way to another floor's.

        Args:
            floor: the other floor
            part: 0 for these marks, 1 for those of the other
        """
        return Floor(
            round(self.clear + part * (floor.clear - self.clear), _DIGITS),
            round(self.least + part * (floor.least - self.least), _DIGITS),
        )


_DIGITS: Final = 9

_MARK_MAX: Final = 10.0
"""Far above any score: 1 is a frame full of the words, and 1 more for each kind of vectors."""

BY_WORDS: Final = Floor(0.21, 0.06)
"""The marks of a search by words alone (docs/measurements.md#relevance)."""


class MeaningMarks(NamedTuple):
    """The marks with the vectors of a model, and the cosine that few unrelated notes reach."""

    floor: Floor
    near: float


BY_MEANING: Final[Mapping[str, MeaningMarks]] = {
    "all-MiniLM-L6-v2": MeaningMarks(Floor(0.42, 0.2), 0.36),
    "static-minilm": MeaningMarks(Floor(0.25, 0.036), 0.7),
}
"""The marks of each measured model; another model has none, since the cosines of unrelated texts
differ from model to model (docs/measurements.md#relevance)."""

CLOSE: Final = 0.5
"""Hits from so much of the best score on are close to it: a context rather cuts them than shows
entries below it before them."""

SHOWN: Final = 1 / 3
"""Hits below so much of the best score are left out of a context."""
