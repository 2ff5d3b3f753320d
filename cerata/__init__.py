"""Cerata: the memory of AI agents, in one file that is an append-only log.

This package only re-exports names; the rooms are `cerata.engine`, `cerata.projections`,
`cerata.replay`, `cerata.retrieval`, `cerata.memory`, `cerata.cli` and `cerata.fault_injection`.
Start reading at docs/index.md.

A name is loaded on first use: importing Cerata costs milliseconds, the first `open` the rest
(numpy, mostly).

>>> import cerata
>>> with cerata.open(":memory:") as store:
...     note = store.remember("The index we use is Annoy: it fits in memory.", tags=["decision"])
...     change = store.supersede(note, "The index we use is HNSW: recall under 5 ms.")
...     print(store.search("which index do we use?")[0].text)
...     print(store.at(note).search("which index do we use?")[0].text)
The index we use is HNSW: recall under 5 ms.
The index we use is Annoy: it fits in memory.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cerata.engine.environment import Environment
    from cerata.engine.errors import (
        CerataError,
        Closed,
        Conflict,
        Corrupt,
        Diverged,
        EmbedderFailed,
        ExtractorFailed,
        HistoryPruned,
        IdempotencyConflict,
        InvalidInput,
        Locked,
        NotFound,
        OutcomeUnknown,
        ProjectionFailed,
        QuerySyntaxError,
        ReadOnly,
        StorageFailed,
        Unsupported,
    )
    from cerata.engine.events import Draft, Event, EventBody, event, upcaster
    from cerata.engine.head import Head
    from cerata.memory.batch.transaction import Transaction
    from cerata.memory.embeddings.commands import EmbeddedFrames
    from cerata.memory.facts.changes import FactChange
    from cerata.memory.facts.drafts import Assertion
    from cerata.memory.facts.english import EnglishFacts
    from cerata.memory.facts.extraction import Candidate, Extracted, Extraction, Extractor
    from cerata.memory.facts.importing import ImportedFacts
    from cerata.memory.facts.search import FactHit
    from cerata.memory.frames.access import Access
    from cerata.memory.frames.diff import Change, Diff
    from cerata.memory.ingest.folder import Remembered, RememberedFile
    from cerata.memory.links.why import Reason, Why
    from cerata.memory.store import Store
    from cerata.memory.store import open_store as open  # noqa: A004 - the front door's own verb
    from cerata.memory.values.arguments import content_hash
    from cerata.memory.values.explanation import Explanation
    from cerata.memory.values.facts import (
        Contradiction,
        Entity,
        EntityInfo,
        EvidenceText,
        Fact,
        FactEvidence,
        Period,
    )
    from cerata.memory.values.frames import (
        Context,
        Frame,
        Hit,
        Receipt,
        TimelineEntry,
        TimelinePage,
    )
    from cerata.memory.values.graph import Cooccurrence, FactPath, Neighbour, Reached
    from cerata.memory.values.links import Link
    from cerata.memory.view import View
    from cerata.projections.columnar.intervals import Allen
    from cerata.projections.facts.objects import Standing
    from cerata.projections.frames.filters import Filter
    from cerata.projections.frames.timeline import Position
    from cerata.projections.rows.row_projection import RowProjection
    from cerata.retrieval.context.packing import ContextItem, Omission
    from cerata.retrieval.context.policies import ContextPolicy
    from cerata.retrieval.embedders.embedder import CallableEmbedder, Embedder, TokenEmbedder
    from cerata.retrieval.embedders.endpoint import EndpointEmbedder
    from cerata.retrieval.embedders.identity import EmbedderIdentity
    from cerata.retrieval.embedders.minilm import MiniLMEmbedder
    from cerata.retrieval.embedders.sentence_transformers import SentenceTransformersEmbedder
    from cerata.retrieval.query_language.parser import query
    from cerata.retrieval.ranking.profiles import Profile

__all__ = [
    "Access",
    "Allen",
    "Assertion",
    "CallableEmbedder",
    "Candidate",
    "CerataError",
    "Change",
    "Closed",
    "Conflict",
    "Context",
    "ContextItem",
    "ContextPolicy",
    "Contradiction",
    "Cooccurrence",
    "Corrupt",
    "Diff",
    "Diverged",
    "Draft",
    "EmbeddedFrames",
    "Embedder",
    "EmbedderFailed",
    "EmbedderIdentity",
    "EndpointEmbedder",
    "EnglishFacts",
    "Entity",
    "EntityInfo",
    "Environment",
    "Event",
    "EventBody",
    "EvidenceText",
    "Explanation",
    "Extracted",
    "Extraction",
    "Extractor",
    "ExtractorFailed",
    "Fact",
    "FactChange",
    "FactEvidence",
    "FactHit",
    "FactPath",
    "Filter",
    "Frame",
    "Head",
    "HistoryPruned",
    "Hit",
    "IdempotencyConflict",
    "ImportedFacts",
    "InvalidInput",
    "Link",
    "Locked",
    "MiniLMEmbedder",
    "Neighbour",
    "NotFound",
    "Omission",
    "OutcomeUnknown",
    "Period",
    "Position",
    "Profile",
    "ProjectionFailed",
    "QuerySyntaxError",
    "Reached",
    "ReadOnly",
    "Reason",
    "Receipt",
    "Remembered",
    "RememberedFile",
    "RowProjection",
    "SentenceTransformersEmbedder",
    "Standing",
    "StorageFailed",
    "Store",
    "TimelineEntry",
    "TimelinePage",
    "TokenEmbedder",
    "Transaction",
    "Unsupported",
    "View",
    "Why",
    "__version__",
    "content_hash",
    "event",
    "open",
    "query",
    "upcaster",
]

__version__ = "0.1.0"

_HOMES = {
    "cerata.engine.environment": ("Environment",),
    "cerata.engine.errors": (
        "CerataError",
        "Closed",
        "Conflict",
        "Corrupt",
        "Diverged",
        "EmbedderFailed",
        "ExtractorFailed",
        "HistoryPruned",
        "IdempotencyConflict",
        "InvalidInput",
        "Locked",
        "NotFound",
        "OutcomeUnknown",
        "ProjectionFailed",
        "QuerySyntaxError",
        "ReadOnly",
        "StorageFailed",
        "Unsupported",
    ),
    "cerata.engine.events": ("Draft", "Event", "EventBody", "event", "upcaster"),
    "cerata.engine.head": ("Head",),
    "cerata.memory.frames.diff": ("Change", "Diff"),
    "cerata.memory.values.arguments": ("content_hash",),
    "cerata.memory.frames.access": ("Access",),
    "cerata.memory.facts.drafts": ("Assertion",),
    "cerata.memory.facts.changes": ("FactChange",),
    "cerata.memory.facts.search": ("FactHit",),
    "cerata.memory.values.facts": (
        "Contradiction",
        "Entity",
        "EntityInfo",
        "EvidenceText",
        "Fact",
        "FactEvidence",
        "Period",
    ),
    "cerata.memory.embeddings.commands": ("EmbeddedFrames",),
    "cerata.memory.facts.english": ("EnglishFacts",),
    "cerata.memory.values.explanation": ("Explanation",),
    "cerata.memory.facts.extraction": ("Candidate", "Extracted", "Extraction", "Extractor"),
    "cerata.memory.facts.importing": ("ImportedFacts",),
    "cerata.memory.ingest.folder": ("Remembered", "RememberedFile"),
    "cerata.memory.values.graph": ("Cooccurrence", "FactPath", "Neighbour", "Reached"),
    "cerata.memory.links.why": ("Reason", "Why"),
    "cerata.memory.values.links": ("Link",),
    "cerata.memory.store": ("Store", "open"),
    "cerata.memory.batch.transaction": ("Transaction",),
    "cerata.memory.values.frames": (
        "Context",
        "Frame",
        "Hit",
        "Receipt",
        "TimelineEntry",
        "TimelinePage",
    ),
    "cerata.memory.view": ("View",),
    "cerata.projections.facts.objects": ("Standing",),
    "cerata.projections.frames.filters": ("Filter",),
    "cerata.projections.columnar.intervals": ("Allen",),
    "cerata.projections.rows.row_projection": ("RowProjection",),
    "cerata.projections.frames.timeline": ("Position",),
    "cerata.retrieval.context.packing": ("ContextItem", "Omission"),
    "cerata.retrieval.embedders.embedder": ("CallableEmbedder", "Embedder", "TokenEmbedder"),
    "cerata.retrieval.embedders.endpoint": ("EndpointEmbedder",),
    "cerata.retrieval.embedders.identity": ("EmbedderIdentity",),
    "cerata.retrieval.embedders.minilm": ("MiniLMEmbedder",),
    "cerata.retrieval.embedders.sentence_transformers": ("SentenceTransformersEmbedder",),
    "cerata.retrieval.context.policies": ("ContextPolicy",),
    "cerata.retrieval.ranking.profiles": ("Profile",),
    "cerata.retrieval.query_language.parser": ("query",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    """Load a public name from its room, once."""
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'cerata' has no attribute {name!r}")
    from cerata.engine.loading import loading

    with loading(home):
        module = importlib.import_module(home)
    value: object = getattr(module, "open_store" if name == "open" else name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
