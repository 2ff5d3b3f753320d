"""The cost of a fork as a memory grows: in memory, and in a file beside a plain copy of the file.

``python -m benchmarks.fork_bench`` (``--tiny`` in CI; ``--frames N …`` for other sizes) puts frames
with vectors of 64 numbers in batches of 1,000, and forks at the newest event, in the middle and
near the start. Each line has the least wall time of the rounds; a copy is `shutil.copyfile` and a
sync. Goals: a fork in memory in 100 ms for any size; one in a file at the speed of a copy.
"""

import argparse
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

import cerata
from cerata import Store

BATCH = 1_000


def report(what: str, text: str) -> None:
    print(f"  {what:<34} {text}", flush=True)


def filled(path: Path, frames: int) -> None:
    vectors = np.random.default_rng(1).normal(size=(BATCH, 64)).astype(np.float32)
    with cerata.open(path) as store:
        for first in range(0, frames, BATCH):
            numbers = range(first, first + BATCH)
            texts = [f"note {n} word{n * 7 % 2_000} word{n * 13 % 2_000}" for n in numbers]
            store.put_frames(texts, vectors=cerata.Vectors(dense=vectors, space="made@1/64"))


def least(call: Callable[[], object], rounds: int) -> float:
    """Return the least wall time of several calls, in seconds."""
    times: list[float] = []
    for _ in range(rounds):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def in_memory(store: Store, point: int) -> None:
    store.upkeep.fork(point).close()


def in_file(store: Store, point: int, target: Path) -> None:
    target.unlink(missing_ok=True)
    store.upkeep.fork(point, target).close()


def copied(path: Path, target: Path) -> None:
    target.unlink(missing_ok=True)
    shutil.copyfile(path, target)
    with target.open("rb") as file:
        os.fsync(file.fileno())


def measure(frames: int, folder: Path, rounds: int) -> None:
    path = folder / f"{frames}.cera"
    filled(path, frames)
    size = path.stat().st_size
    print(f"{frames:,} frames, {size / 1e6:,.1f} MB")
    with cerata.open(path) as store:
        points = {"the newest event": frames, "the middle": frames // 2, "near the start": BATCH}
        for name, point in points.items():
            at = point - point % BATCH
            took = least(partial(in_memory, store, at), rounds)
            report(f"in memory, at {name}", f"{took * 1e3:7.1f} ms")
        target = folder / "target.cera"
        copy = least(partial(copied, path, target), rounds)
        fork = least(partial(in_file, store, frames, target), rounds)
        report("a copy and a sync", f"{copy * 1e3:7.1f} ms, {size / copy / 1e6:,.0f} MB/s")
        report("in a file", f"{fork * 1e3:7.1f} ms, {fork / copy:.2f}x the copy")


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure forks.")
    parser.add_argument("--frames", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tiny", action="store_true")
    options = parser.parse_args()
    sizes = [2_000] if options.tiny else options.frames
    with tempfile.TemporaryDirectory() as folder:
        for frames in sizes:
            measure(frames, Path(folder), 2 if options.tiny else options.rounds)


if __name__ == "__main__":
    main()
