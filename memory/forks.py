"""Forks: the memory at one of its points, continued separately, and compared with its parent.

Owns the commands of forks and `ForkDiff`. Leaves out the file of a fork
(`cerata.engine.copies.fork`) and its checkpoints (`cerata.replay.fork_checkpoints`). Nothing
merges: `upkeep.apply` appends the events of a fork as new events.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cerata.engine.arguments import expect_type
from cerata.engine.errors import Conflict, IdempotencyConflict, InvalidInput
from cerata.engine.late import loading
from cerata.engine.log_file.lineage import Branch, common_point
from cerata.engine.open import path_name
from cerata.engine.plain_value import PlainValue
from cerata.projections.columnar.scopes import check_reach, sees_same

from .batch.session import WriteSession
from .batch.writer import Writer, session_of
from .points_in_time import Points, PointsInTime
from .values.frames import Receipt
from .view import Basis

if TYPE_CHECKING:
    from cerata.engine.events import Draft

    from .frames.diff import Diff


@dataclass(frozen=True)
class ForkDiff(PlainValue):
    """The changes on both sides since two memories parted; falsy without changes.

    - ``point`` is the seq of the last common event.
    - ``here`` and ``there`` are the changes after it, of this memory and of the fork.
    """

    point: int
    here: Diff
    there: Diff

    def __bool__(self) -> bool:
        return bool(self.here) or bool(self.there)

    def __str__(self) -> str:
        return f"Here since event {self.point:,}\n\n{self.here}\n\nThere\n\n{self.there}"


class ForkComparison(Points):
    """The call that compares two forks."""

    def compare(self, fork: PointsInTime) -> ForkDiff:
        """Return the changes of this memory and of another fork since their last common event.

        Args:
            fork: A fork of this memory, its parent, or a backup of either, opened as a store.

        Raises:
            InvalidInput: the two have no common event, or different scopes.
        """
        _check_store(fork)
        point = _common_point(self, fork)
        here, there = PointsInTime(self._session).diff(point), fork.diff(point)
        for side in (here, there):
            # Read now: the result stays when a store is closed.
            _ = side.changes, side.facts
        return ForkDiff(point, here, there)


class ForkCommands(Points):
    """The calls about forks of a memory."""

    def _forked(
        self,
        at: Basis,
        path: str | os.PathLike[str] | None,
        progress: Callable[[str, int, int], None] | None,
    ) -> WriteSession:
        """Return the session of a fork; see `Upkeep.fork`."""
        with loading("the part that forks"):
            from cerata.engine.copies.fork import fork_in_memory, fork_into_file
            from cerata.engine.open import open_log
            from cerata.replay.fork_checkpoints import kept_states

        check_reach(self._session.reach)
        state = self._at(at)
        if state.unsalted_drafts:
            raise InvalidInput(
                "The view has drafts of a transaction, which are not in the log",
                remedy="Call upkeep.fork() after the transaction.",
            )
        self._log.check_unsalvaged()
        states = kept_states(self._log, state.basis, self._fold.registry)
        if path is None:
            log = fork_in_memory(self._log, state.basis, states)
        else:
            name = path_name(path)
            fork_into_file(self._log, state.basis, name, states, progress)
            log = open_log(name, environment=self._log.environment)
        session = self._session
        return WriteSession(
            log,
            session.reach,
            self._fold.registry,
            session.embedders.choice,
            session.author.actor,
        ).acting(session.role)

    def branches(self) -> tuple[Branch, ...]:
        """Return the points at which this memory and its parents were forked, oldest first.

        A fork has at least one; a memory that is no fork has none.
        """
        self._log.refresh()
        return self._log.branches()

    def drafts_after(self, store: PointsInTime) -> list[Draft]:
        """Return the events that a store lacks, as drafts that its `upkeep.apply` would append.

        A reference to an event that the other lacks is −k, the k-th draft. Branches, recorded
        recalls, verdicts on proposals and tags of events that the other lacks, and erased events
        are left out.

        Args:
            store: The parent of this fork, or another fork of it, opened as a store.

        Raises:
            InvalidInput: the two have no common event, or an event has an unknown type.
        """
        _check_store(store)
        return _drafts_after(self._session, _common_point(self, store))

    def apply(self, fork: PointsInTime) -> Receipt:
        """Append the events of a fork as one batch.

        A fork is applied once: a second call appends nothing.

        Args:
            fork: A fork of this memory, opened as a store.

        Raises:
            InvalidInput: the fork has no event of its own, or it is no fork of this memory.
            Conflict: this memory has closed a frame or fact that the events name, or the fork was
                applied before and has later events.
        """
        _check_store(fork)
        log = session_of(fork).log
        drafts = _drafts_after(session_of(fork), _common_point(fork, self))
        if not drafts:
            raise InvalidInput(
                "The fork has no event of its own that could be appended here",
                where=log.path,
                remedy="Write to the fork first.",
            )
        branches = log.branches()
        branch = branches[-1].id.hex() if branches else ""
        try:
            return self._session.write(drafts, key=f"apply:{branch}")
        except IdempotencyConflict as error:
            raise Conflict(
                "The fork was applied before with other events, so some would be appended twice",
                where=log.path,
                remedy="Fork this memory again, and write the rest there.",
            ) from error


def _check_store(fork: PointsInTime) -> None:
    remedy = "Pass a store that upkeep.fork() returned."
    expect_type("fork", fork, PointsInTime, "a store", remedy)


def _common_point(one: Writer, fork: Writer) -> int:
    session, other = session_of(one), session_of(fork)
    if not sees_same(session.reach, other.reach):
        raise InvalidInput(
            "The two memories are open with different scopes",
            remedy="Open both with the same scope.",
        )
    head, fork_head = session.log.refresh(), other.log.refresh()
    if head.log_id != fork_head.log_id:
        raise InvalidInput(
            "The two memories have no common event: neither is a fork of the other",
            where=other.log.path,
            remedy="Pass a fork of this memory, or its parent.",
        )
    return common_point(session.log.branches(), head.seq, other.log.branches(), fork_head.seq)


def _drafts_after(session: WriteSession, point: int) -> list[Draft]:
    with loading("the part that forks"):
        from .fork_drafts import drafts_after

    return drafts_after(session.snapshot(), session.log, point)
