"""Rules of URIs: a frame that replaces a URI leaves no other current frame with this URI.

Owns the check of `ConditionalDraft.only_of_uri`: before the lock against the folded frames, and
under it against the events that other writers appended since. Leaves out finding the frames to
replace (`frames.replacement`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from cerata.engine.errors import Conflict
from cerata.engine.events import DeleteFrame, Draft, Event, PutFrame, Scope, SupersedeFrame
from cerata.projections.columnar.scopes import is_same

from .conditional_draft import ConditionalDraft
from .reference_rules import closed_by
from .rule import Rule, State, conditional_of, drafts_of

if TYPE_CHECKING:
    from cerata.engine.log import Validate
    from cerata.projections.frames.reader import Frames

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
