"""Moving: what a handle does when compaction has put another file in its own one's place."""

from collections.abc import Callable

from msgspec.structs import replace

from .environment import Environment
from .errors import Corrupt, NotFound
from .file import PAGES_SIZE, LogFile, check_writable, choose_page, turned
from .format.page import HeaderPage
from .limits import PAGE_SIZE
from .locks import wait_for
from .position import Position
from .storage import LockName


def follow_move(
    position: Position,
    pages: bytes,
    environment: Environment,
    *,
    writable: bool,
    lock_timeout: float | None,
    clear: Callable[[HeaderPage], None] | None,
) -> bool:
    """Go over to the file that the path names now, if the log moved there.

    ``pages`` are the header pages as they are now. Returns whether it did. ``clear``, given
    under the writer lock, takes back the flag of a compactor that died.

    Raises:
        NotFound: the file is gone. Corrupt: another log stands in its place.
    """
    path, file = position.log_file.path, position.log_file.file
    if pages == position.pages and not position.page.moved:
        return False
    page, _ = position.choose_page(pages)
    if not page.moved:
        return False
    there = environment.storage.identity(path)
    if there == file.identity():
        if clear is not None:
            # No compactor holds the lock now, so the one that set the flag is dead.
            clear(page)
        return False
    if there is None:
        raise NotFound(
            "The log was moved, and its file is gone",
            where=path,
            remedy="Open it where it is now.",
        )
    newer = environment.storage.open(path, mode="rw" if writable else "r")
    try:
        if writable:
            wait_for(
                newer,
                LockName.PRESENCE,
                exclusive=False,
                clock=environment.clock,
                timeout=lock_timeout,
                path=path,
            )
        page, _ = choose_page(newer.read_at(0, PAGES_SIZE), path)
        if page.log_id != position.page.log_id:
            raise Corrupt(
                "Another log was put in this one's place",
                where=path,
                remedy="Open it again, if that is the one you mean.",
            )
        position.enter(LogFile(newer, path, page.file_id), page)
    except BaseException:
        newer.close()
        raise
    return True


def clear_moved(log_file: LogFile, page: HeaderPage) -> None:
    """Take back the flag of a compactor that died; the writer lock is held. Durable on return."""
    check_writable(page, log_file.path)
    cleared = replace(turned(page), moved=False)
    log_file.file.write_at(cleared.number * PAGE_SIZE, cleared.encode())
    log_file.file.sync()
