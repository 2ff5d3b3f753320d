"""Rings: the entities around one, by how many facts away they are, and what joins them.

Owns which entities and facts a picture of the graph shows, and where: each entity stands on the
ring of its hops, in the sector of the one that leads to it. Leaves out how they are drawn.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import cos, hypot, pi, sin
from typing import Final, NamedTuple, TypeAlias

from cerata.projections.fact_graph import Direction

from ..view import View

RING: Final = 1.7
"""Inches from one ring to the next, at least, downwards."""

_WIDER: Final = 1.4
_MANY: Final = 10
_OUTWARDS: Final = 0.55
_APART: Final = 0.12
_LINE: Final = 1.0


@dataclass(frozen=True, slots=True)
class Join:
    """What joins two entities: predicates from the first to the second, and back."""

    first: str
    second: str
    there: tuple[str, ...]
    back: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Rings:
    """The entities by name with their hops, the nearest first, and what joins them.

    ``parent`` is the entity one hop nearer that led to each but the first, in whose sector it is;
    ``left_out`` counts the entities that are within the hops and not shown.
    """

    hops: Mapping[str, int]
    parent: Mapping[str, str]
    kinds: Mapping[str, str | None]
    joins: tuple[Join, ...]
    left_out: int


class Way(NamedTuple):
    """By which facts, which way, and true when; as `walk` takes them."""

    predicate: str | None
    direction: Direction
    valid_at: datetime | str | None


def rings_of(view: View, entity: str, *, hops: int, entities_max: int, way: Way) -> Rings:
    """Return what is around an entity; the best of it by `walk`, where that is too much.

    Raises:
        InvalidInput, NotFound: as `neighbours`, `walk` and `entity`.
    """
    start = view.entity(entity).name
    reached = view.walk(start, hops=hops, **way._asdict())
    shown = {start: 0}
    for one in reached[: entities_max - 1]:
        # Of two tenants an entity of one name is one here, as near as the nearer.
        shown.setdefault(one.entity, one.hop)
    nearest = dict(sorted(shown.items(), key=lambda item: item[1]))
    joins = _joins(view, nearest, way)
    return Rings(
        hops=nearest,
        parent=_parents(nearest, joins),
        kinds={name: view.entity(name).kind for name in nearest},
        joins=joins,
        left_out=len(reached) + 1 - len(nearest),
    )


def _joins(view: View, shown: Mapping[str, int], way: Way) -> tuple[Join, ...]:
    """Return what joins the entities that are shown, each pair once, the nearer one first."""
    found = list[Join]()
    done = set[str]()
    for name in shown:
        done.add(name)
        there, back = (
            {
                near.entity: tuple(dict.fromkeys(fact.predicate for fact in near.facts))
                for near in view.neighbours(
                    name, predicate=way.predicate, direction=direction, valid_at=way.valid_at
                )
            }
            for direction in ("out", "in")
        )
        for other in shown:
            if other not in done and (other in there or other in back):
                found.append(Join(name, other, there.get(other, ()), back.get(other, ())))
    return tuple(found)


def _parents(shown: Mapping[str, int], joins: Sequence[Join]) -> dict[str, str]:
    found: dict[str, str] = {}
    for one in joins:
        if shown[one.second] == shown[one.first] + 1:
            found.setdefault(one.second, one.first)
    first, *others = shown
    return {name: found.get(name, first) for name in others}


# --- places --------------------------------------------------------------------------------------

Size: TypeAlias = tuple[float, float]
"""Inches across and down."""

Place: TypeAlias = tuple[float, float]


def places_of(rings: Rings, size_of: Callable[[str], Size]) -> dict[str, Place]:
    """Return where the middle of each entity's box is, in inches from the first one's.

    No two boxes cover each other: a ring is as wide as that takes, and of many every other box
    stands a little outwards. Names are wider than high, and so are rings.
    """
    angles = _angles(rings)
    places: dict[str, Place] = {}
    radius = 0.0
    for hop in sorted(set(rings.hops.values())):
        members = sorted((one for one in angles if rings.hops[one] == hop), key=angles.__getitem__)
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
    found: dict[str, Place] = {}
    for number, name in enumerate(members):
        far = radius + out * (number % 2)
        found[name] = (_WIDER * far * cos(angles[name]), far * sin(angles[name]))
    return found


def _is_clear(
    ring: Mapping[str, Place], others: Mapping[str, Place], size_of: Callable[[str], Size]
) -> bool:
    """Tell whether no box of a ring covers another, or one of the rings within it."""
    placed = [(*place, *size_of(name)) for name, place in (*ring.items(), *others.items())]
    return not any(
        abs(x - other_x) < (wide + other_wide) / 2 + _APART
        and abs(y - other_y) < (high + other_high) / 2 + _APART
        for number, (x, y, wide, high) in enumerate(placed[: len(ring)])
        for other_x, other_y, other_wide, other_high in placed[number + 1 :]
    )


def _has_room(
    ring: Mapping[str, Place],
    others: Mapping[str, Place],
    parent: Mapping[str, str],
    size_of: Callable[[str], Size],
) -> bool:
    """Tell whether each line to the ring is long enough for words on it."""
    for name, place in ring.items():
        lead = parent[name]
        start = border(others[lead], place, size_of(lead))
        end = border(place, others[lead], size_of(name))
        if hypot(end[0] - start[0], end[1] - start[1]) < _LINE:
            return False
    return True


def _angles(rings: Rings) -> dict[str, float]:
    """Return the angle of each entity: of those below one, a share of its sector each."""
    children: dict[str, list[str]] = {name: [] for name in rings.hops}
    for name, parent in rings.parent.items():
        children[parent].append(name)
    weights: dict[str, int] = {}
    for name in reversed([*rings.hops]):
        weights[name] = max(1, sum(weights[child] for child in children[name]))
    found: dict[str, float] = {}
    first = next(iter(rings.hops))
    # One stands beside the first, and several around it, from the top on.
    sectors = [(first, -pi if len(children[first]) == 1 else -pi / 2, 2 * pi)]
    for name, start, width in sectors:
        found[name] = start + width / 2
        for child in children[name]:
            share = width * weights[child] / weights[name]
            sectors.append((child, start, share))
            start += share
    return found


def border(of: Place, towards: Place, size: Size) -> Place:
    """Return where the way from the middle of a box to a point leaves it."""
    across, down = towards[0] - of[0], towards[1] - of[1]
    half = (size[0] / 2 + 0.03, size[1] / 2 + 0.03)
    share = min(half[0] / abs(across) if across else 1.0, half[1] / abs(down) if down else 1.0, 1.0)
    return of[0] + across * share, of[1] + down * share
