"""The hash of a frame's content, which follows from the content.

Owns the rule: a putFrame stores a content hash only if the content is elsewhere, in the chunks of a
document. Readers compute all other hashes, so a payload does not hold 16 bytes that cannot be
compressed. Leaves out the index over the hashes (`cerata.projections.frames`).
"""

from typing import Final

from .events import PutFrame
from .integrity import hash_bytes

CONTENT_HASH_SIZE: Final = 16
"""Bytes of the hash that identifies a content."""


def content_hash_of(body: PutFrame) -> bytes | None:
    """Return the hash of a frame's content: the stored hash, or that of its text or blob.

    None for a chunk, which is found by its document, and for a document without a stored hash.
    Cost: a hash of the text, 0.7 us for 400 bytes.
    """
    if body.content_hash is not None:
        return body.content_hash
    if body.chunk_index is not None or body.chunk_count is not None:
        return None
    if body.blob is not None:
        return body.blob.hash[:CONTENT_HASH_SIZE]
    if body.text is None:
        return None
    # A draft that is not checked yet may have a lone surrogate; a fold must not fail.
    return hash_bytes(body.text.encode("utf-8", "surrogatepass"))[:CONTENT_HASH_SIZE]
