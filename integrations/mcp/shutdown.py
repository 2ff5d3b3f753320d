"""The end of a server: its triggers, and the steps that the first of them runs once.

Owns the gate that counts running calls and refuses later ones, and the sequence: refuse, wait up
to 1 s for running calls and their answers, close the store if none is left, exit. Each step has a
limit, so a server is gone within 2 s, also if a thread blocks. It ends by `os._exit`, since a
thread that reads stdin cannot be joined. Leaves out the transports (`stdio`, `http`).
"""

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from queue import SimpleQueue
from types import FrameType
from typing import Final, NoReturn, TypeVar

from cerata.engine.errors import Closed

SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

_ANSWERS_SECONDS: Final = 1.0
_CLOSE_SECONDS: Final = 0.5
_PARENT_SECONDS: Final = 0.5
_POLL_SECONDS: Final = 0.01

_Result = TypeVar("_Result")


class Gate:
    """Counts running calls; once shut, it refuses new ones."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running = 0
        self._is_shut = False

    def run(self, call: Callable[[], _Result]) -> _Result:
        """Run a call.

        Raises:
            Closed: the gate is shut.
        """
        with self._lock:
            if self._is_shut:
                raise Closed("The server is ending", remedy="Start it again, and repeat the call.")
            self._running += 1
        try:
            return call()
        finally:
            with self._lock:
                self._running -= 1

    def shut(self) -> None:
        """Refuse calls from now on."""
        with self._lock:
            self._is_shut = True

    @property
    def running(self) -> int:
        """The number of running calls."""
        with self._lock:
            return self._running


class Shutdown:
    """Ends this process at the first trigger; a signal after that ends it at once.

    Args:
        gate: The gate of the calls.
        close: Closes the memory; not called while a call runs.
        parent: The process that started this process.
    """

    def __init__(self, gate: Gate, close: Callable[[], None], parent: int) -> None:
        self.gate = gate
        self.is_answered: Callable[[], bool] = lambda: True
        """Whether each finished call was answered; set by the transport."""
        self._close = close
        self._parent = parent
        # A put is safe inside a signal handler; starting a thread there is not.
        self._triggers: SimpleQueue[tuple[int, float]] = SimpleQueue()
        self._is_ending = False

    def start(self, *, watches_parent: bool) -> None:
        """Watch for signals, from the main thread, and with ``watches_parent`` for its death."""
        threading.Thread(target=self._finish, daemon=True, name="shutdown").start()
        for number in SIGNALS:
            signal.signal(number, self._on_signal)
        if watches_parent:
            threading.Thread(target=self._watch_parent, daemon=True, name="parent").start()

    def trigger(self, code: int) -> None:
        """Begin the end, with an exit code; only the first call counts."""
        self._is_ending = True
        self._triggers.put((code, time.monotonic()))

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        if self._is_ending:
            os._exit(128 + number)
        self.trigger(128 + number)

    def _watch_parent(self) -> None:
        while os.getppid() == self._parent:
            time.sleep(_PARENT_SECONDS)
        self.trigger(0)

    def _finish(self) -> NoReturn:
        # Both waits count from the trigger: on a busy machine this thread may start late.
        code, start = self._triggers.get()
        self.gate.shut()
        while not self._is_idle() and time.monotonic() < start + _ANSWERS_SECONDS:
            time.sleep(_POLL_SECONDS)
        # A close that waits for a lock or a disk must not keep the process.
        closing = threading.Thread(target=self._leave, daemon=True, name="close")
        closing.start()
        closing.join(max(0.0, start + _ANSWERS_SECONDS + _CLOSE_SECONDS - time.monotonic()))
        os._exit(code)

    def _is_idle(self) -> bool:
        return self.gate.running == 0 and self.is_answered()

    def _leave(self) -> None:
        # A running write that was not acknowledged is whole or absent in the file.
        if self.gate.running == 0:
            self._close()
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.flush()
