# Where the extra langgraph is missing, its types are unknown.
# pyright: basic, reportMissingImports=false
"""LangGraph: a checkpoint saver and a store over a memory.

`CerataSaver` keeps the checkpoints of threads, `CerataStore` the long-term items. Both read and
write exactly the scope of their store. Deleting hides data, and the log keeps it
(docs/langgraph.md).

Read first: `saver`.
"""

from ..extras import require

require("langgraph.checkpoint.base", "langgraph")

from .saver import CerataSaver  # noqa: E402
from .store import CerataStore  # noqa: E402

__all__ = ["CerataSaver", "CerataStore"]
