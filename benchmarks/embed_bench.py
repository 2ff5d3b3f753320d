"""MiniLM and the static embedder on this machine: texts per second, alone and in a store.

``python -m benchmarks.embed_bench`` (``--tiny`` in CI; needs the extra ``minilm``) embeds texts of
about 20 and of 256 tokens, 32 at a time, on one thread and on a thread per processor, and single
questions; the static embedder takes the same texts. Then a store with MiniLM takes the short texts
twice: the second time each vector comes from the log, without the model. The last line has the
ratio of the two. Token vectors come from the same run of the model.
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
from cerata.retrieval.embedders.static import StaticEmbedder
from cerata.retrieval.embedders.wordpiece import bert_uncased

SENTENCES = """the harbour bridge opens in May and closes when the wind is high over the water
we chose an index that fits in memory because recall matters more than speed
she keeps her notes on wax tablets and writes them down again in the evening"""


def texts(count: int, words: int, seed: int) -> list[str]:
    """Return distinct texts of so many words."""
    rng = np.random.default_rng(seed)
    vocabulary = SENTENCES.split()
    picked: list[list[int]] = rng.integers(0, len(vocabulary), (count, words - 1)).tolist()
    return [f"{at} " + " ".join(vocabulary[pick] for pick in row) for at, row in enumerate(picked)]


def seconds_of(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def rate(model: cerata.Embedder, batch: list[str]) -> float:
    """Return texts per second, the better of two passes."""
    return len(batch) / min(seconds_of(lambda: model.embed(batch)) for _ in range(2))


def tokens_of(batch: list[str]) -> float:
    tokenizer = bert_uncased()
    return statistics.mean(len(tokenizer.encode(text, 256)) for text in batch)


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
        threaded = cerata.MiniLMEmbedder(threads=threads)
        threaded.embed(["wax"])
        same = hashlib.sha256(threaded.embed(short).tobytes()).hexdigest() == digest
        rates = rate(threaded, short), rate(threaded, long)
        print(
            f"threads {threads}: {rates[0]:,.0f} texts/s of {tokens_of(short):.0f} tokens, "
            f"{rates[1]:,.1f} of {tokens_of(long):.0f}; same bits: {same}"
        )
    static = StaticEmbedder()
    loading = seconds_of(lambda: static.embed(["wax"]))
    rates = rate(static, short), rate(static, long)
    print(
        f"static: {rates[0]:,.0f} texts/s, {rates[1]:,.0f} of the long; "
        f"the first text, with loading, in {loading * 1000:.0f} ms"
    )
    tokens_too = cerata.MiniLMEmbedder(token_dimension=128)
    tokens_too.embed(["wax"])
    plain = min(seconds_of(lambda: model.embed(short)) for _ in range(2))
    with_tokens = min(
        seconds_of(lambda: tokens_too.embed(short))
        + seconds_of(lambda: tokens_too.embed_tokens(short))
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
        assert store.files.stored(cerata.content_hash(short[-1]), space=model.identity.space)
    print(f"put_frames of {count:,}: {first:.2f} s, and {again:.3f} s with vectors from the log")
    print(f"vectors {digest[:16]}, ratio {first / again:.0f}")


if __name__ == "__main__":
    main()
