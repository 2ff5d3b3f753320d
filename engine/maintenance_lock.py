"""The maintenance lock of an open log, held across calls.

Owns taking the lock without waiting, and releasing the lock of the file on which it was taken.
"""

from contextlib import suppress

from .errors import CerataError
from .log import Log
from .storage import LockName, StorageFile


class MaintenanceLock:
    """The maintenance lock; it excludes no reader and no writer, only other checkpoints."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._file: StorageFile | None = None

    def take(self) -> bool:
        """Take the lock without waiting; return whether this handle has it."""
        file = self._log.file.file
        if self._file is file:
            return True
        self.release()
        if not file.try_lock(LockName.MAINTENANCE, exclusive=True):
            return False
        self._file = file
        return True

    def release(self) -> None:
        """Release the lock; closing the log releases it, too."""
        file = self._file
        self._file = None
        if file is not None:
            # A file that cannot release its lock is closed, or will be: then no lock is left.
            with suppress(CerataError):
                file.unlock(LockName.MAINTENANCE)
