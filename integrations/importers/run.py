"""The run of an import: records in batches, each batch durable before the next is read.

Owns `import_from`, the batches and the counts. A batch holds no lock while records are read;
records that the memory has are left out. So an import that was killed continues where it ended. An
unusable record costs itself alone: it is counted and named, and its batch is written without it. A
dry run writes the batches to memories of its own, and forgets them. Leaves out the sources
(`mem0`, …).
"""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from itertools import zip_longest
from typing import IO, Final

from cerata.engine.arguments import expect_type
from cerata.engine.errors import (
    CerataError,
    Conflict,
    InvalidInput,
    NotFound,
    ReadOnly,
    Unsupported,
)
from cerata.engine.packs import Role, packs, target
from cerata.engine.plain_value import PlainValue
from cerata.memory.batch.writer import acting, session_of
from cerata.memory.frames.versions import put_all_replacing
from cerata.memory.store import Store, open_store

from . import json_lines
from .pack import kinds
from .records import DeletionRecord, MemoryAt, Notice, Problem, Record, Skipped, Source, Versions

BATCH_RECORDS: Final = 500
_BATCH_SIZE: Final = 4 << 20
"""Characters of a batch's texts, or bytes of its values, after which it ends."""

_PROBLEMS_MAX: Final = 100
"""Problems, and doubtful records, that a result lists; further ones are counted."""

_TRIES: Final = 100
"""Times that a batch is written again after other writers changed its records first."""

_REFUSALS = (InvalidInput, NotFound, Unsupported, ReadOnly)

_Opener = Callable[[str | os.PathLike[str], datetime], AbstractContextManager[Source]]

Progress = Callable[[int, int], None]
"""Called after each batch with the amount read and the amount there is, 0 if unknown."""


@dataclass(frozen=True, slots=True)
class ImportedRecords(PlainValue):
    """The result of an import.

    - ``added`` counts the records that were written, or that a dry run would write.
    - ``known`` counts the records that the memory had, or had and gave up.
    - ``skipped`` counts by reason the records that no memory takes.
    - ``problems`` are the first hundred records that are unusable; ``refused`` counts all of them.
    - ``doubts`` are the first hundred records that were added without an unusable part, such as a
      created time; ``doubtful`` counts all of them.
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
    doubtful: int = 0
    doubts: tuple[Problem, ...] = ()


class Run:
    """The state of an import."""

    def __init__(self, store: Store, role: Role, *, dry_run: bool) -> None:
        # Without a scope writes go to the tenant "default", and so do these reads.
        of_scope = store.scoped({"tenant": "default"}) if store.scope is None else store
        self._store = acting(of_scope, role)
        self._dry_run = dry_run
        self._batch: dict[str, Versions] = {}
        self._size = self._count = 0
        self._added = self._known = self._refused = self._doubtful = 0
        self._skipped: Counter[str] = Counter()
        self._problems: list[Problem] = []
        self._doubts: list[Problem] = []
        self._notices: list[str] = []
        self._planned: set[int] = set()
        """Hashes of the names and versions that a dry run would have written."""

    def read(self, source: Source, progress: Progress | None) -> ImportedRecords:
        """Import the records of a source.

        Raises:
            InvalidInput, NotFound, Unsupported: no record is usable; the error is that of the
                first. Or the source cannot be read further; the records before that are written.
        """
        try:
            for entry in source:
                if isinstance(entry, Skipped):
                    self._skipped[entry.reason] += 1
                elif isinstance(entry, Notice):
                    self._notices.append(entry.text)
                elif isinstance(entry, Problem):
                    self._refuse(entry)
                elif self._take(_versions(entry)) and progress is not None:
                    progress(source.done, source.total)
        except CerataError as error:
            self._write()
            raise self._ended(error) from error
        self._write()
        if progress is not None:
            progress(source.done, source.total)
        if self._problems and not (self._dry_run or self._added or self._known or self._skipped):
            raise self._problems[0].raised()
        return ImportedRecords(
            self._added,
            self._known,
            dict(self._skipped),
            self._refused,
            tuple(self._problems),
            self._store.head.seq,
            tuple(self._notices),
            self._doubtful,
            tuple(self._doubts),
        )

    def _ended(self, error: CerataError) -> CerataError:
        """Return the error of a source that cannot be read further, with what stays."""
        if not self._added + self._known:
            return error
        what = f"{error.what}; the {self._added + self._known:,} records before it are imported"
        return type(error)(what, where=error.where, remedy=error.remedy)

    def _take(self, versions: Versions) -> bool:
        """Add versions to the batch; return True if a batch ended."""
        is_full = (
            versions.name in self._batch
            or self._count + len(versions.records) > BATCH_RECORDS
            or self._size + versions.size > _BATCH_SIZE
        )
        if is_full:
            self._write()
        self._batch[versions.name] = versions
        self._size += versions.size
        self._count += len(versions.records)
        return is_full

    def _write(self) -> None:
        batch = [*self._batch.values()]
        self._batch.clear()
        self._size = self._count = 0
        if self._dry_run:
            self._plan(batch)
        else:
            self._write_batch(batch)

    def _write_batch(self, batch: Sequence[Versions]) -> None:
        """Write a batch, again if another writer was first, and again without its bad records."""
        for attempt in range(_TRIES if batch else 0):
            memory = MemoryAt(self._store)
            new = _new(batch, memory)
            try:
                if new:
                    _write(self._store, memory, new)
            except Conflict:
                if attempt + 1 == _TRIES:
                    raise
            except _REFUSALS as error:
                if type(error) is ReadOnly:
                    # The memory takes no record; its subclasses are about one.
                    raise
                for part in self._without_bad(batch, new, memory, error):
                    self._write_batch(part)
                return
            else:
                self._count_added(batch, new)
                return

    def _plan(self, batch: Sequence[Versions]) -> None:
        memory = MemoryAt(self._store)
        new: list[Versions] = []
        for versions in _new(batch, memory):
            records = tuple(record for record in versions.records if self._is_unplanned(record))
            if records:
                new.append(Versions(records))
        self._count_added(batch, new)
        if _refusal_of(new, memory) is not None:
            for problem in _problems_of(new, memory).values():
                self._added -= 1
                self._refuse(problem)

    def _is_unplanned(self, record: Record) -> bool:
        """Return whether no earlier record of a dry run has the name and version."""
        key = hash((record.name, record.version))
        is_planned = key in self._planned
        self._planned.add(key)
        return not is_planned

    def _count_added(self, batch: Iterable[Versions], new: Iterable[Versions]) -> None:
        records = [record for versions in new for record in versions.records]
        self._added += len(records)
        written = set(map(id, records))
        for versions in batch:
            for record in versions.records:
                if id(record) in written:
                    continue
                if isinstance(record, DeletionRecord) and record.reason is not None:
                    self._skipped[record.reason] += 1
                else:
                    self._known += 1
        for record in records:
            if record.doubts:
                self._doubtful += 1
                what = "; ".join(record.doubts)
                problem = Problem(record.place, f"Added without a part: {what}", None, InvalidInput)
                _list(self._doubts, problem)

    def _without_bad(
        self,
        batch: Sequence[Versions],
        new: Sequence[Versions],
        memory: MemoryAt,
        error: CerataError,
    ) -> Sequence[Sequence[Versions]]:
        """Refuse the bad records of a batch, and return the batches of the rest."""
        bad = _problems_of(new, memory)
        for problem in bad.values():
            self._refuse(problem)
        if bad:
            rest = (
                tuple(record for record in versions.records if id(record) not in bad)
                for versions in batch
            )
            return [[Versions(records) for records in rest if records]]
        # The records are refused by this memory alone, or only together.
        if len(batch) > 1:
            return [[versions] for versions in batch]
        [versions] = batch
        for record in versions.records:
            self._refuse(Problem.of(error, record.place))
        return []

    def _refuse(self, problem: Problem) -> None:
        self._refused += 1
        _list(self._problems, problem)


def _list(problems: list[Problem], problem: Problem) -> None:
    if len(problems) < _PROBLEMS_MAX:
        problems.append(problem)


def _versions(entry: Record | Versions) -> Versions:
    return entry if isinstance(entry, Versions) else Versions((entry,))


def _new(batch: Iterable[Versions], memory: MemoryAt) -> list[Versions]:
    """Return the versions that a memory lacks."""
    new = (versions.new(memory) for versions in batch)
    return [Versions(records) for records in new if records]


def _write(store: Store, memory: MemoryAt, batch: Sequence[Versions]) -> None:
    events = any(record.is_event(memory) for versions in batch for record in versions.records)
    # A frame's URI is watched by its own rule; other writers need not stop for it.
    with store.transaction(expect=memory.view.basis if events else None):
        for place, versions in enumerate(zip_longest(*(each.records for each in batch))):
            records = [record for record in versions if record is not None]
            # A later version replaces the earlier ones of its batch, too.
            _write_records(store, MemoryAt(store) if place else memory, records)


def _write_records(store: Store, memory: MemoryAt, records: Sequence[Record]) -> None:
    """Write records of different names within a transaction."""
    drafts = {record.name: record.draft(memory) for record in records}
    frames = {name: draft for name, draft in drafts.items() if draft is not None}
    # First of all, so that the frames to close are those before these records.
    ids = put_all_replacing(session_of(store), [*frames.values()]).ids if frames else ()
    places = dict(zip(frames, ids, strict=True))
    for record in records:
        record.write(store, memory, places.get(record.name, 0))


def _refusal_of(batch: Sequence[Versions], memory: MemoryAt) -> CerataError | None:
    """Write records to an empty memory, and return its refusal."""
    with open_store(":memory:", scope=dict(memory.scope)) as scratch:
        scratch = acting(scratch, memory.role)
        try:
            _write(scratch, MemoryAt(scratch), batch)
        except _REFUSALS as error:
            return error
    return None


def _problems_of(batch: Iterable[Versions], memory: MemoryAt) -> dict[int, Problem]:
    """Return the problems of the records that an empty memory refuses alone, by their identity."""
    problems: dict[int, Problem] = {}
    for versions in batch:
        for record in versions.records:
            error = _refusal_of([Versions((record,))], memory)
            if error is not None:
                problems[id(record)] = Problem.of(error, record.place)
    return problems


def import_from(
    store: Store,
    kind: str,
    source: str | os.PathLike[str] | IO[bytes],
    *,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> ImportedRecords:
    """Write the records of another memory, each once, with the store's scope (docs/importers.md).

    A batch of records is durable before the next is read, and whole or absent after a crash, so a
    repeated call continues after an interrupt, and then adds nothing. An unusable record is left
    out, counted and named in the result. The source is only read. Vectors of Chroma come if its
    package is installed.

    Args:
        store: The memory to write.
        kind: One of `kinds`.
        source: The file; for "jsonl" also a file that is open for bytes.
        dry_run: Write nothing, and return the counts and the problems of a run. Default False.
        progress: Called after each batch with the amount read, and the amount there is.

    Raises:
        InvalidInput: no such kind exists; the source is empty, another kind's, or has no usable
            record; or it is damaged, and the whole batches before the damage are written.
            ``where`` is the table and row, or the line.
        NotFound: the source does not exist.
        Locked: another program holds the source.
        Unsupported: a value has an encoding that is never read.
        Conflict: a transaction is open, or other writers changed the records in 100 attempts.
    """
    expect_type("store", store, Store, "a cerata.Store", "Pass the store of cerata.open.")
    if kind not in kinds():
        raise InvalidInput(
            f"There is no kind of source {kind!r:.60}", remedy=f"Pass one of {', '.join(kinds())}."
        )
    # Refuses a transaction that is open, before anything is read.
    with store.transaction():
        pass
    pack = next((pack for pack in packs() if kind in pack.importers), None)
    role = None if pack is None else pack.role
    run = Run(store, role or Role.IMPORTER, dry_run=dry_run)
    if pack is None:
        with json_lines.opened(source) as records:
            return run.read(records, progress)
    if not isinstance(source, str | os.PathLike):
        raise InvalidInput(f"A source of {kind} is a path", remedy="Pass the name of the file.")
    opened: _Opener = target(pack.importers[kind])
    with opened(source, store.history.view().now) as records:
        return run.read(records, progress)
