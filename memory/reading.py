"""Reading: every read that asks for what is there, written once for a view and for a store.

Owns what they return. `Reads` is the mixin of both: a view reads itself, a store the newest
state, so each has the same reads with the same words. Leaves out questions (`asking`) and where
the state comes from (`view`).
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Any, TypeVar, overload

from cerata.engine.errors import InvalidInput
from cerata.engine.events import DEFAULT_SCOPE, Event
from cerata.projections.filters import Filter
from cerata.projections.row_fold import OwnProjection
from cerata.projections.rows import RowProjection
from cerata.projections.scopes import is_within
from cerata.projections.timeline import Position, TimelineOrder
from cerata.projections.times import to_datetime, to_microseconds

from .access import Access, access_of, all_access
from .asking import Questions
from .believing import Beliefs
from .drafting import check_content_hash, check_number, is_unicode
from .graph_reading import GraphReads
from .link_reading import LinkReads
from .paging import Paging, page_of
from .picturing import PictureReads
from .values import Frame, FrameId, Stored, TimelineEntry, TimelinePage

OwnType = TypeVar("OwnType", bound=RowProjection[Any, Any])


class Reads(Questions, Beliefs, GraphReads, LinkReads, PictureReads):
    """The reads of a view, and of a store at its newest event."""

    # --- frames ----------------------------------------------------------------------------------

    def count(self) -> tuple[int, int]:
        """Return how many frames are current and how many were closed, chunks left out."""
        layers = self.view().layers
        current = every = 0
        for layer, active in zip(layers.all, layers.active, strict=True):
            own = layer.visible & ~layer.is_chunk
            current += int((own & active).sum())
            every += int(own.sum())
        return current, every - current

    def __len__(self) -> int:
        """Return how many frames are current, a split document counted once."""
        return self.count()[0]

    def frame(self, frame: FrameId) -> Frame:
        """Return a frame, current or not, as this view sees it.

        Raises:
            NotFound: no frame with this id at this basis, or it is outside the scope.
        """
        view = self.view()
        return view.shown(view.existing(frame))

    def content(self, frame: FrameId) -> bytes:
        """Return a frame's content: the bytes of a blob, or its text as UTF-8."""
        view = self.view()
        found = view.frame(frame)
        blob = view.blob(found.id)
        return found.text.encode() if blob is None else blob

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
        view = self.view()
        layers = view.layers
        masks = layers.admitted(
            where, include_superseded=include_superseded, include_deleted=include_deleted
        )
        if not include_chunks:
            masks = layers.whole(masks)
        return map(view.shown, layers.newest(masks))

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
        view = self.view()
        masks = view.layers.admitted(
            where, include_superseded=include_superseded, include_deleted=include_deleted
        )
        if not include_chunks:
            masks = view.layers.whole(masks)
        paging = Paging(
            by,
            None if start is None else to_microseconds(start),
            None if end is None else to_microseconds(end),
            after,
            limit,
            newest_first,
        )
        page = page_of(view.layers, masks, paging)
        entries = [TimelineEntry(one.frame, to_datetime(one.time), view) for one in page.entries]
        return TimelinePage(tuple(entries), page.next)

    def history(self, frame: FrameId) -> list[Frame]:
        """Return every version of a frame: what it took the place of, itself, what took its.

        Oldest first; several frames may have been superseded by one.

        Raises:
            NotFound: no frame with this id at this basis, or it is outside the scope.
        """
        view = self.view()
        number = view.existing(frame)
        known, waiting = {number}, [number]
        for one in waiting:
            closing = view.layers.closing_of(one)
            after = [] if closing is None or closing.by is None else [closing.by]
            near = (*view.layers.supersedes_of(one), *after)
            waiting += [other for other in near if other not in known]
            known.update(near)
        versions = sorted(view.seen(known), key=view.layers.moment)
        return [view.shown(one) for one in versions]

    def children(self, frame: FrameId) -> list[int]:
        """Return the ids of the frames put directly below one, in order; those within the scope.

        Raises:
            NotFound: no frame with this id at this basis, or it is outside the scope.
        """
        view = self.view()
        return view.seen(view.layers.children(view.existing(frame)))

    def chunks(self, document: FrameId) -> dict[int, int]:
        """Return the current chunks of a document: index to frame id, in order of the index.

        Of a document that was closed, those that it had until then.

        Raises:
            NotFound: no frame with this id at this basis, or it is outside the scope.
        """
        view = self.view()
        chunks = view.layers.chunks(view.existing(document))
        seen = set(view.seen(chunks.values()))
        return {index: chunk for index, chunk in chunks.items() if chunk in seen}

    def find_content(self, content_hash: bytes) -> list[int]:
        """Return the current frames with this content hash, of `cerata.content_hash`."""
        check_content_hash(content_hash)
        return self.view().layers.current(
            lambda layer: layer.frames.find_content(content_hash, layer.n)
        )

    def find_stored(
        self, content_hash: bytes, *, chunk_count: int | None = None, space: str | None = None
    ) -> list[Stored]:
        """Return the current frames with a content, in as many chunks, oldest first.

        By this an ingest skips what is there and goes on where it stopped. ``content_hash`` is that
        of `cerata.content_hash`; ``chunk_count`` is None for a content in one frame; with
        ``space``, the name of an embedder's space, what has no embedding in it is told too.
        """
        check_content_hash(content_hash)
        return self.view().layers.find_stored(content_hash, chunk_count, space)

    def find_uri(self, uri: str) -> list[int]:
        """Return the current frames with this URI, chunks included."""
        if not isinstance(uri, str):
            raise InvalidInput(
                f"A URI must be a string, not {type(uri).__name__}", remedy="Pass a str."
            )
        if not is_unicode(uri):
            return []
        return self.view().layers.current(lambda layer: layer.frames.find_uri(uri, layer.n))

    def access(self, frame: FrameId) -> Access:
        """Return how often recorded recalls showed a frame, and how often it was used.

        Counted is what was recorded within the view's scope. Cost: of a state that was not asked
        yet a copy of the counts of all frames, and a pass over them; else O(1).

        Raises:
            NotFound: no frame with this id at this basis, or it is outside the scope.
        """
        view = self.view()
        return access_of(view, view.existing(frame))

    def accesses(self) -> list[Access]:
        """Return how often each frame was shown and used that was, the most used first.

        Of those used as often the most shown come first, then the newest; counted as in `access`.
        """
        return all_access(self.view())

    # --- the log, tags, and users' own projections -----------------------------------------------

    def log(self, first: int = 1, last: int | None = None) -> Iterator[Event]:
        """Yield the events of this view in seq order.

        Within a scope only those written under it come. Without ``last``, those follow that an
        open transaction has gathered, under the seqs −1, −2, ….

        Raises:
            InvalidInput: ``first`` or ``last`` is no number.
        """
        check_number("first", first)
        if last is not None:
            check_number("last", last)
        return self.view().events(first, last)

    def tags(self) -> dict[str, int]:
        """Return what each tag that there was at this basis stands for, in order of name.

        Where several tags that the view sees have one name, the first of them holds; without a
        scope, that of the tenant ``default`` if it has one.
        """
        view = self.view()
        found: dict[str, tuple[bool, int, int]] = {}
        for scope, name, at, seq in view.tagged():
            row = view.scope is None and not is_within(scope, DEFAULT_SCOPE), seq, at
            found[name] = min(row, found.get(name, row))
        return {name: at for name, (_, _, at) in sorted(found.items())}

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
            raise InvalidInput(
                f"{which!r} is neither a projection's name nor its class",
                remedy="Pass a name, or a subclass of cerata.RowProjection.",
            )
        return self.view().own(which if isinstance(which, str) else which.name)
