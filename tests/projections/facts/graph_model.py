"""The graph over facts by brute force: what docs/graph.md says, as loops over a model's facts.

It shares no code with what it is held against: every path is tried, and distance is the length of
the shortest of them. It is slow, and short enough to be checked by eye against the page.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from cerata.engine.events import DeleteFrame, LinkFacts, PutFrame, SupersedeFrame, UnlinkFacts

from .fact_model import FactModel, ModelAnswer, is_seen

Node = tuple[object, str]
"""A tenant, and the name that an entity is read as in it."""


@dataclass(frozen=True)
class GraphModel:
    """What a view of a model's facts must answer, at an instant or ever."""

    model: FactModel
    valid_at: int | None = None
    predicate: str | None = None
    direction: str = "both"

    @cached_property
    def tenants(self) -> list[object]:
        """The tenants in order of the first event that says something of facts."""
        others = (PutFrame, DeleteFrame, SupersedeFrame, LinkFacts, UnlinkFacts)
        told = [one for one in self.model.events if not isinstance(one.body, others)]
        return list(dict.fromkeys(dict(event.scope)["tenant"] for event in told))

    def nodes(self, name: str) -> list[Node]:
        """Return the node in each tenant, or the entities of a name that is only an alias."""
        aliased = [] if self.model.names_entity(name) else self.model.of_alias(name)
        return aliased or [(tenant, self.model.reading(tenant, name)) for tenant in self.tenants]

    @cached_property
    def joins(self) -> list[tuple[Node, Node, int]]:
        """From where to where each fact may be followed."""
        found: list[tuple[Node, Node, int]] = []
        for one in self.model.facts(
            None, self.predicate, valid_at=self.valid_at, include_ended=True
        ):
            if one.value[0] == "entity":
                tenant = one.fact.tenant
                subject, object_ = (tenant, one.subject), (tenant, str(one.value[1][1]))
                if self.direction != "in" and subject != object_:
                    found.append((subject, object_, one.fact.id))
                if self.direction != "out" and subject != object_:
                    found.append((object_, subject, one.fact.id))
        return sorted(found, key=lambda join: join[2])

    # --- reads -----------------------------------------------------------------------------------

    def neighbours(self, name: str) -> list[tuple[str, tuple[int, ...]]]:
        starts = self.nodes(name)
        near = list(dict.fromkeys(there for here, there, _ in self.joins if here in starts))
        return [(node[1], self._between(starts, node)) for node in near]

    def _between(self, starts: Iterable[Node], end: Node) -> tuple[int, ...]:
        return tuple(
            number for here, there, number in self.joins if there == end and here in starts
        )

    def walk(
        self, names: Sequence[str], hops: int, k: float
    ) -> list[tuple[str, int, float, tuple[int, ...]]]:
        starts = {node for name in names for node in self.nodes(name)}
        every = dict.fromkeys(there for _, there, _ in self.joins)
        found: list[tuple[float, int, int, str, tuple[int, ...]]] = []
        for node in every:
            score, nearest, facts = 0.0, hops + 1, set[int]()
            for start in starts:
                ways = self._ways(start, node, hops)
                if ways:
                    hop = min(map(len, ways))
                    score, nearest = score + 1 / (k + hop), min(nearest, hop)
                    for way in ways:
                        if len(way) == hop:
                            facts |= set(self._between([[start, *way][-2]], node))
            if score and node not in starts:
                found.append((-score, nearest, min(facts), node[1], tuple(sorted(facts))))
        found.sort(key=lambda one: (round(one[0], 12), *one[1:4]))
        return [(name, hop, -score, facts) for score, hop, _, name, facts in found]

    def _ways(self, start: Node, end: Node, hops: int) -> list[list[Node]]:
        """Return the ways of at most so many steps that pass nothing twice, the start left out."""
        if start == end:
            return []
        found: list[list[Node]] = []
        pending: list[list[Node]] = [[start]]
        while pending:
            way = pending.pop()
            if way[-1] == end:
                found.append(way[1:])
            elif len(way) <= hops:
                near = dict.fromkeys(there for here, there, _ in self.joins if here == way[-1])
                pending += [[*way, there] for there in near if there not in way]
        return found

    def paths(
        self, start: str, end: str, hops: int, limit: int
    ) -> list[tuple[str, list[tuple[str, tuple[int, ...]]]]]:
        found: list[tuple[int, int, list[int], Node, list[tuple[str, tuple[int, ...]]]]] = []
        pairs = [
            (one, goal)
            for one in self.nodes(start)
            for goal in self.nodes(end)
            if one[0] == goal[0]
        ]
        for place, (one, goal) in enumerate(pairs):
            for way in self._ways(one, goal, hops):
                steps = [
                    (there[1], self._between([here], there))
                    for here, there in zip([one, *way], way, strict=False)
                ]
                found.append((len(way), place, [facts[0] for _, facts in steps], one, steps))
        found.sort(key=lambda path: path[:3])
        return [(one[1], steps) for _, _, _, one, steps in found[:limit]]

    def cooccurring(self, name: str) -> list[tuple[str, tuple[int, ...]]]:
        together: dict[Node, list[int]] = {}
        for frame in self._current_frames():
            named = list[Node]()
            for one in self.model.facts(valid_at=self.valid_at, include_ended=True):
                if any(place.frame == frame for body in one.fact.said for place in body.evidence):
                    named += [node for node in self._named(one) if node not in named]
            for node in named:
                if node not in self.nodes(name) and (
                    any(node[0] == other[0] and other in self.nodes(name) for other in named)
                ):
                    together.setdefault(node, []).append(frame)
        ranked = sorted(together.items(), key=lambda item: (-len(item[1]), item[1][0]))
        return [(node[1], tuple(frames)) for node, frames in ranked]

    def _named(self, answer: ModelAnswer) -> list[Node]:
        named = [answer.subject]
        if answer.value[0] == "entity":
            named.append(str(answer.value[1][1]))
        return [(answer.fact.tenant, name) for name in dict.fromkeys(named)]

    def _current_frames(self) -> list[int]:
        bodies = [event.body for event in self.model.events]
        closed = {body.frame for body in bodies if isinstance(body, DeleteFrame)}
        closed |= {body.old for body in bodies if isinstance(body, SupersedeFrame)}
        return [
            event.seq
            for event in self.model.events
            if isinstance(event.body, PutFrame)
            and event.seq not in closed
            and is_seen(event.scope, self.model.scope)
        ]
