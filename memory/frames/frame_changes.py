"""The frames that differ between two states of one log.

Owns the comparison: only frames that an event between the states put or closed are looked at, so
the cost follows these events and not the size of the store. Leaves out the values that a caller
gets (`diff`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cerata.engine.events import PutFrame

from ..snapshot.beginning import Common, common_beginning

if TYPE_CHECKING:
    from ..snapshot.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class FrameChanges:
    """The ids of the frames that differ from ``a`` to ``b``, each with the seq of its change."""

    added: tuple[tuple[int, int], ...]
    removed: tuple[tuple[int, int], ...]
    replaced: tuple[tuple[tuple[int, int], int], ...]
    changed: tuple[tuple[int, int], ...]


class _Side:
    """A state, as the comparison reads it."""

    def __init__(self, state: Snapshot, common: Common) -> None:
        self.layers = state.layers
        self._state = state
        self._common = common
        self.count = state.end - state.basis

    def moment(self, frame: int) -> int:
        return self.layers.moment(frame)

    def has(self, frame: int) -> bool:
        """Return whether the state has a frame of the common beginning, or of the log."""
        is_there = frame <= self._state.basis if frame > 0 else -frame <= self.count
        return is_there and self.layers.has(frame)

    def is_open(self, frame: int) -> bool:
        return self.has(frame) and self.layers.closing_of(frame) is None

    def touched(self) -> Iterator[int]:
        """Yield the frames that the events after the common beginning put or closed."""
        layer, basis = self.layers.base, self._common.basis
        if self._state.basis > basis:
            yield from layer.frames.touched(basis, self._state.basis)
        pending = self.layers.pending
        if pending is None:
            return
        yield from pending.closings
        for place in range(self._common.drafts + 1, self.count + 1):
            if isinstance(pending.drafts[place - 1].body, PutFrame):
                yield -place

    def became(self, frame: int) -> tuple[int, int | None]:
        """Return the seq at which a frame's last successor was closed, and the open successor.

        The successor is None if the frame, or its last successor, was deleted.
        """
        closing = self.layers.closing_of(frame)
        assert closing is not None
        seq, heir = closing.seq, closing.by
        while heir is not None and (closing := self.layers.closing_of(heir)) is not None:
            seq, heir = closing.seq, closing.by
        return seq, heir


def frame_changes(a: Snapshot, b: Snapshot) -> FrameChanges:
    """Return the frames that differ between two states of one log and scope.

    Cost: a look at each frame that the events between the states put or closed.
    """
    common = common_beginning(a, b)
    first, second = _Side(a, common), _Side(b, common)
    touched = [list(dict.fromkeys(side.touched())) for side in (first, second)]
    both = dict.fromkeys(frame for frames in touched for frame in frames if common.has(frame))
    whole = {frame for frame in both if first.layers.chunk_of(frame) is None}
    only_a = _only(first, second, whole, touched[0], common)
    only_b = _only(second, first, whole, touched[1], common)
    added: dict[int, int] = {}
    removed: dict[int, int] = {}
    replaced: dict[tuple[int, int], int] = {}
    for frame in sorted(only_a, key=first.moment):
        if common.has(frame) and second.has(frame):
            seq, heir = second.became(frame)
            if heir is not None and heir in only_b:
                replaced[frame, heir] = seq
            else:
                removed[frame] = seq
    for frame in sorted(only_b, key=second.moment):
        if common.has(frame) and first.has(frame):
            seq, heir = first.became(frame)
            if heir is not None and heir in only_a:
                replaced[heir, frame] = seq
            else:
                added[frame] = seq
    olds, news = {old for old, _ in replaced}, {new for _, new in replaced}
    removed |= {
        frame: first.moment(frame) for frame in only_a if frame not in removed and frame not in olds
    }
    added |= {
        frame: second.moment(frame) for frame in only_b if frame not in added and frame not in news
    }
    return FrameChanges(
        tuple((frame, added[frame]) for frame in sorted(added, key=second.moment)),
        tuple((frame, removed[frame]) for frame in sorted(removed, key=first.moment)),
        tuple(replaced.items()),
        tuple(sorted(_changed(first, second, touched, common), key=lambda pair: pair[::-1])),
    )


def _only(
    side: _Side, beside: _Side, whole: set[int], touched: list[int], common: Common
) -> set[int]:
    """Return the open frames of a side, without chunks, that the side beside it has not open."""
    shared = {frame for frame in whole if side.is_open(frame) and not beside.is_open(frame)}
    apart = {
        frame
        for frame in touched
        if not common.has(frame) and side.is_open(frame) and side.layers.chunk_of(frame) is None
    }
    return shared | apart


def _changed(
    first: _Side, second: _Side, touched: list[list[int]], common: Common
) -> Iterator[tuple[int, int]]:
    """Yield the frames open in both states whose chunks differ, with the seq of the change."""
    since: dict[int, int] = {}
    sides = ((first, second), (second, first))
    for (side, beside), frames in zip(sides, touched, strict=True):
        for part in frames:
            # A frame of the beginning is looked at from the side that closed it.
            if side.layers.chunk_of(part) is None or not (side.has(part) or beside.has(part)):
                continue
            was_open = common.has(part) and beside.is_open(part)
            document = side.layers.parent_of(part)
            if document is None or was_open == side.is_open(part):
                continue
            closing = side.layers.closing_of(part)
            moment = side.moment(part) if closing is None else closing.seq
            since[document] = max(since.get(document, 0), moment)
    for document, seq in since.items():
        if not (common.has(document) and first.is_open(document) and second.is_open(document)):
            continue
        chunks = first.layers.chunks(document), second.layers.chunks(document)
        if chunks[0] != chunks[1] or any(
            not common.has(part) for parts in chunks for part in parts.values()
        ):
            yield document, seq
