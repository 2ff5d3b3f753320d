"""Reading frames in order of time: the timeline, and the frames and messages of a conversation.

Leaves out pages (`timeline`), neighbours (`conversation`) and the form of messages (`messages`).
"""

from __future__ import annotations

import sys
from datetime import date
from itertools import islice
from typing import TYPE_CHECKING

from cerata.engine.arguments import expect_positive, expect_type
from cerata.engine.json_value import exact
from cerata.engine.late import late
from cerata.engine.unreadable import frame_place, readable

from ..snapshot.reader import Reader

if TYPE_CHECKING:
    from cerata.engine.events import JsonValue
    from cerata.projections.columnar import times
    from cerata.projections.frames import filters
    from cerata.projections.frames.filters import Filter
    from cerata.projections.frames.timeline import Position, TimelineOrder

    from ..values import frames as frame_values
    from ..values.frames import Frame, FrameId, TimelinePage
    from . import conversation as conversations
    from . import messages as frame_messages
    from . import timeline as timelines
else:
    times = late("cerata.projections.columnar.times")
    filters = late("cerata.projections.frames.filters")
    frame_values = late("cerata.memory.values.frames")
    conversations = late("cerata.memory.frames.conversation")
    frame_messages = late("cerata.memory.frames.messages")
    timelines = late("cerata.memory.frames.timeline")


class TimelineReads(Reader):
    """The reads of frames in order of time."""

    def timeline(
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
        paging = timelines.Paging(
            by,
            *timelines.range_of(start, end, snapshot.now),
            after,
            exact(limit),
            newest_first,
        )
        page = timelines.page_of(snapshot.layers, masks, paging)
        entries = [
            frame_values.TimelineEntry(position.frame, times.to_datetime(position.time), snapshot)
            for position in page.entries
        ]
        return frame_values.TimelinePage(tuple(entries), page.next)

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
        count = expect_positive("count", count)
        snapshot = self._snapshot()
        newest = conversations.newest_frames(
            snapshot, _on_track(track, where), include_chunks=include_chunks
        )
        frames = readable(newest, snapshot.frame_at, frame_place)
        return [*islice(frames, min(count, sys.maxsize))][::-1]

    def messages(
        self,
        last: int | None = None,
        *,
        track: str | None = None,
        where: Filter | None = None,
    ) -> list[dict[str, JsonValue]]:
        """Return the newest current frames that have a role, as chat interfaces take messages.

        The messages are in the order of their recording, the newest last; a new version has the
        place of the first. A message stored by `Store.remember_messages` has all its members again.

        Args:
            last: Most messages to return; default None returns all.
            track: The track of the frames, such as a conversation; default None, any.
            where: A filter of the frames; default None admits all.

        Raises:
            InvalidInput: ``last`` is not positive, or ``where`` is not a `Filter`.
        """
        if last is not None:
            last = expect_positive("last", last)
        snapshot = self._snapshot()
        newest = conversations.newest_frames(snapshot, _on_track(track, where), by_first=True)
        frames = readable(newest, snapshot.frame_at, frame_place)
        spoken = (frame for frame in frames if frame.role is not None)
        return [
            frame_messages.message_of(frame)
            for frame in islice(spoken, last and min(last, sys.maxsize))
        ][::-1]

    def around(self, frame: FrameId, *, before: int = 1, after: int = 1) -> list[Frame]:
        """Return a frame and its neighbours, in order.

        A chunk has neighbours in its document, a turn in its conversation, another frame with a
        track in that track, in the order of recording; any other frame has none.

        Args:
            frame: The frame's id, or a value that has the id, such as a hit.
            before: Most neighbours before the frame; default 1.
            after: Most neighbours after the frame; default 1.

        Raises:
            NotFound: no frame with this id exists at this basis within the scope.
            InvalidInput: a count is negative.
        """
        snapshot = self._snapshot()
        numbers = conversations.neighbours_of(snapshot, snapshot.id_of(frame), before, after)
        return [*readable(numbers, snapshot.frame_at, frame_place)]


def _on_track(track: str | None, where: Filter | None) -> Filter | None:
    if track is None:
        return where
    if where is None:
        return filters.Filter(track=track)
    expect_type("where", where, filters.Filter, "a Filter", "Pass a filter, or leave it out.")
    return filters.Filter(track=track) & where
