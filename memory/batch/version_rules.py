"""Rules of versions: a new version carries over all that its frames had when it was written.

Owns the check of `ConditionalDraft.sources`: that no other writer changed a frame after the state
from which the drafts were made. Events before the lock are read from the log, later events are
those of ``delta``. Leaves out finding the frames (`frames.versions`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from cerata.engine.errors import Conflict
from cerata.engine.events import (
    DeleteFrame,
    Draft,
    Event,
    PutEmbedding,
    PutFrame,
    SupersedeFrame,
)

from .conditional_draft import ConditionalDraft
from .reference_rules import closed_by
from .rule import Rule, State, conditional_of

if TYPE_CHECKING:
    from cerata.engine.log import Validate


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
