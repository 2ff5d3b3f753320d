"""Detection of files that are stored already, by their bytes alone.

Owns the URI of a file, and the hash of the source file that an extracted frame stores. So
remembering an unchanged folder again costs little more than reading its files. Leaves out reading
files, and storing new files (`document`).
"""

import codecs
import os
from pathlib import Path

from cerata.engine.events import PutFrame, Scope

from ..snapshot.snapshot import Snapshot
from ..values.arguments import SOURCE_HASH, content_hash
from ..values.frames import Receipt


def file_uri(path: str | Path) -> str:
    """Return the URI of a file: its absolute path.

    So ``notes.md`` in two folders gives two URIs, and the current folder does not matter. Links are
    not followed, because their targets may change from day to day.
    """
    return Path(os.path.abspath(path)).as_posix()


def find_unchanged(snapshot: Snapshot, data: bytes, uri: str, scope: Scope) -> Receipt | None:
    """Return the receipt of a file that is stored completely under this URI and scope, or None.

    This needs no extraction or splitting. A file of plain text is found by the hash of its content;
    HTML, PDF and transcripts, by the hash of the source that their frame stores.
    """
    source = source_hash(data)
    for number in snapshot.layers.find_content(content_hash(data.removeprefix(codecs.BOM_UTF8))):
        receipt = _whole(snapshot, number, uri, scope, None)
        if receipt is not None:
            return receipt
    for number in snapshot.layers.find_uri(uri):
        receipt = _whole(snapshot, number, uri, scope, source)
        if receipt is not None:
            return receipt
    return None


def source_hash(data: bytes) -> str:
    """Return the hash by which a file that needs extraction is recognised.

    The hash depends on the version of the extractors, so a new version reads the files again.
    """
    return content_hash(b"extracted, version 3\0" + data).hex()


def is_read_as_text(body: PutFrame) -> bool:
    """Return whether a frame is searched by the words of its text, not of ``search_text``."""
    return body.text is not None and body.search_text is None


def _whole(
    snapshot: Snapshot, number: int, uri: str, scope: Scope, source: str | None
) -> Receipt | None:
    """Return the receipt of a complete document with this URI, scope and source, or None."""
    # Read a single event, not the text of the frame, which may have many chunks.
    event = next(snapshot.events(number, number), None)
    if event is None or not isinstance(event.body, PutFrame) or event.body.chunk_index is not None:
        return None
    body = event.body
    if body.uri != uri or event.scope != scope or not is_read_as_text(body):
        return None
    if source is not None and body.metadata.get(SOURCE_HASH) != source:
        return None
    # Chunks have the scope of their document, so the scope check of `files.chunks` is not needed.
    chunks = {} if body.chunk_count is None else snapshot.layers.chunks(number)
    if len(chunks) != (body.chunk_count or 0):
        return None
    ids = (number, *chunks.values())
    return Receipt(number, ids, (), snapshot.head, durable=True, added=False)
