"""A static embedder: a vector for each word or part of a word, and their weighted sum for a text.

A text takes about a three-hundredth of MiniLM's time; there is no extra and no download. The
table was made from all-MiniLM-L6-v2 (Apache-2.0) by ``tools/static_table.py``: for each of the
30,522 pieces of its vocabulary (`wordpiece`) 128 numbers, each -1, 0 or 1, and a weight. The order
of words does not count.

All sums are of whole numbers, so a text has the same vector, bit for bit, on every machine.

The file, ``static_table.zst``, is a zstandard frame of the weights (uint16, little-endian) and the
numbers of each row plus 1, four to a byte, the first in the lowest bits.
"""

import hashlib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import zstandard

from cerata.engine.errors import Unsupported

from .embedder import Matrix
from .identity import EmbedderIdentity
from .trust import share_known
from .wordpiece import UNKNOWN, bert_uncased

TABLE: Final = "static_table.zst"
TABLE_SHA256: Final = "4c350f783ad90caa6ca5a5965a467f3064169b76642c3cfe088ccb5906788718"
PIECES: Final = 30_522
DIMENSION: Final = 128
WEIGHT_MAX: Final = (1 << 16) - 1

MAX_TOKENS: Final = 4_096
"""Pieces of a text that are read: so the sums stay below 2**31."""
assert MAX_TOKENS * WEIGHT_MAX < 1 << 31

VECTOR_WEIGHT: Final = 0.15
"""V. A larger weight finds more in chats of people; from 0.2 on long chats lose 0.5 points of R@10
to words alone, and 0.15 loses none on any set (docs/measurements.md)."""

_SIZE: Final = PIECES * (2 + DIMENSION // 4)


class Table(NamedTuple):
    """The numbers of each piece, (pieces, 128) int8, and its weight, (pieces,) int32."""

    numbers: npt.NDArray[np.int8]
    weights: npt.NDArray[np.int32]


class StaticEmbedder:
    """An embedder without a model: sums of vectors of words and parts of words, 128 numbers each.

    Any thread may call it. The table, 4 MB, loads at the first text.

    - A space has int8 vectors: 128 bytes a text.
    - English; of other languages, the words that look like English words.
    """

    def __init__(self) -> None:
        self.vector_weight: Final = VECTOR_WEIGHT
        self.max_tokens: Final = MAX_TOKENS
        revision = TABLE_SHA256[:12]
        self.identity: Final = EmbedderIdentity("static-minilm", revision, DIMENSION, dtype="i1")

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.identity.space}>"

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Return a vector of length 1 for each text, (len(texts), 128) float32.

        A text without a piece has the vector of an unknown word.

        Args:
            texts: the texts, in order; of each at most 4,094 pieces are read

        Raises:
            Unsupported: the table beside this file differs from the published file.
        """
        loaded = table()
        tokenizer = bert_uncased()
        unknown = [tokenizer.number(UNKNOWN)]
        sums = np.empty((len(texts), DIMENSION), np.int32)
        for at, text in enumerate(texts):
            pieces = tokenizer.encode(text, MAX_TOKENS)[1:-1] or unknown
            rows = loaded.numbers[pieces] * loaded.weights[pieces, None]
            rows.sum(axis=0, dtype=np.int32, out=sums[at])
        wide = sums.astype(np.float64)
        # One after another: the order of a plain sum depends on the processor.
        lengths = np.sqrt(np.add.accumulate(wide * wide, axis=1)[:, -1:])
        unit: Matrix = (wide / np.maximum(lengths, 1.0)).astype(np.float32)
        return unit

    def knows(self, text: str) -> float:
        """Return the share of a question's words that the vocabulary has whole, from 0 to 1.

        Args:
            text: the question
        """
        return share_known(text, bert_uncased())


def packed(numbers: npt.NDArray[np.int8], weights: npt.NDArray[np.float64]) -> bytes:
    """Return the bytes of a table before compression; its largest weight becomes 65,535.

    Args:
        numbers: -1, 0 or 1; (pieces, 128)
        weights: from 0; (pieces,)
    """
    whole = np.rint(weights * (WEIGHT_MAX / weights.max())).astype("<u2")
    codes = (numbers + 1).astype(np.uint8).reshape(-1, 4)
    joined = codes[:, 0] | codes[:, 1] << 2 | codes[:, 2] << 4 | codes[:, 3] << 6
    data: bytes = whole.tobytes() + joined.astype(np.uint8).tobytes()
    return data


@cache
def table() -> Table:
    """Return the table; read once, in about 20 ms.

    Raises:
        Unsupported: the file differs from the published file.
    """
    data = (files(__package__ or "") / TABLE).read_bytes()
    if hashlib.sha256(data).hexdigest() != TABLE_SHA256:
        raise Unsupported(
            "The table of the static embedder is not the published file",
            where=TABLE,
            remedy="Install Cerata again.",
        )
    raw = zstandard.decompress(data, _SIZE)
    weights = np.frombuffer(raw, "<u2", PIECES).astype(np.int32)
    joined = np.frombuffer(raw, np.uint8, offset=2 * PIECES)
    codes = np.stack([joined >> shift & 3 for shift in (0, 2, 4, 6)], axis=1)
    numbers = codes.astype(np.int8).reshape(PIECES, DIMENSION) - np.int8(1)
    return Table(numbers, weights)
