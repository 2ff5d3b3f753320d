"""The graph around an entity: the entity in the middle, its neighbours on rings.

Owns the drawing; leaves out the choice of entities and their places (`ring_layout`).
"""

from collections.abc import Sequence
from datetime import date
from math import atan2, cos, degrees, hypot, sin
from typing import Final

from cerata.engine.arguments import expect_integer
from cerata.engine.errors import InvalidInput, number_text
from cerata.memory.snapshot.snapshot import Snapshot
from cerata.projections.facts.graph import Direction

from .canvas import (
    FAINT,
    GROUND,
    INK,
    PAPER,
    SOFT,
    Canvas,
    Form,
    Point,
    check_form,
    colours_of,
    fitting,
    ink_on,
    mixed,
    width_of,
)
from .ring_layout import Join, Rings, Way, border, places_of, rings_of

ENTITIES_MAX: Final = 150
"""Most entities of a picture."""

_LATERAL: Final = mixed(FAINT, SOFT, 0.25)
"""The colour of lines that lead to no ring."""

_NAME_SIZE: Final = 9.0
_NAME_WIDTH: Final = 1.6
_FIRST_SIZE: Final = 11.0
_FIRST_WIDTH: Final = 2.6
_LABEL_SIZE: Final = 7.5
_PADDING: Final = 0.13
_HEIGHT: Final = 0.3
_MARGIN: Final = 0.4
_TOP: Final = 0.7
_WIDTH_MIN: Final = 7.0


def picture_of_graph(
    snapshot: Snapshot,
    entity: str,
    *,
    hops: int,
    entities_max: int,
    predicate: str | None,
    direction: Direction,
    valid_at: date | str | None,
    form: Form,
) -> bytes:
    """Return a picture of the graph around an entity.

    Raises:
        NotFound: the entity does not exist.
        InvalidInput: an argument is not valid, or no fact joins the entity with another.
        Unsupported: matplotlib is not installed.
    """
    form = check_form(form)
    expect_integer("entities_max", entities_max)
    if not 2 <= entities_max <= ENTITIES_MAX:
        raise InvalidInput(
            f"A picture cannot show {number_text(entities_max)} entities",
            remedy=f"Pass entities_max= from 2 to {ENTITIES_MAX}.",
        )
    way = Way(predicate, direction, valid_at)
    rings = rings_of(snapshot, entity, hops=hops, entities_max=entities_max, way=way)
    if not rings.joins:
        raise InvalidInput(
            f"No fact joins {entity!r} with another entity",
            remedy="Pass another entity, or leave out predicate and valid_at.",
        )
    return _Picture(rings, snapshot.basis).picture(form)


class _Picture:
    def __init__(self, rings: Rings, basis: int) -> None:
        self._rings = rings
        self._first = next(iter(rings.hops))
        self._sizes = {name: self._size(name) for name in rings.hops}
        places = places_of(rings, self._sizes.__getitem__)
        left = min(x - self._sizes[name][0] / 2 for name, (x, _) in places.items())
        right = max(x + self._sizes[name][0] / 2 for name, (x, _) in places.items())
        high, low = min(y for _, y in places.values()), max(y for _, y in places.values())
        self._kinds = colours_of(kind for kind in rings.kinds.values() if kind is not None)
        width = max(_WIDTH_MIN, right - left + 2 * _MARGIN)
        legend = 0.35 if self._kinds else 0.0
        height = _TOP + (low - high) + _HEIGHT + _MARGIN + legend + 0.1
        shift = (width - right - left) / 2, _TOP + _HEIGHT / 2 + 0.1 - high
        self._places = {name: (x + shift[0], y + shift[1]) for name, (x, y) in places.items()}
        self._canvas = Canvas(width, height)
        self._canvas.box(0, 0, width, height, PAPER)
        self._title(basis)

    def _size(self, name: str) -> tuple[float, float]:
        is_first = name == self._first
        size = _FIRST_SIZE if is_first else _NAME_SIZE
        most = _FIRST_WIDTH if is_first else _NAME_WIDTH
        wide = min(most, width_of(name, size, bold=is_first))
        return wide + 2 * _PADDING, _HEIGHT + (0.08 if is_first else 0.0)

    def _title(self, basis: int) -> None:
        words, width = self._canvas.words, self._canvas.width
        more = self._rings.left_out
        note = f"as of event {basis:,}" + (f" · {more:,} more are not shown" if more else "")
        room = width - 2 * _MARGIN - width_of(note, 8) - 0.3
        title = fitting(f"Around {self._first}", 14, room, bold=True)
        words((_MARGIN, 0.34), title, 14, INK, bold=True)
        words((width - _MARGIN, 0.36), note, 8, SOFT, align="right")

    def picture(self, form: Form) -> bytes:
        leading = {frozenset(pair) for pair in self._rings.parent.items()}
        joins = self._rings.joins
        for join in joins:
            if frozenset((join.first, join.second)) not in leading:
                self._join(join, _LATERAL)
        for join in joins:
            if frozenset((join.first, join.second)) in leading:
                self._join(join, SOFT)
        for join in joins:
            self._name_join(join)
        for name in self._rings.hops:
            self._entity(name)
        self._legend()
        return self._canvas.picture(form)

    def _entity(self, name: str) -> None:
        (x, y), (wide, high) = self._places[name], self._sizes[name]
        kind, is_first = self._rings.kinds[name], name == self._first
        fill = GROUND if kind is None else mixed(self._kinds[kind], PAPER, 0.15)
        if is_first and kind is None:
            fill = INK
        edge = INK if is_first else mixed(fill, INK, 0.25)
        self._canvas.box(
            x - wide / 2,
            y - high / 2,
            wide,
            high,
            fill,
            edge=edge,
            line=1.6 if is_first else 0.8,
            round_by=high / 2,
        )
        size = _FIRST_SIZE if is_first else _NAME_SIZE
        text = fitting(name, size, wide - _PADDING, bold=is_first)
        self._canvas.words((x, y), text, size, ink_on(fill), align="center", bold=is_first)

    def _join(self, join: Join, colour: str) -> None:
        start, end = self._ends(join)
        colour = FAINT if join.is_ended else colour
        self._canvas.line([start, end], colour, width=1.1, dashed=join.is_ended)
        if join.there:
            self._head(start, end, colour)
        if join.back:
            self._head(end, start, colour)

    def _ends(self, join: Join) -> tuple[Point, Point]:
        first, second = self._places[join.first], self._places[join.second]
        return (
            border(first, second, self._sizes[join.first]),
            border(second, first, self._sizes[join.second]),
        )

    def _head(self, start: Point, end: Point, colour: str) -> None:
        angle = atan2(end[1] - start[1], end[0] - start[0])
        wings = [
            (end[0] - 0.11 * cos(angle + turn), end[1] - 0.11 * sin(angle + turn))
            for turn in (-0.4, 0.4)
        ]
        self._canvas.polygon([end, *wings], colour)

    def _name_join(self, join: Join) -> None:
        """Write the predicates along the line, cut to its length."""
        start, end = self._ends(join)
        length = hypot(end[0] - start[0], end[1] - start[1])
        angle = degrees(atan2(end[1] - start[1], end[0] - start[0]))
        # Words on a vertical line are read upwards, whether the line leads up or down.
        upright = -90 - 1e-6 <= angle < 90 - 1e-6
        turned = join.there if upright else join.back, join.back if upright else join.there
        text = _label(*turned, is_mutual=bool(join.there and join.back))
        text = fitting(text, _LABEL_SIZE, length - 0.22)
        # A little outwards, because the lines are further apart there.
        at = (start[0] + 0.52 * (end[0] - start[0]), start[1] + 0.52 * (end[1] - start[1]))
        self._canvas.words(
            at,
            text,
            _LABEL_SIZE,
            SOFT,
            align="center",
            angle=-angle if upright else 180 - angle,
            ground=PAPER,
        )

    def _legend(self) -> None:
        left, at = _MARGIN, self._canvas.height - 0.28
        for kind, colour in self._kinds.items():
            text = fitting(str(kind), 8, 1.6)
            wide = width_of(text, 8)
            if left + wide + 0.5 > self._canvas.width:
                break
            fill = mixed(colour, PAPER, 0.15)
            self._canvas.box(left, at - 0.06, 0.18, 0.12, fill, round_by=0.06)
            self._canvas.words((left + 0.25, at), text, 8, SOFT)
            left += wide + 0.5


def _label(there: Sequence[str], back: Sequence[str], *, is_mutual: bool) -> str:
    """Return the predicates of a line; if those of the two directions differ, with arrows."""
    if not is_mutual or there == back:
        return ", ".join(there or back)
    return f"{', '.join(there)} →   ← {', '.join(back)}"
