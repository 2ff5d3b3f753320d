"""Watches: waiting until a file may have changed, in this process or in another.

Owns the protocol of a watch, and the watch of a storage that cannot report changes. Leaves out the
watch of the system (`inotify`), and reading the changes.
"""

from typing import Final, Protocol

POLL_SECONDS: Final = 0.01
"""The pause between two looks without a watch of the system: half of a follower's 20 ms."""


class Watch(Protocol):
    """Waits for changes of the file at a path. A single thread waits; any thread may wake it."""

    def wait(self, seconds: float) -> None:
        """Return once the file may have changed since the last return; sooner if unsure.

        Args:
            seconds: The longest wait.
        """
        ...

    def wake(self) -> None:
        """End the present wait, or else the next; from any thread, also in a signal handler."""
        ...

    def close(self) -> None:
        """Release the watch; a second call does nothing."""
        ...


class Sleeper(Protocol):
    """The part of a clock that a polled watch uses."""

    def sleep(self, seconds: float) -> None:
        """Wait.

        Args:
            seconds: duration of the wait.
        """
        ...


class PolledWatch:
    """A watch that returns after a short pause, whether the file changed or not."""

    def __init__(self, clock: Sleeper) -> None:
        self._clock = clock
        self._is_woken = False

    def wait(self, seconds: float) -> None:
        if not self._is_woken:
            self._clock.sleep(min(seconds, POLL_SECONDS))
        self._is_woken = False

    def wake(self) -> None:
        self._is_woken = True

    def close(self) -> None:
        return
