"""Agents: recorded runs of agent functions, resumed after a kill and run again from the log.

Purpose: `Agent` opens sessions and runs; each call of a run is recorded with its result, so that
the function can run again without its tools. A `Slot` is typed memory that outlives runs. Functions
such as `messages(store, track="chat-1")` take the store first. Read first: `agent`, then `run` and
`slot`.
"""

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from .growth.commands import judge
    from .turns.conversations import messages, remember_messages
    from .turns.uses import access, accesses, record_access

__all__ = ["access", "accesses", "judge", "messages", "record_access", "remember_messages"]

_HOMES: Final = {
    **dict.fromkeys(("access", "accesses", "record_access"), "cerata.agents.turns.uses"),
    **dict.fromkeys(("messages", "remember_messages"), "cerata.agents.turns.conversations"),
    "judge": "cerata.agents.growth.commands",
}


def __getattr__(name: str) -> object:
    """Load a call with its first use: packs of this room are read without it."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    call: object = getattr(import_module(home), name)
    return call
