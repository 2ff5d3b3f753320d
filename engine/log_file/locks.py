"""Waiting for the file's locks: poll at 50 us, doubling to 1 ms, until a time limit.

The kernel owns the locks, so those of a dead holder disappear at once; polling costs a waiter at
most a millisecond and needs no signal or thread.
"""

from ..disk.environment import Clock
from ..disk.storage import LockName, StorageFile
from ..errors import Locked, StorageFailed

_FIRST_WAIT = 50e-6
_LONGEST_WAIT = 1e-3

_DOING = {
    LockName.WRITER: "Another process is writing",
    LockName.PRESENCE: "Another process is opening or recovering the file",
    LockName.MAINTENANCE: "Another process is saving a checkpoint",
    LockName.COMPACTION: "Another process is compacting the file",
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
        Locked: another process or handle held the lock for the whole time.
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
        remedy="Try again, or with a larger OpenOptions.lock_timeout "
        "(--lock-timeout at the command line).",
    )


class held:  # noqa: N801
    """Holds a lock for the length of a with block; a class, since every append takes one."""

    __slots__ = ("_clock", "_exclusive", "_file", "_name", "_path", "_timeout")

    def __init__(
        self,
        file: StorageFile,
        name: LockName,
        *,
        exclusive: bool = True,
        clock: Clock,
        timeout: float | None,
        path: str,
    ) -> None:
        self._file = file
        self._name = name
        self._exclusive = exclusive
        self._clock = clock
        self._timeout = timeout
        self._path = path

    def __enter__(self) -> None:
        try:
            wait_for(
                self._file,
                self._name,
                exclusive=self._exclusive,
                clock=self._clock,
                timeout=self._timeout,
                path=self._path,
            )
        except BaseException:
            # Harmless without the lock; and an interrupt right after taking it cannot leak it.
            self._release()
            raise

    def __exit__(self, *_: object) -> None:
        self._release()

    def _release(self) -> None:
        try:
            self._file.unlock(self._name)
        except StorageFailed:
            # Closing releases the lock, which would otherwise block every writer for ever.
            self._file.close()
            raise
