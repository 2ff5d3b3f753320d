"""The pack of messages: the rows of the sessions of agents.

Owns the names of the pack's parts. Reading it loads no other module of the pack.
"""

from typing import Final

from cerata.engine.packs import Pack, State

PACK: Final = Pack(
    name="messages",
    docs=("signs.md",),
    states=(
        State(
            "messages",
            "messages/3/922237e714493ae3",
            "cerata.agents.turns.projection:MessagesProjection",
            before="vectors",
        ),
    ),
)
