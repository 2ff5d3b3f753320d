"""The modules of the reads and writes that open no file.

Owns `load_resident_modules`, which `cerata.open` calls. A process may run out of descriptors later
and could then load no module; these calls must still answer. A command opens a store for a single
answer and loads only the modules of this answer (`loading_late`).
"""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from typing import Final

from cerata.engine.late import loading
from cerata.engine.packs import packs

_MODULES: Final = (
    "cerata.memory.batch.block",
    "cerata.memory.batch.owner_rules",
    "cerata.memory.batch.validation",
    "cerata.memory.embeddings.drafts",
    "cerata.memory.facts.aliases",
    "cerata.memory.facts.corrections",
    "cerata.memory.facts.drafts",
    "cerata.memory.facts.drafts",
    "cerata.memory.facts.repeats",
    "cerata.memory.facts.search",
    "cerata.memory.frames.access",
    "cerata.memory.frames.closing",
    "cerata.memory.frames.timeline",
    "cerata.memory.frames.events",
    "cerata.memory.frames.versions",
    "cerata.memory.frames.stored",
    "cerata.memory.frames.timeline",
    "cerata.memory.frames.value_counts",
    "cerata.memory.frames.versions",
    "cerata.memory.links.why",
    "cerata.memory.search.late_lane",
    "cerata.memory.search.search",
    "cerata.memory.search.vector_lane",
    "cerata.memory.snapshot.basis_columns",
    "cerata.memory.snapshot.fact_conversion",
    "cerata.memory.snapshot.frame_conversion",
    "cerata.memory.snapshot.layers",
    "cerata.memory.snapshot.snapshot",
    "cerata.memory.values.explanation",
    "cerata.memory.values.graph",
    "cerata.memory.values.graph",
    "cerata.memory.values.token_vectors",
    "cerata.memory.values.vectors",
    "cerata.projections.facts.entities",
    "cerata.projections.facts.projection",
    "cerata.projections.facts.graph",
    "cerata.projections.facts.projection",
    "cerata.projections.facts.repeats",
    "cerata.projections.facts.text_projection",
    "cerata.projections.frames.projection",
    "cerata.projections.fulltext.bm25",
    "cerata.projections.fulltext.projection",
    "cerata.projections.fulltext.turns.turn_ranking",
    "cerata.projections.links.labelling",
    "cerata.projections.links.projection",
    "cerata.projections.rows.built_in",
    "cerata.projections.rows.row_fold",
    "cerata.projections.rows.built_in",
    "cerata.projections.vectors.projection",
    "cerata.replay.vector_places",
    "cerata.replay.vector_store",
)

_IS_COMMAND: Final[ContextVar[bool]] = ContextVar("is_command", default=False)


@contextmanager
def loading_late() -> Generator[None]:
    """Open stores in the block without these modules; each is loaded when a read uses it."""
    token = _IS_COMMAND.set(True)
    try:
        yield
    finally:
        _IS_COMMAND.reset(token)


def load_resident_modules() -> None:
    """Load the modules, unless a command opens the store.

    Raises:
        StorageFailed: the system refused to read a module's file.
    """
    if not _IS_COMMAND.get():
        with loading("the reads and writes"):
            for name in (*_MODULES, *(name for pack in packs() for name in pack.resident)):
                import_module(name)
