"""A cache of embeddings in a file that the user names, so that a second run needs no model.

Owns an embedder that answers from an SQLite file and asks a model for the rest. Vectors are kept as
the model returned them, by the space and the SHA-256 of the text, so a store that is filled from
the cache has the same bytes. Recent texts stay in memory: the time of a question, taken after a
first pass, then has no model and no file in it.
"""

import hashlib
import sqlite3
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from cerata import EmbedderFailed, EmbedderIdentity, InvalidInput, TokenEmbedder

FILE_NAME: Final = "embeddings.sqlite3"
MEMORY_TEXTS: Final = 8_192
"""Texts that stay in memory: those of a conversation and its questions."""

BATCH: Final = 64
"""Texts in a call of the model."""

Matrix = npt.NDArray[np.float32]
Progress = Callable[[int, int], None]
"""Called with the number of embedded texts, and that of all texts."""

_TABLE: Final = (
    "CREATE TABLE IF NOT EXISTS vectors (space TEXT, text BLOB, rows INTEGER, data BLOB, "
    "PRIMARY KEY (space, text)) WITHOUT ROWID"
)


class CachedEmbedder:
    """An embedder with a cache in a file; further members are those of the model.

    - Each answer equals the model's answer, bit for bit.

    Args:
        model: the embedder; asked for texts that the cache lacks
        folder: the folder of the file, created if missing

    Raises:
        InvalidInput: the folder or its file cannot be used.
    """

    def __init__(self, model: Any, folder: Path) -> None:
        self._model = model
        self._path = folder / FILE_NAME
        self._memory: dict[tuple[str, bytes], Matrix] = {}
        self.identity: Final[EmbedderIdentity] = model.identity
        self.token_identity: Final[EmbedderIdentity | None] = getattr(model, "token_identity", None)
        self.max_tokens: Final[int | None] = model.max_tokens
        self.asked = 0
        """Texts that the model embedded."""
        with self._readable():
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._file = sqlite3.connect(self._path, timeout=60)
            self._file.execute(_TABLE)

    def __getattr__(self, name: str) -> Any:
        member = getattr(self._model, name)
        return self._embed_question if name == "embed_question" else member

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Return a vector for each text, (len(texts), dimension) float32.

        Args:
            texts: the texts, in order
        """
        self._fill(texts)
        rows = [self._stored(self.identity, text) for text in texts]
        return np.concatenate(rows) if rows else np.empty((0, self.identity.dimension), np.float32)

    def embed_tokens(self, texts: Sequence[str]) -> list[Matrix]:
        """Return for each text a vector for each token, (tokens, dimension) float32.

        Args:
            texts: the texts, in order
        """
        assert self.token_identity is not None
        self._fill(texts)
        return [self._stored(self.token_identity, text) for text in texts]

    def _embed_question(self, text: str) -> npt.NDArray[np.float32]:
        """Return the vector of a question, (dimension,) float32, from a model that has such."""
        space = f"{self.identity.space} of questions"
        if (matrix := self._look_up(self.identity, text, space)) is None:
            self.asked += 1
            matrix = np.asarray(self._model.embed_question(text), np.float32)[None]
            with self._readable(), self._file:
                self._keep(self.identity, text, matrix, space)
        vector: npt.NDArray[np.float32] = matrix[0]
        return vector

    def warm(self, texts: Sequence[str], progress: Progress | None = None) -> None:
        """Embed the texts that the file lacks.

        Args:
            texts: the texts, in any order
            progress: called after each batch; default none
        """
        missing = [text for text in dict.fromkeys(texts) if self._lacks(text)]
        # A model pads the texts of a call to the longest.
        missing.sort(key=len)
        for start in range(0, len(missing), BATCH):
            self._embed(missing[start : start + BATCH])
            if progress is not None:
                progress(min(start + BATCH, len(missing)), len(missing))

    def load(self, texts: Sequence[str]) -> None:
        """Bring the vectors of texts into memory, so that a timed write reads no file.

        Args:
            texts: at most half of `MEMORY_TEXTS`
        """
        self._memory.clear()
        self._fill(texts)

    @property
    def _identities(self) -> tuple[EmbedderIdentity, ...]:
        tokens = self.token_identity
        return (self.identity,) if tokens is None else (self.identity, tokens)

    def _lacks(self, text: str) -> bool:
        return any(self._look_up(identity, text) is None for identity in self._identities)

    def _fill(self, texts: Sequence[str]) -> None:
        missing = [text for text in dict.fromkeys(texts) if self._lacks(text)]
        for start in range(0, len(missing), BATCH):
            self._embed(missing[start : start + BATCH])

    def _embed(self, texts: Sequence[str]) -> None:
        """Ask the model, and keep its answers."""
        self.asked += len(texts)
        answers: list[tuple[EmbedderIdentity, Sequence[Matrix]]] = [
            (self.identity, [row[None] for row in self._model.embed(list(texts))])
        ]
        if self.token_identity is not None:
            model: TokenEmbedder = self._model
            answers.append((self.token_identity, model.embed_tokens(list(texts))))
        with self._readable(), self._file:
            for identity, matrices in answers:
                for text, matrix in zip(texts, matrices, strict=True):
                    self._keep(identity, text, matrix)

    def _keep(
        self, identity: EmbedderIdentity, text: str, matrix: Matrix, space: str | None = None
    ) -> None:
        stored = np.ascontiguousarray(matrix, np.float32)
        if stored.ndim != 2 or stored.shape[1] != identity.dimension:
            raise EmbedderFailed(
                f"The embedder returned the shape {stored.shape}, not (…, {identity.dimension})",
                embedder=identity.space,
            )
        row = space or identity.space, _key(text), len(stored), stored.tobytes()
        self._file.execute("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?, ?)", row)
        self._remember(row[0], text, stored)

    def _look_up(
        self, identity: EmbedderIdentity, text: str, space: str | None = None
    ) -> Matrix | None:
        """Return the vectors of a text in a space, from memory or from the file."""
        place = space or identity.space, _key(text)
        if (matrix := self._memory.get(place)) is not None:
            return matrix
        with self._readable():
            query = "SELECT rows, data FROM vectors WHERE space = ? AND text = ?"
            row: tuple[int, bytes] | None = self._file.execute(query, place).fetchone()
        if row is None:
            return None
        if len(row[1]) != row[0] * identity.dimension * np.dtype(np.float32).itemsize:
            raise self._damaged("a vector has another size than its space")
        matrix = np.frombuffer(row[1], np.float32).reshape(row[0], identity.dimension)
        self._remember(place[0], text, matrix)
        return matrix

    def _stored(self, identity: EmbedderIdentity, text: str) -> Matrix:
        matrix = self._look_up(identity, text)
        assert matrix is not None
        return matrix

    def _remember(self, space: str, text: str, matrix: Matrix) -> None:
        if len(self._memory) >= MEMORY_TEXTS:
            self._memory.clear()
        self._memory[space, _key(text)] = matrix

    @contextmanager
    def _readable(self) -> Generator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise self._damaged(str(error)) from error

    def _damaged(self, fault: str) -> InvalidInput:
        return InvalidInput(
            f"The cache of embeddings cannot be used: {fault}",
            where=str(self._path),
            remedy="Delete the file, or name another folder with --cache.",
        )


def _key(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()
