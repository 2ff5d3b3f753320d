# Where the extra anthropic is missing, its types are unknown.
# pyright: basic, reportMissingImports=false
"""Anthropic: the memory tool of Claude over a memory, each edit a version that can be undone.

`CerataMemoryTool` and `CerataAsyncMemoryTool` keep the files of the tool as frames, in exactly the
scope of their store. Deleting hides files, and the log keeps them (docs/anthropic.md).

Read first: `tool`, then `files`.
"""

from typing import TYPE_CHECKING

from ..extras import names_with

if TYPE_CHECKING:
    from .files import RefusedCommand
    from .tool import CerataAsyncMemoryTool, CerataMemoryTool

__all__ = ["CerataAsyncMemoryTool", "CerataMemoryTool", "RefusedCommand"]

__getattr__ = names_with(
    __name__,
    "anthropic.lib.tools",
    "anthropic",
    {"CerataAsyncMemoryTool": "tool", "CerataMemoryTool": "tool", "RefusedCommand": "files"},
)
