"""Counts: the results of a run that this process records, so that a call needs no fold.

Owns the numbers and the sizes of a run's results between the batches of one journal. Leaves out the
batches (`journal`), and whether the events of other writers matter
(`cerata.agents.activities.open_run`).
"""

from __future__ import annotations

from typing import NamedTuple

from cerata.memory.batch.session import WriteSession
from cerata.memory.snapshot.snapshot import Snapshot
from cerata.memory.values.frames import Receipt

from .activities.open_run import OpenRun
from .activities.reader import ActivityRow
from .activities.values import activities_at
from .run_results import RunResults


class Captured(NamedTuple):
    """A result that a batch is to capture: its call's name, its track and the bytes of its JSON."""

    name: str
    track: str
    size: int


class RunCounts:
    """The results of a run by name and by size; for one thread at a time."""

    def __init__(self, session: WriteSession, run: ActivityRow, prefix: str) -> None:
        self._session = session
        self._run = run
        self._prefix = prefix
        self._proof: OpenRun | None = None
        """From the last batch that was counted; None before the first result."""
        self._numbers: dict[str, int] = {}
        """The results of names at the proof; a missing name is not counted yet."""
        self._weighed = 0
        """The first calls of the run, whose results are in ``_sizes``: all calls at the proof."""
        self._own: set[int] = set()
        """The later calls whose results are in ``_sizes``."""
        self._sizes: dict[str, dict[int, int]] = {}
        """The bytes of each result by its frame, for each track."""
        self._totals: dict[str, int] = {}
        """The bytes of all results of each track."""

    def proof(self, captured: Captured | None, size_max: int) -> OpenRun | None:
        """Return a proof for the next batch; None if the batch needs a fold.

        The proof is of an earlier event, so the caller checks the events since. A batch needs a
        fold if its result is the first of its name here, or may evict earlier results.

        Args:
            captured: The result of the batch, if any.
            size_max: The bytes of the results that the run keeps on the track.
        """
        if captured is not None and (
            captured.name not in self._numbers
            or self._totals.get(captured.track, 0) + captured.size > size_max
        ):
            return None
        return self._proof

    def note(self, captured: Captured | None, receipt: Receipt, proof: OpenRun | None) -> int:
        """Count a call whose batch is in the log; return the number of its result, 0 without.

        Args:
            captured: The result of the batch, if any: its first event.
            receipt: The receipt of the batch.
            proof: The proof with which the batch was appended, if any.
        """
        if captured is not None:
            sizes = self._sizes.setdefault(captured.track, {})
            sizes[receipt.seqs[0]] = captured.size
            self._totals[captured.track] = self._totals.get(captured.track, 0) + captured.size
            self._own.add(receipt.seqs[1])
        if proof is None:
            return 0 if captured is None else self._counted(captured, receipt)
        self._proof = proof.after(receipt.seqs[-1])
        self._count_call()
        if captured is None:
            return 0
        self._numbers[captured.name] += 1
        return self._numbers[captured.name]

    def _count_call(self) -> None:
        """Count a call of this process that follows the weighed calls."""
        self._weighed += 1
        self._own.clear()

    def _counted(self, captured: Captured, receipt: Receipt) -> int:
        """Return the number of a result from the fold, and prove the run if nothing is later."""
        run = self._run
        replaced = self._session.fold.replaced
        snapshot = self._session.snapshot()
        activities = activities_at(snapshot)
        number = activities.result_number(run.row, captured.name, receipt.seqs[0])
        before, self._proof = self._proof, None
        is_next = (
            snapshot.basis == receipt.seqs[-1]
            and activities.call_count(run.row) == self._weighed + 1
        )
        if not is_next or (before is not None and before.replaced != replaced):
            self._numbers.clear()
        if is_next:
            # The batch was appended to an open run, and no event is later.
            self._count_call()
            self._numbers[captured.name] = number
            scope = activities.scope_of(run.row)
            self._proof = OpenRun(snapshot.basis, replaced, run.seq, run.frame, scope)
        return number

    def evicted(self, snapshot: Snapshot, captured: Captured, size_max: int) -> list[int]:
        """Return the oldest results that leave, so that the captured has room, by their frames."""
        calls = activities_at(snapshot).last_calls(self._run.row, self._weighed)
        self._weighed += len(calls)
        if calls:
            # Their names are not counted.
            self._numbers.clear()
        foreign = [call for call in calls if call.result and call.seq not in self._own]
        self._own.clear()
        if foreign:
            # Of another process, or from before a kill.
            results = RunResults(snapshot, self._run, self._prefix)
            for stored in results.stored(foreign):
                self._sizes.setdefault(stored.track, {})[stored.frame] = stored.size
        track = captured.track
        sizes = self._sizes.get(track, {})
        total = sum(sizes.values()) + captured.size
        evicted: list[int] = []
        for frame, old in sorted(sizes.items()) if total > size_max else ():
            if total <= size_max:
                break
            total -= old
            if snapshot.is_current(frame):
                evicted.append(frame)
            else:
                del sizes[frame]
        self._totals = {track: sum(sizes.values()) for track, sizes in self._sizes.items()}
        return evicted
