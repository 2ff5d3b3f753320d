"""The graph that facts make, as of any event: entities, joined by facts whose object is one.

Owns the edges at one n and instant, and how they are walked: the nearest first, in an order that
depends on the facts alone. A node is a tenant and the entity that a name is read as in it, so
merges and splits are obeyed, and tenants never meet. Leaves out the values that a caller gets.
"""

from collections.abc import Collection, Iterable, Iterator
from operator import itemgetter
from typing import Final, Literal, NamedTuple, TypeAlias

import numpy as np

from cerata.engine.errors import InvalidInput

from .columns import I64
from .fact_table import FactsAt
from .fact_values import ObjectKind

Direction: TypeAlias = Literal["out", "in", "both"]
"""Which way a fact is followed: from subject to object, from object to subject, or either."""

DIRECTIONS: Final[tuple[Direction, ...]] = ("out", "in", "both")
OPPOSITE: Final[dict[Direction, Direction]] = {"out": "in", "in": "out", "both": "both"}

Node: TypeAlias = tuple[int, int]
"""A tenant, and the code of the name that an entity is read as in it."""

Rows: TypeAlias = dict[Node, list[int]]
"""The rows that lead to each of some nodes, ascending."""

Path: TypeAlias = tuple[tuple[Node, list[int]], ...]
"""Steps: to which node each leads, and by which rows."""


class Edge(NamedTuple):
    """A row whose object is an entity, and the nodes that it leads from and to."""

    row: int
    subject: Node
    object: Node


class Budget:
    """How much a walk may look at; ``spend`` raises `InvalidInput` where it would be more."""

    def __init__(self, facts_max: int) -> None:
        self._facts_max = facts_max
        self._left = facts_max

    def spend(self, count: int) -> None:
        self._left -= count
        if self._left < 0:
            raise InvalidInput(
                f"There are more than {self._facts_max:,} facts to look at",
                where="facts_max",
                remedy="Give fewer hops, a predicate or direction, or a larger facts_max.",
            )


class FactGraph:
    """The edges that known facts make at one n: of one predicate or all, at an instant or ever.

    A fact from an entity to itself is no edge.
    """

    def __init__(
        self,
        facts: FactsAt,
        instant: int | None,
        predicate: str | None,
        budget: Budget,
    ) -> None:
        self.facts = facts
        self._columns = facts.facts.columns
        self._instant = instant
        self._predicate = predicate
        self._budget = budget

    def nodes(self, name: str) -> frozenset[Node]:
        """Return what a name is read as in each tenant; it may be that none there knows it."""
        code = self._columns.strings.find(name)
        if code is None:
            return frozenset()
        root = self.facts.roles.root
        return frozenset((tenant, root(tenant, code)) for tenant in self.facts.tenants)

    def name(self, node: Node) -> str:
        return self._columns.strings.text(node[1])

    # --- edges -----------------------------------------------------------------------------------

    def edges(self, nodes: Collection[Node], direction: Direction) -> list[Edge]:
        """Return the edges out of nodes, into them, or both; ascending by row, each once.

        Cost: the facts that name these entities; about 1 us each, and 50 us for each of a
        functional predicate where there is an instant.
        """
        roles = self.facts.roles
        related = {one for _, root in nodes for one in roles.related(root)}
        codes = np.array(sorted(related), np.uint64)
        facts, columns = self.facts.facts, self._columns
        found: list[int] = []
        if direction != "in":
            found += columns.by_subject.find_all(facts.subject_codes, codes)
        if direction != "out":
            # Of any kind: numbers and strings go with what is no entity.
            found += columns.by_object.find_all(facts.object_numbers, codes)
        rows = self.facts.known_among(np.unique(np.array(found, np.int64)))
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
        """Leave those with an entity as object that were said to be true then."""
        columns = self._columns
        rows = rows[columns.kind.view()[rows] == ObjectKind.ENTITY]
        if self._predicate is not None:
            code = columns.predicates.find(self._predicate)
            rows = rows[columns.predicate.view()[rows] == (code or 0)]
        if self._instant is not None:
            starts, ends = columns.valid_from.view()[rows], columns.valid_to.view()[rows]
            rows = rows[(starts <= self._instant) & (self._instant < ends)]
        return rows

    def _read(self, rows: I64) -> Iterator[Edge]:
        """Yield rows with the nodes that they join."""
        columns, facts = self._columns, self.facts
        tenants = np.array(columns.scopes.tenants, np.int64)[columns.scope.view()[rows]]
        subjects, objects = columns.subject.view()[rows], columns.object.view()[rows]
        parts = (one.tolist() for one in (rows, tenants, subjects, objects))
        for row, tenant, subject, object_ in zip(*parts, strict=True):
            if not facts.roles.is_plain:
                subject = facts.roles.read(tenant, row, subject)
                object_ = facts.roles.read(tenant, row, object_)
            yield Edge(row, (tenant, subject), (tenant, object_))

    def _true_now(self, edges: list[Edge]) -> list[Edge]:
        """Leave out those whose value had given way to the next by the instant."""
        if self._instant is None or not self.facts.roles.any_functional:
            return edges
        true = set(self._of_instant([edge.row for edge in edges]))
        return [edge for edge in edges if edge.row in true]

    def _of_instant(self, rows: list[int]) -> list[int]:
        """Leave the known rows that are true at the instant, if there is one."""
        instant = self._instant
        if instant is None:
            return rows
        return [span.row for span in self.facts.spans(rows) if span.valid.contains(instant)]

    # --- names that stand together ---------------------------------------------------------------

    def naming(self, name: str) -> list[int]:
        """Return the rows that name an entity, as subject or object, ascending."""
        rows = {*self.facts.find(name), *self.facts.find(object_=(ObjectKind.ENTITY, name))}
        self._budget.spend(len(rows))
        return self._of_instant(sorted(rows))

    def said_by(self, frames: Iterable[int]) -> dict[int, list[int]]:
        """Return by frame the rows that have it as evidence, ascending."""
        found = self.facts.rows_said_by(frames)
        self._budget.spend(sum(len(rows) for rows in found.values()))
        return {frame: self._of_instant(rows) for frame, rows in found.items()}

    # --- walking ---------------------------------------------------------------------------------

    def neighbours(self, nodes: Collection[Node], direction: Direction) -> Rows:
        """Return the nodes one edge away from any of some, in order of the first row to each."""
        found: Rows = {}
        for edge in self.edges(nodes, direction):
            for _, there in _ways(edge, nodes, direction):
                found.setdefault(there, []).append(edge.row)
        return found

    def levels(
        self, starts: Collection[Node], direction: Direction, hops: int
    ) -> Iterator[tuple[int, Rows]]:
        """Yield what is one hop away, two, and so on: with the rows from one hop nearer."""
        seen = frontier = set(starts)
        for hop in range(1, hops + 1):
            near = self.neighbours(frontier, direction)
            reached = {node: rows for node, rows in near.items() if node not in seen}
            if not reached:
                return
            yield hop, reached
            frontier = set(reached)
            seen = seen | frontier

    def paths(self, start: Node, end: Node, direction: Direction, hops: int) -> Iterator[Path]:
        """Yield the paths from one node to another that pass no node twice, the shortest first.

        Those of one length come in order of the first rows of their steps.
        """
        known = _Paths(self, end, OPPOSITE[direction], self._budget)
        for length in range(1, hops + 1):
            known.widen()
            yield from known.of_length(start, length)


class _Paths:
    """The paths to one node, looked for from there.

    - ``_distance`` is how many steps a node is from the end, of those at most ``_radius`` away.
    - ``_steps`` has of a node those that it can go to which are less than that away, with the rows.
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
        """Look one step farther."""
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
        """Yield the paths of so many steps, at most as many as were looked at."""
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
    """Yield from which of some nodes an edge leads, and to which other."""
    if direction != "in" and edge.subject in nodes:
        yield edge.subject, edge.object
    if direction != "out" and edge.object in nodes:
        yield edge.object, edge.subject
