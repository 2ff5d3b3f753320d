"""Plots: pictures of facts on both clocks, and of the graph around an entity.

Purpose: `draw_facts` and `draw_graph` return the bytes of an SVG or PNG. Matplotlib, the extra
``plot``, draws; importing this package does not load it. Read first: `drawing`.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .drawing import draw_facts, draw_graph

__all__ = ["draw_facts", "draw_graph"]


def __getattr__(name: str) -> object:
    """Load a call with its first use: the pack is read without it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import drawing

    call: object = getattr(drawing, name)
    return call
