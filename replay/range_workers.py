"""Processes of a rebuild: ranges of events folded at the same time, equal for any number of them.

A fold needs the state before its first event. It is taken from the saved chunks of the old state;
the range is folded, and its chunks are compared with the saved chunks of the range. The first range
starts from nothing, so its chunks are right; if they equal the saved chunks, the second range
started from the right state, and so on. Ranges are taken in order, up to the first that differs:
later ranges started from a wrong state, and are folded again in this process.

This process folds ranges like its workers. It forks them if a fork is safe, since a new interpreter
takes as long to start as 40,000 events to fold; a process with threads starts new interpreters.

Owns the processes, the order of their results, and saving these beside the old state. Leaves out
projections of the user, whose classes another process may not be able to import, and projections
without an old state.
"""

import os
import selectors
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Final, NamedTuple, Protocol

import msgspec

from cerata.engine.disk.storage import OsStorage
from cerata.engine.errors import Corrupt
from cerata.engine.log import Log
from cerata.projections.core.seal import RANGE_SEQS_MAX, Range, StateDamaged
from cerata.projections.registry import BUILT_IN

from .checkpoint import (
    SavedRange,
    Shared,
    extended_plan,
    publish,
    read_chunk,
    saved_ranges,
    stored_chunks,
)
from .fold import Fold, Progress
from .range_worker import (
    NUMBER_BYTES,
    SIZE_BYTES,
    FoldedChunks,
    FoldedRange,
    Task,
    fold_free_ranges,
    folded_range,
    free_numbers,
)
from .side import Side

RANGE_EVENTS: Final = 2 * RANGE_SEQS_MAX
"""Events of a range: about 80 ms of folding; smaller ranges load more chunks between."""

_RANGES_MIN: Final = 4
"""With fewer ranges one process folds all: to start another takes as long."""

_RANGES_MAX: Final = 8_192
"""The numbers of so many ranges fit into a pipe; ranges grow with a longer log."""

_RANGES_OF_SAVE: Final = 4
"""Ranges between two saves: 32,768 events, as in a fold in one process."""

_READ_SIZE: Final = 1 << 20


def fold_ranges(
    log: Log, fold: Fold, sides: Mapping[str, Side], workers: int, report: Progress
) -> frozenset[str]:
    """Fold built-in projections in several processes, and save them beside the old states.

    The sides are then at the end of the last range. Return the names of
    the rest, of which a range differs or is missing: make these again from their saved progress.
    """
    if not isinstance(log.environment.storage, OsStorage):
        return frozenset()
    rebuilt = _rebuilds(log, sides)
    if not rebuilt:
        return frozenset()
    start = next(iter(rebuilt.values())).seq
    spans = _spans(start, min(each.end for each in rebuilt.values()))
    if len(spans) < _RANGES_MIN:
        return frozenset()
    folding = _Folding(log, fold, rebuilt, spans, report)
    folding.run(workers)
    _save(log, rebuilt)
    end = spans[-1][1]
    for name, each in rebuilt.items():
        if each.seq == end and each.is_equal:
            try:
                fold.load_saved(name, each.side.fresh, end)
            except Corrupt:
                each.is_equal = False
            else:
                each.replayed.skip(end)
    return frozenset(name for name, each in rebuilt.items() if each.seq < end or not each.is_equal)


def _spans(start: int, end: int) -> list[Range]:
    size = RANGE_EVENTS
    while (end - start) // size > _RANGES_MAX:
        size += RANGE_EVENTS
    return [(after, after + size) for after in range(start, end - size + 1, size)]


class _Rebuilt:
    """A projection, the end of its progress, and the chunks that are not saved yet.

    ``is_equal`` is whether all ranges so far had the saved chunks.
    """

    def __init__(self, log: Log, side: Side) -> None:
        assert side.replayed is not None
        self.side = side
        self.replayed = side.replayed
        self.key = side.saved_as
        self.seq = side.fresh.seq
        self.end = side.replayed.saved.seq
        self.is_equal = True
        self.digest = b""
        self.chunks: list[tuple[Range, bytes | None]] = []
        self.old = stored_chunks(log.file, side.replayed.saved)

    def take(self, folded: FoldedRange, chunks: FoldedChunks) -> None:
        """Take the chunks of the next range, if all earlier ranges were equal."""
        if not self.is_equal or folded.after != self.seq:
            return
        self.chunks += zip(chunks.spans, chunks.bodies, strict=True)
        self.digest = chunks.digest
        self.seq = folded.through
        self.is_equal = chunks.equal


def _rebuilds(log: Log, sides: Mapping[str, Side]) -> dict[str, _Rebuilt]:
    """Return the projections whose old state reaches far enough, with the same progress."""
    able = {
        name: side
        for name, side in sides.items()
        if name in BUILT_IN
        and side.replayed is not None
        and side.fresh.seq % RANGE_EVENTS == 0
        and side.fresh.seq < side.replayed.saved.seq
    }
    start = min((side.fresh.seq for side in able.values()), default=0)
    return {
        name: _Rebuilt(log, side)
        for name, side in able.items()
        if side.fresh.seq == start and _begins_alike(log, side)
    }


def _begins_alike(log: Log, side: Side) -> bool:
    """Return whether the saved progress is whole, and equals the old state so far."""
    toc = log.toc()
    saved = toc.saved(side.saved_as)
    old = {each.range: each for each in saved_ranges(log.file, toc.saved(side.key))}
    try:
        return all(
            each.range in old and _has_same(log, each, old[each.range])
            for each in saved_ranges(log.file, saved)
        )
    except Corrupt:
        return False


def _has_same(log: Log, new: SavedRange, old: SavedRange) -> bool:
    """Return whether two checkpoints have the same effects in a range.

    Raises:
        Corrupt: a chunk is damaged.
    """
    for each in (new, old):
        if each.damage is not None:
            raise each.damage
    if new.ref is None or old.ref is None or new.ref == old.ref:
        return new.ref == old.ref
    return read_chunk(log.file, new.ref).data == read_chunk(log.file, old.ref).data


def _save(log: Log, rebuilt: Mapping[str, _Rebuilt]) -> bool:
    """Save new chunks beside the old states; return whether no other process interfered."""
    plans = {
        each.key: extended_plan(
            log.file,
            log.toc().saved(each.key),
            each.chunks,
            Shared(each.side.key, each.old),
            each.digest,
            each.side.erased,
        )
        for each in rebuilt.values()
        if each.chunks
    }
    for each in rebuilt.values():
        each.chunks = []
    return publish(log, plans) if plans else True


class _Folding:
    """The ranges of a rebuild, folded by this process and workers, and taken in order."""

    def __init__(
        self,
        log: Log,
        fold: Fold,
        rebuilt: Mapping[str, _Rebuilt],
        spans: Sequence[Range],
        report: Progress,
    ) -> None:
        self._log = log
        self._fold = fold
        self._rebuilt = rebuilt
        self._spans = spans
        self._report = report
        self._folded: dict[int, FoldedRange] = {}
        self._next = 0
        self._is_over = False

    def run(self, workers: int) -> None:
        """Fold the ranges, up to the first that differs or is missing."""
        with _started(self._log.path, tuple(self._rebuilt), self._spans, workers) as started:
            for number in free_numbers(started.free):
                if not self._fold_here(number):
                    return
                self._take(started.results.ready())
                if self._is_over:
                    return
            while self._next < len(self._spans) and not self._is_over:
                results = started.results.wait()
                if results is None:
                    return
                self._take(results)

    def _fold_here(self, number: int) -> bool:
        fresh = {name: each.side.fresh for name, each in self._rebuilt.items()}
        try:
            folded = folded_range(self._log, self._fold, fresh, number, self._spans[number])
        except (Corrupt, StateDamaged):
            # The turn of each projection meets the damage again, and raises it.
            for each in self._rebuilt.values():
                each.is_equal = False
            self._is_over = True
            return False
        self._folded[number] = folded
        return True

    def _take(self, results: Sequence[FoldedRange]) -> None:
        """Take the ranges in order, as far as they are folded."""
        self._folded.update((folded.number, folded) for folded in results)
        while not self._is_over and (folded := self._folded.pop(self._next, None)) is not None:
            self._next += 1
            for name, chunks in folded.chunks.items():
                self._rebuilt[name].take(folded, chunks)
            self._report("rebuilding", folded.through, self._log.head.seq)
            self._is_over = not any(each.is_equal for each in self._rebuilt.values())
            if self._next % _RANGES_OF_SAVE == 0 and not _save(self._log, self._rebuilt):
                self._is_over = True


# --- processes -----------------------------------------------------------------------------------


class _Process(Protocol):
    """A worker process."""

    outlet: int

    def end(self) -> None:
        """Kill the process, and close its output."""
        ...


class _Started(NamedTuple):
    """The pipe of free ranges, and the results of the workers."""

    free: int
    results: "_Results"


@contextmanager
def _started(
    path: str, names: tuple[str, ...], spans: Sequence[Range], workers: int
) -> Generator[_Started]:
    """Start the workers beside this process; end them when the block ends."""
    free, inlet = os.pipe()
    processes: list[_Process] = []
    try:
        numbers = (number.to_bytes(NUMBER_BYTES, "little") for number in range(len(spans)))
        try:
            os.write(inlet, b"".join(numbers))
        finally:
            # Its end shows that no range is left.
            os.close(inlet)
        task = Task(os.path.abspath(path), names, tuple(spans), free)
        start = Forked if _may_fork() else Spawned
        for _ in range(min(workers, len(spans)) - 1):
            processes.append(start(task))
        yield _Started(free, _Results(processes))
    finally:
        os.close(free)
        for process in processes:
            process.end()


def _may_fork() -> bool:
    """Return whether a fork is safe: no other thread can hold a lock that the child needs.

    Elsewhere than on Linux, libraries of the system may refuse to run in a fork.
    """
    return sys.platform == "linux" and threading.active_count() == 1


class Spawned:
    """A worker in a new interpreter."""

    def __init__(self, task: Task) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - this interpreter, with our own module
            # The current folder is no place of modules, as it is none of this process.
            [sys.executable, "-P", "-m", f"{__package__}.range_worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            pass_fds=(task.free,),
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        inlet, outlet = self._process.stdin, self._process.stdout
        assert inlet is not None
        assert outlet is not None
        self._outlet = outlet
        self.outlet = outlet.fileno()
        with suppress(OSError), inlet:
            inlet.write(msgspec.msgpack.encode(task))

    def kill(self) -> None:
        self._process.kill()

    def end(self) -> None:
        self.kill()
        self._outlet.close()
        self._process.wait()


class Forked:
    """A worker in a fork of this process."""

    def __init__(self, task: Task) -> None:
        self.outlet, outlet = os.pipe()
        with warnings.catch_warnings():
            # Python warns of threads of libraries: those of numpy hold no lock of the child.
            warnings.simplefilter("ignore", DeprecationWarning)
            self._process = os.fork()
        if not self._process:
            _fold_in_child(task, outlet)
        os.close(outlet)

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.kill(self._process, signal.SIGKILL)

    def end(self) -> None:
        self.kill()
        os.close(self.outlet)
        # A program that ignores the end of its children cannot wait for any.
        with suppress(ChildProcessError):
            os.waitpid(self._process, 0)


def _fold_in_child(task: Task, outlet: int) -> None:
    """Fold free ranges, and end this process without the work of the parent's exit."""
    code = 1
    try:
        code = fold_free_ranges(task, outlet)
    finally:
        os._exit(code)


class _Results:
    """The ranges that the workers have folded, as they come."""

    def __init__(self, processes: Sequence[_Process]) -> None:
        self._selector = selectors.DefaultSelector()
        self._data = {process.outlet: bytearray() for process in processes}
        for outlet in self._data:
            self._selector.register(outlet, selectors.EVENT_READ)

    def ready(self) -> list[FoldedRange]:
        """Return the ranges that have come; wait for none."""
        return self._read(0)

    def wait(self) -> list[FoldedRange] | None:
        """Wait for output, and return the ranges that have come; None once all processes ended."""
        if not self._selector.get_map():
            return None
        return self._read(None)

    def _read(self, timeout: float | None) -> list[FoldedRange]:
        folded: list[FoldedRange] = []
        for key, _ in self._selector.select(timeout):
            outlet = key.fd
            data = os.read(outlet, _READ_SIZE)
            if not data:
                self._selector.unregister(outlet)
            folded += _messages(self._data[outlet], data)
        return folded


def _messages(waiting: bytearray, data: bytes) -> Iterator[FoldedRange]:
    """Yield the whole messages of an output; ``waiting`` is the part that is not whole yet."""
    waiting += data
    while len(waiting) >= SIZE_BYTES:
        end = SIZE_BYTES + int.from_bytes(waiting[:SIZE_BYTES], "little")
        if len(waiting) < end:
            return
        message = bytes(waiting[SIZE_BYTES:end])
        del waiting[:end]
        yield msgspec.msgpack.decode(message, type=FoldedRange)
