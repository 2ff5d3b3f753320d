"""Salted hashes of content, stored if a plain hash would let a reader test guesses.

Owns the four formulas. An erasure removes the salt of an event with its content, so a value that
needs that salt can no longer be computed. docs/format.md lists the fields.

    quote     = keyed BLAKE3 over the quoted bytes, key = salt of the frame's event ‖ 16 zero bytes
    judged    = keyed BLAKE3 over a proposal's target ‖ 00 ‖ text, with the key of a quote
    arguments = H(hash of the arguments ‖ salts of the batch's events)
    context   = H(salts of the frames and facts that it shows ‖ text)
"""

from collections.abc import Sequence
from typing import Final

from blake3 import blake3

from .errors import Corrupt
from .events import PutFrame
from .integrity import HASH_SIZE, SALT_SIZE, IncompletePayload, hash_bytes

QUOTE_SIZE: Final = 16

NOT_COMPARABLE: Final = bytes(HASH_SIZE)
"""Replaces a context's hash if the salt of an event in the context was erased."""


def quote_hash(salt: bytes, quoted: bytes) -> bytes:
    """Return 16 bytes that bind the quoted bytes of a frame; ``salt`` is its event's."""
    return blake3(quoted, key=salt.ljust(2 * SALT_SIZE, b"\0")).digest(QUOTE_SIZE)


def judged_hash(salt: bytes, target: str, text: str) -> bytes:
    """Return 32 bytes that bind the content of a proposal; ``salt`` is its event's."""
    judged = target.encode() + b"\0" + text.encode()
    return blake3(judged, key=salt.ljust(2 * SALT_SIZE, b"\0")).digest()


def salted_arguments(arguments: bytes, salts: Sequence[bytes]) -> bytes:
    """Return a batch's stored hash of a call's arguments; ``salts`` in event order."""
    return hash_bytes(arguments + b"".join(salts))


def context_hash(salts: Sequence[bytes | None], text: str) -> bytes:
    """Return a recall's stored hash of its text; 32 zero bytes if a salt is missing."""
    present = [salt for salt in salts if salt is not None]
    if len(present) < len(salts):
        return NOT_COMPARABLE
    return hash_bytes(b"".join(present) + text.encode())


# --- Payloads stored without the hash of the vector beside them -----------------------------------
#
# A segment leaves the hash out of the payload, and its reader puts the hash back, so events,
# commitments and leaves are those of the whole payload.


CHECK_SIZE: Final = 4
"""Bytes of the hash of a vector that the index keeps, to notice damage to the vector."""


def without_hash(payload: bytes, vector_hash: bytes) -> tuple[bytes, int | None]:
    """Return a payload without a hash, and the count of bytes after the hash.

    None if the payload does not have the hash.
    """
    place = payload.rfind(vector_hash)
    if place < 0:
        return payload, None
    after = len(payload) - place - HASH_SIZE
    return payload[:place] + payload[place + HASH_SIZE :], after


def with_hash(stored: bytes, after: int, vector_hash: bytes | None) -> bytes:
    """Return a whole payload; an `IncompletePayload` if ``vector_hash`` is None, for damage.

    Raises:
        Corrupt: ``after``, the count of bytes after the hash, does not fit the payload.
    """
    place = len(stored) - after
    if not 0 <= place <= len(stored):
        raise Corrupt(
            "A segment is damaged: a payload does not fit the index",
            remedy="Run 'cerata file verify' to see what is affected.",
        )
    if vector_hash is None:
        return IncompletePayload(stored[:place] + bytes(HASH_SIZE) + stored[place:])
    return stored[:place] + vector_hash + stored[place:]


# --- The hash of a frame's content, which follows from the content --------------------------------
#
# Readers compute all other hashes, so a payload does not hold 16 bytes that cannot be compressed.


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
