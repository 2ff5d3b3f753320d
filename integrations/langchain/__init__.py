# Where the extra langchain is missing, its types are unknown.
# pyright: basic, reportMissingImports=false
"""LangChain: a vector store, a retriever and a store of bytes over a memory.

`CerataVectorStore` and `CerataByteStore` keep documents and bytes as frames, `CerataRetriever`
searches the whole memory, also at a past point. Each reads and writes exactly the scope of its
store. Deleting hides data, and the log keeps it (docs/langchain.md).

Read first: `vector_store`.
"""

from typing import TYPE_CHECKING

from ..extras import names_with

if TYPE_CHECKING:
    from .byte_store import CerataByteStore
    from .retriever import CerataRetriever
    from .vector_store import CerataVectorStore

__all__ = ["CerataByteStore", "CerataRetriever", "CerataVectorStore"]

__getattr__ = names_with(
    __name__,
    "langchain_core.vectorstores",
    "langchain",
    {
        "CerataByteStore": "byte_store",
        "CerataRetriever": "retriever",
        "CerataVectorStore": "vector_store",
    },
)
