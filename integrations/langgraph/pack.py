"""The pack of LangGraph: the checkpoints of its threads, the writes of their tasks, and its items.

Owns the names of the pack's parts. Reading it loads no other module of the pack.
"""

from typing import Final

from cerata.engine.packs import Owned, Pack, Role, State

ROLE: Final = Role("LangGraph's adapter")

_EVENTS: Final = "cerata.integrations.langgraph.events"

PACK: Final = Pack(
    name="langgraph",
    docs=("langgraph.md",),
    events={
        "langgraph.putCheckpoint": _EVENTS,
        "langgraph.putWrites": _EVENTS,
        "langgraph.dropCheckpoints": _EVENTS,
    },
    acts={
        "langgraph.putCheckpoint": "checkpoint",
        "langgraph.putWrites": "write",
        "langgraph.dropCheckpoints": "drop",
    },
    states=(
        State(
            "langgraph",
            "langgraph/1/f082c3643cc54529",
            "cerata.integrations.langgraph.rows:GraphThreads",
        ),
    ),
    owns=(
        Owned(
            "LangGraph's checkpoints and items",
            ROLE,
            ("langgraph.item", "langgraph.path"),
            ("lg:",),
            ("langgraph.putCheckpoint", "langgraph.putWrites", "langgraph.dropCheckpoints"),
        ),
    ),
    role=ROLE,
    importers={"langgraph-sqlite": "cerata.integrations.langgraph.importer:opened"},
    resident=(_EVENTS,),
)
