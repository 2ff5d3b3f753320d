"""The graph of facts as of any event: entities, joined by facts whose object is an entity.

Owns the edges at one n and instant, and the walks: nearest nodes first, in an order that depends
on the facts alone. A node is a tenant and the entity that a name is read as in that tenant, so
merges and splits apply, and no edge joins two tenants. Leaves out the public result types.
"""

from collections.abc import Collection, Iterable, Iterator
from operator import itemgetter
from typing import Final, Literal, NamedTuple, TypeAlias

import numpy as np

from cerata.engine.errors import InvalidInput, number_text

from ..columnar.columns import I64, distinct
from .entities import Entities
from .objects import ObjectKind
from .reader import FactsAt

Direction: TypeAlias = Literal["out", "in", "both"]
"""The direction of a step: from subject to object, from object to subject, or either."""

DIRECTIONS: Final[tuple[Direction, ...]] = ("out", "in", "both")
OPPOSITE: Final[dict[Direction, Direction]] = {"out": "in", "in": "out", "both": "both"}

Node: TypeAlias = tuple[int, int]
"""A tenant, and the code of an entity's name in that tenant, after merges."""

Rows: TypeAlias = dict[Node, list[int]]
"""The rows that lead to each node, ascending."""

Path: TypeAlias = tuple[tuple[Node, list[int]], ...]
"""Steps: the node that each leads to, and the rows of the step."""


class Edge(NamedTuple):
    """A row whose object is an entity, and the nodes that the row joins."""

    row: int
    subject: Node
    object: Node


class Budget:
    """The limit on the facts that a query reads; beyond, ``spend`` raises `InvalidInput`."""

    def __init__(self, facts_max: int) -> None:
        self._facts_max = facts_max
        self._left = facts_max

    def spend(self, count: int) -> None:
        self._left -= count
        if self._left < 0:
            raise InvalidInput(
                f"The query reads more than {number_text(self._facts_max)} facts",
                where="facts_max",
                remedy="Pass fewer hops, a predicate or direction, or a larger facts_max.",
            )


class FactGraph:
    """The edges of the facts known at n, for a predicate or all, at an instant or any time.

    A fact from an entity to itself is no edge.
    """

    def __init__(
        self, facts: FactsAt, instant: int | None, predicate: str | None, budget: Budget
    ) -> None:
        self.facts = facts
        self._columns = facts.facts.columns
        self._instant = instant
        self._predicate = predicate
        self._budget = budget
        self._entities = Entities(facts)

    def nodes(self, name: str) -> frozenset[Node]:
        """Return the node of a name in each tenant, whether or not a fact names the node.

        Only an alias gives the nodes of the entities that have the alias.
        """
        code = self._columns.strings.find(name)
        if code is None:
            return frozenset(self._entities.of_alias(name))
        aliased = [] if self._entities.has(name) else self._entities.of_alias(name)
        root = self.facts.roles.root
        return frozenset(aliased or ((tenant, root(tenant, code)) for tenant in self.facts.tenants))

    def name(self, node: Node) -> str:
        return self._columns.strings.text(node[1])

    # --- edges -----------------------------------------------------------------------------------

    def edges(self, nodes: Collection[Node], direction: Direction) -> list[Edge]:
        """Return the edges out of nodes, into them, or both; ascending by row, without repeats.

        Cost: the facts that name these entities; about 1 us each, and at an instant 50 us for each
        fact of a functional predicate.
        """
        roles = self.facts.roles
        related = {entity for _, root in nodes for entity in roles.related(root)}
        codes = np.array(sorted(related), np.uint64)
        facts = self.facts.facts
        columns = self._columns
        candidates: list[int] = []
        if direction != "in":
            candidates += columns.by_subject.find_all(facts.subject_codes, codes)
        if direction != "out":
            # Objects of any kind; `_true` drops the rows whose object is no entity.
            candidates += columns.by_object.find_all(facts.object_numbers, codes)
        rows = self.facts.known_among(distinct(np.array(candidates, np.int64)))
        self._budget.spend(len(rows))
        edges = [
            edge
            for edge in self._read(self._true(rows))
            if edge.subject != edge.object
            and (
                (direction != "in" and edge.subject in nodes)
                or (direction != "out" and edge.object in nodes)
            )
        ]
        return self._true_now(edges)

    def _true(self, rows: I64) -> I64:
        """Return the rows with an entity as object whose stated range contains the instant."""
        columns = self._columns
        rows = rows[columns.kind.view()[rows] == ObjectKind.ENTITY]
        if self._predicate is not None:
            code = columns.predicates.find(self._predicate)
            rows = rows[columns.predicate.view()[rows] == (code or 0)]
        if self._instant is not None:
            starts = columns.valid_from.view()[rows]
            ends = columns.valid_to.view()[rows]
            rows = rows[(starts <= self._instant) & (self._instant < ends)]
        return rows

    def _read(self, rows: I64) -> Iterator[Edge]:
        columns = self._columns
        facts = self.facts
        tenants = np.array(columns.scopes.tenants, np.int64)[columns.scope.view()[rows]]
        subjects = columns.subject.view()[rows]
        objects = columns.object.view()[rows]
        parts = (column.tolist() for column in (rows, tenants, subjects, objects))
        for row, tenant, subject, object_ in zip(*parts, strict=True):
            if not facts.roles.is_plain:
                subject = facts.roles.read(tenant, row, subject)
                object_ = facts.roles.read(tenant, row, object_)
            yield Edge(row, (tenant, subject), (tenant, object_))

    def _true_now(self, edges: list[Edge]) -> list[Edge]:
        """Return the edges whose value was not yet succeeded by another at the instant."""
        if self._instant is None or not self.facts.roles.any_functional:
            return edges
        true = set(self._of_instant([edge.row for edge in edges]))
        return [edge for edge in edges if edge.row in true]

    def _of_instant(self, rows: list[int]) -> list[int]:
        """Return the known rows that are true at the instant; without an instant, all."""
        instant = self._instant
        if instant is None:
            return rows
        return [span.row for span in self.facts.spans(rows) if span.valid.contains(instant)]

    # --- cooccurrence ----------------------------------------------------------------------------

    def naming(self, nodes: Collection[Node]) -> list[int]:
        """Return the rows that name an entity of some nodes, as subject or object, ascending."""
        rows: set[int] = set()
        for tenant, name in {(node[0], self.name(node)) for node in nodes}:
            entity = ObjectKind.ENTITY, name
            named = {*self.facts.find(name), *self.facts.find(object_=entity)}
            rows.update(self.facts.of_tenant(named, tenant))
        self._budget.spend(len(rows))
        return self._of_instant(sorted(rows))

    def rows_by_evidence(self, frames: Iterable[int]) -> dict[int, list[int]]:
        """Return by frame the rows that cite the frame as evidence, ascending."""
        rows_of = self.facts.rows_by_evidence(frames)
        self._budget.spend(sum(len(rows) for rows in rows_of.values()))
        return {frame: self._of_instant(rows) for frame, rows in rows_of.items()}

    # --- walking ---------------------------------------------------------------------------------

    def neighbours(self, nodes: Collection[Node], direction: Direction) -> Rows:
        """Return the nodes that an edge joins to ``nodes``, in order of the first row to each."""
        neighbours: Rows = {}
        for edge in self.edges(nodes, direction):
            for _, target in _ways(edge, nodes, direction):
                neighbours.setdefault(target, []).append(edge.row)
        return neighbours

    def levels(
        self, starts: Collection[Node], direction: Direction, hops: int
    ) -> Iterator[tuple[int, Rows]]:
        """Yield (hop, nodes) for hops 1, 2, …, each node with the rows from the hop before."""
        visited = frontier = set(starts)
        for hop in range(1, hops + 1):
            near = self.neighbours(frontier, direction)
            reached = {node: rows for node, rows in near.items() if node not in visited}
            if not reached:
                return
            yield hop, reached
            frontier = set(reached)
            visited = visited | frontier

    def paths(self, start: Node, end: Node, direction: Direction, hops: int) -> Iterator[Path]:
        """Yield the paths between two nodes that pass no node twice, the shortest first.

        Paths of equal length are in order of the first rows of their steps.
        """
        paths = _Paths(self, end, OPPOSITE[direction], self._budget)
        for length in range(1, hops + 1):
            paths.widen()
            yield from paths.of_length(start, length)


class _Paths:
    """The paths to an end node, searched backwards from the end.

    - ``_distance`` has the steps from a node to the end, for nodes within ``_radius`` steps.
    - ``_steps`` has the next nodes of a node, fewer than ``_radius`` steps from the end, with rows.
    """

    def __init__(self, graph: FactGraph, end: Node, direction: Direction, budget: Budget) -> None:
        self._graph = graph
        self._direction: Direction = direction
        self._budget = budget
        self._end = end
        self._distance = {end: 0}
        self._steps: dict[Node, Rows] = {}
        self._frontier = {end}
        self._radius = 0

    def widen(self) -> None:
        """Extend the radius by a step."""
        if not self._frontier:
            return
        self._radius += 1
        for edge in self._graph.edges(self._frontier, self._direction):
            for near, far in _ways(edge, self._frontier, self._direction):
                self._steps.setdefault(far, {}).setdefault(near, []).append(edge.row)
        farther = {node for node in self._steps if node not in self._distance}
        self._distance.update(dict.fromkeys(farther, self._radius))
        self._frontier = farther

    def of_length(self, start: Node, length: int) -> Iterator[Path]:
        """Yield the paths of ``length`` steps, which is at most the radius."""
        return self._on(start, length, frozenset((start,)))

    def _on(self, node: Node, left: int, passed: frozenset[Node]) -> Iterator[Path]:
        if not left:
            yield ()
            return
        for near, rows in sorted(self._steps.get(node, {}).items(), key=itemgetter(1)):
            is_on_the_way = near != self._end if left > 1 else near == self._end
            if is_on_the_way and near not in passed and self._distance[near] < left:
                self._budget.spend(1)
                for rest in self._on(near, left - 1, passed | {near}):
                    yield ((near, rows), *rest)


def _ways(edge: Edge, nodes: Collection[Node], direction: Direction) -> Iterator[tuple[Node, Node]]:
    """Yield (from, to) for each way that an edge leads out of ``nodes``."""
    if direction != "in" and edge.subject in nodes:
        yield edge.subject, edge.object
    if direction != "out" and edge.object in nodes:
        yield edge.object, edge.subject
