"""Real kills of real writers: what was acknowledged is there, and nothing that was not said.

A child process appends, seals, saves projections and reopens, telling a pipe what it is about to
do and what was acknowledged; the parent kills it at a random instant, opens the file and
compares. ``python -m tests.engine.kills 2000`` prints the figures.
"""

import os
import select
import signal
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from cerata.engine import Draft, Log, PutFrame
from cerata.engine.file import Flip
from cerata.engine.format.toc import Toc
from cerata.engine.verify import verify_log

from .words import one_chunk

RING = 64 << 10
PAGE = 25
"""Kills of one file before the next is begun: long enough to wrap the ring and seal often."""


@dataclass
class Tally:
    """What was done and seen."""

    kills: int = 0
    acknowledged: int = 0
    unacknowledged: int = 0
    events: int = 0
    sealed: int = 0
    cut: int = 0
    adopted: int = 0
    during: dict[str, int] = field(default_factory=dict[str, int])

    def __str__(self) -> str:
        during = ", ".join(f"{name} {count}" for name, count in sorted(self.during.items()))
        return (
            f"{self.kills:,} kills ({during}); {self.acknowledged:,} batches acknowledged, 0 lost; "
            f"{self.unacknowledged:,} whole batches more, 0 invented; {self.events:,} events; "
            f"{self.kills:,} reopened without repair ({self.sealed:,} sealed a tail, "
            f"{self.cut:,} cut one, {self.adopted:,} finished a flip)"
        )


def saved(flip: Flip, toc: Toc) -> dict[str, dict[str, object]]:
    """Return a projection's entry with one chunk."""
    return {"p": one_chunk(flip, toc.sealed_seq, b"c" * 999)}


def write_until_killed(path: str, pipe: int, name: str, seed: int) -> None:
    """Do one thing after another, and say so: ``? what``, then ``! first last`` when it held."""
    random = Random(seed)

    def say(what: str) -> None:
        os.write(pipe, what.encode() + b"\n")

    def opened() -> Log:
        say("? open")
        log = Log.open(path, ring_bytes=RING, sync=random.choice(["commit", "always"]))
        say("! 0 0")
        return log

    log = opened()
    number = 0
    while True:
        kind = random.choices(
            ["append", "batch", "large", "seal", "projections", "reopen"], [50, 20, 5, 8, 8, 4]
        )[0]
        number += 1
        if kind == "seal":
            say("? seal")
            log.seal()
            say("! 0 0")
        elif kind == "projections":
            say("? projections")
            log.publish_projections(saved)
            say("! 0 0")
        elif kind == "reopen":
            log.close()
            log = opened()
        else:
            count = random.randrange(2, 30) if kind == "batch" else 1
            least, most = {"append": (0, 450), "batch": (0, 150), "large": (30_000, 60_000)}[kind]
            operation = f"{name}.{number}"
            text = random.randbytes(random.randrange(least, most)).hex()
            say(f"? {kind} {operation} {count}")
            texts = [f"{operation} {index} {text}" for index in range(count)]
            done = log.append([Draft(PutFrame(text=text)) for text in texts])
            say(f"! {done.first_seq} {done.last_seq}")


def start(path: str, name: str, seed: int) -> tuple[int, int]:
    """Fork a writer; returns its process id and the pipe's reading end."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reading)
            write_until_killed(path, writing, name, seed)
        except BaseException as error:  # noqa: BLE001
            # Whatever it was, the parent hears of it, and the child ends here.
            os.write(writing, f"X {type(error).__name__}: {error}\n".encode())
        finally:
            os._exit(1)
    os.close(writing)
    return child, reading


def read_all(pipe: int) -> list[str]:
    with os.fdopen(pipe, "rb") as held:
        return held.read().decode().splitlines()


class Killer:
    """Kills writers of one file and checks it each time against all that it ever said."""

    def __init__(self, folder: str, random: Random, tally: Tally) -> None:
        self._path = os.path.join(folder, "a.cera")
        self._random = random
        self._tally = tally
        self._issued: dict[str, int] = {}
        self._seen: list[str] = []
        self._writers = 0

    def kill_once(self) -> None:
        random = self._random
        writers: list[tuple[int, int]] = []
        for _ in range(random.choice([1, 1, 2])):
            self._writers += 1
            writers.append(start(self._path, str(self._writers), random.randrange(1 << 30)))
        if random.random() < 0.8:
            # Most kills come while it works, the others while it opens.
            select.select([writers[0][1]], [], [], 5)
        time.sleep(random.random() ** 2 * 0.03)
        for child, _ in writers:
            os.kill(child, signal.SIGKILL)
        for child, _ in writers:
            os.waitpid(child, 0)
        acknowledged: dict[str, tuple[int, int]] = {}
        for _, pipe in writers:
            acknowledged.update(self._heard(read_all(pipe)))
        self._tally.kills += 1
        self._check(acknowledged)

    def _heard(self, lines: list[str]) -> dict[str, tuple[int, int]]:
        acknowledged: dict[str, tuple[int, int]] = {}
        doing, operation = "start", ""
        for line in lines:
            mark, *said = line.split(" ")
            if mark == "X":
                raise AssertionError(f"the writer failed: {line}")
            if mark == "?":
                doing, operation = said[0], said[1] if len(said) > 1 else ""
                if operation:
                    self._issued[operation] = int(said[2])
            else:
                if operation:
                    acknowledged[operation] = int(said[0]), int(said[1])
                doing = "between"
        self._tally.during[doing] = self._tally.during.get(doing, 0) + 1
        return acknowledged

    def _check(self, acknowledged: dict[str, tuple[int, int]]) -> None:
        if not os.path.exists(self._path):
            assert not acknowledged
            assert not self._seen
            return
        if self._random.random() < 0.3:
            with Log.open(self._path, mode="r") as log:
                self._compare(log, acknowledged)
        with Log.open(self._path, ring_bytes=RING) as log:
            report = log.report
            assert report.alone
            assert not report.bad_pages
            assert not report.rebuilt_toc
            assert os.listdir(os.path.dirname(self._path)) == ["a.cera"]
            texts = self._compare(log, acknowledged)
            if self._random.random() < 0.1:
                assert verify_log(log).problems == ()
        tally = self._tally
        new = {text.split(" ", 1)[0] for text in texts[len(self._seen) :]}
        tally.acknowledged += len(acknowledged)
        tally.unacknowledged += len(new - acknowledged.keys())
        tally.events += len(texts) - len(self._seen)
        tally.sealed += report.sealed_events > 0
        tally.cut += report.cut_bytes > 0
        tally.adopted += report.adopted_footer
        self._seen = texts

    def _compare(self, log: Log, acknowledged: dict[str, tuple[int, int]]) -> list[str]:
        """Hold the file against what was said: O1 durability, O2 prefix, O3 whole batches."""
        texts: list[str] = []
        for event in log.read():
            assert isinstance(event.body, PutFrame)
            text = event.body.text or ""
            operation, index = text.split(" ")[:2]
            assert self._issued[operation] == event.header.count, f"{operation} was not issued so"
            assert int(index) == event.header.index, f"{operation} is not whole"
            texts.append(text)
        assert texts[: len(self._seen)] == self._seen, "what was there has changed"
        operations = [text.split(" ", 1)[0] for text in texts]
        for operation, (first, last) in acknowledged.items():
            assert operations[first - 1 : last] == [operation] * (last - first + 1), operation
        counts = {operation: operations.count(operation) for operation in set(operations)}
        assert all(self._issued[operation] == count for operation, count in counts.items())
        return texts


def kill(count: int, seed: int, tally: Tally | None = None) -> Tally:
    """Kill writers ``count`` times and return what was seen; raises where a promise is broken."""
    random = Random(seed)
    tally = tally or Tally()
    while tally.kills < count:
        with tempfile.TemporaryDirectory() as folder:
            killer = Killer(folder, random, tally)
            for _ in range(min(PAGE, count - tally.kills)):
                killer.kill_once()
    return tally


def main() -> None:
    """Run the loop from a command line: how many kills, and the seed."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 20240229
    started = time.monotonic()
    tally = Tally()
    try:
        kill(count, seed, tally)
    finally:
        elapsed = time.monotonic() - started
        sys.stdout.write(f"{tally}\nseed {seed}, {elapsed:.0f} s, {Path(tempfile.gettempdir())}\n")


if __name__ == "__main__":
    main()
