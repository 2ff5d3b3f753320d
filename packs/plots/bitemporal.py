"""Facts on both clocks: valid time across, known time upwards, a region for each fact.

Owns the layout. Each subject and predicate has a panel, or several, one below the other, for values
that overlap, so that no region covers another. Known time advances by steps of equal height, a step
for each change, because changes often come within a second of each other. Leaves out the regions
(`regions`).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Final, NamedTuple

from cerata.engine.errors import InvalidInput
from cerata.memory.snapshot.snapshot import Snapshot
from cerata.memory.values.facts import Fact, plain_object
from cerata.projections.columnar.times import (
    BEGINNING,
    ENDLESS,
    Interval,
    to_datetime,
    to_microseconds,
)

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
from .regions import Piece, Region, is_endless, regions_of

# --- The calendar along a picture: the interval of time that it shows, and its lines --------------
#
# Times are microseconds since 1970 UTC.


_HOUR_US: Final = 3_600_000_000
_DAY_US: Final = 24 * _HOUR_US
_NAMES: Final = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
_YEARS: Final = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
_MONTHS: Final = (1, 3, 6)
_HOURS: Final = (1, 3, 6, 12, 24, 48, 120)
_MARGIN: Final = 0.12
"""Space before the first and after the last time, as a share: room for open ends."""


class Line(NamedTuple):
    """A line of the calendar: its time, and its label."""

    time: int
    label: str


def stretch(times: Iterable[int]) -> Interval:
    """Return the interval to show, around all times but open ends; at least a day."""
    closed = [time for time in times if BEGINNING < time < ENDLESS]
    first, last = (min(closed), max(closed)) if closed else (0, 0)
    room = max(round((last - first) * _MARGIN), _DAY_US // 2)
    start, end = to_datetime(first - room), to_datetime(last + room)
    return Interval(to_microseconds(start), to_microseconds(end))


def lines_in(interval: Interval, count: int) -> list[Line]:
    """Return at most ``count`` lines, at the starts of years, months, days or hours."""
    for candidates in _candidates(interval):
        lines = [line for line in candidates if interval.start < line.time < interval.end]
        if len(lines) <= count:
            return lines
    return []


def _candidates(interval: Interval) -> Iterator[list[Line]]:
    """Yield sets of lines from dense to sparse, without those of 60 lines or more."""
    size = interval.end - interval.start
    first, last = to_datetime(interval.start), to_datetime(interval.end)
    for hours in _HOURS:
        if size / (hours * _HOUR_US) < 60:
            yield list(_by_hours(first, interval.end, hours))
    years = range(first.year, last.year + 1)
    for months in _MONTHS:
        if size / (months * 30 * _DAY_US) < 60:
            yield [_month(year, month) for year in years for month in range(1, 13, months)]
    for apart in _YEARS:
        yield [_month(year, 1) for year in years if year % apart == 0]


def _month(year: int, month: int) -> Line:
    first = datetime(year, month, 1, tzinfo=UTC)
    return Line(to_microseconds(first), f"{_NAMES[month - 1]} {year}" if month > 1 else str(year))


def _by_hours(first: datetime, end: int, hours: int) -> Iterator[Line]:
    when = first.replace(hour=0, minute=0, second=0, microsecond=0)
    step = timedelta(hours=hours)
    while to_microseconds(when) < end and when < _LAST - step:
        at_midnight = when.hour == 0
        yield Line(to_microseconds(when), f"{when:%Y-%m-%d}" if at_midnight else f"{when:%H:%M}")
        when += step


_LAST: Final = to_datetime(ENDLESS)


def said(times: Sequence[int]) -> list[str]:
    """Return ascending times as texts for people, just exact enough to differ."""
    texts = list[str]()
    for form in ("%Y-%m-%d", "%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S"):
        texts = [to_datetime(time).strftime(form) for time in times]
        if len(set(texts)) == len(texts):
            return texts
    # Times within one second cannot differ, so only the first of them is written.
    return [
        "a moment later" if place and texts[place - 1] == text else text
        for place, text in enumerate(texts)
    ]


# --- Facts on both clocks: valid time across, known time upwards, a region for each fact ----------


FACTS_MAX: Final = 200
"""Most facts of a picture."""

_WIDTH: Final = 10.0
_LEFT: Final = 1.75
_RIGHT: Final = 0.35
_TOP: Final = 0.78
_BOTTOM: Final = 0.5
_TITLE: Final = 0.3
"""Inches above a panel that has a title."""
_GAP: Final = 0.14
_ROW: Final = 0.36
_ROW_MIN: Final = 0.17
_ROWS_HEIGHT: Final = 3.6
"""Inches of a panel of many rows, unless its rows would be lower than `_ROW_MIN`."""
_OPEN: Final = 0.09
"""Inches above the last step for facts that are still known."""
_FADE: Final = 0.45
"""Inches along which an open end of valid time fades."""
_FADE_STEPS: Final = 16
_EDGE: Final = 0.012
_BOX_MIN: Final = 0.06
_LABEL_SIZES: Final = (9.0, 8.0, 7.0)


@dataclass(frozen=True, slots=True)
class _Panel:
    """Regions that do not cover each other; rows begin at ``times``, ascending."""

    title: str | None
    regions: tuple[Region, ...]
    times: tuple[int, ...]

    @property
    def row(self) -> float:
        return max(_ROW_MIN, min(_ROW, _ROWS_HEIGHT / len(self.times)))

    @property
    def height(self) -> float:
        return self.row * len(self.times) + _OPEN


def picture_of_facts(snapshot: Snapshot, facts: Sequence[Fact], *, title: str, form: Form) -> bytes:
    """Return a picture of facts as a view sees them.

    Raises:
        InvalidInput: no fact, or too many facts.
        Unsupported: matplotlib is not installed.
    """
    form = check_form(form)
    if len(facts) > FACTS_MAX:
        raise InvalidInput(
            f"A picture shows at most {FACTS_MAX} facts, not {len(facts):,}",
            remedy="Pass the facts of one subject or predicate.",
        )
    regions = regions_of(snapshot, facts)
    if not regions:
        raise InvalidInput("There are no facts to draw", remedy="Pass other facts.")
    return _Picture(snapshot, regions, title).picture(form)


class _Picture:
    def __init__(self, snapshot: Snapshot, regions: Sequence[Region], title: str) -> None:
        self._panels = _panels(regions)
        self._colours = colours_of(_key(region.fact) for region in regions)
        self._now = to_microseconds(snapshot.now)
        ends = [end for region in regions for piece in region.pieces for end in piece.valid]
        is_open = any(end >= ENDLESS for end in ends)
        self._shown = stretch([*ends, self._now] if is_open else ends)
        titles = sum(panel.title is not None for panel in self._panels)
        height = sum(panel.height + _GAP for panel in self._panels) + titles * _TITLE
        self._canvas = Canvas(_WIDTH, _TOP + height + _BOTTOM)
        self._canvas.box(0, 0, _WIDTH, _TOP + height + _BOTTOM, PAPER)
        self._title(title, snapshot.basis)

    def picture(self, form: Form) -> bytes:
        top = _TOP
        lines = lines_in(self._shown, 9)
        for panel in self._panels:
            if panel.title is not None:
                text = fitting(panel.title, 10, _WIDTH - 2 * _RIGHT, bold=True)
                self._canvas.words((_RIGHT, top + 0.17), text, 10, INK, bold=True)
                top += _TITLE
            self._panel(panel, top, lines)
            top += panel.height + _GAP
        self._calendar(lines, top - _GAP)
        return self._canvas.picture(form)

    def _title(self, title: str, basis: int) -> None:
        words = self._canvas.words
        note = f"valid time across, known time upwards · as of event {basis:,}"
        room = _WIDTH - 2 * _RIGHT - width_of(note, 8) - 0.3
        words((_RIGHT, 0.34), fitting(title, 14, room, bold=True), 14, INK, bold=True)
        words((_WIDTH - _RIGHT, 0.36), note, 8, SOFT, align="right")

    def _across(self, time: int) -> float:
        share = (time - self._shown.start) / (self._shown.end - self._shown.start)
        return _LEFT + min(max(share, 0.0), 1.0) * (_WIDTH - _LEFT - _RIGHT)

    def _calendar(self, lines: Sequence[Line], bottom: float) -> None:
        edge = _LEFT - 0.4
        for line in lines:
            at, half = self._across(line.time), width_of(line.label, 8) / 2
            if at - half > edge and at + half < _WIDTH - 0.1:
                self._canvas.words((at, bottom + 0.18), line.label, 8, SOFT, align="center")
                edge = at + half + 0.08
        if self._shown.start < self._now < self._shown.end:
            at = self._across(self._now)
            self._canvas.line([(at, _TOP - 0.02), (at, bottom)], SOFT, dashed=True)
            self._canvas.words((at, _TOP - 0.12), "now", 8, SOFT, align="center")

    # --- a panel ---------------------------------------------------------------------------------

    def _panel(self, panel: _Panel, top: float, lines: Sequence[Line]) -> None:
        width = _WIDTH - _LEFT - _RIGHT
        self._canvas.box(_LEFT, top, width, panel.height, GROUND)
        bottom = top + panel.height
        for line in lines:
            at = self._across(line.time)
            self._canvas.line([(at, top), (at, bottom)], mixed(FAINT, GROUND, 0.4), width=0.6)
        self._steps(panel, bottom)
        placed = [
            (region, [self._box(piece, panel, bottom) for piece in region.pieces])
            for region in panel.regions
        ]
        for region, boxes in placed:
            self._region(region, boxes)
        for region, boxes in placed:
            obstacles = [box for owner, parts in placed if owner is not region for box in parts]
            self._label(region, boxes, obstacles, panel.row)

    def _steps(self, panel: _Panel, bottom: float) -> None:
        """Write the time at which each row begins, upwards."""
        for number, text in enumerate(said(panel.times)):
            at = bottom - number * panel.row
            self._canvas.line([(_LEFT - 0.05, at), (_LEFT, at)], SOFT, width=0.6)
            self._canvas.words((_LEFT - 0.09, at - 0.045), text, 7, SOFT, align="right")

    def _fill(self, region: Region) -> str:
        colour = self._colours[_key(region.fact)]
        return colour if is_endless(region.pieces[-1]) else mixed(colour, PAPER, 0.62)

    def _region(self, region: Region, boxes: Sequence["_Box"]) -> None:
        """Draw the pieces of a fact, joined if they touch; a retracted fact is paler."""
        is_retracted = not is_endless(region.pieces[-1])
        edge = mixed(self._colours[_key(region.fact)], PAPER, 0.25) if is_retracted else PAPER
        for run in _runs(boxes):
            self._canvas.polygon(
                _outline(run), self._fill(region), edge=edge, line=1.0, hatch=is_retracted
            )
        for piece, box in zip(region.pieces, boxes, strict=True):
            self._fade(piece, box)

    def _box(self, piece: Piece, panel: _Panel, bottom: float) -> "_Box":
        first = panel.times.index(piece.known.start)
        low = bottom - first * panel.row
        if is_endless(piece):
            high = bottom - panel.height
        else:
            high = bottom - panel.times.index(piece.known.end) * panel.row
        left, right = self._across(piece.valid.start), self._across(piece.valid.end)
        # A short box is widened to be visible, to the left if it lies at the right edge.
        left = min(left, _WIDTH - _RIGHT - _BOX_MIN)
        return _Box(left, high, max(right, left + _BOX_MIN), low)

    def _fade(self, piece: Piece, box: "_Box") -> None:
        """Fade open ends into the ground, with their edges."""
        wide = min(_FADE, (box.right - box.left) / 2) / _FADE_STEPS
        for step in range(_FADE_STEPS):
            alpha = 0.95 * ((step + 1) / _FADE_STEPS)
            beyond = _EDGE if step == _FADE_STEPS - 1 else 0.0
            if piece.valid.end >= ENDLESS:
                left = box.right - (_FADE_STEPS - step) * wide
                shape = _corners(left, box.top, left + wide + beyond, box.bottom)
                self._canvas.polygon(shape, GROUND, alpha=alpha)
            if piece.valid.start <= BEGINNING:
                right = box.left + (_FADE_STEPS - step) * wide
                shape = _corners(right - wide - beyond, box.top, right, box.bottom)
                self._canvas.polygon(shape, GROUND, alpha=alpha)
        if is_endless(piece):
            for step in range(4):
                high = box.top + (3 - step) * _OPEN / 4
                shape = _corners(box.left, high, box.right, high + _OPEN / 4)
                self._canvas.polygon(shape, GROUND, alpha=(step + 1) / 4 * 0.9)

    def _label(
        self, region: Region, boxes: Sequence["_Box"], obstacles: Sequence["_Box"], row: float
    ) -> None:
        """Write the object into the largest piece, else beside it if there is more room, or cut."""
        text, fill = _text(region.fact), self._fill(region)
        is_retracted = not is_endless(region.pieces[-1])
        box = max(boxes, key=lambda part: (part.right - part.left, part.bottom - part.top))
        piece = region.pieces[boxes.index(box)]
        left = box.left + (min(_FADE, box.width / 2) if piece.valid.start <= BEGINNING else 0.08)
        middle = (box.top + (_OPEN if is_endless(piece) else 0) + box.bottom) / 2
        room = box.right - left - 0.08
        size = next(
            (points for points in _LABEL_SIZES if width_of(text, points) <= room), _LABEL_SIZES[-1]
        )
        beside, height = max(_beside(part, (*obstacles, *boxes)) for part in box.rows(row))
        words = self._canvas.words
        if width_of(text, size) > room < beside:
            at = (box.right + 0.06, height)
            words(at, fitting(text, size, beside), size, INK, ground=GROUND)
            return
        ground, colour = (fill, INK) if is_retracted else (None, ink_on(fill))
        words((left, middle), fitting(text, size, room), size, colour, ground=ground)


@dataclass(frozen=True, slots=True)
class _Box:
    left: float
    top: float
    right: float
    bottom: float

    @property
    def width(self) -> float:
        return self.right - self.left

    def rows(self, height: float) -> "list[_Box]":
        """Return the parts of the box in each row, from the top."""
        count = max(1, round((self.bottom - self.top) / height))
        lows = [self.bottom - place * height for place in reversed(range(count))]
        return [_Box(self.left, low - height, self.right, low) for low in lows]

    def is_right_of(self, box: "_Box") -> bool:
        """Return whether words written to the right of ``box`` would meet this box."""
        is_beside = self.top < box.bottom - 1e-9 and box.top < self.bottom - 1e-9
        return is_beside and self.left >= box.left and self.right > box.right


def _beside(box: _Box, obstacles: Iterable[_Box]) -> tuple[float, float]:
    """Return the room to the right of a box, and the height of its middle."""
    edges = [obstacle.left for obstacle in obstacles if obstacle.is_right_of(box)]
    return min([*edges, _WIDTH - _RIGHT]) - box.right - 0.12, (box.top + box.bottom) / 2


def _corners(left: float, top: float, right: float, bottom: float) -> list[Point]:
    return [(left, top), (right, top), (right, bottom), (left, bottom)]


def _runs(boxes: Sequence[_Box]) -> list[list[_Box]]:
    runs = [[boxes[0]]]
    for below, above in pairwise(boxes):
        touches = abs(below.top - above.bottom) < 1e-9 and (
            above.left < below.right and below.left < above.right
        )
        if touches:
            runs[-1].append(above)
        else:
            runs.append([above])
    return runs


def _outline(boxes: Sequence[_Box]) -> list[Point]:
    left = [point for box in boxes for point in ((box.left, box.bottom), (box.left, box.top))]
    right = [point for box in boxes for point in ((box.right, box.bottom), (box.right, box.top))]
    return [*left, *reversed(right)]


def _key(fact: Fact) -> tuple[str, str]:
    return type(fact.object).__name__, str(plain_object(fact.object))


def _text(fact: Fact) -> str:
    value = str(plain_object(fact.object))
    return value if fact.confidence == 1 else f"{value} ({fact.confidence:.0%})"


# --- panels --------------------------------------------------------------------------------------


def _panels(regions: Sequence[Region]) -> list[_Panel]:
    """Return the panels, grouped by subject and predicate, from the top."""
    groups: dict[str, dict[str, list[Region]]] = {}
    for region in regions:
        subject, predicate = region.fact.subject, region.fact.predicate
        groups.setdefault(subject, {}).setdefault(predicate, []).append(region)
    panels = list[_Panel]()
    for subject, predicate, members in (
        (subject, predicate, members)
        for subject, by_predicate in groups.items()
        for predicate, members in by_predicate.items()
    ):
        title: str | None = f"{subject} · {predicate}"
        for lane in _lanes(members):
            pieces = [piece for region in lane for piece in region.pieces]
            ends = {end for piece in pieces for end in piece.known if end < ENDLESS}
            panels.append(_Panel(title, tuple(lane), tuple(sorted(ends))))
            title = None
    return panels


def _lanes(regions: Sequence[Region]) -> list[list[Region]]:
    """Return groups of regions that do not cover each other, by first fit."""
    lanes = list[list[Region]]()
    for region in regions:
        for lane in lanes:
            if not any(_cover(region, member) for member in lane):
                lane.append(region)
                break
        else:
            lanes.append([region])
    return lanes


def _cover(first: Region, second: Region) -> bool:
    return any(
        a.known.overlaps(b.known) and a.valid.overlaps(b.valid)
        for a in first.pieces
        for b in second.pieces
    )
