"""LanceDB as a peer: a table with a text index, fused by reciprocal ranks."""

import importlib
from pathlib import Path
from typing import Any, Final

from .documents import Batch, K, Question, Vector

_TABLE: Final = "documents"


class LanceDB:
    """A table of LanceDB; each batch is a version of the table."""

    def __init__(self, folder: Path) -> None:
        self._database: Any = importlib.import_module("lancedb").connect(str(folder / "lance"))
        self._table: Any = None
        self._past: Any = None
        self._half = 0
        if (folder / "lance" / f"{_TABLE}.lance").exists():
            self._table = self._database.open_table(_TABLE)

    def add(self, batch: Batch) -> None:
        rows = [
            {"number": number, "text": text, "vector": vector}
            for number, (text, vector) in enumerate(
                zip(batch.texts, batch.vectors, strict=True), start=batch.first
            )
        ]
        if self._table is None:
            self._table = self._database.create_table(_TABLE, rows)
        else:
            self._table.add(rows)

    def finish(self) -> None:
        self._table.create_fts_index("text", stem=True)

    def text(self, question: str, k: int = K) -> list[int]:
        return _numbers(self._table.search(question, query_type="fts"), k)

    def vector(self, vector: Vector) -> list[int]:
        return _numbers(self._table.search(vector).distance_type("cosine"), K)

    def hybrid(self, question: Question) -> list[int]:
        search = self._table.search(query_type="hybrid").vector(question.vector)
        return _numbers(search.text(question.text).distance_type("cosine"), K)

    def past(self, question: Question) -> list[int] | None:
        # Versions before the text index have no words to search.
        return None

    def delete(self, number: int) -> None:
        self._table.delete(f"number = {number}")

    def close(self) -> None:
        self._table = None


def _numbers(search: Any, k: int) -> list[int]:
    return [int(row["number"]) for row in search.limit(k).to_list()]
