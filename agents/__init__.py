"""Agents: recorded runs of agent functions, resumed after a kill and run again from the log.

Purpose: `Agent` opens sessions and runs; each call of a run is recorded with its result, so that
the function can run again without its tools. A `Slot` is typed memory that outlives runs. Functions
such as `messages(store, track="chat-1")` take the store first. Read first: `agent`, then `run` and
`slot`.
"""

from typing import TYPE_CHECKING

from cerata.engine.late import late_names

if TYPE_CHECKING:
    from .growth.commands import judge
    from .turns.conversations import messages, remember_messages
    from .turns.uses import access, accesses, record_access

__all__ = ["access", "accesses", "judge", "messages", "record_access", "remember_messages"]

__getattr__ = late_names(
    __name__,
    {
        **dict.fromkeys(("access", "accesses", "record_access"), "turns.uses"),
        **dict.fromkeys(("messages", "remember_messages"), "turns.conversations"),
        "judge": "growth.commands",
    },
)
