# Where the extra langgraph is missing, its types are unknown.
# pyright: basic, reportMissingImports=false
"""LangGraph: a checkpoint saver and a store over a memory.

`CerataSaver` keeps the checkpoints of threads, `CerataStore` the long-term items. Both read and
write exactly the scope of their store. Deleting hides data, and the log keeps it
(docs/langgraph.md).

Read first: `saver`.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .saver import CerataSaver
    from .store import CerataStore

__all__ = ["CerataSaver", "CerataStore"]

_MODULES = {"CerataSaver": "saver", "CerataStore": "store"}


def __getattr__(name: str) -> object:
    """Load the framework with the first name: events and rows of a log need none."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    from ..extras import require

    require("langgraph.checkpoint.base", "langgraph")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
