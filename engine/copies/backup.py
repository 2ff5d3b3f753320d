"""Backup: the log at one moment, copied into a new file while other processes write.

The copy is built from the events, not the bytes: each batch is read with every check and encoded
again in a file with a new id, and the copy's chain and tree must equal the original's. So damage is
never copied silently, and dead space not at all. Projections' checkpoints are left out; they are
rebuilt from the log. Published like a new file: written whole under a temporary name, synced, and
linked.
"""

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from ..codec import Batch
from ..disk.environment import Environment
from ..disk.storage import LockName, StorageFile
from ..errors import Corrupt
from ..events import Branch, Draft
from ..format.page import RING_OFFSET, HeaderPage
from ..format.record import NO_LINK
from ..format.witness import WITNESS_SPACE
from ..log import Log
from ..log_file.create import new_file, write_empty
from ..log_file.file import PAGES_SIZE, LogFile, check_writable, choose_page
from ..log_file.locks import held
from ..log_file.recovery import examine
from ..open import MEMORY_PATH, path_name
from ..segments.reader import Snapshot
from ..unreadable import whole_batches
from .later_content import LaterContent

_SEGMENT_SIZE_TARGET = 8 << 20
_SEGMENT_EVENTS_MAX = 65_536


def back_up(log: Log, path: str, *, through: int | None = None, lossy: bool = False) -> None:
    """Copy a log at its head into a new file at ``path``, while other processes write.

    The copy has the same log id, events, chain and root; with ``through``, those of the batches
    that end by this event. The new file appears whole or not at all, and never replaces another.
    Durable on return. With ``lossy``, a `branch` event follows, since the original had later events
    that are lost: the copy continues as another log.

    Raises:
        InvalidInput: the path is not valid.
        Conflict: a file exists at the path.
        NotFound: the path's folder does not exist.
        Corrupt: an event cannot be read.
    """
    log.refresh()
    path = path_name(path)
    snapshot = log.snapshot
    # This version writes the copy, which would otherwise claim features that it lacks.
    check_writable(snapshot.page, log.path)
    last = log.head.seq if through is None else min(through, log.head.seq)
    # A store in memory has no folder for a copy: write it to disk.
    environment = Environment() if log.path == MEMORY_PATH else log.environment
    page = page_for(log, snapshot)
    # A copy that ends before an erasure lacks the contents, too.
    erased = min(snapshot.reader.toc(snapshot.page).erased, last)
    with new_file(path, environment, like=log.path if log.is_lasting else None) as (
        file,
        temporary,
    ):
        write_empty(file, temporary, page, erased=erased)
        copied = _copy(log, snapshot, file, temporary, last)
        copy = opened_copy(log, file, temporary)
        head = copy.head
        expected = (copied, log.chain_at(copied), log.root_at(copied))
        if (head.seq, head.chain, head.root) != expected:
            raise Corrupt(
                "The copy's hashes differ from the log's",
                where=log.path,
                remedy="Run 'cerata file verify' to list the damage.",
            )
        LaterContent(log).carry(snapshot.reader.toc(snapshot.page), copy, checkpoints=False)
        if lossy:
            add_branch(copy)


def page_for(log: Log, snapshot: Snapshot) -> HeaderPage:
    """Return the first page of a copy: the log's id and ring size, and a new file id."""
    page = snapshot.page
    data_offset = RING_OFFSET + page.ring_size + WITNESS_SPACE
    return replace(
        page,
        number=1,
        file_id=log.environment.random_bytes(16),
        flip=0,
        generation=0,
        toc_offset=data_offset,
        toc_size=0,
        data_end=data_offset,
        ring_offset=RING_OFFSET,
        ring_start=RING_OFFSET,
        sealed_seq=0,
        link=NO_LINK,
        recorded=0,
        incarnation=1,
        closed_seq=0,
        moved=False,
    )


def add_branch(copy: Log) -> None:
    """Append the event that makes a copy another log than its original, and seal it."""
    head = copy.head
    branches = copy.branches()
    copy.append(
        [
            Draft(
                Branch(
                    id=copy.environment.random_bytes(16),
                    seq=head.seq,
                    chain=head.chain,
                    root=head.root,
                    before=branches[-1].seq if branches else 0,
                )
            )
        ]
    )
    copy.seal()


def opened_copy(log: Log, file: StorageFile, path: str) -> Log:
    """Return a handle on a stored copy of a log, by the same steps as any opener."""
    pages = file.read_at(0, PAGES_SIZE)
    page, bad = choose_page(pages, path)
    log_file = LogFile(file, path, page.file_id)
    state = examine(log_file, page, bad, search=False, alone=False)
    return Log(
        log_file,
        log.environment,
        writable=True,
        sync="commit",
        lock_timeout=0,
        pages=pages,
        recovered=state,
        stored_page=page,
    )


def _copy(log: Log, snapshot: Snapshot, file: StorageFile, path: str, last: int) -> int:
    """Copy the batches that end by event ``last``, and return the last copied event."""
    copy = opened_copy(log, file, path)
    with held(file, LockName.WRITER, clock=log.environment.clock, timeout=0, path=path):
        return seal_batches(copy, _until(snapshot, last))


def _until(snapshot: Snapshot, last: int) -> Iterator[Batch]:
    for batch in whole_batches(snapshot, 1, "The copy") if last else ():
        if batch.last_seq > last:
            return
        yield batch
        if batch.last_seq == last:
            # The next batch may be unreadable.
            return


def seal_batches(copy: Log, batches: Iterable[Batch]) -> int:
    """Under the writer lock: add batches that continue a copy's head, as segments of about 8 MiB.

    Returns the last added event; 0 without batches.
    """
    copied = 0
    group: list[Batch] = []
    size = events = 0
    for batch in batches:
        copied = batch.last_seq
        batch_size = sum(
            len(event.payload) + sum(map(len, event.attachments)) for event in batch.events
        )
        full = size + batch_size > _SEGMENT_SIZE_TARGET
        if group and (full or events + batch.count > _SEGMENT_EVENTS_MAX):
            copy.take_sealed(group)
            group = []
            size = events = 0
        group.append(batch)
        size += batch_size
        events += batch.count
    if group:
        copy.take_sealed(group)
    return copied
