"""Chroma as a peer: vectors in an HNSW index, words as a filter of documents."""

import importlib
from pathlib import Path
from typing import Any

from .documents import Batch, K, Question, Vector


class Chroma:
    """A persistent collection of Chroma."""

    def __init__(self, folder: Path) -> None:
        chromadb = importlib.import_module("chromadb")
        settings = importlib.import_module("chromadb.config").Settings(anonymized_telemetry=False)
        self._client: Any = chromadb.PersistentClient(str(folder / "chroma"), settings)
        self._documents: Any = self._client.get_or_create_collection(
            "documents", embedding_function=None, configuration={"hnsw": {"space": "cosine"}}
        )

    def add(self, batch: Batch) -> None:
        names = [str(batch.first + place) for place in range(len(batch.texts))]
        self._documents.add(ids=names, documents=batch.texts, embeddings=batch.vectors)

    def finish(self) -> None:
        pass

    def text(self, question: str, k: int = K) -> list[int]:
        found = self._documents.get(where_document=_any_word(question), limit=k, include=[])
        return [int(name) for name in found["ids"]]

    def vector(self, vector: Vector) -> list[int]:
        return self._nearest(vector)

    def hybrid(self, question: Question) -> list[int]:
        return self._nearest(question.vector, where_document=_any_word(question.text))

    def _nearest(self, vector: Vector, **where: Any) -> list[int]:
        found = self._documents.query(
            query_embeddings=[vector], n_results=K, include=["distances"], **where
        )
        return [int(name) for name in found["ids"][0]]

    def past(self, question: Question) -> list[int] | None:
        return None

    def delete(self, number: int) -> None:
        self._documents.delete(ids=[str(number)])

    def close(self) -> None:
        self._documents = self._client = None


def _any_word(question: str) -> dict[str, Any]:
    tests = [{"$contains": word} for word in question.split()]
    return tests[0] if len(tests) == 1 else {"$or": tests}
