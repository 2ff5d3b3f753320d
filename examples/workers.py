"""Several processes on one file: workers take tasks; no task is lost or processed twice.

    python examples/workers.py [--workers 3] [--tasks 30]

A task is a frame. A worker takes a task by superseding the frame with a claim; if two workers try,
the second gets a `Conflict` and takes the next task. One worker is killed during a task: its claim
stays in the memory, and the task is put back. No server, no lock file, no cleanup.
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
    """Claim the oldest free task; return the claim, or None without a free task."""
    while tasks := sorted(store.frames(cerata.Filter(kind=TASK)), key=lambda frame: frame.id):
        for task in tasks:
            try:
                with store.transaction() as taking:
                    mine = store.put_frame(task.text, kind=CLAIM, metadata={"worker": name})
                    store.supersede(task, mine)
            except cerata.Conflict:
                continue  # another worker was quicker
            return store.frame(taking.receipt.id)
    return None


def work(path: Path, name: str, start: Barrier | None = None, *, dies: bool = False) -> None:
    """Process tasks until none is left; a worker that ``dies`` is killed after its first claim."""
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
    """Turn the claims of a dead worker into tasks again; return their number."""
    left = list(store.frames(cerata.Filter(kind=CLAIM, metadata={"worker": name})))
    for frame in left:
        with store.transaction():
            store.supersede(frame, store.put_frame(frame.text, kind=TASK))
    return len(left)


def run(path: Path, workers: int, tasks: int) -> Counter[str]:
    """Put the tasks, start the workers, kill one, and return the tasks per worker."""
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
    """Run the example with the options of the command line."""
    parser = argparse.ArgumentParser(description="Several processes on one file.")
    parser.add_argument("--workers", type=int, default=3, help="how many (3)")
    parser.add_argument("--tasks", type=int, default=30, help="how many (30)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        counts = run(Path(folder) / "tasks.cera", options.workers, options.tasks)
    for name, count in sorted(counts.items()):
        print(f"{name}: {count} tasks")
    print(f"{counts.total()} of {options.tasks} tasks done, each once")
    return 0


if __name__ == "__main__":
    sys.exit(main())
