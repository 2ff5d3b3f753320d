"""Real Ctrl-C in cold reads: a timer signal at a drawn instant, as a user's finger sends it.

A forked process opens a store, arms a timer and reads. The handler raises KeyboardInterrupt
wherever the interpreter is: inside numpy calls and between bytecodes that no trace function sees.
Afterwards the same checks follow as in `interrupted_reads`.
"""

import signal
import time
from collections import Counter
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random

from cerata.memory.store import Store

from ..injected_exceptions import causes
from ..public_reads import answer, plain
from ..read_stores import KINDS
from .bench import scratch, share_of, summed
from .interrupted_reads import Bench, ReadTally

SIZES = {60: 3, 600: 1}
"""Events of the stores, with the parts of the reads that each gets.

In a small store every structure is struck often, in a larger one long loops are.
"""

_MEASURED = 2
"""Undisturbed runs of each read, of which the quickest gives the range of delays."""
_LATEST = 1.1
"""The longest delay, as a share of the duration: a few signals arrive after the read."""


@dataclass(slots=True)
class _Alarm:
    """A timer whose signal raises KeyboardInterrupt while it is armed, and is lost afterwards."""

    delay: float
    armed: bool = False
    raised: BaseException | None = None

    def read(self, bench: Bench, name: str, store: Store) -> object:
        """Read, and be interrupted."""
        before = signal.signal(signal.SIGALRM, self._ring)
        try:
            self.armed = True
            signal.setitimer(signal.ITIMER_REAL, self.delay)
            value = plain(bench.reads[name](store))
            self.armed = False
            return value
        finally:
            self.armed = False
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)

    def is_behind(self, error: BaseException | None) -> bool:
        """Return whether the interrupt led to an error."""
        return self.raised is not None and self.raised in causes(error)

    def _ring(self, *_: object) -> None:
        if self.armed:
            self.armed = False
            self.raised = KeyboardInterrupt("Ctrl-C")
            raise self.raised


def interrupt(count: int, *, seed: int = 0, jobs: int = 1) -> ReadTally:
    """Interrupt ``count`` cold reads of the four kinds of store, in ``jobs`` processes at once."""
    tally = summed(jobs, partial(_interrupt, count, seed, jobs))
    tally.sites_max = tally.raised
    return tally


def _interrupt(count: int, seed: int, jobs: int, number: int) -> ReadTally:
    random = Random(seed + number)
    tally = ReadTally()
    seconds: dict[tuple[str, str], float] = {}
    with scratch() as folder:
        places = [
            (name, events, saved)
            for events, part in SIZES.items()
            for name in KINDS
            for saved in (0, events * 2 // 3)
            for _ in range(part)
        ]
        shares = Counter(
            places[place % len(places)] for place in range(share_of(count, jobs, number))
        )
        for (name, events, saved), reads in shares.items():
            bench = Bench(KINDS[name], events, saved, seed + number, Path(folder))
            for _ in range(reads):
                read = random.choice(list(bench.reads))
                if (bench.name, read) not in seconds:
                    seconds[bench.name, read] = _duration(bench, read)
                alarm = _Alarm(random.random() * _LATEST * seconds[bench.name, read])
                bench.disturb(
                    tally,
                    read,
                    lambda store: alarm.read(bench, read, store),  # noqa: B023 - at once
                    alarm.is_behind,
                    place=f"{alarm.delay * 1000:.3f} ms",
                )
    tally.reads_max = len(seconds)
    return tally


def _duration(bench: Bench, name: str) -> float:
    durations: list[float] = []
    for _ in range(_MEASURED):
        store = bench.opened()
        started = time.perf_counter()
        answer(bench.reads[name], store)
        durations.append(time.perf_counter() - started)
        store.close()
    return min(durations)
