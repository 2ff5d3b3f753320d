"""The bytes of a file by part, over the raw bytes of texts and vectors. A line per figure.

    python -m benchmarks.size_bench                     # 10,000 and 100,000 documents of 40 words
    python -m benchmarks.size_bench --documents N       # one number; --tiny is 2,000
    python -m benchmarks.size_bench --dtype i1          # int8 vectors only; f4 float32 only

Documents have 40 Zipf words and 384 random numbers, in durable batches of 100; the file is closed
after the last batch. *Raw* is the UTF-8 of the texts and the vectors as float32. *Written* are the
bytes of all writes of the process until the file is closed, over the bytes of the file.
"""

import argparse
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

import cerata
from cerata.engine.events import PutFrame
from cerata.engine.format.extent import extent_size
from cerata.engine.format.toc import Ref, Toc
from cerata.engine.integrity import SALT_SIZE
from cerata.engine.log import Log
from cerata.engine.log_file.file import LogFile
from cerata.engine.open import open_log
from cerata.engine.segments.segment_reader import Segment
from cerata.replay.checkpoint import chunk_refs
from cerata.retrieval.embedders.quantization import quantised

from .beside_sqlite import report, report_machine
from .fulltext_bench import corpus

Dtype = Literal["f4", "i1"]
Matrix = npt.NDArray[np.float32]

DIMENSION: Final = 384
BATCH: Final = 100
SEED: Final = 20_240_613
_IO: Final = Path("/proc/self/io")


def documents(count: int) -> tuple[list[str], Matrix]:
    """Return texts of 40 Zipf words, and as many vectors of random directions."""
    events, _ = corpus(count)
    texts = [event.body.text or "" for event in events if isinstance(event.body, PutFrame)]
    rows = np.random.default_rng(SEED).standard_normal((count, DIMENSION), np.float32)
    matrix: Matrix = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return texts, matrix


def written(path: Path, texts: Sequence[str], vectors: Matrix, dtype: Dtype) -> int:
    """Put all documents in durable batches and close; return the bytes written, 0 if unknown."""
    rows = quantised(vectors) if dtype == "i1" else vectors
    before = _bytes_written()
    with cerata.open(path) as store:
        for start in range(0, len(texts), BATCH):
            end = start + BATCH
            store.put_frames(
                texts[start:end], vectors=cerata.Vectors(dense=rows[start:end], space="bench")
            )
    return _bytes_written() - before


def _bytes_written() -> int:
    """Return the bytes that this process has passed to write calls."""
    if not _IO.exists():
        return 0
    fields = dict(line.split(": ") for line in _IO.read_text("ascii").splitlines())
    return int(fields["wchar"])


def parts(path: Path) -> dict[str, int]:
    """Return the bytes of a file by part; they add up to its size."""
    with open_log(str(path), mode="r") as log:
        counts: Counter[str] = Counter()
        page = log.page
        toc = log.toc()
        counts["ring and header pages"] = page.fixed_size
        counts["TOC"] = page.data_end - page.toc_offset
        _count_segments(log, counts)
        _count_projections(log.file, toc, counts)
        for ref in toc.keys:
            counts["keys"] += extent_size(ref.length)
        size = log.file.file.size()
    counts["dead: earlier TOCs and checkpoints"] = size - sum(counts.values())
    return dict(counts)


def _count_segments(log: Log, counts: Counter[str]) -> None:
    for level in log.toc().segments.levels[1:]:
        for ref in level:
            counts["manifests"] += extent_size(ref.length)
    for ref in log.reader.segment_refs(log.snapshot):
        segment = log.file.segment(ref.offset, ref.length)
        _count_segment(segment, ref.length, counts)
        for row in segment.index.batches:
            if row.spill is not None:
                spill = log.file.segment(row.spill.offset, row.spill.length)
                _count_segment(spill, row.spill.length, counts)


def _count_segment(segment: Segment, length: int, counts: Counter[str]) -> None:
    index = segment.index
    columns = sum(column.row_size * column.count for column in index.columns)
    blocks = sum(row.stored_size for row in index.blocks)
    sizes = np.frombuffer(index.attachment_sizes, "<u8")
    salts = SALT_SIZE * sum(
        row.count for row in index.batches if row.spill is None and row.seed is None
    )
    counts["vectors"] += columns
    counts["other attachments"] += int(sizes.sum()) - columns
    counts["payload blocks"] += blocks
    counts["salts"] += salts
    rest = extent_size(length) - int(sizes.sum()) - blocks - salts
    counts["segment indexes, padding, checks"] += rest


def _count_projections(log_file: LogFile, toc: Toc, counts: Counter[str]) -> None:
    shared: set[Ref] = set()
    for key in toc.projections:
        saved = toc.saved(key)
        shared.update(saved.extents())
        name = key.partition("/")[0]
        for ref, _ in chunk_refs(log_file, saved):
            counts[f"chunks of {name}"] += extent_size(ref.length)
    for ref in shared:
        counts["manifests and ledgers of projections"] += extent_size(ref.length)


def lines(
    counts: Mapping[str, int], count: int, raw: int, written_bytes: int
) -> Iterator[tuple[str, str]]:
    """Yield the figures of a file, the largest part first."""
    size = sum(counts.values())
    yield "file over raw texts and vectors", f"{size / raw:.4f}"
    if written_bytes:
        yield "bytes written over bytes of the file", f"{written_bytes / size:.3f}"
    yield "bytes a document", f"{size / count:,.1f} of {raw / count:,.1f} raw"
    for name, part in sorted(counts.items(), key=lambda item: -item[1]):
        yield f"  {name}", f"{part / count:,.1f}"


def run(counts: Sequence[int], dtypes: Sequence[Dtype]) -> None:
    report_machine()
    for count in counts:
        texts, vectors = documents(count)
        raw = sum(len(text.encode()) for text in texts) + vectors.nbytes
        for dtype in dtypes:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "a.cera"
                total = written(path, texts, vectors, dtype)
                report(f"documents, dtype of {DIMENSION} numbers", f"{count:,}, {dtype}")
                for label, figure in lines(parts(path), count, raw, total):
                    report(label, figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--tiny", action="store_true", help="2,000 documents")
    parser.add_argument("--documents", type=int, action="append")
    parser.add_argument("--dtype", choices=["f4", "i1"], action="append")
    options = parser.parse_args()
    counts = [2_000] if options.tiny else options.documents or [10_000, 100_000]
    run(counts, options.dtype or ["f4", "i1"])


if __name__ == "__main__":
    main()
