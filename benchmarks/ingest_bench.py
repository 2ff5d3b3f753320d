"""Ingest beside SQLite (FTS5 and sqlite-vec) in one run, batch by batch in turns.

    python -m benchmarks.ingest_bench                  # 10,000 documents of 40 words, 384 numbers
    python -m benchmarks.ingest_bench --documents N    # another number; --tiny is 1,500
    python -m benchmarks.ingest_bench --text-only      # no vectors; the peer is FTS5 alone
    python -m benchmarks.ingest_bench --bare           # Cerata alone, without a peer

Needs the extra ``bench``. Each round writes all documents to a new file of each side, in durable
batches of 100 that alternate; both sides meet the same disk and the same neighbours. A figure is
the median of the rounds, beside the best round. Processor time is that of user and system. The
time of Cerata includes its checkpoints and the close; the figure "result" is a hash of the
digests of full text and vectors, equal in all rounds.
"""

import argparse
import hashlib
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

import cerata
from benchmarks.beside.documents import BATCH
from benchmarks.beside.sqlite import Tables
from cerata.engine.events import PutFrame

from .beside_sqlite import report, report_machine
from .document_stream import DIMENSION, SEED, Matrix
from .fulltext_bench import corpus
from .vectors_bench import anisotropic


class Costs(NamedTuple):
    """The seconds of each batch, and all processor seconds, the close included."""

    batches: list[float]
    wall: float
    cpu: float


class Meter:
    """The clock of one side."""

    def __init__(self) -> None:
        self._batches: list[float] = []
        self._wall = self._cpu = 0.0

    def time(self, work: Callable[[], object], *, is_batch: bool = True) -> None:
        started, begun = time.perf_counter(), time.process_time()
        work()
        elapsed = time.perf_counter() - started
        self._cpu += time.process_time() - begun
        self._wall += elapsed
        if is_batch:
            self._batches.append(elapsed)

    def costs(self) -> Costs:
        return Costs(self._batches, self._wall, self._cpu)


def one_round(
    folder: Path, texts: Sequence[str], vectors: Matrix | None, *, has_peer: bool
) -> tuple[Costs, Costs | None, str]:
    """Write all documents to both sides in turns; return the costs and the hash of the digests."""
    store = cerata.open(folder / "a.cera")
    tables = Tables(str(folder / "peer.sqlite")) if has_peer else None
    if tables is not None:
        tables.create()
    ours, theirs = Meter(), Meter()
    for place, start in enumerate(range(0, len(texts), BATCH)):
        part = texts[start : start + BATCH]
        rows = None if vectors is None else vectors[start : start + BATCH]
        space = None if vectors is None else "bench"

        turns: list[tuple[Meter, Callable[[], object]]] = [
            (ours, partial(store.put_frames, part, vectors=cerata.Vectors(dense=rows, space=space)))
        ]
        if tables is not None:
            turns.append((theirs, partial(tables.add, 1 + start, part, rows)))
        # Each side goes first in every other batch.
        for meter, work in turns if place % 2 else reversed(turns):
            meter.time(work)
    ours.time(store.close, is_batch=False)
    if tables is not None:
        theirs.time(tables.close, is_batch=False)
    with cerata.open(folder / "a.cera", mode="r") as stored:
        digests = stored._fold.digests()  # pyright: ignore[reportPrivateUsage]
    # These two hold neither times nor salts.
    result = hashlib.sha256(digests["fulltext"] + digests["vectors"]).hexdigest()[:16]
    return ours.costs(), None if tables is None else theirs.costs(), result


def report_side(label: str, rounds: Sequence[Costs], count: int) -> None:
    walls = [costs.wall for costs in rounds]
    cpus = [1e6 * costs.cpu / count for costs in rounds]
    batches = [1e3 * seconds for costs in rounds for seconds in costs.batches]
    p50, p99 = np.percentile(batches, [50, 99])
    report(
        label,
        f"{count / statistics.median(walls):9,.0f}/s (best {count / min(walls):,.0f}), cpu "
        f"{statistics.median(cpus):.1f} us a document (best {min(cpus):.1f})",
    )
    report(
        f"{label}: a batch",
        f"p50 {p50:.2f} ms, p99 {p99:.2f} ms, {p99 / p50:.1f}x; worst {max(batches):.1f} ms",
    )


def run(documents: int, rounds: int, *, has_vectors: bool, has_peer: bool) -> None:
    report_machine()
    events, _ = corpus(documents)
    texts = [event.body.text or "" for event in events if isinstance(event.body, PutFrame)]
    source = np.random.default_rng(SEED)
    vectors = anisotropic(documents, source) if has_vectors else None
    report(
        "documents, words, numbers, rounds",
        f"{documents:,}, 40, {DIMENSION if has_vectors else 0}, {rounds}",
    )
    ours: list[Costs] = []
    theirs: list[Costs] = []
    results: set[str] = set()
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as name:
            mine, peer, result = one_round(Path(name), texts, vectors, has_peer=has_peer)
        ours.append(mine)
        results.add(result)
        if peer is not None:
            theirs.append(peer)
    report_side("Cerata", ours, documents)
    if theirs:
        report_side("SQLite", theirs, documents)
        pairs = list(zip(ours, theirs, strict=True))
        wall = sorted(peer.wall / mine.wall for mine, peer in pairs)
        cpu = sorted(peer.cpu / mine.cpu for mine, peer in pairs)
        report(
            "rate beside SQLite, of pairs of rounds",
            f"wall {statistics.median(wall):.2f} ({wall[0]:.2f} to {wall[-1]:.2f}), "
            f"cpu {statistics.median(cpu):.2f} ({cpu[0]:.2f} to {cpu[-1]:.2f})",
        )
    assert len(results) == 1, "equal batches gave other digests"
    report("result", results.pop())


ROUNDS: Final = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--tiny", action="store_true", help="1,500 documents, a round")
    parser.add_argument("--documents", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--text-only", action="store_true", help="no vectors on either side")
    parser.add_argument("--bare", action="store_true", help="no peer")
    options = parser.parse_args()
    run(
        1_500 if options.tiny else options.documents,
        1 if options.tiny else options.rounds,
        has_vectors=not options.text_only,
        has_peer=not options.bare,
    )


if __name__ == "__main__":
    main()
