"""Views: the memory as it was at one event, read-only.

Owns `View` and every read. A view holds the log's snapshot and reads projections as of its seq;
it never changes, whatever is written meanwhile, and any thread may use it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Any, TypeVar, overload

import numpy as np
import numpy.typing as npt

from cerata.engine.errors import InvalidInput, NotFound, Unsupported
from cerata.engine.events import Event, PutFrame, Scope
from cerata.engine.head import Head
from cerata.engine.log import Log
from cerata.projections import text as words
from cerata.projections.frame_table import Frames
from cerata.projections.ranking import FulltextView
from cerata.projections.row_fold import OwnProjection
from cerata.projections.rows import RowProjection
from cerata.projections.times import to_datetime
from cerata.replay.fold import Fold
from cerata.retrieval.context import Entry, fill
from cerata.retrieval.span import best_span

from .references import is_within
from .values import Context, Frame, FrameId, Hit, frame_id

OwnType = TypeVar("OwnType", bound=RowProjection[Any, Any])

DOCUMENT_KIND = "document"
"""The kind of a frame that was split: its chunks are searched, not it."""

_CONTEXT_HITS = 100
"""Hits that a context chooses from."""


@dataclass(frozen=True)
class View:
    """The memory at seq ``basis``: the first ``basis`` events and nothing after.

    ``scope`` narrows it to what was written under these names. It may be held while others
    write: it shares the store's state, of which only more is appended, and copies nothing.
    """

    _log: Log
    _fold: Fold
    basis: int
    scope: Scope | None = None
    now_us: int | None = None
    """The clock's time where the view is one of the head, in microseconds since 1970 UTC."""

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

    @cached_property
    def _frames(self) -> Frames:
        return self._fold.frames(self.basis)

    @cached_property
    def _visible(self) -> npt.NDArray[np.bool_]:
        """Rows within the scope, current or not."""
        frames = self._frames
        if self.scope is None:
            return np.ones(frames.rows_at(self.basis), np.bool_)
        wanted = self.scope
        return frames.scope_mask(lambda scope: is_within(scope, wanted), self.basis)

    @cached_property
    def _active(self) -> npt.NDArray[np.bool_]:
        """Rows within the scope that are current."""
        return self._frames.alive(self.basis) & self._visible

    @cached_property
    def _searched(self) -> npt.NDArray[np.bool_]:
        """Rows that a search looks at: a split document is found by its chunks."""
        return ~self._frames.kind_mask({DOCUMENT_KIND}, self.basis)

    @cached_property
    def _ranking(self) -> FulltextView:
        """The ranking, with the statistics of what is current."""
        return self._fold.fulltext(self.basis).view(self._active & self._searched)

    def count(self) -> tuple[int, int]:
        """Return how many frames are current and how many were closed, chunks left out."""
        own = self._visible & ~self._is_chunk
        current = int((own & self._active).sum())
        return current, int(own.sum()) - current

    def __len__(self) -> int:
        """Return how many frames are current, a split document counted once."""
        return self.count()[0]

    @cached_property
    def _is_chunk(self) -> npt.NDArray[np.bool_]:
        return self._frames.chunk_mask(self.basis)

    # --- frames ----------------------------------------------------------------------------------

    def frame(self, frame: FrameId) -> Frame:
        """Return a frame, current or not, as this view sees it.

        Raises:
            NotFound: no frame with this id at this basis, or it is outside the scope.
        """
        number = frame_id(frame)
        row = self._frames.row_of(number)
        if row is None or number > self.basis or not self._visible[row]:
            raise NotFound(
                f"There is no frame {number:,}",
                where=f"basis {self.basis:,}",
                remedy="Frame ids are shown by search, frames and log.",
            )
        return self._frame(self._log.event(number))

    def content(self, frame: FrameId) -> bytes:
        """Return a frame's content: the bytes of a blob, or its text as UTF-8."""
        found = self.frame(frame)
        body = self._log.event(found.id).body
        if isinstance(body, PutFrame) and body.blob is not None:
            return self._log.attachment(found.id, body.blob)
        return found.text.encode()

    def frames(
        self, *, include_superseded: bool = False, include_chunks: bool = False
    ) -> Iterator[Frame]:
        """Yield frames, newest first; those that were closed only on request.

        A document that was split comes as one frame unless chunks are asked for.
        """
        mask = self._visible if include_superseded else self._active
        if not include_chunks:
            mask = mask & ~self._is_chunk
        for row in np.flatnonzero(mask)[::-1].tolist():
            yield self._frame(self._log.event(int(self._frames.ids[row])))

    def children(self, frame: FrameId) -> list[int]:
        """Return the ids of the frames put directly below one, in order."""
        return self._frames.children(frame_id(frame), self.basis)

    def chunks(self, document: FrameId) -> dict[int, int]:
        """Return the current chunks of a document: index to frame id, in order of the index."""
        found: dict[int, int] = {}
        for child in self.children(document):
            row = self._frames.frame(child)
            closed = self._frames.closing_of(child, self.basis) is not None
            if row is not None and row.chunk_index is not None and not closed:
                found.setdefault(row.chunk_index, child)
        return dict(sorted(found.items()))

    def find_content(self, content_hash: bytes) -> list[int]:
        """Return the current frames with this content hash (16 bytes of BLAKE3)."""
        return self._within(self._frames.find_content(content_hash, self.basis))

    def find_uri(self, uri: str) -> list[int]:
        """Return the current frames with this URI, chunks included."""
        return self._within(self._frames.find_uri(uri, self.basis))

    def _within(self, found: list[int]) -> list[int]:
        frames = self._frames
        return [one for one in found if self._visible[frames.row_of(one) or 0]]

    def log(self, first: int = 1, last: int | None = None) -> Iterator[Event]:
        """Yield the events of this view in seq order.

        Within a scope only those written under it come.
        """
        stop = self.basis if last is None else min(last, self.basis)
        for event in self._log.read(first, stop):
            if self.scope is None or is_within(event.scope, self.scope):
                yield event

    def _frame(self, event: Event) -> Frame:
        body = event.body
        frames, basis = self._frames, self.basis
        closing = frames.closing_of(event.seq, basis)
        recorded = to_datetime(event.recorded)
        if not isinstance(body, PutFrame):
            body = PutFrame(kind="erased")
        text = body.text or ""
        if body.chunk_count is not None and body.chunk_index is None:
            text = self._joined(event.seq)
        size = body.blob.size if body.blob is not None else len(text.encode())
        return Frame(
            id=event.seq,
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
            supersedes=tuple(frames.supersedes_of(event.seq, basis)),
            superseded_by=None if closing is None else closing.superseded_by,
            active=closing is None,
            chunk_index=body.chunk_index,
            chunk_count=body.chunk_count,
            search_text=body.search_text,
            size=size,
        )

    def _joined(self, document: int) -> str:
        closing = self._frames.closing_of(document, self.basis)
        # A document that was closed is read as it was just before, chunks and all.
        then = self if closing is None else replace(self, basis=closing.seq - 1)
        bodies = (self._log.event(chunk).body for chunk in then.chunks(document).values())
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
        among = self._visible & self._searched if include_superseded else None
        ranked = self._ranking.rank(terms, k=k, among=among)
        wanted = frozenset(terms)
        ids = self._frames.ids
        return [
            Hit(int(ids[row]), round(float(score), 9), ("text",), self, wanted)
            for row, score in zip(ranked.rows.tolist(), ranked.scores.tolist(), strict=True)
        ]

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
            mask = self._active & self._searched
            rows = np.flatnonzero(mask)[::-1][:_CONTEXT_HITS]
            found = [self.frame(int(self._frames.ids[row])) for row in rows]
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

    def source_of(self, frame: Frame) -> str:
        """Return the line that names where a frame comes from: id, title, place and day."""
        parts = [f"#{frame.id}"]
        if frame.title:
            parts.append(frame.title)
        if frame.uri and frame.uri != frame.title:
            parts.append(frame.uri)
        parts.append(frame.created.date().isoformat())
        return " · ".join(parts)


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
