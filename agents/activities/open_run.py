"""Open runs: a proof from the last batch of a writer, so that the next batch needs no fold.

Owns the proof, and the events of other writers that leave a run open. Leaves out the rules that
believe a proof (`cerata.memory.batch`) and the count of results (`cerata.agents.run_counts`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Final

from cerata.engine.errors import Conflict
from cerata.engine.events import (
    DeleteFrame,
    Draft,
    Event,
    EventBody,
    PutFrame,
    Scope,
    SupersedeFrame,
)
from cerata.projections.columnar.scopes import is_same

from .events import EndActivity, RecordCall, StartActivity

if TYPE_CHECKING:
    from cerata.engine.log import Log

NEAR: Final = 64
"""Most events of other writers that are read in place of a fold."""


@dataclass(frozen=True, slots=True)
class OpenRun:
    """A run that is open at event ``n``, within the reach of the session that writes.

    The run and its frame exist there, in ``scope``; these never change. No call of the run is
    later than the calls that the holder of the proof has counted.
    """

    bodies: ClassVar[frozenset[type[EventBody]]] = frozenset((PutFrame, RecordCall))

    n: int
    replaced: int
    """`Fold.replaced` at the proof: an erasure or a rebuild ends it."""
    run: int
    """Seq of the run's first start."""
    frame: int
    """Seq of the run's frame."""
    scope: Scope

    @property
    def open_events(self) -> frozenset[tuple[str, int]]:
        """The run's frame and its start, by wire name and seq."""
        return frozenset(((PutFrame.wire_name, self.frame), (StartActivity.wire_name, self.run)))

    @property
    def open_frames(self) -> tuple[int, ...]:
        """The run's frame."""
        return (self.frame,)

    def at_head(self, log: Log, replaced: int) -> OpenRun | None:
        """Return the proof for the newest event; None if an event since may have ended the run.

        Args:
            log: The log.
            replaced: `Fold.replaced` now.
        """
        head = log.refresh().seq
        if replaced != self.replaced or not 0 <= head - self.n <= NEAR:
            return None
        if head > self.n and not self._is_kept_by(log.recent(self.n + 1, head)):
            return None
        return self.after(head)

    def after(self, n: int) -> OpenRun:
        """Return the proof for a later event, through which the run is known to be open."""
        return replace(self, n=n)

    def has_scope(self, draft: Draft) -> bool:
        """Return whether an event has the scope of the run, as each of its events must."""
        return draft.scope is self.scope or is_same(draft.scope, self.scope)

    def check_later(self, delta: Sequence[Event]) -> None:
        """Refuse a batch if another writer's event since the proof may have changed the run.

        Raises:
            Conflict: the holder decides again, from the fold.
        """
        if not self._is_kept_by(delta):
            raise Conflict(
                f"Another writer has just changed the run {self.run:,}",
                remedy="Read the memory again, and decide again.",
            )

    def _is_kept_by(self, events: Iterable[Event]) -> bool:
        return all(self._is_kept(event.body) for event in events)

    def _is_kept(self, body: object) -> bool:
        match body:
            case RecordCall() | EndActivity():
                return body.activity != self.run
            case StartActivity():
                return body.resumes != self.run
            case DeleteFrame():
                return body.frame != self.frame
            case SupersedeFrame():
                return body.old != self.frame
            case _:
                return isinstance(body, EventBody) and body.keeps_run
