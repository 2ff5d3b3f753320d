"""Speed, by wide ratios to something measured in the same run: what must not rot in silence.

The figures themselves are printed by the benchmarks; here only their order of size is guarded.
"""

import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest

from benchmarks import append_bench, recovery_bench
from benchmarks.append_bench import frame
from cerata.engine.codec import WireEvent
from cerata.engine.disk.environment import Environment
from cerata.engine.disk.storage import Buffer, StorageFile
from cerata.engine.events import Draft
from cerata.engine.log import Log
from cerata.engine.open import open_log
from cerata.engine.segments.segment_reader import Segment

from .crash.mutants import BY_NAME

pytestmark = pytest.mark.unwatched("it measures")

compares_times = pytest.mark.slow("compares times, which other programs on the machine change")


@dataclass
class Counter:
    """A file that counts what a log asks of its disk."""

    inner: StorageFile
    reads: int = 0
    read_bytes: int = 0
    writes: int = 0
    syncs: int = 0

    def read_at(self, offset: int, size: int) -> bytes:
        data = self.inner.read_at(offset, size)
        self.reads += 1
        self.read_bytes += len(data)
        return data

    def search(self, offset: int, stop: int, low: int, high: int) -> list[int]:
        self.reads += 1
        self.read_bytes += stop - offset
        return self.inner.search(offset, stop, low, high)

    def write_at(self, offset: int, data: Buffer) -> None:
        self.writes += 1
        self.inner.write_at(offset, data)

    def sync(self) -> None:
        self.syncs += 1
        self.inner.sync()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


@contextmanager
def counted(**options: Any) -> Generator[tuple[Log, Counter], None, None]:
    """Open a log in memory, with its disk counted from here on."""
    with open_log("a", environment=Environment.in_memory(), **options) as log:
        counter = Counter(log.file.file)
        log.file.file = cast("StorageFile", counter)
        yield log, counter


def a_single_append(**options: Any) -> tuple[int, int]:
    """Return the writes and syncs of one append."""
    with counted(**options) as (log, disk):
        log.append([frame(1)])
        return disk.writes, disk.syncs


def test_one_append_writes_once_and_syncs_once() -> None:
    """What it costs over a bare write and sync of the same bytes is work, never another sync."""
    assert a_single_append() == (1, 1)


def test_without_its_mechanism_an_append_syncs_twice_or_never() -> None:
    """The counts tell: proving each batch at once costs a second write and sync."""
    # The record; then a header page, once for each handle, the mark and both witnesses.
    assert a_single_append(sync="always") == (5, 2)
    with BY_NAME["acknowledge without a sync"].planted():
        assert a_single_append() == (1, 0)


@compares_times
def test_a_durable_append_costs_one_sync_and_little_more(tmp_path: Path) -> None:
    """In processor time, over the bare write and sync: measured 1.0 to 1.3 times that in memory."""
    over, in_memory = append_bench.single_appends(tmp_path, 200)
    assert over < 4 * in_memory


def batch_ratio(append: Callable[[Log, Sequence[Draft]], object]) -> float:
    """Return how often a batch's cost goes into that of single appends of the same 200 events.

    The best of five rounds of this thread's processor time, in which the two alternate: what
    other programs take is not counted.
    """
    drafts = [frame(number) for number in range(200)]
    single: list[float] = []
    batch: list[float] = []
    with open_log("a", environment=Environment.in_memory()) as log:
        for _ in range(5):
            started = time.thread_time()
            _one_by_one(log, drafts)
            between = time.thread_time()
            append(log, drafts)
            batch.append(time.thread_time() - between)
            single.append(between - started)
    return min(single) / min(batch)


def _one_by_one(log: Log, drafts: Sequence[Draft]) -> None:
    for draft in drafts:
        log.append([draft])


@compares_times
def test_a_batch_costs_less_an_event_than_single_appends() -> None:
    """Locks and records are shared: measured 8.6 to 9.1 times, with no disk."""
    assert batch_ratio(lambda log, drafts: log.append(drafts)) > 3


@compares_times
def test_without_batches_an_event_costs_what_it_costs() -> None:
    """The ratio is that of batches and nothing else."""
    assert batch_ratio(_one_by_one) < 1.5


def test_a_batch_is_one_record_one_witness_and_one_sync() -> None:
    """However many events: the count behind the ratio, without a clock.

    The first record that has something to witness writes both witnesses, each later one writes one.
    """
    with counted(ring_bytes=1 << 20) as (log, disk):
        log.append([frame(number) for number in range(500)])
        assert (disk.writes, disk.syncs) == (1, 1)
        _one_by_one(log, [frame(number) for number in range(50)])
        assert (disk.writes, disk.syncs) == (102, 51)


def bytes_read_to_open(events: int) -> int:
    """Return how many bytes a reader of so many events takes in to open; all are sealed."""
    environment = Environment.in_memory()
    with open_log("a", environment=environment, ring_bytes=64 << 10) as log:
        for first in range(0, events, 2_000):
            log.append([frame(number) for number in range(first, first + 2_000)])
        log.seal()
    counters: list[Counter] = []
    open_file = environment.storage.open

    def opened(*arguments: Any, **options: Any) -> Counter:
        counters.append(Counter(open_file(*arguments, **options)))
        return counters[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(environment.storage, "open", opened)
        with open_log("a", mode="r", environment=environment) as log:
            assert log.head.seq == events
    return sum(counter.read_bytes for counter in counters)


def test_opening_for_reading_reads_no_event() -> None:
    """As much for 20,000 events as for 2,000: pages, ring and TOC."""
    assert bytes_read_to_open(20_000) < 1.1 * bytes_read_to_open(2_000)


def test_an_open_that_reads_events_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """What keeps it short is that nothing is read before somebody asks."""
    begin = Log.__init__

    def eager(self: Log, *arguments: Any, **options: Any) -> None:
        begin(self, *arguments, **options)
        for _ in self.read():
            pass

    monkeypatch.setattr(Log, "__init__", eager)
    assert bytes_read_to_open(20_000) > 1.1 * bytes_read_to_open(2_000)


@compares_times
def test_opening_takes_less_time_than_reading(tmp_path: Path) -> None:
    """Measured 1 ms for a million events, whose reading takes seconds."""
    opening_ms = append_bench.opening(tmp_path, 20_000, 5)
    with open_log(str(tmp_path / "large.cera"), mode="r") as log:
        started = time.perf_counter()
        count = sum(1 for _ in log.read())
        reading_ms = 1e3 * (time.perf_counter() - started)
    assert count == 20_000
    assert opening_ms < reading_ms / 5


@pytest.fixture(scope="module")
def twenty_thousand(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The path of a closed file of 20,000 events."""
    path = str(tmp_path_factory.mktemp("recovery") / "a.cera")
    recovery_bench.build(path, 20_000)
    return path


def recovery_ratio(path: str) -> float:
    """Return how often reading and hashing the killed ring's sectors goes into its recovery."""
    found = [recovery_bench.recover(path, 1.0, seed) for seed in range(3)]
    assert all(one.sealed_events > 900 for one in found)
    best = min(one.spent.processor for one in found)
    return best / min(one.floor.processor for one in found)


@compares_times
def test_recovery_costs_what_its_tail_costs(twenty_thousand: str) -> None:
    """Measured 5 to 8 times its floor, however many events are sealed."""
    assert recovery_ratio(twenty_thousand) < 25


@compares_times
def test_a_recovery_that_reads_what_is_sealed_is_seen(
    twenty_thousand: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It looks at the ring alone: even 20,000 events more are many times its cost."""
    settle = Log.settle

    def thorough(self: Log, *arguments: Any, **options: Any) -> None:
        settle(self, *arguments, **options)
        assert all(event.leaf for event in self.read())

    monkeypatch.setattr(Log, "settle", thorough)
    assert recovery_ratio(twenty_thousand) > 25


def verify_ratio(path: str) -> float:
    """Return how often unpacking and hashing the payloads goes into verifying the file."""
    rate, floor = recovery_bench.verifying(path, 2)
    return floor / rate


@compares_times
def test_verify_costs_little_more_than_hashing(twenty_thousand: str) -> None:
    """Measured 5 to 7 times one hash a payload: commitment, leaf, chain and tree are four."""
    assert verify_ratio(twenty_thousand) < 16


@compares_times
def test_a_verify_that_unpacks_a_block_for_each_event_is_seen(
    twenty_thousand: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Events are read in their order, and each block once."""

    def one_by_one(self: Segment, first: int, stop: int, **_: Any) -> Iterator[WireEvent]:
        for own in range(first, stop):
            # Twice, so that the bound lies far from both on a host whose speed changes meanwhile.
            cast("Any", self)._blocks.clear()
            self.events_at([own])
            cast("Any", self)._blocks.clear()
            yield from self.events_at([own])

    monkeypatch.setattr(Segment, "events", one_by_one)
    assert verify_ratio(twenty_thousand) > 16


@pytest.mark.parametrize(
    ("module", "last"),
    [
        ("agents_bench", "in memory"),
        ("working_memory_bench", "capture of"),
        ("continuity_bench", "folded a second"),
        ("append_bench", "open, mode="),
        ("__main__", "first answer, cold"),
        ("checkpoint_bench", "200 checkpoints: TOC"),
        ("filters_bench", "hash of all answers"),
        ("compact_bench", "live: waits of a writer"),
        ("fork_bench", "x the copy"),
        ("follow_bench", "x those without"),
        ("folder_bench", "60 files, each once and whole"),
        ("facts_bench", "five corrections of each"),
        ("graph_bench", "two hops from an object"),
        ("hostile_bench", "over a limit: none"),
        ("importers_bench", "second import"),
        ("ingest_bench", "result"),
        ("interchange_bench", "and digests are equal"),
        ("fulltext_bench", "hash of all answers"),
        ("reads_bench", "answered"),
        ("rebuild_bench", "hash of the digests"),
        ("recovery_bench", "(random salts)"),
        ("scale_bench", "peak memory"),
        ("late_bench", "hash of all answers"),
        ("time_bench", "results "),
        ("transaction_bench", "a fact, read"),
        ("turns_bench", "the same final figures"),
        ("vectors_bench", "recall of the best 10"),
        ("writers_bench", "every document is there"),
    ],
)
def test_benchmarks_run(checkout: Path, module: str, last: str) -> None:
    """A benchmark that nobody runs stops running."""
    command = [sys.executable, "-m", f"benchmarks.{module}", "--tiny"]
    done = subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=True)
    assert last in done.stdout
