"""The import of events into a copy of their log: seqs, times, salts and contents stay.

Owns the choice between a copy of the log and another log, and the writing of the copy. A group of
whole batches becomes a segment of the file, durable before the next group is read, so an import
that was killed goes on at the head of the file. Leaves out another log (`remapping`).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from cerata.engine.errors import Conflict, Diverged, InvalidInput, NotFound, Refused, Unsupported
from cerata.engine.late import loading
from cerata.engine.log_file.writer import Origin
from cerata.engine.packs import Role
from cerata.engine.plain_value import PlainValue
from cerata.engine.words import counted
from cerata.projections.columnar.scopes import admits

from .event_batches import Counts, EventBatches, ReadBatch, scope_of
from .line_blocks import refusal

if TYPE_CHECKING:
    from cerata.engine.codec import Batch
    from cerata.engine.log import Log

    from ..batch.session import WriteSession

ImportProgress: TypeAlias = Callable[[int, int], None]
"""Called after each group of batches with the counts of finished lines, and of bytes read."""

GROUP_SIZE: Final = 8 << 20
GROUP_EVENTS: Final = 65_536
"""Bytes and events after which a group of batches becomes a segment."""


@dataclass(frozen=True, slots=True)
class ImportedEvents(PlainValue):
    """The result of an import of events.

    - ``added`` counts the events that this import wrote, ``known`` those that the file had.
    - ``skipped`` counts the events that another log does not take, by type; identity files count
      as "putFrame of identity".
    - ``erased`` counts the erased events of the export whose content the file still has.
    - ``is_whole`` is False if the lines ended before their end line: they were cut off.
    - ``is_copy`` is True if the file is a copy of the exported log.
    - ``head`` is the log's newest event after the import.
    """

    added: int
    known: int
    skipped: Mapping[str, int]
    erased: int
    is_whole: bool
    is_copy: bool
    head: int


def import_events(
    session: WriteSession,
    read: Callable[[int], bytes],
    progress: Callable[[int], None],
) -> ImportedEvents:
    """Write the events of an export; see `Store.interchange.import_events`.

    ``progress`` is called after each group with the count of finished lines.
    """
    log = session.log
    batches = EventBatches(read)
    head = log.refresh().seq
    is_copy = head == 0 or log.log_id == batches.start.log_id
    counts = Counts()
    if is_copy and session.role is not Role.COPY:
        # The events of a copy are written as they are, so no rule of owners sees them.
        raise Refused(f"{session.role.subject} cannot continue a log", where=log.path)
    with _with_progress(counts):
        if is_copy:
            _Copy(session, batches, counts, progress).write()
        else:
            with loading("the part that imports events"):
                from .remapping import import_into_other

            import_into_other(session, batches, counts, progress)
    return ImportedEvents(
        counts.added,
        counts.known,
        dict(sorted(counts.skipped.items())),
        counts.erased,
        batches.is_whole,
        is_copy,
        log.refresh().seq,
    )


@contextmanager
def _with_progress(counts: Counts) -> Generator[None]:
    """Add to an error the events before it, which stay."""
    try:
        yield
    except (Conflict, InvalidInput, NotFound, Unsupported) as error:
        if not counts.added + counts.known:
            raise
        events = counted(counts.added, "event")
        what = f"{error.what}; {events} before it {'is' if counts.added == 1 else 'are'} imported"
        if counts.known:
            what += f", and {counts.known:,} already present"
        raise type(error)(what, where=error.where, remedy=error.remedy) from error


class _Copy:
    """The import into a copy of the log.

    - ``_head`` is the copy's newest event; no batch at or before it is written.
    """

    def __init__(
        self,
        session: WriteSession,
        batches: EventBatches,
        counts: Counts,
        progress: Callable[[int], None],
    ) -> None:
        self._session = session
        self._log: Log = session.log
        self._batches = batches
        self._counts = counts
        self._progress = progress
        self._head = self._log.head.seq
        self._group: list[Batch] = []
        self._size = self._events = 0
        self._last: ReadBatch | None = None
        """The last batch that the file has."""

    def write(self) -> None:
        """Write the batches after the head.

        Raises:
            Diverged: the file has another history than the export.
            InvalidInput: the export begins after the head, or a line is refused.
            Conflict: another process wrote to the file at the same time.
        """
        start = self._batches.start
        if start.seq > self._head:
            raise InvalidInput(
                f"The export begins after event {start.seq:,}, and the file ends at event "
                f"{self._head:,}",
                where=self._log.path,
                remedy="Import an export that begins earlier first.",
            )
        end = start.seq
        if self._head == 0:
            if self._log.log_id != start.log_id:
                self._log.become_copy(Origin(start.log_id, start.created))
        else:
            self._compare(start.seq, start.chain)
        try:
            for read in self._batches:
                self._check_scopes(read)
                end = read.batch.last_seq
                if end <= self._head:
                    self._pass(read)
                elif read.batch.first_seq <= self._head:
                    raise self._diverged(self._head)
                else:
                    self._add(read.batch)
        except InvalidInput:
            # The batches before a refused line are verified, and stay.
            self._flush()
            raise
        self._flush()
        if self._last is not None and end < self._head:
            self._compare(end, self._last.chain)
        if self._batches.is_whole and self._log.root_at(end) != self._batches.root:
            raise refusal(self._batches.lines, "The end line has another root than its events")

    def _pass(self, read: ReadBatch) -> None:
        """Compare a batch that the file has."""
        batch = read.batch
        self._counts.known += batch.count
        for seq, event in enumerate(batch.events, start=batch.first_seq):
            if event.salt is None and self._log.event(seq).salt is not None:
                self._counts.erased += 1
        if batch.last_seq == self._head:
            self._compare(batch.last_seq, read.chain)
        self._last = read

    def _compare(self, seq: int, chain: bytes) -> None:
        if self._log.chain_at(seq) != chain:
            raise self._diverged(seq)

    def _diverged(self, seq: int) -> Diverged:
        return Diverged(
            f"The file and the export have the same log id, and another history by event {seq:,}",
            where=self._log.path,
            remedy="Import into a new file, and compare the two.",
            kind="fork",
            remembered=f"{seq}:{self._batches.start.log_id.hex()}",
            found=f"{self._head}:{self._log.log_id.hex()}",
        )

    def _check_scopes(self, read: ReadBatch) -> None:
        reach = self._session.reach
        if reach is None:
            return
        for seq, event in enumerate(read.batch.events, start=read.batch.first_seq):
            if event.salt is None or not admits(scope_of(event.payload), reach.private):
                raise refusal(
                    read.line,
                    f"Event {seq:,} is not within the scope of the store",
                    "Open the store without a scope.",
                )

    def _add(self, batch: Batch) -> None:
        size = sum(len(event.payload) + sum(map(len, event.attachments)) for event in batch.events)
        if self._group and (
            self._size + size > GROUP_SIZE or self._events + batch.count > GROUP_EVENTS
        ):
            self._flush()
        self._group.append(batch)
        self._size += size
        self._events += batch.count

    def _flush(self) -> None:
        """Write the group. Durable on return."""
        if self._group:
            self._log.append_sealed(self._group, expect=self._head)
            self._head = self._group[-1].last_seq
            self._counts.added += self._events
            self._group, self._size, self._events = [], 0, 0
        self._progress(self._batches.lines)
