# Where the extra langgraph is missing, its types are unknown.
# pyright: basic, reportMissingImports=false
"""LangGraph: a checkpoint saver and a store over a memory.

`CerataSaver` keeps the checkpoints of threads, `CerataStore` the long-term items. Both read and
write exactly the scope of their store. Deleting hides data, and the log keeps it
(docs/langgraph.md).

Read first: `saver`.
"""

from typing import TYPE_CHECKING

from ..extras import names_with

if TYPE_CHECKING:
    from .saver import CerataSaver
    from .store import CerataStore

__all__ = ["CerataSaver", "CerataStore"]

__getattr__ = names_with(
    __name__,
    "langgraph.checkpoint.base",
    "langgraph",
    {"CerataSaver": "saver", "CerataStore": "store"},
)
