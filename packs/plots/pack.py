"""The pack of plots: pictures of facts and of the graph.

Owns the names of the pack's parts. Reading it loads no other module of the pack.
"""

from typing import Final

from cerata.engine.packs import Pack

PACK: Final = Pack(
    name="plots",
    functions={
        "draw_facts": "cerata.plots.draw_facts",
        "draw_graph": "cerata.plots.draw_graph",
    },
)
