"""The pack of plots: pictures of facts and of the graph.

Owns the names of the pack's parts. Reading it loads no other module of the pack.
"""

from typing import Final

from cerata.engine.packs import Addition, Option, Pack

PACK: Final = Pack(
    name="plots",
    functions={
        "draw_facts": "cerata.plots.draw_facts",
        "draw_graph": "cerata.plots.draw_graph",
    },
    additions=(
        Addition(
            "facts list",
            "cerata.packs.plots.verbs:run_facts",
            (Option("--plot FILE", "draw the facts, too, as .svg or .png"),),
            ("alice --ended --retracted --plot alice.svg",),
        ),
        Addition(
            "facts graph",
            "cerata.packs.plots.verbs:run_neighbours",
            (Option("--plot FILE", "draw the neighbourhood, as .svg or .png"),),
            ("alice --hops 2 --plot alice.svg",),
        ),
    ),
)
