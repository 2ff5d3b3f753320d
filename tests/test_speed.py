"""Speed, by wide ratios to something measured in the same run: what must not rot in silence.

The figures themselves are printed by the benchmarks; here only their order of size is guarded.
"""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks import append_bench
from cerata.engine import Environment, Log

pytestmark = pytest.mark.unwatched("it measures")


@pytest.fixture
def own_cost() -> float:
    """Microseconds of an append without a disk."""
    return append_bench.own_cost(300)


def test_a_durable_append_costs_one_sync_and_little_more(tmp_path: Path, own_cost: float) -> None:
    """Measured 54 to 66 us over the bare write and sync; 17 us of it is work without a disk."""
    assert append_bench.single_appends(tmp_path, 200) < 20 * own_cost


def test_a_batch_costs_less_an_event_than_single_appends(tmp_path: Path, own_cost: float) -> None:
    """Locks, records and syncs are shared: measured 7 us an event against 17."""
    rate = append_bench.batches(tmp_path, 20)
    assert 1e6 / rate < own_cost


def test_opening_for_reading_reads_no_event(tmp_path: Path) -> None:
    """It takes as long for a million events as for a thousand: pages and ring, no more."""
    opening_ms = append_bench.opening(tmp_path, 20_000, 5)
    with Log.open(str(tmp_path / "large.cera"), mode="r") as log:
        started = time.perf_counter()
        count = sum(1 for _ in log.read())
        reading_ms = 1e3 * (time.perf_counter() - started)
    assert count == 20_000
    assert opening_ms < reading_ms / 5


def test_one_append_syncs_once() -> None:
    """The count behind the first ratio, without a clock."""
    environment = Environment.in_memory()
    with Log.open("a", environment=environment) as log:
        file = log.file.file
        syncs = 0
        real = file.sync

        def counted() -> None:
            nonlocal syncs
            syncs += 1
            real()

        file.sync = counted  # type: ignore[method-assign]
        for number in range(10):
            log.append([append_bench.frame(number)])
    # Ten appends; closing syncs the mark that proves the last one.
    assert syncs == 11


@pytest.mark.parametrize(
    ("module", "last"),
    [
        ("append_bench", "open, mode="),
        ("checkpoint_bench", "200 checkpoints: TOC"),
        ("filters_bench", "hash of all answers"),
        ("fulltext_bench", "hash of all answers"),
    ],
)
def test_benchmarks_run(checkout: Path, module: str, last: str) -> None:
    """A benchmark that nobody runs stops running."""
    command = [sys.executable, "-m", f"benchmarks.{module}", "--tiny"]
    done = subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=True)
    assert last in done.stdout
