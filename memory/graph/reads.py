"""Reading the graph over facts: neighbours, paths, walks, and entities named together.

Owns the reads, for a view and for a store at its newest event. Leaves out the edges and their
traversal (`cerata.projections.facts.graph`). The walk with decay 1 / (k + hop) is reciprocal rank
fusion by distance (Cormack, Clarke and Büttcher, SIGIR 2009), whose k is 60.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import date
from itertools import islice, product
from math import fsum
from sys import float_info
from typing import TYPE_CHECKING, Final, TypeAlias, cast

from cerata.engine.arguments import expect_integer, expect_one_of
from cerata.engine.errors import InvalidInput, number_text, value_text
from cerata.engine.late import late

from ..snapshot.reader import Reader

if TYPE_CHECKING:
    from cerata.projections.facts import graph as fact_graph
    from cerata.projections.facts.graph import Direction, FactGraph, Node

    from ..snapshot import fact_conversion
    from ..snapshot.snapshot import Snapshot
    from ..values import facts as fact_values
    from ..values import graph as graph_values
    from ..values.facts import Entity
    from ..values.graph import Cooccurrence, FactPath, Neighbour, Reached
else:
    fact_graph = late("cerata.projections.facts.graph")
    fact_conversion = late("cerata.memory.snapshot.fact_conversion")
    fact_values = late("cerata.memory.values.facts")
    graph_values = late("cerata.memory.values.graph")


HOPS_MAX: Final = 16
"""Most hops of a walk or path."""
FACTS_MAX: Final = 100_000
"""Default limit of the facts that a call looks at: about a second."""

EntityLike: TypeAlias = "str | Entity"
"""An entity, or its name."""


class GraphReads(Reader):
    """The reads of the graph over facts."""

    def neighbours(
        self,
        entity: EntityLike,
        *,
        predicate: str | None = None,
        direction: Direction = "both",
        valid_at: date | str | None = None,
        facts_max: int = FACTS_MAX,
    ) -> list[Neighbour]:
        """Return the entities that a fact joins with an entity, in order of the first such fact.

        Cost: about 6 us for each fact that names the entity.

        Args:
            entity: The entity, or its name.
            predicate: Follow only facts with this predicate; by default any.
            direction: "out" from subject to object, "in" from object to subject, or "both".
            valid_at: Instant at which the facts are true; as in `facts`.
            facts_max: Most facts to look at.

        Raises:
            InvalidInput: a name, direction or time is unusable, or the entity has more facts than
                ``facts_max``.
        """
        snapshot = self._snapshot()
        graph = _graph(snapshot, predicate, direction, valid_at, facts_max)
        joined = graph.neighbours(_nodes(graph, entity), direction)
        return [
            graph_values.Neighbour(graph.name(node), _ids(snapshot, rows), snapshot)
            for node, rows in joined.items()
        ]

    def walk(
        self,
        entities: EntityLike | Iterable[EntityLike],
        *,
        hops: int = 2,
        k: float = 60,
        predicate: str | None = None,
        direction: Direction = "both",
        valid_at: date | str | None = None,
        facts_max: int = FACTS_MAX,
    ) -> list[Reached]:
        """Return the entities within some hops of the starts, the best first.

        An entity scores 1 / (k + hops) for each start, by the shortest path; starts are not among
        the results. Ties are in order of hops, then of the first fact that leads there, then by
        name. Cost: about 7 us for each fact that names an entity on the way, at each hop.

        Args:
            entities: The start, or several starts: entities or names.
            hops: Most facts from a start, from 1 to 16.
            k: Damping: a larger k gives near and far entities more equal scores.
            predicate: Follow only facts with this predicate; by default any.
            direction: "out" from subject to object, "in" from object to subject, or "both".
            valid_at: Instant at which the facts are true; as in `facts`.
            facts_max: Most facts to look at.

        Raises:
            InvalidInput: hops is not from 1 to 16, a name, direction, k or time is unusable, or
                more than ``facts_max`` facts are on the way.
        """
        snapshot = self._snapshot()
        hops = _checked_hops(hops)
        _check_damping(k)
        graph = _graph(snapshot, predicate, direction, valid_at, facts_max)
        named = [entities] if isinstance(entities, str | fact_values.Entity) else _listed(entities)
        starts = {node for entity in named for node in _nodes(graph, entity)}
        hops_to: dict[Node, list[int]] = {}
        rows: dict[Node, set[int]] = {}
        for start in starts:
            for hop, level in graph.levels([start], direction, hops):
                for node, leading in level.items():
                    hops_to.setdefault(node, []).append(hop)
                    rows.setdefault(node, set()).update(leading)
        ranked = [
            (-fsum(1 / (k + hop) for hop in far), min(far), node)
            for node, far in hops_to.items()
            if node not in starts
        ]
        ranked.sort(key=lambda row: (*row[:2], min(rows[row[2]]), graph.name(row[2]), row[2]))
        return [
            graph_values.Reached(
                graph.name(node), _ids(snapshot, sorted(rows[node])), snapshot, hop, -score
            )
            for score, hop, node in ranked
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
        valid_at: date | str | None = None,
        facts_max: int = FACTS_MAX,
    ) -> list[FactPath]:
        """Return the first paths from an entity to another, the shortest first.

        No path passes an entity twice, so an entity has no path to itself. Paths of equal length
        are in order of the first facts of their steps. Cost: a look at the facts around all
        entities that are nearer to the end than the longest path found.

        Args:
            start: The first entity, or its name.
            end: The last entity, or its name.
            hops_max: Most steps of a path, from 1 to 16.
            limit: Most paths to return.
            predicate: Follow only facts with this predicate; by default any.
            direction: "out" from subject to object in each step, "in" the reverse, or "both".
            valid_at: Instant at which all facts of a path are true; as in `facts`.
            facts_max: Most facts and steps to look at.

        Raises:
            InvalidInput: hops_max is not from 1 to 16, limit is below 1, a name, direction or time
                is unusable, or the search needs more facts and steps than ``facts_max``.
        """
        snapshot = self._snapshot()
        hops_max = _checked_hops(hops_max)
        limit = expect_integer("limit", limit)
        if limit < 1:
            raise InvalidInput(
                f"limit must be 1 or more, not {number_text(limit)}", remedy="Pass limit=1 or more."
            )
        graph = _graph(snapshot, predicate, direction, valid_at, facts_max)
        ends = sorted(_nodes(graph, end))
        paths: list[FactPath] = []
        for node, goal in product(sorted(_nodes(graph, start)), ends):
            if goal[0] == node[0] and goal != node:
                ways = graph.paths(node, goal, direction, hops_max)
                for way in islice(ways, limit):
                    steps = [
                        graph_values.Neighbour(graph.name(to), _ids(snapshot, rows), snapshot)
                        for to, rows in way
                    ]
                    paths.append(graph_values.FactPath(graph.name(node), tuple(steps)))
        return sorted(paths, key=len)[:limit]

    def cooccurring(
        self,
        entity: EntityLike,
        *,
        valid_at: date | str | None = None,
        facts_max: int = FACTS_MAX,
    ) -> list[Cooccurrence]:
        """Return the entities named by facts in the same frames, those in the most frames first.

        A frame names the entities of the facts that have it as evidence. Frames that were deleted
        or superseded do not count. Ties are in order of the first frame, then of the first fact.
        Cost: a look at the facts of the entity, and at the facts read in their frames.

        Args:
            entity: The entity, or its name.
            valid_at: Instant at which the facts are true; as in `facts`.
            facts_max: Most facts to look at.

        Raises:
            InvalidInput: a name or time is unusable, or there are more facts than ``facts_max``.
        """
        snapshot = self._snapshot()
        graph = _graph(snapshot, None, "both", valid_at, facts_max)
        nodes = _nodes(graph, entity)
        together: dict[Node, list[int]] = {}
        for frame, rows in graph.rows_by_evidence(_frames_of(snapshot, graph, nodes)).items():
            named = dict.fromkeys(node for row in rows for node in graph.facts.entities_of(row))
            for tenant in {node[0] for node in named if node in nodes}:
                for node in named:
                    if node[0] == tenant and node not in nodes:
                        together.setdefault(node, []).append(frame)
        ranked = sorted(together.items(), key=lambda item: (-len(item[1]), item[1][0]))
        return [
            graph_values.Cooccurrence(
                graph.name(node),
                tuple(fact_conversion.id_of_seq(frame, snapshot.basis) for frame in frames),
            )
            for node, frames in ranked
        ]


class GraphView(GraphReads):
    """The graph of one snapshot."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._state = snapshot

    def _snapshot(self) -> Snapshot:
        return self._state


def _graph(
    snapshot: Snapshot,
    predicate: str | None,
    direction: Direction,
    valid_at: date | str | None,
    facts_max: int,
) -> FactGraph:
    if predicate is not None:
        fact_values.checked_name("The predicate", predicate)
    remedy = "Pass direction='both', or leave it out."
    expect_one_of("direction", direction, fact_graph.DIRECTIONS, remedy)
    facts_max = expect_integer("facts_max", facts_max)
    instant = snapshot.valid_instant(valid_at)
    return fact_graph.FactGraph(snapshot.facts_at, instant, predicate, fact_graph.Budget(facts_max))


def _checked_hops(hops: int) -> int:
    hops = expect_integer("hops", hops)
    if not 1 <= hops <= HOPS_MAX:
        raise InvalidInput(
            f"hops must be from 1 to {HOPS_MAX}, not {number_text(hops)}",
            remedy="Pass hops=2, for example.",
        )
    return hops


def _check_damping(k: object) -> None:
    """Raise `InvalidInput` unless k is a finite number from 0 that a float can hold."""
    if isinstance(k, int | float) and not isinstance(k, bool) and 0 <= k <= float_info.max:
        return
    value = "a number out of range" if isinstance(k, int | float) else value_text(k)
    raise InvalidInput(
        f"k must be a finite number from 0, not {value:.60}",
        remedy="Pass a number from 0; 60 is usual.",
    )


def _listed(entities: object) -> list[EntityLike]:
    if not isinstance(entities, Iterable):
        raise InvalidInput(
            f"entities must be a name, an Entity or a list of these, not "
            f"{value_text(entities):.60}",
            remedy="Pass a name, or a list of names.",
        )
    return list(cast("Iterable[EntityLike]", entities))


def _name(entity: EntityLike) -> str:
    return fact_values.checked_name(
        "An entity", entity.name if isinstance(entity, fact_values.Entity) else entity
    )


def _nodes(graph: FactGraph, entity: EntityLike) -> frozenset[Node]:
    return graph.nodes(_name(entity))


def _ids(snapshot: Snapshot, rows: Sequence[int]) -> tuple[int, ...]:
    facts = snapshot.facts_at
    basis = snapshot.basis
    return tuple(fact_conversion.id_of_seq(facts.seq_of(row), basis) for row in rows)


def _frames_of(snapshot: Snapshot, graph: FactGraph, nodes: Collection[Node]) -> list[int]:
    """Return the seqs of the current frames that an entity's facts have as evidence, ascending."""
    frames = {place.frame for row in graph.naming(nodes) for place in graph.facts.evidence_of(row)}
    return sorted(frame for frame in frames if snapshot.is_current(frame))
