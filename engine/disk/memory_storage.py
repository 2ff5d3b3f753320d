"""Storage in memory: for ``:memory:`` stores, and for tests that inspect the bytes.

Owns an implementation of the protocols of `storage` in which a sync does nothing.
"""

import errno
import threading
from contextlib import suppress
from itertools import count
from queue import Empty, SimpleQueue
from typing import Literal

from ..errors import NotFound
from ..limits import PAGE_SIZE
from .storage import SPACE_UNKNOWN, Buffer, Identity, LockName, StorageFile, refused, search_sectors
from .watch import Watch


class MemoryNode:
    """The bytes of a file in memory and the holders of its locks."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.data = bytearray()
        self.holders: dict[LockName, dict[int, bool]] = {name: {} for name in LockName}
        self.files = 0
        """The open files of the node."""
        self.watches: list[MemoryWatch] = []

    @property
    def size(self) -> int:
        return len(self.data)

    def read(self, offset: int, size: int) -> bytes:
        return bytes(memoryview(self.data)[offset : offset + size])

    def write(self, offset: int, data: Buffer) -> None:
        self.data.extend(bytes(max(0, offset - len(self.data))))
        self.data[offset : offset + len(data)] = data

    def set_size(self, size: int) -> None:
        del self.data[size:]
        self.data.extend(bytes(size - len(self.data)))

    def release(self) -> None:
        """Release what the node holds outside memory, after its last file was closed."""


class SharedNode(MemoryNode):
    """A file in memory that shares its first bytes with another file, and keeps changes to itself.

    - The shared bytes must not change in the other file, unless `write` has replaced them here.
    - ``data`` are the bytes after them.
    """

    def __init__(self, number: int, base: StorageFile, shared: int) -> None:
        super().__init__(number)
        self._base = base
        self._shared = shared
        self._pages: dict[int, bytearray] = {}

    @property
    def size(self) -> int:
        return self._shared + len(self.data)

    def read(self, offset: int, size: int) -> bytes:
        stop = min(offset + size, self._shared)
        if offset >= stop:
            return super().read(offset - self._shared, size)
        data = bytearray(self._base.read_at(offset, stop - offset))
        for page in range(offset // PAGE_SIZE, (stop - 1) // PAGE_SIZE + 1):
            own = self._pages.get(page)
            if own is not None:
                start = page * PAGE_SIZE
                first, last = max(offset, start), min(stop, start + PAGE_SIZE)
                data[first - offset : last - offset] = own[first - start : last - start]
        return bytes(data) + super().read(0, offset + size - stop)

    def write(self, offset: int, data: Buffer) -> None:
        stop = min(offset + len(data), self._shared)
        for page in range(offset // PAGE_SIZE, -(-stop // PAGE_SIZE)):
            start = page * PAGE_SIZE
            own = self._pages.get(page)
            if own is None:
                own = self._pages[page] = bytearray(self._base.read_at(start, PAGE_SIZE))
            first, last = max(offset, start), min(stop, start + PAGE_SIZE)
            own[first - start : last - start] = data[first - offset : last - offset]
        rest = data[max(0, stop - offset) :]
        if rest:
            super().write(max(offset, stop) - self._shared, rest)

    def set_size(self, size: int) -> None:
        self._shared = min(self._shared, size)
        super().set_size(size - self._shared)

    def release(self) -> None:
        self._base.close()


class MemoryWatch:
    """A watch of a file in memory, which each write wakes."""

    def __init__(self, watches: "list[MemoryWatch]") -> None:
        # A queue, since a signal handler may put into it in the middle of any call.
        self._changes = SimpleQueue[None]()
        self._watches = watches
        watches.append(self)

    def wait(self, seconds: float) -> None:
        try:
            self._changes.get(timeout=seconds)
            while True:
                self._changes.get_nowait()
        except Empty:
            return

    def wake(self) -> None:
        if self._changes.empty():
            self._changes.put(None)

    def close(self) -> None:
        with suppress(ValueError):
            self._watches.remove(self)


class MemoryFile:
    """An open file of `MemoryStorage`; a sync does nothing."""

    def __init__(self, node: MemoryNode, guard: threading.RLock) -> None:
        self._node = node
        self._guard = guard
        self._is_open = True
        with guard:
            node.files += 1

    def read_at(self, offset: int, size: int) -> bytes:
        with self._guard:
            return self._node.read(offset, size)

    def search(self, offset: int, stop: int, low: int, high: int) -> list[int]:
        return search_sectors(self.read_at, offset, stop, low, high)

    def write_at(self, offset: int, data: Buffer) -> None:
        with self._guard:
            self._node.write(offset, data)
            for watch in tuple(self._node.watches):
                watch.wake()

    def sync(self) -> None:
        return

    def size(self) -> int:
        return self._node.size

    def set_size(self, size: int) -> None:
        with self._guard:
            self._node.set_size(size)

    def try_lock(self, name: LockName, *, exclusive: bool) -> bool:
        with self._guard:
            holders = self._node.holders[name]
            for holder, holds_exclusively in holders.items():
                if holder != id(self) and (exclusive or holds_exclusively):
                    return False
            holders[id(self)] = exclusive
            return True

    def unlock(self, name: LockName) -> None:
        with self._guard:
            self._node.holders[name].pop(id(self), None)

    def identity(self) -> Identity:
        return 0, self._node.number

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        for name in LockName:
            self.unlock(name)
        with self._guard:
            is_last = self._is_open and self._node.files == 1
            self._node.files -= self._is_open
            self._is_open = False
            if is_last:
                self._node.release()


class MemoryStorage:
    """Files that live as long as this object: ``:memory:`` stores, and tests."""

    def __init__(self) -> None:
        self._guard = threading.RLock()
        self._nodes: dict[str, MemoryNode] = {}
        self._numbers = count()

    def open(self, path: str, *, mode: Literal["r", "rw"]) -> StorageFile:
        with self._guard:
            node = self._nodes.get(path)
            if node is None:
                raise NotFound(
                    "There is no such file", where=path, remedy="Check the path for a typing error."
                )
            return MemoryFile(node, self._guard)

    def create(self, path: str, *, known_as: str | None = None) -> StorageFile:
        with self._guard:
            if path in self._nodes:
                raise refused(FileExistsError(errno.EEXIST, "exists"), "create", known_as or path)
            node = self._nodes[path] = MemoryNode(next(self._numbers))
            return MemoryFile(node, self._guard)

    def share(self, path: str, base: StorageFile, size: int) -> StorageFile:
        """Create a file with the first bytes of another file, and return it open.

        The new file reads these bytes from the other file, and keeps changes to itself.

        Args:
            path: The new file, which must not exist.
            base: The other file; closed with the last file of the new one.
            size: The number of shared bytes.
        """
        with self._guard:
            assert path not in self._nodes
            node = self._nodes[path] = SharedNode(next(self._numbers), base, size)
            return MemoryFile(node, self._guard)

    def link(self, source: str, target: str) -> bool:
        with self._guard:
            if target in self._nodes:
                return False
            if source not in self._nodes:
                raise NotFound(
                    "There is no such file",
                    where=source,
                    remedy="Check the path for a typing error.",
                )
            self._nodes[target] = self._nodes[source]
            return True

    def rename(self, source: str, target: str) -> None:
        with self._guard:
            node = self._nodes.pop(source)
            replaced = self._nodes.get(target)
            self._nodes[target] = node
            if replaced is not None:
                # The watches of a path follow the file that replaces its file.
                node.watches = replaced.watches
                for watch in node.watches:
                    watch.wake()

    def unlink(self, path: str) -> None:
        with self._guard:
            self._nodes.pop(path, None)

    def sync_dir(self, path: str) -> None:
        return

    def identity(self, path: str) -> Identity | None:
        node = self._nodes.get(path)
        return None if node is None else (0, node.number)

    def siblings(self, path: str) -> list[str]:
        folder = path.rpartition("/")[0]
        return sorted(name for name in self._nodes if name.rpartition("/")[0] == folder)

    def watch(self, path: str) -> Watch | None:
        with self._guard:
            node = self._nodes.get(path)
            return None if node is None else MemoryWatch(node.watches)

    def real_path(self, path: str) -> str:
        return path

    def link_count(self, path: str) -> int:
        node = self._nodes.get(path)
        return sum(1 for other in self._nodes.values() if other is node and node is not None)

    def copy_permissions(self, source: str, target: str) -> None:
        return

    def free_space(self, path: str) -> int:
        return SPACE_UNKNOWN


class PrivateMemory(MemoryStorage):
    """The memory of a single handle: nothing can open its files after that handle."""
