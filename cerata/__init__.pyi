# The table of `__init__.py` for type checkers; tests/test_exports.py compares them.
from cerata import events as events
from cerata.engine.environment import Environment as Environment
from cerata.engine.errors import CerataError as CerataError
from cerata.engine.errors import Closed as Closed
from cerata.engine.errors import Conflict as Conflict
from cerata.engine.errors import Corrupt as Corrupt
from cerata.engine.errors import Diverged as Diverged
from cerata.engine.errors import EmbedderFailed as EmbedderFailed
from cerata.engine.errors import ExtractorFailed as ExtractorFailed
from cerata.engine.errors import HistoryPruned as HistoryPruned
from cerata.engine.errors import IdempotencyConflict as IdempotencyConflict
from cerata.engine.errors import InvalidInput as InvalidInput
from cerata.engine.errors import Locked as Locked
from cerata.engine.errors import NotFound as NotFound
from cerata.engine.errors import OutcomeUnknown as OutcomeUnknown
from cerata.engine.errors import ProjectionFailed as ProjectionFailed
from cerata.engine.errors import QuerySyntaxError as QuerySyntaxError
from cerata.engine.errors import ReadOnly as ReadOnly
from cerata.engine.errors import StorageFailed as StorageFailed
from cerata.engine.errors import Unsupported as Unsupported
from cerata.engine.events import Draft as Draft
from cerata.engine.events import Event as Event
from cerata.engine.events import EventBody as EventBody
from cerata.engine.events import event as event
from cerata.engine.events import upcaster as upcaster
from cerata.engine.head import Head as Head
from cerata.memory.batch.transaction import Transaction as Transaction
from cerata.memory.embeddings.commands import EmbeddedFrames as EmbeddedFrames
from cerata.memory.facts.changes import FactChange as FactChange
from cerata.memory.facts.drafts import Assertion as Assertion
from cerata.memory.facts.english import EnglishFacts as EnglishFacts
from cerata.memory.facts.extraction import Candidate as Candidate
from cerata.memory.facts.extraction import Extracted as Extracted
from cerata.memory.facts.extraction import Extraction as Extraction
from cerata.memory.facts.extraction import Extractor as Extractor
from cerata.memory.facts.importing import ImportedFacts as ImportedFacts
from cerata.memory.facts.search import FactHit as FactHit
from cerata.memory.frames.access import Access as Access
from cerata.memory.frames.diff import Change as Change
from cerata.memory.frames.diff import Diff as Diff
from cerata.memory.frames.value_counts import ValueCount as ValueCount
from cerata.memory.ingest.folder import Remembered as Remembered
from cerata.memory.ingest.folder import RememberedFile as RememberedFile
from cerata.memory.links.why import Reason as Reason
from cerata.memory.links.why import Why as Why
from cerata.memory.store import Store as Store
from cerata.memory.store import open_store
from cerata.memory.values.acts import Act as Act
from cerata.memory.values.arguments import content_hash as content_hash
from cerata.memory.values.embedder import RememberedEmbedder as RememberedEmbedder
from cerata.memory.values.explanation import Explanation as Explanation
from cerata.memory.values.facts import Contradiction as Contradiction
from cerata.memory.values.facts import Entity as Entity
from cerata.memory.values.facts import EntityInfo as EntityInfo
from cerata.memory.values.facts import EvidenceText as EvidenceText
from cerata.memory.values.facts import Fact as Fact
from cerata.memory.values.facts import FactEvidence as FactEvidence
from cerata.memory.values.facts import Period as Period
from cerata.memory.values.frames import Context as Context
from cerata.memory.values.frames import Frame as Frame
from cerata.memory.values.frames import Hit as Hit
from cerata.memory.values.frames import Hits as Hits
from cerata.memory.values.frames import Receipt as Receipt
from cerata.memory.values.frames import TimelineEntry as TimelineEntry
from cerata.memory.values.frames import TimelinePage as TimelinePage
from cerata.memory.values.graph import Cooccurrence as Cooccurrence
from cerata.memory.values.graph import FactPath as FactPath
from cerata.memory.values.graph import Neighbour as Neighbour
from cerata.memory.values.graph import Reached as Reached
from cerata.memory.values.links import Link as Link
from cerata.memory.view import View as View
from cerata.projections.columnar.intervals import Allen as Allen
from cerata.projections.facts.objects import Standing as Standing
from cerata.projections.frames.filters import Filter as Filter
from cerata.projections.frames.timeline import Position as Position
from cerata.projections.rows.row_projection import RowProjection as RowProjection
from cerata.retrieval.context.packing import ContextItem as ContextItem
from cerata.retrieval.context.packing import Omission as Omission
from cerata.retrieval.context.policies import ContextPolicy as ContextPolicy
from cerata.retrieval.embedders.embedder import CallableEmbedder as CallableEmbedder
from cerata.retrieval.embedders.embedder import Embedder as Embedder
from cerata.retrieval.embedders.embedder import TokenEmbedder as TokenEmbedder
from cerata.retrieval.embedders.endpoint import EndpointEmbedder as EndpointEmbedder
from cerata.retrieval.embedders.identity import EmbedderIdentity as EmbedderIdentity
from cerata.retrieval.embedders.minilm import MiniLMEmbedder as MiniLMEmbedder
from cerata.retrieval.embedders.sentence_transformers import (
    SentenceTransformersEmbedder as SentenceTransformersEmbedder,
)
from cerata.retrieval.query_language.parser import query as query
from cerata.retrieval.ranking.profiles import Profile as Profile
from cerata.retrieval.ranking.relevance import Floor as Floor

__all__: list[str]  # noqa: PYI035 - the imports above are the list
__version__: str
open = open_store  # noqa: A001 - the front door's own verb
