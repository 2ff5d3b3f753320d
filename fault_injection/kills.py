"""Real processes killed at real instants, many a second: nothing acknowledged is lost.

A child is forked, without importing anything anew; it opens the file and appends, seals,
checkpoints, closes and reopens, telling a pipe what it is about to do and what was acknowledged.
The parent kills it, mostly in the middle, reopens the file and compares. The file lies in memory,
where a sync costs nothing: a kill loses no page that was written, wherever they are kept.
"""

import gc
import os
import re
import signal
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from random import Random

from cerata.engine.errors import CerataError
from cerata.engine.log import Log
from cerata.engine.verify import verify_log

from .subject import batches_of, draft
from .sweep_io import scratch
from .sweep_stories import publish
from .workloads import RING_SIZE

LIVES = 100
"""Kills of one file before the next is begun: its ring is wrapped and sealed many times."""

WHOLE = 50
"""After so many kills all of the file is read and verified, else what is new in it."""

_ACTS = ("small",) * 8 + ("batch", "batch", "long", "quarter", "large")
_OTHERS = ("seal", "checkpoint", "reopen")


@dataclass(slots=True)
class KillTally:
    """What was done and seen. ``problems`` are sentences; empty means that nothing was lost."""

    kills: int = 0
    awaited: int = 0
    """Acknowledgements that the parents waited for: no fewer can have been given."""
    acknowledged: int = 0
    unacknowledged: int = 0
    """Whole batches that were there though nobody had been told so."""
    during: dict[str, int] = field(default_factory=dict[str, int])
    reports: dict[str, int] = field(default_factory=dict[str, int])
    seconds: float = 0.0
    problems: list[str] = field(default_factory=list[str])

    def add(self, other: "KillTally") -> None:
        """Count what another process saw at the same time."""
        self.kills += other.kills
        self.awaited += other.awaited
        self.acknowledged += other.acknowledged
        self.unacknowledged += other.unacknowledged
        self.seconds = max(self.seconds, other.seconds)
        self.problems += other.problems
        for mine, theirs in ((self.during, other.during), (self.reports, other.reports)):
            for name, count in theirs.items():
                mine[name] = mine.get(name, 0) + count

    def __str__(self) -> str:
        during, reports = (
            ", ".join(f"{name} {count:,}" for name, count in sorted(counts.items()))
            for counts in (self.during, self.reports)
        )
        first = (
            f"{self.kills:,} kills, {self.kills / self.seconds:.0f} a second (during: {during});"
            f" {self.acknowledged:,} batches acknowledged, {self.unacknowledged:,} whole ones more;"
            f" reopenings: {reports}; {len(self.problems)} problems"
        )
        return "\n".join([first, *self.problems])


def kill(count: int, *, seed: int = 0, jobs: int = 1) -> KillTally:
    """Kill writers ``count`` times, in ``jobs`` processes at once."""
    started = time.perf_counter()
    total = KillTally()
    shares = [(count // jobs + (number < count % jobs), seed + number) for number in range(jobs)]
    if jobs == 1:
        total.add(_kill(*shares[0]))
    else:
        with ProcessPoolExecutor(jobs, mp_context=get_context("fork")) as pool:
            for tally in pool.map(_kill, *zip(*shares, strict=True)):
                total.add(tally)
    total.seconds = time.perf_counter() - started
    return total


def _kill(count: int, seed: int) -> KillTally:
    random = Random(seed)
    tally = KillTally()
    # What stands here is the children's too, and a collector that looked at it would copy it.
    gc.collect()
    gc.freeze()
    with scratch() as folder:
        while tally.kills < count and not tally.problems:
            path = Path(folder) / "a.cera"
            killer = _Killer(str(path), random, tally)
            for _ in range(min(LIVES, count - tally.kills)):
                if not tally.problems:
                    killer.kill_once()
            path.unlink(missing_ok=True)
    return tally


class Victim:
    """A forked writer, which does what ``live(path, pipe, name, dice)`` does until it is killed.

    It tells the pipe what it does, in lines; an error of its own is a line that begins with X.
    """

    def __init__(
        self, live: Callable[[str, int, str, Random], None], path: str, name: str, seed: int
    ) -> None:
        self._pipe, writing = os.pipe()
        self._said = b""
        self.process = os.fork()
        if self.process == 0:
            gc.disable()
            try:
                os.close(self._pipe)
                live(path, writing, name, Random(seed))
            except BaseException as error:  # noqa: BLE001 - the parent hears of it
                os.write(writing, f"X {error!r}\n".encode())
            finally:
                os._exit(1)
        os.close(writing)

    def listen(self, count: int, said: bytes = rb"!") -> None:
        """Hear what it says until a pattern came so many times, or it is silent."""
        while len(re.findall(said, self._said)) < count and self._hear():
            pass

    def _hear(self) -> bool:
        heard = os.read(self._pipe, 1 << 16)
        self._said += heard
        return bool(heard)

    def kill(self) -> list[str]:
        """Kill it, and return all that it ever said."""
        os.kill(self.process, signal.SIGKILL)
        os.waitpid(self.process, 0)
        while self._hear():
            pass
        os.close(self._pipe)
        return self._said.decode().splitlines()


def _live(path: str, pipe: int, name: str, random: Random) -> None:
    """Do one thing after another, and say so: ``? what [name count]``, then ``!``."""

    def say(what: str) -> None:
        os.write(pipe, what.encode() + b"\n")

    def opened() -> Log:
        say("? open")
        log = Log.open(path, ring_bytes=RING_SIZE, sync=random.choice(("commit", "always")))
        say("!")
        return log

    log = opened()
    sizes = {"small": 10, "long": 1_600, "batch": 100, "quarter": 14_000, "large": 20_000}
    number = 0
    while True:
        act = random.choice(_ACTS if random.random() < 0.9 else _OTHERS)
        if act == "reopen":
            say("? close")
            log.close()
            say("!")
            log = opened()
        elif act in sizes:
            number += 1
            count = 3 if act == "batch" else 1
            batch = f"{name}.{number}"
            say(f"? {act} {batch} {count}")
            log.append([draft(batch, sizes[act])] * count)
            say("!")
        else:
            say(f"? {act}")
            log.seal() if act == "seal" else publish(log)
            say("!")


class _Killer:
    """Kills writers of one file, and holds it each time against all that they said."""

    def __init__(self, path: str, random: Random, tally: KillTally) -> None:
        self._path = path
        self._random = random
        self._tally = tally
        self._issued: dict[str, int] = {}
        self._acknowledged: dict[str, None] = {}
        self._there: list[str] = []
        self._head = 0
        self._writers = self._lives = 0

    def kill_once(self) -> None:
        random = self._random
        victims: list[Victim] = []
        for _ in range(random.choice((1, 1, 1, 2))):
            self._writers += 1
            victims.append(Victim(_live, self._path, str(self._writers), random.randrange(1 << 30)))
        # Some are killed while they open, most in the middle of their work.
        awaited = random.choice((0, *range(10)))
        victims[0].listen(awaited)
        time.sleep(random.random() ** 2 * 0.001)
        for victim in victims:
            self._heard(victim.kill())
        self._lives += 1
        self._tally.kills += 1
        self._tally.awaited += awaited
        try:
            self._check()
        except CerataError as error:
            self._problem(f"it does not open: {error!r}")

    def _problem(self, what: str) -> None:
        self._tally.problems.append(f"kill {self._tally.kills}: {what}")

    def _heard(self, lines: list[str]) -> None:
        act, batch = "start", ""
        for line in lines:
            mark, *said = line.split(" ")
            if mark == "X":
                self._problem(f"a writer failed: {line}")
            elif mark == "?":
                act, batch = said[0], said[1] if len(said) > 1 else ""
                if batch:
                    self._issued[batch] = int(said[2])
            else:
                if batch:
                    self._acknowledged[batch] = None
                act = "between"
        during = self._tally.during
        during[act] = during.get(act, 0) + 1

    def _check(self) -> None:
        if not os.path.exists(self._path):
            if self._acknowledged:
                self._problem("the file is not there")
            return
        with Log.open(self._path, ring_bytes=RING_SIZE) as log:
            report = log.report
            if not report.alone or report.bad_pages or report.rebuilt_toc:
                self._problem(f"it needed repair: {report}")
            whole = self._lives % WHOLE == 0
            found = batches_of(list(log.read(1 if whole else self._head + 1)))
            if whole and verify_log(log).problems:
                self._problem(f"verify: {verify_log(log).problems}")
            self._head = log.head.seq
        if report.cut_bytes:
            kind = "a tail cut"
        elif report.adopted_footer:
            kind = "a flip finished"
        else:
            kind = "a tail sealed" if report.sealed_events else "nothing to do"
        self._tally.reports[kind] = self._tally.reports.get(kind, 0) + 1
        self._compare(found, whole=whole)

    def _compare(self, found: list[tuple[str, int, bool]], *, whole: bool) -> None:
        """What was there stays; what is new was issued, whole, and holds all acknowledged."""
        names = [name for name, _, _ in found]
        if whole and names[: len(self._there)] != self._there:
            self._problem("what was there has changed")
        new = names[len(self._there) :] if whole else names
        for name, count, is_whole in found[-len(new) :] if new else ():
            if not is_whole or self._issued.get(name) != count:
                self._problem(f"batch {name} was never issued so")
        if len(set(new)) != len(new):
            self._problem("a batch is there twice")
        lost = self._acknowledged.keys() - set(new)
        if lost:
            self._problem(f"acknowledged and lost: {sorted(lost)}")
        self._tally.acknowledged += len(self._acknowledged)
        self._tally.unacknowledged += len(new) - len(self._acknowledged)
        self._there += new
        self._acknowledged.clear()
        self._issued.clear()
