"""Embedders for tests of quality: those of concepts know synonyms, a vague one knows nothing."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from benchmarks.retrieval.synthetic import KIND_OF, SYNONYMS
from cerata import EmbedderIdentity
from cerata.engine.integrity import hash_bytes

_DIMENSION = 256


class Concepts:
    """An embedder of concepts: synonyms are one, a thing is near its kind, grammar is nothing."""

    identity = EmbedderIdentity("concepts", "1", _DIMENSION)
    max_tokens = None

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        vectors = np.zeros((len(texts), _DIMENSION), np.float32)
        for place, text in enumerate(texts):
            for word in _words(text):
                vectors[place] += _vector(word)
        return vectors


class ConceptTokens(Concepts):
    """With a vector for each word, too."""

    token_identity = EmbedderIdentity("concepts", "1", _DIMENSION, "maxsim", "i1")

    def embed_tokens(self, texts: Sequence[str]) -> list[npt.NDArray[np.float32]]:
        return [np.array([_vector(word) for word in _words(text)], np.float32) for text in texts]


class Vague:
    """An embedder for which all texts are much alike, at random; it knows words of ASCII alone."""

    identity = EmbedderIdentity("vague", "1", _DIMENSION)
    max_tokens = None

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        return np.array([2 * _signs("all") + _signs(text) for text in texts], np.float32)

    def knows(self, text: str) -> float:
        return float(text.isascii())


def _words(text: str) -> list[str]:
    words = [word.strip(".,?!") for word in text.lower().split()]
    return [SYNONYMS.get(word, word) for word in words]


def _vector(word: str) -> npt.NDArray[np.float32]:
    """Return signs from the hash of a word, near 0 if it is short; a thing has those of its kind.

    Vectors of different words are nearly orthogonal.
    """
    signs = _signs(word) if len(word) > 3 else 0.01 * _signs(word)
    return signs + _signs(KIND_OF[word]) if word in KIND_OF else signs


def _signs(word: str) -> npt.NDArray[np.float32]:
    digest = b"".join(hash_bytes(f"{word} {part}".encode())[:16] for part in range(2))
    return np.unpackbits(np.frombuffer(digest, np.uint8)).astype(np.float32) * 2 - 1
