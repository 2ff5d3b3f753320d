"""Two writers and a child of each on one file, round after round: no double writer, no lost lock.

In a round two processes open the file and append in the order in which the kernel runs them. In the
middle each forks a child; the inherited handle refuses the child, which then opens the file itself
and appends, while the parent continues. Owns the rounds and their checks: every appended batch is
there, in the order of its writer, and after the last exit no process holds a lock.
"""

import os
import time
from dataclasses import dataclass
from pathlib import Path

from cerata.engine.errors import CerataError, Closed
from cerata.engine.log import Log
from cerata.engine.open import open_log
from cerata.engine.verify import verify_log
from cerata.fault_injection.judging.tally import SweepTally
from cerata.fault_injection.stories.engine_workloads import RING_SIZE

from .bench import forked, scratch
from .handle_under_test import batches_of, draft

_BATCHES = 3
"""Batches that a writer appends before its child is forked, and again after."""

LIVES = 50
"""Rounds on one file before the next file begins."""


@dataclass(slots=True)
class RoundTally(SweepTally):
    """Counts of the rounds."""

    rounds: int = 0
    batches: int = 0
    seconds: float = 0.0

    def summary(self) -> str:
        return (
            f"{self.rounds:,} rounds of two writers and a child of each, {self.batches:,} batches,"
            f" {self.rounds / self.seconds:.0f} rounds a second, {len(self.problems)} problems"
        )


def meet(count: int) -> RoundTally:
    """Run ``count`` rounds."""
    tally = RoundTally()
    started = time.perf_counter()
    with scratch() as folder:
        while tally.rounds < count and not tally.problems:
            path = Path(folder) / "a.cera"
            head = 0
            for _ in range(min(LIVES, count - tally.rounds)):
                if not tally.problems:
                    head = _round(str(path), head, tally)
            path.unlink(missing_ok=True)
    tally.seconds = time.perf_counter() - started
    return tally


def _round(path: str, head: int, tally: RoundTally) -> int:
    """Run one round on a file of ``head`` events, and return the new number of events."""
    writers = [forked(lambda name=name: _write(path, name)) for name in ("a", "b")]  # type: ignore[misc]
    codes = [os.waitstatus_to_exitcode(os.waitpid(writer, 0)[1]) for writer in writers]
    tally.rounds += 1
    where = f"round {tally.rounds}"
    if codes != [0, 0]:
        tally.problems.append(f"{where}: a writer or its child failed")
    try:
        with open_log(path, ring_bytes=RING_SIZE, lock_timeout=0) as log:
            if not log.report.alone or log.report.cut_bytes:
                tally.problems.append(f"{where}: a lock is held, or a tail was cut: {log.report}")
            names = [name for name, _, _ in batches_of(list(log.read(head + 1)))]
            if tally.rounds % LIVES == 0 and verify_log(log).problems:
                tally.problems.append(f"{where}: verify: {verify_log(log).problems}")
            now = log.head.seq
    except CerataError as error:
        tally.problems.append(f"{where}: the file cannot be read afterwards: {error}")
        return head
    for writer in ("a", "b"):
        mine = [name for name in names if name.startswith(f"{writer}.")]
        expected = [f"{writer}.{number}" for number in range(2 * _BATCHES)]
        if mine != expected or names.count(f"{writer}-child") != 1:
            tally.problems.append(f"{where}: writer {writer} has the batches {mine}")
    tally.batches += len(names)
    return now


def _write(path: str, name: str) -> None:
    with open_log(path, ring_bytes=RING_SIZE) as log:
        for number in range(_BATCHES):
            log.append([draft(f"{name}.{number}", 500)])
        child = forked(lambda: _be_a_child(log, path, name))
        for number in range(_BATCHES, 2 * _BATCHES):
            log.append([draft(f"{name}.{number}", 500)])
        if os.waitpid(child, 0)[1]:
            raise RuntimeError("the child failed")


def _be_a_child(log: Log, path: str, name: str) -> None:
    try:
        log.append([draft("stolen")])
    except Closed:
        log.close()
    else:
        raise RuntimeError("a child appended through its parent's handle")
    with open_log(path, ring_bytes=RING_SIZE) as child_log:
        child_log.append([draft(f"{name}-child")])
