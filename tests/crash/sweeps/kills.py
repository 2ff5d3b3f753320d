"""Real processes killed at real instants, many a second: no acknowledged batch is lost.

Owns the forked writers and the comparison. A child is forked, which spares its imports; it opens
the file and appends, seals, checkpoints, closes and reopens, and writes each operation and each
acknowledgement to a pipe. The parent kills it, mostly in the middle of an operation, reopens the
file and compares. The file is in memory, since a sync costs nothing there, and a kill loses no
written page on any storage.
"""

import gc
import os
import re
import signal
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random

from cerata.engine.errors import CerataError
from cerata.engine.log import Log
from cerata.engine.open import open_log
from cerata.engine.verify import verify_log
from cerata.fault_injection.judging.tally import SweepTally, listed
from cerata.fault_injection.stories.engine_workloads import RING_SIZE

from ..operations import publish
from .bench import forked, scratch, share_of, summed
from .handle_under_test import batches_of, draft

LIVES = 100
"""Kills of one file before the next file begins: its ring is wrapped and sealed many times."""

WHOLE = 50
"""Once per this many kills the whole file is read and verified; otherwise its new part."""

_ACTS = ("small",) * 8 + ("batch", "batch", "long", "quarter", "large")
_OTHERS = ("seal", "checkpoint", "reopen")


@dataclass(slots=True)
class KillTally(SweepTally):
    """Counts of the kills."""

    kills: int = 0
    awaited: int = 0
    """Acknowledgements that the parents waited for: a lower bound of those given."""
    acknowledged: int = 0
    unacknowledged: int = 0
    """Whole batches in the file that were never acknowledged."""
    during: Counter[str] = field(default_factory=Counter[str])
    reports: Counter[str] = field(default_factory=Counter[str])
    seconds: float = 0.0

    def summary(self) -> str:
        return (
            f"{self.kills:,} kills, {self.kills / self.seconds:.0f} a second"
            f" (during: {listed(self.during)}); {self.acknowledged:,} batches acknowledged,"
            f" {self.unacknowledged:,} more whole; reopenings: {listed(self.reports)};"
            f" {len(self.problems)} problems"
        )


def kill(count: int, *, seed: int = 0, jobs: int = 1) -> KillTally:
    """Kill writers ``count`` times, in ``jobs`` processes at once."""
    started = time.perf_counter()
    tally = summed(jobs, partial(_kill, count, seed, jobs))
    tally.seconds = time.perf_counter() - started
    return tally


def _kill(count: int, seed: int, jobs: int, number: int) -> KillTally:
    random = Random(seed + number)
    share = share_of(count, jobs, number)
    tally = KillTally()
    # The children share this memory; a collector that visits it would copy its pages.
    gc.collect()
    gc.freeze()
    with scratch() as folder:
        while tally.kills < share and not tally.problems:
            path = Path(folder) / "a.cera"
            killer = _Killer(str(path), random, tally)
            for _ in range(min(LIVES, share - tally.kills)):
                if not tally.problems:
                    killer.kill_once()
            path.unlink(missing_ok=True)
    return tally


class Victim:
    """A forked writer, which runs ``live(path, pipe, name, dice)`` until it is killed.

    It writes its actions to the pipe, a line each; an error is a line that begins with X.
    """

    def __init__(
        self, live: Callable[[str, int, str, Random], None], path: str, name: str, seed: int
    ) -> None:
        self._pipe, writing = os.pipe()
        self._output = b""

        def act() -> None:
            gc.disable()
            try:
                os.close(self._pipe)
                live(path, writing, name, Random(seed))
            except BaseException as error:  # noqa: BLE001 - the parent reads the error
                os.write(writing, f"X {error!r}\n".encode())

        self.process = forked(act)
        os.close(writing)

    def wait_for(self, count: int, pattern: bytes = rb"!") -> None:
        """Read its lines until a pattern came ``count`` times, or the pipe is closed."""
        while len(re.findall(pattern, self._output)) < count and self._read():
            pass

    def _read(self) -> bool:
        chunk = os.read(self._pipe, 1 << 16)
        self._output += chunk
        return bool(chunk)

    def kill(self) -> list[str]:
        """Kill it, and return all of its lines."""
        os.kill(self.process, signal.SIGKILL)
        os.waitpid(self.process, 0)
        while self._read():
            pass
        os.close(self._pipe)
        return self._output.decode().splitlines()


def _live(path: str, pipe: int, name: str, random: Random) -> None:
    """Do one operation after another, and report each: ``? act [name count]``, then ``!``."""

    def report(line: str) -> None:
        os.write(pipe, line.encode() + b"\n")

    def opened() -> Log:
        report("? open")
        log = open_log(path, ring_bytes=RING_SIZE, sync=random.choice(("commit", "always")))
        report("!")
        return log

    log = opened()
    sizes = {"small": 10, "long": 1_600, "batch": 100, "quarter": 14_000, "large": 20_000}
    number = 0
    while True:
        act = random.choice(_ACTS if random.random() < 0.9 else _OTHERS)
        if act == "reopen":
            report("? close")
            log.close()
            report("!")
            log = opened()
        elif act in sizes:
            number += 1
            count = 3 if act == "batch" else 1
            batch = f"{name}.{number}"
            report(f"? {act} {batch} {count}")
            log.append([draft(batch, sizes[act])] * count)
            report("!")
        else:
            report(f"? {act}")
            log.seal() if act == "seal" else publish(log)
            report("!")


class _Killer:
    """Kills writers of one file, and compares the file with their reports after each kill."""

    def __init__(self, path: str, random: Random, tally: KillTally) -> None:
        self._path = path
        self._random = random
        self._tally = tally
        self._issued: dict[str, int] = {}
        self._acknowledged: dict[str, None] = {}
        self._names: list[str] = []
        self._head = 0
        self._writers = self._lives = 0

    def kill_once(self) -> None:
        random = self._random
        victims: list[Victim] = []
        for _ in range(random.choice((1, 1, 1, 2))):
            self._writers += 1
            victims.append(Victim(_live, self._path, str(self._writers), random.randrange(1 << 30)))
        # Some are killed during open, most in the middle of their work.
        awaited = random.choice((0, *range(10)))
        victims[0].wait_for(awaited)
        time.sleep(random.random() ** 2 * 0.001)
        for victim in victims:
            self._take_in(victim.kill())
        self._lives += 1
        self._tally.kills += 1
        self._tally.awaited += awaited
        try:
            self._check()
        except CerataError as error:
            self._problem(f"the file does not open: {error!r}")

    def _problem(self, sentence: str) -> None:
        self._tally.problems.append(f"kill {self._tally.kills}: {sentence}")

    def _take_in(self, lines: list[str]) -> None:
        act = "start"
        batch = ""
        for line in lines:
            mark, *words = line.split(" ")
            if mark == "X":
                self._problem(f"a writer failed: {line}")
            elif mark == "?":
                act = words[0]
                batch = words[1] if len(words) > 1 else ""
                if batch:
                    self._issued[batch] = int(words[2])
            else:
                if batch:
                    self._acknowledged[batch] = None
                act = "between"
        self._tally.during[act] += 1

    def _check(self) -> None:
        if not os.path.exists(self._path):
            if self._acknowledged:
                self._problem("acknowledged batches are lost: the file does not exist")
            return
        with open_log(self._path, ring_bytes=RING_SIZE) as log:
            report = log.report
            if not report.alone or report.bad_pages or report.rebuilt_toc:
                self._problem(f"the file needed repair: {report}")
            whole = self._lives % WHOLE == 0
            batches = batches_of(list(log.read(1 if whole else self._head + 1)))
            if whole and verify_log(log).problems:
                self._problem(f"verify: {verify_log(log).problems}")
            self._head = log.head.seq
        if report.cut_bytes:
            kind = "a tail cut"
        elif report.adopted_footer:
            kind = "a flip finished"
        else:
            kind = "a tail sealed" if report.sealed_events else "nothing to do"
        self._tally.reports[kind] += 1
        self._compare(batches, whole=whole)

    def _compare(self, batches: list[tuple[str, int, bool]], *, whole: bool) -> None:
        """Check that old batches stay, that new batches were issued, and that none is lost."""
        names = [name for name, _, _ in batches]
        if whole and names[: len(self._names)] != self._names:
            self._problem("batches that were read before have changed")
        new = names[len(self._names) :] if whole else names
        for name, count, is_whole in batches[-len(new) :] if new else ():
            if not is_whole or self._issued.get(name) != count:
                self._problem(f"batch {name} was never issued in this form")
        if len(set(new)) != len(new):
            self._problem("a batch appears twice")
        lost = self._acknowledged.keys() - set(new)
        if lost:
            self._problem(f"acknowledged batches are lost: {sorted(lost)}")
        self._tally.acknowledged += len(self._acknowledged)
        self._tally.unacknowledged += len(new) - len(self._acknowledged)
        self._names += new
        self._acknowledged.clear()
        self._issued.clear()
