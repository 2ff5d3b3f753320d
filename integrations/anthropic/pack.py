"""The pack of Anthropic's memory tool: the kind of its files, and their writer.

Owns the names of the pack's parts. Reading it loads no other module of the pack.
"""

from typing import Final

from cerata.engine.packs import Owned, Pack, Role

ROLE: Final = Role("The memory tool")

PACK: Final = Pack(
    name="anthropic",
    docs=("anthropic.md",),
    owns=(Owned("the memory tool", ROLE, ("anthropic.file",)),),
    role=ROLE,
)
