"""OpenAI's Agents SDK: a session, the history of a conversation, over a memory.

`CerataSession` keeps the items of a conversation as frames, in exactly the scope of its store.
Deleting hides items, and the log keeps them (docs/openai-agents.md).

Read first: `session`.
"""

from ..extras import require

require("agents.memory.session_settings", "openai-agents")

from .session import CerataSession  # noqa: E402

__all__ = ["CerataSession"]
