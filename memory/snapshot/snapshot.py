"""Snapshots: the immutable state of the memory at one event.

Owns `Snapshot`: the folds at a basis within a scope. Leaves out the values of frames and facts
(`frame_conversion`, `fact_conversion`), the reads (`frames.reads`, `search.reads`, …) and the
public face (`cerata.memory.view`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from cerata.engine.errors import NotFound, Unsupported, number_text
from cerata.engine.events import (
    Attachment,
    Draft,
    Embedding,
    Erased,
    Event,
    EventBody,
    Scope,
    ScopeValue,
    once,
)
from cerata.engine.head import Head
from cerata.engine.late import late
from cerata.engine.limits import TIME_MAX, TIME_MIN
from cerata.engine.unreadable import UNREADABLE, UnreadableVectors, leave_out
from cerata.projections.columnar.scopes import (
    MISSING,
    Reach,
    admits,
    pairs_of,
    read_scope,
    tenant_of_rows,
)
from cerata.projections.columnar.times import to_datetime, to_microseconds

from ..values.arguments import narrowed
from ..values.frames import Frame, FrameId, frame_id
from .store_embedder import StoreEmbedder

if TYPE_CHECKING:
    from cerata.engine.log import Log
    from cerata.engine.log_file.lineage import Identity
    from cerata.projections.columnar import relative_times
    from cerata.projections.core.projection import Readable, ReaderType
    from cerata.projections.facts import projection as facts_projection
    from cerata.projections.facts import reader as facts_reader
    from cerata.projections.facts import repeats as fact_repeats
    from cerata.projections.facts.reader import FactsAt
    from cerata.projections.facts.repeats import Repeats
    from cerata.projections.facts.text_projection import FactText
    from cerata.projections.links import labelling as links_labelling
    from cerata.projections.links import projection as links_projection
    from cerata.projections.links import reader as links_reader
    from cerata.projections.links.labelling import Labelling
    from cerata.projections.links.reader import LinksAt
    from cerata.projections.rows import built_in
    from cerata.projections.rows import built_in as embedder_rows
    from cerata.projections.rows import built_in as rows_tags
    from cerata.projections.rows.built_in import Accesses, Counts, Used
    from cerata.projections.rows.row_fold import OwnProjection
    from cerata.projections.vectors.columns import Key
    from cerata.projections.vectors.reader import Space, Vectors
    from cerata.replay.fold import Fold
    from cerata.replay.vector_store import StoredTokens, StoredVectors
    from cerata.retrieval.embedders.embedder import Embedder

    from ..values import acts
    from ..values.acts import Act
    from ..values.facts import Fact
    from ..values.pending_ids import PendingIds
    from . import fact_conversion, frame_conversion
    from . import layer as snapshot_layer
    from . import layers as snapshot_layers
    from . import pending as pending_events
    from .frame_conversion import FrameText
    from .layer import LogLayer
    from .layers import Layers
    from .pending import PendingBuilder, PendingEvents
else:
    relative_times = late("cerata.projections.columnar.relative_times")
    facts_projection = late("cerata.projections.facts.projection")
    facts_reader = late("cerata.projections.facts.reader")
    fact_repeats = late("cerata.projections.facts.repeats")
    links_labelling = late("cerata.projections.links.labelling")
    links_projection = late("cerata.projections.links.projection")
    links_reader = late("cerata.projections.links.reader")
    built_in = late("cerata.projections.rows.built_in")
    embedder_rows = late("cerata.projections.rows.built_in")
    rows_tags = late("cerata.projections.rows.built_in")
    acts = late("cerata.memory.values.acts")
    fact_conversion = late("cerata.memory.snapshot.fact_conversion")
    frame_conversion = late("cerata.memory.snapshot.frame_conversion")
    snapshot_layer = late("cerata.memory.snapshot.layer")
    snapshot_layers = late("cerata.memory.snapshot.layers")
    pending_events = late("cerata.memory.snapshot.pending")


StateType = TypeVar("StateType", bound="OwnProjection")


class Snapshot(msgspec.Struct, frozen=True, dict=True):
    """The memory at seq ``basis``: the first ``basis`` events and nothing after.

    - A snapshot never changes, also while writers append; any thread may use one.
    - ``reach`` limits its events to those of the scopes that it admits.
    - A snapshot copies nothing: the store's state, which it shares, only grows.
    - Inside a transaction a snapshot also has the block's drafts, with the ids −1, −2, ….
    """

    _log: Log
    _fold: Fold
    basis: int
    reach: Reach | None = None
    now_us: int | None = None
    """The clock's time if the snapshot is at the head, in microseconds since 1970 UTC."""
    valid_at_us: int | None = None
    """The instant at which facts must be true, in microseconds since 1970 UTC; None is any."""
    embedders: StoreEmbedder = msgspec.field(default_factory=StoreEmbedder)
    """The choice of the embedder that computes the vectors of questions."""
    _pending: PendingEvents | None = None
    _base: LogLayer | None = None
    _unread: tuple[tuple[Key, Sequence[int]], ...] = ()
    """The rows of each space of vectors that a search could not read."""
    _head: Head | None = None
    """The head of the log if the snapshot was taken there: with its time, which costs no read."""

    # --- the state -------------------------------------------------------------------------------

    @once
    def head(self) -> Head:
        """The snapshot's point of the log, with its chain hash and Merkle root."""
        head = self._head
        return (
            Head(self.basis, _recorded(self._log, self.basis), self._log) if head is None else head
        )

    @property
    def log_id(self) -> bytes:
        """The id of the snapshot's log."""
        return self._log.log_id

    @property
    def identity(self) -> Identity:
        """The identity of the snapshot's log."""
        return self._log.identity

    @once
    def now(self) -> datetime:
        """The meaning of "now" in this snapshot: the recorded time of its last event.

        At the head: the clock's time when the snapshot was taken, or the recorded time of the last
        event if the clock went back before that.
        """
        return _now(self._log, self.basis, self.now_us, self._head)

    def pending_builder(self, recorded: int, ids: PendingIds | None = None) -> PendingBuilder:
        """Return a builder of pending events over this snapshot.

        Args:
            recorded: The time of the events.
            ids: The ids of the block that the events belong to.
        """
        return pending_events.PendingBuilder(self.base, self._fold, recorded, ids)

    def with_pending(self, pending: PendingEvents) -> Snapshot:
        """Return this snapshot with the drafts of a transaction over the log."""
        # All snapshots of one transaction share the masks that the log's layer has computed.
        return msgspec.structs.replace(self, _pending=pending, _base=self.base)

    @property
    def scope(self) -> Scope | None:
        """The names and values of the reach; None admits all.

        Raises:
            InvalidInput: the store requires a scope and has none.
        """
        return None if self.reach is None else self.reach.pairs

    def within(
        self, scope: Scope | Mapping[str, ScopeValue] | None = None, *, shared: bool | None = None
    ) -> Snapshot:
        """Return this snapshot narrowed to a scope; its scope stays in force.

        Args:
            scope: Names and values to add to the scope; None or a wider scope adds none.
            shared: False leaves shared events out, True admits them; default as this snapshot.

        Raises:
            InvalidInput: the scope or ``shared`` would admit more than this snapshot, or the scope
                is invalid.
        """
        own = pairs_of(self.reach)
        if shared is None and (scope is None or scope is own or scope in ((), {})):
            return self
        reach = narrowed(self.reach, () if scope is None else scope, shared=shared)
        return (
            self if reach == self.reach else msgspec.structs.replace(self, reach=reach, _base=None)
        )

    def narrowed_to(self, reach: Reach | None) -> Snapshot:
        """Return this snapshot narrowed to what a reach admits too.

        If a scope is required and missing, only a snapshot with a scope can be read.
        """
        if reach is MISSING:
            return (
                self
                if self.reach is not None
                else msgspec.structs.replace(self, reach=MISSING, _base=None)
            )
        if reach is None:
            return self
        is_shared = all(
            each is None or each is MISSING or each.shared or each.is_tenant
            for each in (self.reach, reach)
        )
        return self.within(reach.pairs, shared=is_shared)

    @property
    def of_file(self) -> Snapshot:
        """This snapshot for counts of the file: if a scope is required and missing, of all."""
        return (
            msgspec.structs.replace(self, reach=None, _base=None) if self.reach is MISSING else self
        )

    def as_of(self, now_us: int) -> Snapshot:
        """Return this snapshot with another "now", at least the recorded time of its basis."""
        return msgspec.structs.replace(self, now_us=now_us)

    def earlier(self, seq: int) -> Snapshot:
        """Return the snapshot at ``seq``, or at this basis if that is lower, in this scope."""
        return Snapshot(
            self._log, self._fold, min(seq, self.basis), self.reach, embedders=self.embedders
        )

    def on_log(self, log: Log, fold: Fold) -> Snapshot:
        """Return this snapshot on another handle or fold of its log; drafts are folded again."""
        if log is self._log and fold is self._fold:
            return self
        snapshot = msgspec.structs.replace(
            self, _log=log, _fold=fold, _pending=None, _base=None, _head=None
        )
        pending = self._pending
        if pending is None:
            return snapshot
        builder = snapshot.pending_builder(pending.recorded, pending.ids)
        return snapshot.with_pending(builder.through(pending.drafts[: pending.count]))

    def prefix(self, seq: int) -> Snapshot:
        """Return the state at an earlier point, in this scope and at this instant of facts.

        A ``seq`` above the basis counts drafts: the state has the first ``seq - basis`` of them.
        """
        pending = self._pending
        if pending is not None and seq > self.basis:
            if seq == self.basis + pending.count:
                return self
            builder = self.pending_builder(pending.recorded, pending.ids)
            return self.with_pending(builder.through(pending.drafts[: seq - self.basis]))
        return msgspec.structs.replace(
            self,
            basis=seq,
            now_us=None,
            _pending=None,
            _base=self._base if seq == self.basis else None,
        )

    @property
    def end(self) -> int:
        """The last event of the state; drafts count as appended at its basis."""
        return self.basis + (0 if self._pending is None else self._pending.count)

    @property
    def drafts(self) -> Sequence[Draft]:
        """The drafts after the basis, with their salts."""
        return self.layers.drafts

    @property
    def drafts_recorded(self) -> int:
        """The time of drafts: now, but later than the basis's event; the clock's without events."""
        if self._pending is not None:
            return self._pending.recorded
        if not self.basis:
            return self.now_us or self._log.environment.now_us()
        return max(self.now_us or 0, self.head.recorded + 1)

    @property
    def source(self) -> tuple[Log, Fold, Reach | None]:
        """The log and its fold, and the reach, by which drafts are checked."""
        return self._log, self._fold, self.reach

    @property
    def log_only(self) -> Snapshot:
        """This snapshot of the log alone, without the drafts of a transaction."""
        return self if self._pending is None else msgspec.structs.replace(self, _pending=None)

    @property
    def unsalted_drafts(self) -> tuple[Draft, ...]:
        """The drafts of an open transaction that the snapshot has, in order, with ids −1, −2, ….

        Their salts are removed, because salts differ each time that the block runs.
        """
        return tuple(msgspec.structs.replace(draft, salt=None) for draft in self.layers.drafts)

    @once
    def base(self) -> LogLayer:
        """The layer of the log."""
        return self._base or snapshot_layer.LogLayer(self._fold, self.basis, self.reach)

    @once
    def layers(self) -> Layers:
        """The frames and words of the log, and over them the pending frames of a transaction."""
        # A function with a reference to this snapshot would be a cycle, which keeps the arrays of
        # the layer until a garbage collection.
        present = partial(_now, self._log, self.basis, self.now_us, self._head)
        base = self.base if self._base is None else self._base
        return snapshot_layers.Layers(self._log, base, present, self._pending)

    # --- facts -----------------------------------------------------------------------------------

    def true_at(self, valid_at: date | str | None) -> Snapshot:
        """Return this snapshot limited to the facts that are true at an instant.

        Args:
            valid_at: An aware datetime, an ISO string, or a time in words such as "now" or
                "yesterday"; a day counts from 00:00 UTC. None admits facts of any time.
        """
        return Snapshot(
            self._log,
            self._fold,
            self.basis,
            self.reach,
            self.now_us,
            self._instant(valid_at),
            self.embedders,
            self._pending,
            self._base,
            _head=self._head,
        )

    def valid_instant(self, valid_at: date | str | None) -> int | None:
        """Return the instant at which a read's facts must be true, in microseconds; None is any."""
        return self.valid_at_us if valid_at is None else self._instant(valid_at)

    @once
    def present_us(self) -> int:
        """The instant by which reads call a fact ended: that of true facts, else `now`."""
        if self.valid_at_us is not None:
            return self.valid_at_us
        head = self._head
        if head is None:
            return to_microseconds(self.now)
        # As `now` at the head, which reads no event.
        now_us = head.recorded if self.now_us is None else max(self.now_us, head.recorded)
        return min(max(now_us, TIME_MIN), TIME_MAX)

    @once
    def last_us(self) -> int:
        """`present_us` for rankings: without a clock, the time of the last event."""
        if self.valid_at_us is not None:
            return self.valid_at_us
        return self.head.recorded if self._pending is None else self._pending.recorded

    def _instant(self, when: date | str | None) -> int | None:
        if when is None:
            return None
        if isinstance(when, datetime):
            # No look at now, which reads the last event.
            return to_microseconds(when)
        return relative_times.interval_of(when, self.now).start

    @once
    def facts_at(self) -> FactsAt:
        """The facts of the log and of the transaction's drafts, without the invalid facts."""
        pending = self._pending
        base = self.base if self._base is None else self._base
        facts = base.facts if pending is None else self._all_facts
        if facts.is_empty:
            return facts
        has_drafts = pending is not None and pending.has_any(links_projection.LINK_EVENTS)
        if not has_drafts and base.has_no_links:
            return facts
        return facts.labelled(self.labelling) if len(self._links) else facts

    @once
    def labelling(self) -> Labelling:
        """The standing of the facts by their links; also if no link exists."""
        return links_labelling.Labelling(self._all_facts, self._links, self.is_current)

    @once
    def _links(self) -> LinksAt:
        pending = self._pending
        if pending is None or not pending.has_any(links_projection.LINK_EVENTS):
            return links_reader.LinksAt(self._fold.links(self.basis), self.basis, self.reach)
        return links_reader.LinksAt(pending.folds.links(), self.basis + pending.count, self.reach)

    def columns(self, kind: type[Readable[ReaderType]]) -> ReaderType:
        """Return the reader of a projection of columns by its class; read once a snapshot.

        It has the drafts of a transaction if any of these is an event of ``kind.drafted``.

        Raises:
            NotFound: the store was opened without the projection.
        """
        reader: ReaderType | None = self._states.get(kind)
        if reader is None:
            pending = self._pending
            if pending is None or not pending.has_any(kind.drafted):
                reader = self._fold.columns(kind, self.basis).at(self.basis, self.reach)
            else:
                reader = pending.folds.columns(kind).at(self.basis + pending.count, self.reach)
            self._states[kind] = reader
        return reader

    def is_current(self, frame: int) -> bool | None:
        """Return whether a frame, by its seq in `facts_at`, is current; None if out of scope."""
        number = fact_conversion.id_of_seq(frame, self.basis)
        return self.layers.closing_of(number) is None if self.layers.has(number) else None

    @once
    def _all_facts(self) -> FactsAt:
        pending = self._pending
        if pending is None or not pending.has_any(facts_projection.FACT_EVENTS):
            return self.base.facts
        return facts_reader.FactsAt(pending.folds.facts(), self.basis + pending.count, self.reach)

    @once
    def repeats(self) -> Repeats:
        """The facts and declarations of the log and the drafts, in every scope."""
        pending = self._pending
        if pending is None or not pending.has_any(facts_projection.FACT_EVENTS):
            return fact_repeats.Repeats(
                facts_reader.FactsAt(self._fold.facts(self.basis), self.basis)
            )
        return fact_repeats.Repeats(
            facts_reader.FactsAt(pending.folds.facts(), self.basis + pending.count)
        )

    @once
    def fact_text(self) -> FactText:
        """The words of `facts_at`."""
        pending = self._pending
        if pending is None or not pending.has_any(facts_projection.FACT_EVENTS):
            base = self.base if self._base is None else self._base
            return base.fact_text
        return pending.folds.fact_text()

    @once
    def vectors(self) -> Vectors:
        """The vectors of the log; the vectors of a transaction are in its drafts."""
        self._fold.check_whole(self.basis)
        vectors = self._fold.vectors(self.basis)
        for key, rows in self._unread:
            vectors = vectors.without(key, rows)
        return vectors

    @property
    def has_all_vectors(self) -> bool:
        """True if no search has left out a vector that it could not read."""
        return not self._unread

    def without_vectors(self, error: UnreadableVectors) -> Snapshot:
        """Return this snapshot without vectors that cannot be read."""
        return msgspec.structs.replace(self, _unread=(*self._unread, (error.key, error.rows)))

    def stored_vectors(self, space: Space) -> StoredVectors:
        """Return the numbers of a space's vectors; all snapshots share this cache."""
        return self._fold.stored_vectors(space)

    def stored_tokens(self, space: Space) -> StoredTokens:
        """Return the token vectors of a space; all snapshots share this cache."""
        return self._fold.stored_tokens(space)

    def fact_of_row(self, row: int) -> Fact:
        """Return the fact of a row of `facts_at`, known or not.

        Raises:
            NotFound: the row does not exist at the basis, or is outside the scope.
        """
        if not self.facts_at.has_row(row):
            raise NotFound(
                f"There is no fact in row {row:,}",
                where=f"basis {self.basis:,}",
                remedy="Name a fact by its id: call fact(id).",
            )
        return fact_conversion.fact_of(self.facts_at, row, self.basis, self.present_us)

    def cause_of(self, number: int) -> int | None:
        """Return the cause of an event of the log, or of a draft by −place."""
        if number > 0:
            return self._log.event(number).causation
        return self.layers.drafts[-number - 1].causation

    def fact_at(self, number: int) -> Fact:
        """Return a fact, retracted or not, by its id or the id of a repeated assertion.

        Raises:
            NotFound: no fact with this id exists at the basis, or the fact is out of scope.
        """
        row = self.facts_at.row_of(self.seq_of(number))
        if row is None:
            raise NotFound(
                f"There is no fact {number_text(number)}",
                where=f"basis {number_text(self.basis)}",
                remedy="Look the id up with facts() or log().",
            )
        return self.fact_of_row(row)

    def seq_of(self, fact: int) -> int:
        """Return the seq in `facts_at` of an id, which is −place for a draft.

        An id above the basis gives 0, which no event has.
        """
        if fact > self.basis:
            return 0
        return fact if fact >= 0 else self.basis - fact

    # --- frames ----------------------------------------------------------------------------------

    def id_of(self, frame: FrameId) -> int:
        """Return the id of a frame that exists within the scope, else raise `NotFound`."""
        number = frame_id(frame, self.ids)
        self.layers.check_has(number)
        return number

    @property
    def ids(self) -> PendingIds | None:
        """The ids of the transaction whose drafts the snapshot has; None without drafts."""
        return None if self._pending is None else self._pending.ids

    def visible(self, frames: Iterable[int]) -> list[int]:
        """Return the frames that exist within the scope."""
        return [frame for frame in frames if self.layers.has(frame)]

    def content_of(self, number: int) -> bytes:
        """Return a frame's content: the bytes of a blob, or its text as UTF-8."""
        blob = frame_conversion.blob_of(self.layers, number)
        return self.frame_at(number).text.encode() if blob is None else blob

    def chunks_of(self, document: int) -> dict[int, int]:
        """Return the chunks of a document within the scope: index to frame id."""
        chunks = self.layers.chunks(document)
        visible = set(self.visible(chunks.values()))
        return {index: chunk for index, chunk in chunks.items() if chunk in visible}

    def frame_at(self, number: int) -> Frame:
        """Return a frame by its id.

        Raises:
            NotFound: no frame with this id exists at this basis within the scope.
        """
        return frame_conversion.frame_of(self.layers, number, self.act)

    def frame_and_content_at(self, number: int) -> tuple[Frame, bytes]:
        """Return a frame and its content by its id, with one read. Raises as `frame_at`."""
        return frame_conversion.frame_and_content_of(self.layers, number, self.act)

    def frames_at(self, numbers: Collection[int]) -> dict[int, Frame]:
        """Return frames by their ids; takes less time than `frame_at` if they lie close together.

        An unreadable frame is left out and named.

        Raises:
            NotFound: no frame with an id exists at this basis within the scope.
        """
        return frame_conversion.frames_of(self.layers, numbers, self.act)

    def text_at(self, number: int) -> FrameText:
        """Return the text of a stored frame without its relations. Raises as `frame_at`."""
        return frame_conversion.frame_text(self.layers, number)

    def texts_at(self, numbers: Iterable[int]) -> dict[int, FrameText]:
        """Return the texts of stored frames within the scope, with one read, up to a damaged frame.

        `text_at` reads the frames that are left.
        """
        return frame_conversion.frame_texts(self.layers, numbers)

    def attachment(self, number: int, attachment: Attachment) -> bytes:
        """Return bytes that the event or draft of a frame names, verified against their hash."""
        return frame_conversion.attachment_of(self.layers, number, attachment)

    def later_embeddings(self, number: int) -> Iterator[tuple[Embedding, bytes]]:
        """Yield the embeddings that later events gave to a frame, in order, and their bytes."""
        return frame_conversion.later_embeddings(self.layers, number)

    def events(self, first: int, last: int | None) -> Iterator[Event]:
        """Yield the events ``first`` to ``last`` within the scope, then the pending drafts."""
        stop = self.basis if last is None else min(last, self.basis)
        pending = () if last is not None or self._pending is None else self._pending.events()
        for event in chain(self._log.read(first, stop), pending):
            if self.sees(event.scope):
                yield event

    def bodies(
        self, first: int, last: int, seqs: Container[int]
    ) -> Iterator[tuple[int, EventBody | Erased]]:
        """Yield the seq and the body of the events ``seqs`` in a range of the log, in the scope.

        Args:
            first: The first event of the range, which is one read.
            last: The last event of the range.
            seqs: The events to decode; the rest of the range is passed over.
        """
        for event in self._log.read(first, min(last, self.basis)):
            if event.seq in seqs:
                # The body first: it is decoded with the scope in one pass.
                body = event.body
                if self.sees(event.scope):
                    yield event.seq, body

    def act(self, number: int) -> Act | None:
        """Return an event by its id as an act; None if the scope hides the event."""
        event = self.event_of(number)
        return None if event is None else acts.act_of(event)

    def event_of(self, number: int) -> Event | None:
        """Return an event of the log, or a draft by −place; None if the scope hides the event."""
        if number > 0:
            event = self._log.event(number)
        elif self._pending is not None and -number <= self._pending.count:
            event = self._pending.as_event(-number)
        else:
            return None
        return event if self.sees(event.scope) else None

    def recorded_from(self, time_us: int) -> int:
        """Return the first seq recorded at a time or later, or the seq after the basis.

        Cost: O(log n) reads.
        """
        seqs = range(1, self.basis + 1)
        return 1 + bisect_left(seqs, time_us, key=lambda seq: self._log.event(seq).recorded)

    def user_projection(self, name: str) -> OwnProjection:
        """Return a projection of rows by its name, as of the basis and the pending drafts.

        In the scope of a tenant these are the rows of the tenant.

        Raises:
            Unsupported: the snapshot has a scope, and the projection's rows are of all tenants, or
                the scope is narrower than a tenant.
        """
        if self.reach is None:
            return self._rows(name)
        if not self._fold.is_by_tenant(name):
            raise Unsupported(
                "A projection's rows are not narrowed to a scope",
                remedy="Read it from a store without a scope, or begin the rows' keys with the "
                "tenant and set tenant_first = True.",
            )
        if not self.reach.is_tenant:
            raise Unsupported(
                "A projection's rows are narrowed to a tenant, and this scope is narrower",
                remedy="Read it from a store with the scope of the tenant alone.",
            )
        return self._fold.rows_within(self._rows(name), (tenant_of_rows(self.reach.pairs),))

    def _rows(self, name: str) -> OwnProjection:
        if self._pending is None or not self._pending.count:
            return self._fold.own(name, self.basis)
        return self._fold.own_over(name, self.basis, list(self._pending.events()))

    def state(self, kind: type[StateType]) -> StateType:
        """Return the rows of a projection by its class, drafts included; read once a snapshot.

        The rows are those of all scopes: the reader takes the rows of its scope.

        Raises:
            NotFound: the store was opened without the projection, or with another of its name.
        """
        rows: OwnProjection | None = self._states.get(kind)
        if rows is None:
            rows = self._states[kind] = self._rows(kind.name)
        if not isinstance(rows, kind):
            raise NotFound(
                f"The projection {kind.name!r} of this store is no {kind.__name__}",
                remedy=f"Open the store without it, or with {kind.__name__} in projections=.",
            )
        return rows

    def has_state(self, name: str) -> bool:
        """Return whether the store was opened with a projection of a name."""
        return name in self._fold.registry.names

    @once
    def _states(self) -> dict[type, Any]:
        return {}

    def accessed_frames(self) -> list[int]:
        """Return the frames within the scope that any recall showed or any call used."""
        return self.visible(self._accesses.by_frame)

    def counts_of(self, frame: int) -> list[Counts]:
        """Return how often a frame was shown and used, for each scope within this scope."""
        rows = self._accesses.by_frame.get(frame, ())
        return [counts for scope, counts in rows if self.sees(scope)]

    @property
    def _accesses(self) -> Accesses:
        return self.state(built_in.Accesses)

    def tag_rows(self) -> Iterator[tuple[Scope, str, int, int]]:
        """Yield the tags within the scope: scope, name, the seq named, and the tag event's seq."""
        for (text, name), (at, seq) in self.state(rows_tags.Tags).rows.items():
            scope = read_scope(text)
            if self.sees(scope):
                yield scope, name, at, seq

    # --- the embedder ----------------------------------------------------------------------------

    @once
    def embedder(self) -> Embedder | None:
        """The embedder of texts and questions: the store's, else the one in use, if it can run."""
        return self.embedders.passed or self.embedders.of(self.used_embedder)

    @once
    def used_embedder(self) -> Used | None:
        """The embedder that the memory uses at the basis, by the newest event of the tenant."""
        if self._pending is None or not self._pending.count:
            base = self.base if self._base is None else self._base
            return base.used_embedder
        rows = self.state(embedder_rows.UsedEmbedders)
        return rows.newest(self.scope, self.basis + self._pending.count)

    @property
    def embedder_obstacle(self) -> str | None:
        """Why no question was compared with a vector, if the memory uses an embedder."""
        used = self.used_embedder
        obstacle = None if used is None else self.embedders.obstacle(used)
        if obstacle is None and used is not None and any(self.layers.counts()):
            return f"no frame here has a vector of {used.space!r}; embeddings.fill() adds vectors"
        return obstacle

    def sees(self, scope: Scope | None) -> bool:
        """Return whether the snapshot admits an event of a scope; an erased event has no scope."""
        return admits(scope, self.reach)


def _recorded(log: Log, basis: int) -> int:
    """Return the time of an event, 0 before the first, in microseconds since 1970 UTC.

    An event that cannot be read is named, and has the time of the newest readable event before it.
    """
    for seq in range(basis, 0, -1):
        try:
            return log.event(seq).recorded
        except UNREADABLE as error:
            if seq == basis:
                leave_out(f"The time of event {seq:,}", error)
    return 0


def _now(log: Log, basis: int, now_us: int | None, head: Head | None) -> datetime:
    """As `Snapshot.now`."""
    recorded = _recorded(log, basis) if head is None else head.recorded
    return to_datetime(recorded if now_us is None else max(now_us, recorded))
