"""Many files: each remembered once, with an outcome for each.

Owns the summary: the files added, replaced, unchanged, empty and skipped, the reason of each skip,
and the parts of files that were skipped or are doubtful. An unreadable file does not stop the rest.
Leaves out the choice of files (`discovery`) and the storage of a file (`document`).
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeAlias, get_args

import msgspec

from cerata.engine.errors import (
    CerataError,
    InvalidInput,
    NotFound,
    Refused,
    StorageFailed,
    Unsupported,
)
from cerata.engine.events import JsonValue, PutFrame, Scope
from cerata.engine.packs import Role
from cerata.engine.plain_value import PlainValue, plain_fields

from ..batch.session import WriteSession
from .discovery import FoundFiles, file_uri, find_unchanged, short_names, source_hash
from .document import (
    EMBED_LIMIT,
    Ingest,
    check_embed_limit,
    passages_of,
    read_file,
    unembedded_line,
)
from .formats.document import Flaw, is_blank, parts_with
from .formats.registry import extract

Outcome: TypeAlias = Literal["added", "replaced", "unchanged", "empty", "skipped"]


@dataclass(frozen=True, slots=True)
class RememberedFile(PlainValue):
    """The outcome of a file; in a dry run, the outcome that a run would have.

    - ``id`` is the file's frame; None without a frame.
    - ``frames`` counts the added frames.
    - ``replaced`` are the frames that the file superseded.
    - ``why`` is the reason of a skip. An empty file, also one of white space, is no skip.
    - ``notices`` are those of the file's `Receipt`.
    - ``unembedded`` counts the added passages without a vector because of ``embed_limit``.
    - ``parts`` counts the parts that were read (turns, pages, sections); ``flaws`` has the parts
      that were skipped or are doubtful. A file that is stored already is not read: it has neither.
    """

    _plain = (
        *("path", "outcome", "id", "frames", "replaced", "why"),
        *("parts", "parts_skipped", "parts_doubtful", "flaws"),
    )

    path: str
    outcome: Outcome
    id: int | None = None
    frames: int = 0
    replaced: tuple[int, ...] = ()
    why: str | None = None
    notices: tuple[str, ...] = ()
    parts: int = 0
    flaws: tuple[Flaw, ...] = ()
    unembedded: int = 0

    @property
    def parts_skipped(self) -> int:
        """The count of parts that were not remembered."""
        return parts_with(self.flaws, "skipped")

    @property
    def parts_doubtful(self) -> int:
        """The count of parts that were remembered without a piece."""
        return parts_with(self.flaws, "doubtful")


@dataclass(frozen=True, slots=True)
class Remembered(PlainValue):
    """The outcomes of many files; ``excluded`` and ``passed_over`` as in `FoundFiles`."""

    files: tuple[RememberedFile, ...]
    excluded: int
    passed_over: Mapping[str, int]
    dry_run: bool
    head: int | None
    """The log's newest event after the call; None if no memory was opened."""

    @property
    def notices(self) -> tuple[str, ...]:
        """The notices of all files, each once, and a line about passages without a vector."""
        lines = dict.fromkeys(line for file in self.files for line in file.notices)
        return (*lines, *unembedded_line(sum(file.unembedded for file in self.files)))

    def of(self, outcome: Outcome) -> list[RememberedFile]:
        """Return the files with an outcome, in order."""
        return [file for file in self.files if file.outcome == outcome]

    @property
    def frames(self) -> int:
        """The count of added frames."""
        return sum(file.frames for file in self.files)

    @property
    def parts_skipped(self) -> int:
        """The count of parts of files that were not remembered."""
        return sum(file.parts_skipped for file in self.files)

    @property
    def parts_doubtful(self) -> int:
        """The count of parts of files that were remembered without a piece."""
        return sum(file.parts_doubtful for file in self.files)

    def to_dict(self) -> dict[str, JsonValue]:
        names = ("frames", "parts_skipped", "parts_doubtful", "excluded", "passed_over", "dry_run")
        return {
            **{outcome: len(self.of(outcome)) for outcome in get_args(Outcome)},
            **plain_fields(self, (*names, "head", "files")),
            **(plain_fields(self, ("notices",)) if self.notices else {}),
        }


Report: TypeAlias = Callable[[RememberedFile, int, int], None]
"""Called after each file with its outcome, its number from 1, and the count of files."""


def remember_files(
    session: WriteSession | Callable[[], WriteSession],
    selection: FoundFiles,
    fields: PutFrame,
    scope: Scope,
    *,
    dry_run: bool = False,
    report: Report | None = None,
    embed_limit: int | None = EMBED_LIMIT,
) -> Remembered:
    """Remember files one by one, each durable before the next; with ``dry_run`` write nothing.

    ``session`` may be a function that opens the store. It is called before the first file is
    stored, so wrong names create no empty memory.
    """
    work = _Work(session, fields, scope, dry_run=dry_run, embed_limit=embed_limit)
    files: list[RememberedFile] = []
    total = len(selection.files) + len(selection.unreadable)
    for file in work.each(selection):
        files.append(file)
        if report is not None:
            report(file, len(files), total)
    head = None if work.session is None else work.session.log.refresh().seq
    return Remembered(tuple(files), selection.excluded, selection.passed_over, dry_run, head)


class _Work:
    """The state of a call of `files.remember`; ``session`` is None until the store is open."""

    def __init__(
        self,
        session: WriteSession | Callable[[], WriteSession],
        fields: PutFrame,
        scope: Scope,
        *,
        dry_run: bool,
        embed_limit: int | None,
    ) -> None:
        self._session_or_opener = session
        self._fields = fields
        self._scope = scope
        self._dry_run = dry_run
        self._embed_limit = check_embed_limit(embed_limit)
        self._names: Mapping[str, str] = {}
        self.session: WriteSession | None = None
        if isinstance(session, WriteSession):
            self.session = session.acting(Role.IMPORTER)

    def each(self, selection: FoundFiles) -> Iterator[RememberedFile]:
        self._names = short_names([file_uri(path) for path in selection.files])
        for path, why in selection.unreadable:
            yield RememberedFile(path, "skipped", why=why)
        for path in selection.files:
            try:
                data = read_file(Path(path))
            except (InvalidInput, NotFound, StorageFailed) as error:
                yield RememberedFile(path, "skipped", why=_why(error, path))
            else:
                yield self._remember(path, data)

    def _remember(self, path: str, data: bytes) -> RememberedFile:
        if is_blank(data):
            return RememberedFile(path, "empty")
        uri = file_uri(path)
        if self.session is not None:
            stored = find_unchanged(
                self.session.snapshot().within(self._scope, shared=False), data, uri, self._scope
            )
            if stored is not None:
                return RememberedFile(path, "unchanged", stored.id)
        try:
            document = extract(data, path)
            passages = passages_of(document, path)
        except (InvalidInput, Unsupported) as error:
            return RememberedFile(path, "skipped", why=_why(error, path))
        session = self._opened()
        title = self._fields.title or document.title or self._names[uri]
        fields = msgspec.structs.replace(self._fields, uri=uri, title=title)
        ingest = Ingest(
            session,
            document,
            fields,
            self._scope,
            source_hash(data),
            passages,
            embed_limit=self._embed_limit,
        )
        try:
            became = take_in(ingest, path, dry_run=self._dry_run)
        except Refused as error:
            return RememberedFile(path, "skipped", why=_why(error, path))
        return replace(became, parts=len(document.sections), flaws=document.flaws)

    def _opened(self) -> WriteSession:
        if self.session is None:
            source = self._session_or_opener
            opened = source if isinstance(source, WriteSession) else source()
            self.session = opened.acting(Role.IMPORTER)
        return self.session


def _why(error: CerataError, path: str) -> str:
    """Return the text of an error, without its place if that is the file's path."""
    return str(type(error)(error.what, remedy=error.remedy) if error.where == path else error)


def take_in(ingest: Ingest, path: str, *, dry_run: bool) -> RememberedFile:
    """Store a document, or with ``dry_run`` plan it; return the outcome under the name ``path``."""
    if dry_run:
        plan = ingest.plan()
        number = None if plan.known is None else plan.known.id
        return _became(path, number, plan.frames, plan.replaced)
    receipt = ingest.run()
    frames = len(receipt.seqs) - len(receipt.replaced)
    became = _became(path, receipt.id, frames, receipt.replaced)
    return replace(became, notices=receipt.notices, unembedded=ingest.unembedded)


def _became(path: str, number: int | None, frames: int, old: tuple[int, ...]) -> RememberedFile:
    outcome: Outcome = "replaced" if old else "added" if frames else "unchanged"
    return RememberedFile(path, outcome, number, frames, old)
