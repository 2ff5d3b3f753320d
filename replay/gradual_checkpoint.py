"""Gradual checkpoints: a checkpoint in small steps, between the appends of one process.

Owns the choice of the process that checkpoints, and the pace. Leaves out the steps (`fold`) and the
form of a checkpoint (`checkpoint`).

A checkpoint of 4,096 events takes 100 ms and more, so no append computes a whole one. Each append
takes a step for itself, and one more for every `STEP_SEQS` / 2 of its events: the load of a few
chunks, a fold of up to `STEP_SEQS` events, the plans of three projections, or the publication of
all plans.

Several processes may have the file open, and one checkpoint serves all of them:

- The process whose checkpoint is the newest, the maintainer, folds as it appends, and publishes
  when a range of 4,096 events is complete.
- Another process begins when a range is complete; once it has seen a maintainer, when another
  range is complete, too. Then the maintainer is idle, or closed the file.
- From the end of a range until its checkpoint is published, the process holds the maintenance lock,
  which it tries without waiting. A process that does not get the lock goes on without folding; two
  ranges later it goes on without the lock, because the holder may be idle.

A process that has read little must load the rest of the state before it can checkpoint. It begins
when the events after the checkpoint are a 32nd of those before, so that the load, about 1 us an
event, costs at most twice the fold that the checkpoint saves the next opener. A clean close saves
in any case.

So no process waits, and none computes what another does at the same time. If two do, the second
publication is refused.
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import Final, Protocol

from cerata.engine.disk.storage import LockName, StorageFile
from cerata.engine.errors import CerataError, Locked
from cerata.engine.log import Log
from cerata.projections.core.seal import RANGE_SEQS_MAX

from .checkpoint import Plan

STEP_SEQS: Final = 256
"""Events of a step: 4 to 10 ms, and 15 % slower for each event than steps of 1,024."""

_STEP_PLANS: Final = 3
"""Plans of a step: each is at most a third of a step, and most are of few events."""

_LOAD_SHARE: Final = 32
"""Loaded events for each event whose fold a checkpoint saves: a fold of one takes 15 to 20 us."""

_PAUSE_SEQS: Final = 64
"""Events between two tries of a lock that another process holds."""


class Steps(Protocol):
    """The steps of a checkpoint, over the projections of an open log."""

    @property
    def names(self) -> Sequence[str]:
        """The projections to save: all but those whose code raised."""
        ...

    def saved_seq(self) -> int:
        """Return the seq through which all projections are saved."""
        ...

    def folded_seq(self) -> int:
        """Return the seq through which all projections are folded; −1 if one is not restored."""
        ...

    def fold_slice(self, through: int) -> bool:
        """Load some chunks, or fold all up to an event; return whether anything changed."""
        ...

    def plan(self, name: str, through: int) -> Plan | None:
        """Return the checkpoint plan of a projection at the end of a largest range."""
        ...

    def publish_plans(self, plans: dict[str, Plan]) -> None:
        """Publish plans. Raises `Locked` if another process writes at this moment."""
        ...


class GradualCheckpoint:
    """The checkpoint that an open file has in progress.

    - ``_target`` is the end of the range whose plans are computed; 0 without any.
    - An error leaves no plan and no lock: the next step begins again.
    """

    def __init__(self, log: Log, steps: Steps) -> None:
        self._log = log
        self._steps = steps
        self._lock = MaintenanceLock(log)
        self._target = 0
        self._unplanned: list[str] = []
        self._plans: dict[str, Plan] = {}
        self._published = -1
        """`Steps.saved_seq` after the last checkpoint of this process."""
        self._seen: int = -1
        self._has_maintainer: bool = False
        """True if another process has published a checkpoint while the file was open here."""
        self.next_due = 0
        """The head from which a step may be due."""

    def take_steps(self, appended: int) -> bool:
        """Take the steps that an append of some events owes; return whether any was taken."""
        if self._log.head.seq < self.next_due:
            return False
        steps = 1 + 2 * appended // STEP_SEQS
        try:
            taken = sum(1 for _ in range(steps) if self._take_step())
        except BaseException:
            self.drop()
            raise
        return taken > 0

    def drop(self) -> None:
        """Forget the plans, and release the lock."""
        self._target = 0
        self._unplanned = []
        self._plans = {}
        self.next_due = 0
        self._lock.release()

    def saved(self) -> None:
        """Note that this process has saved a whole checkpoint."""
        self.drop()
        self._published = self._seen = self._steps.saved_seq()
        self._has_maintainer = False

    # --- steps -----------------------------------------------------------------------------------

    def _take_step(self) -> bool:
        head, saved = self._log.head.seq, self._steps.saved_seq()
        if saved != self._seen:
            self._has_maintainer = self._seen >= 0
            self._seen = saved
        if self._target and saved >= self._target:
            # Another process was first.
            self.drop()
        if self._target:
            return self._plan_or_publish()
        end = head - head % RANGE_SEQS_MAX
        is_maintainer = self._published == saved
        start = saved - saved % RANGE_SEQS_MAX + RANGE_SEQS_MAX
        if self._has_maintainer and not is_maintainer:
            start += RANGE_SEQS_MAX
        if is_maintainer and head < start:
            return self._fold_ahead(head, start)
        if head < start:
            self.next_due = start
            return False
        due = saved + saved // _LOAD_SHARE
        if head < due and self._steps.folded_seq() < 0:
            # Reads may load the state at any time, so look again after a range.
            self.next_due = min(due, head + RANGE_SEQS_MAX)
            return False
        if not (self._lock.take() or head >= start + 2 * RANGE_SEQS_MAX):
            self.next_due = head + _PAUSE_SEQS
            return False
        folded = self._steps.folded_seq()
        if folded < end and self._steps.fold_slice(min(end, max(folded, 0) + STEP_SEQS)):
            return True
        self._target = end
        self._unplanned = [*self._steps.names]
        return self._plan_or_publish()

    def _fold_ahead(self, head: int, start: int) -> bool:
        folded = self._steps.folded_seq()
        if head - folded < STEP_SEQS:
            self.next_due = min(folded + STEP_SEQS, start)
            return False
        if self._steps.fold_slice(max(folded, 0) + STEP_SEQS):
            return True
        self.next_due = start
        return False

    def _plan_or_publish(self) -> bool:
        if self._unplanned:
            names = self._unplanned[:_STEP_PLANS]
            for name in names:
                plan = self._steps.plan(name, self._target)
                if plan is not None:
                    self._plans[name] = plan
            del self._unplanned[: len(names)]
            return True
        try:
            self._steps.publish_plans(self._plans)
        except Locked:
            # The plans stay valid, so the next append tries again.
            return False
        target = self._target
        self.saved()
        if self._seen < target:
            # The log is damaged before the end of the range: do not try with every append.
            self.next_due = self._log.head.seq + RANGE_SEQS_MAX
        return True


# --- The maintenance lock of an open log, held across calls ---------------------------------------


class MaintenanceLock:
    """The maintenance lock; it excludes no reader and no writer, only other checkpoints."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._file: StorageFile | None = None

    def take(self) -> bool:
        """Take the lock without waiting; return whether this handle has it."""
        file = self._log.file.file
        if self._file is file:
            return True
        self.release()
        if not file.try_lock(LockName.MAINTENANCE, exclusive=True):
            return False
        self._file = file
        return True

    def release(self) -> None:
        """Release the lock; closing the log releases it, too."""
        file = self._file
        self._file = None
        if file is not None:
            # A file that cannot release its lock is closed, or will be: then no lock is left.
            with suppress(CerataError):
                file.unlock(LockName.MAINTENANCE)
