"""Opening: the only opener recovers; later openers join; readers never write.

Owns the choice between the three, the creation of a missing file, and the abandonment of handles in
a forked child.
"""

import difflib
import os
import weakref
from dataclasses import replace
from typing import Literal

from .arguments import is_integer, wrong_type
from .copies.salvage import examine_damaged, page_from_footer
from .disk.environment import Environment
from .disk.memory_storage import PrivateMemory
from .disk.storage import LockName, OsStorage, StorageFile
from .errors import (
    Corrupt,
    InvalidInput,
    NotFound,
    StorageFailed,
    Unsupported,
    number_text,
    value_text,
)
from .format.page import HeaderPage
from .format.record import sectors
from .limits import RING_SIZE_DEFAULT, RING_SIZE_MAX, RING_SIZE_MIN
from .log import Log, SyncPolicy
from .log_file.create import create, sweep_temporaries
from .log_file.file import PAGES_SIZE, LogFile, choose_page, is_whole
from .log_file.locks import held, wait_for
from .log_file.recovery import RecoveredState, examine
from .segments.caches import CacheSizes, cache_sizes

_CREATION_TRIES = 100
_READ_TRIES = 8
MEMORY_PATH = ":memory:"

_open_logs: "weakref.WeakSet[Log]" = weakref.WeakSet()


def _abandon_in_child() -> None:
    """An inherited descriptor would keep the parent's locks alive after its death."""
    for log in list(_open_logs):
        log.abandon()


os.register_at_fork(after_in_child=_abandon_in_child)


def open_log(
    path: str,
    *,
    mode: Literal["r", "rw"] = "rw",
    environment: Environment | None = None,
    sync: SyncPolicy = "commit",
    lock_timeout: float | None = 30.0,
    ring_bytes: int | None = None,
    salvage: bool = False,
    cache_bytes: int | None = None,
) -> Log:
    """Open the log in a file; ``mode="rw"`` creates a missing one.

    Args:
        path: the file.
        mode: "r" only reads; "rw", the default, reads and writes.
        environment: storage, clock and randomness; by default the operating system's.
        sync: "commit" syncs every batch, "always" also proves it with a second sync, a number
            syncs after that many written bytes.
        lock_timeout: seconds to wait for a lock; 0 fails at once, None waits for ever.
        ring_bytes: size of the ring of a new file.
        salvage: read the intact events of a damaged file, and never write.
        cache_bytes: the bytes of all caches together (`caches`); by default 1 GiB.

    Raises:
        NotFound: the file does not exist (mode "r").
        Corrupt: acknowledged data is damaged.
        Locked: another process held a lock for longer than ``lock_timeout``.
        Unsupported: the file is not a Cerata file, or its format is newer.
    """
    environment = environment or Environment()
    path = path_name(path)
    ring_size = _checked_options(mode, sync, lock_timeout, ring_bytes)
    caches = cache_sizes(cache_bytes)
    if path == MEMORY_PATH and isinstance(environment.storage, OsStorage):
        environment = replace(environment, storage=PrivateMemory())
    if mode == "r" or salvage:
        log = _open_for_reading(path, environment, lock_timeout, caches, salvage=salvage)
    else:
        log = _open_for_writing(path, environment, sync, lock_timeout, ring_size, caches)
    _open_logs.add(log)
    return log


def path_name(path: str | os.PathLike[str]) -> str:
    """Return a string or path object as a string. Raises `InvalidInput` for an invalid path."""
    name = os.fspath(path) if isinstance(path, os.PathLike) else path
    if not isinstance(name, str):
        raise wrong_type("The path", "a string or a path object", path, "Pass the file's name.")
    try:
        encoded = os.fsencode(name)
    except UnicodeEncodeError as error:
        raise InvalidInput(
            f"The path is not valid Unicode: {error.reason}", remedy="Rename the file."
        ) from error
    if not encoded or b"\0" in encoded:
        raise InvalidInput(
            "The path is empty" if not encoded else "The path holds a NUL character",
            remedy="Name a file.",
        )
    return name


def _checked_options(
    mode: str, sync: object, lock_timeout: float | None, ring_bytes: int | None
) -> int:
    if mode not in ("r", "rw"):
        raise InvalidInput(f"The mode {value_text(mode)} is not known", remedy="Use 'r' or 'rw'.")
    if sync not in ("commit", "always") and (not is_integer(sync) or sync <= 0):
        raise InvalidInput(
            f"The sync policy {value_text(sync)} is not known",
            remedy="Use 'commit', 'always', or a number of bytes.",
        )
    if lock_timeout is not None and lock_timeout < 0:
        raise InvalidInput(
            f"lock_timeout must be 0 or more, not {value_text(lock_timeout)} s",
            remedy="Use 0, more, or None.",
        )
    if ring_bytes is None:
        return RING_SIZE_DEFAULT
    if not RING_SIZE_MIN <= ring_bytes <= RING_SIZE_MAX:
        raise InvalidInput(
            f"ring_bytes must be from {RING_SIZE_MIN:,} to {RING_SIZE_MAX:,}, not "
            f"{number_text(ring_bytes)}",
            remedy="Pass ring_bytes within these bounds, or leave it out.",
        )
    return sectors(ring_bytes)


def _open_for_reading(
    path: str,
    environment: Environment,
    lock_timeout: float | None,
    caches: CacheSizes,
    *,
    salvage: bool,
) -> Log:
    try:
        file = environment.storage.open(path, mode="r")
    except NotFound as error:
        raise _not_found(path, environment) from error
    try:
        return _read_only(file, path, environment, lock_timeout, caches, salvage=salvage)
    except BaseException:
        file.close()
        raise


def _not_found(path: str, environment: Environment) -> NotFound:
    names = {os.path.basename(name): name for name in environment.storage.siblings(path)}
    near = difflib.get_close_matches(os.path.basename(path), names, n=1)
    remedy = f"Did you mean {names[near[0]]}?" if near else "Check the path."
    return NotFound("There is no such file", where=path, remedy=remedy)


def _read_only(
    file: StorageFile,
    path: str,
    environment: Environment,
    lock_timeout: float | None,
    caches: CacheSizes,
    *,
    salvage: bool,
) -> Log:
    """Open without writing a byte; repeat while a writer changes the header pages."""
    tries = _READ_TRIES
    while True:
        tries -= 1
        pages = file.read_at(0, PAGES_SIZE)
        page, bad = _page(file, pages, path, salvage=salvage)
        log_file = LogFile(file, path, page.file_id, caches)
        result = _examined(log_file, page, bad, salvage=salvage)
        if not tries or file.read_at(0, PAGES_SIZE) == pages:
            break
    if isinstance(result, Corrupt):
        raise result
    log = Log(
        log_file,
        environment,
        writable=False,
        sync="commit",
        lock_timeout=lock_timeout,
        pages=pages,
        recovered=result,
        stored_page=page,
    )
    if result.head_seq > result.proven or result.report.adopted_footer:
        # Written, perhaps not yet durable: events shown to a reader must survive a power loss.
        file.sync()
    return log


def _examined(
    log_file: LogFile, page: HeaderPage, bad: tuple[int, ...], *, salvage: bool
) -> RecoveredState | Corrupt:
    """Return the state that the file proves, or the damage that a reader must report."""
    try:
        if salvage:
            return examine_damaged(log_file, page, bad)
        state = examine(log_file, page, bad, search=bool(bad), alone=False)
    except Corrupt as damage:
        return damage
    return state.damage or state


def _page(
    file: StorageFile, pages: bytes, path: str, *, salvage: bool
) -> tuple[HeaderPage, tuple[int, ...]]:
    try:
        return choose_page(pages, path)
    except (Corrupt, Unsupported) as error:
        # A valid page with unknown content is not damaged: its file needs a newer Cerata.
        refused = isinstance(error, Unsupported) and is_whole(pages)
        page = page_from_footer(file, path) if salvage and not refused else None
        if page is None:
            raise
        return page, (0, 1)


def _open_for_writing(
    path: str,
    environment: Environment,
    sync: SyncPolicy,
    lock_timeout: float | None,
    ring_size: int,
    caches: CacheSizes,
) -> Log:
    for _ in range(_CREATION_TRIES):
        file = _opened(path, environment, ring_size)
        if file is None:
            continue
        try:
            log = _join(file, path, environment, sync, lock_timeout, caches)
        except BaseException:
            file.close()
            raise
        if log is not None:
            return log
        file.close()
    # The name exists, but no file: a dangling symbolic link.
    raise StorageFailed(
        "The path can neither be opened nor created",
        where=path,
        remedy="If it is a symbolic link, check its target.",
    )


def _opened(path: str, environment: Environment, ring_size: int) -> StorageFile | None:
    """Open the file, or create it; None if another process created it first."""
    try:
        return environment.storage.open(path, mode="rw")
    except NotFound:
        sweep_temporaries(path, environment)
        return create(path, environment, ring_size)


def _join(
    file: StorageFile,
    path: str,
    environment: Environment,
    sync: SyncPolicy,
    lock_timeout: float | None,
    caches: CacheSizes,
) -> Log | None:
    """Recover if this is the only opener, else join; None if the path now names another file."""
    clock = environment.clock
    alone = file.try_lock(LockName.PRESENCE, exclusive=True)
    if not alone:
        wait_for(
            file, LockName.PRESENCE, exclusive=False, clock=clock, timeout=lock_timeout, path=path
        )
    with held(file, LockName.WRITER, clock=clock, timeout=lock_timeout, path=path):
        pages = file.read_at(0, PAGES_SIZE)
        page, bad = choose_page(pages, path)
        if page.moved and environment.storage.identity(path) != file.identity():
            # A compactor replaced the file during the wait.
            return None
        log_file = LogFile(file, path, page.file_id, caches)
        recovered = examine(log_file, page, bad, search=alone or bool(bad), alone=alone)
        log = Log(
            log_file,
            environment,
            writable=True,
            sync=sync,
            lock_timeout=lock_timeout,
            pages=pages,
            recovered=recovered,
            stored_page=page,
        )
        log.settle(recovered, alone=alone)
    if alone:
        # Before other processes join: this makes the file's name durable if a dead creator did not.
        sweep_temporaries(path, environment)
        file.try_lock(LockName.PRESENCE, exclusive=False)
    return log
