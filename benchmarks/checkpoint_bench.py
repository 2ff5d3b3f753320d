"""The cost of checkpoints: bytes written by each, size of the TOC, times of each projection.

    python benchmarks/checkpoint_bench.py           # 100,000 documents, and 1,000,000 frames
    python benchmarks/checkpoint_bench.py --tiny    # 3,000 and 20,000, for continuous integration

A document is 40 words from a vocabulary of 20,000. Documents are put into a file in batches of 100
through the store, with automatic checkpoints. Sizes are those of the file, read with `stat`; times
of projections are processor time and include reading the log.
"""

import argparse
import platform
import random
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import cerata
from cerata.engine.events import PutFrame
from cerata.engine.open import open_log
from cerata.memory.store import Store
from cerata.projections.core.projection import FoldedEvent, Projection
from cerata.projections.registry import Registry, projection_key
from cerata.replay.checkpoint import chunk_refs
from cerata.replay.fold import Fold, replay

SEED = 20_240_607
WORDS = 40
BATCH = 100


def put_documents(store: Store, count: int, source: random.Random) -> None:
    """Put documents in batches of 100."""
    words = [f"{stem}{n}" for n in range(2_500) for stem in "abcdefgh"]
    for start in range(0, count, BATCH):
        size = min(BATCH, count - start)
        store.put_frames([" ".join(source.choices(words, k=WORDS)) for _ in range(size)])


@dataclass(frozen=True, slots=True)
class CheckpointCost:
    """Bytes of a file with documents, and bytes that a checkpoint adds after 100 more documents."""

    documents: int
    file_size: int
    written_bytes: tuple[int, ...]

    @property
    def shares(self) -> list[float]:
        """The share of the file that each checkpoint wrote, ascending."""
        return sorted(written / self.file_size for written in self.written_bytes)


def checkpoint_cost(path: Path, documents: int, checkpoints: int) -> CheckpointCost:
    """Put documents and save; then repeatedly put 100 more and save.

    Automatic checkpoints are off in these rounds, so that only explicit checkpoints write.
    """
    source = random.Random(SEED)
    written: list[int] = []
    with cerata.open(path) as store:
        put_documents(store, documents, source)
        store.checkpoint()
        file_size = path.stat().st_size
        with mock.patch.object(Fold, "save_gradually", return_value=False):
            for _ in range(checkpoints):
                put_documents(store, BATCH, source)
                with open_log(str(path)) as log:
                    log.seal()
                sealed = path.stat().st_size
                store.checkpoint()
                written.append(path.stat().st_size - sealed)
    return CheckpointCost(documents, file_size, tuple(written))


class FirstWords(cerata.RowProjection[str, int]):
    """The number of documents that start with each word: a custom projection of many rows."""

    name = "first-words"
    handles = (PutFrame,)

    def apply(self, events: Sequence[FoldedEvent]) -> None:
        for event in events:
            body = event.body
            if isinstance(body, PutFrame) and body.text:
                word = body.text.split()[0]
                self.rows[word] = self.rows.get(word, 0) + 1


def costs(path: Path) -> Iterator[str]:
    """Yield the cost of each projection of a file: fold, size, restore, and a read of the past."""
    registry = Registry([FirstWords])
    with open_log(str(path)) as log:
        restored = Fold(log, registry)
        restored.save()
        head = log.head.seq
        for name in registry.names:
            started = time.process_time()
            replay(log, registry=registry).using(name, None, _key_and_size)
            folded = time.process_time()
            restored = Fold(log, registry)
            key, size_bytes = restored.using(name, None, _key_and_size)
            loaded = time.process_time()
            saved = log.toc().saved(key)
            stored = sum(ref.length for ref, _ in chunk_refs(log.file, saved))
            yield (
                f"{name:<12} fold {1e6 * (folded - started) / head:5.1f} us an event, "
                f"restore {1e3 * (loaded - folded):6.1f} ms, in the file {stored / 1e6:6.2f} MB"
                + (f", in memory {size_bytes / 1e6:6.2f} MB" if size_bytes is not None else "")
            )
        started = time.process_time()
        restored.own(FirstWords.name, head // 2)
        yield f"{'':<12} as of the middle {1e3 * (time.process_time() - started):.0f} ms"


def _key_and_size(projection: Projection) -> tuple[str, int | None]:
    return projection_key(projection), getattr(projection, "size_bytes", None)


def toc_size(path: Path, frames: int, checkpoints: int) -> tuple[int, int]:
    """Return the bytes of the TOC, and of the file, after so many frames and checkpoints."""
    with cerata.open(path, options=cerata.OpenOptions(sync=1 << 30)) as store:
        each = frames // checkpoints
        for number in range(checkpoints):
            for start in range(0, each, 5_000):
                size = min(5_000, each - start)
                store.put_frames([f"note {number}"] * size)
            store.checkpoint()
    with open_log(str(path), mode="r") as log:
        return len(log.toc().encode()), path.stat().st_size


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--tiny", action="store_true", help="a few documents")
    tiny = parser.parse_args().tiny
    documents, frames = (3_000, 20_000) if tiny else (100_000, 1_000_000)
    say = sys.stdout.write
    say(f"{platform.platform()}, Python {platform.python_version()}, seed {SEED}\n")
    with tempfile.TemporaryDirectory() as folder:
        started = time.monotonic()
        cost = checkpoint_cost(Path(folder) / "documents.cera", documents, 10 if tiny else 400)
        elapsed = time.monotonic() - started
        shares = cost.shares
        say(
            f"{documents:,} documents: {cost.file_size / 1e6:,.1f} MB, {elapsed:.1f} s in all\n"
            f"a checkpoint after 100 more writes "
            f"median {shares[len(shares) // 2]:.2%} of the file, "
            f"mean {sum(shares) / len(shares):.2%}, "
            f"largest {shares[-1]:.2%} ({len(shares)} of them)\n"
        )
        for line in costs(Path(folder) / "documents.cera"):
            say(f"{line}\n")
        started = time.monotonic()
        size, file_size = toc_size(Path(folder) / "frames.cera", frames, 200)
        elapsed = time.monotonic() - started
        say(
            f"{frames:,} frames and 200 checkpoints: TOC {size:,} bytes, "
            f"file {file_size / 1e6:,.1f} MB, {elapsed:.1f} s\n"
        )


if __name__ == "__main__":
    main()
