"""Waiting for the file's locks: poll at 50 us, doubling to 1 ms, until a time limit.

The kernel owns the locks, so a dead holder's are gone at once; polling costs a waiter at most a
millisecond and needs no signal or thread.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from .environment import Clock
from .errors import Locked
from .storage import LockName, StorageFile

_FIRST_WAIT = 50e-6
_LONGEST_WAIT = 1e-3

_DOING = {
    LockName.WRITER: "Another process is writing",
    LockName.PRESENCE: "Another process is opening or recovering the file",
    LockName.MAINTENANCE: "Another process is compacting the file",
}


def wait_for(
    file: StorageFile,
    name: LockName,
    *,
    exclusive: bool,
    clock: Clock,
    timeout: float | None,
    path: str,
) -> None:
    """Take a lock, waiting up to ``timeout`` seconds; None waits for ever, 0 fails at once.

    Raises:
        Locked: somebody else held it all that time.
    """
    if file.try_lock(name, exclusive=exclusive):
        return
    started = clock.monotonic()
    wait = _FIRST_WAIT
    while timeout is None or clock.monotonic() - started < timeout:
        clock.sleep(wait)
        if file.try_lock(name, exclusive=exclusive):
            return
        wait = min(2 * wait, _LONGEST_WAIT)
    raise Locked(
        f"{_DOING[name]}; waited {timeout:g} s",
        where=path,
        remedy="Try again, or open it with a larger lock_timeout.",
    )


@contextmanager
def held(
    file: StorageFile,
    name: LockName,
    *,
    exclusive: bool = True,
    clock: Clock,
    timeout: float | None,
    path: str,
) -> Iterator[None]:
    """Hold a lock for the length of a with block."""
    try:
        wait_for(file, name, exclusive=exclusive, clock=clock, timeout=timeout, path=path)
        yield
    finally:
        # Harmless where it was not got; so an exception right after getting it cannot leak it.
        file.unlock(name)
