"""Full text and frames: fold, ask, ask as of the past, load. Prints one line a figure.

    python benchmarks/fulltext_bench.py            # 100,000 documents of 40 words
    python benchmarks/fulltext_bench.py --tiny     # 2,000, for continuous integration

Words are drawn from a Zipf distribution over a made-up vocabulary, so common words are in a third
of all documents and most words in few, as in prose. Events are made before the clock starts.
"""

import argparse
import gc
import hashlib
import platform
import random
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import accumulate

import numpy as np

from cerata.engine.events import DEFAULT_SCOPE, DeleteFrame, EventBody, PutFrame, Scope
from cerata.projections.english import english
from cerata.projections.frames import FramesProjection
from cerata.projections.fulltext import FulltextProjection

WORDS_A_DOCUMENT = 40
SEED = 20_240_607


@dataclass(frozen=True, slots=True)
class Folded:
    """An event as a projection sees it, decoded."""

    seq: int
    type: str
    recorded: int
    scope: Scope
    body: EventBody


def vocabulary(size: int, random_source: random.Random) -> list[str]:
    """Return distinct made-up words of one to three syllables and an English ending."""
    syllables = [a + b + c for a in "bcdfghklmnprstvz" for b in "aeiou" for c in "lmnrst"]
    endings = ("", "s", "ing", "ed", "er", "ation", "ly", "ness", "al", "ment", "y", "e", "able")
    found: dict[str, None] = {}
    while len(found) < size:
        stem = "".join(random_source.choices(syllables, k=random_source.choice((1, 2, 2, 3))))
        found[stem + random_source.choice(endings)] = None
    return list(found)


def corpus(documents: int) -> tuple[list[Folded], list[str]]:
    """Return events, one put a document and a delete every fiftieth, and the vocabulary."""
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
    """Return the seconds of processor time that a call takes: one thread, no waiting.

    Other work on the machine then slows it by its caches alone.
    """
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


def report(what: str, figure: str) -> None:
    print(f"{what:<44}{figure}")


def run(documents: int, queries: int, batch: int) -> None:
    events, words = corpus(documents)
    english()
    report(
        "machine",
        f"{platform.machine()}, Python {platform.python_version()}, numpy {np.__version__}",
    )
    report("documents, words each, events a batch", f"{documents:,}, {WORDS_A_DOCUMENT}, {batch}")

    frames, fulltext = FramesProjection(), FulltextProjection()
    batches = [events[i : i + batch] for i in range(0, len(events), batch)]
    frames_time = timed(lambda: deque(map(frames.apply, batches), maxlen=0))
    text_time = timed(lambda: deque(map(fulltext.apply, batches), maxlen=0))
    both = frames_time + text_time
    report("fold frames", f"{documents / frames_time:,.0f} documents/s of processor time")
    report("fold fulltext", f"{documents / text_time:,.0f} documents/s of processor time")
    report("fold both", f"{documents / both:,.0f} documents/s of processor time")
    memory = (frames.size_bytes + fulltext.size_bytes) / documents * 100_000 / 1e6
    report("columns in memory", f"{memory:.1f} MB per 100,000 documents")

    digest_time = timed(lambda: (frames.digest(), fulltext.digest()))
    report("digests after the fold", f"{digest_time * 1e3:.2f} ms")
    chunks: list[bytes] = []
    chunk_time = timed(lambda: chunks.extend((frames.chunk(0), fulltext.chunk(0))))
    report(
        "chunks of everything", f"{chunk_time * 1e3:.1f} ms, {sum(map(len, chunks)) / 1e6:.1f} MB"
    )

    source = random.Random(SEED + 1)
    weights = list(accumulate(1 / (rank + 10) for rank in range(len(words))))
    questions = [" ".join(source.choices(words, cum_weights=weights, k=4)) for _ in range(queries)]
    result = hashlib.blake2b(digest_size=8)
    medians: dict[str, float] = {}
    for name, n in (("live", len(events)), ("as of half", len(events) // 2)):
        view = fulltext.snapshot().view(frames.snapshot().alive(n))
        times: list[float] = []
        for question in ["warm up", *questions]:
            start = time.process_time()
            ranking = view.search(question)
            times.append(time.process_time() - start)
            result.update(ranking.rows.tobytes() + ranking.scores.tobytes())
        medians[name] = sorted(times[1:])[queries // 2]
        report(f"4 words, best 10, {name}", percentiles(times[1:]))
    stopped_frames, stopped = FramesProjection(), FulltextProjection()
    stopped_frames.apply(events[: len(events) // 2])
    stopped.apply(events[: len(events) // 2])
    view = stopped.snapshot().view(stopped_frames.snapshot().alive(len(events) // 2))
    times = [timed_call(partial(view.search, question)) for question in questions]
    ratio = medians["as of half"] / sorted(times)[queries // 2]
    report("as of half, against a store that stopped", f"{ratio:.2f}x")

    answers: list[int] = []

    def reopen() -> None:
        loaded_frames, loaded = FramesProjection(), FulltextProjection()
        loaded_frames.load(chunks[0])
        loaded.load(chunks[1])
        again = loaded.snapshot().view(loaded_frames.snapshot().alive(len(events)))
        answers.extend(again.search(questions[0]).rows.tolist())

    report("load chunks to the first answer", f"{timed(reopen) * 1e3:.1f} ms")
    report("hash of all answers", result.hexdigest())


def timed_call(work: Callable[[], object]) -> float:
    """Return the seconds that a call takes, without a garbage collection before."""
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
