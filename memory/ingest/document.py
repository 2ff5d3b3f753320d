"""Ingest: from a text or a file to frames, once each, resumable after a crash.

Owns the steps of `Store.remember`: read, split into passages, find stored passages, put the rest. A
document of one passage is one frame. A longer document is a document frame without text, then its
chunks in order, which together are the text. The last batch supersedes the old frames under the
same URI, so they stay current until then. Leaves out reading formats (`extract`), and the detection
of unchanged files (`discovery`).
"""

import difflib
import errno
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Final, Literal, TypeAlias

import msgspec

from cerata.engine.arguments import is_integer, is_unicode, located, wrong_type
from cerata.engine.disk.storage import refused
from cerata.engine.errors import CerataError, Conflict, InvalidInput, NotFound, value_text
from cerata.engine.events import Draft, EventBody, JsonValue, PutFrame, Scope, SupersedeFrame
from cerata.engine.json_value import exact
from cerata.retrieval.chunking import Passage, split_passages

from ..batch.attempts import attempted
from ..batch.session import WriteSession
from ..batch.text_dates import with_text_dates
from ..embeddings.drafts import noted, notices_of, text_vectors, with_vectors
from ..frames.drafts import frame_draft
from ..frames.stored import find_stored
from ..frames.versions import frames_of_uri
from ..snapshot.snapshot import Snapshot
from ..values.arguments import DOCUMENT_KIND, SOURCE_HASH, SPAN, TABLE_HEADER, content_hash
from ..values.frames import Frame, Receipt, Stored
from .discovery import file_uri, find_unchanged, is_read_as_text, short_names, source_hash
from .formats.document import NAME_SIZE_MAX, Document, some_text
from .formats.plain import markdown_sections
from .formats.registry import SIZE_MAX, extract

DateSearch: TypeAlias = Literal["none", "of write", "of created"]
"""The dates to find in passages: none; also relative dates, which count from the write or from
``created``; or relative dates only with ``created``."""

EMBED_LIMIT: Final = 256
"""Passages of a log or table that get vectors: MiniLM reads about ten a second."""

_BATCH_EVENTS = 256
"""Chunks of a batch: earlier batches can be searched already, and a crash loses at most one."""


def remember(
    session: WriteSession,
    source: str | Path | Document,
    fields: PutFrame,
    scope: Scope,
    *,
    finds_dates: bool = True,
    embed_limit: int | None = EMBED_LIMIT,
) -> Receipt:
    """Remember a text, the file at a path, or a document; see `Store.remember`."""
    limit = check_embed_limit(embed_limit)
    hashed: str | None = None
    if isinstance(source, Path):
        data = read_file(source)
        hashed = source_hash(data)
        uri = fields.uri or file_uri(source)
        receipt = find_unchanged(session.snapshot().within(scope, shared=False), data, uri, scope)
        if receipt is not None:
            return receipt
        document = extract(data, str(source))
        name = short_names([file_uri(source)])[file_uri(source)]
        title = fields.title or document.title or name
        fields = msgspec.structs.replace(fields, uri=uri, title=title)
    elif isinstance(source, Document):
        document = source
    elif isinstance(source, str):
        text = some_text(source, fields.uri)
        document = Document(text, markdown_sections(text), "text/plain")
    else:
        remedy = (
            "Pass bytes to put_frame(), messages of a chat to remember_messages(), and each text"
            " of a list to its own call."
        )
        raise wrong_type("text", "a str, Path or Document", source, remedy)
    dates: DateSearch = "none"
    if finds_dates:
        dates = "of write" if isinstance(source, str) else "of created"
    ingest = Ingest(session, document, fields, scope, hashed, dates=dates, embed_limit=limit)
    receipt = ingest.run()
    flaws = tuple(f"{fields.uri}: {flaw}" for flaw in document.flaws)
    left = unembedded_line(ingest.unembedded)
    return noted(session, receipt, (*receipt.notices, *flaws, *left))


def check_embed_limit(limit: object) -> int | None:
    """Return a limit of passages with vectors; raise `InvalidInput` for a limit below 0."""
    number = exact(limit)
    if number is None or (is_integer(number) and number >= 0):
        return number
    raise InvalidInput(
        f"embed_limit must be a number of passages from 0, or None, not {value_text(limit):.60}",
        remedy="Pass cerata.PutOptions(embed_limit=256), or None to embed every passage.",
    )


def unembedded_line(passages: int) -> tuple[str, ...]:
    """Return the line about passages of logs and tables without vectors; empty without any."""
    if not passages:
        return ()
    are = "passage of a log or table has" if passages == 1 else "passages of logs and tables have"
    remedy = "'cerata file maintain --only embed', or embeddings.fill(), embeds the rest"
    return (f"{passages:,} {are} no vector; {remedy}",)


def read_file(path: Path) -> bytes:
    """Return the bytes of a file.

    Raises:
        NotFound: the file does not exist.
        StorageFailed: the file cannot be read.
        InvalidInput: the path names a folder or device, or is not valid Unicode.
    """
    if not is_unicode(path.as_posix()):
        raise InvalidInput(
            "The file's name is not valid Unicode",
            where=repr(path.as_posix()),
            remedy="Rename the file.",
        )
    return _read(path)


def _read(path: Path) -> bytes:
    try:
        with open_regular(path) as file:
            return file.read(SIZE_MAX + 1)
    except FileNotFoundError as error:
        raise _not_found(path) from error
    except CerataError:
        raise
    except ValueError as error:
        raise InvalidInput(
            "The path is not valid", where=repr(str(path)), remedy="Pass the path of a file."
        ) from error
    except OSError as error:
        raise refused(error, "read", str(path)) from error


def open_regular(path: Path) -> IO[bytes]:
    """Open a regular file for reading.

    The type is checked on the open descriptor, without blocking, so a pipe or device that takes
    the name at the same time is never waited for: a pipe would block, and some devices have no end.

    Raises:
        InvalidInput: the path names a folder, pipe, socket or device.
        OSError: the file cannot be opened.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except OSError as error:
        if error.errno == errno.ENXIO:  # a socket
            raise _not_regular(path) from error
        raise
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise InvalidInput(
                "The path names a folder, not a file",
                where=str(path),
                remedy="Pass its files, or call files.remember.",
            )
        if not stat.S_ISREG(mode):
            raise _not_regular(path)
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def _not_regular(path: Path) -> InvalidInput:
    return InvalidInput(
        "The path names a pipe, socket or device, not a file",
        where=str(path),
        remedy="Copy its content into a file, and pass that path.",
    )


def _not_found(path: Path) -> NotFound:
    try:
        names = [entry.name for entry in path.parent.iterdir()]
    except OSError:
        names = []
    near = difflib.get_close_matches(path.name, names, n=1)
    remedy = f"Did you mean {path.parent / near[0]}?" if near else "Check the path."
    return NotFound("There is no such file", where=str(path), remedy=remedy)


@dataclass(frozen=True, slots=True)
class Plan:
    """The work of storing a document: its stored part, the frames to replace, the frames to put."""

    known: Stored | None
    replaced: tuple[int, ...]
    frames: int


def passages_of(document: Document, where: str | None) -> list[Passage]:
    """Return the passages that a document is split into.

    Raises:
        InvalidInput: the document has too many passages.
    """
    stretches = ((section.start, section.end, section.headings) for section in document.sections)
    with located(where):
        return split_passages(document.text, stretches)


class Ingest:
    """The ingest of one document; ``hashed`` is the hash of the source file."""

    def __init__(
        self,
        session: WriteSession,
        document: Document,
        fields: PutFrame,
        scope: Scope,
        hashed: str | None = None,
        passages: list[Passage] | None = None,
        dates: DateSearch = "of created",
        embed_limit: int | None = EMBED_LIMIT,
    ) -> None:
        self._session = session
        self._text = document.text
        self._sections = document.sections
        self._fields = fields
        self._scope = scope
        self._hash = content_hash(document.text)
        self._passages = passages_of(document, fields.uri) if passages is None else passages
        self._source = hashed if document.is_extracted else None
        self._vectors = text_vectors(session)
        self._dates: DateSearch = dates
        self._chunks_max = embed_limit if document.is_bulk else None
        self.unembedded = 0
        """The count of put chunks beyond the limit that have no vector."""

    def run(self) -> Receipt:
        """Put the missing frames; start again from a new view if another writer was first."""
        return attempted(self._session, self._attempt, where=self._fields.uri)

    def _attempt(self, newest: Snapshot) -> Receipt:
        # A transaction checks the whole batch when the block ends.
        expect = None if self._session.in_transaction else newest.basis
        return self._put(newest.within(self._scope, shared=False), expect)

    def _snapshot(self) -> Snapshot:
        """Return the view of this document's scope; frames of other scopes are not replaced."""
        return self._session.snapshot().within(self._scope, shared=False)

    def plan(self) -> Plan:
        """Return the work that `run` would do now."""
        return self._plan(self._snapshot())

    def _plan(self, snapshot: Snapshot) -> Plan:
        stored = self._find_same(snapshot)
        if stored is not None and stored.is_complete:
            return Plan(stored, (), 0)
        replaced = tuple(self._find_replaced(snapshot, stored))
        count = len(self._passages)
        whole = 1 if count == 1 else 1 + count
        return Plan(stored, replaced, whole if stored is None else len(stored.missing))

    def _check_tags(self, frame: Frame) -> None:
        """Raise `Conflict` if the call has tags or labels that the stored content lacks."""
        for name, texts, present, remedy in (
            ("tags", self._fields.tags, frame.tags, f"Call update({frame.id}, tags=…)."),
            ("labels", self._fields.labels, frame.labels, "Leave out PutOptions.labels."),
        ):
            missing = [text for text in texts if text not in present]
            if missing:
                raise Conflict(
                    f"The content is stored already, without the {name} {', '.join(missing)}",
                    where=f"frame {frame.id:,}",
                    remedy=remedy,
                )

    def _put(self, snapshot: Snapshot, expect: int | None) -> Receipt:
        plan = self._plan(snapshot)
        stored = plan.known
        replaced = plan.replaced
        if stored is not None and stored.is_complete:
            self._check_tags(snapshot.frame_at(stored.id))
            return self._session.unchanged(snapshot, stored.id, stored.ids)
        self._learn(snapshot, replaced)
        if stored is not None:
            return self._put_chunks(stored.id, stored.ids, stored.missing, replaced, expect)
        if len(self._passages) == 1:
            fields = self._of_source(self._in_section(self._passages[0], self._fields))
            draft = frame_draft(self._text, fields, self._scope)
            return self._write([draft, *self._supersedes(replaced, -self._place())], expect)
        document = frame_draft(
            "",
            self._of_source(msgspec.structs.replace(self._fields, kind=DOCUMENT_KIND)),
            self._scope,
            hashed=self._hash,
            chunk_count=len(self._passages),
        )
        indexes = range(len(self._passages))
        if self._session.in_transaction or len(self._passages) < _BATCH_EVENTS:
            place = self._place()
            chunks = self._chunks(-place, indexes)
            closing = self._supersedes(replaced, -place)
            return self._write([document, *chunks, *closing], expect)
        # Embed the first batch before the document is put, so that a failure leaves no frame.
        self._embedded(list(self._chunks(-1, indexes[:_BATCH_EVENTS])))
        first = self._write([document], expect)
        expect = None if first.head is None else first.head.seq
        rest = self._put_chunks(first.id, first.ids, indexes, replaced, expect)
        return replace(rest, seqs=(*first.seqs, *rest.seqs))

    def _find_same(self, snapshot: Snapshot) -> Stored | None:
        layers = snapshot.layers
        # A long text may also be stored in a single frame, as supersede() stores it, or in the
        # passages of an earlier version.
        counts = dict.fromkeys([None, len(self._passages)])
        for number in layers.find_content(self._hash):
            body = layers.event(number).body
            counts[body.chunk_count if isinstance(body, PutFrame) else None] = None
        for stored in (
            one for count in counts for one in find_stored(layers, self._hash, count, None)
        ):
            frame = snapshot.frame_at(stored.id)
            is_ours = frame.uri == self._fields.uri and frame.scope == dict(self._scope)
            body = snapshot.layers.event(stored.id).body
            is_text = isinstance(body, PutFrame) and is_read_as_text(body)
            if (
                is_ours
                and is_text
                and (stored.is_complete or self._is_split_alike(snapshot, stored))
            ):
                return stored
        return None

    def _is_split_alike(self, snapshot: Snapshot, stored: Stored) -> bool:
        """Return whether the stored chunks are passages of this split.

        An earlier version, or another tokenizer, may have split the text into as many chunks at
        other places.
        """
        count = len(stored.chunks) + len(stored.missing)
        return count == len(self._passages) and all(
            snapshot.frame_at(chunk).text == passage.text_in(self._text)
            for passage, chunk in (
                (self._passages[index], chunk) for index, chunk in stored.chunks.items()
            )
        )

    def _find_replaced(self, snapshot: Snapshot, stored: Stored | None) -> list[int]:
        """Return the current frames with the same URI and scope but other content or splits."""
        uri = self._fields.uri
        if uri is None:
            return []
        continued = None if stored is None else stored.id
        frames = frames_of_uri(snapshot, uri, self._scope)
        return [frame for frame in frames if frame != continued]

    def _put_chunks(
        self,
        document: int,
        ids: tuple[int, ...],
        missing: Sequence[int],
        replaced: Sequence[int],
        expect: int | None,
    ) -> Receipt:
        """Put the missing chunks in batches; the last batch closes the replaced frames.

        A transaction takes all chunks at once, because it gathers a whole call or nothing.
        """
        all_ids = list(ids)
        seqs = list[int]()
        receipt: Receipt | None = None
        step = len(missing) if self._session.in_transaction else _BATCH_EVENTS
        for first in range(0, len(missing), step):
            indexes = missing[first : first + step]
            drafts = list(self._chunks(document, indexes))
            if indexes[-1] == missing[-1]:
                drafts += self._supersedes(replaced, document)
            receipt = self._write(drafts, expect)
            expect = None if receipt.head is None else receipt.head.seq
            all_ids += receipt.ids
            seqs += receipt.seqs
        assert receipt is not None
        return replace(receipt, id=document, ids=tuple(all_ids), seqs=tuple(seqs))

    def _chunks(self, document: int, indexes: Sequence[int]) -> Iterator[Draft]:
        for index in indexes:
            passage = self._passages[index]
            span: JsonValue = [passage.start, passage.end]
            fields = msgspec.structs.replace(
                self._in_section(passage, self._fields),
                title=self._chunk_title(passage),
                parent=document,
                search_text=None,
            )
            metadata = {**fields.metadata, SPAN: span}
            start, end = passage.header
            metadata.pop(TABLE_HEADER, None)
            if start < end:
                metadata[TABLE_HEADER] = end - start
            fields = msgspec.structs.replace(fields, metadata=metadata)
            text = passage.text_in(self._text)
            yield frame_draft(text, fields, self._scope, chunk_index=index)

    def _of_source(self, fields: PutFrame) -> PutFrame:
        if self._source is None:
            return fields
        return msgspec.structs.replace(
            fields, metadata={**fields.metadata, SOURCE_HASH: self._source}
        )

    def _in_section(self, passage: Passage, fields: PutFrame) -> PutFrame:
        section = self._sections[passage.stretch]
        return msgspec.structs.replace(
            fields,
            role=section.role or fields.role,
            kind=section.kind or fields.kind,
            created=fields.created if section.created is None else section.created,
            metadata={**fields.metadata, **section.metadata},
        )

    def _chunk_title(self, passage: Passage) -> str | None:
        """Return the document's title and the headings above the passage, as one line."""
        names = [
            name[:NAME_SIZE_MAX] for name in (self._fields.title or "", *passage.headings) if name
        ]
        return " > ".join(dict.fromkeys(names)) or None

    def _supersedes(self, replaced: Sequence[int], document: int) -> list[Draft]:
        return [Draft(SupersedeFrame(old=old, new=document), self._scope) for old in replaced]

    def _place(self) -> int:
        return self._session.next_place()

    def _learn(self, snapshot: Snapshot, replaced: Sequence[int]) -> None:
        """Take over the vectors of the old version, because the new repeats most of its text."""
        for vectors in self._vectors:
            for old in replaced:
                vectors.learn([old, *snapshot.chunks_of(old).values()], snapshot)

    def _embedded(self, drafts: Sequence[Draft]) -> Sequence[Draft]:
        return with_vectors(self._session, drafts, self._vectors, chunks_max=self._chunks_max)

    def _dated(self, drafts: Sequence[Draft]) -> Sequence[Draft]:
        if self._dates == "none":
            return drafts
        return with_text_dates(self._session, drafts, are_of_now=self._dates == "of write")

    def _write(self, drafts: Sequence[Draft], expect: int | None) -> Receipt:
        drafts = self._embedded(self._dated(drafts))
        notices = notices_of(self._session, drafts)
        receipt = self._session.write(drafts, expect=expect)
        if self._vectors and not notices:
            self.unembedded += sum(self._is_beyond(draft.body) for draft in drafts)
        return noted(self._session, receipt, notices)

    def _is_beyond(self, body: EventBody) -> bool:
        """Return whether an event puts a chunk that has no vector because of the limit."""
        if self._chunks_max is None or not isinstance(body, PutFrame) or body.embedding is not None:
            return False
        return (body.chunk_index or 0) >= self._chunks_max
