"""Models of the package sentence-transformers as embedders; it is imported at the first text.

Leaves out getting a model: it is one that is on this machine, unless the caller says otherwise.
"""

import importlib
import importlib.util
from collections.abc import Sequence
from threading import Lock
from typing import Any, Final, Protocol

from cerata.engine.errors import Unsupported

from .embedder import BATCH_DEFAULT, Matrix, check_batch, checked_vectors
from .identity import EmbedderIdentity, Metric, VectorType

_PACKAGE: Final = "sentence_transformers"


class Model(Protocol):
    """What is used of a ``sentence_transformers.SentenceTransformer``."""

    def encode(self, sentences: list[str], **options: Any) -> object: ...


class SentenceTransformersEmbedder:
    """A model of sentence-transformers, by its name or the path of its folder.

    ``revision`` is the commit or tag that the model is loaded at, and part of the identity. The
    model must be on this machine: only with ``download=True`` may it be fetched. ``options`` go to
    ``SentenceTransformer``, such as ``device="cpu"``. The call is one at a time.

    Raises:
        Unsupported: sentence-transformers is not installed. InvalidInput: an identity that cannot
        be, or a batch below 1.
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
        download: bool = False,
        **options: Any,
    ) -> None:
        if importlib.util.find_spec(_PACKAGE) is None:
            raise Unsupported(
                "sentence-transformers is not there",
                remedy="Install it: pip install sentence-transformers.",
            )
        check_batch(batch)
        self.identity: Final = EmbedderIdentity(model, revision, dimension, metric, dtype)
        self.max_tokens: Final = max_tokens
        self._batch = batch
        self._options = {"revision": revision, "local_files_only": not download, **options}
        self._lock = Lock()
        self._model: Model | None = None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.identity.space}>"

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Return a vector for each text, (len(texts), dimension) float32, as the model gives it.

        Raises:
            EmbedderFailed: what it gives are no vectors of this dimension.
        """
        with self._lock:
            if self._model is None:
                package: Any = importlib.import_module(_PACKAGE)
                self._model = package.SentenceTransformer(self.identity.name, **self._options)
            assert self._model is not None
            given = self._model.encode(
                list(texts),
                batch_size=self._batch,
                convert_to_numpy=True,
                show_progress_bar=False,
            )
        return checked_vectors(self.identity, len(texts), given)
