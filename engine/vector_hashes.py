"""Payloads stored without the hash of the vector beside them.

Owns the rule: the hash of a vector in a column follows from the column. A segment leaves the hash
out of the payload, and its reader puts the hash back, so events, commitments and leaves are those
of the whole payload. Leaves out the rows of the index (`segment_index`).
"""

from typing import Final

from .errors import Corrupt
from .integrity import HASH_SIZE, IncompletePayload

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
