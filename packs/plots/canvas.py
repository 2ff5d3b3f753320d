"""The canvas: shapes and words in inches from the top left, and the only use of matplotlib.

Owns drawing and its settings; leaves out the content of pictures. Words are drawn as shapes of a
font that comes with matplotlib, so a picture looks the same everywhere, and a user's settings of
matplotlib do not change it.
"""

import importlib
import warnings
from collections.abc import Hashable, Iterable, Sequence
from functools import cache
from io import BytesIO
from threading import RLock
from typing import Any, Final, Literal, TypeAlias

from cerata.engine.errors import InvalidInput, Unsupported, value_text
from cerata.engine.late import install_command, loading

Form: TypeAlias = Literal["svg", "png"]
FORMS: Final[tuple[Form, ...]] = ("svg", "png")
Align: TypeAlias = Literal["left", "center", "right"]
Point: TypeAlias = tuple[float, float]

PNG_DOTS: Final = 144
"""Dots per inch of a PNG."""

_POINT: Final = 1 / 72
_SETTINGS: Final = {"svg.hashsalt": "cerata", "svg.fonttype": "path", "hatch.linewidth": 0.6}
_DRAWING: Final = (
    *("axes", "figure", "font", "hatch", "lines", "patch", "path", "savefig", "svg", "text"),
)
"""The groups of matplotlib's settings that a picture depends on."""
_METADATA: Final[dict[Form, dict[str, str | None]]] = {
    "svg": {"Date": None, "Creator": "Cerata"},
    "png": {"Software": None},
}
_LOCK: Final = RLock()
"""Taken while matplotlib has our settings, because all threads share its settings."""


@cache
def _matplotlib() -> Any:
    try:
        with loading("matplotlib"):
            return importlib.import_module("matplotlib")
    except ImportError as error:
        raise Unsupported(
            "Pictures need matplotlib, which is not installed",
            remedy=f"Run {install_command('plot')}.",
        ) from error


@cache
def _part(module: str, name: str) -> Any:
    _matplotlib()
    with loading("matplotlib"):
        return getattr(importlib.import_module(f"matplotlib.{module}"), name)


def check_form(form: object) -> Form:
    """Return the form of a picture. Raises `InvalidInput` if the form is unknown."""
    for supported in FORMS:
        if form == supported:
            return supported
    raise InvalidInput(
        f"A picture cannot be {value_text(form):.40}", remedy=f"Pass one of {', '.join(FORMS)}."
    )


class Canvas:
    """A white page; sizes are in inches. Later shapes cover earlier shapes."""

    def __init__(self, width: float, height: float) -> None:
        self.width = width
        self.height = height
        with _LOCK, _our_settings():
            self._figure: Any = _part("figure", "Figure")(figsize=(width, height))
            self._axes: Any = self._figure.add_axes((0, 0, 1, 1))
            self._axes.set_xlim(0, width)
            self._axes.set_ylim(height, 0)
            self._axes.axis("off")
        self._order = 0

    def polygon(
        self,
        points: Sequence[Point],
        fill: str,
        *,
        edge: str | None = None,
        alpha: float = 1.0,
        line: float = 0.8,
        hatch: bool = False,
    ) -> None:
        """Draw a filled shape; ``hatch`` adds strokes in the colour of the edge."""
        self._add(
            _part("patches", "Polygon")(
                points,
                closed=True,
                facecolor=fill,
                edgecolor="none" if edge is None else edge,
                linewidth=line if edge is not None else 0,
                alpha=alpha,
                hatch="////" if hatch else None,
                joinstyle="miter",
            )
        )

    def box(
        self,
        left: float,
        top: float,
        width: float,
        height: float,
        fill: str,
        *,
        edge: str | None = None,
        alpha: float = 1.0,
        line: float = 0.8,
        round_by: float = 0.0,
    ) -> None:
        """Draw a box; its corners are round by ``round_by`` inches."""
        style: Any = "square,pad=0"
        if round_by:
            style = f"round,pad=0,rounding_size={round_by}"
        self._add(
            _part("patches", "FancyBboxPatch")(
                (left, top),
                width,
                height,
                boxstyle=style,
                facecolor=fill,
                edgecolor="none" if edge is None else edge,
                linewidth=line if edge is not None else 0,
                alpha=alpha,
            )
        )

    def line(
        self, points: Sequence[Point], colour: str, *, width: float = 0.8, dashed: bool = False
    ) -> None:
        """Draw a line through points; ``width`` is in points."""
        across, down = zip(*points, strict=True)
        self._add(
            _part("lines", "Line2D")(
                across,
                down,
                color=colour,
                linewidth=width,
                linestyle=(0, (4, 3)) if dashed else "-",
                solid_capstyle="butt",
            )
        )

    def words(
        self,
        at: Point,
        text: str,
        size: float,
        colour: str,
        *,
        align: Align = "left",
        bold: bool = False,
        angle: float = 0.0,
        ground: str | None = None,
    ) -> None:
        """Write words, of a size in points, with their middle height at a point.

        ``ground`` is the colour of a box behind the words, which hides shapes below.
        """
        label = _part("text", "Text")(
            *at,
            _shown(text),
            fontproperties=_font(size, bold=bold),
            color=colour,
            horizontalalignment=align,
            verticalalignment="center_baseline",
            rotation=angle,
            rotation_mode="anchor",
            parse_math=False,
        )
        if ground is not None:
            label.set_bbox({"facecolor": ground, "edgecolor": "none", "pad": 1.0})
        self._add(label)

    def _add(self, artist: Any) -> None:
        self._order += 1
        artist.set_zorder(self._order)
        self._axes.add_artist(artist)

    def picture(self, form: Form) -> bytes:
        """Return the drawing as bytes; equal drawings give equal bytes of SVG."""
        file = BytesIO()
        backend = {
            "svg": ("backend_svg", "FigureCanvasSVG"),
            "png": ("backend_agg", "FigureCanvasAgg"),
        }
        with _LOCK, _our_settings(), warnings.catch_warnings():
            # Ignore the warning for a character that the font lacks: an empty box is drawn.
            warnings.simplefilter("ignore", UserWarning)
            module, name = backend[form]
            canvas = _part(f"backends.{module}", name)(self._figure)
            dots = PNG_DOTS if form == "png" else 72
            draw = getattr(canvas, f"print_{form}")
            self._figure.set_dpi(dots)
            draw(file, metadata=_METADATA[form])
        return file.getvalue()


def width_of(text: str, size: float, *, bold: bool = False) -> float:
    """Return the width of words in inches."""
    with _LOCK, _our_settings(), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        measure = _measure().get_text_width_height_descent
        width, _, _ = measure(_shown(text), _font(size, bold=bold), ismath=False)
    return float(width) * _POINT


def fitting(text: str, size: float, width: float, *, bold: bool = False) -> str:
    """Return words, cut with … to a width in inches; empty if no character fits."""
    text = _shown(text)
    if width_of(text, size, bold=bold) <= width:
        return text
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if width_of(text[:middle].rstrip() + "…", size, bold=bold) <= width:
            low = middle
        else:
            high = middle - 1
    return text[:low].rstrip() + "…" if low else ""


_SHOWN_MAX: Final = 200


def _shown(text: str) -> str:
    """Return words on one line, of limited length, without control characters."""
    line = " ".join(text[: 4 * _SHOWN_MAX].split())
    return "".join(char if char.isprintable() else "�" for char in line)[:_SHOWN_MAX]


def _our_settings() -> Any:
    """Return a context in which matplotlib has its defaults and ours, not the user's settings."""
    rc_context, defaults = _rc()
    return rc_context({**defaults, **_SETTINGS})


@cache
def _rc() -> tuple[Any, dict[str, Any]]:
    matplotlib = _matplotlib()
    defaults = matplotlib.rcParamsDefault
    return matplotlib.rc_context, {
        name: defaults[name] for name in defaults if name.startswith(_DRAWING)
    }


@cache
def _measure() -> Any:
    return _part("textpath", "TextToPath")()


@cache
def _font(size: float, *, bold: bool) -> Any:
    properties: Any = _part("font_manager", "FontProperties")
    return properties(family="DejaVu Sans", size=size, weight="bold" if bold else "normal")


# --- Colours: a palette that colour-blind readers can distinguish, and the ink on each colour -----


INK: Final = "#1f2933"
SOFT: Final = "#616e7c"
FAINT: Final = "#cbd2d9"
GROUND: Final = "#f5f7fa"
PAPER: Final = "#ffffff"

_PALETTE: Final = (
    *("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9"),
    *("#d55e00", "#8c6bb1", "#b8a51a", "#5b7a99", "#a0522d"),
)
"""After Okabe and Ito, Color Universal Design, 2008, with similar colours; used in a cycle."""


def colours_of(keys: Iterable[Hashable]) -> dict[Hashable, str]:
    """Return a colour for each key, in order of first occurrence."""
    colours: dict[Hashable, str] = {}
    for key in keys:
        if key not in colours:
            colours[key] = _PALETTE[len(colours) % len(_PALETTE)]
    return colours


def mixed(colour: str, added: str, share: float) -> str:
    """Return a colour mixed with a share, 0 to 1, of another colour.

    >>> mixed("#000000", "#ffffff", 0.5)
    '#808080'
    """
    pairs = zip(_parts(colour), _parts(added), strict=True)
    return "#" + "".join(f"{round(start + (end - start) * share):02x}" for start, end in pairs)


def ink_on(colour: str) -> str:
    """Return the colour, dark or white, of words that are readable on a colour."""
    red, green, blue = (part / 255 for part in _parts(colour))
    return INK if 0.3 * red + 0.59 * green + 0.11 * blue > 0.58 else PAPER


def _parts(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)
