"""MiniLM on this machine: texts a second, and what a store makes of them.

``python -m benchmarks.embed_bench`` (``--tiny`` in CI; needs the extra ``minilm``). It embeds texts
of about 20 and of 256 tokens, 32 at a time, on one thread and on as many as there are processors,
and one question at a time. Then a store with the embedder takes the short texts, and takes them
again: the second time each vector comes from the log, and the model is not asked. The ratio of the
two is the last line. Token vectors come of the same run of the model.
"""

import argparse
import hashlib
import os
import statistics
import time
from collections.abc import Callable
from functools import partial
from importlib.metadata import version

import numpy as np

import cerata
from benchmarks.append_bench import machine
from cerata.retrieval.embedders.wordpiece import bert_uncased

SENTENCES = """the harbour bridge opens in May and closes when the wind is high over the water
we chose an index that fits in memory because recall matters more than speed
she keeps her notes on wax tablets and writes them down again in the evening"""


def texts(count: int, words: int, seed: int) -> list[str]:
    """Return texts of so many words, all different."""
    rng = np.random.default_rng(seed)
    known = SENTENCES.split()
    picked: list[list[int]] = rng.integers(0, len(known), (count, words - 1)).tolist()
    return [f"{at} " + " ".join(known[one] for one in row) for at, row in enumerate(picked)]


def seconds_of(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def rate(model: cerata.MiniLMEmbedder, some: list[str]) -> float:
    """Return texts a second, the better of two passes."""
    return len(some) / min(seconds_of(lambda: model.embed(some)) for _ in range(2))


def tokens_of(some: list[str]) -> float:
    tokenizer = bert_uncased()
    return statistics.mean(len(tokenizer.encode(text, 256)) for text in some)


def main(arguments: list[str] | None = None) -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tiny", action="store_true")
    options = parser.parse_args(arguments)
    count = 64 if options.tiny else 2_000
    short, long = texts(count, 18, seed=1), texts(max(8, count // 20), 300, seed=2)
    model = cerata.MiniLMEmbedder()
    print(f"{machine()}, onnxruntime {version('onnxruntime')}")
    loading = seconds_of(lambda: model.embed(["wax"]))
    print(f"{model.identity.space}: the first text, with loading, in {loading:.2f} s")
    digest = hashlib.sha256(model.embed(short).tobytes()).hexdigest()
    cores = os.cpu_count() or 1
    for threads in sorted({1, cores}):
        other = cerata.MiniLMEmbedder(threads=threads)
        other.embed(["wax"])
        same = hashlib.sha256(other.embed(short).tobytes()).hexdigest() == digest
        rates = rate(other, short), rate(other, long)
        print(
            f"threads {threads}: {rates[0]:,.0f} texts/s of {tokens_of(short):.0f} tokens, "
            f"{rates[1]:,.1f} of {tokens_of(long):.0f}; same bits: {same}"
        )
    both = cerata.MiniLMEmbedder(token_dimension=128)
    both.embed(["wax"])
    plain = min(seconds_of(lambda: model.embed(short)) for _ in range(2))
    with_tokens = min(
        seconds_of(lambda: both.embed(short)) + seconds_of(lambda: both.embed_tokens(short))
        for _ in range(2)
    )
    print(
        f"with token vectors: {len(short) / with_tokens:,.0f} texts/s, {with_tokens / plain:.2f}x"
    )
    queries = [seconds_of(partial(model.embed, [text])) for text in short[:50]]
    print(f"one question: median {statistics.median(queries) * 1000:.1f} ms")
    with cerata.open(":memory:", embedder=model) as store:
        first = seconds_of(lambda: store.put_frames(short))
        again = seconds_of(lambda: store.put_frames(short))
        assert store.find_stored(cerata.content_hash(short[-1]), space=model.identity.space)
    print(f"put_frames of {count:,}: {first:.2f} s, and {again:.3f} s from the log's own vectors")
    print(f"vectors {digest[:16]}, ratio {first / again:.0f}")


if __name__ == "__main__":
    main()
