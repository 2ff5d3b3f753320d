"""A handle's lock on its file: exclusion among threads and processes.

Owns `HandleLock`: the mutex between a handle's threads, the writer lock between processes, catching
up with the file under both, the switch to a compacted successor, and recovery from an interrupt or
a failed disk. Leaves out the writes (`writer`) and their durability (`log`).
"""

import threading
from types import TracebackType
from weakref import WeakSet

from ..disk.environment import Environment
from ..disk.storage import LockName, StorageFile
from ..errors import CerataError, Closed, Locked, ReadOnly, StorageFailed
from ..format.page import HeaderPage
from ..handle import Poison
from .file import check_writable, choose_page
from .locks import held, wait_for
from .log_state import LogState
from .relocation import clear_moved, follow_move
from .writer import Writer


class HandleLock:
    """A handle's lock on its file.

    Invariants:
    - the state is read and changed only under ``mutex``, and written only inside `writing`;
    - after an interrupt between two steps of a change, the next user forgets the state
      and reads it from the file again.
    """

    def __init__(
        self,
        state: LogState,
        writer: Writer,
        environment: Environment,
        poison: Poison,
        *,
        writable: bool,
        lock_timeout: float | None,
    ) -> None:
        self.mutex = threading.RLock()
        self.writable = writable
        self.closed = False
        self._path = state.log_file.path
        self._state = state
        self._writer = writer
        self._environment = environment
        self._poison = poison
        self._lock_timeout = lock_timeout
        self.is_changing = False
        """True in a change, and after a change that broke off between two steps."""
        self.is_moving = False
        """True while a compaction has the writer lock: a write in it would release the lock."""
        # Files that a view or a running read still uses; the system frees the space with the last.
        self._left_files = WeakSet[StorageFile]()

    # --- state -----------------------------------------------------------------------------------

    @property
    def is_open(self) -> bool:
        """True if calls can succeed: not closed, not poisoned, not inherited by fork."""
        return not self.closed and self._poison.failure is None

    @property
    def may_write(self) -> bool:
        """True if the handle is open for writing and not poisoned."""
        return self.writable and self._poison.failure is None

    def check_open(self) -> None:
        """Raise `Closed`, or the failure that poisoned the handle."""
        if self._poison.failure is not None:
            raise self._poison.failure
        if self.closed:
            raise Closed("The log is closed", where=self._path, remedy="Open it again.")

    def check_writable(self) -> None:
        """Raise the errors of `check_open`, or `ReadOnly`."""
        self.check_open()
        if not self.writable:
            raise ReadOnly(
                "The log was opened for reading", where=self._path, remedy="Open it with mode='rw'."
            )

    def check_still(self) -> None:
        """Under the mutex: refuse a write inside a swap. Raises `Locked`."""
        if self.is_moving:
            raise Locked(
                "The file is being compacted",
                where=self._path,
                remedy="Write when the compaction is complete.",
            )

    def abandon(self) -> None:
        """Drop the lock without writing to the file: for a child after fork."""
        self._poison.failure = Closed(
            "This handle was inherited by fork",
            where=self._path,
            remedy="Open the file again in the child.",
        )
        self.mutex = threading.RLock()
        self.release()

    def give_up(self, file: StorageFile, error: StorageFailed) -> CerataError:
        """Close a file whose lock cannot be released, and return the error to raise.

        Closing releases the lock, which would otherwise block every other writer for ever.
        """
        file.close()
        return self._poison.take(error)

    def release(self) -> None:
        """Close the files, which releases their locks; no call is allowed afterwards."""
        self.closed = True
        for file in (self.file, *self._left_files):
            file.close()

    # --- changes ---------------------------------------------------------------------------------

    def writing(self, *, wait: bool = True) -> "Writing":
        """Hold the writer lock on the file that the path names, caught up with it.

        Under the mutex: ``with lock.mutex, lock.writing(): …``. Without ``wait`` the lock is tried
        once.

        Raises, at the with: the errors of `check_writable`; `Locked`; `Unsupported` if a newer
        Cerata left data that this version would undo.
        """
        return Writing(self, wait=wait)

    def standing_still(self) -> held:
        """Hold the writer lock shared, so that no process writes."""
        return held(
            self.file,
            LockName.WRITER,
            exclusive=False,
            clock=self._environment.clock,
            timeout=self._lock_timeout,
            path=self._path,
        )

    def changing(self) -> "Changing":
        """Mark that the state is being changed without the writer lock."""
        return Changing(self)

    def begin_change(self) -> None:
        """Mark that the state is being changed; reset it first if the last change broke off."""
        if self.is_changing:
            page, _ = choose_page(self._state.log_file.read_pages(), self._path)
            self._state.forget(page)
        self.is_changing = True

    def end_change(self, error: BaseException | None = None) -> None:
        """Remove the mark, unless an error may have struck between two steps.

        A refusal leaves the state whole; a failed disk may not.
        """
        if error is None or (
            isinstance(error, CerataError) and not isinstance(error, StorageFailed)
        ):
            self.is_changing = False

    def wait_for_writer(self, file: StorageFile, *, wait: bool) -> None:
        """Take the writer lock. Raises `Locked`."""
        wait_for(
            file,
            LockName.WRITER,
            exclusive=True,
            clock=self._environment.clock,
            timeout=self._lock_timeout if wait else 0,
            path=self._path,
        )

    def catch_up(self) -> bool:
        """Under the writer lock: read appended events; False if the log moved to another file."""
        state = self._state
        if not state.is_current():
            pages = state.log_file.read_pages()
            if self.follow_move(pages, locked=True):
                return False
            self._writer.catch_up(pages)
        # A newer Cerata may have enabled a feature since.
        check_writable(state.page, self._path)
        return True

    def follow_move(self, pages: bytes, *, locked: bool) -> bool:
        """Switch to the file that replaced the current file, if any; return whether it did."""
        state = self._state
        before = state.log_file
        moved = follow_move(
            state,
            pages,
            self._environment,
            writable=self.writable,
            lock_timeout=self._lock_timeout,
            clear=self._clear_moved if locked else None,
        )
        if moved:
            # A running read ends in the file that it began with.
            self._left_files.add(before.file)
            before.drop_segments()
        return moved

    def _clear_moved(self, page: HeaderPage) -> None:
        try:
            clear_moved(self._state.log_file, page)
        except StorageFailed as error:
            raise self._poison.take(error) from error

    @property
    def file(self) -> StorageFile:
        """The file that the handle currently uses."""
        return self._state.log_file.file


class Changing:
    """The context manager of `HandleLock.changing`; a class, since every look takes one."""

    __slots__ = ("_lock",)

    def __init__(self, lock: HandleLock) -> None:
        self._lock = lock

    def __enter__(self) -> None:
        self._lock.begin_change()

    def __exit__(
        self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None
    ) -> None:
        self._lock.end_change(error)


class Writing:
    """The context manager of `HandleLock.writing`; a class, since every append takes one."""

    __slots__ = ("_file", "_lock", "_wait")

    def __init__(self, lock: HandleLock, *, wait: bool) -> None:
        self._lock = lock
        self._wait = wait

    def __enter__(self) -> None:
        lock = self._lock
        lock.check_writable()
        if lock.is_moving:
            lock.check_still()
        while True:
            # If the log moved, the lock taken is that of the old file: try again.
            file = self._file = lock.file
            try:
                lock.wait_for_writer(file, wait=self._wait)
            except BaseException:
                # Harmless without the lock; and an interrupt right after taking it cannot leak it.
                self._unlock()
                raise
            try:
                lock.begin_change()
                if lock.catch_up():
                    return
            except BaseException as error:
                self.__exit__(type(error), error, None)
                raise
            self.__exit__(None, None, None)

    def __exit__(
        self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None
    ) -> None:
        try:
            self._lock.end_change(error)
        finally:
            self._unlock()

    def _unlock(self) -> None:
        try:
            self._file.unlock(LockName.WRITER)
        except StorageFailed as error:
            raise self._lock.give_up(self._file, error) from error
