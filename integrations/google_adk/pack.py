"""The pack of Google's Agent Development Kit: the kind of its memories, and their writer.

Owns the names of the pack's parts. Reading it loads no other module of the pack.
"""

from typing import Final

from cerata.engine.packs import Owned, Pack, Role

ROLE: Final = Role("ADK's memory service")

PACK: Final = Pack(
    name="google-adk",
    docs=("google-adk.md",),
    owns=(Owned("ADK's memory service", ROLE, ("adk.memory",), ("adk:",)),),
    role=ROLE,
)
