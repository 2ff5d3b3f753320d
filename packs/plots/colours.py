"""Colours: a palette that colour-blind readers can distinguish, and the ink on each colour."""

from collections.abc import Hashable, Iterable
from typing import Final

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
