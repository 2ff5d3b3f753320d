"""The bodies of events: the content of `cerata.Event.body`, and the arguments of `Store.append`.

>>> import cerata
>>> with cerata.open(":memory:", actor="importer") as store:
...     receipt = store.append(cerata.events.PutFrame(text="Wax keeps.", tags=("old",)))
...     [event] = store.log()
...     print(event.actor, event.body.text)
importer Wax keeps.
"""

from cerata.engine.events import (
    AccessFrames,
    AssertFact,
    Attachment,
    Branch,
    DeleteFrame,
    Embedding,
    Erase,
    Erased,
    EventBody,
    Evidence,
    ExtractFacts,
    Gap,
    ImportBatch,
    LinkFacts,
    MergeEntities,
    PutEmbedding,
    PutEntity,
    PutFrame,
    PutPredicate,
    PutTag,
    RecallContext,
    RetractFact,
    SplitEntity,
    SupersedeFrame,
    UnknownBody,
    UnlinkFacts,
    UnmergeEntities,
    UnsplitEntity,
    UseEmbedder,
)

__all__ = [
    "AccessFrames",
    "AssertFact",
    "Attachment",
    "Branch",
    "DeleteFrame",
    "Embedding",
    "Erase",
    "Erased",
    "EventBody",
    "Evidence",
    "ExtractFacts",
    "Gap",
    "ImportBatch",
    "LinkFacts",
    "MergeEntities",
    "PutEmbedding",
    "PutEntity",
    "PutFrame",
    "PutPredicate",
    "PutTag",
    "RecallContext",
    "RetractFact",
    "SplitEntity",
    "SupersedeFrame",
    "UnknownBody",
    "UnlinkFacts",
    "UnmergeEntities",
    "UnsplitEntity",
    "UseEmbedder",
]
