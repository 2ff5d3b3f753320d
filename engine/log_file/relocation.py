"""Moving: how a handle follows its log into the file that compaction put in its place."""

from collections.abc import Callable

from msgspec.structs import replace

from ..disk.environment import Environment
from ..disk.storage import LockName
from ..errors import Corrupt, NotFound
from ..format.page import HeaderPage
from ..limits import PAGE_SIZE
from .file import PAGES_SIZE, LogFile, check_writable, choose_page, turned
from .locks import wait_for
from .log_state import LogState


def follow_move(
    state: LogState,
    pages: bytes,
    environment: Environment,
    *,
    writable: bool,
    lock_timeout: float | None,
    clear: Callable[[HeaderPage], None] | None,
) -> bool:
    """Switch to the file that the path names now, if the log moved there.

    ``pages`` are the current header pages. Returns True after a switch. ``clear``, passed under the
    writer lock, removes the flag of a dead compactor.

    Raises:
        NotFound: the file is gone.
        Corrupt: another log is at the path.
    """
    path = state.log_file.path
    file = state.log_file.file
    if pages == state.pages and not state.page.moved:
        return False
    page, _ = state.choose_page(pages)
    if not page.moved:
        return False
    identity = environment.storage.identity(path)
    if identity == file.identity():
        if clear is not None:
            # No compactor holds the lock now, so the compactor that set the flag is dead.
            clear(page)
        return False
    if identity is None:
        raise NotFound(
            "The log was moved, and its file is gone",
            where=path,
            remedy="Open the log at its new path.",
        )
    newer = environment.storage.open(path, mode="rw" if writable else "r")
    try:
        if writable:
            # The compactor may have died before its rename was durable. The folder is synced before
            # another process can join in the new file, so that no acknowledged batch depends on the
            # old name.
            environment.storage.sync_dir(path)
            wait_for(
                newer,
                LockName.PRESENCE,
                exclusive=False,
                clock=environment.clock,
                timeout=lock_timeout,
                path=path,
            )
        page, _ = choose_page(newer.read_at(0, PAGES_SIZE), path)
        if page.log_id != state.page.log_id:
            raise Corrupt(
                "The path names another log now",
                where=path,
                remedy="Open the path again to use the other log.",
            )
        state.enter(state.log_file.again(page.file_id, newer), page)
    except BaseException:
        newer.close()
        raise
    return True


def set_moved(log_file: LogFile, page: HeaderPage) -> None:
    """Name in both header pages that another file continues the log, under the writer lock.

    Durable on return. Each page is whole on the disk before the other changes.
    """
    check_writable(page, log_file.path)
    # The sync of the newest page may have failed (`Writer.flip`), and a writer that died may have
    # left records that no sync covers yet.
    log_file.file.write_at(page.number * PAGE_SIZE, page.encode())
    log_file.file.sync()
    for _ in range(2):
        page = replace(turned(page), moved=True)
        log_file.file.write_at(page.number * PAGE_SIZE, page.encode())
        log_file.file.sync()


def clear_moved(log_file: LogFile, page: HeaderPage) -> None:
    """Remove the flag of a dead compactor, under the writer lock. Durable on return."""
    check_writable(page, log_file.path)
    # The compactor may have died before the sync of its page, which is written again first: a power
    # loss during the write of the other page must find it whole.
    for copy in (page, replace(turned(page), moved=False)):
        log_file.file.write_at(copy.number * PAGE_SIZE, copy.encode())
        log_file.file.sync()
