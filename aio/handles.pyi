# Made by `python -m tools.async_stub` from cerata.Store, View and open.

import os
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import date, datetime
from pathlib import Path
from typing import Any, Literal, Never, ParamSpec, Self, TypeAlias, TypeVar, overload

import numpy.typing as npt
from msgspec import UnsetType

from cerata.aio.opening import Opening
from cerata.aio.streams import AsyncEventStream
from cerata.engine.disk.environment import Environment
from cerata.engine.events import Draft, Event, EventBody, JsonValue, Scope, ScopeValue
from cerata.engine.handle import Handle
from cerata.engine.head import Head
from cerata.engine.log_file.lineage import Branch
from cerata.engine.log_file.recovery import RecoveryReport
from cerata.engine.packs import Pack
from cerata.memory.batch.transaction import Transaction
from cerata.memory.bisection import Bisection, Probe, Test, Unit
from cerata.memory.compaction import Compaction, Maintenance
from cerata.memory.compaction import Progress as CompactionProgress
from cerata.memory.embeddings.commands import EmbeddedFrames
from cerata.memory.event_stream import EventType
from cerata.memory.facts.drafts import Assertion, EvidenceLike
from cerata.memory.facts.extraction import Extraction, Extractor
from cerata.memory.facts.extraction import Report as ExtractionReport
from cerata.memory.facts.importing import ImportedFacts
from cerata.memory.facts.importing import Progress as ImportingProgress
from cerata.memory.facts.reads import PeriodLike
from cerata.memory.facts.search import FactHit
from cerata.memory.forks import ForkDiff
from cerata.memory.frames.audit import Audit
from cerata.memory.frames.blame import Blame
from cerata.memory.frames.diff import Diff
from cerata.memory.frames.history import HistoryEntry
from cerata.memory.frames.log_reads import OwnType
from cerata.memory.frames.things import AnyThing
from cerata.memory.frames.value_counts import ValueCount
from cerata.memory.graph.reads import EntityLike
from cerata.memory.handles import Embeddings, Files, Graph, History, Interchange, Stream
from cerata.memory.ingest.folder import Remembered, Report
from cerata.memory.ingest.formats.document import Document
from cerata.memory.interchange.export import ExportedEvents, ExportProgress
from cerata.memory.interchange.importing import ImportedEvents, ImportProgress
from cerata.memory.interchange.line_files import Target as LineFilesTarget
from cerata.memory.links.why import Why
from cerata.memory.recall_explanation import RecallExplanation
from cerata.memory.recall_reads import RecallId
from cerata.memory.search.recall_rerun import RecallRerun
from cerata.memory.store import Store, Upkeep
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
from cerata.memory.values.graph import (
    Cooccurrence,
    FactPath,
    Link,
    LinkId,
    LinkKindName,
    Neighbour,
    Reached,
    Target,
)
from cerata.memory.values.options import (
    FactOptions,
    Layout,
    Mode,
    OpenOptions,
    Page,
    PutOptions,
    Ranking,
    Rerank,
    Vectors,
    WriteOptions,
)
from cerata.memory.view import (
    Basis,
    EmbeddingsOfView,
    FilesOfView,
    GraphOfView,
    HistoryOfView,
    InterchangeOfView,
    StreamOfView,
    UpkeepOfView,
    View,
)
from cerata.projections.columnar.times import Allen
from cerata.projections.facts.graph import Direction
from cerata.projections.frames.filters import Filter
from cerata.projections.frames.timeline import Position, TimelineOrder
from cerata.projections.fulltext.query import Query
from cerata.projections.rows.row_fold import OwnProjection
from cerata.projections.rows.row_projection import RowProjection
from cerata.projections.vectors.columns import Matrix
from cerata.projections.vectors.maxsim import Tokens
from cerata.replay.rebuild import Rebuild
from cerata.replay.verify import Verification
from cerata.retrieval.context.policies import ContextPolicy
from cerata.retrieval.embedders.embedder import Embedder, Progress
from cerata.retrieval.ranking.profile import Profile
from cerata.retrieval.ranking.relevance import Floor

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")

class AsyncEmbeddingsOfView(Handle):
    @property
    def sync(self) -> EmbeddingsOfView: ...
    async def run(
        self,
        function: Callable[_Arguments, _Result],
        *arguments: _Arguments.args,
        **named: _Arguments.kwargs,
    ) -> _Result: ...
    async def of(self, frame: FrameId, space: str | None = None) -> Matrix | None: ...
    async def tokens_of(self, frame: FrameId, space: str | None = None) -> Tokens | None: ...
    async def used(self) -> RememberedEmbedder | None: ...

class AsyncFilesOfView(Handle):
    @property
    def sync(self) -> FilesOfView: ...
    async def run(
        self,
        function: Callable[_Arguments, _Result],
        *arguments: _Arguments.args,
        **named: _Arguments.kwargs,
    ) -> _Result: ...
    async def by_content(self, content_hash: bytes) -> list[int]: ...
    async def by_uri(self, uri: str) -> list[int]: ...
    async def children(self, frame: FrameId) -> list[int]: ...
    async def chunks(self, document: FrameId) -> dict[int, int]: ...
    async def content(self, frame: FrameId) -> bytes: ...
    async def highlights(self, text: str, query: str | Query) -> list[tuple[int, int]]: ...
    async def source(self, frame: Frame) -> str: ...
    async def stored(
        self, content_hash: bytes, *, chunk_count: int | None = None, space: str | None = None
    ) -> list[Stored]: ...
    async def values(
        self,
        field: str,
        *,
        prefix: str = "",
        where: Filter | None = None,
        include_chunks: bool = False,
    ) -> list[ValueCount]: ...

class AsyncGraphOfView(Handle):
    @property
    def sync(self) -> GraphOfView: ...
    async def run(
        self,
        function: Callable[_Arguments, _Result],
        *arguments: _Arguments.args,
        **named: _Arguments.kwargs,
    ) -> _Result: ...
    async def conflicts(
        self, subject: str | Entity | None = None, predicate: str | None = None
    ) -> list[Contradiction]: ...
    async def cooccurring(
        self, entity: EntityLike, *, valid_at: date | str | None = None, facts_max: int = ...
    ) -> list[Cooccurrence]: ...
    def entities(self, kind: str | None = None) -> AsyncIterator[EntityInfo]: ...
    async def entity(self, name: str | Entity) -> EntityInfo: ...
    async def evidence(self, fact: FactId) -> list[EvidenceText]: ...
    async def fact(self, fact: FactId) -> Fact: ...
    async def links(
        self,
        thing: Target | None = None,
        kind: LinkKindName | None = None,
        *,
        include_unlinked: bool = False,
    ) -> list[Link]: ...
    async def neighbours(
        self,
        entity: EntityLike,
        *,
        predicate: str | None = None,
        direction: Direction = "both",
        valid_at: date | str | None = None,
        facts_max: int = ...,
    ) -> list[Neighbour]: ...
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
    async def resolve(self, name: str | Entity) -> list[str]: ...
    async def search(
        self, query: str | Entity, *, k: int = 10, valid_at: date | str | None = None
    ) -> list[FactHit]: ...
    async def versions(self, subject: str | Entity, predicate: str | None = None) -> list[Fact]: ...
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

class AsyncHistoryOfView(Handle):
    @property
    def sync(self) -> HistoryOfView: ...
    async def run(
        self,
        function: Callable[_Arguments, _Result],
        *arguments: _Arguments.args,
        **named: _Arguments.kwargs,
    ) -> _Result: ...
    async def around(self, frame: FrameId, *, before: int = 1, after: int = 1) -> list[Frame]: ...
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
    async def blame(self, thing: AnyThing) -> Blame: ...
    @overload
    async def explain(self, hit: Hit) -> Explanation: ...
    @overload
    async def explain(self, hit: RecallId) -> RecallExplanation: ...
    async def last(
        self,
        count: int = 10,
        *,
        track: str | None = None,
        where: Filter | None = None,
        include_chunks: bool = False,
    ) -> list[Frame]: ...
    @overload
    async def of(self, thing: Frame | Hit) -> list[Frame]: ...
    @overload
    async def of(self, thing: Fact | Link | Entity | EntityInfo | str) -> list[HistoryEntry]: ...
    @overload
    async def of(self, thing: int | Receipt) -> list[Any]: ...
    async def rerun(self, recall: RecallId) -> RecallRerun: ...
    async def since(
        self, basis: AsyncBasis, *, query: str | Query | None = None, k: int = 10
    ) -> Diff: ...
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
        include_chunks: bool = False,
        **_moved: Never,
    ) -> TimelinePage: ...
    async def view(self) -> AsyncView: ...

class AsyncInterchangeOfView(Handle):
    @property
    def sync(self) -> InterchangeOfView: ...
    async def run(
        self,
        function: Callable[_Arguments, _Result],
        *arguments: _Arguments.args,
        **named: _Arguments.kwargs,
    ) -> _Result: ...
    def export_facts(self, *, history: bool = False) -> AsyncIterator[str]: ...

class AsyncStreamOfView(Handle):
    @property
    def sync(self) -> StreamOfView: ...
    async def run(
        self,
        function: Callable[_Arguments, _Result],
        *arguments: _Arguments.args,
        **named: _Arguments.kwargs,
    ) -> _Result: ...
    @overload
    async def projection(self, which: str) -> OwnProjection: ...
    @overload
    async def projection(self, which: type[OwnType]) -> OwnType: ...

class AsyncUpkeepOfView(Handle):
    @property
    def sync(self) -> UpkeepOfView: ...
    async def run(
        self,
        function: Callable[_Arguments, _Result],
        *arguments: _Arguments.args,
        **named: _Arguments.kwargs,
    ) -> _Result: ...
    async def speculate(self, *events: EventBody | Draft) -> AsyncView: ...

class AsyncView(Handle):
    @property
    def sync(self) -> View: ...
    async def run(
        self,
        function: Callable[_Arguments, _Result],
        *arguments: _Arguments.args,
        **named: _Arguments.kwargs,
    ) -> _Result: ...
    async def at(
        self,
        basis: AsyncBasis,
        *,
        valid_at: date | str | None = None,
        now: date | str | None = None,
    ) -> AsyncView: ...
    @property
    def basis(self) -> int: ...
    async def count(self, where: Filter | None = None) -> tuple[int, int]: ...
    @property
    def embeddings(self) -> AsyncEmbeddingsOfView: ...
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
    @property
    def files(self) -> AsyncFilesOfView: ...
    async def frame(self, frame: FrameId) -> Frame: ...
    def frames(
        self, where: Filter | None = None, *, include_chunks: bool = False, **_moved: Never
    ) -> AsyncIterator[Frame]: ...
    async def get(self, uri: str) -> Frame | None: ...
    @property
    def graph(self) -> AsyncGraphOfView: ...
    async def head(self) -> Head: ...
    @property
    def history(self) -> AsyncHistoryOfView: ...
    @property
    def interchange(self) -> AsyncInterchangeOfView: ...
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
    async def now(self) -> datetime: ...
    async def recall(
        self,
        query: str | Query,
        *,
        max_tokens: int = 1500,
        where: Filter | None = None,
        profile: str | Profile | Ranking | None = None,
        policy: str | ContextPolicy | None = None,
        vectors: Vectors = ...,
        layout: Layout = ...,
        record: bool | WriteOptions = False,
        floor: Floor | bool = True,
        **_moved: Never,
    ) -> Context: ...
    @property
    def scope(self) -> Scope | None: ...
    async def search(
        self,
        query: str | Query | npt.NDArray[Any],
        *,
        k: int = 10,
        where: Filter | None = None,
        mode: Mode = "hybrid",
        profile: str | Profile | None = None,
        vectors: Vectors = ...,
        page: Page = ...,
        rerank: Rerank = None,
        floor: float | None = None,
        **_moved: Never,
    ) -> Hits: ...
    @property
    def shared(self) -> bool: ...
    @property
    def stream(self) -> AsyncStreamOfView: ...
    async def true_at(self, valid_at: date | str | None) -> AsyncView: ...
    @property
    def upkeep(self) -> AsyncUpkeepOfView: ...
    async def within(
        self, scope: Scope | Mapping[str, ScopeValue] | None = None, *, shared: bool | None = None
    ) -> AsyncView: ...

class AsyncEmbeddings(Handle):
    @property
    def sync(self) -> Embeddings: ...
    async def run(
        self,
        function: Callable[_Arguments, _Result],
        *arguments: _Arguments.args,
        **named: _Arguments.kwargs,
    ) -> _Result: ...
    async def embedder(self) -> Embedder | None: ...
    async def fill(
        self,
        *,
        where: Filter | None = None,
        batch: int = ...,
        progress: Progress | None = None,
        actor: str | None = None,
    ) -> EmbeddedFrames: ...
    async def of(self, frame: FrameId, space: str | None = None) -> Matrix | None: ...
    async def tokens_of(self, frame: FrameId, space: str | None = None) -> Tokens | None: ...
    async def used(self) -> RememberedEmbedder | None: ...

class AsyncFiles(Handle):
    @property
    def sync(self) -> Files: ...
    async def run(
        self,
        function: Callable[_Arguments, _Result],
        *arguments: _Arguments.args,
        **named: _Arguments.kwargs,
    ) -> _Result: ...
    async def by_content(self, content_hash: bytes) -> list[int]: ...
    async def by_uri(self, uri: str) -> list[int]: ...
    async def children(self, frame: FrameId) -> list[int]: ...
    async def chunks(self, document: FrameId) -> dict[int, int]: ...
    async def content(self, frame: FrameId) -> bytes: ...
    async def highlights(self, text: str, query: str | Query) -> list[tuple[int, int]]: ...
    async def remember(
        self,
        /,
        paths: Sequence[str | Path],
        *,
        include: Sequence[str] = (),
        exclude: Sequence[str] = (),
        default_excludes: bool = True,
        tags: Sequence[str] = (),
        metadata: Mapping[str, JsonValue] | None = None,
        dry_run: bool = False,
        report: Report | None = None,
        options: PutOptions = ...,
        **_moved: Never,
    ) -> Remembered: ...
    async def source(self, frame: Frame) -> str: ...
    async def stored(
        self, content_hash: bytes, *, chunk_count: int | None = None, space: str | None = None
    ) -> list[Stored]: ...
    async def values(
        self,
        field: str,
        *,
        prefix: str = "",
        where: Filter | None = None,
        include_chunks: bool = False,
    ) -> list[ValueCount]: ...

class AsyncGraph(Handle):
    @property
    def sync(self) -> Graph: ...
    async def run(
        self,
        function: Callable[_Arguments, _Result],
        *arguments: _Arguments.args,
        **named: _Arguments.kwargs,
    ) -> _Result: ...
    async def assert_many(
        self,
        facts: Iterable[Assertion | tuple[str | Entity, str, FactObject]],
        *,
        scope: Mapping[str, ScopeValue] | None = None,
        key: str | None = None,
        actor: str | None = None,
    ) -> Receipt: ...
    async def conflicts(
        self, subject: str | Entity | None = None, predicate: str | None = None
    ) -> list[Contradiction]: ...
    async def cooccurring(
        self, entity: EntityLike, *, valid_at: date | str | None = None, facts_max: int = ...
    ) -> list[Cooccurrence]: ...
    async def declare(
        self,
        predicate: str,
        *,
        functional: bool,
        scope: Mapping[str, ScopeValue] | None = None,
        actor: str | None = None,
    ) -> Receipt: ...
    def entities(self, kind: str | None = None) -> AsyncIterator[EntityInfo]: ...
    async def entity(self, name: str | Entity) -> EntityInfo: ...
    async def evidence(self, fact: FactId) -> list[EvidenceText]: ...
    async def extract(
        self,
        frames: FrameId | Iterable[FrameId] | None = None,
        *,
        where: Filter | None = None,
        extractor: Extractor | None = None,
        dry_run: bool = False,
        report: ExtractionReport | None = None,
        actor: str | None = None,
    ) -> Extraction: ...
    async def fact(self, fact: FactId) -> Fact: ...
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
    async def merge(
        self,
        entity: str | Entity,
        into: str | Entity,
        *,
        scope: Mapping[str, ScopeValue] | None = None,
        actor: str | None = None,
    ) -> Receipt: ...
    async def name(
        self,
        name: str | Entity,
        *,
        kind: str | None = None,
        aliases: Sequence[str] = (),
        scope: Mapping[str, ScopeValue] | None = None,
        actor: str | None = None,
    ) -> Receipt: ...
    async def neighbours(
        self,
        entity: EntityLike,
        *,
        predicate: str | None = None,
        direction: Direction = "both",
        valid_at: date | str | None = None,
        facts_max: int = ...,
    ) -> list[Neighbour]: ...
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
    async def resolve(self, name: str | Entity) -> list[str]: ...
    async def retract_many(
        self, facts: Iterable[FactId], *, actor: str | None = None, reason: str | None = None
    ) -> Receipt: ...
    async def search(
        self, query: str | Entity, *, k: int = 10, valid_at: date | str | None = None
    ) -> list[FactHit]: ...
    async def split(
        self,
        entity: str | Entity,
        into: str | Entity,
        facts: Sequence[FactId],
        *,
        scope: Mapping[str, ScopeValue] | None = None,
        actor: str | None = None,
    ) -> Receipt: ...
    async def unlink(
        self, link: LinkId, *, actor: str | None = None, reason: str | None = None
    ) -> Receipt: ...
    async def unmerge(
        self, merge: int | Receipt, *, actor: str | None = None, reason: str | None = None
    ) -> Receipt: ...
    async def unsplit(
        self, split: int | Receipt, *, actor: str | None = None, reason: str | None = None
    ) -> Receipt: ...
    async def versions(self, subject: str | Entity, predicate: str | None = None) -> list[Fact]: ...
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

class AsyncHistory(Handle):
    @property
    def sync(self) -> History: ...
    async def run(
        self,
        function: Callable[_Arguments, _Result],
        *arguments: _Arguments.args,
        **named: _Arguments.kwargs,
    ) -> _Result: ...
    async def around(self, frame: FrameId, *, before: int = 1, after: int = 1) -> list[Frame]: ...
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
    async def compare(self, fork: AsyncStore) -> ForkDiff: ...
    @overload
    async def explain(self, hit: Hit) -> Explanation: ...
    @overload
    async def explain(self, hit: RecallId) -> RecallExplanation: ...
    async def last(
        self,
        count: int = 10,
        *,
        track: str | None = None,
        where: Filter | None = None,
        include_chunks: bool = False,
    ) -> list[Frame]: ...
    @overload
    async def of(self, thing: Frame | Hit) -> list[Frame]: ...
    @overload
    async def of(self, thing: Fact | Link | Entity | EntityInfo | str) -> list[HistoryEntry]: ...
    @overload
    async def of(self, thing: int | Receipt) -> list[Any]: ...
    async def rerun(self, recall: RecallId) -> RecallRerun: ...
    async def restore(
        self,
        frame: FrameId,
        *,
        expires: date | str | None | UnsetType = ...,
        actor: str | None = None,
        reason: str | None = None,
    ) -> Receipt: ...
    def salvaged(self) -> AsyncIterator[Event]: ...
    async def since(
        self, basis: AsyncBasis, *, query: str | Query | None = None, k: int = 10
    ) -> Diff: ...
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
        include_chunks: bool = False,
        **_moved: Never,
    ) -> TimelinePage: ...
    async def view(self) -> AsyncView: ...

class AsyncInterchange(Handle):
    @property
    def sync(self) -> Interchange: ...
    async def run(
        self,
        function: Callable[_Arguments, _Result],
        *arguments: _Arguments.args,
        **named: _Arguments.kwargs,
    ) -> _Result: ...
    async def export_events(
        self,
        to: LineFilesTarget,
        *,
        at: AsyncBasis = "HEAD",
        first: int = 1,
        progress: ExportProgress | None = None,
    ) -> ExportedEvents: ...
    def export_facts(self, *, history: bool = False) -> AsyncIterator[str]: ...
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

class AsyncStream(Handle):
    @property
    def sync(self) -> Stream: ...
    async def run(
        self,
        function: Callable[_Arguments, _Result],
        *arguments: _Arguments.args,
        **named: _Arguments.kwargs,
    ) -> _Result: ...
    async def commit(self) -> None: ...
    async def digests(self, *, replay: bool = False) -> dict[str, bytes]: ...
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
    @overload
    async def projection(self, which: str) -> OwnProjection: ...
    @overload
    async def projection(self, which: type[OwnType]) -> OwnType: ...
    async def refresh(self) -> Head: ...
    async def replay(self, basis: AsyncBasis = "HEAD") -> AsyncView: ...

class AsyncUpkeep(Handle):
    @property
    def sync(self) -> Upkeep: ...
    async def run(
        self,
        function: Callable[_Arguments, _Result],
        *arguments: _Arguments.args,
        **named: _Arguments.kwargs,
    ) -> _Result: ...
    async def apply(self, fork: AsyncStore) -> Receipt: ...
    async def branches(self) -> tuple[Branch, ...]: ...
    async def compact(
        self,
        *,
        horizon: AsyncBasis | None = None,
        dry_run: bool = False,
        progress: CompactionProgress | None = None,
    ) -> Compaction: ...
    async def drafts_after(self, store: AsyncStore) -> list[Draft]: ...
    async def fork(
        self,
        at: AsyncBasis = "HEAD",
        path: str | os.PathLike[str] | None = None,
        *,
        progress: Callable[[str, int, int], None] | None = None,
    ) -> AsyncStore: ...
    async def info(self, at: AsyncBasis | None = None) -> dict[str, JsonValue]: ...
    async def maintain(
        self, budget_seconds: float = 1.0, *, progress: CompactionProgress | None = None
    ) -> Maintenance: ...
    async def rebuild(
        self,
        projection: str | Sequence[str] | None = None,
        progress: Callable[[str, int, int], None] | None = None,
        *,
        workers: int = 1,
    ) -> Rebuild: ...
    async def speculate(self, *events: EventBody | Draft) -> AsyncView: ...
    async def sweep(self, *, actor: str | None = None) -> Receipt: ...

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
        options: FactOptions = ...,
        **_moved: Never,
    ) -> Receipt: ...
    async def at(
        self,
        basis: AsyncBasis,
        *,
        valid_at: date | str | None = None,
        now: date | str | None = None,
    ) -> AsyncView: ...
    async def backup(self, path: str | os.PathLike[str], *, through: int | None = None) -> None: ...
    async def checkpoint(self) -> None: ...
    async def close(self) -> None: ...
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
    @property
    def embeddings(self) -> AsyncEmbeddings: ...
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
    @property
    def files(self) -> AsyncFiles: ...
    async def frame(self, frame: FrameId) -> Frame: ...
    def frames(
        self, where: Filter | None = None, *, include_chunks: bool = False, **_moved: Never
    ) -> AsyncIterator[Frame]: ...
    async def get(self, uri: str) -> Frame | None: ...
    @property
    def graph(self) -> AsyncGraph: ...
    async def head(self) -> Head: ...
    @property
    def history(self) -> AsyncHistory: ...
    @property
    def interchange(self) -> AsyncInterchange: ...
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
    def path(self) -> str: ...
    async def put_frame(
        self,
        /,
        content: str | bytes,
        *,
        kind: str = "text",
        role: str | None = None,
        uri: str | None = None,
        title: str | None = None,
        tags: Sequence[str] = (),
        metadata: Mapping[str, JsonValue] | None = None,
        vectors: Vectors = ...,
        options: PutOptions = ...,
        **_moved: Never,
    ) -> Receipt: ...
    async def put_frames(
        self,
        /,
        texts: Sequence[str],
        *,
        kind: str = "text",
        tags: Sequence[str] = (),
        metadata: Sequence[Mapping[str, JsonValue]] | None = None,
        vectors: Vectors = ...,
        options: PutOptions = ...,
        **_moved: Never,
    ) -> Receipt: ...
    async def recall(
        self,
        query: str | Query,
        *,
        max_tokens: int = 1500,
        where: Filter | None = None,
        profile: str | Profile | Ranking | None = None,
        policy: str | ContextPolicy | None = None,
        vectors: Vectors = ...,
        layout: Layout = ...,
        record: bool | WriteOptions = False,
        floor: Floor | bool = True,
        **_moved: Never,
    ) -> Context: ...
    async def remember(
        self,
        /,
        text: str | Path | Document,
        *,
        kind: str = "text",
        role: str | None = None,
        uri: str | None = None,
        title: str | None = None,
        tags: Sequence[str] = (),
        metadata: Mapping[str, JsonValue] | None = None,
        options: PutOptions = ...,
        **_moved: Never,
    ) -> Receipt: ...
    @property
    def report(self) -> RecoveryReport: ...
    async def retract_fact(
        self, fact: FactId, *, actor: str | None = None, reason: str | None = None
    ) -> Receipt: ...
    @property
    def scope(self) -> Scope | None: ...
    def scoped(
        self, scope: Mapping[str, ScopeValue], *, shared: bool = False, actor: str | None = None
    ) -> AsyncStore: ...
    async def search(
        self,
        query: str | Query | npt.NDArray[Any],
        *,
        k: int = 10,
        where: Filter | None = None,
        mode: Mode = "hybrid",
        profile: str | Profile | None = None,
        vectors: Vectors = ...,
        page: Page = ...,
        rerank: Rerank = None,
        floor: float | None = None,
        **_moved: Never,
    ) -> Hits: ...
    @property
    def shared(self) -> bool: ...
    @property
    def stream(self) -> AsyncStream: ...
    async def supersede(
        self,
        old: FrameId,
        new: str | FrameId,
        *,
        actor: str | None = None,
        reason: str | None = None,
    ) -> Receipt: ...
    def transaction(
        self,
        *,
        expect: int | None = None,
        key: str | None = None,
        actor: str | None = None,
        reason: str | None = None,
    ) -> AbstractAsyncContextManager[Transaction]: ...
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
    @property
    def upkeep(self) -> AsyncUpkeep: ...
    async def verify(
        self,
        progress: Callable[[str, int, int], None] | None = None,
        *,
        against: Head | str | None = None,
    ) -> Verification: ...

def open_store(
    path: str | os.PathLike[str],
    *,
    workers: int = 4,
    mode: Literal["r", "rw"] = "rw",
    scope: Mapping[str, ScopeValue] | None = None,
    actor: str | None = None,
    embedder: Embedder | str | None = None,
    packs: Sequence[Pack] = (),
    projections: Sequence[Callable[[], RowProjection[Any, Any]]] = (),
    options: OpenOptions = ...,
    environment: Environment | None = None,
    **_moved: Never,
) -> Opening[AsyncStore]: ...

AsyncBasis: TypeAlias = Basis | AsyncView
