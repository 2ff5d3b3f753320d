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

from .integrity import HASH_SIZE, SALT_SIZE, hash_bytes

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
