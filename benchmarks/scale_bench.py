"""The cost of calls as a memory grows: closings, reads of the past, verification, and stalls.

``python -m benchmarks.scale_bench`` (``--tiny`` in CI; ``--frames N …`` for other sizes) puts
frames of a few words with metadata and tags, in durable batches of 1,000, and measures with each
size, in processor time:

- ingest: the median batch, and the worst over the median;
- deletes and supersedes in batches of 1,000, for each frame, and single deletes, beside a bare
  write and sync on the same disk;
- reads as of the middle of the log, over the same reads of the present;
- verification of the log, and of the log and all projections.

Goals: a delete or supersede in at most 60 us at any size (a single one beside the sync); a read of
the past at most 1.3 times one of the present; the log verified at 200,000 events a second.
"""

import argparse
import os
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from random import Random

import cerata
from cerata import Filter, Store, View
from cerata.engine.events import DeleteFrame, SupersedeFrame
from cerata.engine.open import open_log
from cerata.engine.verify import verify_log

from .append_bench import machine

BATCH = 1_000
SIZES = (10_000, 100_000, 1_000_000)


def spent(work: Callable[[], object]) -> float:
    """Return the processor seconds of a call."""
    started = time.process_time()
    work()
    return time.process_time() - started


def least(work: Callable[[], object], times: int = 7) -> float:
    return min(spent(work) for _ in range(times))


def report(label: str, figure: str) -> None:
    print(f"{label:<44}{figure}", flush=True)


def ingest(store: Store, frames: int) -> None:
    took: list[float] = []
    for first in range(0, frames, BATCH):
        numbers = range(first, first + BATCH)
        texts = [f"note {n} word{n * 7 % 2_000} word{n * 13 % 2_000}" for n in numbers]
        metadata = [{"group": n % 97, "number": n} for n in numbers]
        tags = [f"tag{first // BATCH % 50}"]
        took.append(spent(partial(store.put_frames, texts, metadata=metadata, tags=tags)))
    median = statistics.median(took)
    report(
        "ingest, batches of 1,000",
        f"{sum(took) / frames * 1e6:7.1f} us a frame, worst batch {max(took) / median:.1f}x the "
        f"median",
    )


def closings(store: Store, frames: int, folder: str, rounds: int) -> None:
    batch = min(BATCH, frames // 20)
    victims = Random(1).sample(range(1, frames + 1), (3 * rounds + 1) * batch + 200)

    def taken(count: int) -> list[int]:
        return [victims.pop() for _ in range(count)]

    def delete(numbers: Sequence[int]) -> None:
        store.append(*[DeleteFrame(frame=number) for number in numbers])

    def supersede(numbers: Sequence[int]) -> None:
        pairs = zip(numbers[::2], numbers[1::2], strict=True)
        store.append(*[SupersedeFrame(old=old, new=new) for old, new in pairs])

    delete(taken(batch))
    deletes = [spent(partial(delete, taken(batch))) / batch for _ in range(rounds)]
    supersedes = [spent(partial(supersede, taken(2 * batch))) / batch for _ in range(rounds)]
    singles: list[float] = []
    floors: list[float] = []
    with (Path(folder) / "floor").open("w+b") as file:
        file.write(bytes(1 << 20))
        os.fdatasync(file.fileno())
        for place in range(100):
            singles.append(spent(partial(store.delete, victims.pop())))
            floors.append(spent(partial(_synced, file.fileno(), place)))
    report("delete, batches", _microseconds(deletes))
    report("supersede, batches", _microseconds(supersedes))
    report("single delete", f"{_microseconds(singles)}; write and sync {_microseconds(floors)}")


def _synced(descriptor: int, place: int) -> None:
    os.pwrite(descriptor, bytes(512), 512 * place)
    os.fdatasync(descriptor)


def _microseconds(values: Sequence[float]) -> str:
    return f"{min(values) * 1e6:7.1f} us, median {statistics.median(values) * 1e6:.1f}"


def past(store: Store, frames: int) -> None:
    tagged, grouped = Filter(tags=["tag3"]), Filter(metadata={"group": 5})
    reads: dict[str, Callable[[View], object]] = {
        "search": lambda view: view.search("word7 word21", k=10),
        "search with a filter": lambda view: view.search("word7", k=10, where=tagged),
        "20 newest frames": lambda view: list(islice(view.frames(), 20)),
        "20 frames of a tag": lambda view: list(islice(view.frames(tagged), 20)),
        "20 frames of a group": lambda view: list(islice(view.frames(grouped), 20)),
        "a frame": lambda view: view.frame(frames // 3),
    }
    for name, read in reads.items():
        read(store.at("HEAD"))
        live = least(partial(_read, store, read, None))
        as_of = least(partial(_read, store, read, frames // 2))
        report(
            f"{name}, of the past",
            f"{as_of * 1e3:7.3f} ms, {as_of / live:.2f}x the present",
        )


def _read(store: Store, read: Callable[[View], object], basis: int | None) -> None:
    read(store.history.view() if basis is None else store.at(basis))


def verification(path: Path) -> None:
    with open_log(str(path), mode="r") as log:
        events = log.head.seq
        rate = events / least(partial(verify_log, log), 3)
    with cerata.open(path, mode="r") as store:
        both = events / spent(store.verify)
    report("verify", f"{rate:,.0f} events/s of the log, {both:,.0f} with all projections")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tiny", action="store_true", help="2,000 frames")
    parser.add_argument("--frames", type=int, nargs="+", default=SIZES)
    parser.add_argument("--folder", help="a folder on the disk to measure")
    options = parser.parse_args()
    print(machine())
    for frames in (2_000,) if options.tiny else options.frames:
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            print(f"{frames:,} frames")
            path = Path(folder) / "a.cera"
            with cerata.open(path) as store:
                ingest(store, frames)
            with cerata.open(path) as store:
                closings(store, frames, folder, 2 if options.tiny else 4)
                past(store, frames)
            verification(path)
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            size = path.stat().st_size
            report("peak memory", f"{peak / 1024:,.0f} MB; file {size / 1e6:,.1f} MB")
    sys.stdout.write("end\n")


if __name__ == "__main__":
    main()
