"""Rings: the entities around an entity, by their distance in facts, and the facts between them.

Owns the entities and facts that a picture of the graph shows, and their places: each entity is on
the ring of its hops, in the sector of its parent. Leaves out drawing (`graph`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from math import cos, hypot, pi, sin
from typing import Final, NamedTuple, TypeAlias

from cerata.memory.graph.reads import GraphView
from cerata.memory.snapshot.fact_conversion import entity_named
from cerata.memory.snapshot.snapshot import Snapshot
from cerata.memory.values.facts import Fact
from cerata.projections.facts.graph import Direction

RING: Final = 1.7
"""Least inches from one ring to the next, downwards."""

ENDED: Final = " (ended)"
"""The mark of a predicate whose facts have ended."""

_WIDER: Final = 1.4
_MANY: Final = 10
_OUTWARDS: Final = 0.55
_APART: Final = 0.12
_LINE: Final = 1.0


@dataclass(frozen=True, slots=True)
class Join:
    """The predicates that join two entities, from the first to the second, and back.

    - A predicate has the mark `ENDED` if every such fact of the pair has ended, and comes last.
    """

    first: str
    second: str
    there: tuple[str, ...]
    back: tuple[str, ...]

    @property
    def is_ended(self) -> bool:
        """True if no fact of the pair is true now."""
        return all(text.endswith(ENDED) for text in (*self.there, *self.back))


@dataclass(frozen=True, slots=True)
class Rings:
    """The entities by name with their hops, nearest first, and the joins between them.

    - ``parent`` has, for each entity but the first, the entity one hop nearer that led to it.
    - ``left_out`` counts the entities within the hops that are not shown.
    """

    hops: Mapping[str, int]
    parent: Mapping[str, str]
    kinds: Mapping[str, str | None]
    joins: tuple[Join, ...]
    left_out: int


class Way(NamedTuple):
    """The facts to follow, their direction, and when they are true, as `graph.walk` takes these."""

    predicate: str | None
    direction: Direction
    valid_at: date | str | None


def rings_of(snapshot: Snapshot, entity: str, *, hops: int, entities_max: int, way: Way) -> Rings:
    """Return the best entities around an entity, at most ``entities_max``, and the joins.

    `graph.walk` finds them.

    Raises:
        InvalidInput, NotFound: as `graph.neighbours`, `graph.walk` and `graph.entity`.
    """
    start = entity_named(snapshot.facts_at, entity).name
    reached = GraphView(snapshot).walk(start, hops=hops, **way._asdict())
    hops_of = {start: 0}
    for end in reached[: entities_max - 1]:
        # Entities of two tenants with one name are drawn as one entity, at the lower hop.
        hops_of.setdefault(end.entity, end.hop)
    nearest = dict(sorted(hops_of.items(), key=lambda item: item[1]))
    joins = _joins(snapshot, nearest, way)
    return Rings(
        hops=nearest,
        parent=_parents(nearest, joins),
        kinds={name: entity_named(snapshot.facts_at, name).kind for name in nearest},
        joins=joins,
        left_out=len(reached) + 1 - len(nearest),
    )


def _joins(snapshot: Snapshot, hops_of: Mapping[str, int], way: Way) -> tuple[Join, ...]:
    """Return the joins between entities, each pair once, the nearer entity first."""
    graph = GraphView(snapshot)
    joins = list[Join]()
    visited = set[str]()
    for name in hops_of:
        visited.add(name)
        there, back = (
            {
                near.entity: _predicates(near.facts, way)
                for near in graph.neighbours(
                    name, predicate=way.predicate, direction=direction, valid_at=way.valid_at
                )
            }
            for direction in ("out", "in")
        )
        for end in hops_of:
            if end not in visited and (end in there or end in back):
                joins.append(Join(name, end, there.get(end, ()), back.get(end, ())))
    return tuple(joins)


def _predicates(facts: Sequence[Fact], way: Way) -> tuple[str, ...]:
    """Return the predicates of facts, those of which all have ended last and with a mark."""
    # With an instant, each fact is true then.
    current = {fact.predicate for fact in facts if way.valid_at is not None or not fact.is_ended}
    names = sorted(
        dict.fromkeys(fact.predicate for fact in facts), key=lambda name: name not in current
    )
    return tuple(name if name in current else f"{name}{ENDED}" for name in names)


def _parents(hops_of: Mapping[str, int], joins: Sequence[Join]) -> dict[str, str]:
    parents: dict[str, str] = {}
    for join in joins:
        if hops_of[join.second] == hops_of[join.first] + 1:
            parents.setdefault(join.second, join.first)
    first, *rest = hops_of
    return {name: parents.get(name, first) for name in rest}


# --- places --------------------------------------------------------------------------------------

Size: TypeAlias = tuple[float, float]
"""Inches across and down."""

Place: TypeAlias = tuple[float, float]


def places_of(rings: Rings, size_of: Callable[[str], Size]) -> dict[str, Place]:
    """Return the middle of each entity's box, in inches from the middle of the first box.

    No two boxes overlap: a ring is as wide as needed, and in a ring of many boxes every second box
    is moved outwards. Rings are wider than high, because names are.
    """
    angles = _angles(rings)
    places: dict[str, Place] = {}
    radius = 0.0
    for hop in sorted(set(rings.hops.values())):
        members = sorted(
            (name for name in angles if rings.hops[name] == hop), key=angles.__getitem__
        )
        out = _OUTWARDS if len(members) > _MANY else 0.0
        ring = _ring(members, angles, radius, out)
        while hop and not (
            _is_clear(ring, places, size_of) and _has_room(ring, places, rings.parent, size_of)
        ):
            radius += 0.1
            ring = _ring(members, angles, radius, out)
        places |= ring
        radius += RING + out
    return places


def _ring(
    members: Sequence[str], angles: Mapping[str, float], radius: float, out: float
) -> dict[str, Place]:
    places: dict[str, Place] = {}
    for number, name in enumerate(members):
        far = radius + out * (number % 2)
        places[name] = (_WIDER * far * cos(angles[name]), far * sin(angles[name]))
    return places


def _is_clear(
    ring: Mapping[str, Place], inner: Mapping[str, Place], size_of: Callable[[str], Size]
) -> bool:
    """Return whether no box of a ring overlaps a box of the ring or of the inner rings."""
    placed = [(*place, *size_of(name)) for name, place in (*ring.items(), *inner.items())]
    return not any(
        abs(x - other_x) < (wide + other_wide) / 2 + _APART
        and abs(y - other_y) < (high + other_high) / 2 + _APART
        for number, (x, y, wide, high) in enumerate(placed[: len(ring)])
        for other_x, other_y, other_wide, other_high in placed[number + 1 :]
    )


def _has_room(
    ring: Mapping[str, Place],
    inner: Mapping[str, Place],
    parent: Mapping[str, str],
    size_of: Callable[[str], Size],
) -> bool:
    """Return whether each line to the ring is long enough for words along the line."""
    for name, place in ring.items():
        lead = parent[name]
        start = border(inner[lead], place, size_of(lead))
        end = border(place, inner[lead], size_of(name))
        if hypot(end[0] - start[0], end[1] - start[1]) < _LINE:
            return False
    return True


def _angles(rings: Rings) -> dict[str, float]:
    children: dict[str, list[str]] = {name: [] for name in rings.hops}
    for name, parent in rings.parent.items():
        children[parent].append(name)
    weights: dict[str, int] = {}
    for name in reversed([*rings.hops]):
        weights[name] = max(1, sum(weights[child] for child in children[name]))
    angles: dict[str, float] = {}
    first = next(iter(rings.hops))
    # A single child is beside the first entity; several are around it, from the top.
    sectors = [(first, -pi if len(children[first]) == 1 else -pi / 2, 2 * pi)]
    for name, start, width in sectors:
        angles[name] = start + width / 2
        for child in children[name]:
            share = width * weights[child] / weights[name]
            sectors.append((child, start, share))
            start += share
    return angles


def border(of: Place, towards: Place, size: Size) -> Place:
    """Return the point at which the line from the middle of a box to a point leaves the box."""
    across, down = towards[0] - of[0], towards[1] - of[1]
    half = (size[0] / 2 + 0.03, size[1] / 2 + 0.03)
    share = min(half[0] / abs(across) if across else 1.0, half[1] / abs(down) if down else 1.0, 1.0)
    return of[0] + across * share, of[1] + down * share
