"""Checkpoints in steps: no append computes a whole one, and one process does it for all.

Counts of events and plans, since times differ with the load of the machine.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

import cerata
from cerata.engine.storage import LockName
from cerata.memory.store import Store
from cerata.projections.core.column_fold import BlockFold
from cerata.projections.core.projection import FoldedEvent
from cerata.projections.core.ranges import RANGE_SEQS_MAX
from cerata.projections.frames.projection import FramesProjection
from cerata.replay import gradual_checkpoint
from cerata.replay.fold import Fold
from cerata.replay.gradual_checkpoint import STEP_SEQS

from .words import spans


@dataclass
class Work:
    """The work of checkpoints in one append."""

    folded: int = 0
    """Events that the frames projection folded."""
    plans: int = 0
    published: int = 0

    @property
    def is_some(self) -> bool:
        return bool(self.folded or self.plans or self.published)


@contextmanager
def counted() -> Iterator[list[Work]]:
    """Count the work; the last item is that since the last item was appended."""
    counts = [Work()]
    apply, plan, publish = BlockFold.apply, Fold.plan, Fold.publish_plans

    def apply_counted(self: BlockFold, events: Sequence[FoldedEvent]) -> None:
        if isinstance(self, FramesProjection):
            counts[-1].folded += len(events)
        apply(self, events)

    def plan_counted(self: Fold, *arguments: object) -> object:
        counts[-1].plans += 1
        return plan(self, *arguments)  # type: ignore[arg-type]

    def publish_counted(self: Fold, *arguments: object) -> None:
        counts[-1].published += 1
        publish(self, *arguments)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BlockFold, "apply", apply_counted)
        patch.setattr(Fold, "plan", plan_counted)
        patch.setattr(Fold, "publish_plans", publish_counted)
        yield counts


def put(store: Store, count: int, batch: int = 100) -> list[Work]:
    """Put frames in batches; return the work of checkpoints in each append."""
    with counted() as counts:
        for _ in range(0, count, batch):
            store.put_frames(["wax tablet"] * batch)
            counts.append(Work())
    return counts[:-1]


@pytest.mark.parametrize(("batch", "ranges"), [(1, 1), (100, 2), (250, 2)])
def test_no_append_computes_a_whole_checkpoint(batch: int, ranges: int) -> None:
    """The put that completed 4,096 events took 135 to 230 ms, a hundred times its median."""
    with cerata.open(":memory:") as store:
        work = put(store, ranges * RANGE_SEQS_MAX + 25 * min(batch, 100), batch)
        assert len(spans(store, "frames")) == ranges
    steps = 1 + 2 * batch // STEP_SEQS
    assert max(count.folded for count in work) <= steps * STEP_SEQS
    assert max(count.plans for count in work) <= steps * 3
    assert sum(count.published for count in work) == ranges


def test_a_checkpoint_at_once_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound is that of the steps."""
    monkeypatch.setattr(gradual_checkpoint, "STEP_SEQS", 1 << 20)
    with cerata.open(":memory:") as store:
        work = put(store, RANGE_SEQS_MAX + 1_200)
    assert max(count.folded for count in work) >= RANGE_SEQS_MAX


def test_the_maintainer_folds_as_it_appends() -> None:
    """After its first checkpoint it has no range to catch up with."""
    with cerata.open(":memory:") as store:
        put(store, RANGE_SEQS_MAX + 2_000)
        put(store, 1_000)
        assert store.head.seq - store._fold.folded_seq() < STEP_SEQS


def test_one_process_checkpoints_and_the_other_folds_nothing(tmp_path: Path) -> None:
    """Each writer folded each range for a checkpoint that one published: 40 us a commit each."""
    path = tmp_path / "a.cera"
    with cerata.open(path) as first, cerata.open(path) as second:
        put(second, 100)
        put(first, RANGE_SEQS_MAX + 2_500)
        assert spans(first, "frames") == [(1, 4096)]
        for _ in range(40):
            put(first, 100)
            work = put(second, 100)
            assert not any(count.is_some for count in work)
        assert len(spans(first, "frames")) == 3


def test_who_does_not_get_the_lock_goes_on(tmp_path: Path) -> None:
    """Two ranges later it goes on without the lock: the holder may be idle."""
    path = tmp_path / "a.cera"
    with cerata.open(path, sync=1 << 30) as store:
        holder = store._log.environment.storage.open(str(path), mode="rw")
        assert holder.try_lock(LockName.MAINTENANCE, exclusive=True)
        assert not any(count.is_some for count in put(store, 3 * RANGE_SEQS_MAX - 200))
        put(store, 8_000)
        assert len(spans(store, "frames")) >= 3
        holder.close()


def test_another_process_takes_over_from_an_idle_maintainer(tmp_path: Path) -> None:
    """A range after the one that the maintainer left."""
    path = tmp_path / "a.cera"
    with cerata.open(path, sync=1 << 30) as idle, cerata.open(path, sync=1 << 30) as active:
        put(active, 100)
        put(idle, RANGE_SEQS_MAX + 2_000)
        put(active, 2 * RANGE_SEQS_MAX - 2_200)
        assert len(spans(active, "frames")) == 1
        put(active, 6_000)
        assert len(spans(active, "frames")) >= 3


def test_the_lock_is_free_after_each_checkpoint(tmp_path: Path) -> None:
    """So another process can compact."""
    path = tmp_path / "a.cera"
    with cerata.open(path, sync=1 << 30) as store:
        put(store, RANGE_SEQS_MAX + 2_500)
        assert spans(store, "frames")
        probe = store._log.environment.storage.open(str(path), mode="rw")
        assert probe.try_lock(LockName.MAINTENANCE, exclusive=True)
        probe.close()


def test_a_checkpoint_of_another_process_ends_the_steps(tmp_path: Path) -> None:
    """Plans of a range that another process saved are dropped."""
    path = tmp_path / "a.cera"
    with cerata.open(path) as store, cerata.open(path) as other:
        put(store, RANGE_SEQS_MAX + 2)
        other.checkpoint()
        work = put(store, 1_000)
        assert sum(count.published for count in work) == 0
        assert store.verify().ok


def test_a_search_between_two_steps_changes_no_chunk() -> None:
    """A read folds to the head; the steps then fold less."""
    with cerata.open(":memory:") as store:
        for _ in range(60):
            store.put_frames(["wax tablet"] * 100)
            store.search("wax", k=1)
        assert spans(store, "fulltext") == [(1, 4096)]
        assert store.verify().ok
