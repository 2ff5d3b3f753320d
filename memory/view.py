"""Views: the memory as it was at one event, read-only.

Owns `View` and every read. A view holds the log's snapshot and reads projections as of its seq;
it never changes, whatever is written meanwhile, and any thread may use it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from itertools import islice
from typing import Any, TypeVar, overload

from cerata.engine.errors import InvalidInput, NotFound, Unsupported
from cerata.engine.events import DEFAULT_SCOPE, Event, PutFrame, Scope
from cerata.engine.head import Head
from cerata.engine.log import Log
from cerata.projections.columns import Mask
from cerata.projections.filters import Filter
from cerata.projections.query import Query
from cerata.projections.row_fold import OwnProjection
from cerata.projections.rows import RowProjection
from cerata.projections.tags import Tags, tenant_key
from cerata.projections.timeline import Position, TimelineOrder
from cerata.projections.times import to_datetime, to_microseconds
from cerata.replay.fold import Fold
from cerata.retrieval.context import ENTRY_TOKENS_MAX, Entry, fill
from cerata.retrieval.span import best_span

from .drafting import SPAN, check_content_hash, check_number, is_unicode, joined_text
from .gathered import Gathered
from .layer import Layer
from .layers import Layers, both, end_to_end
from .paging import Paging, page_of
from .references import is_within
from .values import Context, Frame, FrameId, Hit, Stored, TimelineEntry, TimelinePage, frame_id

OwnType = TypeVar("OwnType", bound=RowProjection[Any, Any])

_CONTEXT_HITS = 100
"""Hits that a context chooses from."""


@dataclass(frozen=True)
class View:
    """The memory at seq ``basis``: the first ``basis`` events and nothing after.

    ``scope`` narrows it to what was written under these names. It may be held while others
    write: it shares the store's state, of which only more is appended, and copies nothing. Inside
    a transaction it also has what the block has gathered, under the ids −1, −2, ….
    """

    _log: Log
    _fold: Fold
    basis: int
    scope: Scope | None = None
    now_us: int | None = None
    """The clock's time where the view is one of the head, in microseconds since 1970 UTC."""
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

        At the head it is the clock's time when the view was made.
        """
        return to_datetime(self.head.recorded if self.now_us is None else self.now_us)

    def over(self, gathered: Gathered) -> "View":
        """Return this view with what a transaction has gathered over it."""
        # What the log's layer has worked out holds for all views of one transaction.
        return replace(self, _gathered=gathered, _base=self.base)

    def within(self, scope: Scope) -> "View":
        """Return this view of what was written under a scope alone."""
        return replace(self, scope=scope, _base=None)

    @cached_property
    def base(self) -> Layer:
        """The layer of the log."""
        return self._base or Layer(self._fold, self.basis, self.scope)

    @cached_property
    def _layers(self) -> Layers:
        return Layers(self._log, self.base, self._gathered)

    def count(self) -> tuple[int, int]:
        """Return how many frames are current and how many were closed, chunks left out."""
        current = every = 0
        for layer, active in zip(self._layers.all, self._layers.active, strict=True):
            own = layer.visible & ~layer.is_chunk
            current += int((own & active).sum())
            every += int(own.sum())
        return current, every - current

    def __len__(self) -> int:
        """Return how many frames are current, a split document counted once."""
        return self.count()[0]

    # --- frames ----------------------------------------------------------------------------------

    def frame(self, frame: FrameId) -> Frame:
        """Return a frame, current or not, as this view sees it.

        Raises:
            NotFound: no frame with this id at this basis, or it is outside the scope.
        """
        return self._frame(self._existing(frame))

    def _existing(self, frame: FrameId) -> int:
        """Return the id of a frame that is there and within the scope, else raise `NotFound`."""
        number = frame_id(frame)
        if not self._layers.has(number):
            raise NotFound(
                f"There is no frame {number:,}",
                where=f"basis {self.basis:,}",
                remedy="Frame ids are shown by search, frames and log."
                if number > 0
                else "Ids below 0 are those of an open transaction.",
            )
        return number

    def content(self, frame: FrameId) -> bytes:
        """Return a frame's content: the bytes of a blob, or its text as UTF-8."""
        found = self.frame(frame)
        body = self._layers.event(found.id).body
        if not isinstance(body, PutFrame) or body.blob is None:
            return found.text.encode()
        if self._gathered is not None and found.id < 0:
            return self._gathered.drafts[-found.id - 1].attachments[0]
        return self._log.attachment(found.id, body.blob)

    def frames(
        self,
        where: Filter | None = None,
        *,
        include_superseded: bool = False,
        include_deleted: bool = False,
        include_chunks: bool = False,
    ) -> Iterator[Frame]:
        """Yield the frames that a filter lets pass, newest first; closed ones only on request.

        A document that was split comes as one frame unless chunks are asked for.

        Raises:
            InvalidInput: ``where`` is no filter.
        """
        layers = self._layers
        masks = layers.admitted(
            where, include_superseded=include_superseded, include_deleted=include_deleted
        )
        if not include_chunks:
            masks = self._whole(masks)
        return map(self._frame, layers.newest(masks))

    def _whole(self, masks: Sequence[Mask]) -> tuple[Mask, ...]:
        """Return rows without those of chunks."""
        return tuple(
            mask & ~layer.is_chunk for layer, mask in zip(self._layers.all, masks, strict=True)
        )

    def timeline(
        self,
        *,
        by: TimelineOrder = "content",
        start: datetime | str | None = None,
        end: datetime | str | None = None,
        where: Filter | None = None,
        after: Position | None = None,
        limit: int = 50,
        newest_first: bool = True,
        include_superseded: bool = False,
        include_deleted: bool = False,
        include_chunks: bool = False,
    ) -> TimelinePage:
        """Return a page of frames in order of time, start ≤ time < end.

        By ``content`` a frame stands at each of its content dates, else at when it was created;
        by ``recorded`` once. ``after`` is the ``next`` of the page before: pages are stable
        whatever is written meanwhile. Cost: O(log n) and the page, at the head.

        Raises:
            InvalidInput: a time without a zone, an unknown order, a limit that is not positive.
        """
        masks = self._layers.admitted(
            where, include_superseded=include_superseded, include_deleted=include_deleted
        )
        if not include_chunks:
            masks = self._whole(masks)
        paging = Paging(
            by,
            None if start is None else to_microseconds(start),
            None if end is None else to_microseconds(end),
            after,
            limit,
            newest_first,
        )
        page = page_of(self._layers, masks, paging)
        entries = [TimelineEntry(one.frame, to_datetime(one.time), self) for one in page.entries]
        return TimelinePage(tuple(entries), page.next)

    def children(self, frame: FrameId) -> list[int]:
        """Return the ids of the frames put directly below one, in order; those within the scope.

        Raises:
            NotFound: no frame with this id at this basis, or it is outside the scope.
        """
        return self._seen(self._layers.children(self._existing(frame)))

    def chunks(self, document: FrameId) -> dict[int, int]:
        """Return the current chunks of a document: index to frame id, in order of the index.

        Of a document that was closed, those that it had until then.

        Raises:
            NotFound: no frame with this id at this basis, or it is outside the scope.
        """
        chunks = self._layers.chunks(self._existing(document))
        seen = set(self._seen(chunks.values()))
        return {index: chunk for index, chunk in chunks.items() if chunk in seen}

    def _seen(self, frames: Iterable[int]) -> list[int]:
        """Return those frames that are within the scope."""
        return [frame for frame in frames if self.scope is None or self._layers.has(frame)]

    def find_content(self, content_hash: bytes) -> list[int]:
        """Return the current frames with this content hash, of `cerata.content_hash`."""
        check_content_hash(content_hash)
        return self._layers.current(lambda layer: layer.frames.find_content(content_hash, layer.n))

    def find_stored(
        self, content_hash: bytes, *, chunk_count: int | None = None, space: str | None = None
    ) -> list[Stored]:
        """Return the current frames with a content, in as many chunks, oldest first.

        By this an ingest skips what is there and goes on where it stopped. ``content_hash`` is that
        of `cerata.content_hash`; ``chunk_count`` is None for a content in one frame; with
        ``space``, the name of an embedder's space, what has no embedding in it is told too.
        """
        check_content_hash(content_hash)
        return self._layers.find_stored(content_hash, chunk_count, space)

    def find_uri(self, uri: str) -> list[int]:
        """Return the current frames with this URI, chunks included."""
        if not isinstance(uri, str):
            raise InvalidInput(f"A URI must be a string, not {type(uri).__name__}")
        if not is_unicode(uri):
            return []
        return self._layers.current(lambda layer: layer.frames.find_uri(uri, layer.n))

    def log(self, first: int = 1, last: int | None = None) -> Iterator[Event]:
        """Yield the events of this view in seq order.

        Within a scope only those written under it come.

        Raises:
            InvalidInput: ``first`` or ``last`` is no number.
        """
        check_number("first", first)
        if last is not None:
            check_number("last", last)
        return self._events(first, self.basis if last is None else min(last, self.basis))

    def _events(self, first: int, stop: int) -> Iterator[Event]:
        for event in self._log.read(first, stop):
            if self.scope is None or is_within(event.scope, self.scope):
                yield event

    def _frame(self, number: int) -> Frame:
        layers = self._layers
        event, closing = layers.event(number), layers.closing_of(number)
        body = event.body
        recorded = to_datetime(event.recorded)
        if not isinstance(body, PutFrame):
            body = PutFrame(kind="erased")
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
            metadata=body.metadata,
            scope=dict(event.scope),
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
        )

    def _joined(self, document: int) -> str:
        bodies = (self._layers.event(one).body for one in self._layers.chunks(document).values())
        return joined_text(body for body in bodies if isinstance(body, PutFrame))

    # --- tags ------------------------------------------------------------------------------------

    def tags(self) -> dict[str, int]:
        """Return what each tag that there was at this basis stands for, in order of name.

        Without a scope they are those of the tenant ``default``, then what others alone have.
        """
        tenants = dict(self.scope or DEFAULT_SCOPE)
        own = tenant_key(tenants["tenant"])
        found: dict[str, int] = {}
        for (tenant, name), at in self._fold.own(Tags.name, self.basis).rows.items():
            if tenant == own or (self.scope is None and name not in found):
                found[name] = at
        return dict(sorted(found.items()))

    # --- users' own projections ------------------------------------------------------------------

    @overload
    def projection(self, which: str) -> OwnProjection: ...

    @overload
    def projection(self, which: type[OwnType]) -> OwnType: ...

    def projection(self, which: str | type[RowProjection[Any, Any]]) -> RowProjection[Any, Any]:
        """Return one of your own projections as this view sees it, by name or class.

        Its rows are those of the view's basis, and do not change. Cost: see `Fold.own`.

        Raises:
            NotFound: it was not passed to ``open(projections=…)``. ProjectionFailed: its code
            raised at or before the basis. Unsupported: the view is narrowed to a scope, and a
            projection's rows are of all. InvalidInput: neither a name nor a class of one.
        """
        if not isinstance(which, str) and not (
            isinstance(which, type) and issubclass(which, RowProjection)
        ):
            raise InvalidInput(f"{which!r} is neither a projection's name nor its class")
        if self.scope is not None:
            raise Unsupported(
                "A projection's rows are not narrowed to a scope",
                remedy="Read it from a store without one; keep the scope in the rows' keys.",
            )
        name = which if isinstance(which, str) else which.name
        return self._fold.own(name, self.basis)

    # --- questions -------------------------------------------------------------------------------

    def search(
        self,
        query: str | Query,
        *,
        k: int = 10,
        where: Filter | None = None,
        include_superseded: bool = False,
        include_deleted: bool = False,
    ) -> list[Hit]:
        """Return the best ``k`` frames for a question, best first.

        Of plain language any word may match, and what stands in double quotes must; `cerata.query`
        makes a query of the full language. Ties go to the older frame. Scores are BM25 over the
        frames that are current in this view, so they are what they were then; ``where`` says
        which of them may be returned, and changes no score.

        Raises:
            InvalidInput: the query is neither text nor a query, or k is not positive.
        """
        _check_query(query)
        if isinstance(k, bool) or not isinstance(k, int) or k <= 0:
            raise InvalidInput(f"k is {k!r}", remedy="Ask for 1 or more.")
        layers, among = self._layers, None
        if where is not None or include_superseded or include_deleted:
            masks = layers.admitted(
                where, include_superseded=include_superseded, include_deleted=include_deleted
            )
            among = end_to_end(masks) & end_to_end(layers.searched)
        ranked = layers.ranking.search(query, k=k, among=among, filters=layers.mask_of)
        return [
            Hit(layers.id_at(row), round(float(score), 9), ("text",), self, query)
            for row, score in zip(ranked.rows.tolist(), ranked.scores.tolist(), strict=True)
        ]

    def highlights(self, text: str, query: str | Query) -> list[tuple[int, int]]:
        """Return where a text says what a query asks: characters [start, end), ascending."""
        _check_query(query)
        if not isinstance(text, str):
            raise InvalidInput(f"The text must be a string, not {type(text).__name__}")
        found = self._layers.ranking.highlights(text, query)
        return [(mark.start, mark.end) for mark in found]

    def recall(
        self,
        query: str | Query,
        *,
        max_tokens: int = 1500,
        entry_tokens: int = ENTRY_TOKENS_MAX,
        where: Filter | None = None,
    ) -> Context:
        """Return the best entries for a question that fit ``max_tokens``, with their sources.

        One entry takes at most ``entry_tokens``, around its best span; neighbouring chunks of a
        document join. Tokens are those of ``cl100k_base``; see `cerata.retrieval.tokens`. Where
        nothing matches, the newest frames stand in, and the context says so: those that ``where``
        and the query's own filters let pass and no NOT excludes. Bytes are shown as their
        ``search_text``, or as how many there are.

        Raises:
            InvalidInput: as `search`; or a budget is not positive.
        """
        hits = self.search(query, k=_CONTEXT_HITS, where=where)
        found = [hit.frame for hit in hits]
        if not hits:
            masks = both(self._layers.admitted(where), self._layers.searched)
            if isinstance(query, Query):
                masks = both(masks, self._layers.let_in(query))
            newest = islice(self._layers.newest(masks), _CONTEXT_HITS)
            found = [self._frame(number) for number in newest]
        texts = [_shown(frame) for frame in found]
        entries = [
            Entry(frame.id, self.source_of(frame), text, *_place_of(frame))
            for frame, text in zip(found, texts, strict=True)
        ]
        filled = fill(
            entries,
            max_tokens,
            lambda text: best_span(text, self.highlights(text, query)),
            entry_tokens=entry_tokens,
        )
        shown = {number for item in filled.items for number in (item.id, *item.joined)}
        return Context(
            text=filled.text,
            tokens=filled.tokens,
            max_tokens=max_tokens,
            tokenizer=filled.tokenizer,
            items=filled.items,
            omitted=tuple(entry.id for entry in entries if entry.id not in shown),
            basis=self.basis,
            now=self.now,
            log_id=self.log_id,
            fallback=not hits,
        )

    def source_of(self, frame: Frame) -> str:
        """Return the line that names where a frame comes from: id, title, place and day."""
        parts = [f"#{frame.id}"]
        if frame.title:
            parts.append(frame.title)
        if frame.uri and frame.uri != frame.title:
            parts.append(frame.uri)
        parts.append(frame.created.date().isoformat())
        return " · ".join(parts)


def _place_of(frame: Frame) -> tuple[int | None, int]:
    """Return the document that a chunk is of, and where in it its text starts; a turn is whole."""
    match frame.metadata.get(SPAN):
        case [int() as start, int() as end] if end - start == len(frame.text) and not frame.role:
            return frame.parent, start
        case _:
            return None, 0


def _shown(frame: Frame) -> str:
    """Return what a context shows of a frame: everything that was found is shown or omitted."""
    for text in (frame.text, frame.search_text or ""):
        if text.strip():
            return text
    return f"({frame.size:,} {'byte' if frame.size == 1 else 'bytes'})"


def _check_query(query: object) -> None:
    if isinstance(query, Query):
        return
    if not isinstance(query, str):
        raise InvalidInput(
            f"A query must be a string, not {type(query).__name__}",
            remedy="Ask in plain language, or make one with cerata.query('…').",
        )
    if not is_unicode(query):
        raise InvalidInput(f"The query is not valid Unicode: {query!r}")
