"""The pack of agents: the frames that their sessions write beside messages.

Owns the names of the pack's parts. Reading it loads no other module of the pack. Activities,
messages, slots and growth are packs of their own.
"""

from typing import Final

from cerata.engine.packs import Owned, Pack, Role

PACK: Final = Pack(
    name="agents",
    owns=(
        Owned("reflections", Role.AGENT, ("reflection",), is_memory=False),
        Owned("summaries", Role.AGENT, ("summary",)),
    ),
    functions={
        name: f"cerata.agents.{name}"
        for name in ("access", "accesses", "messages", "record_access", "remember_messages")
    },
)
