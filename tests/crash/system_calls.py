"""The system calls below the storage interface: counted, and made to fail.

Owns the errors that each call can return, and `FaultySystem`, which replaces the operating system
in `cerata.engine.disk.storage` and makes the n-th call fail, once or from then on. The real storage
code runs over it on real files, so its loops, its error mapping and its descriptors are tested too.

Every fault is accounted for: a call met it, or the sweep reports it unused; and an error without an
injected fault behind it is a bug of the engine.
"""

import errno
import fcntl
import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest import mock

from cerata.engine.disk import storage as storage_module
from cerata.engine.limits import SECTOR_SIZE

from .injected_exceptions import causes

SHORT = "short"
"""Half of the bytes, and no error: the caller must ask for the rest."""

NOTHING = "nothing"
"""No byte, and no error."""

TORN = "torn"
"""Half of the bytes; then the disk is full."""

TORN_LATE = "torn late"
"""All but the last sector; then the disk is full."""

_WRITES = ("EIO", "ENOSPC", "EDQUOT", "EFBIG", "EROFS", "EINTR", SHORT, TORN, TORN_LATE, NOTHING)
_SYNCS = ("EIO", "ENOSPC", "EDQUOT", "EROFS", "EINTR")

FAULTS: dict[str, tuple[str, ...]] = {
    "pread": ("EIO", "EINTR", SHORT),
    "pwrite": _WRITES,
    "fdatasync": _SYNCS,
    "fsync": _SYNCS,
    "ftruncate": ("EIO", "ENOSPC", "EDQUOT", "EFBIG", "EROFS", "EINTR"),
    "fstat": ("EIO",),
    "stat": ("EIO", "EACCES"),
    "open": ("EIO", "EACCES", "EMFILE", "ENOSPC", "EDQUOT", "EROFS", "EINTR"),
    "close": ("EIO", "ENOSPC", "EDQUOT", "EINTR"),
    "link": ("EIO", "ENOSPC", "EDQUOT", "EROFS", "EPERM"),
    "rename": ("EIO", "ENOSPC", "EROFS"),
    "unlink": ("EIO", "EROFS", "EPERM"),
    "listdir": ("EIO", "EACCES"),
    "lock": ("EIO", "ENOLCK", "EINTR"),
    "unlock": ("EIO", "ENOLCK"),
}
"""The faults of each call, by the call's name."""


@dataclass(frozen=True, slots=True)
class Fault:
    """The ``number``-th call (from 1) fails; with ``forever``, all later calls of its name too.

    With ``call`` only calls of this name are counted.
    """

    number: int
    kind: str
    forever: bool = False
    call: str | None = None

    def __str__(self) -> str:
        return f"{self.kind} {'from call' if self.forever else 'at call'} {self.number}"


class FaultySystem:
    """The operating system with at most one fault. `installed` puts it below the engine.

    Only calls within `armed` are counted and can fail.
    """

    def __init__(self) -> None:
        self.calls: list[str] = []
        """The names of all calls within `armed`."""
        self.injected: list[OSError] = []
        """The errors that were raised, to be found behind the engine's errors."""
        self.met = 0
        """How often the fault struck; 0 if no call met it."""
        self._fault: Fault | None = None
        self._name = ""
        self._armed = False
        self._full = False

    @contextmanager
    def installed(self) -> Generator[None, None, None]:
        """Replace the operating system in the engine's storage."""
        with (
            mock.patch.object(storage_module, "os", _Calls(self, os, _OS_CALLS)),
            mock.patch.object(storage_module, "fcntl", _Calls(self, fcntl, _LOCK_CALLS)),
            mock.patch.object(storage_module, "_flush", _Flush(self)),
        ):
            yield

    @contextmanager
    def armed(self, fault: Fault | None = None) -> Generator[None, None, None]:
        """Count from here on, and let ``fault`` strike."""
        self.calls = []
        self.injected = []
        self.met = 0
        self._fault = fault
        self._armed = True
        self._full = False
        try:
            yield
        finally:
            self._armed = False

    def heal(self) -> None:
        """End the fault: the disk has space again, and works."""
        self._fault = None
        self._full = False

    def resting(self, act: Callable[[], None]) -> None:
        """Let another process act: its calls do not count and do not fail."""
        armed = self._armed
        self._armed = False
        try:
            act()
        finally:
            self._armed = armed

    def is_behind(self, error: BaseException | None) -> bool:
        """Return whether an injected fault led to ``error``."""
        if any(cause in self.injected for cause in causes(error)):
            return True
        return self.met > 0 and self._fault is not None and self._fault.kind == NOTHING

    def strike(self, name: str) -> str | None:
        """Count a call, and return the kind of fault that it meets, or None."""
        if not self._armed:
            return None
        self.calls.append(name)
        fault = self._fault
        if name == "pwrite" and self._full:
            self._full = fault is not None and fault.forever
            self.met += 1
            return "ENOSPC"
        if fault is None or fault.call not in (None, name):
            return None
        number = len(self.calls) if fault.call is None else self.calls.count(name)
        if number == fault.number:
            self._name = name
        elif number < fault.number or not fault.forever or name != self._name:
            return None
        self.met += 1
        self._full = fault.kind in (TORN, TORN_LATE)
        return fault.kind

    def refusal(self, kind: str) -> OSError:
        """Return the system's error of a kind, and remember it."""
        number = getattr(errno, kind)
        error = OSError(number, os.strerror(number))
        self.injected.append(error)
        return error


def _read(system: FaultySystem, kind: str | None, descriptor: int, size: int, at: int) -> bytes:
    if kind == SHORT:
        return os.pread(descriptor, max(1, size // 2), at)
    if kind is not None:
        raise system.refusal(kind)
    return os.pread(descriptor, size, at)


def _write(system: FaultySystem, kind: str | None, descriptor: int, data: Any, at: int) -> int:
    if kind is None:
        return os.pwrite(descriptor, data, at)
    size = memoryview(data).nbytes
    parts = {SHORT: max(1, size // 2), TORN: size // 2, TORN_LATE: size - SECTOR_SIZE, NOTHING: 0}
    if kind not in parts:
        raise system.refusal(kind)
    part = parts[kind]
    if part <= 0 and kind != NOTHING:
        raise system.refusal("ENOSPC")
    return os.pwrite(descriptor, memoryview(data)[:part], at) if part else 0


def _close(system: FaultySystem, kind: str | None, descriptor: int) -> None:
    # Linux frees the descriptor even if the call fails.
    os.close(descriptor)
    if kind is not None:
        raise system.refusal(kind)


_OS_CALLS: dict[str, Callable[..., Any] | None] = {
    "pread": _read,
    "pwrite": _write,
    "close": _close,
    **dict.fromkeys(
        ("fsync", "ftruncate", "fstat", "stat", "open", "link", "rename", "unlink", "listdir")
    ),
}
_LOCK_CALLS: dict[str, Callable[..., Any] | None] = {"fcntl": None}


class _Calls:
    """A module of the standard library in which some calls go through a `FaultySystem`."""

    def __init__(
        self, system: FaultySystem, real: Any, calls: dict[str, Callable[..., Any] | None]
    ) -> None:
        self._real = real
        for name, act in calls.items():
            setattr(self, name, _through(system, name, getattr(real, name), act))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


def _through(
    system: FaultySystem,
    name: str,
    real: Callable[..., Any],
    act: Callable[..., Any] | None,
) -> Callable[..., Any]:
    def call(*arguments: Any) -> Any:
        named = name
        if name == "fcntl":
            if len(arguments) < 3 or not isinstance(arguments[2], bytes):
                return real(*arguments)
            named = "unlock" if arguments[2][:2] == fcntl.F_UNLCK.to_bytes(2, "little") else "lock"
        kind = system.strike(named)
        if act is not None:
            return act(system, kind, *arguments)
        if kind is not None:
            raise system.refusal(kind)
        return real(*arguments)

    return call


class _Flush:
    """The call by which the engine syncs a file."""

    def __init__(self, system: FaultySystem) -> None:
        self._system = system
        self._real = storage_module._flush  # pyright: ignore[reportPrivateUsage]

    def __call__(self, descriptor: int) -> None:
        kind = self._system.strike("fdatasync")
        if kind is not None:
            raise self._system.refusal(kind)
        self._real(descriptor)
