"""What is said of the graph over facts: frozen, typed, and plain through ``to_dict()``."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from cerata.engine.events import JsonValue

from .fact_values import Fact

if TYPE_CHECKING:
    from .view import View


@dataclass(frozen=True)
class Neighbour:
    """An entity one fact away from another; ``fact_ids`` are all facts that lead there."""

    entity: str
    fact_ids: tuple[int, ...]
    _view: "View" = field(repr=False, compare=False)

    def __getstate__(self) -> dict[str, object]:
        # The view stays with its process: a copy has the facts.
        state = {name: value for name, value in vars(self).items() if name != "_view"}
        return {**state, "facts": self.facts}

    @cached_property
    def facts(self) -> tuple[Fact, ...]:
        """The facts, oldest first; they are read when asked for."""
        return tuple(self._view.fact(number) for number in self.fact_ids)

    def to_dict(self) -> dict[str, JsonValue]:
        return {"entity": self.entity, "facts": [fact.to_dict() for fact in self.facts]}


@dataclass(frozen=True)
class Reached(Neighbour):
    """An entity that a walk came to: after ``hop`` facts at least, from the nearest start.

    ``score`` is the sum of 1 / (k + hops) over the starts that lead there. ``fact_ids`` are the
    last ones on the way: those that join it to entities one hop nearer to a start.
    """

    hop: int
    score: float

    def to_dict(self) -> dict[str, JsonValue]:
        return {**super().to_dict(), "hop": self.hop, "score": self.score}


@dataclass(frozen=True, slots=True)
class FactPath:
    """A way from ``start``, each step to a neighbour of the one before; it passes none twice."""

    start: str
    steps: tuple[Neighbour, ...]

    @property
    def entities(self) -> tuple[str, ...]:
        """The entities on the way, both ends included."""
        return (self.start, *(step.entity for step in self.steps))

    def __len__(self) -> int:
        """Return how many steps it has."""
        return len(self.steps)

    def __str__(self) -> str:
        return " → ".join(self.entities)

    def to_dict(self) -> dict[str, JsonValue]:
        return {"start": self.start, "steps": [step.to_dict() for step in self.steps]}


@dataclass(frozen=True, slots=True)
class Cooccurrence:
    """An entity that facts read from the same frames name; ``count`` of these, ``frames`` by id."""

    entity: str
    frames: tuple[int, ...]

    @property
    def count(self) -> int:
        """How many frames name both."""
        return len(self.frames)

    def to_dict(self) -> dict[str, JsonValue]:
        return {"entity": self.entity, "count": self.count, "frames": list(self.frames)}
