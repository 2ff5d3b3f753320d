"""The environment object: storage, clock and randomness, the only doors to the outside.

Everything that a store does to or learns from the world passes through one `Environment`, so a
simulator can stand in for all of it, and a run with the same environment is the same run.
"""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from .storage import MemoryStorage, OsStorage, Storage


class Clock(Protocol):
    """Wall time for what is recorded, monotonic time for waiting."""

    def now_us(self) -> int:
        """Return microseconds since 1970 UTC."""
        ...

    def monotonic(self) -> float:
        """Return seconds that never go back."""
        ...

    def sleep(self, seconds: float) -> None: ...


class SystemClock:
    """The machine's clocks."""

    def now_us(self) -> int:
        return time.time_ns() // 1_000

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


@dataclass(frozen=True, slots=True)
class Environment:
    """Where a store's side effects go; the default is the machine itself."""

    storage: Storage = field(default_factory=OsStorage)
    clock: Clock = field(default_factory=SystemClock)
    random_bytes: Callable[[int], bytes] = os.urandom

    @classmethod
    def in_memory(cls) -> "Environment":
        """Return an environment whose files live in memory; clock and randomness stay real."""
        return cls(storage=MemoryStorage())
