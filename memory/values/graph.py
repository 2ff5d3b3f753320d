"""The values of the graph over facts: frozen, typed, plain through ``to_dict()``."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Protocol

from cerata.engine.plain_value import PlainValue

if TYPE_CHECKING:
    from .facts import Fact


class FactSource(Protocol):
    """A state of the memory, which reads facts."""

    def fact_at(self, number: int) -> Fact: ...


@dataclass(frozen=True)
class Neighbour(PlainValue):
    """An entity one fact away from another; ``fact_ids`` are all facts that join the two."""

    _plain: ClassVar[tuple[str, ...]] = ("entity", "facts")

    entity: str
    fact_ids: tuple[int, ...]
    _source: FactSource = field(repr=False, compare=False)

    def __getstate__(self) -> dict[str, object]:
        # The view belongs to its process, so a copy carries the facts.
        state = {name: value for name, value in vars(self).items() if name != "_source"}
        return {**state, "facts": self.facts}

    @cached_property
    def facts(self) -> tuple[Fact, ...]:
        """The facts, oldest first; read at the first access."""
        return tuple(self._source.fact_at(number) for number in self.fact_ids)


@dataclass(frozen=True)
class Reached(Neighbour):
    """An entity that a walk reached.

    - ``hop`` is the least number of facts from the nearest start.
    - ``score`` is the sum of 1 / (k + hops) over the starts that lead to the entity.
    - ``fact_ids`` are the facts that join the entity to entities one hop nearer to a start.
    """

    _plain = ("entity", "facts", "hop", "score")

    hop: int
    score: float


@dataclass(frozen=True, slots=True)
class FactPath(PlainValue):
    """A path from ``start``; each step leads to a neighbour, and no entity occurs twice."""

    start: str
    steps: tuple[Neighbour, ...]

    @property
    def entities(self) -> tuple[str, ...]:
        """The entities on the path, both ends included."""
        return (self.start, *(step.entity for step in self.steps))

    def __len__(self) -> int:
        """Return the count of steps."""
        return len(self.steps)

    def __str__(self) -> str:
        return " → ".join(self.entities)


@dataclass(frozen=True, slots=True)
class Cooccurrence(PlainValue):
    """An entity named by facts that were read in the same frames as facts of another.

    ``frames`` are the ids of these frames, and ``count`` is their number.
    """

    _plain = ("entity", "count", "frames")

    entity: str
    frames: tuple[int, ...]

    @property
    def count(self) -> int:
        """The count of frames that name both entities."""
        return len(self.frames)
