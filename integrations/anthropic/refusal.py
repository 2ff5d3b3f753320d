# Where the extra anthropic is missing, its types are unknown.
# pyright: basic, reportMissingImports=false
"""The error of a command of the memory tool that cannot be done."""

from typing import Any, Final

from anthropic.lib.tools import ToolError

from cerata.engine.errors import InvalidInput

_LOOK: Final = 'View "/memories" to see the files.'


class RefusedCommand(InvalidInput, ToolError):
    """A command that cannot be done; nothing was written.

    ``content`` is the text for the model, as `ToolError` has it.
    """

    def __init__(self, text: str, *, where: str | None = None, remedy: str = _LOOK) -> None:
        """Refuse with a text, in the words of `BetaLocalFilesystemMemoryTool` if it has some."""
        super().__init__(text.removesuffix("."), where=where, remedy=remedy)
        self.content: Any = text
