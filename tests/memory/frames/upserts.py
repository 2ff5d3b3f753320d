"""Concurrent upserts: 40 writers of one URI in two processes, round after round.

In each round every writer replaces the URI of the round at the same time; one current frame must
remain. ``python -m tests.memory.frames.upserts --rounds 1000`` prints the progress and the figures.
"""

import argparse
import multiprocessing
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing.synchronize import Barrier
from pathlib import Path

import cerata

WRITERS = 40
REPORTS = 20
"""Lines of progress of one run, at most."""
_WAIT_S = 600
"""Seconds that a writer waits for the slowest writer of the round."""


@dataclass(frozen=True)
class Result:
    """The result of a run, by the file."""

    rounds: int
    remaining: int
    """Current frames, of all URIs."""
    replaced: int
    faulty: tuple[str, ...]
    """URIs with another count of current frames than one."""
    is_verified: bool

    @property
    def is_right(self) -> bool:
        writes = self.rounds * WRITERS
        counts = (self.remaining, self.remaining + self.replaced)
        return counts == (self.rounds, writes) and not self.faulty and self.is_verified

    def __str__(self) -> str:
        return (
            f"{self.rounds:,} rounds of {WRITERS} upserts in 2 processes: "
            f"{self.remaining:,} current frames, {self.replaced:,} replaced, "
            f"{len(self.faulty):,} URIs with another count than one, "
            f"file {'verified' if self.is_verified else 'NOT verified'}"
        )


def replace_all(path: str, rounds: int, writers: int, name: str, start: Barrier) -> None:
    """Replace one URI in each round by several threads at once, together with other processes."""
    every = max(1, rounds // REPORTS)
    started = time.monotonic()
    with (
        cerata.open(path, options=cerata.OpenOptions(sync=1 << 30)) as store,
        ThreadPoolExecutor(writers) as pool,
    ):
        for turn in range(rounds):
            ready = threading.Barrier(writers)

            def replace(number: int, turn: int = turn, ready: threading.Barrier = ready) -> None:
                ready.wait(_WAIT_S)
                store.put_frame(
                    f"{name} {number}", uri=f"uri:{turn}", options=cerata.PutOptions(replace=True)
                )

            start.wait(_WAIT_S)
            list(pool.map(replace, range(writers)))
            if name == "a" and (turn + 1) % every == 0 and rounds >= REPORTS:
                elapsed = time.monotonic() - started
                sys.stderr.write(f"{turn + 1:,} of {rounds:,} rounds, {elapsed:.0f} s\n")


def storm(path: Path, rounds: int) -> Result:
    """Return what a file has after rounds of 40 concurrent writers of one URI each."""
    context = multiprocessing.get_context("spawn")
    cerata.open(path).close()
    start = context.Barrier(2)
    processes = [
        context.Process(target=replace_all, args=(str(path), rounds, WRITERS // 2, name, start))
        for name in ("a", "b")
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    codes = [process.exitcode for process in processes]
    if codes != [0, 0]:
        raise RuntimeError(f"A process failed; the exit codes are {codes}")
    with cerata.open(path, mode="r") as store:
        counts = {f"uri:{turn}": len(store.files.by_uri(f"uri:{turn}")) for turn in range(rounds)}
        return Result(
            rounds,
            *store.count(),
            faulty=tuple(uri for uri, count in counts.items() if count != 1),
            is_verified=store.verify().ok,
        )


def main() -> int:
    """Run from a command line; exit with 1 if the result is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=100, help="rounds (default 100)")
    options = parser.parse_args()
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        result = storm(Path(folder) / "memory.cera", options.rounds)
    sys.stdout.write(f"{result}; {time.monotonic() - started:.0f} s\n")
    return 0 if result.is_right else 1


if __name__ == "__main__":
    sys.exit(main())
