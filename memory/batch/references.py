"""References: events that a batch names must exist, and frames that it closes must be open.

Owns the checks before an append. Existence, type and scope of an event never change, so they are
checked before the lock. Under the lock the check is that frames are still open, by the folded
frames and the events that other writers appended since. Nothing folds under the lock.
"""

from collections.abc import Mapping, MutableMapping, Sequence
from typing import Final, NamedTuple

from cerata.engine.errors import Conflict, InvalidInput, NotFound
from cerata.engine.events import (
    AssertFact,
    DeleteFrame,
    Draft,
    Event,
    PutFrame,
    Scope,
    SupersedeFrame,
    named_by,
)
from cerata.engine.log import Log
from cerata.projections.columnar.scopes import is_within
from cerata.projections.facts.history import Facts
from cerata.projections.frames.reader import Frames

_FACT: Final = AssertFact.wire_name


class Closing(NamedTuple):
    """The closing of a frame: the draft's place in the batch, and the frame that takes over."""

    place: int
    new: int | None


class References:
    """The references of a batch to earlier events, and to its drafts by −place.

    Drafts before place ``first`` were checked by an earlier call.
    """

    def __init__(self, drafts: Sequence[Draft], first: int = 1) -> None:
        self._drafts = drafts
        self._new = list(enumerate(drafts[first - 1 :], start=first))
        self._named: list[tuple[int, str, str, int]] = [
            (place, name, kind, value)
            for place, draft in self._new
            for name, kind, value in named_by(draft.body)
        ]
        for place, name, _, value in self._named:
            if isinstance(value, bool) or not isinstance(value, int):
                raise InvalidInput(
                    f"{name} must be a number, not {type(value).__name__}",
                    where=f"event {place} of the batch",
                    remedy="Pass the seq of an event, or −k for the k-th event of the batch.",
                )
        self.causes: list[tuple[int, int]] = [
            (place, draft.causation) for place, draft in self._new if draft.causation is not None
        ]
        """Causations: the place of a draft in the batch, and the seq or −place of its cause."""

    def __bool__(self) -> bool:
        return bool(self._named)

    @property
    def names_facts(self) -> bool:
        """True if a reference names a fact of the log."""
        return any(kind == _FACT and value > 0 for _, _, kind, value in self._named)

    @property
    def names_frames(self) -> bool:
        """True if a reference names a frame."""
        return any(kind == PutFrame.wire_name for _, _, kind, _ in self._named)

    def check_exist(
        self, log: Log, scope: Scope | None, n: int, facts: Facts | None = None
    ) -> None:
        """Refuse references to events after ``n``, of another type, or outside the scope.

        ``facts``, folded through ``n``, give the scopes of facts without reading their events.

        Raises:
            NotFound: with the field and the number.
        """
        for place, name, kind, value in self._named:
            if value < 0:
                target: Draft | None = self._drafts[-value - 1] if -value < place else None
                if target is None or target.body.wire_name != kind:
                    raise NotFound(
                        f"{name} names {value}, but this batch has no earlier {kind} there",
                        remedy="Put it earlier in the batch, and name its place as −k.",
                    )
                continue
            if facts is not None and kind == _FACT:
                fact_scope = facts.scope_of_fact(value) if 0 < value <= n else None
                if fact_scope is None or (scope is not None and not is_within(fact_scope, scope)):
                    raise NotFound(
                        f"There is no fact {value:,}",
                        where=name,
                        remedy="Find fact ids with facts or log.",
                    )
                continue
            event = log.event(value) if 0 < value <= n else None
            outside = event is not None and scope is not None and not is_within(event.scope, scope)
            if event is None or event.type != kind or outside:
                noun = "frame" if kind == PutFrame.wire_name else f"{kind} event"
                raise NotFound(
                    f"There is no {noun} {value:,}",
                    where=name,
                    remedy="Find ids with search, frames or log.",
                )

    def check_causes(self, log: Log, scope: Scope | None, n: int) -> None:
        """Refuse causes after event ``n`` or outside the scope.

        Raises:
            NotFound: with the number.
        """
        for place, cause in self.causes:
            is_there = -place < cause <= n
            if is_there and cause > 0 and scope is not None:
                is_there = is_within(log.event(cause).scope, scope)
            if not is_there:
                raise NotFound(
                    f"There is no event {cause:,} before this event",
                    where="causation",
                    remedy="Pass the seq of an event, or -k for the k-th event of the batch.",
                )

    def check_open(self, frames: Frames, delta: Sequence[Event]) -> None:
        """Refuse to close a frame that is closed, also by a later event of another writer.

        ``delta`` are the events that ``frames`` has not folded.

        Raises:
            Conflict: with the frame, and the event that closed the frame.
        """
        self.check_still_open(frames, frames.seq, {})
        if delta:
            self._check_delta(frames, delta)

    def check_still_open(
        self, frames: Frames, n: int, closing: MutableMapping[int, Closing]
    ) -> None:
        """Refuse to close a frame that is closed at event ``n``, or by an earlier draft.

        ``closing`` has the closings of earlier drafts; those of the checked drafts are added.

        Raises:
            Conflict: with the frame, and the event that closed the frame.
        """
        for place, draft in self._new:
            body = draft.body
            if not isinstance(body, DeleteFrame | SupersedeFrame):
                continue
            old = closed_by(body)
            if old in closing:
                raise Conflict(
                    f"Frame {old} is closed twice in one batch",
                    remedy="Supersede or delete the frame once.",
                )
            self._check_one(old, frames, n, closing)
            closing[old] = Closing(place, None)
            if isinstance(body, SupersedeFrame):
                if body.new == old:
                    raise Conflict(
                        f"Frame {old:,} cannot supersede itself",
                        remedy="Pass another frame as the new frame.",
                    )
                closing[old] = Closing(place, body.new)
                # Without this check a frame could, through other frames, supersede itself.
                self._check_one(body.new, frames, n, closing)

    def _check_one(
        self, frame: int, frames: Frames, n: int, closing: Mapping[int, Closing]
    ) -> None:
        """Refuse a frame that is closed in the log, or with a frame above by an earlier draft."""
        _check_not_closed(frame, frames, n)
        path = [frame]
        above: int | None = frame
        while above is not None:
            closed = closing.get(above)
            # Closing a frame closes the frames below, but neither the frame that takes its place,
            # which may be below, nor frames put below later.
            if closed is not None and closed.new not in path and -frame < closed.place:
                raise Conflict(
                    f"Frame {frame:,} is closed in the same batch",
                    where=f"with frame {above:,}",
                    remedy="Close one of the two.",
                )
            above = self._parent(above, frames)
            path += [] if above is None else [above]

    def _parent(self, frame: int, frames: Frames) -> int | None:
        if frame > 0:
            row = frames.frame(frame)
            return None if row is None else row.parent
        body = self._drafts[-frame - 1].body
        return body.parent if isinstance(body, PutFrame) else None

    def _check_delta(self, frames: Frames, delta: Sequence[Event]) -> None:
        named = {value for _, _, _, value in self._named}
        for frame in sorted(named):
            row = frames.frame(frame)
            while row is not None and row.parent is not None and row.parent not in named:
                named.add(row.parent)
                row = frames.frame(row.parent)
        for event in delta:
            body = event.body
            if isinstance(body, DeleteFrame | SupersedeFrame) and closed_by(body) in named:
                raise Conflict(
                    f"Frame {closed_by(body):,} was closed by another writer",
                    where=f"event {event.seq:,}",
                    remedy="Read the memory again, and decide again.",
                )


def closed_by(body: DeleteFrame | SupersedeFrame) -> int:
    """Return the frame that an event closes."""
    return body.frame if isinstance(body, DeleteFrame) else body.old


def _check_not_closed(frame: int, frames: Frames, n: int) -> None:
    closing = frames.closing_of(frame, n)
    if closing is None:
        return
    if closing.superseded_by is not None:
        raise Conflict(
            f"Frame {frame:,} was superseded by frame {closing.superseded_by:,}",
            where=f"event {closing.seq:,}",
            remedy=f"Pass frame {closing.superseded_by:,} instead.",
        )
    raise Conflict(
        f"Frame {frame:,} was deleted",
        where=f"event {closing.seq:,}",
        remedy="Pass a frame that is current; view.history returns its versions.",
    )
