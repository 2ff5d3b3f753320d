"""The storage interface: every byte that reaches or leaves a disk passes through here.

Owns the two protocols (`Storage`, a folder's namespace, and `StorageFile`, an open file) and the
implementation over the operating system. Leaves out any knowledge of the format. `memory_storage`
and the simulator in `cerata.fault_injection` implement the same protocols.
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
from struct import Struct
from typing import Final, Literal, Protocol, TypeAlias

from ..errors import CerataError, Closed, NotFound
from ..errors import refused as refused  # noqa: PLC0414 - most readers import it from here
from ..late import loading
from ..limits import SECTOR_SIZE
from .watch import Watch

_SEARCH_STEP = 1 << 20
_FIRST_WORD = Struct(f"<Q{SECTOR_SIZE - 8}x")
"""The first number of a sector."""
_COPY_STEP = 64 << 20

Buffer: TypeAlias = bytes | bytearray | memoryview
Identity: TypeAlias = tuple[int, int]
"""(device, inode): two paths with the same identity are one file."""


class LockName(IntEnum):
    """The four locks of a file. On disk: never renumber (processes of all versions share them)."""

    WRITER = 0
    """Held during the write of a group or a flip."""

    PRESENCE = 1
    """Shared by every opener for writing; an exclusive lock proves that no other has the file."""

    MAINTENANCE = 2
    """Taken without waiting, by checkpoints that are saved in steps."""

    COMPACTION = 3
    """Held for the whole of a compaction, so that no other puts a file at the path."""


class StorageFile(Protocol):
    """An open file. Calls are positional, so threads may share it."""

    def read_at(self, offset: int, size: int) -> bytes:
        """Return ``size`` bytes, or fewer at the end of the file.

        Args:
            offset: bytes from the start of the file.
            size: bytes to read.
        """
        ...

    def search(self, offset: int, stop: int, low: int, high: int) -> list[int]:
        """Return the offsets of sectors that begin with a number from ``low`` to ``high``.

        The number is a sector's first 8 bytes, little-endian. Only whole sectors before ``stop``
        count. Reads the whole range, 1 MiB at a time.

        Args:
            offset: start of the range, a multiple of 512.
            stop: end of the range, exclusive.
            low: least number that matches.
            high: greatest number that matches.
        """
        ...

    def write_at(self, offset: int, data: Buffer) -> None:
        """Write all of ``data`` or raise; after an error the file may hold any part of the data.

        Args:
            offset: bytes from the start of the file.
            data: the bytes to write.
        """
        ...

    def sync(self) -> None:
        """Return once all earlier writes to the file are durable, its size included."""
        ...

    def size(self) -> int: ...

    def set_size(self, size: int) -> None:
        """Grow (with zeros) or cut the file.

        Args:
            size: the new size in bytes.
        """
        ...

    def try_lock(self, name: LockName, *, exclusive: bool) -> bool:
        """Take or convert a lock without waiting; return False if another open file holds the lock.

        Args:
            name: which lock.
            exclusive: True for an exclusive lock, False for a shared lock.
        """
        ...

    def unlock(self, name: LockName) -> None: ...

    def identity(self) -> Identity: ...

    def close(self) -> None:
        """Release the file and its locks; a second call does nothing."""
        ...


class Storage(Protocol):
    """A namespace of files. Paths are strings; the system resolves relative paths."""

    def open(self, path: str, *, mode: Literal["r", "rw"]) -> StorageFile:
        """Open an existing file. Raises `NotFound` or `StorageFailed`.

        Args:
            path: the file.
            mode: "r" for reading, "rw" for reading and writing.
        """
        ...

    def create(self, path: str, *, known_as: str | None = None) -> StorageFile:
        """Create a file that must not exist, readable and writable by its owner only.

        Args:
            path: the new file.
            known_as: the path in error messages: the final name of a temporary file; default
                ``path``.
        """
        ...

    def link(self, source: str, target: str) -> bool:
        """Give ``source`` a second name; return False if ``target`` exists.

        Args:
            source: an existing file.
            target: the new name.
        """
        ...

    def rename(self, source: str, target: str) -> None:
        """Move ``source`` over ``target`` in one step.

        Args:
            source: an existing file.
            target: its new name; a file there is replaced.
        """
        ...

    def unlink(self, path: str) -> None:
        """Remove a name; a missing name is not an error.

        Args:
            path: the name.
        """
        ...

    def sync_dir(self, path: str) -> None:
        """Make the names in the folder that holds ``path`` durable.

        Args:
            path: any file in the folder.
        """
        ...

    def identity(self, path: str) -> Identity | None:
        """Return the identity of the file at a path, or None if the path names no file.

        Args:
            path: the file.
        """
        ...

    def siblings(self, path: str) -> list[str]:
        """Return the sorted paths of the files in the folder of ``path``.

        Args:
            path: a file in the folder.
        """
        ...

    def watch(self, path: str) -> Watch | None:
        """Return a watch of the file at a path; None if this storage reports no changes.

        Args:
            path: an existing file.
        """
        ...

    def real_path(self, path: str) -> str:
        """Return the path of the file behind symbolic links.

        Args:
            path: the file.
        """
        ...

    def link_count(self, path: str) -> int:
        """Return how many names the file at a path has; 0 if the path names no file.

        Args:
            path: the file.
        """
        ...

    def copy_permissions(self, source: str, target: str) -> None:
        """Give a file the permissions of another, and its owner if the system allows.

        Args:
            source: the file that has them.
            target: the file that replaces it.
        """
        ...

    def free_space(self, path: str) -> int:
        """Return the bytes that this process can still write to the disk that holds ``path``.

        Args:
            path: any file in a folder of the disk.
        """
        ...


SPACE_UNKNOWN: Final = 1 << 62
"""The free space of a storage without a limit."""


def search_sectors(
    read_at: Callable[[int, int], bytes], offset: int, stop: int, low: int, high: int
) -> list[int]:
    """Implement `StorageFile.search` by reads."""
    offsets: list[int] = []
    for base in range(offset, stop, _SEARCH_STEP):
        data = read_at(base, min(_SEARCH_STEP, stop - base))
        whole = len(data) // SECTOR_SIZE * SECTOR_SIZE
        words = _FIRST_WORD.iter_unpack(data[:whole])
        offsets += [
            base + SECTOR_SIZE * sector
            for sector, (word,) in enumerate(words)
            if low <= word <= high
        ]
    return offsets


def copy_start(
    source: StorageFile, target: StorageFile, size: int, progress: Callable[[int], None]
) -> None:
    """Copy the first bytes of a file into an empty file; two files of the system, by the system.

    A file system that can share blocks between files then shares them, and copies nothing.

    Args:
        source: The file to read.
        target: The file to write.
        size: The number of bytes.
        progress: Called with the number of copied bytes.
    """
    at = 0
    while at < size:
        step = min(_COPY_STEP, size - at)
        if isinstance(source, OsFile) and isinstance(target, OsFile):
            copied = source.copy_to(target, at, step)
        else:
            copied = 0
        if not copied:
            data = source.read_at(at, min(step, _SEARCH_STEP))
            if not data:
                return
            target.write_at(at, data)
            copied = len(data)
        at += copied
        progress(at)


# --- the real disk -------------------------------------------------------------------------------

# OFD locks belong to the open file, not the process: an unrelated close does not drop them, and
# they exclude a second open in the same process. The numbers are those of Linux's fcntl.h.
_F_OFD_SETLK = 37
_LOCK_BASE = 1 << 62
_HAVE_OFD = sys.platform == "linux"
_OFD_REQUESTS = {
    (name, kind): struct.pack("hhqqi4x", kind, os.SEEK_SET, _LOCK_BASE + name, 1, 0)
    for name in LockName
    for kind in (fcntl.F_RDLCK, fcntl.F_WRLCK, fcntl.F_UNLCK)
}
"""The kernel's ``struct flock``, encoded once: every append takes and releases the writer lock."""

_CANNOT_COPY = frozenset({errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM})
"""Errors of a copy between two file systems, or on a file system that cannot copy by itself."""

_NOTHING_PENDING = frozenset({errno.EROFS, errno.EINVAL})
"""Errors that a reader's sync may raise on a read-only file. For a writer EROFS is real: ext4
raises it after an error that made it drop pending writes."""


_CLOSED = (1 << 31) - 1
"""Replaces a closed descriptor: no system assigns this number, and calls on it fail with EBADF."""


class OsFile:
    """A file of the operating system, through positional reads and writes; never mmap.

    - ``_descriptor`` becomes `_CLOSED` before the system closes the descriptor, so that a thread in
      the middle of a read notices: the number may already belong to another file.
    - ``_owned`` yields the descriptor once. The call that takes it also closes it and cannot be
      interrupted, so the descriptor neither leaks nor is closed twice.
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
            # A short write is legal on a full disk or at a size limit; the next call gives the
            # reason.
            rest = memoryview(data)
            while written < len(rest):
                step = os.pwrite(self._descriptor, rest[written:], offset + written)
                if step == 0:
                    raise OSError(errno.EIO, "a write made no progress")
                written += step
        except OSError as error:
            raise self._refused(error, "write") from error

    def copy_to(self, target: "OsFile", offset: int, size: int) -> int:
        """Copy bytes to the same offset of another file; return their number.

        Returns 0 if the system cannot copy between the two files, or at the end of this file.

        Args:
            target: The file to write.
            offset: Bytes from the start of both files.
            size: Bytes to copy.
        """
        if not hasattr(os, "copy_file_range"):
            return 0
        try:
            return os.copy_file_range(self._descriptor, target._descriptor, size, offset, offset)
        except OSError as error:
            if error.errno in _CANNOT_COPY:
                return 0
            raise target._refused(error, "write") from error

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
        """Lock the whole file for one process if the system lacks OFD locks.

        The presence lock then replaces all four.
        """
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
        # The system releases the descriptor even if it reports an error, and the data is synced.
        with suppress(OSError):
            any(map(os.close, self._owned))

    def __del__(self) -> None:
        # An interrupt may have skipped `close`; closing the descriptor releases its locks.
        self.close()

    @property
    def number(self) -> int:
        """The descriptor's number in the system."""
        return self._descriptor

    def _status(self) -> os.stat_result:
        try:
            return os.fstat(self._descriptor)
        except OSError as error:
            raise self._refused(error, "look at") from error

    def _refused(self, error: OSError, doing: str) -> CerataError:
        return self._closed() if self._descriptor == _CLOSED else refused(error, doing, self._path)

    def _closed(self) -> Closed:
        return Closed("The file is closed", where=self._path, remedy="Open it again.")


def _full_sync(descriptor: int) -> None:
    """Flush through the drive's cache: on macOS plain fsync stops there, F_FULLFSYNC does not."""
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
        """Open with a descriptor above 2: a stray print must never write into a store."""
        try:
            # Without O_NONBLOCK, opening a named pipe would wait for its other end.
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
            # Some file systems cannot sync folders.
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
            # Joined with the caller's spelling, so that "./a" finds "./a.b".
            return sorted(os.path.join(folder, name) for name in os.listdir(folder or "."))
        except OSError:
            return []

    def watch(self, path: str) -> Watch | None:
        if sys.platform != "linux":
            return None
        with loading("the part that watches files"):
            from .inotify import file_watch

        return file_watch(path)

    def real_path(self, path: str) -> str:
        return os.path.realpath(path)

    def link_count(self, path: str) -> int:
        try:
            return os.stat(path).st_nlink
        except (FileNotFoundError, NotADirectoryError):
            return 0
        except OSError as error:
            raise refused(error, "look at", path) from error

    def copy_permissions(self, source: str, target: str) -> None:
        try:
            status = os.stat(source)
            with suppress(PermissionError):
                os.chown(target, status.st_uid, status.st_gid)
            os.chmod(target, stat.S_IMODE(status.st_mode))
        except OSError as error:
            raise refused(error, "set the permissions of", target) from error

    def free_space(self, path: str) -> int:
        try:
            disk = os.statvfs(os.path.dirname(path) or ".")
        except OSError:
            # A write that finds no space raises.
            return SPACE_UNKNOWN
        return disk.f_bavail * disk.f_frsize
