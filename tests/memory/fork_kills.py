"""Kills during a fork into a file: each leaves a whole fork or none.

``python -m tests.memory.fork_kills --rounds 200`` kills a process at a drawn time of its fork, at
the newest event, inside the log and near its start in turn, and prints the figures.
"""

import argparse
import os
import random
import signal
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import cerata


@dataclass
class Result:
    """The state of the folder after each kill; ``faulty`` has the round of each bad fork."""

    rounds: int = 0
    whole: int = 0
    missing: int = 0
    faulty: list[int] = field(default_factory=list[int])
    is_parent_verified: bool = False
    left_names: list[str] = field(default_factory=list[str])
    """The names in the folder after one more fork, which was not killed."""

    @property
    def is_right(self) -> bool:
        names = ["fork.cera", "memory.cera"]
        return not self.faulty and self.is_parent_verified and self.left_names == names

    def __str__(self) -> str:
        parent = "verified" if self.is_parent_verified else "NOT verified"
        return (
            f"{self.rounds:,} kills: {self.whole:,} whole forks, {self.missing:,} without a name, "
            f"{len(self.faulty):,} faulty; parent {parent}; left: {', '.join(self.left_names)}"
        )


def run(folder: Path, rounds: int, seed: int) -> Result:
    """Kill forks of a memory in a folder."""
    path, target = folder / "memory.cera", folder / "fork.cera"
    with cerata.open(path) as store:
        for number in range(40):
            store.put_frames([f"note {number} {place} {'x' * 300}" for place in range(50)])
        store.put_frame("z" * 300_000)
        store.checkpoint()
        head = store.put_frames(["tail"] * 5).seqs[-1]
        started = time.monotonic()
        store.upkeep.fork(head, target).close()
        took = time.monotonic() - started
    target.unlink()
    drawn = random.Random(seed)
    result = Result(rounds)
    for number in range(rounds):
        point = (head, 50, 1_000, head - 5)[number % 4]
        _kill(path, target, point, drawn.uniform(0, took))
        if not target.exists():
            result.missing += 1
            continue
        with cerata.open(target) as fork:
            parents = [branch.parent for branch in fork.upkeep.branches()]
            if not fork.verify().ok or (fork.head.seq, parents) != (point + 1, [point]):
                result.faulty.append(number)
        result.whole += 1
        target.unlink()
    with cerata.open(path) as store:
        result.is_parent_verified = store.verify().ok
        store.upkeep.fork(head, target).close()
    with cerata.open(target):
        # An opener for writing removes the temporary names of dead creators.
        result.left_names = sorted(each.name for each in folder.iterdir())
    return result


def _kill(path: Path, target: Path, point: int, seconds: float) -> None:
    """Fork in a child process, and kill it after some seconds of the fork."""
    ready, begun = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            with cerata.open(path) as store:
                os.write(begun, b"!")
                store.upkeep.fork(point, target).close()
        finally:
            os._exit(0)
    os.read(ready, 1)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(ready)
    os.close(begun)


def main() -> int:
    parser = argparse.ArgumentParser(description="Kill forks into a file.")
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        result = run(Path(folder), options.rounds, options.seed)
    sys.stdout.write(f"{result}\n")
    return 0 if result.is_right else 1


if __name__ == "__main__":
    sys.exit(main())
