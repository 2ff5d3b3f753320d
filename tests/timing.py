"""How long a call takes: processor seconds of the fastest of a few tries.

The least, because the rest is what the collector or another process took: one full collection in
a process that ran a thousand tests takes longer than most calls that are compared here.
"""

import gc
import time
from collections.abc import Callable


def seconds(work: Callable[[], object], times: int = 5) -> float:
    """Return the least processor time of a few tries, each after the collector has run."""
    found: list[float] = []
    for _ in range(times):
        gc.collect()
        started = time.process_time()
        work()
        found.append(time.process_time() - started)
    return min(found)
