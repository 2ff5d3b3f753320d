"""Reading frames: the reads of frames, times, events, tags and projections.

Leaves out questions (`search.reads`) and the state (`snapshot.snapshot`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import islice
from typing import Any, TypeVar, overload

from cerata.engine.arguments import (
    expect_integer,
    expect_positive,
    expect_string,
    expect_type,
)
from cerata.engine.errors import InvalidInput
from cerata.engine.events import DEFAULT_SCOPE, Event, EventBody, JsonValue, Scope, ScopeValue
from cerata.projections.columnar.relative_times import interval_of
from cerata.projections.columnar.scopes import Reach, admits
from cerata.projections.columnar.times import to_datetime
from cerata.projections.frames.filters import Filter
from cerata.projections.frames.timeline import Position, TimelineOrder
from cerata.projections.rows.row_fold import OwnProjection
from cerata.projections.rows.row_projection import RowProjection

from ..snapshot.reader import Reader
from ..values.arguments import check_content_hash
from ..values.frames import Frame, FrameId, Stored, TimelineEntry, TimelinePage
from .access import Access, access_of, all_access
from .conversation import neighbours_of, newest_frames
from .events import EventFilter, events_of, type_name
from .messages import message_of
from .timeline import Paging, page_of
from .value_counts import ValueCount, value_counts

OwnType = TypeVar("OwnType", bound=RowProjection[Any, Any])


class FrameReads(Reader):
    """The reads of frames, events, tags and projections."""

    # --- frames ----------------------------------------------------------------------------------

    def __bool__(self) -> bool:
        """True, also without frames: ``store or other`` must not replace an empty store."""
        return True

    def count(self, where: Filter | None = None) -> tuple[int, int]:
        """Return how many frames are current and how many were closed, without chunks.

        Expired frames count among the closed. ``current, closed = store.count()``.

        Args:
            where: The frames to count; default None counts all.

        Raises:
            InvalidInput: ``where`` is not a `Filter`.
        """
        return self._snapshot().layers.counts(where)

    def get(self, uri: str) -> Frame | None:
        """Return the current frame with a URI, or None without one; the newest of several.

        A frame of exactly the view's scope comes before frames of other scopes; a document comes
        without its chunks.

        Args:
            uri: The whole URI.

        Raises:
            InvalidInput: ``uri`` is not a string.
        """
        snapshot = self._snapshot()
        number = snapshot.layers.newest_of_uri(expect_string("A URI", uri))
        return None if number is None else snapshot.frame_at(number)

    def values(
        self,
        field: str,
        *,
        prefix: str = "",
        where: Filter | None = None,
        include_chunks: bool = False,
    ) -> list[ValueCount]:
        """Return the distinct values of a field of the current frames, with their counts.

        The most frequent value comes first, ties in order of value. Cost: a pass over the values of
        the field, which the columns store.

        Args:
            field: "tag", "label", "kind", "role", "track", "title"; "uri" for the URIs up to the
                next "/" after ``prefix``; "metadata" for the keys, "metadata.NAME" for the values
                of a key.
            prefix: Only names that start with it; default all.
            where: The frames to count; default None counts all.
            include_chunks: Also count the chunks of split documents; default False.

        Raises:
            InvalidInput: the field is unknown, or ``where`` is not a `Filter`.
        """
        expect_string("field", field)
        expect_string("prefix", prefix)
        layers = self._snapshot().layers
        masks = layers.admitted(where)
        if not include_chunks:
            masks = layers.whole(masks)
        return value_counts(layers, masks, field, prefix)

    def __len__(self) -> int:
        """Return how many frames are current, a split document counted once."""
        return self.count()[0]

    def frame(self, frame: FrameId) -> Frame:
        """Return a frame, current or closed, as this view sees it.

        Args:
            frame: The frame's id, or a value that has the id.

        Raises:
            NotFound: no frame with this id exists at this basis within the scope.
        """
        snapshot = self._snapshot()
        return snapshot.frame_at(snapshot.id_of(frame))

    def content(self, frame: FrameId) -> bytes:
        """Return a frame's content: the bytes of a blob, or its text as UTF-8.

        Args:
            frame: The frame's id, or a value that has the id.

        Raises:
            NotFound: no frame with this id exists at this basis within the scope.
        """
        snapshot = self._snapshot()
        return snapshot.content_of(snapshot.id_of(frame))

    def frames(
        self,
        where: Filter | None = None,
        *,
        include_superseded: bool = False,
        include_deleted: bool = False,
        include_chunks: bool = False,
    ) -> Iterator[Frame]:
        """Yield the frames that a filter admits, newest first.

        Expired frames are left out, as in every read of many frames.

        Args:
            where: The filter; default None admits all.
            include_superseded: Also yield frames that were superseded; default False.
            include_deleted: Also yield frames that were deleted; default False.
            include_chunks: Also yield the chunks of split documents; default False.

        Raises:
            InvalidInput: ``where`` is not a `Filter`.
        """
        snapshot = self._snapshot()
        layers = snapshot.layers
        masks = layers.admitted(
            where, include_superseded=include_superseded, include_deleted=include_deleted
        )
        if not include_chunks:
            masks = layers.whole(masks)
        return map(snapshot.frame_at, layers.newest(masks))

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

        Pages are stable while other writers append. Cost: O(log n) and the page, at the head.

        Args:
            by: "content", the default: a frame's content dates, or when created; or "recorded".
            start: The earliest time, also in words such as "yesterday"; default None, no bound.
            end: The time before which the page ends; default None, no bound.
            where: A filter of the frames; default None admits all.
            after: The ``next`` of the page before; default None, the first page.
            limit: Most entries of the page; default 50.
            newest_first: Order from new to old; default True.
            include_superseded: Also return frames that were superseded; default False.
            include_deleted: Also return frames that were deleted; default False.
            include_chunks: Also return the chunks of split documents; default False.

        Raises:
            InvalidInput: a time has no zone, the range ends before its start, the order is unknown,
                or the limit is not positive.
        """
        snapshot = self._snapshot()
        masks = snapshot.layers.admitted(
            where, include_superseded=include_superseded, include_deleted=include_deleted
        )
        if not include_chunks:
            masks = snapshot.layers.whole(masks)
        paging = Paging(
            by,
            *_range_of(start, end, snapshot.now),
            after,
            limit,
            newest_first,
        )
        page = page_of(snapshot.layers, masks, paging)
        entries = [
            TimelineEntry(position.frame, to_datetime(position.time), snapshot)
            for position in page.entries
        ]
        return TimelinePage(tuple(entries), page.next)

    def last(
        self,
        count: int = 10,
        *,
        track: str | None = None,
        where: Filter | None = None,
        include_chunks: bool = False,
    ) -> list[Frame]:
        """Return the newest current frames in the order of their recording, the newest last.

        Cost: a mask of the frames, and the frames returned.

        Args:
            count: Most frames to return; default 10.
            track: The track of the frames, such as a conversation; default None, any.
            where: A filter of the frames; default None admits all.
            include_chunks: Also return the chunks of split documents; default False.

        Raises:
            InvalidInput: the count is not positive, or ``where`` is not a `Filter`.
        """
        expect_positive("count", count)
        snapshot = self._snapshot()
        newest = newest_frames(snapshot, _on_track(track, where), include_chunks=include_chunks)
        return [snapshot.frame_at(number) for number in islice(newest, count)][::-1]

    def messages(
        self,
        last: int | None = None,
        *,
        track: str | None = None,
        where: Filter | None = None,
    ) -> list[dict[str, JsonValue]]:
        """Return the newest current frames that have a role, as chat interfaces take messages.

        The messages are in the order of their recording, the newest last. A message stored by
        `Store.remember_messages` has all its members again.

        Args:
            last: Most messages to return; default None returns all.
            track: The track of the frames, such as a conversation; default None, any.
            where: A filter of the frames; default None admits all.

        Raises:
            InvalidInput: ``last`` is not positive, or ``where`` is not a `Filter`.
        """
        if last is not None:
            expect_positive("last", last)
        snapshot = self._snapshot()
        frames = map(snapshot.frame_at, newest_frames(snapshot, _on_track(track, where)))
        spoken = (frame for frame in frames if frame.role is not None)
        return [message_of(frame) for frame in islice(spoken, last)][::-1]

    def around(self, frame: FrameId, *, before: int = 1, after: int = 1) -> list[Frame]:
        """Return a frame and its neighbours, in order.

        A chunk has neighbours in its document, a frame with a track in that track, in the order of
        recording; any other frame has none.

        Args:
            frame: The frame's id, or a value that has the id, such as a hit.
            before: Most neighbours before the frame; default 1.
            after: Most neighbours after the frame; default 1.

        Raises:
            NotFound: no frame with this id exists at this basis within the scope.
            InvalidInput: a count is negative.
        """
        snapshot = self._snapshot()
        numbers = neighbours_of(snapshot, snapshot.id_of(frame), before, after)
        return [snapshot.frame_at(number) for number in numbers]

    def history(self, frame: FrameId) -> list[Frame]:
        """Return every version of a frame, earlier and later, oldest first.

        One frame may supersede several, so a history may branch.

        Args:
            frame: The frame's id, or a value that has the id.

        Raises:
            NotFound: no frame with this id exists at this basis within the scope.
        """
        snapshot = self._snapshot()
        number = snapshot.id_of(frame)
        reached = {number}
        waiting = [number]
        for version in waiting:
            closing = snapshot.layers.closing_of(version)
            after = [] if closing is None or closing.by is None else [closing.by]
            near = (*snapshot.layers.supersedes_of(version), *after)
            waiting += [neighbour for neighbour in near if neighbour not in reached]
            reached.update(near)
        versions = sorted(snapshot.visible(reached), key=snapshot.layers.moment)
        return [snapshot.frame_at(version) for version in versions]

    def children(self, frame: FrameId) -> list[int]:
        """Return the ids of the frames within the scope put directly below a frame, in order.

        Args:
            frame: The parent's id, or a value that has the id.

        Raises:
            NotFound: no frame with this id exists at this basis within the scope.
        """
        snapshot = self._snapshot()
        return snapshot.visible(snapshot.layers.children(snapshot.id_of(frame)))

    def chunks(self, document: FrameId) -> dict[int, int]:
        """Return the chunks of a document: index to frame id, in order of the index.

        A current document has its current chunks; a closed document, the chunks at its closing.

        Args:
            document: The document's frame id, or a value that has the id.

        Raises:
            NotFound: no frame with this id exists at this basis within the scope.
        """
        snapshot = self._snapshot()
        return snapshot.chunks_of(snapshot.id_of(document))

    def find_content(self, content_hash: bytes) -> list[int]:
        """Return the ids of the current frames with a content hash.

        Args:
            content_hash: The hash from `cerata.content_hash`.
        """
        check_content_hash(content_hash)
        return self._snapshot().layers.find_content(content_hash)

    def find_stored(
        self, content_hash: bytes, *, chunk_count: int | None = None, space: str | None = None
    ) -> list[Stored]:
        """Return the current frames with a content, and their missing parts, oldest first.

        An ingest uses this to skip stored content and to continue an interrupted document.

        Args:
            content_hash: The hash from `cerata.content_hash`.
            chunk_count: The count of chunks of the document; default None, a single frame.
            space: An embedder's space; with a space, `Stored.unembedded` is filled. Default None.
        """
        check_content_hash(content_hash)
        return self._snapshot().layers.find_stored(content_hash, chunk_count, space)

    def find_uri(self, uri: str) -> list[int]:
        """Return the ids of the current frames with a URI, chunks included.

        Args:
            uri: The whole URI.
        """
        return self._snapshot().layers.find_uri(expect_string("A URI", uri))

    def access(self, frame: FrameId) -> Access:
        """Return how often recorded recalls showed a frame, and how often it was used.

        Only events within the view's scope count. Cost: a copy of all counts and a pass over
        them for the first read of a state, then O(1).

        Args:
            frame: The frame's id, or a value that has the id.

        Raises:
            NotFound: no frame with this id exists at this basis within the scope.
        """
        snapshot = self._snapshot()
        return access_of(snapshot, snapshot.id_of(frame))

    def accesses(self) -> list[Access]:
        """Return the counts of `access` for each frame that was shown or used, most used first.

        Frames used equally often are in order of how often they were shown, then newest first.
        """
        return all_access(self._snapshot())

    # --- the log, tags, and projections of users -------------------------------------------------

    def log(
        self,
        first: int = 1,
        last: int | None = None,
        *,
        type: str | type[EventBody] | None = None,  # noqa: A002 - the field's word
        actor: str | None = None,
        correlation: str | None = None,
        scope: Scope | Mapping[str, ScopeValue] | None = None,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
    ) -> Iterator[Event]:
        """Yield the events of this view, within its scope, in seq order.

        Cost: a read of each event from ``first`` or ``since`` to ``last`` or ``until``.

        Args:
            first: The first seq; default 1.
            last: The last seq; default None: all, then the open transaction's drafts −1, −2, ….
            type: The name of an event type, such as "putFrame", or its body's class; default any.
            actor: The actor of the events; default any.
            correlation: The id of the request or run of the events; default any.
            scope: Names and values that the events' scope contains; default none.
            since: The earliest recorded time, also in words such as "yesterday"; default none.
            until: The time before which the events were recorded; default none.

        Raises:
            InvalidInput: an argument has the wrong type, or a time is unusable.
        """
        expect_integer("first", first)
        if last is not None:
            expect_integer("last", last)
        snapshot = self._snapshot().within(scope)
        start = end = None
        if since is not None or until is not None:
            # "now" reads the last event, which may be damaged.
            start, end = _range_of(since, until, snapshot.now)
        wanted = EventFilter(type_name(type), actor, correlation, start, end)
        return events_of(snapshot, first, last, wanted)

    def tags(self) -> dict[str, int]:
        """Return the seq that each tag of this view names, in order of name.

        If several tags within the view's scope share a name, the first of them counts; in a view
        without a scope, a tag of the tenant ``default`` comes before the rest.
        """
        snapshot = self._snapshot()
        rows: dict[str, tuple[bool, int, int]] = {}
        for scope, name, at, seq in snapshot.tag_rows():
            row = snapshot.scope is None and not admits(scope, Reach(DEFAULT_SCOPE)), seq, at
            rows[name] = min(row, rows.get(name, row))
        return {name: at for name, (_, _, at) in sorted(rows.items())}

    @overload
    def projection(self, which: str) -> OwnProjection: ...

    @overload
    def projection(self, which: type[OwnType]) -> OwnType: ...

    def projection(self, which: str | type[RowProjection[Any, Any]]) -> RowProjection[Any, Any]:
        """Return one of your projections as this view sees it.

        Its rows are the rows at the view's basis, and do not change. Cost: see `Fold.own`.

        Args:
            which: The projection's name or class.

        Raises:
            NotFound: the projection was not passed to ``open(projections=…)``.
            ProjectionFailed: its code raised at or before the basis.
            Unsupported: the view has a scope, and a projection's rows are of all scopes.
            InvalidInput: ``which`` is neither a name nor a class of a projection.
        """
        if not isinstance(which, str) and not (
            isinstance(which, type) and issubclass(which, RowProjection)
        ):
            raise InvalidInput(
                f"{which!r} is neither a projection's name nor its class",
                remedy="Pass a name, or a subclass of cerata.RowProjection.",
            )
        return self._snapshot().user_projection(which if isinstance(which, str) else which.name)


def _range_of(
    start: datetime | str | None, end: datetime | str | None, now: datetime
) -> tuple[int | None, int | None]:
    """Return start ≤ time < end in microseconds. Raises `InvalidInput`."""
    first, last = (None if time is None else interval_of(time, now).start for time in (start, end))
    if first is not None and last is not None and last < first:
        raise InvalidInput(
            f"The range ends at {end}, before its start at {start}",
            remedy="Pass start and end in this order.",
        )
    return first, last


def _on_track(track: str | None, where: Filter | None) -> Filter | None:
    if track is None:
        return where
    if where is None:
        return Filter(track=track)
    expect_type("where", where, Filter, "a Filter", "Pass a filter, or leave it out.")
    return Filter(track=track) & where
