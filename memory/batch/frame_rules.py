"""Rules of versions: a new version carries over all that its frames had when it was written.

Owns the check of `ConditionalDraft.sources`: that no other writer changed a frame after the state
from which the drafts were made. Events before the lock are read from the log, later events are
those of ``delta``. Leaves out finding the frames (`frames.versions`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from cerata.engine.errors import Conflict, InvalidInput
from cerata.engine.events import (
    DeleteFrame,
    Draft,
    Event,
    PutEmbedding,
    PutFrame,
    Scope,
    SupersedeFrame,
)
from cerata.projections.columnar.scopes import is_same
from cerata.projections.columnar.times import to_datetime

from .conditional_draft import ConditionalDraft
from .reference_rules import closed_by
from .rule import Rule, State, conditional_of, drafts_of

if TYPE_CHECKING:
    from cerata.engine.log import Validate
    from cerata.projections.frames.reader import Frames


class Change(NamedTuple):
    """An event's change of a frame: of which frame, or by a frame that is put for which cause."""

    seq: int
    frame: int | None
    cause: int | None


class VersionRules(Rule):
    """The new versions among the drafts of a batch."""

    kinds = (ConditionalDraft,)

    def __init__(self) -> None:
        self._changes: list[Change] = []
        """The changes of the log since the first basis, up to the event ``_end``."""
        self._end = 0

    def take(self, drafts: Sequence[Draft], first: int) -> bool:
        self._new = [draft for draft in conditional_of(drafts[first - 1 :]) if draft.sources]
        return bool(self._new)

    def check(self, state: State) -> Validate:
        start = max(self._end, min(draft.basis for draft in self._new))
        if start < state.n:
            self._changes += _changes_of(state.log.read(start + 1, state.n))
            self._end = state.n
        # The key of a repeated call is looked up before this check runs, so it may raise.
        return partial(self._check_raced, state.n)

    def _check_raced(self, n: int, delta: Sequence[Event]) -> None:
        """Refuse the batch if an event after its basis changed a frame that it carries over.

        Raises:
            Conflict: another writer's event came between; ``where`` names the event.
        """
        changes = [*(change for change in self._changes if change.seq <= n), *_changes_of(delta)]
        for draft in self._new if changes else ():
            sources = frozenset(draft.sources)
            for change in changes:
                is_same_cause = change.cause is not None and change.cause == draft.causation
                if change.seq > draft.basis and (change.frame in sources or is_same_cause):
                    raise Conflict(
                        "Another writer changed a frame of the new version just before",
                        where=f"event {change.seq:,}",
                        remedy="Read the memory again, and decide again.",
                    )


def _changes_of(events: Iterable[Event]) -> Iterator[Change]:
    for event in events:
        match event.body:
            case PutFrame(parent=parent):
                if parent is not None or event.causation is not None:
                    yield Change(event.seq, parent, event.causation)
            case PutEmbedding(frame=frame):
                yield Change(event.seq, frame, None)
            case DeleteFrame() | SupersedeFrame():
                yield Change(event.seq, closed_by(event.body), None)
            case _:
                pass


# --- Rules of URIs: a frame that replaces a URI leaves no other current frame with this URI -------


_CLOSINGS: Final = (DeleteFrame, SupersedeFrame)


class UriRules(Rule):
    """The frames among the drafts of a batch that replace a URI."""

    kinds = (*_CLOSINGS, ConditionalDraft)

    def __init__(self) -> None:
        self._closed = set[int]()
        """The frames that earlier calls close."""

    def take(self, drafts: Sequence[Draft], first: int) -> bool:
        new = drafts[first - 1 :]
        self._new_closed = {
            closed_by(draft.body)
            for draft in drafts_of(new, _CLOSINGS)
            if isinstance(draft.body, _CLOSINGS)
        }
        self._new = [
            (draft.body.uri or "", draft.scope)
            for draft in conditional_of(new)
            if draft.only_of_uri and isinstance(draft.body, PutFrame)
        ]
        return bool(self._new)

    def keep(self) -> None:
        self._closed |= self._new_closed

    def check(self, state: State) -> Validate:
        frames = state.frames()
        missed = [
            frame
            for uri, scope in self._new
            for frame in frames.find_uri(uri, state.n)
            if _has_scope(frames, frame, scope) and not self._is_closed(frames, frame)
        ]
        # The key of a repeated call is looked up before this check runs, so it may raise.
        return partial(self._check_raced, missed)

    def _is_closed(self, frames: Frames, frame: int) -> bool:
        """Return whether the batch closes a frame, or a frame above it."""
        above: int | None = frame
        while above is not None and above not in self._closed and above not in self._new_closed:
            above = frames.parent(above)
        return above is not None

    def _check_raced(self, missed: Sequence[int], delta: Sequence[Event]) -> None:
        """Refuse the batch if another frame with a URI is current, or was put by ``delta``.

        Raises:
            Conflict: another writer's event came between; ``where`` names the event.
        """
        put = [
            event.seq
            for event in delta
            if isinstance(event.body, PutFrame) and event.body.chunk_index is None
            for uri, scope in self._new
            if event.body.uri == uri and is_same(event.scope, scope)
        ]
        for frame in (*missed, *put):
            raise Conflict(
                "Another writer put a frame with the same URI just before",
                where=f"event {frame:,}",
                remedy="Call again; the new frame then replaces that frame, too.",
            )


def _has_scope(frames: Frames, frame: int, scope: Scope) -> bool:
    """Return whether a frame is no chunk and has a scope."""
    if frames.chunk_index(frame) is not None:
        return False
    row = frames.frame(frame)
    return row is not None and row.scope is not None and is_same(row.scope, scope)


# --- Rules of expiry: a frame expires after it is written -----------------------------------------


class ExpiryRules(Rule):
    """The frames among the drafts of a batch that expire."""

    kinds = (PutFrame,)

    def take(self, drafts: Sequence[Draft], first: int) -> bool:
        self._earliest: int | None = None
        for draft in drafts[first - 1 :]:
            time = draft.body.expires if isinstance(draft.body, PutFrame) else None
            # A value of another type is refused when the draft is encoded.
            if isinstance(time, int) and (self._earliest is None or time < self._earliest):
                self._earliest = time
        return self._earliest is not None

    def check(self, state: State) -> Validate:
        # The key of a repeated call is looked up before this check runs, so it may raise.
        return partial(self._check_future, _time_of_write(state))

    def _check_future(self, now: int, _: Sequence[Event]) -> None:
        """Refuse a frame that has expired already.

        Raises:
            InvalidInput: with both times.
        """
        if self._earliest is not None and self._earliest <= now:
            raise InvalidInput(
                f"expires is {to_datetime(self._earliest).isoformat()}, which is not after "
                f"{to_datetime(now).isoformat()}, the time of the write",
                remedy="Pass a later time, or leave out expires.",
            )


def _time_of_write(state: State) -> int:
    """Return the time of a batch after event ``n``: the clock, or in a repeated block the first."""
    log, n = state.log, state.n
    if n < log.head.seq:
        return log.event(n + 1).recorded
    return max(log.environment.now_us(), log.head.recorded)
