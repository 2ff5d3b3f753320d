"""Appends and opening, compared with the disk alone.

``python -m benchmarks.append_bench`` (``--tiny`` in CI) measures

- one durable append, beside a bare pwrite and fdatasync of the same bytes into preallocated,
  written space; the two alternate on one disk, so that both meet the same conditions;
- a batch of 500 small events;
- opening a log of 1,000,000 events for reading, without folding.

Goals: at most 60 us more than the disk, at least 60,000 events a second, under 5 ms.
"""

import argparse
import hashlib
import os
import platform
import statistics
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

from cerata.engine.disk.environment import Environment
from cerata.engine.events import Draft, PutFrame
from cerata.engine.open import open_log

SMALL = "We chose HNSW: recall under 5 ms on a million vectors, and it takes updates."


def frame(number: int) -> Draft:
    return Draft(PutFrame(text=f"{number} {SMALL}", tags=("decision",)))


def machine() -> str:
    names = ("msgspec", "blake3", "zstandard", "numpy")
    versions = ", ".join(f"{name} {version(name)}" for name in names)
    load = os.getloadavg()[0]
    return (
        f"{platform.machine()}, {os.cpu_count()} CPUs, load {load:.1f}, {platform.platform()}\n"
        f"Python {platform.python_version()}, {versions}"
    )


def options_of(text: str | None) -> argparse.Namespace:
    """Return the options of a benchmark of the log; ``text`` is the help."""
    parser = argparse.ArgumentParser(
        description=text, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--tiny", action="store_true", help="a few seconds, for CI")
    parser.add_argument("--folder", help="a folder on the disk to measure")
    return parser.parse_args()


def microseconds(values: list[float]) -> str:
    ordered = sorted(values)
    low, high = ordered[len(ordered) // 10], ordered[len(ordered) * 9 // 10]
    return f"median {statistics.median(values):8.1f} us   (10 %: {low:.1f}, 90 %: {high:.1f})"


def single_appends(folder: Path, count: int) -> tuple[float, float]:
    """Print the times of an append and of the bare write and sync.

    Returns the additional processor time of the append, and the processor time of the same append
    in memory right after a sync of another file, both in us. After a sync the caches are cold, the
    colder the more other programs run. Processor time leaves out waits for a busy disk.
    """
    peer = os.open(folder / "peer", os.O_RDWR | os.O_CREAT, 0o600)
    size = 512 << 10
    os.pwrite(peer, bytes(size), 0)
    os.fsync(peer)
    appends: list[float] = []
    bare: list[float] = []
    used: list[float] = []
    bare_used: list[float] = []
    without_disk: list[float] = []
    clock, worked = time.perf_counter, time.thread_time
    environment = Environment.in_memory()
    with (
        open_log(str(folder / "single.cera")) as log,
        open_log("a", environment=environment) as memory,
    ):
        at = 0
        for number in range(count):
            draft = [frame(number)]
            before = log._state.cursor.offset  # pyright: ignore[reportPrivateUsage]
            started, begun = clock(), worked()
            log.append(draft)
            appends.append(1e6 * (clock() - started))
            used.append(1e6 * (worked() - begun))
            # The same bytes: the record and the empty sector after it.
            record = log.file.file.read_at(before, 1024)
            if at + len(record) > size:
                at = 0
            started, begun = clock(), worked()
            os.pwrite(peer, record, at)
            os.fdatasync(peer)
            bare.append(1e6 * (clock() - started))
            bare_used.append(1e6 * (worked() - begun))
            begun = worked()
            memory.append(draft)
            without_disk.append(1e6 * (worked() - begun))
            os.fdatasync(peer)
            at += 512
    os.close(peer)
    over = [append - write for append, write in zip(appends, bare, strict=True)]
    difference = statistics.median(appends) - statistics.median(bare)
    extra = statistics.median(used) - statistics.median(bare_used)
    floor = statistics.median(without_disk)
    sys.stdout.write(
        f"durable append      {microseconds(appends)}\n"
        f"pwrite + fdatasync  {microseconds(bare)}\n"
        f"difference          {difference:.1f} us of medians, "
        f"{statistics.median(over):.1f} us paired, "
        f"ratio {statistics.median(appends) / statistics.median(bare):.2f}\n"
        f"processor time      {extra:.1f} us more than the bare write and sync, "
        f"and {floor:.1f} us without a disk right after a sync\n"
    )
    return extra, floor


def own_cost(count: int) -> None:
    """Print the time of repeated appends in memory, in us."""
    times: list[float] = []
    with open_log("a", environment=Environment.in_memory()) as log:
        for number in range(count):
            draft = [frame(number)]
            started = time.perf_counter()
            log.append(draft)
            times.append(1e6 * (time.perf_counter() - started))
    sys.stdout.write(f"append in memory    {microseconds(times)}\n")


def batches(folder: Path, count: int) -> float:
    """Print and return the events per second in batches of 500, durable and sealed."""
    with open_log(str(folder / "batches.cera")) as log:
        drafts_of = [
            [frame(500 * batch + number) for number in range(500)] for batch in range(count)
        ]
        started = time.perf_counter()
        for drafts in drafts_of:
            log.append(drafts)
        elapsed = time.perf_counter() - started
        rate = 500 * count / elapsed
        sys.stdout.write(
            f"batches of 500      {rate:,.0f} events/s durable, sealing included "
            f"({log.page.sealed_seq:,} sealed)\n"
        )
    return rate


def opening(folder: Path, events: int, rounds: int) -> float:
    """Print and return the median time to open a log for reading, in milliseconds."""
    path = str(folder / "large.cera")
    with open_log(path) as log:
        for first in range(0, events, 10_000):
            log.append([frame(number) for number in range(first, min(events, first + 10_000))])
        chain = log.head.chain
    times: list[float] = []
    for _ in range(rounds):
        started = time.perf_counter()
        log = open_log(path, mode="r")
        times.append(1e3 * (time.perf_counter() - started))
        assert log.head.seq == events
        log.close()
    size = os.stat(path).st_size
    sys.stdout.write(
        f'open, mode="r"      median {statistics.median(times):.2f} ms, worst {max(times):.2f} ms '
        f"({events:,} events, {size / 1e6:.0f} MB)\n"
        f"result              {hashlib.sha256(chain).hexdigest()[:16]} (random salts)\n"
    )
    return statistics.median(times)


def main() -> None:
    """Run all measurements and print."""
    options = options_of(__doc__)
    tiny = options.tiny
    sys.stdout.write(f'{machine()}\nsync="commit"\n')
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        sys.stdout.write(f"on {name}\n")
        own_cost(300 if tiny else 5000)
        single_appends(folder, 100 if tiny else 2000)
        batches(folder, 10 if tiny else 200)
        opening(folder, 20_000 if tiny else 1_000_000, 5 if tiny else 50)


if __name__ == "__main__":
    main()
