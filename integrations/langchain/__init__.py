# Where the extra langchain is missing, its types are unknown.
# pyright: basic, reportMissingImports=false
"""LangChain: a vector store, a retriever and a store of bytes over a memory.

`CerataVectorStore` and `CerataByteStore` keep documents and bytes as frames, `CerataRetriever`
searches the whole memory, also at a past point. Each reads and writes exactly the scope of its
store. Deleting hides data, and the log keeps it (docs/langchain.md).

Read first: `vector_store`.
"""

from ..extras import require

require("langchain_core.vectorstores", "langchain")

from .byte_store import CerataByteStore  # noqa: E402
from .retriever import CerataRetriever  # noqa: E402
from .vector_store import CerataVectorStore  # noqa: E402

__all__ = ["CerataByteStore", "CerataRetriever", "CerataVectorStore"]
