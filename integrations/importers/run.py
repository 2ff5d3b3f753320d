"""The run of an import: records in batches, each batch durable before the next is read.

Owns the batches and the counts. A batch holds no lock while records are read, and has a single
record of each name; records that the memory has are left out. So an import that was killed
continues where it ended. A dry run writes the batches to memories of its own, and forgets them.
Leaves out the sources (`mem0`, `json_lines`, …).
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from cerata.engine.errors import CerataError, Conflict, InvalidInput, NotFound, Unsupported
from cerata.engine.plain_value import PlainValue
from cerata.memory.batch.writer import session_of
from cerata.memory.frames.replacement import put_all_replacing
from cerata.memory.store import Store, open_store

from .records import MemoryAt, Notice, Problem, Record, Skipped, Source

BATCH_RECORDS: Final = 500
_BATCH_SIZE: Final = 4 << 20
"""Characters of a batch's texts, or bytes of its values, after which it ends."""

_PROBLEMS_MAX: Final = 100
"""Problems that a dry run lists; further ones are counted."""

_TRIES: Final = 100
"""Times that a batch is written again after other writers changed its records first."""

_REFUSALS = (InvalidInput, NotFound, Unsupported)

Progress = Callable[[int, int], None]
"""Called after each batch with the amount read and the amount there is, 0 if unknown."""


@dataclass(frozen=True, slots=True)
class ImportedRecords(PlainValue):
    """The result of an import.

    - ``added`` counts the records that were written, or that a dry run would write.
    - ``known`` counts the records that the memory had, or had and gave up.
    - ``skipped`` counts by reason the records that no memory takes.
    - ``problems`` are the first hundred records that a dry run found unusable; ``refused`` counts
      all of them. An import that writes raises the first.
    - ``head`` is the log's newest event after the import.
    - ``notices`` name parts of the source that were left out, such as vectors.
    """

    added: int
    known: int
    skipped: Mapping[str, int]
    refused: int
    problems: tuple[Problem, ...]
    head: int
    notices: tuple[str, ...] = ()


class Run:
    """The state of an import."""

    def __init__(self, store: Store, *, dry_run: bool) -> None:
        # Without a scope writes go to the tenant "default", and so do these reads.
        self._store = store.scoped({"tenant": "default"}) if store.scope is None else store
        self._dry_run = dry_run
        self._batch: dict[str, Record] = {}
        self._size = 0
        self._added = self._known = self._refused = 0
        self._skipped: Counter[str] = Counter()
        self._problems: list[Problem] = []
        self._notices: list[str] = []
        self._planned: set[int] = set()
        """Hashes of the names and versions that a dry run would have written."""

    def read(self, source: Source, progress: Progress | None) -> ImportedRecords:
        """Import the records of a source.

        Raises:
            InvalidInput, NotFound, Unsupported: a record is unusable; nothing of its batch is
                written, and earlier batches stay.
        """
        for entry in source:
            if isinstance(entry, Skipped):
                self._skipped[entry.reason] += 1
            elif isinstance(entry, Notice):
                self._notices.append(entry.text)
            elif isinstance(entry, Problem):
                self._refuse([entry])
            elif self._take(entry) and progress is not None:
                progress(source.done, source.total)
        self._write()
        if progress is not None:
            progress(source.done, source.total)
        return ImportedRecords(
            self._added,
            self._known,
            dict(self._skipped),
            self._refused,
            tuple(self._problems),
            self._store.head.seq,
            tuple(self._notices),
        )

    def _take(self, record: Record) -> bool:
        """Add a record to the batch; return True if a batch ended."""
        is_full = (
            record.name in self._batch
            or len(self._batch) >= BATCH_RECORDS
            or self._size + record.size > _BATCH_SIZE
        )
        if is_full:
            self._write()
        self._batch[record.name] = record
        self._size += record.size
        return is_full

    def _write(self) -> None:
        batch = [*self._batch.values()]
        self._batch.clear()
        self._size = 0
        if not batch:
            return
        if self._dry_run:
            self._plan(batch)
            return
        for attempt in range(_TRIES):
            memory = MemoryAt(self._store)
            new = [record for record in batch if not record.is_known(memory)]
            try:
                if new:
                    _write(self._store, memory, new)
            except Conflict:
                if attempt + 1 == _TRIES:
                    raise
            except _REFUSALS as error:
                for problem in _problems_of(new, memory):
                    raise problem.raised() from error
                raise
            else:
                self._added += len(new)
                self._known += len(batch) - len(new)
                return

    def _plan(self, batch: list[Record]) -> None:
        memory = MemoryAt(self._store)
        new: list[Record] = []
        for record in batch:
            key = hash((record.name, record.version))
            if key not in self._planned and not record.is_known(memory):
                new.append(record)
                self._planned.add(key)
        self._known += len(batch) - len(new)
        problems = [] if _is_writable(new, memory) else _problems_of(new, memory)
        self._added += len(new) - len(problems)
        self._refuse(problems)

    def _refuse(self, problems: Iterable[Problem]) -> None:
        for problem in problems:
            if not self._dry_run:
                raise problem.raised()
            self._refused += 1
            if len(self._problems) < _PROBLEMS_MAX:
                self._problems.append(problem)


def _write(store: Store, memory: MemoryAt, records: Sequence[Record]) -> None:
    events = [record for record in records if record.is_event(memory)]
    # A frame's URI is watched by its own rule; other writers need not stop for it.
    expect = memory.view.basis if events else None
    with store.transaction(expect=expect):
        drafts = {record.name: record.draft(memory) for record in records}
        frames = {name: draft for name, draft in drafts.items() if draft is not None}
        # First of all, so that the frames to close are those of the log.
        ids = put_all_replacing(session_of(store), [*frames.values()]).ids if frames else ()
        places = dict(zip(frames, ids, strict=True))
        for record in records:
            record.write(store, memory, places.get(record.name, 0))


def _is_writable(records: list[Record], memory: MemoryAt) -> bool:
    return _refusal_of(records, memory) is None


def _refusal_of(records: list[Record], memory: MemoryAt) -> CerataError | None:
    """Write records to an empty memory, and return its refusal."""
    with open_store(":memory:", scope=dict(memory.scope)) as scratch:
        try:
            _write(scratch, MemoryAt(scratch), records)
        except _REFUSALS as error:
            return error
    return None


def _problems_of(records: Iterable[Record], memory: MemoryAt) -> list[Problem]:
    """Return the records that an empty memory refuses, one by one."""
    refusals = ((record, _refusal_of([record], memory)) for record in records)
    return [Problem.of(error, record.place) for record, error in refusals if error is not None]
