"""Full text beside SQLite FTS5: fold, search, search in the past, and a store. A line per figure.

    python -m benchmarks.fulltext_bench            # 100,000 documents of 40 words
    python -m benchmarks.fulltext_bench --tiny     # 2,000, for continuous integration

Words are drawn from a Zipf distribution over an artificial vocabulary: as in prose, common words
are in a third of all documents and most words in few. Events are built before the clock starts.
"""

import argparse
import gc
import hashlib
import platform
import random
import sqlite3
import tempfile
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from pathlib import Path

import numpy as np

import cerata
from benchmarks.beside.documents import vocabulary
from cerata.engine.events import DEFAULT_SCOPE, DeleteFrame, EventBody, PutFrame, Scope
from cerata.projections.frames.projection import FramesProjection
from cerata.projections.fulltext.bm25 import FulltextView
from cerata.projections.fulltext.english import english
from cerata.projections.fulltext.projection import FulltextProjection
from cerata.projections.fulltext.query import And, Phrase, Prefix, Query, Term, plain

WORDS_A_DOCUMENT = 40
SEED = 20_240_607


@dataclass(frozen=True, slots=True)
class Folded:
    """A decoded event, in the form for projections."""

    seq: int
    type: str
    recorded: int
    scope: Scope
    body: EventBody
    causation: int | None = None


def corpus(documents: int) -> tuple[list[Folded], list[str]]:
    """Return events, a put per document and a delete after every fiftieth, and the vocabulary."""
    source = random.Random(SEED)
    words = vocabulary(min(60_000, documents), source)
    weights = list(accumulate(1 / (rank + 10) for rank in range(len(words))))
    events: list[Folded] = []

    def add(body: EventBody) -> None:
        seq = len(events) + 1
        events.append(Folded(seq, body.wire_name, seq * 1000, DEFAULT_SCOPE, body))

    for number in range(documents):
        chosen = source.choices(words, cum_weights=weights, k=WORDS_A_DOCUMENT)
        content = " ".join(chosen).capitalize() + "."
        add(PutFrame(text=content, content_hash=number.to_bytes(16, "little")))
        if number % 50 == 49:
            add(DeleteFrame(frame=source.randrange(1, len(events))))
    return events, words


def timed(work: Callable[[], object]) -> float:
    """Return the processor seconds of a call; other programs slow the call by cache misses only."""
    gc.collect()
    start = time.process_time()
    work()
    return time.process_time() - start


def percentiles(times: list[float]) -> str:
    """Return p50, p95 and p99 in milliseconds."""
    ordered = sorted(times)
    picks = ((name, ordered[int(len(ordered) * share)]) for name, share in _SHARES)
    return ", ".join(f"{name} {pick * 1e3:.3f} ms" for name, pick in picks)


_SHARES = (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))


def report(label: str, figure: str) -> None:
    print(f"{label:<44}{figure}")


def questions_of(words: list[str], count: int) -> list[str]:
    """Return questions of four words, with the distribution of the documents."""
    source = random.Random(SEED + 1)
    weights = list(accumulate(1 / (rank + 10) for rank in range(len(words))))
    return [" ".join(source.choices(words, cum_weights=weights, k=4)) for _ in range(count)]


def run(documents: int, queries: int, batch: int) -> None:
    events, words = corpus(documents)
    questions = questions_of(words, queries)
    english()
    report(
        "machine",
        f"{platform.machine()}, Python {platform.python_version()}, numpy {np.__version__}, "
        f"SQLite {sqlite3.sqlite_version}",
    )
    report("documents, words each, events a batch", f"{documents:,}, {WORDS_A_DOCUMENT}, {batch}")
    frames, fulltext = folding(events, documents, batch)
    live = searching(frames, fulltext, events, questions)
    going_back(frames, fulltext, events, questions)
    peer(events, questions, live)
    in_a_store(events, questions, batch)


def folding(
    events: list[Folded], documents: int, batch: int
) -> tuple[FramesProjection, FulltextProjection]:
    """Fold everything; report rates, memory, digests and chunks."""
    frames, fulltext = FramesProjection(), FulltextProjection()
    batches = [events[i : i + batch] for i in range(0, len(events), batch)]
    frames_time = timed(lambda: deque(map(frames.apply, batches), maxlen=0))
    text_time = timed(lambda: deque(map(fulltext.apply, batches), maxlen=0))
    sum_of_times = frames_time + text_time
    report("fold frames", f"{documents / frames_time:,.0f} documents/s of processor time")
    report("fold fulltext", f"{documents / text_time:,.0f} documents/s of processor time")
    report("fold both", f"{documents / sum_of_times:,.0f} documents/s of processor time")
    digest_time = timed(lambda: (frames.digest(), fulltext.digest()))
    report("digests after the fold", f"{digest_time * 1e3:.2f} ms")
    return frames, fulltext


def searching(
    frames: FramesProjection,
    fulltext: FulltextProjection,
    events: list[Folded],
    questions: list[str],
) -> list[float]:
    """Report searches of the head, the cost of deletes, and other forms of query."""
    alive = frames.snapshot().alive(len(events))
    view = fulltext.snapshot().view(alive)
    result = hashlib.blake2b(digest_size=8)
    view.search("warm up")
    times: list[float] = []
    for question in questions:
        start = time.process_time()
        ranking = view.search(question)
        times.append(time.process_time() - start)
        result.update(ranking.rows.tobytes() + ranking.scores.tobytes())
    report("4 words, best 10, live", percentiles(times))
    whole = fulltext.snapshot().view(np.ones(len(alive), np.bool_))
    cost = side_by_side(view, whole, questions)
    report("one document in fifty deleted, against none", f"{cost:.2f}x")
    shapes: dict[str, Callable[[str], Query]] = {
        "two words, both": lambda text: And(tuple(map(Term, text.split()[:2]))),
        "phrase of two words": lambda text: Phrase(" ".join(text.split()[:2])),
        "prefix of three letters": lambda text: Prefix(text[:3]),
        "quoted word and three more": lambda text: plain('"{}" {}'.format(*text.split(" ", 1))),
    }
    for name, make in shapes.items():
        queries = [make(question) for question in questions[: max(len(questions) // 5, 10)]]
        report(name, percentiles([timed_call(partial(view.search, query)) for query in queries]))
    memory = fulltext.size_bytes / len(alive) * 100_000 / 1e6
    report("full text in memory", f"{memory:.1f} MB per 100,000 documents")
    memory = frames.size_bytes / len(alive) * 100_000 / 1e6
    report("frames in memory", f"{memory:.1f} MB per 100,000 documents")
    report("hash of all answers", result.hexdigest())
    return times


def side_by_side(view: FulltextView, base: FulltextView, questions: list[str]) -> float:
    """Return the median search time of ``view`` over that of ``base``.

    Each question runs on both in turn, so that other programs slow both. The order alternates,
    since the second search finds the postings in the processor's cache.
    """
    times: tuple[list[float], list[float]] = ([], [])
    for number, question in enumerate(questions):
        pair = [(times[0], view), (times[1], base)]
        for taken, searched in pair if number % 2 else reversed(pair):
            taken.append(timed_call(partial(searched.search, question)))
    middle = len(questions) // 2
    return sorted(times[0])[middle] / sorted(times[1])[middle]


def going_back(
    frames: FramesProjection,
    fulltext: FulltextProjection,
    events: list[Folded],
    questions: list[str],
) -> None:
    """Report searches of the past, over searches of a fold that stopped there."""
    table, index = frames.snapshot(), fulltext.snapshot()
    stopped_frames, stopped = FramesProjection(), FulltextProjection()
    for percent in (1, 10, 25, 50, 75, 99):
        n = len(events) * percent // 100
        stopped_frames.apply(events[stopped_frames.seq : n])
        stopped.apply(events[stopped.seq : n])
        past = index.view(table.alive(n))
        then = stopped.snapshot().view(stopped_frames.snapshot().alive(n))
        ratio = side_by_side(past, then, questions)
        report(f"as of {percent} %, against a store that stopped", f"{ratio:.2f}x")


def peer(events: list[Folded], questions: list[str], ours: list[float]) -> None:
    """Report SQLite's FTS5 on the same documents and questions, in memory, with Porter stems."""
    database = sqlite3.connect(":memory:")
    database.execute("CREATE VIRTUAL TABLE found USING fts5(text, tokenize='porter unicode61')")
    rows = [(event.seq, event.body.text) for event in events if isinstance(event.body, PutFrame)]
    deleted = [(event.body.frame,) for event in events if isinstance(event.body, DeleteFrame)]
    database.executemany("INSERT INTO found(rowid, text) VALUES (?, ?)", rows)
    database.executemany("DELETE FROM found WHERE rowid = ?", deleted)
    database.commit()
    ask = "SELECT rowid FROM found WHERE found MATCH ? ORDER BY rank LIMIT 10"

    def search(question: str) -> None:
        database.execute(ask, (" OR ".join(f'"{word}"' for word in question.split()),)).fetchall()

    sample = questions[: max(len(questions) // 5, 10)]
    times = [timed_call(partial(search, question)) for question in sample]
    report("FTS5, the same questions", percentiles(times))
    ratio = sorted(times)[len(times) // 2] / sorted(ours)[len(ours) // 2]
    report("FTS5's median, against ours", f"{ratio:.0f}x")
    database.close()


def in_a_store(events: list[Folded], questions: list[str], batch: int) -> None:
    """Report ingest through a store on disk with the fold, and the time to the first answer."""
    texts = [event.body.text or "" for event in events if isinstance(event.body, PutFrame)]
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "bench.cera")
        gc.collect()
        used, started = time.process_time(), time.perf_counter()
        with cerata.open(path) as store:
            for start in range(0, len(texts), batch):
                store.put_frames(texts[start : start + batch])
            store.search(questions[0])
            used, taken = time.process_time() - used, time.perf_counter() - started
            store.checkpoint()
        report("put_frames and fold, to the first answer", f"{len(texts) / taken:,.0f} documents/s")
        report("the same, by processor time", f"{len(texts) / used:,.0f} documents/s")
        report("FTS5 file, the same batches", f"{fts5_rate(texts, batch, folder):,.0f} documents/s")
        opened: list[float] = []
        for question in questions[:5]:
            gc.collect()
            started = time.perf_counter()
            with cerata.open(path, mode="r") as store:
                store.search(question)
                opened.append(time.perf_counter() - started)
        report("reopen to the first answer", f"{min(opened) * 1e3:.1f} ms, best of 5")


def fts5_rate(texts: list[str], batch: int, folder: str) -> float:
    """Return the documents per second that FTS5 writes to a file, a transaction per batch."""
    database = sqlite3.connect(Path(folder) / "bench.sqlite")
    database.execute("PRAGMA journal_mode=WAL")
    database.execute("PRAGMA synchronous=FULL")
    database.execute("CREATE VIRTUAL TABLE found USING fts5(text, tokenize='porter unicode61')")
    started = time.perf_counter()
    for start in range(0, len(texts), batch):
        rows = [(text,) for text in texts[start : start + batch]]
        database.executemany("INSERT INTO found(text) VALUES (?)", rows)
        database.commit()
    rate = len(texts) / (time.perf_counter() - started)
    database.close()
    return rate


def timed_call(work: Callable[[], object]) -> float:
    """Return the processor seconds of a call, without a garbage collection before."""
    start = time.process_time()
    work()
    return time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--tiny", action="store_true", help="2,000 documents")
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--queries", type=int, default=1_000)
    parser.add_argument("--batch", type=int, default=100)
    options = parser.parse_args()
    if options.tiny:
        options.documents, options.queries = 2_000, 50
    run(options.documents, options.queries, options.batch)


if __name__ == "__main__":
    main()
