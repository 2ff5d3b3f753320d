# Made by `python -m tools.async_stub` from cerata.Store, View and open.

import os
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import date, datetime
from pathlib import Path
from typing import Any, Literal, ParamSpec, Self, TypeAlias, TypeVar, overload

import numpy.typing as npt
from msgspec import UnsetType

from cerata.aio.opening import Opening
from cerata.aio.streams import AsyncEventStream
from cerata.engine.environment import Environment
from cerata.engine.events import Draft, Event, EventBody, JsonValue, Scope, ScopeValue
from cerata.engine.handle import Handle
from cerata.engine.head import Head
from cerata.engine.lineage import Branch
from cerata.engine.log import SyncPolicy
from cerata.engine.packs import Pack
from cerata.engine.recovery import RecoveryReport
from cerata.memory.batch.transaction import Transaction
from cerata.memory.bisection import Bisection, Probe, Test, Unit
from cerata.memory.compaction import Compaction, Maintenance, Progress
from cerata.memory.embeddings.commands import EmbeddedFrames
from cerata.memory.event_stream import EventType
from cerata.memory.facts.drafts import Assertion, EvidenceLike
from cerata.memory.facts.extraction import Extraction, Extractor, Report
from cerata.memory.facts.importing import ImportedFacts
from cerata.memory.facts.importing import Progress as ImportingProgress
from cerata.memory.facts.reads import PeriodLike
from cerata.memory.facts.search import FactHit
from cerata.memory.forks import ForkDiff
from cerata.memory.frames.access import Access
from cerata.memory.frames.audit import Audit
from cerata.memory.frames.blame import Blame
from cerata.memory.frames.diff import Diff
from cerata.memory.frames.history import HistoryEntry
from cerata.memory.frames.log_reads import OwnType
from cerata.memory.frames.things import AnyThing
from cerata.memory.frames.value_counts import ValueCount
from cerata.memory.graph.reads import EntityLike
from cerata.memory.ingest.folder import Remembered
from cerata.memory.ingest.folder import Report as FolderReport
from cerata.memory.ingest.formats.document import Document
from cerata.memory.interchange.export import ExportedEvents, ExportProgress
from cerata.memory.interchange.importing import ImportedEvents, ImportProgress
from cerata.memory.interchange.line_files import Target as LineFilesTarget
from cerata.memory.links.why import Why
from cerata.memory.recall_explanation import RecallExplanation
from cerata.memory.recall_reads import RecallId
from cerata.memory.search.request import Grouping, Mode, Rerank
from cerata.memory.store import Store
from cerata.memory.tuning.recall_rerun import RecallRerun
from cerata.memory.values.embedder import RememberedEmbedder
from cerata.memory.values.explanation import Explanation
from cerata.memory.values.facts import (
    Contradiction,
    Entity,
    EntityInfo,
    EvidenceText,
    Fact,
    FactId,
    FactObject,
)
from cerata.memory.values.frames import (
    Context,
    Frame,
    FrameId,
    Hit,
    Hits,
    Receipt,
    Stored,
    TimelinePage,
)
from cerata.memory.values.graph import Cooccurrence, FactPath, Neighbour, Reached
from cerata.memory.values.links import Link, LinkId, LinkKindName, Target
from cerata.memory.values.vectors import Vector, Vectors
from cerata.memory.view import Basis, View
from cerata.projections.columnar.intervals import Allen
from cerata.projections.facts.graph import Direction
from cerata.projections.frames.filter_tests import TimeRange
from cerata.projections.frames.filters import Filter
from cerata.projections.frames.timeline import Position, TimelineOrder
from cerata.projections.fulltext.query import Query
from cerata.projections.rows.row_fold import OwnProjection
from cerata.projections.rows.row_projection import RowProjection
from cerata.projections.vectors.columns import Matrix
from cerata.projections.vectors.maxsim import Tokens
from cerata.replay.rebuild import Rebuild
from cerata.replay.verify import Verification
from cerata.retrieval.context.entries import Form
from cerata.retrieval.context.packing import Order
from cerata.retrieval.context.policies import ContextPolicy
from cerata.retrieval.embedders.embedder import Embedder
from cerata.retrieval.embedders.embedder import Progress as EmbedderProgress
from cerata.retrieval.ranking.profile import Profile
from cerata.retrieval.ranking.relevance import Floor

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")

class AsyncView(Handle):
    @property
    def sync(self) -> View: ...
    async def run(
        self,
        function: Callable[_Arguments, _Result],
        *arguments: _Arguments.args,
        **named: _Arguments.kwargs,
    ) -> _Result: ...
    async def access(self, frame: FrameId) -> Access: ...
    async def accesses(self) -> list[Access]: ...
    async def around(self, frame: FrameId, *, before: int = 1, after: int = 1) -> list[Frame]: ...
    async def at(
        self,
        basis: AsyncBasis,
        *,
        valid_at: date | str | None = None,
        now: date | str | None = None,
    ) -> AsyncView: ...
    async def audit(
        self,
        *,
        type: str | type[EventBody] | None = None,
        actor: str | None = None,
        correlation: str | None = None,
        causation: int | None = None,
        scope: Scope | Mapping[str, ScopeValue] | None = None,
        since: date | str | None = None,
        until: date | str | None = None,
    ) -> Audit: ...
    @property
    def basis(self) -> int: ...
    async def blame(self, thing: AnyThing) -> Blame: ...
    async def children(self, frame: FrameId) -> list[int]: ...
    async def chunks(self, document: FrameId) -> dict[int, int]: ...
    async def conflicts(
        self, subject: str | Entity | None = None, predicate: str | None = None
    ) -> list[Contradiction]: ...
    async def content(self, frame: FrameId) -> bytes: ...
    async def cooccurring(
        self, entity: EntityLike, *, valid_at: date | str | None = None, facts_max: int = ...
    ) -> list[Cooccurrence]: ...
    async def count(self, where: Filter | None = None) -> tuple[int, int]: ...
    async def embedding(self, frame: FrameId, space: str | None = None) -> Matrix | None: ...
    def entities(self, kind: str | None = None) -> AsyncIterator[EntityInfo]: ...
    async def entity(self, name: str | Entity) -> EntityInfo: ...
    async def evidence(self, fact: FactId) -> list[EvidenceText]: ...
    @overload
    async def explain(self, hit: Hit) -> Explanation: ...
    @overload
    async def explain(self, hit: RecallId) -> RecallExplanation: ...
    def export_facts(self, *, history: bool = False) -> AsyncIterator[str]: ...
    async def fact(self, fact: FactId) -> Fact: ...
    async def fact_history(
        self, subject: str | Entity, predicate: str | None = None
    ) -> list[Fact]: ...
    async def facts(
        self,
        subject: str | Entity | None = None,
        predicate: str | None = None,
        object: FactObject | None = None,
        *,
        valid_at: date | str | None = None,
        overlapping: PeriodLike | None = None,
        allen: tuple[Allen | str, PeriodLike] | None = None,
        include_ended: bool = False,
        include_retracted: bool = False,
        include_invalid: bool = False,
    ) -> list[Fact]: ...
    async def find_content(self, content_hash: bytes) -> list[int]: ...
    async def find_stored(
        self, content_hash: bytes, *, chunk_count: int | None = None, space: str | None = None
    ) -> list[Stored]: ...
    async def find_uri(self, uri: str) -> list[int]: ...
    async def frame(self, frame: FrameId) -> Frame: ...
    def frames(
        self,
        where: Filter | None = None,
        *,
        include_superseded: bool = False,
        include_deleted: bool = False,
        include_chunks: bool = False,
    ) -> AsyncIterator[Frame]: ...
    async def get(self, uri: str) -> Frame | None: ...
    async def head(self) -> Head: ...
    async def highlights(self, text: str, query: str | Query) -> list[tuple[int, int]]: ...
    @overload
    async def history(self, thing: Frame | Hit) -> list[Frame]: ...
    @overload
    async def history(
        self, thing: Fact | Link | Entity | EntityInfo | str
    ) -> list[HistoryEntry]: ...
    @overload
    async def history(self, thing: int | Receipt) -> list[Any]: ...
    async def last(
        self,
        count: int = 10,
        *,
        track: str | None = None,
        where: Filter | None = None,
        include_chunks: bool = False,
    ) -> list[Frame]: ...
    async def links(
        self,
        thing: Target | None = None,
        kind: LinkKindName | None = None,
        *,
        include_unlinked: bool = False,
    ) -> list[Link]: ...
    def log(
        self,
        first: int = 1,
        last: int | None = None,
        *,
        type: str | type[EventBody] | None = None,
        actor: str | None = None,
        correlation: str | None = None,
        causation: int | None = None,
        scope: Scope | Mapping[str, ScopeValue] | None = None,
        since: date | str | None = None,
        until: date | str | None = None,
    ) -> AsyncIterator[Event]: ...
    @property
    def log_id(self) -> bytes: ...
    async def messages(
        self, last: int | None = None, *, track: str | None = None, where: Filter | None = None
    ) -> list[dict[str, JsonValue]]: ...
    async def neighbours(
        self,
        entity: EntityLike,
        *,
        predicate: str | None = None,
        direction: Direction = "both",
        valid_at: date | str | None = None,
        facts_max: int = ...,
    ) -> list[Neighbour]: ...
    async def now(self) -> datetime: ...
    async def paths(
        self,
        start: EntityLike,
        end: EntityLike,
        *,
        hops_max: int = 4,
        limit: int = 10,
        predicate: str | None = None,
        direction: Direction = "both",
        valid_at: date | str | None = None,
        facts_max: int = ...,
    ) -> list[FactPath]: ...
    @overload
    async def projection(self, which: str) -> OwnProjection: ...
    @overload
    async def projection(self, which: type[OwnType]) -> OwnType: ...
    async def recall(
        self,
        query: str | Query,
        *,
        embedding: Vector | None = None,
        space: str | None = None,
        mode: Mode = "hybrid",
        max_tokens: int = 1500,
        entry_tokens: int = ...,
        where: Filter | None = None,
        when: TimeRange | None = None,
        profile: str | Profile | None = None,
        form: Form = "text",
        policy: str | ContextPolicy | None = None,
        order: Order = "score",
        framing: bool = False,
        record: bool = False,
        include_superseded: bool = False,
        neighbours: int = 0,
        approximate: bool = False,
        token_embedding: Vectors | None = None,
        tokens_space: str | None = None,
        token_weights: Vector | None = None,
        rerank: Rerank = None,
        actor: str | None = None,
        floor: Floor | bool = True,
    ) -> Context: ...
    async def remembered_embedder(self) -> RememberedEmbedder | None: ...
    async def rerun_recall(self, recall: RecallId) -> RecallRerun: ...
    async def resolve(self, name: str | Entity) -> list[str]: ...
    @property
    def scope(self) -> Scope | None: ...
    async def search(
        self,
        query: str | Query | npt.NDArray[Any],
        *,
        embedding: Vector | None = None,
        space: str | None = None,
        k: int = 10,
        mode: Mode = "hybrid",
        where: Filter | None = None,
        when: TimeRange | None = None,
        profile: str | Profile | None = None,
        include_superseded: bool = False,
        include_deleted: bool = False,
        approximate: bool = False,
        token_embedding: Vectors | None = None,
        tokens_space: str | None = None,
        token_weights: Vector | None = None,
        rerank: Rerank = None,
        offset: int = 0,
        after: Hit | None = None,
        group_by: Grouping = "content",
        min_cosine: float | None = None,
        min_score: float | None = None,
    ) -> Hits: ...
    async def search_facts(
        self, query: str | Entity, *, k: int = 10, valid_at: date | str | None = None
    ) -> list[FactHit]: ...
    @property
    def shared(self) -> bool: ...
    async def since(
        self, basis: AsyncBasis, *, query: str | Query | None = None, k: int = 10
    ) -> Diff: ...
    async def source_of(self, frame: Frame) -> str: ...
    async def speculate(self, *events: EventBody | Draft) -> AsyncView: ...
    async def tags(self) -> dict[str, int]: ...
    async def timeline(
        self,
        *,
        by: TimelineOrder = "content",
        start: date | str | None = None,
        end: date | str | None = None,
        where: Filter | None = None,
        after: Position | None = None,
        limit: int = 50,
        newest_first: bool = True,
        include_superseded: bool = False,
        include_deleted: bool = False,
        include_chunks: bool = False,
    ) -> TimelinePage: ...
    async def token_embedding(self, frame: FrameId, space: str | None = None) -> Tokens | None: ...
    async def true_at(self, valid_at: date | str | None) -> AsyncView: ...
    async def values(
        self,
        field: str,
        *,
        prefix: str = "",
        where: Filter | None = None,
        include_chunks: bool = False,
    ) -> list[ValueCount]: ...
    async def view(self) -> AsyncView: ...
    async def walk(
        self,
        entities: EntityLike | Iterable[EntityLike],
        *,
        hops: int = 2,
        k: float = 60,
        predicate: str | None = None,
        direction: Direction = "both",
        valid_at: date | str | None = None,
        facts_max: int = ...,
    ) -> list[Reached]: ...
    async def why(self, fact: FactId, *, depth: int = 16) -> Why: ...
    async def within(
        self, scope: Scope | Mapping[str, ScopeValue] | None = None, *, shared: bool | None = None
    ) -> AsyncView: ...

class AsyncStore(Handle):
    @property
    def sync(self) -> Store: ...
    async def run(
        self,
        function: Callable[_Arguments, _Result],
        *arguments: _Arguments.args,
        **named: _Arguments.kwargs,
    ) -> _Result: ...
    async def __aenter__(self) -> Self: ...
    async def __aexit__(self, *_: object) -> None: ...
    async def access(self, frame: FrameId) -> Access: ...
    async def accesses(self) -> list[Access]: ...
    @property
    def actor(self) -> str | None: ...
    async def append(
        self,
        *events: EventBody | Draft,
        expect: int | None = None,
        key: str | None = None,
        actor: str | None = None,
        reason: str | None = None,
    ) -> Receipt: ...
    async def apply(self, fork: AsyncStore) -> Receipt: ...
    async def around(self, frame: FrameId, *, before: int = 1, after: int = 1) -> list[Frame]: ...
    async def assert_fact(
        self,
        subject: str | Entity,
        predicate: str,
        object: FactObject,
        *,
        valid_from: date | str | None = None,
        valid_to: date | str | None = None,
        confidence: float = 1.0,
        source: str = "observed",
        evidence: Sequence[EvidenceLike] = (),
        assumptions: Sequence[str] = (),
        because: FactId | None = None,
        scope: Mapping[str, ScopeValue] | None = None,
        key: str | None = None,
        actor: str | None = None,
    ) -> Receipt: ...
    async def assert_facts(
        self,
        facts: Iterable[Assertion | tuple[str | Entity, str, FactObject]],
        *,
        scope: Mapping[str, ScopeValue] | None = None,
        key: str | None = None,
        actor: str | None = None,
    ) -> Receipt: ...
    async def at(
        self,
        basis: AsyncBasis,
        *,
        valid_at: date | str | None = None,
        now: date | str | None = None,
    ) -> AsyncView: ...
    async def audit(
        self,
        *,
        type: str | type[EventBody] | None = None,
        actor: str | None = None,
        correlation: str | None = None,
        causation: int | None = None,
        scope: Scope | Mapping[str, ScopeValue] | None = None,
        since: date | str | None = None,
        until: date | str | None = None,
    ) -> Audit: ...
    async def backup(self, path: str | os.PathLike[str], *, through: int | None = None) -> None: ...
    async def bisect(
        self,
        test: Test,
        *,
        good: AsyncBasis = 0,
        bad: AsyncBasis = "HEAD",
        by: Unit = "event",
        known: Iterable[Probe] | str = (),
        checks: int = 0,
        progress: Callable[[Probe], None] | None = None,
    ) -> Bisection: ...
    async def blame(self, thing: AnyThing) -> Blame: ...
    async def branches(self) -> tuple[Branch, ...]: ...
    async def checkpoint(self) -> None: ...
    async def children(self, frame: FrameId) -> list[int]: ...
    async def chunks(self, document: FrameId) -> dict[int, int]: ...
    async def close(self) -> None: ...
    async def commit(self) -> None: ...
    async def compact(
        self,
        *,
        horizon: AsyncBasis | None = None,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> Compaction: ...
    async def compare(self, fork: AsyncStore) -> ForkDiff: ...
    async def conflicts(
        self, subject: str | Entity | None = None, predicate: str | None = None
    ) -> list[Contradiction]: ...
    async def content(self, frame: FrameId) -> bytes: ...
    async def cooccurring(
        self, entity: EntityLike, *, valid_at: date | str | None = None, facts_max: int = ...
    ) -> list[Cooccurrence]: ...
    async def correct_fact(
        self,
        fact: FactId,
        *,
        object: FactObject | None = None,
        valid_from: date | str | None = None,
        valid_to: date | str | None = None,
        confidence: float | None = None,
        evidence: Sequence[EvidenceLike] = (),
        actor: str | None = None,
        reason: str | None = None,
    ) -> Receipt: ...
    async def count(self, where: Filter | None = None) -> tuple[int, int]: ...
    async def declare_predicate(
        self,
        predicate: str,
        *,
        functional: bool,
        scope: Mapping[str, ScopeValue] | None = None,
        actor: str | None = None,
    ) -> Receipt: ...
    async def delete(
        self,
        frame: FrameId | None = None,
        *,
        where: Filter | None = None,
        actor: str | None = None,
        reason: str | None = None,
    ) -> Receipt: ...
    async def diff(
        self,
        a: AsyncBasis,
        b: AsyncBasis = "HEAD",
        *,
        query: str | Query | None = None,
        k: int = 10,
    ) -> Diff: ...
    async def digests(self, *, replay: bool = False) -> dict[str, bytes]: ...
    async def drafts_after(self, store: AsyncStore) -> list[Draft]: ...
    async def embed_missing(
        self,
        *,
        where: Filter | None = None,
        batch: int = ...,
        progress: EmbedderProgress | None = None,
        actor: str | None = None,
    ) -> EmbeddedFrames: ...
    async def embedder(self) -> Embedder | None: ...
    async def embedding(self, frame: FrameId, space: str | None = None) -> Matrix | None: ...
    def entities(self, kind: str | None = None) -> AsyncIterator[EntityInfo]: ...
    async def entity(self, name: str | Entity) -> EntityInfo: ...
    async def evidence(self, fact: FactId) -> list[EvidenceText]: ...
    @overload
    async def explain(self, hit: Hit) -> Explanation: ...
    @overload
    async def explain(self, hit: RecallId) -> RecallExplanation: ...
    async def export_events(
        self,
        to: LineFilesTarget,
        *,
        at: AsyncBasis = "HEAD",
        first: int = 1,
        progress: ExportProgress | None = None,
    ) -> ExportedEvents: ...
    def export_facts(self, *, history: bool = False) -> AsyncIterator[str]: ...
    async def extract(
        self,
        frames: FrameId | Iterable[FrameId] | None = None,
        *,
        where: Filter | None = None,
        extractor: Extractor | None = None,
        dry_run: bool = False,
        report: Report | None = None,
        actor: str | None = None,
    ) -> Extraction: ...
    async def fact(self, fact: FactId) -> Fact: ...
    async def fact_history(
        self, subject: str | Entity, predicate: str | None = None
    ) -> list[Fact]: ...
    async def facts(
        self,
        subject: str | Entity | None = None,
        predicate: str | None = None,
        object: FactObject | None = None,
        *,
        valid_at: date | str | None = None,
        overlapping: PeriodLike | None = None,
        allen: tuple[Allen | str, PeriodLike] | None = None,
        include_ended: bool = False,
        include_retracted: bool = False,
        include_invalid: bool = False,
    ) -> list[Fact]: ...
    async def find_content(self, content_hash: bytes) -> list[int]: ...
    async def find_stored(
        self, content_hash: bytes, *, chunk_count: int | None = None, space: str | None = None
    ) -> list[Stored]: ...
    async def find_uri(self, uri: str) -> list[int]: ...
    def follow(
        self,
        after: AsyncBasis | None = None,
        *,
        types: EventType | Iterable[EventType] | None = None,
        actor: str | None = None,
        correlation: str | None = None,
        causation: int | None = None,
        scope: Scope | Mapping[str, ScopeValue] | None = None,
        timeout: float | None = None,
    ) -> AsyncEventStream: ...
    async def fork(
        self,
        at: AsyncBasis = "HEAD",
        path: str | os.PathLike[str] | None = None,
        *,
        progress: Callable[[str, int, int], None] | None = None,
    ) -> AsyncStore: ...
    async def frame(self, frame: FrameId) -> Frame: ...
    def frames(
        self,
        where: Filter | None = None,
        *,
        include_superseded: bool = False,
        include_deleted: bool = False,
        include_chunks: bool = False,
    ) -> AsyncIterator[Frame]: ...
    async def get(self, uri: str) -> Frame | None: ...
    async def head(self) -> Head: ...
    async def highlights(self, text: str, query: str | Query) -> list[tuple[int, int]]: ...
    @overload
    async def history(self, thing: Frame | Hit) -> list[Frame]: ...
    @overload
    async def history(
        self, thing: Fact | Link | Entity | EntityInfo | str
    ) -> list[HistoryEntry]: ...
    @overload
    async def history(self, thing: int | Receipt) -> list[Any]: ...
    async def import_events(
        self, source: LineFilesTarget, *, progress: ImportProgress | None = None
    ) -> ImportedEvents: ...
    async def import_facts(
        self,
        lines: Iterable[str | bytes],
        *,
        progress: ImportingProgress | None = None,
        actor: str | None = None,
    ) -> ImportedFacts: ...
    async def info(self, at: AsyncBasis | None = None) -> dict[str, JsonValue]: ...
    async def last(
        self,
        count: int = 10,
        *,
        track: str | None = None,
        where: Filter | None = None,
        include_chunks: bool = False,
    ) -> list[Frame]: ...
    async def link(
        self,
        fact: FactId,
        kind: LinkKindName,
        target: Target,
        *,
        because: FactId | None = None,
        scope: Mapping[str, ScopeValue] | None = None,
        actor: str | None = None,
    ) -> Receipt: ...
    async def links(
        self,
        thing: Target | None = None,
        kind: LinkKindName | None = None,
        *,
        include_unlinked: bool = False,
    ) -> list[Link]: ...
    def log(
        self,
        first: int = 1,
        last: int | None = None,
        *,
        type: str | type[EventBody] | None = None,
        actor: str | None = None,
        correlation: str | None = None,
        causation: int | None = None,
        scope: Scope | Mapping[str, ScopeValue] | None = None,
        since: date | str | None = None,
        until: date | str | None = None,
    ) -> AsyncIterator[Event]: ...
    async def maintain(
        self, budget_seconds: float = 1.0, *, progress: Progress | None = None
    ) -> Maintenance: ...
    async def merge_entities(
        self,
        entity: str | Entity,
        into: str | Entity,
        *,
        scope: Mapping[str, ScopeValue] | None = None,
        actor: str | None = None,
    ) -> Receipt: ...
    async def messages(
        self, last: int | None = None, *, track: str | None = None, where: Filter | None = None
    ) -> list[dict[str, JsonValue]]: ...
    async def neighbours(
        self,
        entity: EntityLike,
        *,
        predicate: str | None = None,
        direction: Direction = "both",
        valid_at: date | str | None = None,
        facts_max: int = ...,
    ) -> list[Neighbour]: ...
    @property
    def path(self) -> str: ...
    async def paths(
        self,
        start: EntityLike,
        end: EntityLike,
        *,
        hops_max: int = 4,
        limit: int = 10,
        predicate: str | None = None,
        direction: Direction = "both",
        valid_at: date | str | None = None,
        facts_max: int = ...,
    ) -> list[FactPath]: ...
    @overload
    async def projection(self, which: str) -> OwnProjection: ...
    @overload
    async def projection(self, which: type[OwnType]) -> OwnType: ...
    async def put_entity(
        self,
        name: str | Entity,
        *,
        kind: str | None = None,
        aliases: Sequence[str] = (),
        scope: Mapping[str, ScopeValue] | None = None,
        actor: str | None = None,
    ) -> Receipt: ...
    async def put_frame(
        self,
        content: str | bytes,
        *,
        kind: str = "text",
        role: str | None = None,
        uri: str | None = None,
        title: str | None = None,
        tags: Sequence[str] = (),
        labels: Sequence[str] = (),
        metadata: Mapping[str, JsonValue] | None = None,
        track: str | None = None,
        parent: FrameId | None = None,
        content_dates: Sequence[date | str] | None = None,
        created: date | str | None = None,
        search_text: str | None = None,
        scope: Mapping[str, ScopeValue] | None = None,
        embedding: Vector | None = None,
        space: str | None = None,
        token_embedding: Vectors | None = None,
        tokens_space: str | None = None,
        key: str | None = None,
        replace: bool = False,
        actor: str | None = None,
        expires: date | str | None = None,
        because: int | None = None,
    ) -> Receipt: ...
    async def put_frames(
        self,
        texts: Sequence[str],
        *,
        metadata: Sequence[Mapping[str, JsonValue]] | None = None,
        embeddings: Vectors | None = None,
        space: str | None = None,
        token_embeddings: Sequence[Vectors] | None = None,
        tokens_space: str | None = None,
        kind: str = "text",
        tags: Sequence[str] = (),
        scope: Mapping[str, ScopeValue] | None = None,
        key: str | None = None,
        actor: str | None = None,
        expires: date | str | None = None,
    ) -> Receipt: ...
    async def rebuild(
        self,
        projection: str | Sequence[str] | None = None,
        progress: Callable[[str, int, int], None] | None = None,
        *,
        workers: int = 1,
    ) -> Rebuild: ...
    async def recall(
        self,
        query: str | Query,
        *,
        embedding: Vector | None = None,
        space: str | None = None,
        mode: Mode = "hybrid",
        max_tokens: int = 1500,
        entry_tokens: int = ...,
        where: Filter | None = None,
        when: TimeRange | None = None,
        profile: str | Profile | None = None,
        form: Form = "text",
        policy: str | ContextPolicy | None = None,
        order: Order = "score",
        framing: bool = False,
        record: bool = False,
        include_superseded: bool = False,
        neighbours: int = 0,
        approximate: bool = False,
        token_embedding: Vectors | None = None,
        tokens_space: str | None = None,
        token_weights: Vector | None = None,
        rerank: Rerank = None,
        actor: str | None = None,
        floor: Floor | bool = True,
    ) -> Context: ...
    async def record_access(self, *frames: FrameId, actor: str | None = None) -> Receipt: ...
    async def refresh(self) -> Head: ...
    async def remember(
        self,
        text: str | Path | Document,
        *,
        kind: str = "text",
        role: str | None = None,
        uri: str | None = None,
        title: str | None = None,
        tags: Sequence[str] = (),
        labels: Sequence[str] = (),
        metadata: Mapping[str, JsonValue] | None = None,
        track: str | None = None,
        parent: FrameId | None = None,
        content_dates: Sequence[date | str] | None = None,
        created: date | str | None = None,
        scope: Mapping[str, ScopeValue] | None = None,
        actor: str | None = None,
        expires: date | str | None = None,
        embed_limit: int | None = 256,
    ) -> Receipt: ...
    async def remember_files(
        self,
        paths: Sequence[str | Path],
        *,
        include: Sequence[str] = (),
        exclude: Sequence[str] = (),
        default_excludes: bool = True,
        tags: Sequence[str] = (),
        labels: Sequence[str] = (),
        metadata: Mapping[str, JsonValue] | None = None,
        scope: Mapping[str, ScopeValue] | None = None,
        dry_run: bool = False,
        report: FolderReport | None = None,
        embed_limit: int | None = 256,
        actor: str | None = None,
    ) -> Remembered: ...
    async def remember_messages(
        self,
        messages: Sequence[Mapping[str, JsonValue]],
        *,
        track: str | None = None,
        tags: Sequence[str] = (),
        scope: Mapping[str, ScopeValue] | None = None,
        key: str | None = None,
        actor: str | None = None,
    ) -> Receipt: ...
    async def remembered_embedder(self) -> RememberedEmbedder | None: ...
    async def replay(self, basis: AsyncBasis = "HEAD") -> AsyncView: ...
    @property
    def report(self) -> RecoveryReport: ...
    async def rerun_recall(self, recall: RecallId) -> RecallRerun: ...
    async def resolve(self, name: str | Entity) -> list[str]: ...
    async def restore(
        self,
        frame: FrameId,
        *,
        expires: date | str | None | UnsetType = ...,
        actor: str | None = None,
        reason: str | None = None,
    ) -> Receipt: ...
    async def retract_fact(
        self, fact: FactId, *, actor: str | None = None, reason: str | None = None
    ) -> Receipt: ...
    async def retract_facts(
        self, facts: Iterable[FactId], *, actor: str | None = None, reason: str | None = None
    ) -> Receipt: ...
    def salvaged(self) -> AsyncIterator[Event]: ...
    @property
    def scope(self) -> Scope | None: ...
    def scoped(
        self, scope: Mapping[str, ScopeValue], *, shared: bool = False, actor: str | None = None
    ) -> AsyncStore: ...
    async def search(
        self,
        query: str | Query | npt.NDArray[Any],
        *,
        embedding: Vector | None = None,
        space: str | None = None,
        k: int = 10,
        mode: Mode = "hybrid",
        where: Filter | None = None,
        when: TimeRange | None = None,
        profile: str | Profile | None = None,
        include_superseded: bool = False,
        include_deleted: bool = False,
        approximate: bool = False,
        token_embedding: Vectors | None = None,
        tokens_space: str | None = None,
        token_weights: Vector | None = None,
        rerank: Rerank = None,
        offset: int = 0,
        after: Hit | None = None,
        group_by: Grouping = "content",
        min_cosine: float | None = None,
        min_score: float | None = None,
    ) -> Hits: ...
    async def search_facts(
        self, query: str | Entity, *, k: int = 10, valid_at: date | str | None = None
    ) -> list[FactHit]: ...
    @property
    def shared(self) -> bool: ...
    async def since(
        self, basis: AsyncBasis, *, query: str | Query | None = None, k: int = 10
    ) -> Diff: ...
    async def source_of(self, frame: Frame) -> str: ...
    async def speculate(self, *events: EventBody | Draft) -> AsyncView: ...
    async def split_entity(
        self,
        entity: str | Entity,
        into: str | Entity,
        facts: Sequence[FactId],
        *,
        scope: Mapping[str, ScopeValue] | None = None,
        actor: str | None = None,
    ) -> Receipt: ...
    async def supersede(
        self,
        old: FrameId,
        new: str | FrameId,
        *,
        actor: str | None = None,
        reason: str | None = None,
    ) -> Receipt: ...
    async def sweep(self, *, actor: str | None = None) -> Receipt: ...
    async def tag(
        self, name: str, at: AsyncBasis = "HEAD", *, actor: str | None = None
    ) -> Receipt: ...
    async def tags(self) -> dict[str, int]: ...
    async def timeline(
        self,
        *,
        by: TimelineOrder = "content",
        start: date | str | None = None,
        end: date | str | None = None,
        where: Filter | None = None,
        after: Position | None = None,
        limit: int = 50,
        newest_first: bool = True,
        include_superseded: bool = False,
        include_deleted: bool = False,
        include_chunks: bool = False,
    ) -> TimelinePage: ...
    async def token_embedding(self, frame: FrameId, space: str | None = None) -> Tokens | None: ...
    def transaction(
        self,
        *,
        expect: int | None = None,
        key: str | None = None,
        actor: str | None = None,
        reason: str | None = None,
    ) -> AbstractAsyncContextManager[Transaction]: ...
    async def unlink(
        self, link: LinkId, *, actor: str | None = None, reason: str | None = None
    ) -> Receipt: ...
    async def unmerge(
        self, merge: int | Receipt, *, actor: str | None = None, reason: str | None = None
    ) -> Receipt: ...
    async def unsplit(
        self, split: int | Receipt, *, actor: str | None = None, reason: str | None = None
    ) -> Receipt: ...
    async def update(
        self,
        frame: FrameId,
        *,
        tags: Sequence[str] | UnsetType = ...,
        metadata: Mapping[str, JsonValue] | UnsetType = ...,
        title: str | None | UnsetType = ...,
        expires: date | str | None | UnsetType = ...,
        actor: str | None = None,
        reason: str | None = None,
    ) -> Receipt: ...
    async def values(
        self,
        field: str,
        *,
        prefix: str = "",
        where: Filter | None = None,
        include_chunks: bool = False,
    ) -> list[ValueCount]: ...
    async def verify(
        self,
        progress: Callable[[str, int, int], None] | None = None,
        *,
        against: Head | str | None = None,
    ) -> Verification: ...
    async def view(self) -> AsyncView: ...
    async def walk(
        self,
        entities: EntityLike | Iterable[EntityLike],
        *,
        hops: int = 2,
        k: float = 60,
        predicate: str | None = None,
        direction: Direction = "both",
        valid_at: date | str | None = None,
        facts_max: int = ...,
    ) -> list[Reached]: ...
    async def why(self, fact: FactId, *, depth: int = 16) -> Why: ...

def open_store(
    path: str | os.PathLike[str],
    *,
    workers: int = 4,
    mode: Literal["r", "rw"] = "rw",
    scope: Mapping[str, ScopeValue] | None = None,
    shared: bool = False,
    require_scope: bool = False,
    actor: str | None = None,
    embedder: Embedder | str | None = None,
    sync: SyncPolicy = "commit",
    lock_timeout: float | None = 30.0,
    ring_bytes: int | None = None,
    salvage: bool = False,
    cache_bytes: int | None = None,
    environment: Environment | None = None,
    projections: Sequence[Callable[[], RowProjection[Any, Any]]] = (),
    packs: Sequence[Pack] = (),
) -> Opening[AsyncStore]: ...

AsyncBasis: TypeAlias = Basis | AsyncView
