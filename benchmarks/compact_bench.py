"""Compaction of a file with a history: its size before and after, and the waits of a writer.

``python -m benchmarks.compact_bench`` (``--tiny`` in CI; ``--operations N`` for another size) puts,
supersedes and deletes frames of 40 words, half of them closed in the end, in batches of 100.

- *history* is the file after `upkeep.compact`, over its compressed events (its segments).
- *live* is the file after `upkeep.compact` with a horizon at the head, over the file of a memory
  into which only the current frames were put.
- A second process appends one frame at a time during both compactions, and reports its waits.

Goals: both ratios 1.3; a writer waits 100 ms at most at p99.
"""

import argparse
import multiprocessing
import random
import tempfile
import time
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Event
from pathlib import Path

import numpy as np

import cerata

BATCH = 100
WORDS = [f"word{number * 7919 % 20_011}" for number in range(20_000)]


def report(label: str, text: str) -> None:
    print(f"  {label:<34} {text}", flush=True)


def text_of(source: random.Random) -> str:
    return " ".join(WORDS[int(source.paretovariate(0.6)) % len(WORDS)] for _ in range(40))


def filled(path: Path, operations: int) -> None:
    """Append puts, supersedes and deletes in turn, so that half of the frames stay current."""
    source = random.Random(1)
    current: list[int] = []
    with cerata.open(path) as store:
        for first in range(0, operations, BATCH):
            with store.transaction() as block:
                puts = 0
                for number in range(first, first + BATCH):
                    kind = number % 4
                    if kind < 2 or not current:
                        store.put_frame(text_of(source))
                        puts += 1
                    elif kind == 2:
                        store.supersede(
                            current.pop(source.randrange(len(current))), text_of(source)
                        )
                    else:
                        store.delete(current.pop(source.randrange(len(current))))
            assert block.receipt is not None
            types = {event.seq: event.type for event in store.log(block.receipt.seqs[0])}
            current += [seq for seq, kind in types.items() if kind == "putFrame"]
        store.checkpoint()


def alone(path: Path, target: Path) -> None:
    """Put the current frames of a memory into a new one."""
    with cerata.open(path, mode="r") as store, cerata.open(target) as fresh:
        texts = [frame.text for frame in store.frames()]
        for first in range(0, len(texts), BATCH):
            fresh.put_frames(texts[first : first + BATCH])
        fresh.upkeep.compact()


def append_until(path: str, stop: Event, waits_to: Connection) -> None:
    """Append frames until ``stop`` is set, and send the seconds that each took."""
    waits: list[float] = []
    with cerata.open(path) as store:
        store.put_frame("first")
        waits_to.send(None)
        while not stop.is_set():
            start = time.perf_counter()
            store.put_frame("one more")
            waits.append(time.perf_counter() - start)
    waits_to.send(waits)


def compacted(path: Path, horizon: str | None) -> tuple[cerata.Compaction, float, list[float]]:
    """Compact a file while another process appends; return result, seconds and its waits."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    stop = context.Event()
    writer = context.Process(target=append_until, args=(str(path), stop, there))
    writer.start()
    here.recv()
    with cerata.open(path) as store:
        start = time.perf_counter()
        result = store.upkeep.compact(horizon=horizon)
        seconds = time.perf_counter() - start
    stop.set()
    waits = here.recv()
    writer.join()
    return result, seconds, waits


def measure(folder: Path, operations: int) -> None:
    path = folder / "history.cera"
    filled(path, operations)
    size = path.stat().st_size
    print(f"{operations:,} operations, {size / 1e6:,.1f} MB")
    for name, horizon in (("history", None), ("live", "HEAD")):
        result, seconds, waits = compacted(path, horizon)
        file = path.stat().st_size
        if horizon is None:
            with cerata.open(path, mode="r") as store:
                info = store.upkeep.info()
            events, indexes = info["segment_bytes"], info["checkpoint_bytes"]
            assert isinstance(events, int)
            assert isinstance(indexes, int)
            against, peer = events, "its compressed events"
            report("indexes of these", f"{indexes / events:.2f} x the events")
        else:
            live = folder / "live.cera"
            alone(path, live)
            against, peer = live.stat().st_size, "the live frames alone"
        report(f"{name}: size", f"{file / 1e6:,.2f} MB, {file / against:.2f} x {peer}")
        rate = result.events / seconds
        report(
            f"{name}: time", f"{seconds:.2f} s, {rate:,.0f} events/s, {result.dropped:,} dropped"
        )
        p50, p99 = np.percentile(waits, [50, 99]) * 1e3
        report(
            f"{name}: waits of a writer",
            f"p50 {p50:.2f}, p99 {p99:.1f}, most {max(waits) * 1e3:.1f} ms; {len(waits):,} puts",
        )


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--operations", type=int, default=100_000)
    options.add_argument("--tiny", action="store_true")
    chosen = options.parse_args()
    operations = 400 if chosen.tiny else chosen.operations
    with tempfile.TemporaryDirectory() as folder:
        measure(Path(folder), operations)


if __name__ == "__main__":
    main()
