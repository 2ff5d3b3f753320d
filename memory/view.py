"""Views: the memory as it was at one event, read-only.

Owns `View` and every read. A view holds the log's snapshot and reads projections as of its seq;
it never changes, whatever is written meanwhile, and any thread may use it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from itertools import islice
from typing import Any, TypeVar, overload

import numpy as np

from cerata.engine.errors import InvalidInput, NotFound, Unsupported
from cerata.engine.events import Event, PutFrame, Scope
from cerata.engine.head import Head
from cerata.engine.log import Log
from cerata.projections import text as words
from cerata.projections.columns import Mask
from cerata.projections.frame_table import Closing
from cerata.projections.ranking import FulltextView
from cerata.projections.row_fold import OwnProjection
from cerata.projections.rows import RowProjection
from cerata.projections.times import to_datetime
from cerata.replay.fold import Fold
from cerata.retrieval.context import Entry, fill
from cerata.retrieval.span import best_span

from .gathered import Gathered, GatheredEvent
from .layer import Layer
from .references import is_within
from .values import Context, Frame, FrameId, Hit, frame_id

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
    def _layers(self) -> tuple[Layer, ...]:
        gathered = self._gathered
        if gathered is None:
            return (self.base,)
        return self.base, Layer(gathered.folds, gathered.count, self.scope, sign=-1)

    def _layer(self, frame: int) -> Layer | None:
        """Return the layer that has frames of such ids, or None."""
        return self.base if frame > 0 else self._layers[1] if self._gathered else None

    @cached_property
    def _active(self) -> tuple[Mask, ...]:
        """Rows within the scope that are current, by layer."""
        masks = tuple(layer.active for layer in self._layers)
        if self._gathered is not None and self._gathered.closings:
            closed = np.array(list(self._gathered.closings), np.int64)
            masks = tuple(mask.copy() for mask in masks)
            for layer, mask in zip(self._layers, masks, strict=True):
                mask[layer.rows_of(closed[closed * layer.sign > 0])] = False
        return masks

    @cached_property
    def _ranking(self) -> FulltextView:
        """The ranking, with the statistics of what is current; its rows are all layers'."""
        fulltext = self.base.fulltext
        if self._gathered is not None:
            fulltext = self._gathered.folds.fulltext_over(fulltext, self.base.rows)
        searched = _end_to_end([layer.searched for layer in self._layers])
        return fulltext.view(_end_to_end(self._active) & searched)

    def count(self) -> tuple[int, int]:
        """Return how many frames are current and how many were closed, chunks left out."""
        current = every = 0
        for layer, active in zip(self._layers, self._active, strict=True):
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
        number = frame_id(frame)
        if not self._is_there(number):
            raise NotFound(
                f"There is no frame {number:,}",
                where=f"basis {self.basis:,}",
                remedy="Frame ids are shown by search, frames and log."
                if number > 0
                else "Ids below 0 are those of an open transaction.",
            )
        return self._frame(number)

    def _is_there(self, frame: int) -> bool:
        layer = self._layer(frame)
        return layer is not None and layer.row_of(frame) is not None

    def content(self, frame: FrameId) -> bytes:
        """Return a frame's content: the bytes of a blob, or its text as UTF-8."""
        found = self.frame(frame)
        body = self._event(found.id).body
        if not isinstance(body, PutFrame) or body.blob is None:
            return found.text.encode()
        if self._gathered is not None and found.id < 0:
            return self._gathered.drafts[-found.id - 1].attachments[0]
        return self._log.attachment(found.id, body.blob)

    def frames(
        self, *, include_superseded: bool = False, include_chunks: bool = False
    ) -> Iterator[Frame]:
        """Yield frames, newest first; those that were closed only on request.

        A document that was split comes as one frame unless chunks are asked for.
        """
        for layer, active in reversed(list(zip(self._layers, self._active, strict=True))):
            mask = layer.visible if include_superseded else active
            if not include_chunks:
                mask = mask & ~layer.is_chunk
            for number in layer.ids(np.flatnonzero(mask)[::-1]).tolist():
                yield self._frame(number)

    def children(self, frame: FrameId) -> list[int]:
        """Return the ids of the frames put directly below one, in order."""
        number = frame_id(frame)
        stored = self.base.frames.children(number, self.basis) if number > 0 else []
        return stored if self._gathered is None else [*stored, *self._gathered.below(number)]

    def chunks(self, document: FrameId) -> dict[int, int]:
        """Return the current chunks of a document: index to frame id, in order of the index.

        Of a document that was closed, those that it had until then.
        """
        number = frame_id(document)
        closed = self._closing(number)
        found: dict[int, int] = {}
        for child in self.children(number):
            index, closing = self._chunk_index(child), self._closing(child)
            is_there = closed is None or self._moment(child) < closed.seq
            is_part = closing is None or (closed is not None and closing.seq >= closed.seq)
            if index is not None and is_there and is_part:
                found.setdefault(index, child)
        return dict(sorted(found.items()))

    def _chunk_index(self, frame: int) -> int | None:
        layer = self._layer(frame)
        row = None if layer is None else layer.frames.frame(frame * layer.sign)
        return None if row is None else row.chunk_index

    def find_content(self, content_hash: bytes) -> list[int]:
        """Return the current frames with this content hash (16 bytes of BLAKE3)."""
        return self._found(lambda layer: layer.frames.find_content(content_hash, layer.n))

    def find_uri(self, uri: str) -> list[int]:
        """Return the current frames with this URI, chunks included."""
        return self._found(lambda layer: layer.frames.find_uri(uri, layer.n))

    def _found(self, find: Callable[[Layer], list[int]]) -> list[int]:
        return [
            number * layer.sign
            for layer in self._layers
            for number in find(layer)
            if layer.row_of(number * layer.sign) is not None
            and self._closing(number * layer.sign) is None
        ]

    def log(self, first: int = 1, last: int | None = None) -> Iterator[Event]:
        """Yield the events of this view in seq order.

        Within a scope only those written under it come.
        """
        stop = self.basis if last is None else min(last, self.basis)
        for event in self._log.read(first, stop):
            if self.scope is None or is_within(event.scope, self.scope):
                yield event

    def _event(self, frame: int) -> Event | GatheredEvent:
        if frame < 0 and self._gathered is not None:
            return self._gathered.event(frame)
        return self._log.event(frame)

    def _moment(self, frame: int) -> int:
        """Return the seq at which a frame came, or would come if nobody else wrote."""
        return frame if frame > 0 else self.basis - frame

    def _closing(self, frame: int) -> Closing | None:
        """Return how a frame stopped being current, or None while it is."""
        closed = None if self._gathered is None else self._gathered.closings.get(frame)
        if closed is None and frame > 0:
            closed = self.base.frames.closing_of(frame, self.basis)
        return closed

    def _supersedes(self, frame: int) -> tuple[int, ...]:
        found = self.base.frames.supersedes_of(frame, self.basis) if frame > 0 else []
        if self._gathered is not None:
            found = sorted([*found, *self._gathered.replaced.get(frame, ())], key=self._moment)
        return tuple(found)

    def _frame(self, number: int) -> Frame:
        event = self._event(number)
        body = event.body
        closing = self._closing(number)
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
            supersedes=self._supersedes(number),
            superseded_by=None if closing is None else closing.by,
            active=closing is None,
            chunk_index=body.chunk_index,
            chunk_count=body.chunk_count,
            search_text=body.search_text,
            size=size,
        )

    def _joined(self, document: int) -> str:
        bodies = (self._event(chunk).body for chunk in self.chunks(document).values())
        return "".join(body.text or "" for body in bodies if isinstance(body, PutFrame))

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
            projection's rows are of all.
        """
        if self.scope is not None:
            raise Unsupported(
                "A projection's rows are not narrowed to a scope",
                remedy="Read it from a store without one; keep the scope in the rows' keys.",
            )
        name = which if isinstance(which, str) else which.name
        return self._fold.own(name, self.basis)

    # --- questions -------------------------------------------------------------------------------

    def search(self, query: str, *, k: int = 10, include_superseded: bool = False) -> list[Hit]:
        """Return the best ``k`` frames for a plain-language question, best first.

        Any of its words may match; ties go to the older frame. Scores are BM25 over the frames
        that are current in this view, so they are what they were then.

        Raises:
            InvalidInput: the query is not a string, or k is not positive.
        """
        if not isinstance(query, str):
            raise InvalidInput(f"A query must be a string, not {type(query).__name__}")
        if isinstance(k, bool) or not isinstance(k, int) or k <= 0:
            raise InvalidInput(f"k is {k!r}", remedy="Ask for 1 or more.")
        terms = _terms_of(query)
        among = None
        if include_superseded:
            among = _end_to_end([layer.visible & layer.searched for layer in self._layers])
        ranked = self._ranking.rank(terms, k=k, among=among)
        wanted = frozenset(terms)
        return [
            Hit(self._id_at(row), round(float(score), 9), ("text",), self, wanted)
            for row, score in zip(ranked.rows.tolist(), ranked.scores.tolist(), strict=True)
        ]

    def _id_at(self, row: int) -> int:
        """Return the id of a frame by its row among those of all layers."""
        base = self.base.rows
        layer, at = (self.base, row) if row < base else (self._layers[1], row - base)
        return int(layer.frames.ids[at]) * layer.sign

    def recall(self, query: str, *, max_tokens: int = 1500) -> Context:
        """Return the best entries for a question that fit ``max_tokens``, with their sources.

        Where nothing matches, the newest frames stand in, and the context says so. Bytes are
        shown as their ``search_text``, or as how many there are. A token is one byte of UTF-8
        for now.
        """
        hits = self.search(query, k=_CONTEXT_HITS)
        wanted = frozenset(_terms_of(query))
        if hits:
            found = [hit.frame for hit in hits]
        else:
            found = [self._frame(number) for number in islice(self._newest(), _CONTEXT_HITS)]
        texts = [_shown(frame) for frame in found]
        entries = [
            Entry(frame.id, self.source_of(frame), text, best_span(text, wanted))
            for frame, text in zip(found, texts, strict=True)
        ]
        items, text = fill(entries, max_tokens)
        shown = {item.id for item in items}
        return Context(
            text=text,
            tokens=len(text.encode()),
            max_tokens=max_tokens,
            items=tuple(items),
            omitted=tuple(entry.id for entry in entries if entry.id not in shown),
            basis=self.basis,
            now=self.now,
            fallback=not hits,
        )

    def _newest(self) -> Iterator[int]:
        """Yield what a search could find, newest first."""
        for layer, active in reversed(list(zip(self._layers, self._active, strict=True))):
            yield from layer.ids(np.flatnonzero(active & layer.searched)[::-1]).tolist()

    def source_of(self, frame: Frame) -> str:
        """Return the line that names where a frame comes from: id, title, place and day."""
        parts = [f"#{frame.id}"]
        if frame.title:
            parts.append(frame.title)
        if frame.uri and frame.uri != frame.title:
            parts.append(frame.uri)
        parts.append(frame.created.date().isoformat())
        return " · ".join(parts)


def _end_to_end(masks: Sequence[Mask]) -> Mask:
    return masks[0] if len(masks) == 1 else np.concatenate(masks)


def _shown(frame: Frame) -> str:
    """Return what a context shows of a frame: everything that was found is shown or omitted."""
    for text in (frame.text, frame.search_text or ""):
        if text.strip():
            return text
    return f"({frame.size:,} {'byte' if frame.size == 1 else 'bytes'})"


def _terms_of(query: str) -> list[str]:
    """Return the distinct terms of a question in order."""
    try:
        query.encode()
    except UnicodeEncodeError as error:
        raise InvalidInput(f"The query is not valid Unicode: {error.reason}") from error
    return list(dict.fromkeys(words.terms(query)))
