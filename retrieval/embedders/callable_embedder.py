"""Any callable as an embedder, and the size of the batches that an embedder works in."""

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from cerata.engine.arguments import is_integer
from cerata.engine.errors import InvalidInput

from .embedder import Matrix, checked_vectors
from .identity import EmbedderIdentity, Metric, VectorType

BATCH_DEFAULT: Final = 32
"""Texts in a call of a model: enough for a processor, few enough for any service."""


class CallableEmbedder:
    """Any function from a list of texts to one vector each, as an embedder.

    Args:
        function: takes a list of texts and returns their vectors, (texts, dimension)
        name: the model's name
        revision: the model's version; change it if the same text may get another vector
        dimension: numbers in a vector
        metric: "cosine" (default) or "dot"
        dtype: "f4" (default), or "i1" to store a byte for each number
        batch: texts in a call of the function, default 32
        max_tokens: tokens of a text that the model reads; None if unknown

    >>> def sizes(texts: list[str]) -> list[list[float]]:
    ...     return [[len(text), 1.0] for text in texts]
    >>> embedder = CallableEmbedder(sizes, name="sizes", revision="1", dimension=2)
    >>> embedder.identity.space
    'sizes@1/2/cosine'
    >>> embedder.embed(["wax", "tablet"]).tolist()
    [[3.0, 1.0], [6.0, 1.0]]

    Raises:
        InvalidInput: the function is not callable, the identity invalid, or the batch below 1.
    """

    def __init__(
        self,
        function: Callable[[list[str]], Any],
        *,
        name: str,
        revision: str,
        dimension: int,
        metric: Metric = "cosine",
        dtype: VectorType = "f4",
        batch: int = BATCH_DEFAULT,
        max_tokens: int | None = None,
    ) -> None:
        if not callable(function):
            raise InvalidInput(
                f"function must be callable, not {function!r:.60}",
                remedy="Pass a function from a list of texts to their vectors.",
            )
        check_batch(batch)
        self.identity: Final = EmbedderIdentity(name, revision, dimension, metric, dtype)
        self.max_tokens: Final = max_tokens
        self._function = function
        self._batch = batch

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.identity.space}>"

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Return a vector for each text, (len(texts), dimension) float32, ``batch`` at a time.

        Args:
            texts: the texts, in order
        """
        rows = np.empty((len(texts), self.identity.dimension), np.float32)
        for first in range(0, len(texts), self._batch):
            group = list(texts[first : first + self._batch])
            rows[first : first + len(group)] = checked_vectors(
                self.identity, len(group), self._function(group)
            )
        return rows


def check_batch(batch: object) -> None:
    """Raise `InvalidInput` unless a batch is a whole number of texts from 1."""
    if not is_integer(batch) or batch < 1:
        raise InvalidInput(
            f"batch must be a whole number of texts from 1, not {batch!r:.60}",
            remedy="Pass batch=1 or more.",
        )
