"""Cerata: the memory of AI agents, in one file that is an append-only log.

This package only re-exports names; the rooms are `cerata.engine`, `cerata.projections`,
`cerata.replay`, `cerata.retrieval`, `cerata.memory`, `cerata.agents`, `cerata.aio`,
`cerata.cli` and `cerata.fault_injection`.
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

__version__ = "0.1.0"

PACKS = (
    "integrations.langgraph",
    "agents.slots",
    "agents.growth",
    "agents.activities",
    "agents.turns",
    "agents",
    "packs.plots",
    "packs.tuning",
    "packs.experiments",
    "integrations.importers",
    "integrations.mcp",
    "integrations.langchain",
    "integrations.openai_agents",
    "integrations.anthropic",
    "integrations.google_adk",
    "fault_injection.command",
)
"""The packs that Cerata ships, in the order in which their states are saved."""

_HOMES = """
agents.activities.values Activity Call Lineage Reference Result
agents.agent Agent
agents.contexts.assembly Assembly AssemblyItem Block
agents.continuity.exchanges Exchange Message
agents.continuity.handoff Handoff
agents.continuity.models Extractive Model Task
agents.contexts.recorded AssemblyRerun
agents.continuity.reflecting Reflection
agents.continuity.retrieval Recalled RecalledExchange RecalledKnowledge
agents.continuity.summaries Summary
agents.continuity.tasks TaskReport
agents.continuity.threads Thread Topic
agents.entities.meta_patterns MetaPattern PatternChain
agents.entities.pending_names NameCandidate PendingName
agents.function agent
agents.growth.identity Identity IdentityFile
agents.growth.proposals Gate Gates Proposal
agents.prompt RunContext
agents.replayed Divergence
agents.rerun Rerun
agents.run Run
agents.session Session
agents.slot Slot SlotItem
agents.spec MemorySpec conversation_memory scratchpad semantic_memory
agents.spec_yaml load_memory
agents.sweep AgentSweep
engine.disk.environment Environment
engine.errors BisectFailed CerataError Closed Conflict Corrupt Diverged EmbedderFailed
engine.errors ExtractorFailed HistoryPruned IdempotencyConflict InvalidInput Locked
engine.errors ModelFailed NotFound OutcomeUnknown
engine.errors ProjectionFailed QuerySyntaxError ReadOnly Refused RerankerFailed RerunFailed
engine.errors StorageFailed UnreadableItem Unsupported
engine.events Draft Event EventBody event upcaster
engine.head Head
engine.log_file.lineage Branch
engine.packs Owned Pack Role State
memory.batch.transaction Transaction
memory.bisection Bisection Probe
memory.compaction Compaction Maintenance
memory.embeddings.commands EmbeddedFrames
memory.event_stream EventStream
memory.facts.changes FactChange
memory.facts.drafts Assertion
memory.facts.english EnglishFacts
memory.facts.extraction Candidate Extracted Extraction Extractor
memory.facts.importing ImportedFacts
memory.facts.search FactHit
memory.forks ForkDiff
memory.frames.access Access
memory.frames.audit Audit AuditEntry
memory.frames.blame Blame FieldBlame
memory.frames.diff Change Diff
memory.frames.history HistoryEntry
memory.frames.value_counts ValueCount
memory.ingest.folder Remembered RememberedFile
memory.ingest.formats.document Flaw
memory.interchange.export ExportedEvents
memory.interchange.importing ImportedEvents
memory.links.why Reason Why
memory.recall_explanation ExplainedLine RecallExplanation
memory.search.recall_rerun EntryDifference RecallRerun
memory.store Store open
memory.values.acts Act
memory.values.arguments content_hash
memory.values.embedder RememberedEmbedder
memory.values.explanation Explanation ResultChange
memory.values.facts Contradiction Entity EntityInfo EvidenceText Fact FactEvidence Period
memory.values.frames Context Frame Hit Hits Receipt TimelineEntry TimelinePage
memory.values.graph Cooccurrence FactPath Link Neighbour Reached
memory.values.options FactOptions Layout OpenOptions Page PutOptions Ranking Vectors WriteOptions
memory.values.text_diff DiffLine
memory.view View
packs.tuning.judgements Judgement
packs.tuning.tuning ProfileGain Tuning
projections.columnar.times Allen
agents.turns.dynamics.projection Dynamics DynamicsState Surprise
projections.facts.objects Standing
projections.frames.filters Filter
projections.frames.timeline Position
projections.rows.row_projection RowProjection
retrieval.context.blocks ContextItem
retrieval.context.packing Omission
retrieval.context.policies ContextPolicy
retrieval.embedders.embedder CallableEmbedder ContextEmbedder Embedder TokenEmbedder TurnWindow
retrieval.embedders.endpoint EndpointEmbedder
retrieval.embedders.identity EmbedderIdentity
retrieval.embedders.minilm MiniLMEmbedder
retrieval.embedders.sentence_transformers SentenceTransformersEmbedder
retrieval.query_language.parser query
retrieval.ranking.profile Profile
retrieval.ranking.relevance Floor
retrieval.reranker Reranker
"""
"""A module and its public names in each line; `__init__.pyi` gives type checkers the same names."""
_HOME_OF = {
    name: f"cerata.{home}"
    for home, *names in map(str.split, _HOMES.strip().splitlines())
    for name in names
}
_MODULES = {"events": "cerata", "plots": "cerata.packs", "tuning": "cerata.packs"}
_HOME_OF |= _MODULES
__all__ = sorted(["__version__", *_HOME_OF])  # noqa: PLE0605 - made from the table


def __getattr__(name: str) -> object:
    """Load a public name from its room, once."""
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'cerata' has no attribute {name!r}{_place_of(name)}")
    if name in _MODULES:
        return importlib.import_module(f"{home}.{name}")
    from cerata.engine.late import loading

    with loading(home):
        module = importlib.import_module(home)
    value: object = getattr(module, "open_store" if name == "open" else name)
    globals()[name] = value
    return value


def _place_of(name: str) -> str:
    """Return the place of a function of a pack, for the error about its name."""
    from cerata.engine.packs import packs

    places = (pack.functions.get(name) for pack in packs() if not name.startswith("_"))
    return next((f": use {place} (docs/renamed.md)" for place in places if place), "")


def __dir__() -> list[str]:
    return __all__
