"""The wait of a follower in another process, and its cost while nothing happens.

``python -m benchmarks.follow_bench`` (``--tiny`` in CI, ``--polled`` without the watch of the
system). A process follows the file and notes when it gets each event. This process writes durable
events at random times, then nothing for some seconds, then as fast as possible in turns with and
without the follower.

The first line has the delays from the end of the write, its acknowledgement, to the delivery; 0 if
the event came before. The second line has the share of a core that the idle follower used, the
third the writes a second beside a follower.

Goals: a delay of at most 20 ms for 99 of 100 events, and under 1 % of a core while idle.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np

import cerata
from cerata.engine.disk.storage import OsStorage

from .append_bench import machine

_GAP_SECONDS = 0.02
"""The mean time between two writes."""


class UnwatchedStorage(OsStorage):
    """The files of the system, without reports of their changes."""

    def watch(self, path: str) -> None:
        return None


@dataclass(frozen=True)
class Arrival:
    """An event at a follower: the monotonic clock, and the processor time of the process."""

    seq: int
    seconds: float
    processor: float


class Follower:
    """A process that follows a file until an event of the kind "end"."""

    def __init__(self, path: Path, *, polled: bool) -> None:
        command = [sys.executable, "-m", "benchmarks.follow_bench", "--follow", str(path)]
        if polled:
            command.append("--polled")
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self._lines = self._process.stdout
        assert self._lines.readline() == "ready\n"

    def arrivals(self) -> list[Arrival]:
        """Return the events, after the end."""
        arrivals = [Arrival(**json.loads(line)) for line in self._lines]
        assert self._process.wait() == 0
        return arrivals


def follow(path: str, *, polled: bool) -> None:
    """Follow a file, and print each arrival at the end."""
    environment = cerata.Environment(storage=UnwatchedStorage()) if polled else None
    arrivals: list[Arrival] = []
    with (
        cerata.open(path, mode="r", environment=environment) as store,
        store.stream.follow() as events,
    ):
        print("ready", flush=True)
        for event in events:
            arrivals.append(Arrival(event.seq, time.monotonic(), time.process_time()))
            if isinstance(event.body, cerata.events.PutFrame) and event.body.kind == "end":
                break
    for arrival in arrivals:
        print(json.dumps(vars(arrival)))


def delays(path: Path, events: int, idle_seconds: float, *, polled: bool) -> str:
    """Write events and pause; return the delays of the follower, and its cost in the pause."""
    random = Random(7)
    written: list[float] = []
    with cerata.open(path) as store:
        follower = Follower(path, polled=polled)
        for number in range(events):
            time.sleep(random.expovariate(1 / _GAP_SECONDS))
            store.put_frame(f"note {number} on wax")
            written.append(time.monotonic())
        time.sleep(idle_seconds)
        store.put_frame("the last note", kind="end")
    arrivals = follower.arrivals()
    assert [arrival.seq for arrival in arrivals] == list(range(1, events + 2))
    waits = 1e3 * np.array(
        [
            max(0.0, arrival.seconds - seconds)
            for arrival, seconds in zip(arrivals, written, strict=False)
        ]
    )
    last, end = arrivals[-2:]
    share = (end.processor - last.processor) / (end.seconds - last.seconds)
    p50, p99 = np.percentile(waits, [50, 99])
    return (
        f"delay      {p50:.2f} / {p99:.2f} / {waits.max():.2f} ms (50 % / 99 % / worst) "
        f"of {events:,} events, each delivered once\n"
        f"idle       {100 * share:.3f} % of a core for {idle_seconds:g} s"
    )


def rates(folder: Path, seconds: float, rounds: int, *, polled: bool) -> str:
    """Return the writes a second with a follower, and their ratio to those without one."""
    alone: list[float] = []
    followed: list[float] = []
    for number in range(2 * rounds):
        path = folder / f"rate{number}.cera"
        with cerata.open(path) as store:
            follower = Follower(path, polled=polled) if number % 2 else None
            started, count = time.monotonic(), 0
            while time.monotonic() < started + seconds:
                store.put_frame(f"note {count} on wax")
                count += 1
            (alone if follower is None else followed).append(count / seconds)
            store.put_frame("the last note", kind="end")
        if follower is not None:
            assert len(follower.arrivals()) == count + 1
    ratio = statistics.median(one / two for one, two in zip(followed, alone, strict=True))
    return f"writes     {statistics.median(followed):,.0f} a second, {ratio:.2f} x those without"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tiny", action="store_true", help="a few seconds")
    parser.add_argument("--polled", action="store_true", help="without the watch of the system")
    parser.add_argument("--follow", metavar="PATH", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.follow is not None:
        follow(options.follow, polled=options.polled)
        return
    events, idle, seconds, rounds = (30, 1.0, 0.2, 1) if options.tiny else (1_000, 20.0, 2.0, 5)
    print(machine())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        print(delays(folder / "delays.cera", events, idle, polled=options.polled))
        print(rates(folder, seconds, rounds, polled=options.polled))


if __name__ == "__main__":
    main()
