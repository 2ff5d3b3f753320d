"""The watch of Linux: the kernel reports each write to a file, and each new file at its path.

The file is watched by its inode, so a write through any name and by any process counts. A file that
replaces it at its path is noticed by the folder, and watched from then on. Loaded on the first
wait, since only this part needs ctypes.
"""

import ctypes
import os
import select
import struct
import threading
from contextlib import suppress
from typing import Final

# The numbers are those of Linux's sys/inotify.h.
_MODIFY: Final = 0x2
_MOVED_TO: Final = 0x80
_CREATE: Final = 0x100
_ONLY_DIRECTORY: Final = 0x01000000
_EVENT: Final = struct.Struct("iIII")
_READ_SIZE: Final = 1 << 16


def file_watch(path: str) -> "FileWatch | None":
    """Return a watch of the file at a path; None if the system refuses one.

    A user has 128 watches by default; the caller polls without one.
    """
    try:
        return FileWatch(path)
    except (OSError, AttributeError):
        # AttributeError: the C library lacks a function.
        return None


class FileWatch:
    """A watch by inotify.

    - ``_guard`` keeps `wake` from writing to a descriptor that `close` has released. It is
      reentrant, since a signal handler may call either in the middle of the other.
    """

    _is_open = False

    def __init__(self, path: str) -> None:
        self._guard = threading.RLock()
        library = ctypes.CDLL(None, use_errno=True)
        self._add_watch = library.inotify_add_watch
        self._path = os.path.realpath(path)
        self._name = os.fsencode(os.path.basename(self._path))
        self._events: int = library.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._events < 0:
            raise _failed()
        try:
            self._signal = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        except BaseException:
            os.close(self._events)
            raise
        self._is_open = True
        self._poll = select.poll()
        for descriptor in (self._events, self._signal):
            self._poll.register(descriptor, select.POLLIN)
        try:
            # A folder that cannot be read gives no reports; each wait looks at the path anyway.
            self._add(os.path.dirname(self._path), _MOVED_TO | _CREATE | _ONLY_DIRECTORY)
            if not self._watch_file():
                raise _failed()
        except BaseException:
            self.close()
            raise

    def wait(self, seconds: float) -> None:
        ready = dict(self._poll.poll(seconds * 1000))
        if self._signal in ready:
            with suppress(BlockingIOError):
                os.eventfd_read(self._signal)
        if not ready or (self._events in ready and self._is_replaced()):
            # Also after a wait without a report: the folder may not allow a watch.
            self._watch_file()

    def _is_replaced(self) -> bool:
        """Read all reports; return whether one may be of a new file at the path."""
        is_replaced = False
        while True:
            try:
                data = os.read(self._events, _READ_SIZE)
            except BlockingIOError:
                return is_replaced
            at = 0
            while at < len(data):
                number, mask, _, size = _EVENT.unpack_from(data, at)
                at += _EVENT.size + size
                name = data[at - size : at].rstrip(b"\0")
                # The queue overflows with the number −1: any report may be lost.
                is_replaced |= number < 0 or (mask != _MODIFY and name == self._name)

    def _watch_file(self) -> bool:
        return self._add(self._path, _MODIFY)

    def _add(self, path: str, mask: int) -> bool:
        """Watch a path; a second time changes nothing."""
        number: int = self._add_watch(self._events, os.fsencode(path), mask)
        return number >= 0

    def wake(self) -> None:
        with self._guard:
            if self._is_open:
                with suppress(BlockingIOError):
                    os.eventfd_write(self._signal, 1)

    def close(self) -> None:
        with self._guard:
            if self._is_open:
                self._is_open = False
                for descriptor in (self._events, self._signal):
                    with suppress(OSError):
                        os.close(descriptor)

    def __del__(self) -> None:
        self.close()


def _failed() -> OSError:
    code = ctypes.get_errno()
    return OSError(code, os.strerror(code))
