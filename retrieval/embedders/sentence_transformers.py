"""Models of the package sentence-transformers as embedders; it is imported at the first text.

Leaves out the download of a model: by default the model must be on this machine.
"""

import importlib
import importlib.util
from collections.abc import Sequence
from threading import Lock
from typing import Any, Final, Protocol

from cerata.engine.errors import Unsupported

from .embedder import BATCH_DEFAULT, Matrix, Vector, check_batch, checked_vectors
from .identity import EmbedderIdentity, Metric, Prefixes, VectorType

_PACKAGE: Final = "sentence_transformers"


class Model(Protocol):
    """The used part of a ``sentence_transformers.SentenceTransformer``."""

    def encode(self, sentences: list[str], **options: Any) -> object: ...


class SentenceTransformersEmbedder:
    """A model of sentence-transformers.

    Calls from several threads run one after another.

    Args:
        model: the model's name, or the path of its folder
        revision: commit or tag at which the model is loaded; part of the identity
        dimension: numbers in a vector
        metric: "cosine" (default) or "dot"
        dtype: "f4" (default), or "i1" to store a byte for each number
        batch: texts in a call of the model, default 32
        max_tokens: tokens of a text that the model reads; None if unknown
        text_prefix: added before each text, such as "passage: "; default none
        question_prefix: added before each question, such as "query: "; default none
        download: if True, a missing model is downloaded; default False
        options: passed to ``SentenceTransformer``, such as ``device="cpu"``

    Raises:
        Unsupported: sentence-transformers is not installed.
        InvalidInput: the identity is invalid, or the batch is below 1.
    """

    def __init__(
        self,
        model: str,
        *,
        revision: str,
        dimension: int,
        metric: Metric = "cosine",
        dtype: VectorType = "f4",
        batch: int = BATCH_DEFAULT,
        max_tokens: int | None = None,
        text_prefix: str = "",
        question_prefix: str = "",
        download: bool = False,
        **options: Any,
    ) -> None:
        if importlib.util.find_spec(_PACKAGE) is None:
            raise Unsupported(
                "sentence-transformers is not installed",
                remedy="Run 'pip install sentence-transformers'.",
            )
        check_batch(batch)
        self._prefixes = Prefixes(text_prefix, question_prefix)
        self.identity: Final = EmbedderIdentity(
            model, self._prefixes.revision(revision), dimension, metric, dtype
        )
        self.max_tokens: Final = max_tokens
        self._batch = batch
        self._options = {"revision": revision, "local_files_only": not download, **options}
        self._lock = Lock()
        self._model: Model | None = None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.identity.space}>"

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Return a vector for each text, (len(texts), dimension) float32, as the model returns it.

        Args:
            texts: the texts, in order

        Raises:
            EmbedderFailed: the model returned no vectors of this dimension.
        """
        return self._encoded([self._prefixes.of_texts + text for text in texts])

    def embed_question(self, text: str) -> Vector:
        """Return the vector of a question, (dimension,) float32; errors are those of `embed`.

        Args:
            text: the question
        """
        vector: Vector = self._encoded([self._prefixes.of_questions + text])[0]
        return vector

    def _encoded(self, texts: list[str]) -> Matrix:
        with self._lock:
            if self._model is None:
                package: Any = importlib.import_module(_PACKAGE)
                self._model = package.SentenceTransformer(self.identity.name, **self._options)
            assert self._model is not None
            vectors = self._model.encode(
                texts, batch_size=self._batch, convert_to_numpy=True, show_progress_bar=False
            )
        return checked_vectors(self.identity, len(texts), vectors)
