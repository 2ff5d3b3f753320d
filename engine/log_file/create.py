"""Creating a file so that exactly one creator wins and no crash leaves a partial file.

A new file is written whole under a temporary name in the same folder, synced, and published with
link(), which fails if the name exists: the loser opens the winner's file. The creator locks
presence before the file has its name, so no process recovers the file before that.
"""

from collections.abc import Generator
from contextlib import contextmanager, suppress

from msgspec.structs import replace

from ..disk.environment import Environment
from ..disk.storage import LockName, Storage, StorageFile
from ..errors import CerataError, Conflict, NotFound, StorageFailed
from ..format.page import RING_OFFSET, HeaderPage
from ..format.record import NO_LINK
from ..format.toc import Toc
from ..format.witness import WITNESS_SPACE
from ..integrity import chain_start
from ..limits import PAGE_SIZE
from .file import Flip, LogFile, turned

TEMPORARY_SUFFIX = ".cerata-new"


def new_page(
    environment: Environment, ring_size: int, *, log_id: bytes | None = None
) -> HeaderPage:
    """Return the page of an empty file; ``log_id`` is that of an existing log that moves there."""
    data_offset = RING_OFFSET + ring_size + WITNESS_SPACE
    return HeaderPage(
        number=1,
        file_id=environment.random_bytes(16),
        log_id=environment.random_bytes(16) if log_id is None else log_id,
        flip=0,
        generation=0,
        toc_offset=data_offset,
        toc_size=0,
        data_end=data_offset,
        ring_offset=RING_OFFSET,
        ring_size=ring_size,
        ring_start=RING_OFFSET,
        sealed_seq=0,
        link=NO_LINK,
        recorded=0,
        created=environment.now_us(),
        incarnation=1,
    )


def first_toc(page: HeaderPage) -> Toc:
    """Return the TOC of a file with no events."""
    return replace(Toc.of_page(page, chain_start(page.log_id)), generation=1)


def write_empty(file: StorageFile, path: str, page: HeaderPage, *, erased: int = 0) -> None:
    """Write a whole empty store into a new file and sync it.

    ``erased`` is the newest erasure that the events to be written reflect.
    """
    # The ring is written, not left sparse: its space is allocated before any acknowledgement.
    file.write_at(0, bytes(page.fixed_size))
    log_file = LogFile(file, path, page.file_id)
    log_file.write_witnesses(page, 0)
    flip = Flip(log_file, page)
    flip.write(replace(first_toc(page), erased=erased))
    spare = turned(flip.publish())
    file.write_at(spare.number * PAGE_SIZE, spare.encode())
    file.sync()


def temporary_of(path: str, environment: Environment) -> str:
    """Return a name beside ``path`` for a file under construction."""
    return f"{path}.{environment.random_bytes(6).hex()}{TEMPORARY_SUFFIX}"


def no_folder(path: str) -> NotFound:
    """Return the error for a new file in a folder that does not exist."""
    return NotFound("There is no such folder", where=path, remedy="Create it first.")


def create(path: str, environment: Environment, ring_size: int) -> StorageFile | None:
    """Create and publish a file; None if another process was first.

    The returned file holds presence exclusively.
    """
    storage = environment.storage
    temporary = temporary_of(path, environment)
    try:
        file = storage.create(temporary, known_as=path)
    except NotFound as error:
        raise no_folder(path) from error
    named = False
    try:
        # Locked before the file has its name, so that a sweeper of old temporaries skips the file.
        # A sweeper that was faster has the lock and removes the file: treat that as a lost race.
        if file.try_lock(LockName.PRESENCE, exclusive=True):
            write_empty(file, path, new_page(environment, ring_size))
            named = True
            try:
                named = storage.link(temporary, path)
            except NotFound:
                # A sweeper removed the file before it was locked.
                named = False
            except StorageFailed:
                named = False
                raise
        if named:
            # The temporary name stays until the final name is durable: openers see it and sync.
            storage.sync_dir(path)
    except BaseException:
        file.close()
        if not named:
            discard(storage, temporary)
        raise
    discard(storage, temporary)
    if named:
        return file
    file.close()
    return None


@contextmanager
def new_file(
    path: str, environment: Environment, *, like: str | None
) -> Generator[tuple[StorageFile, str]]:
    """Yield a new file and its temporary name; the file gets its name after the block.

    So it appears whole or not at all, and never replaces another. Durable after the block, if the
    block has synced the content.

    Args:
        path: The name of the file.
        environment: The storage, and randomness for the temporary name.
        like: The file whose permissions the new file gets; None for those of a new store.

    Raises:
        Conflict: a file exists at the path.
        NotFound: the path's folder does not exist.
    """
    storage = environment.storage
    if storage.identity(path) is not None:
        raise _taken(path)
    temporary = temporary_of(path, environment)
    try:
        file = storage.create(temporary, known_as=path)
    except NotFound as error:
        raise no_folder(path) from error
    named = False
    try:
        # This lock shows a sweeper of dead creators' temporaries that the file is in use.
        file.try_lock(LockName.PRESENCE, exclusive=True)
        if like is not None:
            storage.copy_permissions(like, temporary)
        yield file, temporary
        if not storage.link(temporary, path):
            raise _taken(path)
        # The temporary name stays until the name is durable: openers see it and sync.
        named = True
        storage.sync_dir(path)
        named = False
    finally:
        file.close()
        if not named:
            discard(storage, temporary)


def _taken(path: str) -> Conflict:
    return Conflict(
        "There is a file already", where=path, remedy="Name another path; no file is overwritten."
    )


def discard(storage: Storage, temporary: str) -> None:
    """Remove a temporary name; after a failure the next opener removes it."""
    with suppress(StorageFailed):
        storage.unlink(temporary)


def sweep_temporaries(path: str, environment: Environment) -> None:
    """Remove temporaries of dead creators beside ``path``; a live creator's is locked and stays.

    A creator that died between linking the final name and removing the temporary name left two
    names of one file, which its openers keep locked. The temporary name goes too, but after a sync
    of the folder: the final name may not be durable yet, and the file is about to receive
    acknowledged events.
    """
    storage = environment.storage
    for name in storage.siblings(path):
        if not (name.startswith(f"{path}.") and name.endswith(TEMPORARY_SUFFIX)):
            continue
        try:
            file = storage.open(name, mode="rw")
        except CerataError:
            # Removed already, or a foreign file with such a name.
            continue
        try:
            is_named = file.identity() == storage.identity(path)
            if not is_named:
                if not file.try_lock(LockName.PRESENCE, exclusive=True):
                    continue
                # The creator is dead; it may have linked the final name since the first check.
                is_named = file.identity() == storage.identity(path)
            if is_named:
                storage.sync_dir(path)
            discard(storage, name)
        finally:
            file.close()
