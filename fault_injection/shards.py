"""The same work on all cores, each with its share of it from the start.

So counts do not depend on which core was faster. A share is worked off in a process of its own,
which keeps what it learned (stores, images, epochs) for its next tasks. Leaves out the work itself.
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
    """Yield the results of tasks as they are done; ``tasks`` gives the same ones at each call.

    Share *k* of ``jobs`` has every ``jobs``-th task from the k-th on, in order. ``deadline``, of
    `time.perf_counter`, is when no new task is begun; with one job all runs in this process.
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
        under_way: dict[Future[ResultType], int] = {}

        def begin(share: int) -> None:
            if on_time():
                for task in islice(shares[share], 1):
                    under_way[pools[share].submit(work, task)] = share

        for share in range(jobs):
            begin(share)
        while under_way:
            done, _ = wait(under_way, return_when=FIRST_COMPLETED)
            for future in done:
                begin(under_way.pop(future))
                yield future.result()
