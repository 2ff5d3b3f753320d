"""The storage interface: every byte that reaches or leaves a disk passes through here.

Owns the two protocols (`Storage`, a folder's namespace, and `StorageFile`, one open file) and the
real implementation over the operating system. Leaves out any knowledge of the format. `memory` and
the simulator in `cerata.fault_injection` implement the same protocols.
"""

import errno
import fcntl
import os
import stat
import struct
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from enum import IntEnum
from typing import Literal, Protocol, TypeAlias

import numpy as np

from .errors import CerataError, Closed, NotFound, StorageFailed
from .limits import SECTOR_SIZE

_SEARCH_STEP = 1 << 20

Buffer: TypeAlias = bytes | bytearray | memoryview
Identity: TypeAlias = tuple[int, int]
"""(device, inode): two paths with the same identity are one file."""


class LockName(IntEnum):
    """The three locks of a file. On disk: never renumber (processes of all versions share them)."""

    WRITER = 0
    """Held while a group is written or a flip is made."""

    PRESENCE = 1
    """Shared by every opener for writing; got exclusively, it proves that one is alone."""

    MAINTENANCE = 2
    """Held, without waiting, by merges and compaction."""


class StorageFile(Protocol):
    """One open file. Calls are positional, so threads may share it."""

    def read_at(self, offset: int, size: int) -> bytes:
        """Return up to ``size`` bytes; fewer only where the file ends."""
        ...

    def search(self, offset: int, stop: int, low: int, high: int) -> list[int]:
        """Return where sectors begin with a number from ``low`` to ``high``, as file offsets.

        The number is a sector's first 8 bytes, little-endian. Whole sectors from ``offset``, a
        multiple of 512, to before ``stop``. Reads all of it, 1 MiB at a time.
        """
        ...

    def write_at(self, offset: int, data: Buffer) -> None:
        """Write all of ``data`` or raise; after an error any part of it may be there."""
        ...

    def sync(self) -> None:
        """Return once everything written to the file before is durable, its size included."""
        ...

    def size(self) -> int: ...

    def set_size(self, size: int) -> None:
        """Grow (with zeros) or cut the file."""
        ...

    def try_lock(self, name: LockName, *, exclusive: bool) -> bool:
        """Take or convert a lock without waiting; False if another open file holds it."""
        ...

    def unlock(self, name: LockName) -> None: ...

    def identity(self) -> Identity: ...

    def close(self) -> None:
        """Release the file and its locks; calling it twice is harmless."""
        ...


class Storage(Protocol):
    """A namespace of files. Paths are strings; relative ones mean what the system says."""

    def open(self, path: str, *, mode: Literal["r", "rw"]) -> StorageFile:
        """Open an existing file. Raises `NotFound` or `StorageFailed`."""
        ...

    def create(self, path: str, *, known_as: str | None = None) -> StorageFile:
        """Create a file that must not exist, readable and writable by its owner only.

        Its errors name it by ``known_as``: the path that a temporary one is made for.
        """
        ...

    def link(self, source: str, target: str) -> bool:
        """Give ``source`` a second name; False if ``target`` exists."""
        ...

    def rename(self, source: str, target: str) -> None:
        """Move ``source`` over ``target`` in one step."""
        ...

    def unlink(self, path: str) -> None:
        """Remove a name; a missing one is not an error."""
        ...

    def sync_dir(self, path: str) -> None:
        """Make the names in the folder that holds ``path`` durable."""
        ...

    def identity(self, path: str) -> Identity | None:
        """Return the identity behind a path, or None where nothing is there."""
        ...

    def siblings(self, path: str) -> list[str]:
        """Return the sorted paths of the files beside ``path``."""
        ...


def search_sectors(
    read_at: Callable[[int, int], bytes], offset: int, stop: int, low: int, high: int
) -> list[int]:
    """Search as `StorageFile.search` says, by reading."""
    found: list[int] = []
    for base in range(offset, stop, _SEARCH_STEP):
        data = read_at(base, min(_SEARCH_STEP, stop - base))
        whole = len(data) // SECTOR_SIZE * SECTOR_SIZE
        words = np.frombuffer(data[:whole], "<u8")[:: SECTOR_SIZE // 8]
        hits = np.flatnonzero((words >= low) & (words <= high))
        found += (base + SECTOR_SIZE * hits).tolist()
    return found


def refused(error: OSError, doing: str, path: str) -> StorageFailed:
    """Turn the system's error into ours, with what to do about the common ones."""
    remedies = {
        errno.ENOSPC: "Free space on the disk and call again.",
        errno.EDQUOT: "Raise the quota and call again.",
        errno.EFBIG: "Raise the file size limit and call again.",
        errno.EMFILE: "Close files or raise the limit (ulimit -n), and call again.",
        errno.ENFILE: "Close files, or raise the system's limit, and call again.",
        errno.EACCES: "Check the permissions of the file and its folder.",
        errno.EPERM: "Check the permissions of the file and its folder.",
        errno.EROFS: "Open it with mode='r', or mount the file system for writing.",
        errno.EISDIR: "Name a file, not a folder.",
        errno.EINVAL: "Name a regular file.",
        errno.ENXIO: "Name a regular file.",
        errno.ENOTDIR: "Name a path whose parts before the last are folders.",
    }
    code = error.errno or 0
    failure = StorageFailed(
        f"Cannot {doing}: {os.strerror(code) if code else error}",
        where=path,
        remedy=remedies.get(code, "Check the disk."),
    )
    failure.errno = error.errno
    return failure


# --- the real disk -------------------------------------------------------------------------------

# OFD locks belong to the open file, not the process: an unrelated close does not drop them, and a
# second open in the same process is excluded. The numbers are Linux's fcntl.h.
_F_OFD_SETLK = 37
_LOCK_BASE = 1 << 62
_HAVE_OFD = sys.platform == "linux"
_OFD_REQUESTS = {
    (name, kind): struct.pack("hhqqi4x", kind, os.SEEK_SET, _LOCK_BASE + name, 1, 0)
    for name in LockName
    for kind in (fcntl.F_RDLCK, fcntl.F_WRLCK, fcntl.F_UNLCK)
}
"""The kernel's ``struct flock``; taking and releasing the writer lock is on every append's path."""

_NOTHING_PENDING = frozenset({errno.EROFS, errno.EINVAL})
"""What a reader's sync may give where nothing can be written. To a writer, ext4 says EROFS when it
gave up after an error and dropped what was pending."""


_CLOSED = (1 << 31) - 1
"""In place of a closed descriptor: no system gives it out, and calls on it fail with EBADF."""


class OsFile:
    """A file of the operating system, through positional reads and writes; never mmap.

    - ``_descriptor`` is `_CLOSED` from before the system closes it, so that a thread that was
      reading meanwhile knows: by then the number may be another file's.
    - ``_owned`` hands the descriptor out once. What takes it also closes it, in one call that no
      interrupt can divide: it is neither kept for ever nor closed twice.
    """

    _owned: Iterator[int] = iter(())

    def __init__(self, descriptor: int, path: str, *, writable: bool) -> None:
        self._owned = iter((descriptor,))
        self._descriptor = descriptor
        self._path = path
        self._harmless = frozenset[int]() if writable else _NOTHING_PENDING

    def read_at(self, offset: int, size: int) -> bytes:
        try:
            data = os.pread(self._descriptor, size, offset)
            while len(data) < size:
                more = os.pread(self._descriptor, size - len(data), offset + len(data))
                if not more:
                    break
                data += more
        except OSError as error:
            raise self._refused(error, "read") from error
        if self._descriptor == _CLOSED:
            raise self._closed()
        return data

    def search(self, offset: int, stop: int, low: int, high: int) -> list[int]:
        return search_sectors(self.read_at, offset, stop, low, high)

    def write_at(self, offset: int, data: Buffer) -> None:
        try:
            written = os.pwrite(self._descriptor, data, offset)
            if written == len(data):
                return
            # A short write is legal on a full disk or at a size limit: the next call says why.
            rest = memoryview(data)
            while written < len(rest):
                step = os.pwrite(self._descriptor, rest[written:], offset + written)
                if step == 0:
                    raise OSError(errno.EIO, "a write made no progress")
                written += step
        except OSError as error:
            raise self._refused(error, "write") from error

    def sync(self) -> None:
        try:
            _flush(self._descriptor)
        except OSError as error:
            if error.errno in self._harmless:
                return
            raise self._refused(error, "sync") from error

    def size(self) -> int:
        return self._status().st_size

    def set_size(self, size: int) -> None:
        try:
            os.ftruncate(self._descriptor, size)
        except OSError as error:
            raise self._refused(error, "resize") from error

    def try_lock(self, name: LockName, *, exclusive: bool) -> bool:
        if not _HAVE_OFD:
            return self._try_flock(name)
        kind = fcntl.F_WRLCK if exclusive else fcntl.F_RDLCK
        return self._ofd(name, kind)

    def unlock(self, name: LockName) -> None:
        if _HAVE_OFD:
            self._ofd(name, fcntl.F_UNLCK)

    def _ofd(self, name: LockName, kind: int) -> bool:
        try:
            fcntl.fcntl(self._descriptor, _F_OFD_SETLK, _OFD_REQUESTS[name, kind])
        except OSError as error:
            if error.errno in (errno.EAGAIN, errno.EACCES):
                return False
            doing = "unlock" if kind == fcntl.F_UNLCK else "lock"
            raise self._refused(error, doing) from error
        return True

    def _try_flock(self, name: LockName) -> bool:
        """Where OFD locks are missing one process has the file: presence stands for all three."""
        if name is not LockName.PRESENCE:
            return True
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError as error:
            raise self._refused(error, "lock") from error
        return True

    def identity(self) -> Identity:
        status = self._status()
        return status.st_dev, status.st_ino

    def close(self) -> None:
        self._descriptor = _CLOSED
        # The system gives it back whatever it says, and what mattered was synced before.
        with suppress(OSError):
            any(map(os.close, self._owned))

    def __del__(self) -> None:
        # An interrupt may have left nobody to close it, and with it go the locks.
        self.close()

    @property
    def number(self) -> int:
        """The descriptor, as the system knows it."""
        return self._descriptor

    def _status(self) -> os.stat_result:
        try:
            return os.fstat(self._descriptor)
        except OSError as error:
            raise self._refused(error, "look at") from error

    def _refused(self, error: OSError, doing: str) -> CerataError:
        return self._closed() if self._descriptor == _CLOSED else refused(error, doing, self._path)

    def _closed(self) -> Closed:
        return Closed("The file was closed meanwhile", where=self._path, remedy="Open it again.")


def _full_sync(descriptor: int) -> None:
    """On macOS plain fsync stops at the drive's cache; F_FULLFSYNC goes through it."""
    try:
        fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)  # type: ignore[attr-defined,unused-ignore]
    except OSError as error:
        if error.errno not in (errno.ENOTSUP, errno.EINVAL, errno.ENOTTY):
            raise
        os.fsync(descriptor)


_flush: Callable[[int], None] = (
    _full_sync if sys.platform == "darwin" else getattr(os, "fdatasync", os.fsync)
)


class OsStorage:
    """The operating system's files."""

    def open(self, path: str, *, mode: Literal["r", "rw"]) -> StorageFile:
        flags = os.O_RDONLY if mode == "r" else os.O_RDWR
        return self._open(path, flags, path)

    def create(self, path: str, *, known_as: str | None = None) -> StorageFile:
        return self._open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, known_as or path)

    def _open(self, path: str, flags: int, name: str) -> OsFile:
        """Open above the standard streams: a stray print must never write into a store."""
        try:
            # Without O_NONBLOCK a pipe of that name would wait for its other end.
            file = self._opened(path, flags | os.O_NONBLOCK, name)
            descriptor = file.number
            try:
                kind = os.fstat(descriptor).st_mode
                if not stat.S_ISREG(kind):
                    code = errno.EISDIR if stat.S_ISDIR(kind) else errno.EINVAL
                    raise OSError(code, "is not a regular file")
                if descriptor > 2:
                    return file
                higher = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 3)
                file.close()
                return OsFile(higher, name, writable=flags & os.O_RDWR != 0)
            except BaseException:
                file.close()
                raise
        except FileNotFoundError as error:
            raise NotFound(
                "There is no such file", where=name, remedy="Check the path for a typing error."
            ) from error
        except OSError as error:
            raise refused(error, "open", name) from error

    def _opened(self, path: str, flags: int, name: str) -> OsFile:
        writable = flags & os.O_RDWR != 0
        return OsFile(os.open(path, flags, 0o600), name, writable=writable)

    def link(self, source: str, target: str) -> bool:
        try:
            os.link(source, target)
        except FileExistsError:
            return False
        except FileNotFoundError as error:
            raise NotFound(
                "There is no such file", where=source, remedy="Check the path for a typing error."
            ) from error
        except OSError as error:
            raise refused(error, "create", target) from error
        return True

    def rename(self, source: str, target: str) -> None:
        try:
            os.rename(source, target)
        except OSError as error:
            raise refused(error, "rename", target) from error

    def unlink(self, path: str) -> None:
        try:
            os.unlink(path)
        except FileNotFoundError:
            return
        except OSError as error:
            raise refused(error, "remove", path) from error

    def sync_dir(self, path: str) -> None:
        try:
            folder = self._opened(os.path.dirname(path) or ".", os.O_RDONLY, path)
            try:
                os.fsync(folder.number)
            finally:
                folder.close()
        except OSError as error:
            # Some file systems have no sync of folders.
            if error.errno != errno.EINVAL:
                raise refused(error, "sync the folder of", path) from error

    def identity(self, path: str) -> Identity | None:
        try:
            status = os.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise refused(error, "look at", path) from error
        return status.st_dev, status.st_ino

    def siblings(self, path: str) -> list[str]:
        folder = os.path.dirname(path)
        try:
            # Joined as the caller wrote it, so that "./a" finds "./a.b".
            return sorted(os.path.join(folder, name) for name in os.listdir(folder or "."))
        except OSError:
            return []
