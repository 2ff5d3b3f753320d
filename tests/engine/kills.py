"""Real kills of real writers: what was acknowledged is there, and nothing that was not said.

A child process puts frames, batches and large frames, supersedes, seals, saves the projections and
reopens its store, telling a pipe what it is about to do and what was acknowledged; the parent
kills it at a random instant, opens the file and compares.
``python -m tests.engine.kills 2000`` prints the figures.
"""

import os
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import cerata
from cerata.engine.events import PutFrame, SupersedeFrame
from cerata.engine.verify import verify_log

from ..crash.sweeps.kills import Victim
from ..inside import log_of

RING = 64 << 10
PAGE = 25
"""Kills of one file before the next is begun: long enough to wrap the ring and seal often."""

AWAITED_MAX = 12
"""Acknowledgements that the parent waits for before a kill, at most."""

WEIGHTS = {
    "append": 45,
    "batch": 20,
    "large": 5,
    "supersede": 8,
    "seal": 7,
    "checkpoint": 10,
    "reopen": 5,
}


@dataclass
class Tally:
    """What was done and seen."""

    kills: int = 0
    awaited: int = 0
    """Acknowledgements that were waited for before killing: no fewer can have been given."""
    acknowledged: int = 0
    unacknowledged: int = 0
    events: int = 0
    sealed: int = 0
    cut: int = 0
    adopted: int = 0
    replayed: int = 0
    """Reopenings after which every projection was folded again from the log, and compared."""
    during: dict[str, int] = field(default_factory=dict[str, int])

    def __str__(self) -> str:
        during = ", ".join(f"{name} {count}" for name, count in sorted(self.during.items()))
        return (
            f"{self.kills:,} kills ({during}); {self.acknowledged:,} batches acknowledged, 0 lost; "
            f"{self.unacknowledged:,} whole batches more, 0 invented; {self.events:,} events; "
            f"{self.kills:,} reopened without repair ({self.sealed:,} sealed a tail, "
            f"{self.cut:,} cut one, {self.adopted:,} finished a flip); "
            f"projections equal to a replay after {self.replayed:,} of them"
        )


def write_until_killed(path: str, pipe: int, name: str, random: Random) -> None:
    """Do one thing after another, and say so: ``? what``, then ``! first last`` when it held."""

    def say(what: str) -> None:
        os.write(pipe, what.encode() + b"\n")

    def opened() -> cerata.Store:
        say("? open")
        store = cerata.open(
            path,
            options=cerata.OpenOptions(ring_bytes=RING, sync=random.choice(["commit", "always"])),
        )
        say("! 0 0")
        return store

    store = opened()
    current: list[int] = []
    for number in range(1, sys.maxsize):
        (kind,) = random.choices(list(WEIGHTS), list(WEIGHTS.values()))
        operation = f"{name}.{number}"
        text = f"{operation} 0 {random.randbytes(random.randrange(450)).hex()}"
        if kind == "seal":
            say("? seal")
            log_of(store).seal()
            say("! 0 0")
        elif kind == "checkpoint":
            say("? checkpoint")
            store.checkpoint()
            say("! 0 0")
        elif kind == "reopen":
            say("? close")
            store.close()
            say("! 0 0")
            store = opened()
        elif kind == "supersede" and current:
            say(f"? supersede {operation} 2")
            receipt = store.supersede(current.pop(random.randrange(len(current))), text)
            say(f"! {receipt.seqs[0]} {receipt.seqs[-1]}")
        elif kind == "batch":
            count = random.randrange(2, 30)
            say(f"? batch {operation} {count}")
            texts = [f"{operation} {index} {text[:150]}" for index in range(count)]
            receipt = store.put_frames(texts)
            say(f"! {receipt.seqs[0]} {receipt.seqs[-1]}")
            current += receipt.ids
        else:
            if kind == "large":
                text += random.randbytes(random.randrange(30_000, 60_000)).hex()
            say(f"? {kind} {operation} 1")
            receipt = store.put_frame(text)
            say(f"! {receipt.seqs[0]} {receipt.seqs[-1]}")
            current.append(receipt.id)


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
        victims: list[Victim] = []
        for _ in range(random.choice([1, 1, 2])):
            self._writers += 1
            victims.append(
                Victim(
                    write_until_killed, self._path, str(self._writers), random.randrange(1 << 30)
                )
            )
        # Some are killed while they open, most in the middle of their work.
        awaited = random.choice([0, *range(AWAITED_MAX + 1)])
        victims[0].wait_for(awaited, rb"\n! [1-9]")
        time.sleep(random.random() ** 2 * 0.01)
        acknowledged: dict[str, tuple[int, int]] = {}
        failures: list[str] = []
        for victim in victims:
            acknowledged.update(self._heard(victim.kill(), failures))
        self._tally.kills += 1
        self._tally.awaited += awaited
        try:
            self._check(acknowledged)
        except cerata.CerataError as error:
            raise AssertionError(f"it does not open as it should: {error}") from error
        assert not failures, f"a writer failed: {failures}"

    def _heard(self, lines: list[str], failures: list[str]) -> dict[str, tuple[int, int]]:
        acknowledged: dict[str, tuple[int, int]] = {}
        doing, operation = "start", ""
        for line in lines:
            mark, *said = line.split(" ")
            if mark == "X":
                failures.append(line)
            elif mark == "?":
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
        random = self._random
        if random.random() < 0.3:
            with cerata.open(self._path, mode="r") as store:
                self._compare(store, acknowledged)
        with cerata.open(self._path, options=cerata.OpenOptions(ring_bytes=RING)) as store:
            report = store.report
            assert report.alone
            assert not report.bad_pages
            assert not report.rebuilt_toc
            assert os.listdir(os.path.dirname(self._path)) == ["a.cera"]
            texts = self._compare(store, acknowledged)
            if random.random() < 0.1:
                assert verify_log(log_of(store)).problems == ()
            if random.random() < 0.2:
                # From the checkpoint that was left, and from the log alone.
                assert store.stream.digests() == store.stream.digests(replay=True)
                self._tally.replayed += 1
        tally = self._tally
        new = {text.split(" ", 1)[0] for text in texts[len(self._seen) :]}
        tally.acknowledged += len(acknowledged)
        tally.unacknowledged += len(new - acknowledged.keys())
        tally.events += len(texts) - len(self._seen)
        tally.sealed += report.sealed_events > 0
        tally.cut += report.cut_bytes > 0
        tally.adopted += report.adopted_footer
        self._seen = texts

    def _compare(self, store: cerata.Store, acknowledged: dict[str, tuple[int, int]]) -> list[str]:
        """Hold the file against what was said: O1 durability, O2 prefix, O3 whole batches."""
        texts: list[str] = []
        for event in store.log():
            if isinstance(event.body, SupersedeFrame):
                operation = texts[-1].split(" ", 1)[0]
                text = f"{operation} 1 instead of {event.body.old}"
            else:
                assert isinstance(event.body, PutFrame)
                text = event.body.text or ""
            operation, index = text.split(" ")[:2]
            assert self._issued[operation] == event.header.count, f"{operation} was not issued so"
            assert int(index) == event.header.index, f"{operation} is not whole"
            texts.append(text)
        assert texts[: len(self._seen)] == self._seen, "what was there has changed"
        operations = [text.split(" ", 1)[0] for text in texts]
        for operation, (first, last) in acknowledged.items():
            there = operations[first - 1 : last] == [operation] * (last - first + 1)
            assert there, f"{operation} was acknowledged and is lost"
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
