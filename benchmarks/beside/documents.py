"""Made documents: Zipf words and clustered vectors, equal in every run and for every system.

Owns texts, vectors, questions and the right answers; leaves out the systems that are asked
(`systems`). A batch comes from a seed and its number, so 1,000,000 documents need little
memory. Vectors are in clusters that share a direction, like the vectors of sentence models
(K. Ethayarajh, How Contextual are Contextualized Word Representations?, EMNLP 2019).
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

import numpy as np
import numpy.typing as npt

Matrix = npt.NDArray[np.float32]
Vector = npt.NDArray[np.float32]

BATCH: Final = 100
DIMENSION: Final = 384
WORDS: Final = 40
K: Final = 10
SEED: Final = 20_240_611
VOCABULARY_MAX: Final = 60_000
RARE_WORDS: Final = 20
_QUESTION_WORDS: Final = 4
_FLATTENED_RANKS: Final = 10
"""Added to a word's rank, so that the commonest word is in a third of the documents."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Documents that are written together; ``first`` is the number of the first, from 0."""

    first: int
    texts: list[str]
    vectors: Matrix


@dataclass(frozen=True, slots=True)
class Question:
    """Four words, and a vector that is near some documents."""

    text: str
    vector: Vector


@dataclass(frozen=True, slots=True)
class Answers:
    """Right answers: the nearest documents of each question, and the documents of rare words."""

    nearest: list[list[int]]
    documents_of: dict[str, set[int]]


def vocabulary(size: int, random_source: random.Random) -> list[str]:
    """Return distinct artificial words of one to three syllables and an English ending."""
    syllables = [a + b + c for a in "bcdfghklmnprstvz" for b in "aeiou" for c in "lmnrst"]
    endings = ("", "s", "ing", "ed", "er", "ation", "ly", "ness", "al", "ment", "y", "e", "able")
    words: dict[str, None] = {}
    while len(words) < size:
        stem = "".join(random_source.choices(syllables, k=random_source.choice((1, 2, 2, 3))))
        words[stem + random_source.choice(endings)] = None
    return list(words)


class Documents:
    """A number of documents, made batch by batch."""

    def __init__(self, count: int) -> None:
        self.count = count
        size = min(VOCABULARY_MAX, max(count, 200))
        words = vocabulary(size, random.Random(SEED))
        weights = list(accumulate(1 / (rank + _FLATTENED_RANKS) for rank in range(len(words))))
        self._words = np.array(words, object)
        self._ends = np.array(weights) / weights[-1]
        source = np.random.default_rng(SEED)
        self._spectrum = (1 / np.sqrt(np.arange(1, DIMENSION + 1))).astype(np.float32)
        self._shared = source.standard_normal(DIMENSION, np.float32) * 3 * self._spectrum
        centres = source.standard_normal((max(1, count // 50), DIMENSION), np.float32)
        self._centres: Matrix = centres * self._spectrum

    def batches(self) -> Iterator[Batch]:
        """Yield all documents, in batches of 100."""
        for first in range(0, self.count, BATCH):
            source = np.random.default_rng((SEED, first))
            size = min(BATCH, self.count - first)
            yield Batch(first, self._texts(source, size, WORDS), self._vectors(source, size))

    def questions(self, count: int) -> list[Question]:
        """Return questions with the distributions of the documents."""
        source = np.random.default_rng((SEED, self.count, count))
        texts = self._texts(source, count, _QUESTION_WORDS)
        rows = zip(texts, self._vectors(source, count), strict=True)
        return [Question(text, vector) for text, vector in rows]

    def answers(self, questions: Sequence[Question]) -> Answers:
        """Return the right answers, from a comparison with every document."""
        queries = np.array([question.vector for question in questions])
        best = np.full((len(queries), K), -2, np.float32)
        numbers = np.full((len(queries), K), -1, np.int64)
        documents_of: dict[str, set[int]] = {word: set() for word in self._rare_words()}
        for batch in self.batches():
            scores = np.hstack([best, queries @ batch.vectors.T])
            rows = np.tile(np.arange(len(batch.texts)) + batch.first, (len(queries), 1))
            places = np.argsort(-scores, axis=1, kind="stable")[:, :K]
            numbers = np.take_along_axis(np.hstack([numbers, rows]), places, axis=1)
            best = np.take_along_axis(scores, places, axis=1)
            for number, text in enumerate(batch.texts, start=batch.first):
                for word in documents_of.keys() & set(text.split()):
                    documents_of[word].add(number)
        present = {word: documents for word, documents in documents_of.items() if documents}
        return Answers(numbers.tolist(), present)

    def _rare_words(self) -> list[str]:
        """Return words from the rarer half of the vocabulary."""
        places = np.linspace(len(self._words) // 2, len(self._words) - 1, RARE_WORDS)
        return [str(self._words[int(place)]) for place in places]

    def _texts(self, source: np.random.Generator, count: int, size: int) -> list[str]:
        places = np.searchsorted(self._ends, source.random((count, size)), side="right")
        return [" ".join(words) for words in self._words[places].tolist()]

    def _vectors(self, source: np.random.Generator, count: int) -> Matrix:
        """Return unit vectors in clusters, all near one direction."""
        chosen = self._centres[source.integers(0, len(self._centres), count)]
        noise = source.standard_normal((count, DIMENSION), np.float32) * self._spectrum
        rows = self._shared + chosen + noise * np.float32(0.7)
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)
