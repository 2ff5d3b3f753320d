"""Several processes on one file: workers take tasks, none is done twice, none is lost.

    python examples/workers.py [--workers 3] [--tasks 30]

A task is a frame. Who takes one supersedes it with a claim; if two try, one gets a `Conflict` and
takes the next. One worker is killed while it works: its claim is there for all to see, and the
task is put back. No server, no lock file, nothing to clean up.
"""

import argparse
import multiprocessing
import os
import signal
import sys
import tempfile
import time
from collections import Counter
from multiprocessing.synchronize import Barrier
from pathlib import Path

import cerata

TASK, CLAIM, RESULT = "task", "claim", "result"


def claim(store: cerata.Store, name: str) -> cerata.Frame | None:
    """Take the oldest task that nobody has, or None if there is none."""
    while tasks := sorted(store.frames(cerata.Filter(kind=TASK)), key=lambda frame: frame.id):
        for task in tasks:
            try:
                with store.transaction() as taking:
                    mine = store.put_frame(task.text, kind=CLAIM, metadata={"worker": name})
                    store.supersede(task, mine)
            except cerata.Conflict:
                continue  # another worker was quicker
            assert taking.receipt is not None
            return store.frame(taking.receipt.id)
    return None


def work(path: Path, name: str, start: Barrier | None = None, *, dies: bool = False) -> None:
    """Take tasks until there are none; one worker dies with a claim in its hands."""
    with cerata.open(path) as store:
        if start is not None:
            start.wait()
        while taken := claim(store, name):
            if dies:
                os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(0.005)  # the work
            with store.transaction():
                result = store.put_frame(
                    f"{taken.text}: {len(taken.text)} letters",
                    kind=RESULT,
                    metadata={"worker": name},
                )
                store.supersede(taken, result)


def put_back(store: cerata.Store, name: str) -> int:
    """Make tasks of the claims of a worker that is gone, and return how many."""
    left = list(store.frames(cerata.Filter(kind=CLAIM, metadata={"worker": name})))
    for one in left:
        with store.transaction():
            store.supersede(one, store.put_frame(one.text, kind=TASK))
    return len(left)


def run(path: Path, workers: int, tasks: int) -> Counter[str]:
    """Put the tasks, let workers at them, kill one, and return who did how many."""
    with cerata.open(path) as store:
        store.put_frames([f"task {number}" for number in range(tasks)], kind=TASK)
    context = multiprocessing.get_context("spawn")
    names = [f"worker-{number}" for number in range(workers)]
    start = context.Barrier(workers)
    running = [
        context.Process(target=work, args=(path, name, start), kwargs={"dies": name == names[0]})
        for name in names
    ]
    for process in running:
        process.start()
    for process in running:
        process.join()
    with cerata.open(path) as store:
        dead = [name for name, process in zip(names, running, strict=True) if process.exitcode]
        for name in dead:
            print(f"{name} was killed; {put_back(store, name)} task of it was put back")
    work(path, "the last one")
    with cerata.open(path, mode="r") as store:
        results = list(store.frames(cerata.Filter(kind=RESULT)))
        texts = Counter(frame.text.partition(":")[0] for frame in results)
        assert texts == Counter(f"task {number}" for number in range(tasks)), texts
        return Counter(str(frame.metadata["worker"]) for frame in results)


def main() -> int:
    """Run it from a command line."""
    parser = argparse.ArgumentParser(description="Several processes on one file.")
    parser.add_argument("--workers", type=int, default=3, help="how many (3)")
    parser.add_argument("--tasks", type=int, default=30, help="how many (30)")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        done = run(Path(folder) / "tasks.cera", given.workers, given.tasks)
    for name, count in sorted(done.items()):
        print(f"{name}: {count} tasks")
    print(f"{done.total()} of {given.tasks} tasks done, each once")
    return 0


if __name__ == "__main__":
    sys.exit(main())
