"""Rebuilding and verifying: events a second of one process, and the gain of worker processes.

``python -m benchmarks.rebuild_bench`` (``--tiny`` in CI; ``--events N`` for another size) writes
two files: *metadata*, frames without text that have a tag and two numbers, and *notes*, the same
with a text of four words. For each file it measures:

- verification of the log alone, and of the log and all projections;
- `upkeep.rebuild` of every projection, compared with the old states, with 1, 2 and 3 workers: the
  processor time of this process and of its workers, and the time by the clock.

The *longest path* of a rebuild with n processes, this one included, is the processor time of this
process outside of the ranges that all fold, plus an n-th of all other processor time: the time by
the clock on an idle machine with as many cores, since a process takes the next range when it is
ready. On a busy machine the clock measures the other work. Rounds alternate, and the least counts.

Goals: 150,000 metadata events a second rebuilt with verification on one core; two workers at least
1.6 times as fast as one.
"""

import argparse
import hashlib
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cerata
from cerata.engine.events import PutFrame
from cerata.engine.open import open_log
from cerata.engine.verify import verify_log
from cerata.replay import range_workers

from .append_bench import machine

BATCH = 1_000
EVENTS = 200_000
WORKERS = (1, 2, 3)


def spent(work: Callable[[], object]) -> tuple[float, float, float]:
    """Return the processor seconds of this process and of its children, and those of the clock."""
    own = time.process_time()
    children = _of_children()
    clock = time.monotonic()
    work()
    clock = time.monotonic() - clock
    return time.process_time() - own, _of_children() - children, clock


def _of_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


class Shared:
    """The processor seconds that this process spends on the ranges that all processes fold."""

    def __init__(self) -> None:
        self.seconds = 0.0
        fold_ranges = range_workers.fold_ranges

        def timed(*arguments: Any) -> frozenset[str]:
            start = time.process_time()
            try:
                return fold_ranges(*arguments)
            finally:
                self.seconds += time.process_time() - start

        setattr(range_workers, "fold_ranges", timed)  # noqa: B010 - the type is wider


def filled(path: Path, events: int, *, with_text: bool) -> None:
    """Write frames with a tag and two numbers, and save the folded state."""
    with cerata.open(path) as store:
        for first in range(0, events, BATCH):
            bodies = [
                PutFrame(
                    text=f"note {n} word{n * 7 % 2_000} word{n * 13 % 2_000}"
                    if with_text
                    else None,
                    metadata={"group": n % 97, "number": n},
                    tags=(f"tag{first // BATCH % 50}",),
                )
                for n in range(first, first + BATCH)
            ]
            store.append(*bodies)
        store.checkpoint()


def report(label: str, figure: str) -> None:
    print(f"{label:<32}{figure}", flush=True)


def verified(path: Path, events: int, rounds: int) -> None:
    alone: list[float] = []
    whole: list[float] = []
    for _ in range(rounds):
        with open_log(str(path), mode="r") as log:
            alone.append(spent(lambda: verify_log(log))[0])
        with cerata.open(path, mode="r") as store:
            whole.append(spent(store.verify)[0])
    report(
        "verify",
        f"{events / min(alone):,.0f} events/s of the log, {events / min(whole):,.0f} with all "
        "projections",
    )


def rebuilt(path: Path, events: int, rounds: int) -> str:
    """Measure rebuilds, and return a hash of the digests."""
    paths: dict[int, list[float]] = {workers: [] for workers in WORKERS}
    clocks: dict[int, list[float]] = {workers: [] for workers in WORKERS}
    own: dict[int, list[float]] = {workers: [] for workers in WORKERS}
    digests: set[bytes] = set()
    shared = Shared()
    for _ in range(rounds):
        for workers in WORKERS:
            with cerata.open(path) as store:
                result: list[bytes] = []

                def work(store: cerata.Store = store, workers: int = workers) -> None:
                    rebuild = store.upkeep.rebuild(workers=workers)
                    assert rebuild.equal
                    result.append(b"".join(rebuild.digests.values()))  # noqa: B023

                shared.seconds = 0.0
                here, children, clock = spent(work)
            digests.add(result[0])
            own[workers].append(here)
            alone = here - shared.seconds
            paths[workers].append(alone + (shared.seconds + children) / workers)
            clocks[workers].append(clock)
    assert len(digests) == 1
    for workers in WORKERS:
        longest = min(paths[workers])
        report(
            f"rebuild, {workers} worker{'s' if workers > 1 else ''}",
            f"{events / longest:,.0f} events/s of the longest path, "
            f"{min(paths[1]) / longest:.2f}x one; {min(own[workers]):.2f} s in this process; "
            f"{events / min(clocks[workers]):,.0f} events/s by the clock, "
            f"{min(clocks[1]) / min(clocks[workers]):.2f}x one",
        )
    return hashlib.sha256(digests.pop()).hexdigest()[:16]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tiny", action="store_true", help="20,000 events, one round")
    parser.add_argument("--events", type=int, default=EVENTS)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    events = 20_000 if options.tiny else options.events
    rounds = 1 if options.tiny else options.rounds
    print(machine())
    with tempfile.TemporaryDirectory() as folder:
        for name, with_text in (("metadata", False), ("notes", True)):
            path = Path(folder) / f"{name}.cera"
            filled(path, events, with_text=with_text)
            report(f"{name}, {events:,} events", f"{path.stat().st_size / 1e6:,.1f} MB")
            verified(path, events, rounds)
            report("hash of the digests", rebuilt(path, events, rounds))


if __name__ == "__main__":
    main()
