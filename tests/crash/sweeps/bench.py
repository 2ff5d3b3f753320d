"""The bench of all sweeps: a scratch folder, forked processes, a time limit, jobs that share work.

Leaves out the faults, and the judgement.
"""

import os
import signal
import tempfile
from collections.abc import Callable, Generator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from typing import TypeVar

from cerata.fault_injection.judging.tally import SweepTally

TallyType = TypeVar("TallyType", bound=SweepTally)


def scratch() -> "tempfile.TemporaryDirectory[str]":
    """Return a temporary folder, in memory if possible: a sync in memory costs nothing."""
    shared = "/dev/shm"
    return tempfile.TemporaryDirectory(dir=shared if os.access(shared, os.W_OK) else None)


def descriptors() -> int:
    """Return how many descriptors this process has open."""
    return len(os.listdir("/dev/fd"))


def forked(act: Callable[[], None]) -> int:
    """Run a function in a forked process, whose exit code is 0 if the function returned."""
    process = os.fork()
    if process == 0:
        code = 1
        try:
            act()
            code = 0
        finally:
            os._exit(code)
    return process


def summed(jobs: int, work: Callable[[int], TallyType]) -> TallyType:
    """Call ``work`` with each number below ``jobs`` in as many processes, and add the tallies."""
    if jobs == 1:
        return work(0)
    with ProcessPoolExecutor(jobs, mp_context=get_context("fork")) as pool:
        total, *tallies = pool.map(work, range(jobs))
    for tally in tallies:
        total.add(tally)
    return total


def share_of(count: int, jobs: int, number: int) -> int:
    """Return how many of ``count`` runs the job of this number has."""
    return count // jobs + (number < count % jobs)


class Hanging(BaseException):
    """A run exceeded its time limit."""


@contextmanager
def within(seconds: float) -> Generator[None, None, None]:
    """Raise `Hanging` in the main thread if the block takes longer than ``seconds``."""

    def ring(*_: object) -> None:
        raise Hanging

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
