"""The keyed checks that bind every structure to its file and its place.

A check is BLAKE3 in keyed mode, cut to 8, 16 or 24 bytes. The key comes from the file id and each
input starts with a tag byte and the structure's offset, so bytes of another file, or of another
place in the same file, never verify: not even a whole store inside a payload.
"""

import struct

from blake3 import blake3

from ..disk.storage import Buffer

CHECK_SIZE_SHORT = 8
CHECK_SIZE_BLOCK = 16
CHECK_SIZE = 24

_PLACE = struct.Struct("<cQ")

# On disk: never renumber.
TAG_RECORD_HEADER = b"r"
TAG_RECORD_BODY = b"R"
TAG_EXTENT_HEADER = b"e"
TAG_EXTENT_BODY = b"E"
TAG_BLOCK = b"b"
TAG_INDEX = b"i"
TAG_TOC = b"T"
TAG_FOOTER = b"F"
TAG_PAGE = b"P"
TAG_WITNESS = b"W"


def file_key(file_id: bytes) -> bytes:
    """Return the 32-byte key of the file with this id (16 bytes)."""
    return blake3(file_id, derive_key_context="cerata format 1 file key").digest()


def begin_check(key: bytes, tag: bytes, offset: int) -> blake3:
    """Return the hasher that `check` feeds, for parts that are read one at a time."""
    return blake3(_PLACE.pack(tag, offset), key=key)


def check(key: bytes, tag: bytes, offset: int, *parts: Buffer, size: int = CHECK_SIZE) -> bytes:
    """Return the first ``size`` bytes of the check of ``parts`` at ``offset``."""
    hasher = blake3(_PLACE.pack(tag, offset), key=key)
    for part in parts:
        hasher.update(part)
    return hasher.digest(size)
