"""A whole simulated world: a disk, one clock for all processes, and randomness from a seed.

Owns the virtual clock and the environments of simulated processes. Two worlds with the same seed,
driven by the same calls, are the same world byte for byte.
"""

from collections.abc import Callable

from blake3 import blake3

from cerata.engine.disk.environment import Environment
from cerata.engine.disk.storage import Storage

from .disk import SimulatedDisk, SimulatedProcess

EPOCH_US = 1_700_000_000_000_000
"""Start of the virtual clock, in microseconds since 1970: an arbitrary plausible time."""


class VirtualClock:
    """Time that advances only when a process reads the clock or sleeps.

    ``nap`` is called after a sleep has advanced the time; a scheduler switches processes there.
    """

    def __init__(self) -> None:
        self.elapsed_us = 0
        self.step_us = 1
        """How far a read advances the clock: a loop that waits for time without sleeping ends."""
        self.nap: Callable[[float], None] | None = None

    def now_us(self) -> int:
        self.elapsed_us += self.step_us
        return EPOCH_US + self.elapsed_us

    def monotonic(self) -> float:
        self.elapsed_us += self.step_us
        return self.elapsed_us / 1e6

    def sleep(self, seconds: float) -> None:
        self.elapsed_us += max(1, round(seconds * 1e6))
        if self.nap is not None:
            self.nap(seconds)


class SeededBytes:
    """Randomness that depends only on the seed, and costs nothing to set up."""

    def __init__(self, seed: str) -> None:
        self._seed = seed.encode()
        self._draws = 0

    def __call__(self, size: int) -> bytes:
        self._draws += 1
        return blake3(self._seed + b"/%d" % self._draws).digest(length=size)


class World:
    """A disk, a clock and a seed."""

    def __init__(self, seed: int = 0, *, disk: SimulatedDisk | None = None) -> None:
        self.seed = seed
        self.disk = disk or SimulatedDisk()
        self.clock = VirtualClock()

    def process(self, index: int) -> SimulatedProcess:
        """Return a new process for the program ``index`` of a scheduler."""
        return self.disk.process(f"P{index}")

    def environment(self, process: SimulatedProcess, storage: Storage | None = None) -> Environment:
        """Return the environment of a process; ``storage`` may wrap the process's storage."""
        return Environment(
            storage=storage or process,
            clock=self.clock,
            random_bytes=SeededBytes(f"{self.seed}/{process.name}"),
        )
