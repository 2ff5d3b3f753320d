"""Writing a corpus as a user of the public API writes a conversation.

A turn is a frame whose role is the speaker and whose ``created`` is the time of its session; the
turns of a session are a transaction. The session is the frame's track by default. Leaves out the
questions (`measurement`).
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any, Final, Literal

import cerata

from .judged_set import Corpus, Document

SPEAKER_STYLES: Final = ("role", "prefix")
SESSION_STYLES: Final = ("track", "metadata", "scope", "parent")
BATCH: Final = 1_000
"""Most turns in a transaction."""

Speaker = Literal["role", "prefix"]
"""The speaker as the frame's role, or as a prefix of its text: "Ana: I moved"."""

Session = Literal["track", "metadata", "scope", "parent"]
"""The session as track, as ``metadata["session"]``, as ``scope["session_id"]``, or as a frame."""


@dataclass(frozen=True, slots=True)
class Style:
    """The form in which a corpus is written."""

    speaker: Speaker = "role"
    session: Session = "track"

    def text(self, document: Document) -> str:
        """Return the text of a document's frame."""
        if self.speaker == "prefix" and document.role is not None:
            return f"{document.role}: {document.text}"
        return document.text


@dataclass(frozen=True, slots=True)
class StoredCorpus:
    """A file that holds a corpus: the document of each frame, size, and processor seconds."""

    path: Path
    documents: dict[int, str]
    size_bytes: int
    seconds: float


def ingest(corpus: Corpus, path: Path, style: Style, embedder: Any = None) -> StoredCorpus:
    """Write a corpus into a new file and close it. Durable on return.

    Args:
        corpus: the documents
        path: the file to create
        style: the form of speakers and sessions
        embedder: the embedder of the store; default none
    """
    documents: dict[int, str] = {}
    started = time.process_time()
    with cerata.open(path, embedder=embedder) as store:
        for session, batch in _batches(corpus):
            documents.update(_put(store, session, batch, style))
        if getattr(embedder, "reads_context", False):
            # A turn is put with the vector of its text alone, and gets that of its window here.
            store.embeddings.fill()
    seconds = time.process_time() - started
    return StoredCorpus(path, documents, path.stat().st_size, seconds)


def _batches(corpus: Corpus) -> Iterator[tuple[str | None, list[Document]]]:
    """Yield the documents in order, with their session, in lists for a transaction."""
    for session, group in groupby(corpus.documents, lambda document: document.parent):
        documents = list(group)
        for start in range(0, len(documents), BATCH):
            yield session, documents[start : start + BATCH]


def _put(
    store: cerata.Store, session: str | None, batch: list[Document], style: Style
) -> dict[int, str]:
    """Put a part of a session; return the document of each new frame."""
    names: list[str | None] = []
    with store.transaction() as transaction:
        fields, metadata = cerata.PutOptions(), None
        if session is not None:
            if style.session == "parent":
                names.append(None)
                parent = store.put_frame(f"Session {session}", kind="session")
                fields = cerata.PutOptions(parent=parent)
            elif style.session == "metadata":
                metadata = {"session": session}
            elif style.session == "track":
                fields = cerata.PutOptions(track=session)
            else:
                fields = cerata.PutOptions(scope={"session_id": session})
        for document in filter(_is_storable, batch):
            store.put_frame(
                style.text(document),
                role=document.role if style.speaker == "role" else None,
                title=document.title,
                kind="text" if document.role is None else "message",
                metadata=metadata,
                options=replace(fields, created=document.time),
            )
            names.append(document.id)
    assert transaction.receipt is not None
    pairs = zip(transaction.receipt.ids, names, strict=True)
    return {frame: name for frame, name in pairs if name is not None}


def _is_storable(document: Document) -> bool:
    """Return whether a document has a text; an empty text cannot be stored, and is never found."""
    return bool(document.text.strip())
