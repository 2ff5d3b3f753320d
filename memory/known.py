"""Known: whether a file is there already, by its bytes alone.

Owns the URI of a file, and the hash that a frame keeps of the one its text was extracted from. So
the same folder again costs about reading it. Leaves out reading the file, and what is done if it
is not known.
"""

import codecs
import os
from pathlib import Path

from cerata.engine.events import PutFrame, Scope

from .drafting import SOURCE_HASH, content_hash
from .values import Receipt
from .view import View


def file_uri(path: str | Path) -> str:
    """Return the URI by which a file is known: its whole path, however it was given.

    ``notes.md`` of two folders are two files, and one file is one from whichever folder it is
    named. Links are not followed: where the file really lies may change from day to day.
    """
    return Path(os.path.abspath(path)).as_posix()


def find_unchanged(view: View, data: bytes, uri: str, scope: Scope) -> Receipt | None:
    """Return the receipt of a file whose bytes are there already, whole, under this URI and scope.

    Nothing is extracted or cut for it. Where a file is its own text, the hash of its content says
    so; of HTML, PDF and transcripts, the hash of the source that their frame keeps.
    """
    source = source_hash(data)
    for number in view.find_content(content_hash(data.removeprefix(codecs.BOM_UTF8))):
        known = _whole(view, number, uri, scope, None)
        if known is not None:
            return known
    for number in view.find_uri(uri):
        known = _whole(view, number, uri, scope, source)
        if known is not None:
            return known
    return None


def source_hash(data: bytes) -> str:
    """Return the hash by which a file is known again whose text is not its bytes.

    It is another one for each version of the extractors: what they make anew is read again.
    """
    return content_hash(b"extracted, version 1\0" + data).hex()


def is_read_as_text(body: PutFrame) -> bool:
    """Tell whether a frame is searched by the words of its text: bytes are not, as they are."""
    return body.text is not None and body.search_text is None


def _whole(view: View, number: int, uri: str, scope: Scope, source: str | None) -> Receipt | None:
    """Return the receipt of a document that is whole, if it is of this URI, scope and source."""
    # One event is read; the frame's text, which may be in many chunks, is not.
    event = next(view.log(number, number), None)
    if event is None or not isinstance(event.body, PutFrame) or event.body.chunk_index is not None:
        return None
    body = event.body
    if body.uri != uri or event.scope != scope or not is_read_as_text(body):
        return None
    if source is not None and body.metadata.get(SOURCE_HASH) != source:
        return None
    # Not by view.chunks, which looks at each one's scope: they were put under their document's.
    chunks = {} if body.chunk_count is None else view.layers.chunks(number)
    if len(chunks) != (body.chunk_count or 0):
        return None
    ids = (number, *chunks.values())
    return Receipt(number, ids, (), view.head, durable=True, added=False)
