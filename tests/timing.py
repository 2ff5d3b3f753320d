"""How long a call takes: processor seconds of the fastest of a few tries.

The least, because the rest is what the collector or another process took: one full collection in
a process that ran a thousand tests takes longer than most calls that are compared here.
"""

import gc
import time
from collections.abc import Callable


def seconds(work: Callable[[], object], times: int = 5) -> float:
    """Return the least processor time of a few tries, each after the collector has run."""
    return min(spent(work) for _ in range(times))


def spent(work: Callable[[], object]) -> float:
    """Return the processor seconds of a call, after the collector has run."""
    gc.collect()
    started = time.process_time()
    work()
    return time.process_time() - started


def ratio(ours: Callable[[], object], floor: Callable[[], object], rounds: int) -> float:
    """Return our least time over the floor's, of rounds in which the two alternate.

    A machine that slows down between two series would show as a ratio.
    """
    pairs = [(spent(ours), spent(floor)) for _ in range(rounds)]
    return min(pair[0] for pair in pairs) / min(pair[1] for pair in pairs)
