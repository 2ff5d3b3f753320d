# Where the extra anthropic is missing, its types are unknown.
# pyright: basic, reportMissingImports=false
"""Anthropic: the memory tool of Claude over a memory, each edit a version that can be undone.

`CerataMemoryTool` and `CerataAsyncMemoryTool` keep the files of the tool as frames, in exactly the
scope of their store. Deleting hides files, and the log keeps them (docs/anthropic.md).

Read first: `tool`, then `files`.
"""

from ..extras import require

require("anthropic.lib.tools", "anthropic")

from .refusal import RefusedCommand  # noqa: E402
from .tool import CerataAsyncMemoryTool, CerataMemoryTool  # noqa: E402

__all__ = ["CerataAsyncMemoryTool", "CerataMemoryTool", "RefusedCommand"]
