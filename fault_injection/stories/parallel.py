"""The same work on all cores, with a fixed share of the tasks for each process.

So counts do not depend on which core was faster. A separate process works off a share, and caches
its state (stores, images, epochs) for its next tasks. Leaves out the work itself.
"""

import time
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import ExitStack
from itertools import islice
from multiprocessing import get_context
from typing import TypeVar

TaskType = TypeVar("TaskType")
ResultType = TypeVar("ResultType")


def run_shards(
    work: Callable[[TaskType], ResultType],
    tasks: Callable[[], Iterable[TaskType]],
    *,
    jobs: int,
    deadline: float | None = None,
) -> Generator[ResultType, None, None]:
    """Yield the results of tasks as they are done; ``tasks`` returns the same tasks at each call.

    Share *k* of ``jobs`` has every ``jobs``-th task from the k-th on, in order. No task begins
    after ``deadline``, a time of `time.perf_counter`; with one job all tasks run in this process.
    ``work`` and tasks are pickled. Closing the iterator stops the work.
    """

    def on_time() -> bool:
        return deadline is None or time.perf_counter() < deadline

    if jobs == 1:
        for task in tasks():
            if not on_time():
                return
            yield work(task)
        return
    shares = [islice(iter(tasks()), start, None, jobs) for start in range(jobs)]
    with ExitStack() as stack:
        pools = [
            stack.enter_context(ProcessPoolExecutor(1, mp_context=get_context("spawn")))
            for _ in range(jobs)
        ]
        pending: dict[Future[ResultType], int] = {}

        def begin(share: int) -> None:
            if on_time():
                for task in islice(shares[share], 1):
                    pending[pools[share].submit(work, task)] = share

        for share in range(jobs):
            begin(share)
        while pending:
            completed, _ = wait(pending, return_when=FIRST_COMPLETED)
            for future in completed:
                begin(pending.pop(future))
                yield future.result()
