"""Rebuilding in worker processes: equal for any number of them, and for any that fails."""

import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

import cerata
from cerata.engine.errors import ProjectionFailed
from cerata.engine.open import open_log
from cerata.memory.batch.writer import session_of
from cerata.memory.store import Store
from cerata.projections.core.projection import FoldedEvent, Projection
from cerata.projections.registry import projection_key
from cerata.replay import range_workers
from cerata.replay.checkpoint import read_chunk, stored_chunks
from cerata.replay.range_worker import FoldedRange, Task, folded_range, free_numbers

from ..inside import fold_of, log_of
from .drawn import history
from .spending import Spending, Spent
from .test_rebuilds import killed_at
from .words import Killed, chunks, fill, opened

EVENTS = 14_000

Chunks = dict[str, dict[tuple[int, int], bytes]]


def _fold_none(*_: object) -> int:
    return 1


@pytest.fixture(autouse=True)
def small_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three ranges in a file of 14,000 events, each saved."""
    monkeypatch.setattr(range_workers, "RANGE_EVENTS", 4_096)
    monkeypatch.setattr(range_workers, "_RANGES_MIN", 2)
    monkeypatch.setattr(range_workers, "_RANGES_OF_SAVE", 1)


@pytest.fixture(autouse=True, params=["forked", "spawned"])
def start(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The way in which workers start; the threads of pytest-xdist would leave one only."""
    start: str = request.param
    monkeypatch.setattr(range_workers, "_may_fork", lambda: start == "forked")
    return start


@pytest.fixture
def folded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The ends of the ranges that workers folded."""
    ends: list[int] = []
    take = range_workers._Rebuilt.take

    def taken(rebuilt: Any, folded: FoldedRange, chunks: Any) -> None:
        if rebuilt.side.name == "frames":
            ends.append(folded.through)
        take(rebuilt, folded, chunks)

    monkeypatch.setattr(range_workers._Rebuilt, "take", taken)
    return ends


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    path = tmp_path / "a.cera"
    with opened(path) as store:
        fill(store, EVENTS, batch=1_000)
        store.checkpoint()
    return path


def state_of(store: Store) -> tuple[dict[str, bytes], Chunks]:
    """Return the digests, and the bytes of every saved chunk."""
    toc, file = log_of(store).toc(), log_of(store).file
    saved = {
        name: toc.saved(projection_key(fold_of(store).registry.make(name)))
        for name in fold_of(store).registry.names
    }
    chunks: Chunks = {
        name: {span: read_chunk(file, ref).data for span, ref in stored_chunks(file, each).items()}
        for name, each in saved.items()
    }
    assert not any(key.endswith("~") for key in toc.projections)
    return store.stream.digests(), chunks


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_any_number_of_workers_gives_the_same_bytes(
    filled: Path, folded: list[int], workers: int
) -> None:
    with opened(filled) as store:
        before = state_of(store)
        result = store.upkeep.rebuild(workers=workers)
        assert (result.equal, result.unmatched, result.seq) == (True, (), EVENTS)
        assert state_of(store) == before
        assert result.digests == before[0]
    assert folded == ([] if workers == 1 else [4_096, 8_192, 12_288])
    with opened(filled, "r") as store:
        assert state_of(store) == before
        assert store.verify().ok


@pytest.mark.parametrize(("seed", "workers"), [(0, 2), (1, 3)])
def test_every_kind_of_event_gives_the_same_bytes(
    tmp_path: Path, folded: list[int], seed: int, workers: int
) -> None:
    """Anomalies, closings, vectors, links and facts, as drawn."""
    path = tmp_path / "a.cera"
    with open_log(str(path)) as log:
        for batch in history(Random(seed), 9_000):
            log.append(batch.drafts)
    with opened(path) as store:
        store.checkpoint()
        assert store.upkeep.rebuild().equal
        before = state_of(store)
        assert store.upkeep.rebuild(workers=workers).equal
        assert state_of(store) == before
    assert folded == [4_096, 8_192]


def test_a_killed_rebuild_of_workers_continues(filled: Path, folded: list[int]) -> None:
    with opened(filled) as store:
        before = state_of(store)
        with pytest.raises(Killed):
            store.upkeep.rebuild(workers=2, progress=killed_at(8_192))
        log_of(store).abandon()
    with opened(filled) as store:
        side = [key for key in log_of(store).toc().projections if key.endswith("~")]
        assert {log_of(store).toc().saved(key).seq for key in side} == {4_096}
        folded.clear()
        assert store.upkeep.rebuild(workers=3).equal
        assert state_of(store) == before
    assert folded == [8_192, 12_288]


def test_a_range_that_differs_is_named_and_the_rest_is_folded_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The workers start from a wrong state after it, so their chunks are refused."""
    path = tmp_path / "a.cera"
    kind: type[Any] = type(fold_of(cerata.open(":memory:")).registry.make("frames"))
    apply = kind.apply
    lost: set[int] = set()

    def forgetful(fold: Projection, events: Sequence[FoldedEvent]) -> None:
        lost.update(
            [event.seq for event in events if event.seq > 5_000 and event.type == "putFrame"][
                : not lost
            ]
        )
        apply(fold, [event if event.seq not in lost else _Nothing(event) for event in events])

    with opened(path) as store, monkeypatch.context() as patched:
        patched.setattr(kind, "apply", forgetful)
        fill(store, EVENTS, batch=1_000)
        store.checkpoint()
    with opened(path) as store:
        right = store.stream.digests(replay=True)
        assert store.stream.digests() != right
        result = store.upkeep.rebuild(workers=2)
        assert [(each.projection, each.seq) for each in result.divergences] == [("frames", *lost)]
        assert store.stream.digests() == right == result.digests
        assert store.verify().ok


class _Nothing:
    """An event of a type that no projection handles."""

    type = "nothing"

    def __init__(self, event: FoldedEvent) -> None:
        self.seq, self.recorded = event.seq, event.recorded
        self.scope, self.body = event.scope, event.body
        self.causation = event.causation


def test_workers_that_end_at_once_cost_only_time(
    filled: Path, folded: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """This process folds every range."""
    with opened(filled) as store:
        before = state_of(store)
        monkeypatch.setattr(sys, "executable", "/bin/false")
        monkeypatch.setattr(range_workers, "fold_free_ranges", _fold_none)
        assert store.upkeep.rebuild(workers=3).equal
        assert state_of(store) == before
    assert folded == [4_096, 8_192, 12_288]


def test_a_worker_that_dies_with_a_range_leaves_the_rest_to_the_caller(
    filled: Path, folded: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ranges after the missing one started from chunks that no comparison proved."""

    def dying(task: Task, _outlet: int) -> int:
        next(free_numbers(task.free))
        return 1

    monkeypatch.setattr(range_workers, "_may_fork", lambda: True)
    monkeypatch.setattr(range_workers, "fold_free_ranges", dying)
    here = folded_range

    def slow(*arguments: Any) -> FoldedRange:
        # The worker takes a range first, or the caller would take all.
        time.sleep(0.5)
        return here(*arguments)

    monkeypatch.setattr(range_workers, "folded_range", slow)
    with opened(filled) as store:
        before = state_of(store)
        assert store.upkeep.rebuild(workers=2).equal
        assert state_of(store) == before
        assert store.verify().ok
    assert folded in ([], [4_096], [4_096, 8_192])


def test_equal_chunks_of_workers_are_not_written_again(filled: Path) -> None:
    """The file grows by references only."""
    with opened(filled) as store:
        size = filled.stat().st_size
        old = {name: chunks(store, name) for name in fold_of(store).registry.names}
        assert store.upkeep.rebuild(workers=2).equal
        assert {name: chunks(store, name) for name in fold_of(store).registry.names} == old
        assert filled.stat().st_size - size < 300_000


def test_a_process_with_threads_forks_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread may hold a lock that the child would wait for for ever."""
    monkeypatch.undo()
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    assert not range_workers._may_fork()
    done.set()
    thread.join()
    monkeypatch.setattr(threading, "active_count", lambda: 1)
    assert range_workers._may_fork() is (sys.platform == "linux")


@pytest.mark.parametrize("seed", range(4))
def test_workers_that_are_killed_at_random_leave_the_same_file(
    filled: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """The caller takes the ranges before the first missing one, and folds the rest itself."""
    source = Random(seed)
    timers: list[threading.Timer] = []

    for kind in (range_workers.Forked, range_workers.Spawned):
        begin = kind.__init__

        def doomed(worker: Any, task: Task, begin: Any = begin) -> None:
            begin(worker, task)
            timers.append(threading.Timer(source.random() * 3, worker.kill))
            timers[-1].start()

        monkeypatch.setattr(kind, "__init__", doomed)
    with opened(filled) as store:
        before = state_of(store)
        assert store.upkeep.rebuild(workers=3).equal
        assert state_of(store) == before
        assert store.verify().ok
    for timer in timers:
        timer.cancel()
    assert len(timers) == 2


@pytest.mark.parametrize("fault", ["raises", "differs"])
def test_a_faulty_projection_of_the_user_fails_beside_workers(
    filled: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    """Its code runs in the caller only, so a worker need not import it."""
    apply = Spending.apply

    def faulty(own: Spending, events: Sequence[FoldedEvent]) -> None:
        if fault == "raises":
            raise ZeroDivisionError
        apply(own, [event for event in events if event.seq != 9_007])

    with opened(filled) as store:
        store.append(Spent(tag="food", cents=5))
        seq = store.head.seq
        store.checkpoint()
        monkeypatch.setattr(Spending, "apply", faulty)
        if fault == "raises":
            with pytest.raises(ProjectionFailed):
                store.upkeep.rebuild(workers=2)
        else:
            assert store.upkeep.rebuild(workers=2).seq == seq
    monkeypatch.undo()
    with opened(filled) as store:
        assert store.upkeep.rebuild().seq == seq
        assert store.verify().ok


def test_an_old_state_that_differs_is_named_to_the_event_of_a_row(tmp_path: Path) -> None:
    """It was replaced, and nobody heard of the difference."""
    path = tmp_path / "a.cera"

    class Forgetful(Spending):
        def apply(self, events: Sequence[FoldedEvent]) -> None:
            super().apply([event for event in events if getattr(event.body, "tag", "") != "rare"])

    with cerata.open(path, projections=[Forgetful]) as store:
        fill(store, 900)
        rare = session_of(store).write([cerata.Draft(Spent(tag="rare", cents=3))]).id
        fill(store, 300)
        store.checkpoint()
    with opened(path) as store:
        result = store.upkeep.rebuild()
        assert [(each.projection, each.seq) for each in result.divergences] == [("spending", rare)]
        assert not result.equal
        assert f"spending: a chunk is not what its events give, from event {rare}" in str(
            result.divergences[0]
        )
        assert store.stream.projection(Spending).rows["rare"] == 3
        assert store.upkeep.rebuild().equal
        assert store.verify().ok


@pytest.mark.parametrize("workers", [0, -1, 65, True, 1.5, "2"])
def test_a_wrong_number_of_workers_is_refused(tmp_path: Path, workers: Any) -> None:
    with (
        opened(tmp_path / "a.cera") as store,
        pytest.raises(cerata.InvalidInput, match="workers must be a whole number from 1 to 64"),
    ):
        store.upkeep.rebuild(workers=workers)
