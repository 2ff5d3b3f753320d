"""Ingest: from a text or a file to frames, once each, resumable after a crash.

Owns what `Store.remember` does: read, split into passages, find what is there already, put the
rest. A document of one passage is one frame. A longer one is a document frame without text of its
own, then its chunks in order; together they are the text. What it replaces under the same URI is
superseded in its last batch, so that until then the old one is current.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from cerata.engine.errors import (
    CerataError,
    Conflict,
    InvalidInput,
    NotFound,
    StorageFailed,
)
from cerata.engine.events import Draft, Scope, SupersedeFrame
from cerata.engine.limits import STRING_SIZE_MAX
from cerata.retrieval.passages import Passage, split_passages

from .drafting import FrameFields, content_hash, frame_draft, is_unicode
from .layer import DOCUMENT_KIND
from .values import Receipt, Stored
from .view import View

if TYPE_CHECKING:
    from .store import Store

_TRIES = 1_000
"""Looks at the memory before giving up on busy writers; each loses only one batch."""

_TITLE_LINES_MAX = 50
"""A heading further down is that of a part."""

_BATCH_EVENTS = 256
"""Chunks a batch: a document is searchable bit by bit, and a crash loses at most this much work."""


def remember(store: "Store", source: str | Path, fields: FrameFields, scope: Scope) -> Receipt:
    """Remember a text or the file at a path; see `Store.remember`."""
    if isinstance(source, Path):
        text, uri, title = read_document(source)
        fields = replace(fields, uri=fields.uri or uri, title=fields.title or title)
    elif isinstance(source, str):
        text = source
    else:
        raise InvalidInput(
            f"remember takes a str or a Path, not {type(source).__name__}",
            remedy="Use put_frame for bytes.",
        )
    return _Ingest(store, text, fields, scope).run()


def read_document(path: Path) -> tuple[str, str, str]:
    """Return the text of a file, and the URI and title that it gets unless others are given.

    Raises:
        NotFound: no such file. StorageFailed: it cannot be read. InvalidInput: it is a folder,
        too large, or not UTF-8 text; or its name is not valid Unicode.
    """
    name = path.as_posix()
    if not is_unicode(name):
        raise InvalidInput("The file's name is not valid Unicode", where=repr(name))
    text = decode_text(_read(path), str(path))
    return text, name, title_of(text) or path.name


def _read(path: Path) -> bytes:
    try:
        if path.is_dir():
            raise InvalidInput("It is a folder", where=str(path), remedy="Name its files.")
        if path.exists() and not path.is_file():
            raise InvalidInput("It is a pipe or device, not a file", where=str(path))
        with path.open("rb") as file:
            return file.read(STRING_SIZE_MAX + 1)
    except FileNotFoundError as error:
        raise NotFound("There is no such file", where=str(path)) from error
    except CerataError:
        raise
    except ValueError as error:
        raise InvalidInput("It is not a path", where=repr(str(path))) from error
    except OSError as error:
        raise StorageFailed(f"Cannot read: {error.strerror}", where=str(path)) from error


def decode_text(data: bytes, where: str) -> str:
    """Return the text of a file or of the input, without a byte order mark.

    Raises:
        InvalidInput: it is over the limit, not UTF-8, has a NUL, or is empty.
    """
    if len(data) > STRING_SIZE_MAX:
        raise InvalidInput(
            f"It is over the limit of {STRING_SIZE_MAX:,} bytes", where=where, remedy="Split it."
        )
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"Not UTF-8 text: byte {error.start:,} is 0x{data[error.start]:02x}",
            where=where,
            remedy="Convert it to UTF-8, or store its bytes with put_frame.",
        ) from error
    if "\0" in text:
        raise InvalidInput(
            f"Not text: it has a NUL at character {text.index(chr(0)):,}", where=where
        )
    return _some(text, where)


def _some(text: str, where: str | None) -> str:
    if not text.strip():
        raise InvalidInput("There is no text to remember", where=where)
    return text


def title_of(text: str) -> str | None:
    """Return the first Markdown heading in a document's first lines."""
    start = "".join(islice(text.splitlines(keepends=True), _TITLE_LINES_MAX))
    names = (name for passage in split_passages(start) for name in passage.headings)
    return next(filter(None, names), None)


class _Ingest:
    """One document on its way in."""

    def __init__(self, store: "Store", text: str, fields: FrameFields, scope: Scope) -> None:
        self._store = store
        self._text = _some(text, fields.uri)
        self._fields = fields
        self._scope = scope
        self._hash = content_hash(text)
        self._passages = split_passages(text)

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

    def _put(self, view: View, expect: int | None) -> Receipt:
        known = self._find_same(view)
        if known is not None and known.is_complete:
            inside = self._store.in_transaction
            head = None if inside else view.head
            return Receipt(known.id, known.ids, (), head, durable=not inside, added=False)
        replaced = self._find_replaced(view, known)
        if known is not None:
            return self._put_chunks(known.id, known.ids, known.missing, replaced, expect)
        if len(self._passages) == 1:
            draft = frame_draft(self._text, self._fields, self._scope, hashed=self._hash)
            return self._write([draft, *self._supersedes(replaced, -self._place())], expect)
        document = frame_draft(
            "",
            replace(self._fields, kind=DOCUMENT_KIND),
            self._scope,
            hashed=self._hash,
            chunk_count=len(self._passages),
        )
        every = range(len(self._passages))
        if len(self._passages) < _BATCH_EVENTS:
            place = self._place()
            chunks = self._chunks(-place, every)
            closing = self._supersedes(replaced, -place)
            return self._write([document, *chunks, *closing], expect)
        receipt = self._write([document], expect)
        return self._put_chunks(
            receipt.id,
            receipt.ids,
            every,
            replaced,
            None if receipt.head is None else receipt.head.seq,
        )

    def _find_same(self, view: View) -> Stored | None:
        """Return the frame with this content under this URI in this scope, and what it lacks."""
        count = len(self._passages)
        # A long text may also be there in one piece: as a new version, which is not cut.
        for known in (
            *view.find_stored(self._hash),
            *view.find_stored(self._hash, chunk_count=count),
        ):
            frame = view.frame(known.id)
            if frame.uri == self._fields.uri and frame.scope == dict(self._scope):
                return known
        return None

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
        """Put the missing chunks in batches; the last one closes what the document replaces."""
        made, seqs = list(ids), list[int]()
        receipt: Receipt | None = None
        for first in range(0, len(missing), _BATCH_EVENTS):
            indexes = missing[first : first + _BATCH_EVENTS]
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
            fields = replace(
                self._fields, title=self._chunk_title(passage), parent=document, search_text=None
            )
            text = self._text[passage.start : passage.end]
            yield frame_draft(text, fields, self._scope, chunk_index=index)

    def _chunk_title(self, passage: Passage) -> str | None:
        """Return the document's title and the headings above the passage, as one line."""
        names = [self._fields.title or "", *passage.headings]
        trail = [name for at, name in enumerate(names) if name and name not in names[:at]]
        return " > ".join(trail) or None

    def _supersedes(self, replaced: Sequence[int], document: int) -> list[Draft]:
        return [Draft(SupersedeFrame(old=old, new=document), self._scope) for old in replaced]

    def _place(self) -> int:
        return self._store.next_place()

    def _write(self, drafts: Sequence[Draft], expect: int | None) -> Receipt:
        return self._store.write(drafts, expect=expect)
