"""The picture of the comparison: times over sizes, both axes logarithmic, a panel an operation.

Leaves out drawing itself (`cerata.packs.plots.canvas`).
"""

import math
from collections.abc import Mapping, Sequence
from typing import Final

from cerata.packs.plots.canvas import FAINT, INK, SOFT, Canvas, Form, colours_of

Line = Sequence[tuple[int, float]]
"""A system's times: (documents, milliseconds)."""

_COLUMNS: Final = 4
_WIDTH: Final = 2.6
_HEIGHT: Final = 2.1
_LEFT: Final = 0.55
_TOP: Final = 0.8
_INSIDE: Final = (0.35, 1.55)
"""Top and bottom of the lines inside a panel, in inches."""


def chart(panels: Mapping[str, Mapping[str, Line]], title: str, form: Form) -> bytes:
    """Return a picture with a panel for each operation and a line for each system.

    Args:
        panels: For each operation the line of each system.
        title: The words above all panels.
        form: "svg" or "png".
    """
    names = list(dict.fromkeys(name for lines in panels.values() for name in lines))
    colours = colours_of(names)
    rows = math.ceil(len(panels) / _COLUMNS)
    canvas = Canvas(_COLUMNS * _WIDTH + 0.2, _TOP + rows * _HEIGHT)
    canvas.words((0.2, 0.25), title, 11, INK, bold=True)
    for place, name in enumerate(names):
        across = 0.2 + 1.3 * place
        canvas.line([(across, 0.55), (across + 0.3, 0.55)], colours[name], width=2)
        canvas.words((across + 0.38, 0.55), name, 9, INK)
    for place, (operation, lines) in enumerate(panels.items()):
        left = place % _COLUMNS * _WIDTH
        top = _TOP + place // _COLUMNS * _HEIGHT
        named = {str(colours[name]): line for name, line in lines.items()}
        _draw_panel(canvas, left, top, operation, named)
    return canvas.picture(form)


def _draw_panel(
    canvas: Canvas, left: float, top: float, operation: str, lines: Mapping[str, Line]
) -> None:
    points = [point for line in lines.values() for point in line]
    sizes = _span([size for size, _ in points])
    times = _span([time for _, time in points])
    right = left + _WIDTH - 0.15
    high, low = top + _INSIDE[0], top + _INSIDE[1]

    def across(size: float) -> float:
        return left + _LEFT + _share(size, sizes) * (right - left - _LEFT)

    def down(time: float) -> float:
        return low - _share(time, times) * (low - high)

    canvas.words((left + _LEFT, top + 0.12), f"{operation}, ms", 9, INK, bold=True)
    for time in _powers(times):
        canvas.line([(left + _LEFT, down(time)), (right, down(time))], FAINT, width=0.5)
        canvas.words((left + _LEFT - 0.06, down(time)), f"{time:g}", 7, SOFT, align="right")
    for size in _powers(sizes):
        canvas.line([(across(size), high), (across(size), low)], FAINT, width=0.5)
        canvas.words((across(size), low + 0.14), f"{size:,.0f}", 7, SOFT, align="center")
    for colour, line in lines.items():
        placed = [(across(size), down(time)) for size, time in line]
        if len(placed) > 1:
            canvas.line(placed, colour, width=1.6)
        for x, y in placed:
            canvas.box(x - 0.025, y - 0.025, 0.05, 0.05, colour)


def _span(values: Sequence[float]) -> tuple[float, float]:
    """Return whole powers of ten around values, as exponents."""
    low = math.floor(math.log10(min(values)))
    return low, max(low + 1, math.ceil(math.log10(max(values))))


def _share(value: float, span: tuple[float, float]) -> float:
    return (math.log10(value) - span[0]) / (span[1] - span[0])


def _powers(span: tuple[float, float]) -> list[float]:
    return [10.0**power for power in range(round(span[0]), round(span[1]) + 1)]
