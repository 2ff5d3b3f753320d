"""The child process of a parser of hostile formats: its limits, and its loop of parts and answers.

Owns the limits. Leaves out the parser, which is an argument, and the parent (`sandbox`).

The child ends at a deadline by an alarm of the system, even if its parser never returns. If the
parent ends first, on Linux the system ends the child at once. Elsewhere a thread of the child waits
for the end of the input, and ends the child as soon as the parser lets a thread run.
"""

import os
import queue
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import IO, Any, Final

import msgspec

from cerata.engine.limits import STRING_SIZE_MAX

ANSWER_SIZE_MAX: Final = 2 * STRING_SIZE_MAX
"""Most bytes of a child's answer: its text, and the headings of each section."""

SIZE_BYTES: Final = 8
"""Bytes of the size that precedes each part and each answer."""

_PR_SET_PDEATHSIG: Final = 1


class Failure(msgspec.Struct, frozen=True):
    """The part that every answer has: the reason of a failure."""

    error: str | None = None


class Limits(msgspec.Struct, frozen=True):
    """The process id of the child's parent, and the limits of its resources."""

    parent: int
    seconds: int
    wall_seconds: int
    memory: int


def run_child(parse: Callable[[bytes], Any], limits: Limits) -> None:
    """Set the limits, and answer each part of standard input; runs in the child."""
    _end_with_parent(limits.parent)
    # A parser that prints must not write into an answer, a parser that reads must not take a part.
    inlet, outlet = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    _set_limits(limits)
    parts: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_read_parts, args=(inlet, parts), daemon=True).start()
    seconds: float = limits.wall_seconds
    while True:
        data = parts.get()
        _set_alarm(seconds)
        answer = _parsed(parse, data)
        outlet.write(len(answer).to_bytes(SIZE_BYTES))
        outlet.write(answer)
        outlet.flush()
        seconds = _set_alarm(0)


def _parsed(parse: Callable[[bytes], Any], data: bytes) -> bytes:
    try:
        answer = msgspec.msgpack.encode(parse(data))
    except MemoryError:
        return _error("it takes too much memory")
    except RecursionError:
        return _error("it is nested too deeply")
    except Exception as error:  # noqa: BLE001 - a parser may raise anything on hostile bytes
        return _error(f"{type(error).__name__}: {error}"[:300])
    if len(answer) > ANSWER_SIZE_MAX:
        return _error("it has too much text, or too many headings")
    return answer


def _read_parts(inlet: IO[bytes], parts: "queue.SimpleQueue[bytes]") -> None:
    """Queue each part, and end this process when its parent closes the input or ends."""
    try:
        while size := inlet.read(SIZE_BYTES):
            parts.put(inlet.read(int.from_bytes(size)))
    finally:
        # Skip the interpreter's cleanup, which needs memory that may be full.
        os._exit(1)


def _error(why: str) -> bytes:
    return msgspec.msgpack.encode(Failure(error=why.encode(errors="replace").decode()))


def _end_with_parent(parent: int) -> None:
    """Let the system end this process with its parent, on Linux."""
    if sys.platform == "linux":
        import ctypes

        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _set_limits(limits: Limits) -> None:
    # The parent ends this process at Ctrl-C, if it ends its work.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform != "win32":
        import resource

        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGALRM, signal.SIGXCPU})
        resource.setrlimit(resource.RLIMIT_CPU, (limits.seconds, limits.seconds + 1))
        space = _address_space() + limits.memory
        # Some systems cannot limit memory; macOS refuses.
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_AS, (space, space))


def _set_alarm(seconds: float) -> float:
    """Let the system end this process after so many seconds, 0 for never; return those left."""
    if sys.platform == "win32":
        return seconds
    return signal.setitimer(signal.ITIMER_REAL, seconds)[0]


def _address_space() -> int:
    """Return the bytes of address space of this process; an estimate outside of Linux."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 256 << 20
