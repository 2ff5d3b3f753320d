"""The work of one process of a rebuild: ranges of events folded from the saved state before each.

Owns the messages between the processes. Each process takes the next free range from a pipe of
numbers, so a fast process folds more of them, and a worker writes a `FoldedRange` for each to its
output. A range starts from the saved chunks before it, so its chunks are right if all chunks before
it are right; the caller (`range_workers`) knows that from the comparisons of the earlier ranges.
Writes nothing to the file.

Run as ``python -m cerata.replay.range_worker`` with a `Task` on standard input, or in a fork.
"""

import os
import sys
from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from cerata.engine.errors import CerataError
from cerata.engine.log import Log
from cerata.engine.open import open_log
from cerata.projections.core.projection import Projection, is_idle
from cerata.projections.core.seal import RANGE_SEQS_MAX, Range, StateDamaged

from .checkpoint import chunk_body
from .feed import read_batches
from .fold import Fold

SIZE_BYTES: Final = 8
"""Bytes of the size before a message, little-endian."""

NUMBER_BYTES: Final = 4
"""Bytes of the number of a range in the pipe of free ranges, little-endian."""


class Task(msgspec.Struct, frozen=True):
    """The projections and the ranges of a rebuild.

    The ranges ascend; ``free`` is the descriptor of the pipe with the numbers of the free ranges.
    """

    path: str
    names: tuple[str, ...]
    ranges: tuple[Range, ...]
    free: int


class FoldedChunks(msgspec.Struct, frozen=True):
    """The chunks of a projection in a range.

    ``bodies`` has the stored form of each, empty if the file has it already, None without effects.
    ``equal`` is whether the saved chunks have the same bytes, ``digest`` that at the range's end.
    """

    spans: tuple[Range, ...]
    bodies: tuple[bytes | None, ...]
    digest: bytes
    equal: bool


class FoldedRange(msgspec.Struct, frozen=True):
    """The chunks of each projection in a range of events; ``number`` is that of the range."""

    number: int
    after: int
    through: int
    chunks: dict[str, FoldedChunks]


def free_numbers(free: int) -> Iterator[int]:
    """Yield the numbers of ranges that no other process has taken."""
    while data := os.read(free, NUMBER_BYTES):
        yield int.from_bytes(data, "little")


def folded_range(
    log: Log, fold: Fold, projections: Mapping[str, Projection], number: int, span: Range
) -> FoldedRange:
    """Bring projections to the start of a range by their saved chunks, and fold the range.

    Raises:
        Corrupt: a saved chunk or an event is damaged.
    """
    after, through = span
    for name, projection in projections.items():
        fold.load_saved(name, projection, after)
    for batch in read_batches(log, after + 1, through):
        for projection in projections.values():
            projection.apply(batch)
    chunks: dict[str, FoldedChunks] = {}
    for name, projection in projections.items():
        spans = [(start, start + RANGE_SEQS_MAX) for start in range(after, through, RANGE_SEQS_MAX)]
        saved = fold.saved_chunks(name, after, through)
        bodies: list[bytes | None] = []
        is_equal = True
        for part in spans:
            places = fold.places(projection, part)
            chunk = saved.get(part)
            if chunk is not None and projection.has_chunk(*part, chunk.data):
                if chunk.is_named_rightly and chunk.places == places:
                    bodies.append(b"")
                    continue
                data = projection.chunk(*part)
            else:
                data = projection.chunk(*part)
                is_equal &= chunk is None and part in saved and is_idle(data)
            bodies.append(None if is_idle(data) else chunk_body(data, places))
        digest = projection.digest_at(through)
        chunks[name] = FoldedChunks(tuple(spans), tuple(bodies), digest, is_equal)
    return FoldedRange(number, after, through, chunks)


def fold_free_ranges(task: Task, outlet: int) -> int:
    """Fold free ranges until none is left, and write each to a descriptor; return the exit code."""
    try:
        with open_log(task.path, mode="r") as log:
            fold = Fold(log)
            projections = {name: fold.registry.make(name) for name in task.names}
            for number in free_numbers(task.free):
                folded = folded_range(log, fold, projections, number, task.ranges[number])
                message = msgspec.msgpack.encode(folded)
                _write(outlet, len(message).to_bytes(SIZE_BYTES, "little") + message)
    except (CerataError, StateDamaged, BrokenPipeError):
        # The caller folds the missing ranges itself, and raises the error.
        return 1
    return 0


def _write(outlet: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(outlet, view) :]


def main() -> int:
    """Fold ranges of the task on standard input; return the exit code."""
    task = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=Task)
    return fold_free_ranges(task, sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
