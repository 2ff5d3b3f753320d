"""Worker processes of a rebuild: ranges of events folded at the same time, equal for any number.

A fold needs the state before its first event. A worker takes it from the saved chunks of the old
state, folds its range, and compares its chunks with the saved chunks of the range. The first range
starts from nothing, so its chunks are right; if they equal the saved chunks, the second range
started from the right state, and so on. The caller takes the ranges in order, and stops at the
first that differs: later ranges started from a wrong state, and are folded again in this process.

Owns the processes, the order of their results, and saving these beside the old state. Leaves out
projections of the user, whose classes another process may not be able to import, and projections
without an old state.
"""

import os
import selectors
import subprocess
import sys
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import IO, Final

import msgspec

from cerata.engine.errors import Corrupt
from cerata.engine.log import Log
from cerata.engine.storage import OsStorage
from cerata.projections.core.ranges import RANGE_SEQS_MAX, Range
from cerata.projections.registry import BUILT_IN, projection_key

from .checkpoint import Shared, extended_plan, publish, read_chunk, stored_chunks
from .fold import Fold, Progress
from .range_worker import SIZE_BYTES, FoldedChunks, FoldedRange, Task

RANGE_EVENTS: Final = 2 * RANGE_SEQS_MAX
"""Events of a range: about 200 ms of folding; smaller ranges load more chunks between."""

_RANGES_OF_SAVE: Final = 4
"""Ranges between two saves: 32,768 events, as in a fold in one process."""

_READ_SIZE: Final = 1 << 20


def fold_ranges(log: Log, fold: Fold, names: Sequence[str], workers: int, report: Progress) -> None:
    """Fold built-in projections in worker processes, and save them beside the old states.

    The caller folds the rest: if a worker ends early, or a range differs, nothing is lost.
    """
    if not isinstance(log.environment.storage, OsStorage):
        return
    erased = log.erased
    rebuilt = _rebuilds(log, fold, names)
    if not rebuilt:
        return
    start = min(each.seq for each in rebuilt.values())
    end = min(each.end for each in rebuilt.values())
    spans = [
        (after, after + RANGE_EVENTS)
        for after in range(start, end - RANGE_EVENTS + 1, RANGE_EVENTS)
    ]
    if len(spans) < 2:
        return
    with _started(log.path, tuple(rebuilt), spans, workers) as results:
        for number, folded in enumerate(results, start=1):
            for name, chunks in folded.chunks.items():
                rebuilt[name].take(folded, chunks)
            report("rebuilding", folded.through, log.head.seq)
            is_last = number == len(spans) or not any(each.goes_on for each in rebuilt.values())
            if is_last:
                break
            if number % _RANGES_OF_SAVE == 0 and not _saved(log, rebuilt, erased):
                return
    _saved(log, rebuilt, erased)


class _Rebuilt:
    """A projection, the end of its progress, and the chunks that are not saved yet."""

    def __init__(self, key: str, seq: int, end: int) -> None:
        self.key = key
        self.seq = seq
        self.end = end
        self.goes_on = True
        self.digest = b""
        self.chunks: list[tuple[Range, bytes]] = []

    def take(self, folded: FoldedRange, chunks: FoldedChunks) -> None:
        """Take the chunks of the next range, if all earlier ranges were equal."""
        if not self.goes_on or folded.after != self.seq:
            return
        self.chunks += zip(chunks.spans, chunks.bodies, strict=True)
        self.digest = chunks.digest
        self.seq = folded.through
        self.goes_on = chunks.equal


def _rebuilds(log: Log, fold: Fold, names: Sequence[str]) -> dict[str, _Rebuilt]:
    """Return the projections whose old state reaches far enough, with their progress."""
    toc = log.toc()
    rebuilt: dict[str, _Rebuilt] = {}
    for name in names:
        key = projection_key(fold.registry.make(name))
        side = f"{key}~"
        if name not in BUILT_IN or key not in toc.projections:
            continue
        seq = toc.saved(side).seq
        end = toc.saved(key).seq
        if seq % RANGE_EVENTS == 0 and seq < end and _begins_alike(log, key, side):
            rebuilt[name] = _Rebuilt(side, seq, end)
    return rebuilt


def _begins_alike(log: Log, key: str, side: str) -> bool:
    """Return whether the saved progress is whole, and equals the old state so far."""
    toc = log.toc()
    old = stored_chunks(log.file, toc.saved(key))
    new = stored_chunks(log.file, toc.saved(side))
    if sum(through - after for after, through in new) != toc.saved(side).seq:
        return False
    try:
        return all(
            span in old and read_chunk(log.file, old[span]).data == read_chunk(log.file, ref).data
            for span, ref in new.items()
        )
    except Corrupt:
        return False


def _saved(log: Log, rebuilt: Mapping[str, _Rebuilt], erased: int) -> bool:
    """Save new chunks beside the old states; return whether no other process interfered."""
    plans = {
        each.key: extended_plan(
            log.file, log.toc().saved(each.key), each.chunks, Shared("", {}), each.digest, erased
        )
        for each in rebuilt.values()
        if each.chunks
    }
    for each in rebuilt.values():
        each.chunks = []
    return publish(log, plans) if plans else True


# --- processes -----------------------------------------------------------------------------------


@contextmanager
def _started(
    path: str, names: tuple[str, ...], spans: Sequence[Range], workers: int
) -> "Generator[Iterator[FoldedRange]]":
    """Start workers, each for every ``workers``-th range; end them when the block ends."""
    processes: list[_Worker] = []
    try:
        for number in range(min(workers, len(spans))):
            task = Task(os.path.abspath(path), names, tuple(spans[number::workers]))
            processes.append(_Worker(task))
        yield _in_order(processes, len(spans))
    finally:
        for worker in processes:
            worker.end()


class _Worker:
    """A worker process, and the part of its output that is no whole message yet."""

    def __init__(self, task: Task) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - this interpreter, with our own module
            [sys.executable, "-m", f"{__package__}.range_worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        self._data = bytearray()
        self.folded: list[FoldedRange] = []
        message = msgspec.msgpack.encode(task)
        self.send(len(message).to_bytes(SIZE_BYTES, "little") + message)

    @property
    def outlet(self) -> IO[bytes]:
        assert self._process.stdout is not None
        return self._process.stdout

    def send(self, data: bytes) -> None:
        """Send a task or a permit; a process that has ended reads nothing."""
        inlet = self._process.stdin
        assert inlet is not None
        with suppress(OSError):
            inlet.write(data)

    def read(self) -> bool:
        """Read available output, and decode whole messages; return False at its end."""
        data = os.read(self.outlet.fileno(), _READ_SIZE)
        self._data += data
        while len(self._data) >= SIZE_BYTES:
            size = int.from_bytes(self._data[:SIZE_BYTES], "little")
            if len(self._data) < SIZE_BYTES + size:
                break
            message = bytes(self._data[SIZE_BYTES : SIZE_BYTES + size])
            del self._data[: SIZE_BYTES + size]
            self.folded.append(msgspec.msgpack.decode(message, type=FoldedRange))
        return bool(data)

    def end(self) -> None:
        self._process.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                if pipe is not None:
                    pipe.close()
        self._process.wait()


def _in_order(workers: Sequence[_Worker], count: int) -> Iterator[FoldedRange]:
    """Yield the ranges in order, up to the first that its worker did not fold."""
    with selectors.DefaultSelector() as selector:
        for worker in workers:
            selector.register(worker.outlet, selectors.EVENT_READ, worker)
        running = {*workers}
        for number in range(count):
            worker = workers[number % len(workers)]
            while not worker.folded and worker in running:
                for key, _ in selector.select():
                    if not key.data.read():
                        selector.unregister(key.fileobj)
                        running.discard(key.data)
            if not worker.folded:
                return
            yield worker.folded.pop(0)
            worker.send(b".")
