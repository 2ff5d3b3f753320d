"""Forks: the memory at one of its points, continued on its own, and compared with its parent.

Owns the commands of forks and `ForkDiff`. Leaves out the file of a fork (`cerata.engine.fork`) and
its checkpoints (`cerata.replay.fork_checkpoints`). Nothing merges: `Store.apply` appends the events
of a fork as new events.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from cerata.engine.arguments import expect_type
from cerata.engine.errors import Conflict, IdempotencyConflict, InvalidInput
from cerata.engine.lineage import Branch, common_point
from cerata.engine.loading import loading
from cerata.engine.open import path_name
from cerata.engine.plain_value import PlainValue
from cerata.projections.columnar.scopes import check_reach, sees_same

from .batch.session import WriteSession
from .points_in_time import PointsInTime
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


class ForkCommands(PointsInTime):
    """The calls about forks of a memory."""

    def fork(
        self,
        at: Basis = "HEAD",
        path: str | os.PathLike[str] | None = None,
        *,
        progress: Callable[[str, int, int], None] | None = None,
    ) -> Self:
        """Return a memory that continues this one from a point on its own; close it after use.

        Writes to one are not seen by the other. The fork's first event is a `branch`. A fork in
        memory shares the file up to the point; it ends with its handle. A fork in a file appears
        whole or not at all. The fork has the scope, actor and embedder of this store.

        Args:
            at: The end of a batch, as the method `at` takes it; default the newest event.
            path: The file to create; default in memory.
            progress: Called with the name of a part, and how many of how many bytes are copied.

        Raises:
            InvalidInput: ``at`` lies inside a batch, or a memory without a file has a ``path``.
            Conflict: a file exists at ``path``.
            Corrupt: an event cannot be read.
        """
        with loading("the part that forks"):
            from cerata.engine.fork import fork_in_memory, fork_into_file
            from cerata.engine.open import open_log
            from cerata.replay.fork_checkpoints import kept_states

        check_reach(self._session.reach)
        state = self._at(at)
        if state.unsalted_drafts:
            raise InvalidInput(
                "The view has drafts of a transaction, which are not in the log",
                remedy="Call fork() after the transaction.",
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
        return type(self)(
            WriteSession(
                log,
                session.reach,
                self._fold.registry,
                session.embedders.choice,
                session.author.actor,
            ).acting(session.role)
        )

    def branches(self) -> tuple[Branch, ...]:
        """Return the points at which this memory and its parents were forked, oldest first.

        A fork has at least one; a memory that is no fork has none.
        """
        self._log.refresh()
        return self._log.branches()

    def compare(self, fork: PointsInTime) -> ForkDiff:
        """Return the changes of this memory and of another fork since their last common event.

        Args:
            fork: A fork of this memory, its parent, or a backup of either, opened as a store.

        Raises:
            InvalidInput: the two have no common event, or different scopes.
        """
        point = self._common_point(fork)
        here, there = self.diff(point, "HEAD"), fork.diff(point, "HEAD")
        for side in (here, there):
            # Read now: the result stays when a store is closed.
            _ = side.changes, side.facts
        return ForkDiff(point, here, there)

    def drafts_after(self, store: PointsInTime) -> list[Draft]:
        """Return the events that a store lacks, as drafts that its `apply` would append.

        A reference to an event that the other lacks is −k, the k-th draft. Branches, recorded
        recalls, verdicts on proposals and tags of events that the other lacks, and erased events
        are left out.

        Args:
            store: The parent of this fork, or another fork of it, opened as a store.

        Raises:
            InvalidInput: the two have no common event, or an event has an unknown type.
        """
        with loading("the part that forks"):
            from .fork_drafts import drafts_after

        return drafts_after(self._snapshot(), self._log, self._common_point(store))

    def apply(self, fork: ForkCommands) -> Receipt:
        """Append the events of a fork as one batch.

        A fork is applied once: a second call appends nothing.

        Args:
            fork: A fork of this memory, opened as a store.

        Raises:
            InvalidInput: the fork has no event of its own, or it is no fork of this memory.
            Conflict: this memory has closed a frame or fact that the events name, or the fork was
                applied before and has later events.
        """
        expect_type("fork", fork, ForkCommands, "a store", "Pass a store that fork() returned.")
        drafts = fork.drafts_after(self)
        if not drafts:
            raise InvalidInput(
                "The fork has no event of its own that could be appended here",
                where=fork._log.path,
                remedy="Write to the fork first.",
            )
        branch = fork.branches()[-1].id.hex() if fork.branches() else ""
        try:
            return self._session.write(drafts, key=f"apply:{branch}")
        except IdempotencyConflict as error:
            raise Conflict(
                "The fork was applied before with other events, so some would be appended twice",
                where=fork._log.path,
                remedy="Fork this memory again, and write the rest there.",
            ) from error

    def _common_point(self, fork: PointsInTime) -> int:
        expect_type("fork", fork, ForkCommands, "a store", "Pass a store that fork() returned.")
        assert isinstance(fork, ForkCommands)
        if not sees_same(self._session.reach, fork._session.reach):
            raise InvalidInput(
                "The two memories are open with different scopes",
                remedy="Open both with the same scope.",
            )
        head, fork_head = self._log.refresh(), fork._log.refresh()
        if head.log_id != fork_head.log_id:
            raise InvalidInput(
                "The two memories have no common event: neither is a fork of the other",
                where=fork._log.path,
                remedy="Pass a fork of this memory, or its parent.",
            )
        return common_point(self.branches(), head.seq, fork.branches(), fork_head.seq)
