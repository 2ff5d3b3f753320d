"""A handle's hold on its file: whether it may be used, and by whom just now.

Owns `Hold`: the mutex between a handle's threads, the writer lock between processes, catching up
with the file under both, going over to the file that took its place, and what an interrupt or a
failed disk leaves behind. Leaves out what is written (`writer`) and when it is durable (`log`).
"""

import threading
from collections.abc import Generator
from contextlib import contextmanager
from types import TracebackType

from .environment import Environment
from .errors import CerataError, Closed, ReadOnly, StorageFailed
from .file import check_writable, choose_page
from .format.page import HeaderPage
from .locks import held, wait_for
from .moving import clear_moved, follow_move
from .poison import Poison
from .position import Position
from .storage import LockName, StorageFile
from .writer import Writer


class Hold:
    """One handle's hold on its file.

    Invariants:
    - the position is read and changed under ``mutex`` only, and written from inside `writing`;
    - an interrupt between two steps of a change is noticed by whoever comes next, who forgets
      the position's state and takes it in from the file again.
    """

    def __init__(
        self,
        position: Position,
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
        self._path = position.log_file.path
        self._position = position
        self._writer = writer
        self._environment = environment
        self._poison = poison
        self._lock_timeout = lock_timeout
        self._changing = False
        self._left_files: list[StorageFile] = []

    # --- whether it may be used ------------------------------------------------------------------

    @property
    def is_open(self) -> bool:
        """Whether calls can succeed: not closed, not poisoned, not inherited by fork."""
        return not self.closed and self._poison.failure is None

    @property
    def may_write(self) -> bool:
        """Whether it is open for writing, and no failure forbids it."""
        return self.writable and self._poison.failure is None

    def check_open(self) -> None:
        """Raise `Closed`, or the failure that poisoned the handle."""
        if self._poison.failure is not None:
            raise self._poison.failure
        if self.closed:
            raise Closed("The log is closed", where=self._path, remedy="Open it again.")

    def check_writable(self) -> None:
        """Raise what `check_open` does, or `ReadOnly`."""
        self.check_open()
        if not self.writable:
            raise ReadOnly(
                "The log was opened for reading",
                where=self._path,
                remedy="Open it with mode='rw'.",
            )

    def abandon(self) -> None:
        """Drop it without a word to the file: for a child after fork."""
        self._poison.failure = Closed(
            "This handle was inherited by fork",
            where=self._path,
            remedy="Open the file again in the child.",
        )
        self.mutex = threading.RLock()
        self.release()

    def give_up(self, file: StorageFile, error: StorageFailed) -> CerataError:
        """Close a file whose lock cannot be released, and return what to raise.

        Closing releases it; otherwise nobody else would ever write again.
        """
        file.close()
        return self._poison.take(error)

    def release(self) -> None:
        """Give the files back, and with them their locks; nothing may be used afterwards."""
        self.closed = True
        for file in (self.file, *self._left_files):
            file.close()

    # --- changing what it holds ------------------------------------------------------------------

    def writing(self, *, wait: bool = True) -> "Writing":
        """Hold the writer lock over the file that the path names, caught up with it.

        Under the mutex: ``with hold.mutex, hold.writing(): …``. Without ``wait`` the lock is
        tried once.

        Raises, at the with: what `check_writable` does; `Locked`; `Unsupported` where a newer
        Cerata left what this one would undo.
        """
        return Writing(self, wait=wait)

    def standing_still(self) -> held:
        """Hold the writer lock shared, so that nobody writes meanwhile."""
        return held(
            self.file,
            LockName.WRITER,
            exclusive=False,
            clock=self._environment.clock,
            timeout=self._lock_timeout,
            path=self._path,
        )

    @contextmanager
    def changing(self) -> Generator[None, None, None]:
        """Mark that the position is being changed without the writer lock."""
        self.begin_change()
        try:
            yield
        except BaseException as error:
            self.end_change(error)
            raise
        self.end_change()

    def begin_change(self) -> None:
        """Mark that the position is being changed, and mend what a break-off left."""
        if self._changing:
            page, _ = choose_page(self._position.log_file.read_pages(), self._path)
            self._position.forget(page)
        self._changing = True

    def end_change(self, error: BaseException | None = None) -> None:
        """Take the mark away, unless an error may have struck between two steps.

        A refusal comes between two steps and leaves the state whole; a failed disk may not.
        """
        if error is None or (
            isinstance(error, CerataError) and not isinstance(error, StorageFailed)
        ):
            self._changing = False

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
        """Under the writer lock: take in what others did; False if the log is in another file."""
        position = self._position
        position.check_size()
        pages = position.log_file.read_turned(position.pages)
        if self.follow_move(pages, locked=True):
            return False
        self._writer.catch_up(pages)
        # A newer Cerata may have begun what this one would undo.
        check_writable(position.page, self._path)
        return True

    def follow_move(self, pages: bytes, *, locked: bool) -> bool:
        """Go over to the file that took this one's place; return whether it did."""
        position = self._position
        before = self.file
        moved = follow_move(
            position,
            pages,
            self._environment,
            writable=self.writable,
            lock_timeout=self._lock_timeout,
            clear=self._clear_moved if locked else None,
        )
        if moved:
            # Views and running reads keep the file that they began with.
            self._left_files.append(before)
        return moved

    def _clear_moved(self, page: HeaderPage) -> None:
        try:
            clear_moved(self._position.log_file, page)
        except StorageFailed as error:
            raise self._poison.take(error) from error

    @property
    def file(self) -> StorageFile:
        """The file that the handle goes by now."""
        return self._position.log_file.file


class Writing:
    """What `Hold.writing` holds; a class, since every append takes one."""

    __slots__ = ("_file", "_hold", "_wait")

    def __init__(self, hold: Hold, *, wait: bool) -> None:
        self._hold = hold
        self._wait = wait

    def __enter__(self) -> None:
        hold = self._hold
        hold.check_writable()
        while True:
            # Where the log moved, the lock that was taken is the old file's.
            file = self._file = hold.file
            try:
                hold.wait_for_writer(file, wait=self._wait)
            except BaseException:
                # Harmless where it was not got; an interrupt right after getting it cannot leak it.
                self._unlock()
                raise
            try:
                hold.begin_change()
                if hold.catch_up():
                    return
            except BaseException as error:
                self.__exit__(type(error), error, None)
                raise
            self.__exit__(None, None, None)

    def __exit__(
        self,
        _: type[BaseException] | None,
        error: BaseException | None,
        __: TracebackType | None,
    ) -> None:
        try:
            self._hold.end_change(error)
        finally:
            self._unlock()

    def _unlock(self) -> None:
        try:
            self._file.unlock(LockName.WRITER)
        except StorageFailed as error:
            raise self._hold.give_up(self._file, error) from error
