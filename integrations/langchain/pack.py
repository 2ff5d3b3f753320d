"""The pack of LangChain: the kinds of its documents and bytes, and their writer.

Owns the names of the pack's parts. Reading it loads no other module of the pack.
"""

from typing import Final

from cerata.engine.packs import Owned, Pack, Role

ROLE: Final = Role("LangChain's adapter")

PACK: Final = Pack(
    name="langchain",
    docs=("langchain.md",),
    owns=(Owned("LangChain's stores", ROLE, ("langchain.document", "langchain.bytes")),),
    role=ROLE,
)
