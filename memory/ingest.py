"""Ingest: from a text or a file to frames, once each, resumable after a crash.

Owns what `Store.remember` does: read, split into passages, find what is there already, put the
rest. A document of one passage is one frame. A longer one is a document frame without text of its
own, then its chunks in order; together they are the text. What it replaces under the same URI is
superseded in its last batch, so that until then the old one is current.
"""

import difflib
import errno
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING

import msgspec

from cerata.engine.errors import (
    CerataError,
    Conflict,
    InvalidInput,
    NotFound,
)
from cerata.engine.events import Draft, JsonValue, PutFrame, Scope, SupersedeFrame
from cerata.engine.storage import refused
from cerata.retrieval.passages import Passage, split_passages

from .drafting import SOURCE_HASH, SPAN, content_hash, frame_draft, is_unicode
from .extract.document import NAME_SIZE_MAX, Document, some_text
from .extract.plain import markdown_sections
from .extract.registry import SIZE_MAX, extract
from .known import file_uri, find_unchanged, is_read_as_text, source_hash
from .layer import DOCUMENT_KIND
from .values import Receipt, Stored
from .view import View

if TYPE_CHECKING:
    from .embedding import Embeds

_TRIES = 1_000
"""Looks at the memory before giving up on busy writers; each loses only one batch."""

_BATCH_EVENTS = 256
"""Chunks a batch: a document is searchable bit by bit, and a crash loses at most this much work."""


def remember(
    store: "Embeds", source: str | Path | Document, fields: PutFrame, scope: Scope
) -> Receipt:
    """Remember a text, the file at a path, or a document; see `Store.remember`."""
    hashed: str | None = None
    if isinstance(source, Path):
        data = read_file(source)
        hashed = source_hash(data)
        uri = fields.uri or file_uri(source)
        known = find_unchanged(store.view().within(scope), data, uri, scope)
        if known is not None:
            return known
        document = extract(data, str(source))
        title = fields.title or document.title or source.name
        fields = msgspec.structs.replace(fields, uri=uri, title=title)
    elif isinstance(source, Document):
        document = source
    elif isinstance(source, str):
        text = some_text(source, fields.uri)
        document = Document(text, markdown_sections(text), "text/plain")
    else:
        raise InvalidInput(
            f"remember takes a str or a Path, not {type(source).__name__}",
            remedy="Use put_frame for bytes.",
        )
    return Ingest(store, document, fields, scope, hashed).run()


def read_file(path: Path) -> bytes:
    """Return the bytes of a file.

    Raises:
        NotFound: no such file. StorageFailed: it cannot be read. InvalidInput: it is a folder or
        a device, or its name is not valid Unicode.
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
            "It is not a path", where=repr(str(path)), remedy="Pass the path of a file."
        ) from error
    except OSError as error:
        raise refused(error, "read", str(path)) from error


def open_regular(path: Path) -> IO[bytes]:
    """Open a regular file for reading.

    It is looked at once it is open, so what has its name meanwhile is never waited for: a pipe
    would wait for its other end, and some devices have no end.

    Raises:
        InvalidInput: it is a folder, pipe, socket or device. OSError: it cannot be opened.
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
            raise InvalidInput("It is a folder", where=str(path), remedy="Name its files.")
        if not stat.S_ISREG(mode):
            raise _not_regular(path)
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def _not_regular(path: Path) -> InvalidInput:
    return InvalidInput(
        "It is a pipe, socket or device, not a file",
        where=str(path),
        remedy="Copy what it gives into a file, and name that.",
    )


def _not_found(path: Path) -> NotFound:
    """Return the error that names the nearest file there is."""
    try:
        names = [entry.name for entry in path.parent.iterdir()]
    except OSError:
        names = []
    near = difflib.get_close_matches(path.name, names, n=1)
    remedy = f"Did you mean {path.parent / near[0]}?" if near else "Check the path."
    return NotFound("There is no such file", where=str(path), remedy=remedy)


@dataclass(frozen=True, slots=True)
class Plan:
    """What storing a document takes: what of it is there, what it replaces, how many frames."""

    known: Stored | None
    replaced: tuple[int, ...]
    frames: int


def passages_of(document: Document, where: str | None) -> list[Passage]:
    """Return the parts that a document is stored in.

    Raises:
        InvalidInput: there are more than a document may have.
    """
    stretches = ((one.start, one.end, one.headings) for one in document.sections)
    try:
        return split_passages(document.text, stretches)
    except InvalidInput as error:
        raise InvalidInput(error.what, where=where, remedy=error.remedy) from error


class Ingest:
    """One document on its way in; ``hashed`` is the hash of the file that it was made from."""

    def __init__(
        self,
        store: "Embeds",
        document: Document,
        fields: PutFrame,
        scope: Scope,
        hashed: str | None = None,
        passages: list[Passage] | None = None,
    ) -> None:
        self._store = store
        self._text = document.text
        self._sections = document.sections
        self._fields = fields
        self._scope = scope
        self._hash = content_hash(document.text)
        self._passages = passages_of(document, fields.uri) if passages is None else passages
        self._source = hashed if document.is_extracted else None
        self._vectors = store.text_vectors()

    def run(self) -> Receipt:
        """Put what is missing; look again if another writer was there first."""
        for _ in range(_TRIES):
            view = self._view()
            # Inside a transaction the batch is checked as a whole, when it ends.
            expect = None if self._store.in_transaction else view.basis
            try:
                return self._put(view, expect)
            except Conflict:
                if expect is None or self._store.refresh().seq == expect:
                    raise
        raise Conflict(
            "Other writers came first every time",
            where=self._fields.uri,
            remedy="Call again when fewer write.",
        )

    def _view(self) -> View:
        """Return the memory within this document's scope: others' is not ours to replace."""
        return self._store.view().within(self._scope)

    def plan(self) -> Plan:
        """Return what `run` would do now."""
        return self._plan(self._view())

    def _plan(self, view: View) -> Plan:
        known = self._find_same(view)
        if known is not None and known.is_complete:
            return Plan(known, (), 0)
        replaced = tuple(self._find_replaced(view, known))
        count = len(self._passages)
        whole = 1 if count == 1 else 1 + count
        return Plan(known, replaced, whole if known is None else len(known.missing))

    def _put(self, view: View, expect: int | None) -> Receipt:
        plan = self._plan(view)
        known, replaced = plan.known, plan.replaced
        if known is not None and known.is_complete:
            inside = self._store.in_transaction
            head = None if inside else view.head
            return Receipt(known.id, known.ids, (), head, durable=not inside, added=False)
        self._learn(view, replaced)
        if known is not None:
            return self._put_chunks(known.id, known.ids, known.missing, replaced, expect)
        if len(self._passages) == 1:
            fields = self._of_source(self._said(self._passages[0], self._fields))
            draft = frame_draft(self._text, fields, self._scope, hashed=self._hash)
            return self._write([draft, *self._supersedes(replaced, -self._place())], expect)
        document = frame_draft(
            "",
            self._of_source(msgspec.structs.replace(self._fields, kind=DOCUMENT_KIND)),
            self._scope,
            hashed=self._hash,
            chunk_count=len(self._passages),
        )
        every = range(len(self._passages))
        if self._store.in_transaction or len(self._passages) < _BATCH_EVENTS:
            place = self._place()
            chunks = self._chunks(-place, every)
            closing = self._supersedes(replaced, -place)
            return self._write([document, *chunks, *closing], expect)
        # Before the document too, so that an embedder that fails leaves nothing.
        self._embedded(list(self._chunks(-1, every[:_BATCH_EVENTS])))
        first = self._write([document], expect)
        expect = None if first.head is None else first.head.seq
        rest = self._put_chunks(first.id, first.ids, every, replaced, expect)
        return replace(rest, seqs=(*first.seqs, *rest.seqs))

    def _find_same(self, view: View) -> Stored | None:
        """Return the frame with this content under this URI in this scope, and what it lacks."""
        count = len(self._passages)
        # A long text may also be there in one piece: as a new version, which is not cut.
        for known in (
            *view.find_stored(self._hash),
            *view.find_stored(self._hash, chunk_count=count),
        ):
            frame = view.frame(known.id)
            is_ours = frame.uri == self._fields.uri and frame.scope == dict(self._scope)
            body = view.layers.event(known.id).body
            is_text = isinstance(body, PutFrame) and is_read_as_text(body)
            if is_ours and is_text and (known.is_complete or self._is_cut_alike(view, known)):
                return known
        return None

    def _is_cut_alike(self, view: View, known: Stored) -> bool:
        """Tell whether the chunks that are there are passages of this cut.

        An earlier version, or another tokenizer, may have made as many at other places.
        """
        return all(
            view.frame(chunk).text == self._text[passage.start : passage.end]
            for passage, chunk in (
                (self._passages[index], chunk) for index, chunk in known.chunks.items()
            )
        )

    def _find_replaced(self, view: View, known: Stored | None) -> list[int]:
        """Return the current frames under the same URI and scope with other content, or cuts."""
        uri = self._fields.uri
        if uri is None:
            return []
        kept = None if known is None else known.id
        frames = (view.frame(number) for number in view.find_uri(uri) if number != kept)
        return [
            frame.id
            for frame in frames
            if frame.chunk_index is None and frame.scope == dict(self._scope)
        ]

    def _put_chunks(
        self,
        document: int,
        ids: tuple[int, ...],
        missing: Sequence[int],
        replaced: Sequence[int],
        expect: int | None,
    ) -> Receipt:
        """Put the missing chunks in batches; the last one closes what the document replaces.

        A transaction takes them in one: it gathers all of a call or nothing.
        """
        made, seqs = list(ids), list[int]()
        receipt: Receipt | None = None
        step = len(missing) if self._store.in_transaction else _BATCH_EVENTS
        for first in range(0, len(missing), step):
            indexes = missing[first : first + step]
            drafts = list(self._chunks(document, indexes))
            if indexes[-1] == missing[-1]:
                drafts += self._supersedes(replaced, document)
            receipt = self._write(drafts, expect)
            expect = None if receipt.head is None else receipt.head.seq
            made += receipt.ids
            seqs += receipt.seqs
        assert receipt is not None
        return replace(receipt, id=document, ids=tuple(made), seqs=tuple(seqs))

    def _chunks(self, document: int, indexes: Sequence[int]) -> Iterator[Draft]:
        for index in indexes:
            passage = self._passages[index]
            span: JsonValue = [passage.start, passage.end]
            fields = msgspec.structs.replace(
                self._said(passage, self._fields),
                title=self._chunk_title(passage),
                parent=document,
                search_text=None,
            )
            fields = msgspec.structs.replace(fields, metadata={**fields.metadata, SPAN: span})
            text = self._text[passage.start : passage.end]
            yield frame_draft(text, fields, self._scope, chunk_index=index)

    def _of_source(self, fields: PutFrame) -> PutFrame:
        """Return the fields of the document's frame, with the hash of what it was made from."""
        if self._source is None:
            return fields
        return msgspec.structs.replace(
            fields, metadata={**fields.metadata, SOURCE_HASH: self._source}
        )

    def _said(self, passage: Passage, fields: PutFrame) -> PutFrame:
        """Return the fields of a frame, with what its section says of itself."""
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
        return self._store.next_place()

    def _learn(self, view: View, replaced: Sequence[int]) -> None:
        """Take over the vectors of the version before: most of it is said again."""
        for vectors in self._vectors:
            for old in replaced:
                vectors.learn([old, *view.chunks(old).values()], view)

    def _embedded(self, drafts: Sequence[Draft]) -> Sequence[Draft]:
        return self._store.with_vectors(drafts, self._vectors)

    def _write(self, drafts: Sequence[Draft], expect: int | None) -> Receipt:
        return self._store.write(self._embedded(drafts), expect=expect)
