"""The work of one process of a rebuild: ranges of events folded from the saved state before each.

Owns the messages between the processes: a `Task` on standard input, a `FoldedRange` for each range
on standard output, and a permit of one byte for each range after the first two. A range starts from
the saved chunks before it, so its chunks are right if all chunks before it are right; the caller
(`range_workers`) knows that from the comparisons of the earlier ranges. Writes nothing to the file.

Run as ``python -m cerata.replay.range_worker``.
"""

import sys
from collections.abc import Mapping
from typing import Final

import msgspec

from cerata.engine.errors import CerataError
from cerata.engine.log import Log
from cerata.engine.open import open_log
from cerata.projections.core.projection import Projection
from cerata.projections.core.ranges import RANGE_SEQS_MAX, Range
from cerata.projections.core.seal import StateDamaged

from .checkpoint import chunk_body
from .feed import read_batches
from .fold import Fold

AHEAD: Final = 2
"""Ranges that a worker folds before the caller has taken the first: they wait in memory."""

SIZE_BYTES: Final = 8
"""Bytes of the size before a message, little-endian."""


class Task(msgspec.Struct, frozen=True):
    """The projections and ranges of one worker; the ranges ascend."""

    path: str
    names: tuple[str, ...]
    ranges: tuple[Range, ...]


class FoldedChunks(msgspec.Struct, frozen=True):
    """The chunks of a projection in a range, as they are stored.

    ``equal`` is whether the saved chunks have the same bytes; ``digest`` is that at the range's
    end.
    """

    spans: tuple[Range, ...]
    bodies: tuple[bytes, ...]
    digest: bytes
    equal: bool


class FoldedRange(msgspec.Struct, frozen=True):
    """The chunks of each projection in a range of events."""

    after: int
    through: int
    chunks: dict[str, FoldedChunks]


def folded_range(
    log: Log, fold: Fold, projections: Mapping[str, Projection], span: Range
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
        saved = fold.saved_chunks(name, after, through)
        spans = [(start, start + RANGE_SEQS_MAX) for start in range(after, through, RANGE_SEQS_MAX)]
        datas = [projection.chunk(*part) for part in spans]
        chunks[name] = FoldedChunks(
            tuple(spans),
            tuple(
                chunk_body(data, fold.places(projection, part))
                for part, data in zip(spans, datas, strict=True)
            ),
            projection.digest_at(through),
            all(saved.get(part) == data for part, data in zip(spans, datas, strict=True)),
        )
    return FoldedRange(after, through, chunks)


def main() -> int:
    """Fold the ranges of the task on standard input; return the exit code."""
    inlet = sys.stdin.buffer
    outlet = sys.stdout.buffer
    size = int.from_bytes(inlet.read(SIZE_BYTES), "little")
    task = msgspec.msgpack.decode(inlet.read(size), type=Task)
    try:
        with open_log(task.path, mode="r") as log:
            fold = Fold(log)
            projections = {name: fold.registry.make(name) for name in task.names}
            for number, span in enumerate(task.ranges):
                if number >= AHEAD and not inlet.read(1):
                    break
                message = msgspec.msgpack.encode(folded_range(log, fold, projections, span))
                outlet.write(len(message).to_bytes(SIZE_BYTES, "little") + message)
                outlet.flush()
    except (CerataError, StateDamaged, BrokenPipeError):
        # The caller folds the missing ranges itself, and raises the error.
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
