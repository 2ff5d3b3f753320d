"""Compressed checkpoints of LangGraph; free of the framework, since an import needs none."""

from typing import Final

import zstandard

from cerata.engine.errors import Corrupt
from cerata.engine.limits import BLOB_SIZE_MAX

_COMPRESSED_FROM: Final = 16 << 10
"""Bytes of a checkpoint that is compressed: larger batches leave the ring, and sync twice."""

_LEVEL: Final = 3


def compressed(data: bytes) -> tuple[bytes, bool]:
    """Return the bytes to store for a checkpoint, and whether they are compressed."""
    if len(data) < _COMPRESSED_FROM:
        return data, False
    return zstandard.ZstdCompressor(level=_LEVEL).compress(data), True


def decompressed(data: bytes, where: str) -> bytes:
    """Return the bytes that `compressed` compressed.

    Raises:
        Corrupt: the bytes are no such bytes, or too many.
    """
    try:
        size = zstandard.frame_content_size(data)
        if not 0 <= size <= BLOB_SIZE_MAX:
            raise zstandard.ZstdError(f"its size is {size:,}")
        return zstandard.ZstdDecompressor().decompress(data)
    except zstandard.ZstdError as error:
        raise Corrupt(
            f"A checkpoint cannot be decompressed: {error}",
            where=where,
            remedy="Read an earlier checkpoint of the thread.",
        ) from error
