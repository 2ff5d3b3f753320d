"""Visible text: stored text without the characters that steer a terminal.

Owns the tables of these characters. Leaves out the choice of the stream (`output`).
"""

import re
from typing import Final

Part = str | tuple[str, str]
"""A text, or a text and its style."""

CONTROLS = dict.fromkeys((*range(32), *range(127, 160)), "�")
"""Stored text must not steer the terminal; line ends and tabs pass."""
del CONTROLS[ord("\n")], CONTROLS[ord("\t")]

ONE_LINE = {ord("\n"): " ", ord("\t"): " ", ord("\r"): " "}
"""A row has neither line ends nor tabs."""

STRIPPED: Final[dict[int, None]] = dict.fromkeys((7, 8, 11, 12, 13))
"""Controls that a terminal acts on, and that leave no mark: a bell, and line ends of Windows."""

TURNING = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
"""Bidirectional controls, which change the order of visible characters."""
BIDIRECTIONAL = re.compile(f"[{TURNING}]")


def visible(text: str) -> str:
    r"""Return a text without characters that steer a terminal.

    Control characters become a mark each, bidirectional controls their code.

    >>> visible("pay \u202eeve\x1b[2J").replace("\u2039", "<").replace("\u203a", ">")
    'pay <U+202E>eve�[2J'
    """
    return BIDIRECTIONAL.sub(_named, text.translate(CONTROLS))


def _named(match: re.Match[str]) -> str:
    return f"\u2039U+{ord(match[0]):04X}\u203a"
