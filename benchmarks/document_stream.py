"""Artificial documents with vectors, a piece at a time, so that a million need little memory.

Owns the texts (words with the frequencies of Zipf) and the vectors: in clusters that share a
direction, like the vectors of sentence models (K. Ethayarajh, How Contextual are Contextualized
Word Representations?, EMNLP 2019). The same count gives the same documents in every run.
"""

import random
from collections.abc import Iterator
from itertools import accumulate
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from benchmarks.beside.documents import vocabulary

from .fulltext_bench import SEED as TEXT_SEED
from .fulltext_bench import WORDS_A_DOCUMENT

Matrix: TypeAlias = npt.NDArray[np.float32]

DIMENSION: Final = 384
PIECE: Final = 10_000
SEED: Final = 20_240_611
_CLUSTER: Final = 50
"""Documents of a cluster."""


class DocumentStream:
    """So many documents, and questions to them."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._texts = random.Random(TEXT_SEED)
        self._words = vocabulary(min(60_000, count), self._texts)
        self._weights = list(accumulate(1 / (rank + 10) for rank in range(len(self._words))))
        self._vectors = np.random.default_rng(SEED)
        self._spectrum = (1 / np.sqrt(np.arange(1, DIMENSION + 1))).astype(np.float32)
        self._shared = self._drawn(self._vectors, 1)[0] * 3
        self._centres = self._drawn(self._vectors, max(1, count // _CLUSTER))
        self._states = self._texts.getstate(), self._vectors.bit_generator.state

    def _drawn(self, source: np.random.Generator, count: int) -> Matrix:
        numbers: Matrix = source.standard_normal((count, DIMENSION), np.float32) * self._spectrum
        return numbers

    def _units(self, source: np.random.Generator, count: int) -> Matrix:
        chosen = self._centres[source.integers(0, len(self._centres), count)]
        rows = self._shared + chosen + self._drawn(source, count) * np.float32(0.7)
        units: Matrix = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
        return units

    def pieces(self) -> Iterator[tuple[list[str], Matrix]]:
        """Yield texts and their vectors, 10,000 at a time; every call yields the same."""
        texts, vectors = random.Random(), np.random.default_rng()
        texts.setstate(self._states[0])
        vectors.bit_generator.state = self._states[1]
        for start in range(0, self.count, PIECE):
            size = min(PIECE, self.count - start)
            words = [
                texts.choices(self._words, cum_weights=self._weights, k=WORDS_A_DOCUMENT)
                for _ in range(size)
            ]
            yield (
                [" ".join(chosen).capitalize() + "." for chosen in words],
                self._units(vectors, size),
            )

    def questions(self, count: int) -> tuple[list[str], Matrix]:
        """Return questions of four words, and their vectors."""
        source = random.Random(TEXT_SEED + 1)
        texts = [
            " ".join(source.choices(self._words, cum_weights=self._weights, k=4))
            for _ in range(count)
        ]
        return texts, self._units(np.random.default_rng(SEED + 1), count)
