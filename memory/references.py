"""References: what a batch names must be there, and what it closes must be open.

Owns the checks before an append. That an event exists, has the right kind and lies within the
scope never changes, so it is checked before the lock; whether a frame is still open is checked
under it, against the folded frames and what others appended since. Nothing folds under the lock.
"""

from collections.abc import Sequence

from cerata.engine.errors import Conflict, NotFound
from cerata.engine.events import DeleteFrame, Draft, Event, PutFrame, Scope, SupersedeFrame
from cerata.engine.log import Log
from cerata.projections.frame_table import Frames


def is_within(scope: Scope, wanted: Scope) -> bool:
    """Tell whether an event's scope has every name of ``wanted`` with its value."""
    have = dict(scope)
    return all(have.get(name) == value for name, value in wanted)


class References:
    """What one batch names of earlier events, and of itself by −place."""

    def __init__(self, drafts: Sequence[Draft]) -> None:
        self._drafts = drafts
        self._named: list[tuple[int, str, str, int]] = [
            (place, name, kind, value)
            for place, draft in enumerate(drafts, start=1)
            for name, kind in draft.body.references.items()
            if (value := getattr(draft.body, name)) is not None
        ]

    def __bool__(self) -> bool:
        return bool(self._named)

    def check_exist(self, log: Log, scope: Scope | None) -> None:
        """Refuse names of what is not there, is of another kind, or is outside the scope.

        Raises:
            NotFound: with the field and the number.
        """
        for place, name, kind, value in self._named:
            if value < 0:
                found: Draft | None = self._drafts[-value - 1] if -value < place else None
                if found is None or found.body.wire_name != kind:
                    raise NotFound(f"{name} names {value}: this batch has no {kind} there before")
                continue
            event = log.event(value) if 0 < value <= log.head.seq else None
            outside = event is not None and scope is not None and not is_within(event.scope, scope)
            if event is None or event.type != kind or outside:
                what = "frame" if kind == PutFrame.wire_name else f"{kind} event"
                raise NotFound(
                    f"There is no {what} {value:,}",
                    where=name,
                    remedy="Ids are shown by search, frames and log.",
                )

    def check_open(self, frames: Frames, delta: Sequence[Event]) -> None:
        """Refuse to close what is closed, or what another writer closed just before.

        ``delta`` are the events that ``frames`` has not folded.

        Raises:
            Conflict: with the frame, and what closed it.
        """
        closing: set[int] = set()
        for draft in self._drafts:
            body = draft.body
            if not isinstance(body, DeleteFrame | SupersedeFrame):
                continue
            old = closed_by(body)
            if old in closing:
                raise Conflict(f"Frame {old} is closed twice in one batch")
            closing.add(old)
            _check_still_open(old, frames)
            if isinstance(body, SupersedeFrame):
                if body.new == old:
                    raise Conflict(f"Frame {old:,} cannot supersede itself")
                if body.new in closing:
                    raise Conflict(f"Frame {body.new} is closed in the same batch")
                _check_still_open(body.new, frames)
        if delta:
            self._check_delta(frames, delta)

    def _check_delta(self, frames: Frames, delta: Sequence[Event]) -> None:
        concerned = {value for _, _, _, value in self._named}
        for frame in sorted(concerned):
            row = frames.frame(frame)
            while row is not None and row.parent is not None and row.parent not in concerned:
                concerned.add(row.parent)
                row = frames.frame(row.parent)
        for event in delta:
            body = event.body
            if isinstance(body, DeleteFrame | SupersedeFrame) and closed_by(body) in concerned:
                raise Conflict(
                    f"Frame {closed_by(body):,} was closed by another writer",
                    where=f"event {event.seq:,}",
                    remedy="Read again, and decide again.",
                )


def closed_by(body: DeleteFrame | SupersedeFrame) -> int:
    """Return the frame that an event closes."""
    return body.frame if isinstance(body, DeleteFrame) else body.old


def _check_still_open(frame: int, frames: Frames) -> None:
    closing = frames.closing_of(frame, frames.seq)
    if closing is None:
        return
    if closing.superseded_by is not None:
        raise Conflict(
            f"Frame {frame:,} was superseded by frame {closing.superseded_by:,}",
            where=f"event {closing.seq:,}",
            remedy=f"Name frame {closing.superseded_by:,} instead.",
        )
    raise Conflict(f"Frame {frame:,} was deleted", where=f"event {closing.seq:,}")
