# Where the extra google-adk is missing, its types are unknown.
# pyright: basic, reportMissingImports=false
"""Google's Agent Development Kit: a memory service over a memory.

`CerataMemoryService` keeps events and memories as frames. The dimensions ``app`` and ``user_id``
narrow the scope of the store for each call. Deleting hides memories, and the log keeps them
(docs/google-adk.md).

Read first: `memory_service`.
"""

from typing import TYPE_CHECKING

from ..extras import names_with

if TYPE_CHECKING:
    from .memory_service import CerataMemoryService

__all__ = ["CerataMemoryService"]

__getattr__ = names_with(
    __name__,
    "google.adk.memory.base_memory_service",
    "google-adk",
    {"CerataMemoryService": "memory_service"},
)
