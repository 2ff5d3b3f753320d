"""Relevance floors: the least evidence with which a context answers a question.

Owns `Floor`, its test of a hit, and the measured floors by model. A nearest vector always exists,
so without a floor an unrelated question gets the least unrelated notes. Leaves out the evidence of
a hit (`cerata.memory.search.relevance`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from cerata.engine.errors import InvalidInput
from cerata.engine.plain_value import PlainValue


@dataclass(frozen=True, slots=True)
class Floor(PlainValue):
    """The least evidence of relevance; a question passes if one of its hits has enough.

    Args:
        cosine: least cosine of a hit and the question, from −1 to 1
        words: least share of the question's words in a hit, weighted by rarity, from 0 to 1

    >>> Floor(0.36, 0.6).admits(0.2, 0.7)
    True

    Raises:
        InvalidInput: a number is out of range.
    """

    cosine: float
    words: float = 0.6

    def __post_init__(self) -> None:
        for name, value, least in (("cosine", self.cosine, -1), ("words", self.words, 0)):
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            if not is_number or not least <= value <= 1:
                raise InvalidInput(
                    f"A floor's {name} must be a number from {least} to 1, not {value!r:.60}",
                    remedy="Pass a form such as Floor(0.36, 0.6), or floor=False for none.",
                )

    def admits(self, cosine: float, words: float) -> bool:
        """Return whether a hit with these values is relevant.

        Args:
            cosine: the cosine of the hit and the question
            words: the share of the question's words in the hit
        """
        return cosine >= self.cosine or words >= self.words


MEASURED: Final[Mapping[str, Floor]] = {"all-MiniLM-L6-v2": Floor(0.36, 0.6)}
"""The floor of each measured model (docs/measurements.md#relevance); other models have none."""
