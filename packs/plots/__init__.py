"""Plots: pictures of facts on both clocks, and of the graph around an entity.

Purpose: `draw_facts` and `draw_graph` return the bytes of an SVG or PNG. Matplotlib, the extra
``plot``, draws; importing this package does not load it. Read first: `drawing`.
"""

from typing import TYPE_CHECKING

from cerata.engine.late import late_names

if TYPE_CHECKING:
    from .drawing import draw_facts, draw_graph

__all__ = ["draw_facts", "draw_graph"]

__getattr__ = late_names(__name__, dict.fromkeys(__all__, "drawing"))
