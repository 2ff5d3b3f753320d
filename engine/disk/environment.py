"""The environment object: storage, clock and randomness, the only access to the outside.

Every effect of a store on the world, and every input from it, passes through one `Environment`. So
a simulator can replace all of it, and a run with the same environment is the same run.
"""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from ..errors import InvalidInput
from ..limits import TIME_MAX, TIME_MIN
from .memory_storage import MemoryStorage
from .storage import OsStorage, Storage
from .watch import PolledWatch, Watch


class Clock(Protocol):
    """Wall time for records, monotonic time for waits."""

    def now_us(self) -> int:
        """Return microseconds since 1970 UTC."""
        ...

    def monotonic(self) -> float:
        """Return seconds that never go back."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait.

        Args:
            seconds: duration of the wait.
        """
        ...


class SystemClock:
    """The machine's clocks."""

    def now_us(self) -> int:
        return time.time_ns() // 1_000

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


_DRAWN_SIZE = 16
_DRAWN_COUNT = 64
_drawn: list[bytes] = []
# A child must never use random bytes that its parent will use too.
os.register_at_fork(after_in_child=_drawn.clear)


def system_random_bytes(size: int) -> bytes:
    """Return the system's random bytes; salts (16 bytes) are drawn 64 at a time.

    Otherwise each append would make a system call for its salt.

    Args:
        size: number of bytes.
    """
    if size != _DRAWN_SIZE:
        return os.urandom(size)
    try:
        # One step, so that two threads never get the same bytes.
        return _drawn.pop()
    except IndexError:
        data = os.urandom(_DRAWN_SIZE * _DRAWN_COUNT)
        _drawn.extend([data[at : at + size] for at in range(size, len(data), size)])
        return data[:size]


@dataclass(frozen=True, slots=True)
class Environment:
    """The target of a store's side effects; the default is the machine.

    ``storage`` holds the files, ``clock`` gives the time, ``random_bytes`` returns a number of
    random bytes.
    """

    storage: Storage = field(default_factory=OsStorage)
    clock: Clock = field(default_factory=SystemClock)
    random_bytes: Callable[[int], bytes] = system_random_bytes

    def now_us(self) -> int:
        """Return the clock's time, in microseconds since 1970 UTC.

        Raises:
            InvalidInput: the clock returns no integer, or a time outside the years 1 to 9999.
        """
        now = self.clock.now_us()
        if type(now) is not int or not TIME_MIN <= now <= TIME_MAX:
            raise InvalidInput(
                f"The clock's now_us() returned {now!r:.60}, "
                f"not a whole number from {TIME_MIN:,} to {TIME_MAX:,}",
                remedy="Return microseconds since 1970 UTC from Environment(clock=…).",
            )
        return now

    def watch(self, path: str) -> Watch:
        """Return a watch of the file at a path: that of the storage, else by short pauses.

        Args:
            path: an existing file.
        """
        return self.storage.watch(path) or PolledWatch(self.clock)

    @classmethod
    def in_memory(cls) -> "Environment":
        """Return an environment with files in memory and the machine's clock and randomness."""
        return cls(storage=MemoryStorage())
