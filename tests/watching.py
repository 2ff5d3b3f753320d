"""The ordering monitor around every log that a test opens, whichever storage it is on.

Owns the hooks: files of the real and of the in-memory storage are wrapped as they are opened, and
what a log says to be durable is held against what was synced. A test that damages files, stands
in for a broken disk, or measures speed says ``@pytest.mark.unwatched("why")``. What other
processes do to a file is not seen: where they take part, the file's pages are believed.
"""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import wraps
from typing import Any

import pytest

from cerata.engine.disk.memory_storage import MemoryStorage
from cerata.engine.disk.storage import OsStorage, Storage, StorageFile
from cerata.engine.head import Appended
from cerata.engine.log import Log
from cerata.fault_injection.simulation.file_layout import FileGeometry
from cerata.fault_injection.simulation.write_order_monitor import MonitoredFile, OrderingMonitor

Opening = Callable[..., StorageFile]


class Watch:
    """The monitors of one test: one for the machine's files, one for each storage in memory."""

    def __init__(self) -> None:
        self._monitors: dict[int, OrderingMonitor] = {}
        self._storages: list[Storage] = []

    def monitor(self, storage: Storage) -> OrderingMonitor:
        """Return the monitor of the disk that a storage is a door to."""
        # Inode numbers are the machine's; those in memory are of one storage.
        key = 0 if isinstance(storage, OsStorage) else id(storage)
        if key not in self._monitors:
            self._monitors[key] = OrderingMonitor(FileGeometry())
            # An id is its storage's as long as that lives.
            self._storages.append(storage)
        return self._monitors[key]

    @property
    def violations(self) -> list[str]:
        return [what for monitor in self._monitors.values() for what in monitor.violations]

    @property
    def writes(self) -> int:
        """How many writes were looked at."""
        return sum(monitor.writes for monitor in self._monitors.values())


@contextmanager
def watched() -> Generator[Watch, None, None]:
    """Watch every log that is opened in a with block.

    Raises:
        OrderViolation: at the write, sync or acknowledgement that comes in a wrong order.
    """
    watch = Watch()
    with pytest.MonkeyPatch.context() as patch:
        for storage in (OsStorage, MemoryStorage):
            patch.setattr(storage, "open", _watching(storage.open, watch, fresh=False))
            patch.setattr(storage, "create", _watching(storage.create, watch, fresh=True))
        patch.setattr(Log, "append", _watching_append(Log.append))
        yield watch


def _watching(real: Opening, watch: Watch, *, fresh: bool) -> Opening:
    @wraps(real)
    def opened(self: Storage, *arguments: Any, **options: Any) -> StorageFile:
        file = real(self, *arguments, **options)
        return MonitoredFile(file, watch.monitor(self), id(file), fresh=fresh)

    return opened


def _watching_append(real: Callable[..., Appended]) -> Callable[..., Appended]:
    @wraps(real)
    def append(self: Log, *arguments: Any, **options: Any) -> Appended:
        appended = real(self, *arguments, **options)
        file = self.file.file
        if appended.durable and isinstance(file, MonitoredFile):
            file.acknowledge(appended.last_seq)
        return appended

    return append
