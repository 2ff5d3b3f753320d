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
    from cerata.memory.access import Access
    from cerata.memory.asserting import Assertion
    from cerata.memory.believing import Reason, Why
    from cerata.memory.difference import Change, Diff
    from cerata.memory.drafting import content_hash
    from cerata.memory.embedding import EmbeddedFrames
    from cerata.memory.english_facts import EnglishFacts
    from cerata.memory.explanation import Explanation
    from cerata.memory.extraction import Candidate, Extracted, Extraction, Extractor
    from cerata.memory.fact_changes import FactChange
    from cerata.memory.fact_import import ImportedFacts
    from cerata.memory.fact_search import FactHit
    from cerata.memory.fact_values import (
        Contradiction,
        Entity,
        EntityInfo,
        EvidenceText,
        Fact,
        FactEvidence,
        Period,
    )
    from cerata.memory.files import Remembered, RememberedFile
    from cerata.memory.graph_values import Cooccurrence, FactPath, Neighbour, Reached
    from cerata.memory.link_values import Link
    from cerata.memory.store import Store
    from cerata.memory.store import open_store as open  # noqa: A004 - the front door's own verb
    from cerata.memory.transaction import Transaction
    from cerata.memory.values import Context, Frame, Hit, Receipt, TimelineEntry, TimelinePage
    from cerata.memory.view import View
    from cerata.projections.fact_values import Standing
    from cerata.projections.filters import Filter
    from cerata.projections.intervals import Allen
    from cerata.projections.rows import RowProjection
    from cerata.projections.timeline import Position
    from cerata.retrieval.context import ContextItem, Omission
    from cerata.retrieval.embedders.embedder import CallableEmbedder, Embedder, TokenEmbedder
    from cerata.retrieval.embedders.endpoint import EndpointEmbedder
    from cerata.retrieval.embedders.identity import EmbedderIdentity
    from cerata.retrieval.embedders.minilm import MiniLMEmbedder
    from cerata.retrieval.embedders.sentence_transformers import SentenceTransformersEmbedder
    from cerata.retrieval.policies import ContextPolicy
    from cerata.retrieval.profiles import Profile
    from cerata.retrieval.query import query

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
    "cerata.memory.difference": ("Change", "Diff"),
    "cerata.memory.drafting": ("content_hash",),
    "cerata.memory.access": ("Access",),
    "cerata.memory.asserting": ("Assertion",),
    "cerata.memory.fact_changes": ("FactChange",),
    "cerata.memory.fact_search": ("FactHit",),
    "cerata.memory.fact_values": (
        "Contradiction",
        "Entity",
        "EntityInfo",
        "EvidenceText",
        "Fact",
        "FactEvidence",
        "Period",
    ),
    "cerata.memory.embedding": ("EmbeddedFrames",),
    "cerata.memory.english_facts": ("EnglishFacts",),
    "cerata.memory.explanation": ("Explanation",),
    "cerata.memory.extraction": ("Candidate", "Extracted", "Extraction", "Extractor"),
    "cerata.memory.fact_import": ("ImportedFacts",),
    "cerata.memory.files": ("Remembered", "RememberedFile"),
    "cerata.memory.graph_values": ("Cooccurrence", "FactPath", "Neighbour", "Reached"),
    "cerata.memory.believing": ("Reason", "Why"),
    "cerata.memory.link_values": ("Link",),
    "cerata.memory.store": ("Store", "open"),
    "cerata.memory.transaction": ("Transaction",),
    "cerata.memory.values": (
        "Context",
        "Frame",
        "Hit",
        "Receipt",
        "TimelineEntry",
        "TimelinePage",
    ),
    "cerata.memory.view": ("View",),
    "cerata.projections.fact_values": ("Standing",),
    "cerata.projections.filters": ("Filter",),
    "cerata.projections.intervals": ("Allen",),
    "cerata.projections.rows": ("RowProjection",),
    "cerata.projections.timeline": ("Position",),
    "cerata.retrieval.context": ("ContextItem", "Omission"),
    "cerata.retrieval.embedders.embedder": ("CallableEmbedder", "Embedder", "TokenEmbedder"),
    "cerata.retrieval.embedders.endpoint": ("EndpointEmbedder",),
    "cerata.retrieval.embedders.identity": ("EmbedderIdentity",),
    "cerata.retrieval.embedders.minilm": ("MiniLMEmbedder",),
    "cerata.retrieval.embedders.sentence_transformers": ("SentenceTransformersEmbedder",),
    "cerata.retrieval.policies": ("ContextPolicy",),
    "cerata.retrieval.profiles": ("Profile",),
    "cerata.retrieval.query": ("query",),
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
