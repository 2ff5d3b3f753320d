"""Views: the memory as it was at one event, read-only.

Owns `View`: what state it stands on, and what a frame looks like from it; its reads are those of
`reading` and `asking`. It never changes, whatever is written meanwhile, and any thread may use it.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from itertools import chain
from typing import ClassVar

import msgspec

from cerata.engine.errors import NotFound, Unsupported
from cerata.engine.events import (
    Draft,
    Event,
    PutFrame,
    Scope,
    ScopeValue,
    UnknownBody,
    once,
)
from cerata.engine.handle import Handle
from cerata.engine.head import Head
from cerata.engine.log import Log
from cerata.projections.accesses import Accesses, Counts
from cerata.projections.fact_table import FactsAt
from cerata.projections.fact_text import FactText
from cerata.projections.labelling import Labelling
from cerata.projections.link_table import LinksAt
from cerata.projections.projection import FoldedEvent
from cerata.projections.row_fold import OwnProjection
from cerata.projections.scopes import is_within, read_scope
from cerata.projections.tags import Tags
from cerata.projections.times import to_datetime, to_microseconds
from cerata.projections.vector_table import Space, Vectors
from cerata.replay.fold import Fold
from cerata.replay.stored_tokens import StoredTokens
from cerata.replay.stored_vectors import StoredVectors
from cerata.retrieval.embedders.embedder import Embedder

from .drafting import copied, joined_text, narrowed
from .fact_reading import shown_row
from .fact_showing import shown_seq
from .fact_values import Fact
from .gathered import Gathered, Gathering, lifted_after
from .layer import Layer
from .layers import Layers
from .reading import Reads
from .values import Context, Frame, FrameId, Receipt, frame_id


@dataclass(frozen=True)
class View(Reads, Handle):
    """The memory at seq ``basis``: the first ``basis`` events and nothing after.

    ``scope`` narrows it to what was written under these names. It may be held while others
    write: it shares the store's state, of which only more is appended, and copies nothing. Inside
    a transaction it also has what the block has gathered, under the ids −1, −2, ….
    """

    _instead: ClassVar[str] = (
        "Pass the file's path and the basis, and call open(path).at(basis) there."
    )

    _log: Log
    _fold: Fold
    basis: int
    scope: Scope | None = None
    now_us: int | None = None
    """The clock's time where the view is one of the head, in microseconds since 1970 UTC."""
    valid_at_us: int | None = None
    """The instant at which facts must be true, in microseconds since 1970 UTC; None is any."""
    embedder: Embedder | None = None
    """What makes the vectors of questions, where the store has one."""
    _gathered: Gathered | None = None
    _base: Layer | None = None

    # --- what there is ---------------------------------------------------------------------------

    @property
    def head(self) -> Head:
        """The view's point of the log, with its chain hash and Merkle root."""
        recorded = self._log.event(self.basis).recorded if self.basis else 0
        return Head(self.basis, recorded, self._log)

    @property
    def log_id(self) -> bytes:
        """The id of the log that this is a view of."""
        return self._log.log_id

    @property
    def now(self) -> datetime:
        """What "now" means in this view: when its last event was recorded.

        At the head it is the clock's time when the view was made, but where the clock went back
        never before its last event.
        """
        recorded = self.head.recorded
        return to_datetime(recorded if self.now_us is None else max(self.now_us, recorded))

    def view(self) -> "View":
        """Return this view: it is what its reads read."""
        return self

    def over(self, gathered: Gathered) -> "View":
        """Return this view with what a transaction has gathered over it."""
        # What the log's layer has worked out holds for all views of one transaction.
        return replace(self, _gathered=gathered, _base=self.base)

    def within(self, scope: Scope | Mapping[str, ScopeValue] | None) -> "View":
        """Return this view of what was written under a scope, too; a call never widens it.

        The names of both scopes hold for what is read. None, or a wider scope, changes nothing.

        Raises:
            InvalidInput: the scope gives a name of the view's another value, or is no scope.
        """
        if scope is None or scope is self.scope or scope in ((), {}):
            return self
        both = narrowed(self.scope, scope)
        return self if both == self.scope else replace(self, scope=both, _base=None)

    def earlier(self, seq: int) -> "View":
        """Return the memory at an event before the view's, or at the view's, in its scope."""
        return View(self._log, self._fold, min(seq, self.basis), self.scope, embedder=self.embedder)

    def on(self, log: Log, fold: Fold) -> "View":
        """Return this view on another handle or fold of its log; drafts are folded anew."""
        if log is self._log and fold is self._fold:
            return self
        view = replace(self, _log=log, _fold=fold, _gathered=None, _base=None)
        gathered = self._gathered
        if gathered is None:
            return view
        gathering = Gathering(view.base, gathered.recorded)
        return view.over(gathering.through(gathered.drafts[: gathered.count]))

    @property
    def logged(self) -> "View":
        """This view of the log alone, without what a transaction has gathered."""
        return self if self._gathered is None else replace(self, _gathered=None)

    @property
    def gathered(self) -> tuple[Draft, ...]:
        """What the view has of an open transaction, in order; its frames are −1, −2, ….

        Without the salts, which differ each time that the block is run.
        """
        gathered = self._gathered
        drafts = () if gathered is None else gathered.drafts[: gathered.count]
        return tuple(msgspec.structs.replace(draft, salt=None) for draft in drafts)

    @cached_property
    def base(self) -> Layer:
        """The layer of the log."""
        return self._base or Layer(self._fold, self.basis, self.scope)

    @cached_property
    def layers(self) -> Layers:
        """The frames and words of the log, and over them those that a transaction gathered."""
        return Layers(self._log, self.base, self._gathered)

    # --- facts -----------------------------------------------------------------------------------

    def true_at(self, valid_at: datetime | str | None) -> "View":
        """Return this view of the facts that are true at an instant; None is at any."""
        return View(
            self._log,
            self._fold,
            self.basis,
            self.scope,
            self.now_us,
            self._instant(valid_at),
            self.embedder,
            self._gathered,
            self._base,
        )

    def valid_instant(self, valid_at: datetime | str | None) -> int | None:
        """Return the instant that a read is to go by, in microseconds; None is any."""
        return self.valid_at_us if valid_at is None else self._instant(valid_at)

    def _instant(self, when: datetime | str | None) -> int | None:
        if when is None:
            return None
        return to_microseconds(self.now if when == "now" else when)

    @once
    def facts_at(self) -> FactsAt:
        """The facts of the log and of what a transaction gathered, but those that are invalid."""
        return self._all_facts.labelled(self.labelling) if len(self._links) else self._all_facts

    @cached_property
    def labelling(self) -> Labelling:
        """What links say of the facts, whether or not there are any."""
        return Labelling(self._all_facts, self._links, self.is_current)

    @cached_property
    def _links(self) -> LinksAt:
        gathered = self._gathered
        if gathered is None or not gathered.has_links:
            return self._fold.links(self.basis).at(self.basis, self.scope)
        links = self._fold.links_over(self.basis, self._lifted(gathered))
        return links.at(self.basis + gathered.count, self.scope)

    def is_current(self, frame: int) -> bool | None:
        """Tell whether a frame, by its seq in `facts_at`, is current; None where it is not seen."""
        number = shown_seq(frame, self.basis)
        return self.layers.closing_of(number) is None if self.layers.has(number) else None

    @cached_property
    def _all_facts(self) -> FactsAt:
        gathered = self._gathered
        if gathered is None or not gathered.has_facts:
            return self._fold.facts(self.basis).at(self.basis, self.scope)
        facts = self._fold.facts_over(self.basis, self._lifted(gathered))
        return facts.at(self.basis + gathered.count, self.scope)

    @cached_property
    def fact_text(self) -> FactText:
        """The words of `facts_at`."""
        gathered = self._gathered
        if gathered is None or not gathered.has_facts:
            return self._fold.fact_text(self.basis)
        return self._fold.fact_text_over(self.basis, self._lifted(gathered))

    @cached_property
    def vectors(self) -> Vectors:
        """The vectors of the log; what a transaction gathered is in its drafts."""
        return self._fold.vectors(self.basis)

    def stored_vectors(self, space: Space) -> StoredVectors:
        """Return the numbers of a space's vectors, as they are kept for all views."""
        return self._fold.stored_vectors(space)

    def stored_tokens(self, space: Space) -> StoredTokens:
        """Return the token vectors of a space, as they are kept for all views."""
        return self._fold.stored_tokens(space)

    def _lifted(self, gathered: Gathered) -> list[FoldedEvent]:
        return [lifted_after(self.basis, event) for event in gathered.all_events()]

    def fact_in(self, row: int) -> Fact:
        """Return the fact of a row of `facts_at`, known or not.

        Raises:
            NotFound: the row is none by the basis, or it is outside the scope.
        """
        if not self.facts_at.has_row(row):
            raise NotFound(
                f"There is no fact in row {row:,}",
                where=f"basis {self.basis:,}",
                remedy="Name a fact by its id: call fact(id).",
            )
        return shown_row(self.facts_at, row, self.basis)

    def fact_seq(self, fact: int) -> int:
        """Return the seq in `facts_at` of an id, which is −place of what is only gathered.

        It is 0, which nothing has, for an id that the log has not come to.
        """
        if fact > self.basis:
            return 0
        return fact if fact >= 0 else self.basis - fact

    # --- what the reads are made of --------------------------------------------------------------

    def existing(self, frame: FrameId) -> int:
        """Return the id of a frame that is there and within the scope, else raise `NotFound`."""
        number = frame_id(frame)
        self.layers.check_has(number)
        return number

    def seen(self, frames: Iterable[int]) -> list[int]:
        """Return the frames that are there and within the scope."""
        return [frame for frame in frames if self.layers.has(frame)]

    def blob(self, number: int) -> bytes | None:
        """Return the bytes of a frame that was put as bytes; None of one that is text.

        Raises:
            NotFound: no frame with this id at this basis, or it is outside the scope.
        """
        body = self.layers.event(number).body
        if not isinstance(body, PutFrame) or body.blob is None:
            return None
        if self._gathered is not None and number < 0:
            return self._gathered.drafts[-number - 1].attachments[0]
        return self._log.attachment(number, body.blob)

    def shown(self, number: int) -> Frame:
        """Return a frame by its id.

        Raises:
            NotFound: no frame with this id at this basis, or it is outside the scope.
        """
        layers = self.layers
        event, closing = layers.event(number), layers.closing_of(number)
        body = event.body
        recorded = to_datetime(event.recorded)
        if not isinstance(body, PutFrame):
            kind = "erased"
            if isinstance(body, UnknownBody):
                kind = f"{body.kind} version {body.kind_version}"
            body = PutFrame(kind=kind)
        text = body.text or ""
        if body.chunk_count is not None and body.chunk_index is None:
            text = self._joined(number)
        size = body.blob.size if body.blob is not None else len(text.encode())
        return Frame(
            id=number,
            text=text,
            kind=body.kind,
            role=body.role,
            uri=body.uri,
            title=body.title,
            tags=body.tags,
            labels=body.labels,
            metadata=copied(body.metadata),
            scope={} if event.scope is None else dict(event.scope),
            created=recorded if body.created is None else to_datetime(body.created),
            recorded=recorded,
            parent=body.parent,
            supersedes=layers.supersedes_of(number),
            superseded_by=None if closing is None else closing.by,
            active=closing is None,
            chunk_index=body.chunk_index,
            chunk_count=body.chunk_count,
            search_text=body.search_text,
            size=size,
            unread=tuple(layers.unread.get(number, ())),
        )

    def _joined(self, document: int) -> str:
        chunks = self.seen(self.layers.chunks(document).values())
        bodies = (self.layers.event(one).body for one in chunks)
        return joined_text(body for body in bodies if isinstance(body, PutFrame))

    def events(self, first: int, last: int | None) -> Iterator[Event]:
        """Yield events ``first`` to ``last``, those within the scope; then what is gathered."""
        stop = self.basis if last is None else min(last, self.basis)
        gathered = () if last is not None or self._gathered is None else self._gathered.events()
        for event in chain(self._log.read(first, stop), gathered):
            if self._sees(event.scope):
                yield event

    def own(self, name: str) -> OwnProjection:
        """Return a projection of rows by its name, as of the basis and of what is gathered.

        Raises:
            Unsupported: the view is narrowed to a scope, and a projection's rows are of all.
        """
        if self.scope is not None:
            raise Unsupported(
                "A projection's rows are not narrowed to a scope",
                remedy="Read it from a store without one; keep the scope in the rows' keys.",
            )
        return self._own(name)

    def _own(self, name: str) -> OwnProjection:
        if self._gathered is None or not self._gathered.count:
            return self._fold.own(name, self.basis)
        return self._fold.own_over(name, self.basis, list(self._gathered.events()))

    def counted(self) -> list[int]:
        """Return the frames within the scope that were ever shown or used."""
        return self.seen(self._accesses.by_frame)

    def counts_of(self, frame: int) -> list[Counts]:
        """Return how often a frame was shown and used, by each scope within the view's."""
        rows = self._accesses.by_frame.get(frame, ())
        return [counts for scope, counts in rows if self._sees(scope)]

    @cached_property
    def _accesses(self) -> Accesses:
        own = self._own(Accesses.name)
        assert isinstance(own, Accesses)
        return own

    def tagged(self) -> Iterator[tuple[Scope, str, int, int]]:
        """Yield the tags within the scope: scope, name, what it stands for, and the tag's seq."""
        own = self._own(Tags.name)
        assert isinstance(own, Tags)
        for (text, name), (at, seq) in own.rows.items():
            scope = read_scope(text)
            if self._sees(scope):
                yield scope, name, at, seq

    def _sees(self, scope: Scope | None) -> bool:
        """Tell whether an event of a scope is seen; an erased event has none."""
        return self.scope is None or is_within(scope, self.scope)


Basis = int | str | datetime | Receipt | Head | Context | View
"""A point of the log, however a caller names it; see `Store.at`."""
