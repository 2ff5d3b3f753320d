"""A disk in memory that several simulated processes share, and that records every operation.

Owns `SimulatedDisk` (the bytes, names, locks and the trace), `SimulatedProcess` (a `Storage`) and
`SimulatedFile` (a `StorageFile`). Leaves out crashes: the disk always obeys; the states that a
power loss may leave are derived from the trace afterwards.

Invariants:
- a file belongs to the process that opened it, and a lock to the open file (OFD semantics);
- a killed process releases its locks, closes nothing, and can never reach the disk again;
- with a `turn` hook, every operation passes through it first, so a scheduler can switch there.
"""

import errno
from collections.abc import Callable
from typing import Any, Literal

from cerata.engine.disk.storage import (
    SPACE_UNKNOWN,
    Buffer,
    Identity,
    LockName,
    refused,
    search_sectors,
)
from cerata.engine.errors import Closed, NotFound, StorageFailed

from ..crash_states.operations import (
    ACK,
    SECTOR,
    AnyOperation,
    Kill,
    Lock,
    Mark,
    Name,
    SetSize,
    Sync,
    SyncNames,
    Write,
)
from ..crash_states.readings import Reading


class ProcessKilled(BaseException):
    """Raised in a simulated process that was killed; no handler of the engine may catch it."""


_LOCKS = tuple(LockName)


class Node:
    """One inode: its bytes, its locks, and how often each lock changed hands."""

    __slots__ = ("bad", "changes", "data", "holders", "met", "number", "sync_errors")

    def __init__(self, number: int, data: Buffer = b"") -> None:
        self.number = number
        # A bytearray is adopted, not copied: a crash image is built for one recovery alone.
        self.data = data if isinstance(data, bytearray) else bytearray(data)
        self.holders: dict[LockName, dict[int, bool]] = {name: {} for name in _LOCKS}
        self.changes = [0] * len(_LOCKS)
        self.bad: dict[int, int] = {}
        """Sectors that cannot be read, with the remaining failures of each; below 0 for ever."""
        self.met = 0
        """How many reads touched a bad sector."""
        self.sync_errors = 0
        """Syncs that failed; each open file reports a failure once, as on Linux."""

    def check_readable(self, offset: int, size: int) -> None:
        """Raise if a read touches a bad sector, and count down the failures of that sector."""
        for sector in range(offset // SECTOR, -(-(offset + size) // SECTOR)):
            left = self.bad.get(sector, 0)
            if left:
                self.met += 1
                self.bad[sector] = left - 1
                where = f"inode {self.number}, sector {sector}"
                raise refused(OSError(errno.EIO, "bad sector"), "read", where)


class SimulatedDisk:
    """Files, names and locks, and the trace of every operation on them.

    ``record=False`` keeps no trace, for recoveries that are only read.
    """

    def __init__(self, *, record: bool = True) -> None:
        self.trace: list[AnyOperation] = []
        self.names: dict[str, Node] = {}
        self.step = ""
        """The label of all operations from here on; a workload sets it."""
        self.turn: Callable[[SimulatedProcess, str], None] | None = None
        """Called before each operation with the process and the operation's name."""
        self.recording = record
        self.fail_sync = 0
        """The sync that fails, counted from the next sync; 0 for none."""
        self.operations = 0
        """The number of operations of all processes, reads included."""
        self.reading: Reading | None = None
        """Records the reads of the file that was there from the start; None records nothing."""
        self._nodes = 0
        self._processes = 0

    def process(self, name: str | None = None) -> "SimulatedProcess":
        """Return a new process on this disk."""
        self._processes += 1
        return SimulatedProcess(self, name or f"process {self._processes}")

    def put(self, path: str, data: Buffer) -> Node:
        """Place a file without recording it: the state before the story begins."""
        node = self.names[path] = self.new_node(data)
        return node

    def new_node(self, data: Buffer = b"") -> Node:
        self._nodes += 1
        return Node(self._nodes, data)

    def acknowledge(self, seq: int, process: str = "", node: int = 0) -> None:
        """Record that a caller received an acknowledgement of all events up to ``seq``.

        ``node`` is the inode of the acknowledged file, or 0 if there is only one file.
        """
        self.record(Mark, process, node, label=ACK, seq=seq)

    def record(self, kind: type[AnyOperation], process: str, node: int = 0, **fields: Any) -> None:
        """Append an operation to the trace, if there is one."""
        if self.recording:
            self.trace.append(kind(process=process, step=self.step, node=node, **fields))


class SimulatedFile:
    """An open file of a simulated process."""

    def __init__(self, process: "SimulatedProcess", node: Node, *, writable: bool) -> None:
        self._process = process
        self._disk = process.disk
        self._node = node
        self._writable = writable
        self._open = True
        self._sync_errors = node.sync_errors

    @property
    def node(self) -> Node:
        return self._node

    def _begin(self, doing: str) -> None:
        process = self._process
        if process.killed:
            raise ProcessKilled
        if not self._open:
            raise Closed(
                f"The file was closed before this {doing}",
                where=f"inode {self._node.number}",
                remedy="Open the file again.",
            )
        if doing != "lock" and process.refused_locks:
            process.refused_locks.clear()
        self._disk.operations += 1
        if self._disk.turn is not None:
            self._disk.turn(process, doing)

    def _begin_write(self, doing: str) -> None:
        self._begin(doing)
        if not self._writable:
            raise refused(OSError(errno.EBADF, "read-only"), doing, f"inode {self._node.number}")

    def read_at(self, offset: int, size: int) -> bytes:
        self._begin("read")
        if self._node.bad:
            self._node.check_readable(offset, size)
        if self._disk.reading is not None:
            self._disk.reading.read(offset, size)
        return self._read(offset, size)

    def search(self, offset: int, stop: int, low: int, high: int) -> list[int]:
        self._begin("search")
        if self._node.bad:
            self._node.check_readable(offset, stop - offset)
        if self._disk.reading is not None:
            self._disk.reading.searched(offset, stop, low, high)
        return search_sectors(self._read, offset, stop, low, high)

    def _read(self, offset: int, size: int) -> bytes:
        return bytes(memoryview(self._node.data)[offset : offset + size])

    def write_at(self, offset: int, data: Buffer) -> None:
        self._begin_write("write")
        content = self._node.data
        if offset > len(content):
            content.extend(bytes(offset - len(content)))
        content[offset : offset + len(data)] = data
        disk = self._disk
        if disk.reading is not None:
            disk.reading.wrote(offset, len(data))
        if disk.recording:
            disk.record(
                Write, self._process.name, self._node.number, offset=offset, data=bytes(data)
            )

    def sync(self) -> None:
        self._begin("sync")
        disk = self._disk
        node = self._node
        failing = disk.fail_sync == 1
        disk.fail_sync = max(0, disk.fail_sync - 1)
        if failing:
            node.sync_errors += 1
        elif self._sync_errors < node.sync_errors:
            # A sync of another open file failed since; this file reports that once.
            self._sync_errors = node.sync_errors
            raise self._sync_refused()
        disk.record(Sync, self._process.name, node.number, failed=failing)
        if failing:
            self._sync_errors = node.sync_errors
            raise self._sync_refused()

    def _sync_refused(self) -> StorageFailed:
        return refused(OSError(errno.EIO, "lost"), "sync", f"inode {self._node.number}")

    def size(self) -> int:
        self._begin("size")
        return len(self._node.data)

    def set_size(self, size: int) -> None:
        self._begin_write("resize")
        content = self._node.data
        disk = self._disk
        if disk.reading is not None:
            disk.reading.resized(len(content), size)
        if size < len(content):
            del content[size:]
        else:
            content.extend(bytes(size - len(content)))
        disk.record(SetSize, self._process.name, self._node.number, size=size)

    def try_lock(self, name: LockName, *, exclusive: bool) -> bool:
        self._begin("lock")
        holders = self._node.holders[name]
        me = id(self)
        got = True
        for holder, holds_exclusively in holders.items():
            if holder != me and (exclusive or holds_exclusively):
                got = False
                break
        if got:
            holders[me] = exclusive
            self._node.changes[name] += 1
        self._process.after_lock(self._node, name, got=got)
        self._record_lock(name, "exclusive" if exclusive else "shared", got=got)
        return got

    def unlock(self, name: LockName) -> None:
        self._begin("unlock")
        self.release(name)
        self._record_lock(name, "free", got=True)

    def _record_lock(self, name: LockName, mode: str, *, got: bool) -> None:
        self._disk.record(
            Lock, self._process.name, self._node.number, lock=int(name), mode=mode, got=got
        )

    def release(self, name: LockName) -> None:
        """Drop a lock without the scheduler, as the kernel does for a dead process."""
        if self._node.holders[name].pop(id(self), None) is not None:
            self._node.changes[name] += 1

    def identity(self) -> Identity:
        return 1, self._node.number

    def close(self) -> None:
        if not self._open or self._process.killed:
            return
        self._begin("close")
        self.abandon()

    def abandon(self) -> None:
        """Release the locks and forget the file; no data is flushed."""
        self._open = False
        for name in _LOCKS:
            self.release(name)
        self._process.files.discard(self)


class SimulatedProcess:
    """One process's view of the disk; implements `Storage`."""

    def __init__(self, disk: SimulatedDisk, name: str) -> None:
        self.disk = disk
        self.name = name
        self.killed = False
        self.files: set[SimulatedFile] = set()
        self.refused_locks: dict[tuple[Node, LockName], int] = {}
        """Locks refused since the last other operation, with their change counts then."""

    def kill(self) -> None:
        """End the process at once: its locks are free, its writes remain, and nothing is closed."""
        if self.killed:
            return
        self.killed = True
        for file in list(self.files):
            file.abandon()
        self.disk.record(Kill, self.name)

    def after_lock(self, node: Node, name: LockName, *, got: bool) -> None:
        """Remember which locks the process waits for, so that a scheduler can skip the process."""
        if got:
            self.refused_locks.clear()
        else:
            self.refused_locks[node, name] = node.changes[name]

    def _begin(self, doing: str) -> None:
        if self.killed:
            raise ProcessKilled
        self.disk.operations += 1
        if self.disk.turn is not None:
            self.disk.turn(self, doing)

    def _record_name(self, verb: str, node: Node, path: str, source: str | None = None) -> None:
        self.disk.record(Name, self.name, node.number, verb=verb, path=path, source=source)

    def _opened(self, node: Node, *, writable: bool) -> SimulatedFile:
        file = SimulatedFile(self, node, writable=writable)
        self.files.add(file)
        return file

    def _named(self, path: str) -> Node:
        node = self.disk.names.get(path)
        if node is None:
            raise NotFound(
                "The file does not exist", where=path, remedy="Check the path for a typing error."
            )
        return node

    def open(self, path: str, *, mode: Literal["r", "rw"]) -> SimulatedFile:
        self._begin("open")
        return self._opened(self._named(path), writable=mode == "rw")

    def create(self, path: str, *, known_as: str | None = None) -> SimulatedFile:
        self._begin("create")
        if path in self.disk.names:
            raise refused(FileExistsError(errno.EEXIST, "exists"), "create", known_as or path)
        node = self.disk.names[path] = self.disk.new_node()
        self._record_name("create", node, path)
        return self._opened(node, writable=True)

    def link(self, source: str, target: str) -> bool:
        self._begin("link")
        if target in self.disk.names:
            return False
        node = self.disk.names[target] = self._named(source)
        self._record_name("link", node, target, source)
        return True

    def rename(self, source: str, target: str) -> None:
        self._begin("rename")
        node = self._named(source)
        del self.disk.names[source]
        self.disk.names[target] = node
        self._record_name("rename", node, target, source)

    def unlink(self, path: str) -> None:
        self._begin("unlink")
        node = self.disk.names.pop(path, None)
        if node is not None:
            self._record_name("unlink", node, path)

    def sync_dir(self, path: str) -> None:
        self._begin("sync names")
        self.disk.record(SyncNames, self.name, path=path)

    def identity(self, path: str) -> Identity | None:
        self._begin("identity")
        node = self.disk.names.get(path)
        return None if node is None else (1, node.number)

    def siblings(self, path: str) -> list[str]:
        self._begin("siblings")
        folder = path.rpartition("/")[0]
        return sorted(name for name in self.disk.names if name.rpartition("/")[0] == folder)

    def watch(self, path: str) -> None:
        """Return no watch: a follower polls by the simulated clock."""
        return

    def real_path(self, path: str) -> str:
        return path

    def link_count(self, path: str) -> int:
        self._begin("link count")
        node = self.disk.names.get(path)
        return sum(1 for other in self.disk.names.values() if other is node and node is not None)

    def copy_permissions(self, source: str, target: str) -> None:
        return

    def free_space(self, path: str) -> int:
        return SPACE_UNKNOWN
