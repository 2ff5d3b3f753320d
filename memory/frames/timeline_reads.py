"""Reading frames in order of time: the timeline, and the newest frames of a conversation.

Leaves out pages (`timeline`) and neighbours (`timeline`).
"""

from __future__ import annotations

import sys
from datetime import date
from itertools import islice
from typing import TYPE_CHECKING, Never

from cerata.engine.arguments import expect_positive, expect_type
from cerata.engine.json_value import exact
from cerata.engine.late import late
from cerata.engine.unreadable import frame_place, readable

from ..snapshot.reader import Reader
from ..values.renamed import refuse

if TYPE_CHECKING:
    from cerata.projections.columnar import times
    from cerata.projections.frames import filters
    from cerata.projections.frames.filters import Filter
    from cerata.projections.frames.timeline import Position, TimelineOrder

    from ..values import frames as frame_values
    from ..values.frames import Frame, FrameId, TimelinePage
    from . import timeline as conversations
    from . import timeline as timelines
else:
    times = late("cerata.projections.columnar.times")
    filters = late("cerata.projections.frames.filters")
    frame_values = late("cerata.memory.values.frames")
    conversations = late("cerata.memory.frames.timeline")
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
        include_chunks: bool = False,
        **_moved: Never,
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
            include_chunks: Also return the chunks of split documents; default False.

        Raises:
            InvalidInput: a time has no zone, the range ends before its start, the order is unknown,
                or the limit is not positive.
        """
        if _moved:
            refuse("timeline", _moved)
        snapshot = self._snapshot()
        masks = snapshot.layers.chosen(where)
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
            snapshot, on_track(track, where), include_chunks=include_chunks
        )
        frames = readable(newest, snapshot.frame_at, frame_place)
        return [*islice(frames, min(count, sys.maxsize))][::-1]

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


def on_track(track: str | None, where: Filter | None) -> Filter | None:
    """Return a filter narrowed to a track."""
    if track is None:
        return where
    if where is None:
        return filters.Filter(track=track)
    expect_type("where", where, filters.Filter, "a Filter", "Pass a filter, or leave it out.")
    return filters.Filter(track=track) & where
