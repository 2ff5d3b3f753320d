"""The change of a result of a question between two states: its ranks, its scores, and why."""

from dataclasses import dataclass
from typing import Literal

from cerata.engine.plain_value import PlainValue


@dataclass(frozen=True, slots=True)
class ResultChange(PlainValue):
    """The change of a result of a question between two states.

    - A rank counts from 1; it and its score are None if the state's first results lack the frame.
    - ``why`` names the event that put or closed the frame, the changed scores, or the results that
      came or went above it.
    """

    _plain = ("kind", "id", "old_rank", "new_rank", "old_score", "new_score", "why")

    id: int
    old_rank: int | None
    new_rank: int | None
    old_score: float | None
    new_score: float | None
    why: str

    @property
    def kind(self) -> Literal["appeared", "vanished", "rose", "fell"]:
        """The kind of the change."""
        if self.old_rank is None:
            return "appeared"
        if self.new_rank is None:
            return "vanished"
        return "rose" if self.new_rank < self.old_rank else "fell"

    def __str__(self) -> str:
        ranks = f"{self.old_rank or '–'} → {self.new_rank or '–'}"
        return f"#{self.id} {self.kind}, rank {ranks}: {self.why}"
