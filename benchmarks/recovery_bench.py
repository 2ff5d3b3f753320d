"""Recovery after a kill, and verification of a whole file, each over its floor.

``python -m benchmarks.recovery_bench`` (``--tiny`` in CI) measures, with a file of 1,000,000
events:

- recovery: a forked writer fills half of the ring, or the whole ring, and is killed. The time is
  that of the next opening for writing, with sealing and syncs. The floor is reading the used bytes
  of the ring and hashing each sector once;
- offline verification of the whole log. The floor is decompressing every block and hashing every
  payload once.

Goals: at most 50 ms and 15 us for each KiB of the tail; at least 150,000 events a second. Times are
clock time and processor time; only clock time includes other programs.
"""

import os
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import NamedTuple

import numpy as np
import zstandard
from blake3 import blake3

from cerata.engine.format.extent import EXTENT_HEADER_SIZE
from cerata.engine.limits import RING_SIZE_GROWN, SECTOR_SIZE
from cerata.engine.log import Log
from cerata.engine.open import open_log
from cerata.engine.segments.reader import Snapshot
from cerata.engine.verify import verify_log
from tests.crash.sweeps.kills import Victim

from .append_bench import frame, machine, options_of


class Spent(NamedTuple):
    """The duration of a call in seconds: clock time, and processor time of this process."""

    clock: float
    processor: float


class Recovery(NamedTuple):
    """One opening after a kill, and its floor: reading and hashing the same bytes."""

    tail_bytes: int
    sealed_events: int
    spent: Spent
    floor: Spent

    @property
    def allowed(self) -> float:
        """The goal, in seconds."""
        return 50e-3 + 15e-6 * self.tail_bytes / 1024


def spent(act: Callable[[], object]) -> Spent:
    """Return the duration of a call."""
    started, begun = time.perf_counter(), time.process_time()
    act()
    return Spent(time.perf_counter() - started, time.process_time() - begun)


def build(path: str, events: int) -> None:
    """Write and close a log, in batches of 500 events."""
    with open_log(path, ring_bytes=RING_SIZE_GROWN) as log:
        for first in range(0, events, 500):
            log.append([frame(number) for number in range(first, min(events, first + 500))])


def _fill(path: str, pipe: int, share: str, dice: Random) -> None:
    """Append single events until a share of the ring is used, and wait for the kill."""
    log = open_log(path)
    log.seal()
    number = dice.randrange(1 << 20)
    while _used(log) + 4 * SECTOR_SIZE < float(share) * log.page.ring_size:
        log.append([frame(number)])
    os.write(pipe, b"!\n")
    signal.pause()


def _used(log: Log) -> int:
    return log._state.cursor.used  # pyright: ignore[reportPrivateUsage]


def recover(path: str, share: float, seed: int) -> Recovery:
    """Kill a writer that has used a share of the ring, and open the file."""
    victim = Victim(_fill, path, str(share), seed)
    victim.wait_for(1)
    victim.kill()
    with open_log(path, mode="r") as log:
        tail, start, stop = _used(log), log.page.ring_offset, log.page.ring_end
    floor = spent(lambda: _hashed_sectors(path, start, min(stop, start + tail)))
    logs: list[Log] = []
    took = spent(lambda: logs.append(open_log(path)))
    sealed = logs[0].report.sealed_events
    logs[0].close()
    return Recovery(tail, sealed, took, floor)


def _hashed_sectors(path: str, start: int, stop: int) -> None:
    with Path(path).open("rb", buffering=0) as file:
        for offset in range(start, stop, SECTOR_SIZE):
            blake3(os.pread(file.fileno(), SECTOR_SIZE, offset)).digest()


def recoveries(path: str, share: float, rounds: int) -> Recovery:
    """Print the recoveries after kills at a share of the ring; return the median recovery."""
    by_time = sorted(
        (recover(path, share, seed) for seed in range(rounds)),
        key=lambda recovery: recovery.spent.clock,
    )
    middle = by_time[len(by_time) // 2]
    worst = by_time[-1]
    sys.stdout.write(
        f"recovery, ring {100 * share:3.0f} %  {1e3 * middle.spent.clock:.1f} ms in the middle, "
        f"{1e3 * worst.spent.clock:.1f} at worst; {1e3 * middle.spent.processor:.1f} ms of "
        f"processor, {middle.spent.processor / middle.floor.processor:.0f} times its floor "
        f"({rounds} kills; {middle.tail_bytes / 1024:.0f} KiB, {middle.sealed_events:,} events "
        f"sealed; goal {1e3 * middle.allowed:.1f} ms)\n"
    )
    return middle


def verifying(path: str, rounds: int) -> tuple[float, float]:
    """Print the speed of verification; return its events per processor second, and the floor's."""
    with open_log(path, mode="r") as log:
        events = log.head.seq

        def verify() -> None:
            result = verify_log(log)
            assert result.ok
            assert result.events == events

        took = [spent(verify) for _ in range(rounds)]
        floor = [spent(lambda: _unpacked(log)) for _ in range(rounds)]
        chain = log.head.chain
    rate = events / min(duration.processor for duration in took)
    floor_rate = events / min(duration.processor for duration in floor)
    clock = events / statistics.median(duration.clock for duration in took)
    size = os.stat(path).st_size
    sys.stdout.write(
        f"offline verify      {rate:,.0f} events/s of processor, {clock:,.0f} by the clock "
        f"({events:,} events, {size / 1e6:.0f} MB); floor {floor_rate:,.0f}, ratio "
        f"{floor_rate / rate:.1f}\n"
        f"chain               {chain.hex()[:16]} (random salts)\n"
    )
    return rate, floor_rate


def _unpacked(log: Log) -> None:
    """Decompress every block and hash every payload once: the floor of any verification."""
    page = log.page
    snapshot = Snapshot(log.reader, page, [], 0, page.sealed_seq, 0)
    decompress = zstandard.ZstdDecompressor().decompress
    for ref in log.reader.segment_refs(snapshot):
        index = log.file.segment(ref.offset, ref.length).index
        sizes = iter(np.frombuffer(index.payload_sizes, "<u4").tolist())
        for row in index.blocks:
            place = ref.offset + EXTENT_HEADER_SIZE + row.offset
            raw = decompress(log.file.file.read_at(place, row.stored_size), row.raw_size)
            at = 0
            while at < len(raw):
                size = next(sizes)
                blake3(raw[at : at + size]).digest()
                at += size


def main() -> None:
    """Run both measurements and print."""
    options = options_of(__doc__)
    tiny = options.tiny
    sys.stdout.write(f'{machine()}\nsync="commit"\n')
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        sys.stdout.write(f"on {name}, ring {RING_SIZE_GROWN >> 10} KiB\n")
        path = str(Path(name) / "a.cera")
        build(path, 20_000 if tiny else 1_000_000)
        for share in (0.5, 1.0):
            recoveries(path, share, 3 if tiny else 25)
        verifying(path, 1 if tiny else 3)


if __name__ == "__main__":
    main()
