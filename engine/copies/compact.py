"""Compaction: the log without dead space, in a new file that takes the place of the old file.

Owns the copy, which a later call continues if this one was killed, and the swap of the two files
while other processes read and write. Leaves out which payloads a retention drops, and the
checkpoints of the copy: the caller gives both.

- The copy is written from the events, as a backup is, under a name beside the file. Other
  processes continue; the copy catches up with them.
- Under the writer lock: copy the rest and sync; say `moved` in both header pages of the old file;
  rename the copy over it; sync the folder. Each handle follows at its next call
  (`log_file.relocation`).
- The copy has a second name from before the rename until the folder is synced. An opener that
  finds both names after a crash syncs the folder before it writes (`log_file.create`).
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Final

import msgspec
from blake3 import blake3

from ..codec import Batch, WireEvent, encode_payloads
from ..disk.storage import LockName
from ..errors import CerataError, Conflict, Corrupt, Locked, NotFound, StorageFailed
from ..events import Draft
from ..format.extent import extent_size
from ..format.record import sectors
from ..format.toc import Ref
from ..integrity import commitment_of
from ..log import Log
from ..log_file.create import discard, no_folder, sweep_temporaries, temporary_of, write_empty
from ..log_file.file import check_writable
from ..log_file.locks import held
from ..segments.reader import Snapshot
from ..segments.segment_reader import I64
from ..unreadable import whole_batches
from .backup import opened_copy, page_for, seal_batches
from .later_content import LaterContent

COPY_SUFFIX: Final = ".cerata-compact"
"""Ends the name of an unfinished copy; between it and the file's name stands that of the work."""

CATCH_UP_EVENTS: Final = 1_000
"""The copy may lack this many events when writers have to wait for the rest."""

_CATCH_UP_TRIES: Final = 8
_CHUNK_SHARE: Final = 0.92
"""The size of a copy's chunk over that of the log's, since a copy is compressed more."""
_RETENTION_TRIES: Final = 3

Progress = Callable[[str, int, int], None]
"""Called with the current step, the copied events, and their total."""


@dataclass(frozen=True, slots=True)
class Retention:
    """The payloads that a compaction leaves out.

    ``seqs`` are their events, in ascending order. ``drafts`` are the `Erase` events that record
    them, the last events of the new file.
    """

    seqs: I64
    drafts: tuple[Draft, ...]

    @property
    def name(self) -> bytes:
        """A hash that differs for other events."""
        return blake3(self.seqs.astype("<i8").tobytes()).digest()


@dataclass(frozen=True, slots=True)
class Steps:
    """The caller's part of a compaction.

    ``retain`` returns the payloads to leave out as of the newest event, or None for none. It is
    called again under the writer lock. ``save`` writes the checkpoints of the copy. ``is_over``
    returns True to stop early; a later compaction continues. ``carries`` returns whether another
    process saves the projection of a key, so that the copy gets its checkpoint. With ``any_size``
    the copy takes the place of the file even if it is no smaller.
    """

    retain: Callable[[], Retention | None]
    save: Callable[[Log], None]
    report: Progress
    is_over: Callable[[], bool]
    carries: Callable[[str], bool] = lambda _: False
    any_size: bool = False


class _NoGainError(Exception):
    """The copy is as large as the file."""


class _Outdated(Exception):
    """The payloads to leave out changed while the copy was written."""


def compact(log: Log, steps: Steps) -> bool | None:
    """Put a copy of a log without dead space in the place of its file.

    Returns False if the time was over before the swap: the copy stays, for the next call. Returns
    None if the copy is no smaller and gives up no payload: the file stays as it is. Durable on
    return.

    Raises:
        ReadOnly: the log was opened for reading.
        Locked: another process or thread compacts the file.
        Conflict: the file has several names, or its tags changed at every try.
        StorageFailed: the disk refused, such as for too little space; the old file is unchanged.
        Corrupt: an event cannot be read, or the path names another file.
        Unsupported: the file has features that this Cerata would undo.
    """
    with _alone(log):
        return _Compaction(log, steps).run()


@contextmanager
def _alone(log: Log) -> Generator[None]:
    """Hold the compaction lock of the file that the path names, alone in this process, too.

    Raises:
        Locked: another process or thread compacts the file.
    """
    refusal = Locked(
        "Another process or thread compacts the file",
        where=log.path,
        remedy="Try again when it has finished.",
    )
    # The system grants a lock again to a file that has it.
    if not log.compacting.acquire(blocking=False):
        raise refusal
    try:
        while True:
            file = log.file.file
            if not file.try_lock(LockName.COMPACTION, exclusive=True):
                raise refusal
            try:
                log.refresh()
                if log.file.file is file:
                    yield
                    return
                # Another compaction came first, and its file is at the path.
            finally:
                file.unlock(LockName.COMPACTION)
    finally:
        log.compacting.release()


class _Compaction:
    """One call of `compact`, with the compaction lock."""

    def __init__(self, log: Log, steps: Steps) -> None:
        self._log = log
        self._steps = steps
        self._later = LaterContent(log, steps.carries)
        self._storage = log.environment.storage
        self._path = self._storage.real_path(log.path)

    def run(self) -> bool | None:
        log = self._log
        self._check_alone_by_name()
        check_writable(log.page, log.path)
        for _ in range(_RETENTION_TRIES):
            retention = self._steps.retain()
            name = self._copy_name(retention)
            self._discard_others(name)
            copy = (self._begun(name) if retention is None else None) or self._created(name)
            stays = False
            self._later = LaterContent(log, self._steps.carries)
            try:
                if not self._fill(copy, retention):
                    stays = retention is None
                    return False
                # Once outside of the lock, so that the swap folds few events.
                self._check_current(retention)
                drafts = () if retention is None else retention.drafts
                log.move(partial(self._swap, copy, retention, encode_payloads(drafts, first=1)))
            except _Outdated:
                continue
            except _NoGainError:
                return None
            else:
                return True
            finally:
                copy.close()
                if not stays:
                    discard(self._storage, name)
        raise Conflict(
            "The tags before the horizon changed while the file was compacted",
            where=log.path,
            remedy="Compact when no other process tags the past.",
        )

    # --- names -----------------------------------------------------------------------------------

    def _check_alone_by_name(self) -> None:
        """Refuse a file with several names: another name would keep the old contents."""
        if self._storage.link_count(self._path) > 1:
            # A compactor that died after its rename left a second name.
            sweep_temporaries(self._path, self._log.environment)
        names = self._storage.link_count(self._path)
        if names > 1:
            raise Conflict(
                f"The file has {names} names (hard links), and compaction would move only one",
                where=self._path,
                remedy="Remove the other names, or copy the file with 'cerata file backup'.",
            )

    def _copy_name(self, retention: Retention | None) -> str:
        """Return the name of the copy, which differs for other work on the file."""
        dropped = b"" if retention is None else retention.name
        work = blake3(self._log.page.file_id + dropped).hexdigest(length=6)
        return f"{self._path}.{work}{COPY_SUFFIX}"

    def _discard_others(self, name: str) -> None:
        """Remove the copies that dead compactors left for other work."""
        for other in self._storage.siblings(self._path):
            is_copy = other.startswith(f"{self._path}.") and other.endswith(COPY_SUFFIX)
            if is_copy and other != name:
                discard(self._storage, other)

    def _begun(self, name: str) -> Log | None:
        """Return the copy that an earlier call left, if it holds the first events of the log."""
        with suppress(NotFound):
            file = self._storage.open(name, mode="rw")
            with suppress(CerataError):
                if file.try_lock(LockName.PRESENCE, exclusive=True):
                    copy = opened_copy(self._log, file, name)
                    head = copy.head
                    ours = head.seq, self._log.chain_at(head.seq), self._log.root_at(head.seq)
                    is_ours = (head.seq, head.chain, head.root) == ours
                    if is_ours and copy.erased == self._log.erased:
                        return copy
            file.close()
        return None

    def _created(self, name: str) -> Log:
        """Create a copy without events, locked against sweepers and other compactors."""
        discard(self._storage, name)
        try:
            file = self._storage.create(name, known_as=self._log.path)
        except NotFound as error:
            raise no_folder(self._path) from error
        try:
            file.try_lock(LockName.PRESENCE, exclusive=True)
            self._storage.copy_permissions(self._path, name)
            page = page_for(self._log, self._log.snapshot)
            write_empty(file, name, page, erased=self._log.erased)
            return opened_copy(self._log, file, name)
        except BaseException:
            file.close()
            discard(self._storage, name)
            raise

    # --- the copy --------------------------------------------------------------------------------

    def _fill(self, copy: Log, retention: Retention | None) -> bool:
        """Copy until few events are missing, and save checkpoints; False if the time is over."""
        is_saved = False
        for _ in range(_CATCH_UP_TRIES):
            self._log.refresh()
            snapshot = self._log.snapshot
            if is_saved and snapshot.head_seq - copy.head.seq <= CATCH_UP_EVENTS:
                break
            self._copy(copy, retention, snapshot)
            if self._steps.is_over():
                return False
            if not is_saved:
                self._steps.save(copy)
                self._carry(copy, retention, snapshot)
                is_saved = True
        return not self._steps.is_over()

    def _copy(
        self, copy: Log, retention: Retention | None, snapshot: Snapshot, *, whole: bool = False
    ) -> None:
        """Add the batches of a snapshot that the copy lacks; with ``whole`` also if it is late."""
        first = copy.head.seq + 1
        if first > snapshot.head_seq:
            return
        with held(
            copy.file.file, LockName.WRITER, clock=copy.environment.clock, timeout=0, path=copy.path
        ):
            seal_batches(copy, self._batches(snapshot, first, retention, whole=whole))

    def _batches(
        self, snapshot: Snapshot, first: int, retention: Retention | None, *, whole: bool
    ) -> Iterator[Batch]:
        """Yield the batches from event ``first`` on, checked, without the dropped payloads."""
        for batch in whole_batches(snapshot, first, "The compaction"):
            if not whole and self._steps.is_over():
                return
            yield batch if retention is None else _without(batch, retention.seqs)
            self._steps.report("copying", batch.last_seq, snapshot.head_seq)

    def _check_current(self, retention: Retention | None) -> None:
        """Raise `_Outdated` if the payloads to leave out are not the same any more."""
        if retention is not None:
            again = self._steps.retain()
            if again is None or again.name != retention.name:
                raise _Outdated

    def _carry(self, copy: Log, retention: Retention | None, snapshot: Snapshot) -> None:
        toc = snapshot.reader.toc(snapshot.page)
        self._later.carry(toc, copy, checkpoints=retention is None)

    # --- the swap --------------------------------------------------------------------------------

    def _swap(
        self,
        copy: Log,
        retention: Retention | None,
        payloads: Sequence[bytes],
        snapshot: Snapshot,
    ) -> None:
        """Under the writer lock: complete the copy, and put it in the place of the file.

        ``payloads`` are those of the drafts of ``retention``, which may have very many targets.
        """
        log, storage, path = self._log, self._storage, self._path
        self._copy(copy, retention, snapshot, whole=True)
        head = snapshot.head_seq
        # Not by the log, whose readers may not see the newest events yet.
        chain, tree = snapshot.reader.chain_and_tree(snapshot, head)
        expected = head, chain, tree.root()
        if (copy.head.seq, copy.head.chain, copy.head.root) != expected:
            raise Corrupt(
                "The copy's hashes differ from the log's",
                where=log.path,
                remedy="Run 'cerata file verify' to list the damage.",
            )
        self._carry(copy, retention, snapshot)
        self._check_current(retention)
        if retention is not None:
            copy.append(retention.drafts, payloads=payloads)
            copy.seal()
        elif not self._steps.any_size and copy.file.file.size() >= log.file.file.size():
            raise _NoGainError
        self._check_alone_by_name()
        if storage.identity(copy.path) != copy.file.file.identity():
            raise Conflict(
                "The copy was replaced or removed while it was written",
                where=copy.path,
                remedy="Compact again.",
            )
        second = temporary_of(path, log.environment)
        storage.link(copy.path, second)
        try:
            log.set_moved(moved=True)
            try:
                storage.rename(copy.path, path)
            except StorageFailed:
                log.set_moved(moved=False)
                raise
        except BaseException:
            discard(storage, second)
            raise
        storage.sync_dir(path)
        # Only now may other processes open the new file for writing.
        copy.close()
        discard(storage, second)


def _without(batch: Batch, seqs: I64) -> Batch:
    """Return a batch without the payloads of some events, given in ascending order."""
    low, high = seqs.searchsorted([batch.first_seq, batch.last_seq + 1])
    if low == high:
        return batch
    events = [*batch.events]
    chosen: list[int] = seqs[low:high].tolist()
    for seq in chosen:
        place = seq - batch.first_seq
        events[place] = _dropped(events[place], seq)
    return msgspec.structs.replace(batch, events=tuple(events))


def _dropped(event: WireEvent, seq: int) -> WireEvent:
    """Return an event whose commitment takes the place of its payload."""
    if event.salt is None:
        return event
    commitment = commitment_of(event.salt, event.payload, seq)
    return msgspec.structs.replace(event, salt=None, payload=commitment, attachments=())


# --- sizes ---------------------------------------------------------------------------------------


def live_size(log: Log, dropped: "I64 | None" = None) -> int:
    """Return the bytes of a file that a copy would have, about: without ``dropped`` payloads."""
    snapshot = log.snapshot
    toc = snapshot.reader.toc(snapshot.page)
    refs = [*toc.keys]
    for ref in toc.segments.walk(log.file.manifest):
        refs.append(ref)
        rows = log.file.segment(ref.offset, ref.length).index.batches
        refs += [Ref(row.spill.offset, row.spill.length, 0, 0) for row in rows if row.spill]
    for batch in snapshot.tail_from(1):
        if batch.spill is not None:
            refs.append(Ref(batch.spill.offset, batch.spill.length, 0, 0))
    chunks: list[Ref] = []
    for key in toc.projections:
        saved = toc.saved(key)
        # A copy has one checkpoint, which needs no ledger.
        for page in saved.chunks:
            refs.append(page.extent)
            with suppress(Corrupt):
                chunks += log.file.page(page)
    # Projections share manifests, and a rebuild's progress names the old chunks that are equal.
    refs, chunks = [*dict.fromkeys(refs)], [*dict.fromkeys(chunks)]
    fixed = page_for(log, snapshot).data_end
    size = fixed + sum(sectors(extent_size(ref.length)) for ref in refs)
    size += sum(sectors(extent_size(int(_CHUNK_SHARE * ref.length))) for ref in chunks)
    if dropped is not None and len(dropped):
        size -= snapshot.reader.stored_size(snapshot, dropped)
    return size


def check_space(log: Log, size: int) -> None:
    """Refuse a disk that has no space for a copy of about ``size`` bytes.

    Raises:
        StorageFailed: too few bytes are free.
    """
    storage = log.environment.storage
    free = storage.free_space(storage.real_path(log.path))
    if free < size:
        raise StorageFailed(
            f"Compaction needs about {size:,} bytes beside the file; {free:,} are free",
            where=log.path,
            remedy="Free space on the disk and call again.",
        )
