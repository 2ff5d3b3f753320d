"""Many files: each remembered once, and what became of it.

Owns the summary: what was added, unchanged, replaced and skipped, and why. One file that cannot be
read stops no other. Leaves out which files (`finding`) and how one is stored (`ingest`).
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from cerata.engine.errors import CerataError, InvalidInput, NotFound, StorageFailed, Unsupported
from cerata.engine.events import JsonValue, PutFrame, Scope

from .embedding import Embeds
from .extract.registry import extract
from .finding import FoundFiles
from .ingest import Ingest, passages_of, read_file
from .known import file_uri, find_unchanged, source_hash

Outcome: TypeAlias = Literal["added", "replaced", "unchanged", "skipped"]


@dataclass(frozen=True, slots=True)
class RememberedFile:
    """What became of one file, or would.

    ``id`` is its frame, None where there is none yet; ``frames`` how many came; ``replaced`` the
    frames whose place it took; ``why`` it was skipped.
    """

    path: str
    outcome: Outcome
    id: int | None = None
    frames: int = 0
    replaced: tuple[int, ...] = ()
    why: str | None = None

    def to_dict(self) -> dict[str, JsonValue]:
        return {
            "path": self.path,
            "outcome": self.outcome,
            "id": self.id,
            "frames": self.frames,
            "replaced": list(self.replaced),
            "why": self.why,
        }


@dataclass(frozen=True, slots=True)
class Remembered:
    """What became of many files; ``excluded`` and ``passed_over`` as `FoundFiles` has them."""

    files: tuple[RememberedFile, ...]
    excluded: int
    passed_over: Mapping[str, int]
    dry_run: bool
    head: int | None
    """The log's newest event afterwards; None where no memory was opened."""

    def of(self, outcome: Outcome) -> list[RememberedFile]:
        """Return the files with one outcome, in order."""
        return [file for file in self.files if file.outcome == outcome]

    @property
    def frames(self) -> int:
        """How many frames came."""
        return sum(file.frames for file in self.files)

    def to_dict(self) -> dict[str, JsonValue]:
        outcomes: tuple[Outcome, ...] = ("added", "replaced", "unchanged", "skipped")
        return {
            **{outcome: len(self.of(outcome)) for outcome in outcomes},
            "frames": self.frames,
            "excluded": self.excluded,
            "passed_over": dict(self.passed_over),
            "dry_run": self.dry_run,
            "head": self.head,
            "files": [file.to_dict() for file in self.files],
        }


Report: TypeAlias = Callable[[RememberedFile, int, int], None]
"""Is told of each file as it is done: what became of it, which it is from 1, and of how many."""


def remember_files(
    store: Embeds | Callable[[], Embeds],
    found: FoundFiles,
    fields: PutFrame,
    scope: Scope,
    *,
    dry_run: bool = False,
    report: Report | None = None,
) -> Remembered:
    """Remember files one by one, each durable before the next; with ``dry_run`` write nothing.

    A store that is given as what opens it is opened when there is something to keep, so that names
    that are wrong leave no empty file.
    """
    work = _Work(store, fields, scope, dry_run=dry_run)
    files: list[RememberedFile] = []
    total = len(found.files) + len(found.unreadable)
    for one in work.each(found):
        files.append(one)
        if report is not None:
            report(one, len(files), total)
    head = None if work.store is None else work.store.refresh().seq
    return Remembered(tuple(files), found.excluded, found.passed_over, dry_run, head)


class _Work:
    """The files on their way in, and the store once it is open."""

    def __init__(
        self,
        store: Embeds | Callable[[], Embeds],
        fields: PutFrame,
        scope: Scope,
        *,
        dry_run: bool,
    ) -> None:
        self._given = store
        self._fields = fields
        self._scope = scope
        self._dry_run = dry_run
        self.store: Embeds | None = store if isinstance(store, Embeds) else None

    def each(self, found: FoundFiles) -> Iterator[RememberedFile]:
        for path, why in found.unreadable:
            yield RememberedFile(path, "skipped", why=why)
        for path in found.files:
            try:
                data = read_file(Path(path))
            except (InvalidInput, NotFound, StorageFailed) as error:
                yield RememberedFile(path, "skipped", why=_why(error, path))
            else:
                yield self._remember(path, data)

    def _remember(self, path: str, data: bytes) -> RememberedFile:
        uri = file_uri(path)
        if self.store is not None:
            known = find_unchanged(self.store.view().within(self._scope), data, uri, self._scope)
            if known is not None:
                return RememberedFile(path, "unchanged", known.id)
        try:
            document = extract(data, path)
            passages = passages_of(document, path)
        except (InvalidInput, Unsupported) as error:
            return RememberedFile(path, "skipped", why=_why(error, path))
        store = self._opened()
        title = self._fields.title or document.title or Path(path).name
        fields = msgspec.structs.replace(self._fields, uri=uri, title=title)
        ingest = Ingest(store, document, fields, self._scope, source_hash(data), passages)
        return take_in(ingest, path, dry_run=self._dry_run)

    def _opened(self) -> Embeds:
        if self.store is None:
            self.store = self._given if isinstance(self._given, Embeds) else self._given()
        return self.store


def _why(error: CerataError, path: str) -> str:
    """Return what an error says of a file that is named beside it."""
    return str(type(error)(error.what, remedy=error.remedy) if error.where == path else error)


def take_in(ingest: Ingest, path: str, *, dry_run: bool) -> RememberedFile:
    """Store one document, or with ``dry_run`` look what that would do; ``path`` is its name."""
    if dry_run:
        plan = ingest.plan()
        number = None if plan.known is None else plan.known.id
        return _became(path, number, plan.frames, plan.replaced)
    receipt = ingest.run()
    frames = len(receipt.seqs) - len(receipt.replaced)
    return _became(path, receipt.id, frames, receipt.replaced)


def _became(path: str, number: int | None, frames: int, old: tuple[int, ...]) -> RememberedFile:
    outcome: Outcome = "replaced" if old else "added" if frames else "unchanged"
    return RememberedFile(path, outcome, number, frames, old)
