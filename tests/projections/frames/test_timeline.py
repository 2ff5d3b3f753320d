"""The timeline: every page of it, in both orders, as of any event, equal to a sorted list."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerata.engine.errors import InvalidInput
from cerata.engine.events import DeleteFrame, PutFrame, SupersedeFrame
from cerata.projections.columnar.columns import Mask
from cerata.projections.frames.filters import Filter
from cerata.projections.frames.projection import FramesProjection
from cerata.projections.frames.timeline import Position, Timeline, TimelineOrder

from ..histories import Folded, events_of, fold, histories
from .filter_model import Pair, content_times, filters

ORDERS: tuple[TimelineOrder, ...] = ("content", "recorded")


def listed(events: list[Folded], by: TimelineOrder, n: int) -> list[Position]:
    """The timeline as a sorted list."""
    puts = [event for event in events[:n] if event.type == "putFrame"]
    times = {put.seq: content_times(put) if by == "content" else [put.recorded] for put in puts}
    return sorted(Position(time, frame) for frame, many in times.items() for time in many)


def walk(
    timeline: Timeline,
    *,
    limit: int,
    among: Mask | None = None,
    start: int | None = None,
    end: int | None = None,
    newest_first: bool = False,
) -> list[Position]:
    """Turn all pages."""
    found: list[Position] = []
    after: Position | None = None
    while True:
        page = timeline.page(
            among=among, start=start, end=end, after=after, limit=limit, newest_first=newest_first
        )
        assert len(page.entries) == limit or page.next is None
        found += page.entries
        after = page.next
        if after is None:
            return found


times = st.none() | st.integers(-3, 45).map(lambda seq: 1_000 * seq)


@given(histories, filters, times, times, st.integers(1, 9), st.booleans())
def test_pages_are_the_sorted_list_at_every_n(
    events: list[Folded],
    pair: Pair,
    start: int | None,
    end: int | None,
    limit: int,
    newest_first: bool,
) -> None:
    frames = fold(events)[0].snapshot()
    for by in ORDERS:
        for n in range(len(events) + 1):
            mask = frames.mask(pair[0], n)
            found = walk(
                frames.timeline(n, by),
                limit=limit,
                among=mask,
                start=start,
                end=end,
                newest_first=newest_first,
            )
            admitted = set(frames.ids[: frames.rows_at(n)][mask].tolist())
            expected = [
                entry
                for entry in listed(events, by, n)
                if entry.frame in admitted
                and (start is None or start <= entry.time)
                and (end is None or entry.time < end)
            ]
            assert found == (expected[::-1] if newest_first else expected)


@given(histories, st.lists(st.integers(0, 40), max_size=8), st.booleans())
def test_a_reader_of_pages_misses_nothing_while_others_write(
    events: list[Folded], cuts: list[int], newest_first: bool
) -> None:
    # Each page is read from a newer state; what was there at first must come, once, in order.
    frames = FramesProjection()
    steps = [*sorted(cuts), len(events)]
    frames.apply(events[: steps[0]])
    first = frames.seq
    seen: list[Position] = []
    after: Position | None = None
    for step in steps:
        frames.apply(events[frames.seq : step])
        timeline = frames.snapshot().timeline(frames.seq)
        page = timeline.page(after=after, limit=3, newest_first=newest_first)
        seen += page.entries
        after = page.next
        if after is None:
            break
    assert seen == sorted(set(seen), reverse=newest_first)
    if seen and after is not None:
        reached = seen[-1]
        due = [
            entry
            for entry in listed(events, "content", first)
            if (entry >= reached if newest_first else entry <= reached)
        ]
        assert set(due) <= set(seen)


def long_timeline(size: int) -> list[Folded]:
    """Frames whose content is older and newer than its neighbours', some with several dates."""
    return events_of(
        [
            PutFrame(
                text="",
                created=seq * 7919 % 10_007 if seq % 3 else None,
                content_dates=tuple(seq * k % 5_003 for k in range(seq % 4)),
                tags=("rare",) if seq % 997 == 0 else (),
            )
            for seq in range(1, size + 1)
        ]
    )


def test_an_order_of_many_pieces_is_one_order() -> None:
    # Small histories make one piece; this makes many, and pages that span windows.
    events, frames = long_timeline(6_000), FramesProjection()
    for end in [*range(50, 3_000, 130), 3_500, 3_510, 6_000]:
        frames.apply(events[frames.seq : end])
        frames.snapshot().timeline(end)
    table = frames.snapshot()
    for n in (6_000, 3_333, 20, 0):
        expected = listed(events, "content", n)
        for limit in (7, 1_000, 50_000) if n else (7,):
            assert walk(table.timeline(n), limit=limit) == expected
        assert walk(table.timeline(n), limit=400, newest_first=True) == expected[::-1]
        rare = table.mask(Filter(tags=["rare"]), n)
        admitted = set(table.ids[: table.rows_at(n)][rare].tolist())
        assert walk(table.timeline(n), limit=2, among=rare) == [
            entry for entry in expected if entry.frame in admitted
        ]


def test_a_page_at_the_head_looks_at_little_of_a_long_timeline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The promise is O(log n) and the page: count what a page takes in hand.
    frames = FramesProjection()
    frames.apply(long_timeline(20_000))
    table = frames.snapshot()
    looked_at = 0
    step = Timeline._step

    def counted(self: Timeline, *args: object, **kwargs: object) -> list[Position]:
        nonlocal looked_at
        found = step(self, *args, **kwargs)  # type: ignore[arg-type]
        looked_at += len(found)
        return found

    monkeypatch.setattr(Timeline, "_step", counted)
    page = table.timeline(20_000).page(limit=20, start=100, end=4_000)
    assert len(page.entries) == 20
    assert looked_at <= 512


def test_closed_frames_come_on_request() -> None:
    events = events_of(
        [
            *(PutFrame(text=text) for text in "abcd"),
            SupersedeFrame(old=1, new=3),
            DeleteFrame(frame=2),
        ]
    )
    frames = fold(events)[0].snapshot()

    def shown(among: Mask) -> list[int]:
        page = frames.timeline(6).page(among=among, newest_first=False)
        return [entry.frame for entry in page.entries]

    assert shown(frames.alive(6)) == [3, 4]
    assert shown(frames.alive(6, include_superseded=True)) == [1, 3, 4]
    assert shown(frames.alive(6, include_deleted=True)) == [2, 3, 4]
    assert shown(frames.alive(6, include_superseded=True, include_deleted=True)) == [1, 2, 3, 4]
    assert shown(np.zeros(4, np.bool_)) == []


def test_a_page_of_nothing_is_refused() -> None:
    timeline = FramesProjection().snapshot().timeline(0)
    assert timeline.page().entries == ()
    for limit in (0, -1, True, "x"):
        with pytest.raises(InvalidInput, match="limit is"):
            timeline.page(limit=limit)  # type: ignore[arg-type]
