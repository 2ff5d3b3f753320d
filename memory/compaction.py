"""Compaction and retention: the file without dead space, and without old contents.

Owns the commands `upkeep.compact` and `upkeep.maintain`. Leaves out which contents a horizon gives
up (`retention`), and the copy and the swap of the files (`cerata.engine.copies.compact`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from cerata.engine.errors import InvalidInput, Unsupported
from cerata.engine.late import loading
from cerata.engine.plain_value import PlainValue
from cerata.projections.columnar.scopes import pairs_of

from .points_in_time import Points
from .view import Basis

if TYPE_CHECKING:
    from cerata.engine.copies.compact import Retention
    from cerata.projections.columnar.columns import I64

DEAD_SHARE: Final = 0.25
"""`upkeep.maintain` compacts a file with this share of dead space, the next size of its indexes."""

DEAD_BYTES: Final = 1 << 20
"""`upkeep.maintain` leaves dead space up to this size."""

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Compaction(PlainValue):
    """The result of a compaction.

    - ``done`` is False after a dry run, if the time was over before the swap of the files, and if
      the new file would be no smaller and give up no contents: then the file stays as it is.
    - ``before`` and ``after`` are the sizes of the file in bytes; without ``done``, ``after`` is
      an estimate, or equal to ``before`` if the file stays.
    - ``events`` is the number of events in the log.
    - ``dropped`` is the number of events whose contents retention gave up, for frames that had
      died by the event ``horizon``; None without a horizon.
    """

    done: bool
    before: int
    after: int
    events: int
    dropped: int
    horizon: int | None

    @property
    def saved(self) -> int:
        """The bytes that the file loses; negative only if it gave up contents and grew."""
        return self.before - self.after


@dataclass(frozen=True)
class Maintenance(PlainValue):
    """The result of `upkeep.maintain`.

    - ``checkpointed`` is True if it saved the state of the projections.
    - ``compaction`` is the result of a compaction, finished or not; None if none was due.
    - ``due`` is True if work remains for another call.
    """

    checkpointed: bool
    compaction: Compaction | None
    due: bool


class CompactionCommands(Points):
    """The calls that give space back to the disk."""

    def compact(
        self,
        *,
        horizon: Basis | None = None,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> Compaction:
        """Write a new file without dead space, while other processes read and write.

        Without a ``horizon`` the file never grows: if the new file would be no smaller, the file
        stays as it is. But if a horizon has contents to give up, the new file takes its place at
        any size.

        The log stays the same: events, ids, hashes, tags and views. A killed compaction continues
        at the next call. Other processes wait only while the new file takes the place of the old.

        With ``horizon``, the contents of frames that had died by then are given up, as are their
        vectors: superseded and deleted frames, except frames that are current at a tag. Headers and
        hashes of these events stay, so proofs and projections do. A view of a point before the
        horizon then raises `HistoryPruned`, unless the point has a tag.

        Args:
            horizon: The point, as `at` takes it; default none, and every content stays.
            dry_run: True only estimates the gain.
            progress: Called with the name of a part, and how many of how many events it has done.

        Raises:
            InvalidInput: the store has a scope, or a transaction is open.
            ReadOnly: the store was opened for reading.
            Locked: another process or thread compacts the file.
            Conflict: the file has several names.
            StorageFailed: the disk has too little space, or fails; nothing has changed.
            Corrupt: an event cannot be read, with its batch; nothing has changed.
        """
        self._check_whole()
        point = None if horizon is None else self._seq_of(horizon)
        return self._compacted(point, dry_run=dry_run, progress=progress)

    def maintain(
        self, budget_seconds: float = 1.0, *, progress: Progress | None = None
    ) -> Maintenance:
        """Do the upkeep that is due, for about some seconds.

        Saves a checkpoint if the next opener would have to fold events, then compacts the file if
        more than a quarter of it is dead space. A compaction that the time does not suffice for
        continues at the next call. Never gives up contents.

        Args:
            budget_seconds: The time; a step that has begun is completed. Default 1.
            progress: Called with the name of a part, and how many of how many events it has done.

        Raises:
            InvalidInput: ``budget_seconds`` is not above 0, the store has a scope, or a transaction
                is open.
            ReadOnly: the store was opened for reading.
            Corrupt: an event cannot be read, with its batch; the file stays as it is.
        """
        self._check_whole()
        if not isinstance(budget_seconds, int | float) or not budget_seconds > 0:
            raise InvalidInput(
                f"budget_seconds must be above 0, not {budget_seconds!r:.60}",
                remedy="Pass the seconds that the upkeep may take, such as 0.5.",
            )
        clock = self._log.environment.clock
        end = clock.monotonic() + budget_seconds
        checkpointed = self._fold.is_worth_saving()
        if checkpointed:
            self._fold.save()
        before, after = self._sizes()
        if before - after <= max(DEAD_BYTES, DEAD_SHARE * before):
            return Maintenance(checkpointed, None, due=False)
        if clock.monotonic() >= end:
            return Maintenance(checkpointed, None, due=True)
        compaction = self._compacted(
            None, progress=progress, is_over=lambda: clock.monotonic() >= end
        )
        due = not compaction.done and compaction.after < compaction.before
        return Maintenance(checkpointed, compaction, due=due)

    # --- steps -----------------------------------------------------------------------------------

    def _check_whole(self) -> None:
        """Refuse a store with a scope, which must not change the contents of another scope."""
        session = self._session
        session.check_writable()
        if pairs_of(session.reach) is not None:
            raise InvalidInput(
                "A store with a scope cannot compact the file, which holds other scopes",
                remedy="Open the file without scope=.",
            )
        if session.open_block is not None:
            raise InvalidInput(
                "The file cannot be compacted inside a transaction",
                remedy="Call it after the transaction.",
            )
        if not self._log.is_lasting:
            raise Unsupported(
                "A memory without a file has nothing to compact",
                where=self._log.path,
                remedy="Open a file.",
            )

    def _compacted(
        self,
        horizon: int | None,
        *,
        dry_run: bool = False,
        progress: Progress | None = None,
        is_over: Callable[[], bool] = lambda: False,
    ) -> Compaction:
        with loading("the part that compacts"):
            from cerata.engine.copies.compact import Steps, check_space, compact
            from cerata.replay.checkpoint import is_of_others
            from cerata.replay.fold import silent

            from .retention import retention_of, save_in

        self._log.refresh()
        dropped = 0

        def retain() -> Retention | None:
            nonlocal dropped
            retention = retention_of(self._log, self._fold, horizon)
            dropped = 0 if retention is None else len(retention.seqs)
            return retention

        planned = retain()
        before, after = self._sizes(None if planned is None else planned.seqs)
        estimate = Compaction(False, before, after, self._log.head.seq, dropped, horizon)
        if dry_run:
            return estimate
        check_space(self._log, after)
        registry = self._fold.registry
        save = partial(save_in, registry)
        carries = partial(is_of_others, saved=[registry.key(name) for name in registry.names])
        steps = Steps(retain, save, progress or silent, is_over, carries)
        is_done = compact(self._log, steps)
        if is_done is None:
            size = self._log.file.file.size()
            return Compaction(False, before, size, self._log.head.seq, 0, horizon)
        if not is_done:
            return estimate
        head, size = self._log.head.seq, self._log.file.file.size()
        return Compaction(True, before, size, head, dropped, horizon)

    def _sizes(self, dropped: I64 | None = None) -> tuple[int, int]:
        """Return the size of the file, and that of its live part without some payloads."""
        with loading("the part that compacts"):
            from cerata.engine.copies.compact import live_size

        size = self._log.file.file.size()
        return size, min(size, live_size(self._log, dropped))
