"""Storage in memory: for ``:memory:`` stores, and for tests that inspect the bytes.

Owns an implementation of the protocols of `storage` in which a sync does nothing.
"""

import errno
import threading
from itertools import count
from typing import Literal

from .errors import NotFound
from .storage import Buffer, Identity, LockName, StorageFile, refused, search_sectors


class MemoryNode:
    """The bytes of a file in memory and the holders of its locks."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.data = bytearray()
        self.holders: dict[LockName, dict[int, bool]] = {name: {} for name in LockName}


class MemoryFile:
    """An open file of `MemoryStorage`; a sync does nothing."""

    def __init__(self, node: MemoryNode, guard: threading.RLock) -> None:
        self._node = node
        self._guard = guard

    def read_at(self, offset: int, size: int) -> bytes:
        with self._guard:
            return bytes(memoryview(self._node.data)[offset : offset + size])

    def search(self, offset: int, stop: int, low: int, high: int) -> list[int]:
        return search_sectors(self.read_at, offset, stop, low, high)

    def write_at(self, offset: int, data: Buffer) -> None:
        with self._guard:
            stored = self._node.data
            stored.extend(bytes(max(0, offset - len(stored))))
            stored[offset : offset + len(data)] = data

    def sync(self) -> None:
        return

    def size(self) -> int:
        return len(self._node.data)

    def set_size(self, size: int) -> None:
        with self._guard:
            stored = self._node.data
            del stored[size:]
            stored.extend(bytes(size - len(stored)))

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

    def close(self) -> None:
        for name in LockName:
            self.unlock(name)


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
            self._nodes[target] = self._nodes.pop(source)

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


class PrivateMemory(MemoryStorage):
    """The memory of a single handle: nothing can open its files after that handle."""
