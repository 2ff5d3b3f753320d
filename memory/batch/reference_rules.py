"""References: events that a batch names must exist, and frames that it closes must be open.

Owns the checks before an append. Existence, type and scope of an event never change, so they are
checked before the lock. Under the lock the check is that frames are still open, by the folded
frames and the events that other writers appended since. Nothing folds under the lock.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping, MutableMapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from cerata.engine.arguments import is_integer, located, wrong_type
from cerata.engine.errors import Conflict, NotFound, number_text
from cerata.engine.events import (
    AssertFact,
    DeleteFrame,
    Draft,
    Event,
    PutFrame,
    SupersedeFrame,
    named_by,
)
from cerata.projections.columnar.scopes import admits

from .rule import Rule, State

if TYPE_CHECKING:
    from cerata.engine.log import Validate
    from cerata.projections.frames.reader import Frames

    from .rule import Proof

_FACT: Final = AssertFact.wire_name
_FRAME: Final = PutFrame.wire_name


class Closing(NamedTuple):
    """The closing of a frame: the draft's place in the batch, and the frame that takes over."""

    place: int
    new: int | None


class ReferenceRules(Rule):
    """The references of a batch to earlier events, and to its drafts by −place."""

    def __init__(self) -> None:
        self._closing: dict[int, Closing] = {}
        """The closings of earlier calls."""

    def take(self, drafts: Sequence[Draft], first: int) -> bool:
        self._drafts = drafts
        self._new_closing: MutableMapping[int, Closing] = {}
        self._parents: dict[int, int | None] = {}
        """The parents of the frames that the check has passed: a parent never changes."""
        self._new = list(enumerate(drafts[first - 1 :], start=first))
        self._named: list[tuple[int, str, str, int]] = []
        if not _name_nothing(drafts[first - 1 :]):
            for place, draft in self._new:
                for name, kind, value in named_by(draft.body):
                    self._named.append((place, name, kind, value))
        for place, name, _, value in self._named:
            if not is_integer(value):
                remedy = "Pass the seq of an event, or −k for the k-th event of the batch."
                with located(f"event {place} of the batch"):
                    raise wrong_type(name, "a number", value, remedy)
        self._causes: list[tuple[int, int]] = []
        for place, draft in self._new:
            if draft.causation is not None and not -place < draft.causation < 0:
                self._causes.append((place, draft.causation))
        """Causations but those of an earlier draft, which exists: a place, and the cause."""
        return bool(self._named or self._causes)

    def check(self, state: State) -> Validate | None:
        self._check_causes(state)
        self._check_exist(state)
        if any(kind == _FRAME for _, _, kind, _ in self._named):
            return partial(self._check_open, state.frames(), state.n)
        return None

    def is_proven(self, proof: Proof) -> bool:
        """Return whether the drafts name events of the proof and drafts of the batch only.

        No draft closes a frame.
        """
        if self._causes or any(type(draft.body) not in proof.bodies for _, draft in self._new):
            return False
        known = proof.open_events
        return all(
            (kind, value) in known or (value < 0 and self._is_drafted(place, kind, value))
            for place, _, kind, value in self._named
        )

    def _is_drafted(self, place: int, kind: str, value: int) -> bool:
        """Return whether an earlier draft of the batch, named by −place, is of a type."""
        return -value < place and self._drafts[-value - 1].body.wire_name == kind

    def keep(self) -> None:
        self._closing.update(self._new_closing)

    def _check_exist(self, state: State) -> None:
        """Refuse references to events after the state, of another type, or outside the scope.

        Raises:
            NotFound: with the field and the number.
        """
        log, reach, n = state.log, state.reach, state.n
        # The folds give the scopes of facts and frames without reading their events.
        kinds = {kind for _, _, kind, value in self._named if value > 0}
        facts = state.facts() if _FACT in kinds else None
        frames = state.frames() if _FRAME in kinds else None
        for place, name, kind, value in self._named:
            if value < 0:
                if not self._is_drafted(place, kind, value):
                    raise NotFound(
                        f"{name} names {number_text(value)}, but this batch has no earlier {kind} "
                        "there",
                        remedy="Put it earlier in the batch, and name its place as −k.",
                    )
                continue
            if facts is not None and kind == _FACT:
                fact_scope = facts.scope_of_fact(value) if 0 < value <= n else None
                if fact_scope is None or not admits(fact_scope, reach):
                    raise NotFound(
                        f"There is no fact {number_text(value)}",
                        where=name,
                        remedy="Find fact ids with facts or log.",
                    )
                continue
            if frames is not None and kind == _FRAME:
                exists = value <= n and frames.row_of(value) is not None
                is_there = exists and admits(frames.scope_of(value), reach)
            else:
                event = log.event(value) if 0 < value <= n else None
                is_there = event is not None and event.type == kind and admits(event.scope, reach)
            if not is_there:
                noun = "frame" if kind == _FRAME else f"{kind} event"
                raise NotFound(
                    f"There is no {noun} {number_text(value)}",
                    where=name,
                    remedy="Find ids with search, frames or log.",
                )

    def _check_causes(self, state: State) -> None:
        """Refuse causes after the state or outside the scope.

        Raises:
            NotFound: with the number.
        """
        for place, cause in self._causes:
            is_there = -place < cause <= state.n
            if is_there and cause > 0 and state.reach is not None:
                is_there = admits(state.log.event(cause).scope, state.reach)
            if not is_there:
                raise NotFound(
                    f"There is no event {number_text(cause)} before this event",
                    where="causation",
                    remedy="Pass the seq of an event, or -k for the k-th event of the batch.",
                )

    def _check_open(self, frames: Frames, n: int, delta: Sequence[Event]) -> None:
        """Refuse to close a frame that is closed at event ``n``, by a draft, or by ``delta``.

        Raises:
            Conflict: with the frame, and the event that closed the frame.
        """
        self._new_closing = {}
        closing: MutableMapping[int, Closing] = self._new_closing
        if self._closing:
            closing = ChainMap(self._new_closing, self._closing)
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
        if delta:
            self._check_delta(frames, delta)

    def _check_one(
        self, frame: int, frames: Frames, n: int, closing: Mapping[int, Closing]
    ) -> None:
        """Refuse a frame that is closed in the log, or with a frame above by an earlier draft."""
        check_not_closed(frame, frames, n)
        path = {frame}
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
            if above not in self._parents:
                self._parents[above] = self._parent(above, frames)
            above = self._parents[above]
            if above is not None:
                path.add(above)

    def _parent(self, frame: int, frames: Frames) -> int | None:
        if frame > 0:
            return frames.parent(frame)
        body = self._drafts[-frame - 1].body
        return body.parent if isinstance(body, PutFrame) else None

    def _check_delta(self, frames: Frames, delta: Sequence[Event]) -> None:
        named = {value for _, _, _, value in self._named}
        for frame in sorted(named):
            above = frames.parent(frame)
            while above is not None and above not in named:
                named.add(above)
                above = frames.parent(above)
        for event in delta:
            body = event.body
            if isinstance(body, DeleteFrame | SupersedeFrame) and closed_by(body) in named:
                raise Conflict(
                    f"Frame {closed_by(body):,} was closed by another writer",
                    where=f"event {event.seq:,}",
                    remedy="Read the memory again, and decide again.",
                )


def _name_nothing(drafts: Sequence[Draft]) -> bool:
    """Return whether all drafts put frames without a parent, as in most batches."""
    for draft in drafts:
        body = draft.body
        if type(body) is not PutFrame or body.parent is not None:
            return False
    return True


def closed_by(body: DeleteFrame | SupersedeFrame) -> int:
    """Return the frame that an event closes."""
    return body.frame if isinstance(body, DeleteFrame) else body.old


def check_not_closed(frame: int, frames: Frames, n: int) -> None:
    """Raise `Conflict` if a frame is closed at event ``n``, with the event that closed it."""
    closing = frames.closing_of(frame, n)
    if closing is None:
        return
    if closing.superseded_by is not None:
        newest, last = closing.superseded_by, closing
        while (later := frames.closing_of(newest, n)) is not None:
            last = later
            if later.superseded_by is None:
                break
            newest = later.superseded_by
        is_current = last.superseded_by is not None
        raise Conflict(
            f"Frame {frame:,} was superseded by frame {closing.superseded_by:,}",
            where=f"event {closing.seq:,}",
            remedy=f"Pass frame {newest:,} instead."
            if is_current
            else f"Pass a frame that is current; frame {newest:,} was closed, too.",
        )
    # The event that closed a frame with its parent is unknown if the frame was erased.
    is_known = closing.seq != frame
    raise Conflict(
        f"Frame {frame:,} was {'deleted' if is_known else 'closed'}",
        where=f"event {closing.seq:,}" if is_known else None,
        remedy="Pass a frame that is current; view.history.of returns its versions.",
    )
