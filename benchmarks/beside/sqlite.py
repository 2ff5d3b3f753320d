"""SQLite as a peer: FTS5 for words, sqlite-vec for vectors, fused by reciprocal ranks.

Owns the tables, also for ``benchmarks/``; leaves out the comparison (`systems`).
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from cerata.engine.late import loading

from .documents import DIMENSION, Batch, K, Matrix, Question, Vector

DURABLE: Final = "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA cache_size=-2000000;"
"""The settings with which a transaction is as durable as a batch of Cerata."""

DEPTH: Final = 100
"""Results of words and of vectors that are fused."""

RANK_CONSTANT: Final = 60
"""From G. Cormack et al., Reciprocal Rank Fusion, SIGIR 2009."""

_BY_WORDS: Final = "SELECT rowid FROM words WHERE words MATCH ? ORDER BY rank LIMIT ?"
_BY_VECTOR: Final = "SELECT rowid FROM nearest WHERE vector MATCH ? AND k = ?"


class Tables:
    """Texts and vectors in SQLite, as durable as a memory; rows are numbered by the caller."""

    def __init__(self, path: str) -> None:
        # The sqlite3 module of the interpreter may lack support for extensions.
        with loading("apsw"):
            import apsw
            import sqlite_vec  # pyright: ignore[reportMissingTypeStubs]

        self._database: Any = apsw.Connection(path)
        self._database.enable_load_extension(True)
        self._database.load_extension(sqlite_vec.loadable_path())
        self._database.execute(DURABLE)

    def create(self) -> None:
        """Create the tables; an existing table stays."""
        self._database.execute(
            f"""
            CREATE TABLE IF NOT EXISTS document (id INTEGER PRIMARY KEY, text TEXT);
            CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5(text, tokenize='porter',
                content='document', content_rowid='id');
            CREATE VIRTUAL TABLE IF NOT EXISTS nearest USING vec0(vector float[{DIMENSION}]
                distance_metric=cosine);
            """
        )

    def add(self, first: int, texts: Sequence[str], vectors: Matrix | None) -> None:
        """Write rows as one transaction; ``first`` is the number of the first row."""
        rows = list(enumerate(texts, start=first))
        with self._database:
            self._database.executemany("INSERT INTO document VALUES (?, ?)", rows)
            self._database.executemany("INSERT INTO words (rowid, text) VALUES (?, ?)", rows)
            if vectors is None:
                return
            self._database.executemany(
                "INSERT INTO nearest (rowid, vector) VALUES (?, ?)",
                ((first + place, vector.tobytes()) for place, vector in enumerate(vectors)),
            )

    def by_words(self, question: str, k: int) -> list[int]:
        """Return the best rows that contain any word."""
        return self._rows(_BY_WORDS, " OR ".join(question.split()), k)

    def by_vector(self, vector: Vector, k: int) -> list[int]:
        """Return the nearest rows, nearest first."""
        return self._rows(_BY_VECTOR, vector.tobytes(), k)

    def _rows(self, query: str, value: str | bytes, k: int) -> list[int]:
        return [row for (row,) in self._database.execute(query, (value, k))]

    def search(self, question: str, vector: Vector) -> list[tuple[int, float]]:
        """Return the best by words and vectors, fused by their ranks."""
        scores: dict[int, float] = {}
        for rows in (self.by_words(question, DEPTH), self.by_vector(vector, DEPTH)):
            for rank, row in enumerate(rows, start=1):
                scores[row] = scores.get(row, 0) + 1 / (RANK_CONSTANT + rank)
        return sorted(scores.items(), key=lambda item: (-item[1], item[0]))[:K]

    def delete(self, row: int) -> None:
        """Delete a row from all tables, as one transaction."""
        with self._database:
            # An index of another table's content needs the old text.
            self._database.execute(
                "INSERT INTO words (words, rowid, text)"
                " SELECT 'delete', id, text FROM document WHERE id = ?",
                (row,),
            )
            self._database.execute("DELETE FROM document WHERE id = ?", (row,))
            self._database.execute("DELETE FROM nearest WHERE rowid = ?", (row,))

    def close(self) -> None:
        self._database.close()


class SQLite:
    """The tables as a system of `python -m benchmarks`."""

    def __init__(self, folder: Path) -> None:
        self._tables = Tables(str(folder / "bench.sqlite"))
        self._tables.create()

    def add(self, batch: Batch) -> None:
        self._tables.add(batch.first, batch.texts, batch.vectors)

    def finish(self) -> None:
        pass

    def text(self, question: str, k: int = K) -> list[int]:
        return self._tables.by_words(question, k)

    def vector(self, vector: Vector) -> list[int]:
        return self._tables.by_vector(vector, K)

    def hybrid(self, question: Question) -> list[int]:
        return [row for row, _ in self._tables.search(question.text, question.vector)]

    def past(self, question: Question) -> list[int] | None:
        return None

    def delete(self, number: int) -> None:
        self._tables.delete(number)

    def close(self) -> None:
        self._tables.close()
