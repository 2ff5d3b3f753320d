"""An embedder for tests: the words of a text, hashed. It counts what it is asked."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from cerata import EmbedderIdentity
from cerata.engine.integrity import hash_bytes

DIMENSION = 8


def words_hashed(text: str, dimension: int = DIMENSION) -> list[float]:
    """A vector of a text: for each word one place is more, by the word's hash."""
    vector = [0.0] * dimension
    for word in text.lower().split():
        hashed = hash_bytes(word.encode())
        vector[hashed[0] % dimension] += 1.0 + hashed[1] / 256
    return vector


class Hashing:
    """Deterministic, without any model; ``asked`` has every text that it was given, in order."""

    def __init__(self, revision: str = "1", **identity: Any) -> None:
        self.identity = EmbedderIdentity("hashing", revision, DIMENSION, **identity)
        self.max_tokens = None
        self.asked: list[str] = []
        self.calls = 0
        self.says: Any = None
        """What it gives or raises instead, if anything."""

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        self.calls += 1
        self.asked += texts
        if isinstance(self.says, BaseException):
            raise self.says
        if self.says is not None:
            given: npt.NDArray[np.float32] = self.says
            return given
        return np.array([words_hashed(text) for text in texts], np.float32)


class HashingTokens(Hashing):
    """With a vector for each word, too; ``asked_tokens`` has every text that it made them of."""

    def __init__(self, revision: str = "1") -> None:
        super().__init__(revision)
        self.token_identity = EmbedderIdentity("hashing", revision, DIMENSION, "maxsim", "i1")
        self.asked_tokens: list[str] = []
        self.says_tokens: Any = None
        """What it gives or raises instead, if anything."""

    def embed_tokens(self, texts: Sequence[str]) -> list[npt.NDArray[np.float32]]:
        self.asked_tokens += texts
        if isinstance(self.says_tokens, BaseException):
            raise self.says_tokens
        if self.says_tokens is not None:
            given: list[npt.NDArray[np.float32]] = self.says_tokens
            return given
        return [
            np.array([words_hashed(word) for word in text.split()], np.float32) for text in texts
        ]
