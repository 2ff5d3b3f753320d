"""Forks: the log at one of its points, continued separately, in memory or in a new file.

A fork shares its parent's prefix: the bytes of the data region never change, so a fork in memory
reads them from the parent's file, and a fork in a file copies them as they are. Only the segment
that the point lies in is encoded again. The first event of the fork is a `branch`.

Owns the choice of the shared bytes and the writes of a new fork. Leaves out lineage
(`log_file.lineage`) and the checkpoints that a fork keeps, which the caller chooses.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from dataclasses import replace as copy_of
from itertools import chain as chain_of

from msgspec.structs import replace

from ..codec import Batch, SpillRef
from ..disk.memory_storage import PrivateMemory
from ..disk.storage import LockName, StorageFile, copy_start
from ..errors import Corrupt, InvalidInput
from ..format.extent import ExtentKind, extent_is_whole, extent_size
from ..format.page import HeaderPage
from ..format.record import NO_LINK, sectors
from ..format.toc import Ref, RefList, Toc
from ..format.witness import WITNESS_SPACE
from ..integrity import Tree, chain_start
from ..limits import PAGE_SIZE
from ..log import Log
from ..log_file.create import new_file
from ..log_file.file import Flip, LogFile, check_writable, turned
from ..log_file.idempotency import KeyIndex
from ..log_file.locks import held
from ..log_file.writer import Build
from ..open import MEMORY_PATH, open_log, path_name
from ..segments.reader import Snapshot
from ..unreadable import COPY_BEFORE_DAMAGE, events_place, stopped
from .backup import add_branch, opened_copy, seal_batches

Progress = Callable[[str, int, int], None]
"""Called with the current step, the copied bytes, and their total."""


@dataclass(frozen=True, slots=True)
class KeptStates:
    """The checkpoints that a fork keeps: their extents, and `build`, which adds their entries."""

    extents: tuple[Ref, ...]
    build: Build


@dataclass(frozen=True, slots=True)
class _Prefix:
    """The part of a log that a fork shares as bytes: whole segments, and the hashes after them.

    ``cut`` is the segment of the point, of which the fork encodes a part again. ``spills``
    are the extents of large batches outside the whole segments.
    """

    seq: int
    segments: tuple[Ref, ...]
    cut: Ref | None
    spills: tuple[SpillRef, ...]
    sealed: int
    recorded: int
    chain: bytes
    tree: Tree
    size: int


def fork_in_memory(log: Log, seq: int, states: KeptStates) -> Log:
    """Return a log in memory that continues the first ``seq`` events of a log.

    It reads them from the log's file, which may be closed, and written to, but must stay.

    Raises:
        InvalidInput: ``seq`` lies inside a batch.
        Corrupt: the segment that the point lies in is damaged, or the path names another file.
    """
    snapshot, prefix = _prefix(log, seq, states)
    base = log.environment.storage.open(log.path, mode="r")
    if base.identity() != log.file.file.identity():
        base.close()
        raise Corrupt(
            "The file was replaced by another while it was open",
            where=log.path,
            remedy="Open the path again.",
        )
    storage = PrivateMemory()
    file = storage.share(MEMORY_PATH, base, prefix.size)
    try:
        _continue(log, snapshot, prefix, states, file, MEMORY_PATH)
        return open_log(MEMORY_PATH, environment=copy_of(log.environment, storage=storage))
    finally:
        file.close()


def fork_into_file(
    log: Log, seq: int, path: str, states: KeptStates, progress: Progress | None = None
) -> None:
    """Write a new file that continues the first ``seq`` events of a log.

    The file appears whole or not at all, and never replaces another. Durable on return.

    Raises:
        InvalidInput: ``seq`` lies inside a batch, or the path is not valid.
        Conflict: a file exists at the path.
        NotFound: the path's folder does not exist.
        Corrupt: an event cannot be read.
    """
    path = path_name(path)
    if isinstance(log.environment.storage, PrivateMemory):
        raise InvalidInput(
            "A memory without a file cannot be forked into a file",
            where=log.path,
            remedy="Copy it with backup(path), and fork the copy.",
        )
    snapshot, prefix = _prefix(log, seq, states)
    report = progress or _silent
    with new_file(path, log.environment, like=log.path) as (file, temporary):
        copy_start(
            log.file.file, file, prefix.size, lambda done: report("copying", done, prefix.size)
        )
        _check_copied(LogFile(file, path, snapshot.page.file_id), prefix)
        _continue(log, snapshot, prefix, states, file, temporary)


def _silent(_doing: str, _finished: int, _total: int) -> None:
    """Report nothing."""


# --- the shared prefix ---------------------------------------------------------------------------


def _prefix(log: Log, seq: int, states: KeptStates) -> tuple[Snapshot, _Prefix]:
    """Return a snapshot of a log and the part of it that a fork at ``seq`` shares."""
    snapshot = log.snapshot
    page = snapshot.page
    # This version writes the fork, which would otherwise claim features that it lacks.
    check_writable(page, log.path)
    if seq:
        header = log.event(seq).header
        if header.last_seq != seq:
            raise InvalidInput(
                f"Event {seq:,} lies inside the batch of events {header.first_seq:,} to "
                f"{header.last_seq:,}",
                remedy=f"Fork at {header.first_seq - 1} or at {header.last_seq}.",
            )
    toc = snapshot.reader.toc(page)
    segments: list[Ref] = []
    cut: Ref | None = None
    for ref in toc.segments.walk(log.file.manifest):
        if ref.last_seq > seq:
            cut = ref if ref.first_seq <= seq else None
            break
        segments.append(ref)
    sealed, recorded, chain, tree = 0, 0, chain_start(page.log_id), Tree()
    if segments:
        index = log.file.segment(segments[-1].offset, segments[-1].length).index
        sealed, recorded = segments[-1].last_seq, index.batches[-1].recorded
        chain, tree = index.chain, Tree(segments[-1].last_seq, tuple(index.peaks))
    extents = [*segments, *toc.keys, *states.extents]
    spills: list[SpillRef] = []
    if cut is not None:
        # The places of vectors in a kept checkpoint are offsets in this segment.
        extents.append(cut)
        spills += _spills_of(log.file, cut)
    for batch in snapshot.tail_from(1):
        if batch.spill is not None and batch.last_seq <= seq:
            spills.append(batch.spill)
            extents.append(Ref(batch.spill.offset, batch.spill.length, 0, 0))
    ends = [sectors(ref.offset) + extent_size(ref.length) for ref in extents]
    size = max(page.ring_end + WITNESS_SPACE, *ends) if ends else page.ring_end + WITNESS_SPACE
    prefix = _Prefix(seq, tuple(segments), cut, tuple(spills), sealed, recorded, chain, tree, size)
    return snapshot, prefix


def _check_copied(log_file: LogFile, prefix: _Prefix) -> None:
    """Check every copied extent that holds events against its check.

    Raises:
        Corrupt: an extent of the parent is damaged.
    """
    spills = [*prefix.spills]
    for ref in prefix.segments:
        _check_segment(log_file, ref)
        spills += _spills_of(log_file, ref)
    for spill in spills:
        ref = Ref(spill.offset, spill.length, 0, 0)
        header = log_file.extent_header(ref, ExtentKind.SPILL)
        if not extent_is_whole(log_file.key, log_file.file, header):
            raise Corrupt(
                "The body of a spill extent is damaged",
                offset=spill.offset,
                remedy="Run 'cerata file verify' to see what is affected.",
            )


def _check_segment(log_file: LogFile, ref: Ref) -> None:
    """Refuse a damaged segment, by the name of its events: `Corrupt`."""
    try:
        log_file.read_extent(ref, ExtentKind.SEGMENT)
    except Corrupt as error:
        place = events_place(ref.first_seq, ref.last_seq)
        raise stopped(error, "The fork", place, COPY_BEFORE_DAMAGE) from error


def _spills_of(log_file: LogFile, ref: Ref) -> list[SpillRef]:
    """Return the extents of the large batches of a segment."""
    rows = log_file.segment(ref.offset, ref.length).index.batches
    return [row.spill for row in rows if row.spill is not None]


# --- the fork ------------------------------------------------------------------------------------


def _continue(
    log: Log, snapshot: Snapshot, prefix: _Prefix, states: KeptStates, file: StorageFile, path: str
) -> None:
    """Make a file that begins with a log's shared bytes the fork of the log."""
    page = _first_page(log, snapshot.page, prefix)
    toc = snapshot.reader.toc(snapshot.page)
    file.set_size(prefix.size)
    file.write_at(page.ring_offset, bytes(page.ring_size))
    log_file = LogFile(file, path, page.file_id)
    log_file.write_witnesses(page, 0)
    flip = Flip(log_file, page)
    refs = RefList()
    for ref in prefix.segments:
        refs = flip.append(refs, ref)
    flip.write(
        replace(
            Toc.of_page(page, prefix.chain, prefix.tree),
            generation=page.generation + 1,
            segments=refs,
            keys=KeyIndex(log.file).until(toc.keys, prefix.sealed, flip),
            # A fork of an earlier point lacks the event, and the contents before the point.
            erased=min(toc.erased, prefix.seq),
            branch=_newest_branch(log, prefix.sealed),
        )
    )
    spare = turned(flip.publish())
    file.write_at(spare.number * PAGE_SIZE, spare.encode())
    file.sync()
    copy = opened_copy(log, file, path)
    with held(file, LockName.WRITER, clock=log.environment.clock, timeout=0, path=path):
        seal_batches(copy, _rest(log, snapshot, prefix))
    # A fork in memory has just read the cut segment from the same verified bytes, so hashing its
    # events again would only repeat the result. A file is to be kept, and is compared.
    head = copy.head
    is_compared = path != MEMORY_PATH or prefix.seq == log.head.seq
    parent = (log.chain_at(prefix.seq), log.root_at(prefix.seq)) if is_compared else None
    if head.seq != prefix.seq or parent not in (None, (head.chain, head.root)):
        raise Corrupt(
            "The fork's hashes differ from the log's",
            where=log.path,
            remedy="Run 'cerata file verify' to list the damage.",
        )
    add_branch(copy)
    copy.publish_projections(states.build)


def _first_page(log: Log, page: HeaderPage, prefix: _Prefix) -> HeaderPage:
    """Return the page before the first of the fork: the file's id and ring, with nothing in it."""
    return replace(
        page,
        toc_offset=prefix.size,
        toc_size=0,
        data_end=prefix.size,
        ring_start=page.ring_offset,
        sealed_seq=prefix.sealed,
        link=NO_LINK,
        recorded=prefix.recorded,
        created=log.environment.now_us(),
        incarnation=page.incarnation + 1,
        closed_seq=0,
        moved=False,
    )


def _newest_branch(log: Log, seq: int) -> int:
    """Return the seq of the newest branch among the first events of a log; 0 without one."""
    return max([branch.seq for branch in log.branches() if branch.seq <= seq], default=0)


def _rest(log: Log, snapshot: Snapshot, prefix: _Prefix) -> Iterator[Batch]:
    """Yield the batches of the log between the shared segments and the point."""
    sealed: Iterable[Batch] = ()
    if prefix.cut is not None:
        # Its checks cover what the fork encodes again, whose checks would hide any damage. The fork
        # shares the spills.
        _check_segment(log.file, prefix.cut)
        sealed = snapshot.reader.segment_batches(prefix.cut, spilled=False)
    for batch in chain_of(sealed, snapshot.tail_from(1)):
        if batch.last_seq > prefix.seq:
            return
        yield batch
