"""A clock for tests that stands still until it is told to go on, or somebody waits for it."""


class StandingClock:
    """Each wait takes what it asks for, a microsecond at least."""

    def __init__(self, time_us: int) -> None:
        self.time_us = time_us

    def now_us(self) -> int:
        return self.time_us

    def monotonic(self) -> float:
        return self.time_us / 1e6

    def sleep(self, seconds: float) -> None:
        self.time_us += max(1, int(seconds * 1e6))
