"""Closing frames reads no event of the closed frames.

Counts of reads, since times differ with the load of the machine.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

import cerata
from cerata import Filter, Store
from cerata.engine.events import DeleteFrame, EventBody, SupersedeFrame
from cerata.engine.segments.segment_reader import Segment
from cerata.memory.snapshot.layers import Layers
from cerata.projections.frames.reader import Frames

from ...inside import log_of

SEGMENTS = 20
FRAMES = 100
"""Frames of a segment."""


@pytest.fixture
def segments() -> Iterator[Store]:
    """A store of `SEGMENTS` segments of `FRAMES` frames, folded to the head."""
    with cerata.open(":memory:") as store:
        for first in range(0, SEGMENTS * FRAMES, FRAMES):
            tags = ["even" if first // FRAMES % 2 == 0 else "odd"]
            store.put_frames([f"text {first + place}" for place in range(FRAMES)], tags=tags)
            log_of(store).seal()
        store.delete(store.put_frame("a frame").id)
        store.checkpoint()
        yield store


def _blocks_read(store: Store, bodies: Sequence[EventBody]) -> int:
    """Return how often a batch looks for a block of events before and while it is appended."""
    count = 0
    reads = {name: vars(Segment)[name] for name in ("events", "events_at")}

    def counted(name: str) -> Any:
        def read(self: Segment, *arguments: Any, **options: Any) -> Any:
            nonlocal count
            count += 1
            return reads[name](self, *arguments, **options)

        return read

    with pytest.MonkeyPatch.context() as patch:
        for name in reads:
            patch.setattr(Segment, name, counted(name))
        store.append(*bodies)
    return count


def _one_of_each_segment(place: int) -> list[int]:
    return [segment * FRAMES + place for segment in range(SEGMENTS)]


def test_deleting_frames_reads_no_event_of_theirs(segments: Store) -> None:
    """Each frame's block was decoded: 145 us a frame of 1,000,000, now 18."""
    frames = _one_of_each_segment(7)
    assert _blocks_read(segments, [DeleteFrame(frame=frame) for frame in frames]) == 0


def test_superseding_frames_reads_no_event_of_theirs(segments: Store) -> None:
    """Both frames are checked."""
    pairs = zip(_one_of_each_segment(7), _one_of_each_segment(8), strict=True)
    assert _blocks_read(segments, [SupersedeFrame(old=old, new=new) for old, new in pairs]) == 0


def test_deleting_by_a_filter_reads_no_event_of_the_frames(segments: Store) -> None:
    """The scopes of the closings come from the fold, too."""
    reads: list[int] = []

    def noted(*_: Any, **__: Any) -> None:
        reads.append(1)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Segment, "events", noted)
        patch.setattr(Segment, "events_at", noted)
        assert len(segments.delete(where=Filter(tags=["odd"])).deleted) == SEGMENTS * FRAMES // 2
    assert not reads


def test_a_check_that_reads_each_event_would_be_seen(
    segments: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The scope of a frame comes from the fold alone."""
    log = log_of(segments)

    def read_scope(_: object, frame: int) -> object:
        return log.event(frame).scope

    monkeypatch.setattr(Frames, "scope_of", read_scope)
    monkeypatch.setattr(Layers, "scope_of", read_scope)
    frames = _one_of_each_segment(7)
    assert _blocks_read(segments, [DeleteFrame(frame=frame) for frame in frames]) >= SEGMENTS
