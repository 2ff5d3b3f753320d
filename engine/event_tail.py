"""The tail of a log: the events after a point as they become durable, in this or any process.

Owns the position of one consumer, the look for new events and the wait for them. Leaves out the
choice of events and the locks of an iterator (`cerata.memory.event_stream`).
"""

from collections.abc import Iterator
from typing import Final

from .disk.watch import Watch
from .errors import Corrupt
from .events import Event
from .log import Log
from .unreadable import events_place, stopped

LOOK_SECONDS: Final = 1.0
"""The longest wait without a look, since a file system may lose reports of a watch."""

_SETTLE_SECONDS: Final = 0.0005
"""The pause after a report: an append writes a witness first, and its record right after that."""

_LOOK_GAP_SECONDS: Final = 0.005
"""The least time between two looks without events, so that a busy writer is not slowed down.

A look syncs events that no record proves to be durable."""


class EventTail:
    """The events of a log after a position, each once and in order. One thread uses it at a time.

    - ``position`` is the seq of the last event that `take` returned.
    - An event is durable before `take` returns it.
    """

    def __init__(self, log: Log, position: int) -> None:
        self.position = position
        self._log = log
        self._clock = log.environment.clock
        self._events: Iterator[Event] = iter(())
        self._watch: Watch | None = None
        self._looked = self._clock.monotonic()
        self._is_ending = False

    def monotonic(self) -> float:
        """Return seconds that never go back."""
        return self._clock.monotonic()

    @property
    def is_ending(self) -> bool:
        """True after `end`."""
        return self._is_ending

    def take(self) -> Event | None:
        """Return the next event; None if no more is durable now.

        Raises:
            Closed: the log was closed.
            Corrupt: the event is damaged, with its name; the next call tries again.
        """
        while True:
            try:
                for event in self._events:
                    self.position = event.seq
                    return event
            except Corrupt as error:
                raise self._stopped(error) from error
            head = self._log.refresh().seq
            if head <= self.position:
                self._looked = self._clock.monotonic()
                return None
            self._events = self._log.read(self.position + 1, head)

    def _stopped(self, error: Corrupt) -> Corrupt:
        """Return the error of a stream at a damaged event: no event is passed over in silence."""
        first = last = self.position + 1
        head = self._log.head.seq
        while last < head and not self._is_readable(last + 1):
            last += 1
        remedy = f"Restore a backup, or follow after event {last:,}: the events behind the damage."
        return stopped(error, "The stream", events_place(first, last), remedy)

    def _is_readable(self, seq: int) -> bool:
        try:
            self._log.event(seq)
        except Corrupt:
            return False
        return True

    def wait(self, seconds: float | None = None) -> None:
        """Return once there may be new events, after `end`, or after a second; sooner if unsure.

        Args:
            seconds: A shorter limit; default none.
        """
        if self._watch is None:
            # Events may have come before the watch began, so the caller must look once more.
            self._watch = self._log.watch()
            return
        if self._is_ending:
            return
        limit = LOOK_SECONDS if seconds is None else min(LOOK_SECONDS, max(seconds, 0))
        self._watch.wait(limit)
        if not self._is_ending:
            gap = self._looked + _LOOK_GAP_SECONDS - self._clock.monotonic()
            self._clock.sleep(max(_SETTLE_SECONDS, gap))

    def end(self) -> None:
        """End the present wait and all later ones; from any thread, also in a signal handler."""
        self._is_ending = True
        if self._watch is not None:
            self._watch.wake()

    def release(self) -> None:
        """Release the watch, after `end`."""
        watch, self._watch = self._watch, None
        if watch is not None:
            watch.close()
