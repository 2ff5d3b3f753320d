"""Reading the graph over facts: neighbours, paths, walks, and who is named together.

Owns the reads, for a view and for a store at its newest event. Leaves out which edges there are
and how they are walked (`cerata.projections.fact_graph`). The walk with decay 1 / (k + hop) is
reciprocal rank fusion by distance (Cormack, Clarke and Büttcher, SIGIR 2009), whose k is 60.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import islice
from math import fsum
from sys import float_info
from typing import TYPE_CHECKING, Final, cast

from cerata.engine.errors import InvalidInput
from cerata.projections.fact_graph import DIRECTIONS, Budget, Direction, FactGraph, Node

from .drafting import check_number
from .fact_showing import shown_seq
from .fact_values import Entity, checked_name
from .graph_values import Cooccurrence, FactPath, Neighbour, Reached

if TYPE_CHECKING:
    from .view import View

HOPS_MAX: Final = 16
"""The most hops that can be asked for."""
FACTS_MAX: Final = 100_000
"""How many facts one call looks at, unless it is told otherwise: about a second."""

EntityLike = str | Entity
"""An entity, or its name."""


class GraphReads(ABC):
    """The reads of the graph; ``view`` says of which state."""

    @abstractmethod
    def view(self) -> "View":
        """Return the memory that is read."""

    def neighbours(
        self,
        entity: EntityLike,
        *,
        predicate: str | None = None,
        direction: Direction = "both",
        valid_at: datetime | str | None = None,
        facts_max: int = FACTS_MAX,
    ) -> list[Neighbour]:
        """Return the entities that one fact joins with an entity, by the first fact that does.

        ``direction`` is "out" to what it is the subject of, "in" to whose object it is.
        ``valid_at`` is as in `facts`.

        Cost: about 6 us for each fact that names it.

        Raises:
            InvalidInput: a name, direction or time that cannot be, or it has more facts than
                ``facts_max``.
        """
        view = self.view()
        graph = _graph(view, predicate, direction, valid_at, facts_max)
        found = graph.neighbours(_nodes(graph, entity), direction)
        return [Neighbour(graph.name(node), _ids(view, rows), view) for node, rows in found.items()]

    def walk(
        self,
        entities: EntityLike | Iterable[EntityLike],
        *,
        hops: int = 2,
        k: float = 60,
        predicate: str | None = None,
        direction: Direction = "both",
        valid_at: datetime | str | None = None,
        facts_max: int = FACTS_MAX,
    ) -> list[Reached]:
        """Return the entities within some hops of one or several, the best first.

        From each start an entity scores 1 / (k + hops), by the shortest way; starts are not among
        the results. Ties come in order of hops, of the first fact that leads there, and by name.

        Cost: about 7 us for each fact that names an entity on the way, at each hop.

        Raises:
            InvalidInput: hops not from 1 to 16, a name, direction, k or time that cannot be, or
                more facts on the way than ``facts_max``.
        """
        view = self.view()
        _check_hops(hops)
        _check_damping(k)
        graph = _graph(view, predicate, direction, valid_at, facts_max)
        named = [entities] if isinstance(entities, str | Entity) else _listed(entities)
        starts = {node for one in named for node in _nodes(graph, one)}
        hops_to: dict[Node, list[int]] = {}
        rows: dict[Node, set[int]] = {}
        for start in starts:
            for hop, level in graph.levels([start], direction, hops):
                for node, leading in level.items():
                    hops_to.setdefault(node, []).append(hop)
                    rows.setdefault(node, set()).update(leading)
        found = [
            (-fsum(1 / (k + hop) for hop in far), min(far), node)
            for node, far in hops_to.items()
            if node not in starts
        ]
        found.sort(key=lambda one: (*one[:2], min(rows[one[2]]), graph.name(one[2]), one[2]))
        return [
            Reached(graph.name(node), _ids(view, sorted(rows[node])), view, hop, -score)
            for score, hop, node in found
        ]

    def paths(
        self,
        start: EntityLike,
        end: EntityLike,
        *,
        hops_max: int = 4,
        limit: int = 10,
        predicate: str | None = None,
        direction: Direction = "both",
        valid_at: datetime | str | None = None,
        facts_max: int = FACTS_MAX,
    ) -> list[FactPath]:
        """Return the first ways from one entity to another, the shortest first.

        None passes an entity twice; from an entity to itself there is none. Those of one length
        come in order of the first facts of their steps. With a ``direction`` every step follows
        its fact that way. All facts of a path are true at one instant where ``valid_at``, or the
        view's, says so.

        Cost: the facts around all that is nearer to the end than the longest path found.

        Raises:
            InvalidInput: hops_max not from 1 to 16, a limit below 1, a name, direction or time that
                cannot be, or more facts and steps to look at than ``facts_max``.
        """
        view = self.view()
        _check_hops(hops_max)
        check_number("limit", limit)
        if limit < 1:
            raise InvalidInput(f"limit is {limit}", remedy="Ask for 1 or more.")
        graph = _graph(view, predicate, direction, valid_at, facts_max)
        ends = {node[0]: node for node in _nodes(graph, end)}
        found: list[FactPath] = []
        for node in sorted(_nodes(graph, start)):
            there = ends.get(node[0], node)
            if there != node:
                paths = graph.paths(node, there, direction, hops_max)
                for path in islice(paths, limit):
                    steps = [Neighbour(graph.name(to), _ids(view, rows), view) for to, rows in path]
                    found.append(FactPath(graph.name(node), tuple(steps)))
        return sorted(found, key=len)[:limit]

    def cooccurring(
        self,
        entity: EntityLike,
        *,
        valid_at: datetime | str | None = None,
        facts_max: int = FACTS_MAX,
    ) -> list[Cooccurrence]:
        """Return the entities that facts from the same frames name, those in the most frames first.

        A frame names the entities of the facts that have it as evidence. Frames that were deleted
        or superseded do not count. Ties come in order of the first frame, then of the first fact.

        Cost: the facts of the entity, and of the frames that these were read from.

        Raises:
            InvalidInput: a name or time that cannot be, or more facts than ``facts_max``.
        """
        view = self.view()
        graph = _graph(view, None, "both", valid_at, facts_max)
        nodes = _nodes(graph, entity)
        together: dict[Node, list[int]] = {}
        for frame, rows in graph.said_by(_frames_of(view, graph, _name(entity))).items():
            named = dict.fromkeys(node for row in rows for node in graph.facts.entities_of(row))
            for tenant in {node[0] for node in named if node in nodes}:
                for node in named:
                    if node[0] == tenant and node not in nodes:
                        together.setdefault(node, []).append(frame)
        ranked = sorted(together.items(), key=lambda item: (-len(item[1]), item[1][0]))
        return [
            Cooccurrence(graph.name(node), tuple(shown_seq(frame, view.basis) for frame in frames))
            for node, frames in ranked
        ]


def _graph(
    view: "View",
    predicate: str | None,
    direction: Direction,
    valid_at: datetime | str | None,
    facts_max: int,
) -> FactGraph:
    """Return the edges that a caller asks for. Raises `InvalidInput`."""
    if predicate is not None:
        checked_name("The predicate", predicate)
    if direction not in DIRECTIONS:
        raise InvalidInput(
            f"direction is {direction!r}", remedy=f"There are {', '.join(DIRECTIONS)}."
        )
    check_number("facts_max", facts_max)
    instant = view.valid_instant(valid_at)
    return FactGraph(view.facts_at, instant, predicate, Budget(facts_max))


def _check_hops(hops: int) -> None:
    check_number("hops", hops)
    if not 1 <= hops <= HOPS_MAX:
        raise InvalidInput(f"hops is {hops}", remedy=f"Give 1 to {HOPS_MAX}.")


def _check_damping(k: object) -> None:
    """Refuse a k that is no finite number from 0, or a whole one that no float reaches."""
    if isinstance(k, int | float) and not isinstance(k, bool) and 0 <= k <= float_info.max:
        return
    # A whole number of thousands of digits cannot even be shown.
    said = "out of range" if isinstance(k, int | float) else repr(k)
    raise InvalidInput(f"k is {said:.60}", remedy="Give a number from 0; 60 is usual.")


def _listed(entities: object) -> list[EntityLike]:
    if not isinstance(entities, Iterable):
        raise InvalidInput(
            f"An entity cannot be {entities!r:.60}", remedy="Give its name, or a list of names."
        )
    return list(cast("Iterable[EntityLike]", entities))


def _name(entity: EntityLike) -> str:
    return checked_name("An entity", entity.name if isinstance(entity, Entity) else entity)


def _nodes(graph: FactGraph, entity: EntityLike) -> frozenset[Node]:
    return graph.nodes(_name(entity))


def _ids(view: "View", rows: Sequence[int]) -> tuple[int, ...]:
    """Return the ids of the facts in rows."""
    facts, basis = view.facts_at, view.basis
    return tuple(shown_seq(facts.seq_of(row), basis) for row in rows)


def _frames_of(view: "View", graph: FactGraph, name: str) -> list[int]:
    """Return the seqs of the current frames that an entity's facts have as evidence, ascending."""
    frames = {place.frame for row in graph.naming(name) for place in graph.facts.evidence_of(row)}
    return sorted(frame for frame in frames if view.is_current(frame))
