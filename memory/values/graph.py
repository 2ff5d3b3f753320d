"""The values of the graph over facts: frozen, typed, plain through ``to_dict()``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Final, Literal, Protocol, TypeAlias

from cerata.engine.errors import InvalidInput, value_text
from cerata.engine.plain_value import PlainValue
from cerata.projections.links.reader import LINK_KINDS, LinkKind

from .facts import FactId, Period
from .frames import Frame, Receipt

if TYPE_CHECKING:
    from cerata.engine.events import ScopeValue

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


# --- The values of links: frozen, typed, and plain through ``to_dict()`` --------------------------


KINDS: Final = tuple(LINK_KINDS)
"""The kinds of links."""

LinkKindName: TypeAlias = Literal[
    "assumes",
    "contradicts",
    "depends_on",
    "derived_from",
    "generated_from",
    "invalidates",
    "supersedes",
    "supports",
    "validated_by",
]

Target: TypeAlias = FactId | Frame
"""The target of a link: a fact or a frame, by its id or by a value that has the id."""


@dataclass(frozen=True, slots=True)
class Link(PlainValue):
    """A link as a view sees it: "``fact`` ``kind`` ``target``", both by id.

    ``known`` is the time from its creation to its removal by event ``unlinked_by``.
    """

    id: int
    fact: int
    kind: str
    target: int
    is_frame: bool
    """True if ``target`` is a frame."""
    known: Period
    scope: Mapping[str, ScopeValue]
    unlinked_by: int | None

    def __str__(self) -> str:
        return f"#{self.fact} {self.kind.replace('_', ' ')} #{self.target}"


LinkId: TypeAlias = int | Receipt | Link
"""The forms in which a caller names a link: its id, or a value that has the id."""


def kind_of(kind: str) -> LinkKind:
    """Return a kind of link by its name. Raises `InvalidInput`."""
    link_kind = LINK_KINDS.get(kind) if isinstance(kind, str) else None
    if link_kind is None:
        raise InvalidInput(
            f"The link kind {value_text(kind):.60} is unknown",
            remedy=f"Pass one of {', '.join(KINDS)}.",
        )
    return link_kind
