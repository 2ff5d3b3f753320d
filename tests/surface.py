"""The public surface of a store or view: its names, and the functions of packs that take it first.

Tests that have a case for every call compare their tables with it.
"""

from typing import Final

from cerata.memory.handles import public_names
from cerata.memory.store import Store
from cerata.memory.values.renamed import functions
from cerata.memory.view import View

WRITES: Final = frozenset({"judge", "record_access", "remember_messages"})
"""The functions of packs that write, so that a view has none of them."""

ELSEWHERE: Final = frozenset({"draw_facts", "draw_graph", "tune"})
"""The functions of packs whose cases are beside their packs: they need an extra, or judgements."""


def surface(kind: type) -> set[str]:
    """Return the names of a class; of a store or view, also functions of packs."""
    if not issubclass(kind, Store | View):
        return {*public_names(kind)}
    of_packs = functions().keys() - ELSEWHERE
    return {*public_names(kind), *(of_packs - WRITES if issubclass(kind, View) else of_packs)}
