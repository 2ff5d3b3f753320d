"""The pack of OpenAI's Agents SDK: the kind of the items of its sessions, and their writer.

Owns the names of the pack's parts. Reading it loads no other module of the pack.
"""

from typing import Final

from cerata.engine.packs import Owned, Pack, Role

ROLE: Final = Role("The session of OpenAI's SDK")

PACK: Final = Pack(
    name="openai-agents",
    docs=("openai-agents.md",),
    owns=(Owned("sessions of OpenAI's SDK", ROLE, ("openai.item",), ("openai:",)),),
    role=ROLE,
)
