"""OpenAI's Agents SDK: a session, the history of a conversation, over a memory.

`CerataSession` keeps the items of a conversation as frames, in exactly the scope of its store.
Deleting hides items, and the log keeps them (docs/openai-agents.md).

Read first: `session`.
"""

from typing import TYPE_CHECKING

from ..extras import names_with

if TYPE_CHECKING:
    from .session import CerataSession

__all__ = ["CerataSession"]

__getattr__ = names_with(
    __name__, "agents.memory.session_settings", "openai-agents", {"CerataSession": "session"}
)
