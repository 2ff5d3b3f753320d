"""The cost of the tools of time: views of the past, differences, speculation, and bisection.

``python -m benchmarks.time_bench`` (``--tiny`` in CI; ``--events N …`` for other sizes) writes
batches of 1,000 events: frames of a few words, new versions, deletions and facts. It measures with
each size, in processor time of a process that has read the memory once, the median and the 95th
percentile of calls at random points:

- a view of the point, with its count of frames and a frame by its id;
- the first search of such a view;
- the difference of neighbouring points, and of points 1,000 events apart, with every change read;
- a view with three speculative events at the point, and its first search;
- a bisection over all events, with its count of tests.

Goals for 1,000,000 events: a view 20 ms, a first search 60 ms, the differences 5 ms and 50 ms (all
at the 95th percentile), a bisection in at most 21 tests and 5 s.
"""

import argparse
import hashlib
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from random import Random

import cerata
from cerata import Store, View
from cerata.engine.events import AssertFact, DeleteFrame, EventBody, PutFrame, SupersedeFrame

from .append_bench import machine

BATCH = 1_000
SIZES = (100_000, 1_000_000)
APART = 1_000


def spent(work: Callable[[], object]) -> float:
    """Return the processor seconds of a call."""
    started = time.process_time()
    work()
    return time.process_time() - started


def report(label: str, times: Sequence[float], goal: str = "") -> None:
    ordered = sorted(times)
    median, late = (ordered[int(share * (len(ordered) - 1))] * 1e3 for share in (0.5, 0.95))
    print(f"{label:<44}{median:8.2f} ms median, {late:8.2f} ms p95{goal}", flush=True)


def batch_of(first: int, source: Random) -> list[EventBody]:
    """Return 1,000 events that follow event ``first - 1``; one in ten is a fact."""
    events: list[EventBody] = []
    for place in range(BATCH):
        number = first + place
        draw = number % 20
        if draw in (7, 13):
            person, city = source.randrange(2_000), source.randrange(200)
            events.append(
                AssertFact(
                    subject=f"person {person}",
                    predicate="lives in",
                    object_kind="entity",
                    object=f"city {city}",
                )
            )
        elif draw == 9:
            # Frames of the same batch, which nothing else closes.
            events.append(SupersedeFrame(old=-(place - 3), new=-place))
        elif draw == 17:
            events.append(DeleteFrame(frame=-place))
        else:
            words = f"word{source.randrange(2_000)} word{source.randrange(2_000)}"
            events.append(PutFrame(text=f"note {number} {words}"))
    return events


def fill(store: Store, events: int) -> None:
    source = Random(7)
    for first in range(1, events + 1, BATCH):
        store.append(*batch_of(first, source))
    store.checkpoint()


def measure(store: Store, rounds: int) -> str:
    source = Random(11)
    end = store.head.seq
    hashed = hashlib.sha256()
    store.search("word7 word9")
    store.at(end // 2).facts("person 1")

    def points(apart: int = 0) -> list[int]:
        return [source.randrange(end // 10, end - apart) for _ in range(rounds)]

    def open_view(point: int) -> None:
        view = store.at(point)
        hashed.update(str((view.count(), [frame.id for frame in view.history.last(1)])).encode())

    def search(view: View) -> None:
        hashed.update(str([(hit.id, hit.score) for hit in view.search("word7 word9")]).encode())

    def compare(point: int, apart: int) -> None:
        found = store.diff(point, point + apart)
        hashed.update(
            str((found.added, found.replaced, len(found.changes), len(found.facts))).encode()
        )

    def speculate(point: int) -> None:
        texts = ("word7 word9", "word7", "tea")
        search(store.at(point).upkeep.speculate(*(PutFrame(text=text) for text in texts)))

    report("a view at a random point", [spent(partial(open_view, n)) for n in points()])
    views = [store.at(point) for point in points()]
    report("the first search of a view", [spent(partial(search, v)) for v in views])
    report("diff of neighbouring points", [spent(partial(compare, n, 1)) for n in points(1)])
    apart = min(APART, end // 20)
    far = [spent(partial(compare, n, apart)) for n in points(apart)]
    report(f"diff of points {apart:,} events apart", far)
    few = points()[: max(1, rounds // 10)]
    report("speculate, and the first search", [spent(partial(speculate, n)) for n in few])
    bad = source.randrange(end // 2, end)
    count = store.at(bad).count()[0]
    tests = 0

    def is_small(view: View) -> bool:
        nonlocal tests
        tests += 1
        return view.basis < bad or view.count()[0] < count - end

    took = spent(lambda: hashed.update(str(store.history.bisect(is_small).seq).encode()))
    print(f"{'bisect':<44}{took * 1e3:8.2f} ms, {tests} tests", flush=True)
    return hashed.hexdigest()[:16]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tiny", action="store_true", help="a small size, for CI")
    parser.add_argument("--events", type=int, nargs="+", default=SIZES, help="sizes to measure")
    options = parser.parse_args()
    sizes = (4_000,) if options.tiny else options.events
    print(machine())
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "time.cera"
            with cerata.open(path, options=cerata.OpenOptions(sync=1 << 26)) as store:
                fill(store, size)
            with cerata.open(path) as store:
                print(f"\n{size:,} events, {path.stat().st_size / 2**20:,.0f} MiB", flush=True)
                print(f"results {measure(store, 10 if options.tiny else 100)}", flush=True)
    sys.stdout.flush()


if __name__ == "__main__":
    main()
