"""Checkpoints in steps: no append computes a whole one, and one process does it for all.

Counts of events and plans, since times differ with the load of the machine.
"""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

import cerata
from cerata.engine.disk.storage import LockName
from cerata.memory.store import Store
from cerata.projections.core.column_fold import BlockFold
from cerata.projections.core.projection import FoldedEvent
from cerata.projections.core.seal import RANGE_SEQS_MAX
from cerata.projections.frames.projection import FramesProjection
from cerata.replay import gradual_checkpoint
from cerata.replay.fold import Fold
from cerata.replay.gradual_checkpoint import STEP_SEQS

from ..inside import fold_of, log_of
from .words import chunks, spans, spoil


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
def counted() -> Generator[list[Work]]:
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
        put(store, 1_600)
        assert store.head.seq - fold_of(store).folded_seq() < STEP_SEQS


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
    with cerata.open(path, options=cerata.OpenOptions(sync=1 << 30)) as store:
        holder = log_of(store).environment.storage.open(str(path), mode="rw")
        assert holder.try_lock(LockName.MAINTENANCE, exclusive=True)
        assert not any(count.is_some for count in put(store, 3 * RANGE_SEQS_MAX - 200))
        put(store, 8_000)
        assert len(spans(store, "frames")) >= 3
        holder.close()


def test_another_process_takes_over_from_an_idle_maintainer(tmp_path: Path) -> None:
    """A range after the one that the maintainer left."""
    path = tmp_path / "a.cera"
    with (
        cerata.open(path, options=cerata.OpenOptions(sync=1 << 30)) as idle,
        cerata.open(path, options=cerata.OpenOptions(sync=1 << 30)) as active,
    ):
        put(active, 100)
        put(idle, RANGE_SEQS_MAX + 2_500)
        put(active, 2 * RANGE_SEQS_MAX - 2_700)
        assert len(spans(active, "frames")) == 1
        put(active, 8_000)
        assert len(spans(active, "frames")) >= 3


def test_the_lock_is_free_after_each_checkpoint(tmp_path: Path) -> None:
    """So another process can compact."""
    path = tmp_path / "a.cera"
    with cerata.open(path, options=cerata.OpenOptions(sync=1 << 30)) as store:
        put(store, RANGE_SEQS_MAX + 2_500)
        assert spans(store, "frames")
        probe = log_of(store).environment.storage.open(str(path), mode="rw")
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


def _save(path: Path) -> None:
    """Write a file whose checkpoint has six chunks of each projection."""
    with cerata.open(path, options=cerata.OpenOptions(sync=1 << 30)) as store:
        put(store, 3_000)
        store.put_frame("a honey bee")


def test_a_large_checkpoint_is_restored_in_steps(tmp_path: Path) -> None:
    """The first step of a process restored a whole projection: 570 ms of 1,000,000 frames."""
    path = tmp_path / "a.cera"
    _save(path)
    counts = [0]
    read_chunk = Fold._chunk

    def counted_chunk(self: Fold, *arguments: object) -> bytes:
        counts[-1] += 1
        return read_chunk(self, *arguments)  # type: ignore[arg-type]

    with cerata.open(path, options=cerata.OpenOptions(sync=1 << 30)) as store:
        # A put looks for the embedder in use.
        put(store, 100)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Fold, "_chunk", counted_chunk)
            for _ in range(50):
                store.put_frames(["wax tablet"] * 100)
                counts.append(0)
        assert 0 < max(counts) <= 4
        assert spans(store, "frames") == [(1, 4096)]
        assert store.search("honey", k=1)[0].id == 3_001
        assert store.verify().ok


def test_a_process_that_read_little_loads_the_state_late(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The load for a checkpoint of 4,096 events took 2 ms of each delete among 1,000,000 frames."""
    monkeypatch.setattr(gradual_checkpoint, "_LOAD_SHARE", 1)
    path = tmp_path / "a.cera"
    _save(path)
    with cerata.open(path, options=cerata.OpenOptions(sync=1 << 30)) as store:
        put(store, 2_900)
        assert not fold_of(store)._partial
        assert fold_of(store).folded_seq() < 0
        put(store, 8_000)
        assert (1, 4096) in spans(store, "frames")
        assert store.verify().ok


def test_a_process_that_read_the_state_checkpoints_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then a checkpoint loads nothing."""
    monkeypatch.setattr(gradual_checkpoint, "_LOAD_SHARE", 1)
    path = tmp_path / "a.cera"
    _save(path)
    with cerata.open(path, options=cerata.OpenOptions(sync=1 << 30)) as store:
        store.checkpoint()
        put(store, 2_900)
        assert spans(store, "frames") == [(1, 4096)]


def test_a_read_continues_a_restoration_of_steps(tmp_path: Path) -> None:
    """The chunks that the steps have loaded are not read again."""
    path = tmp_path / "a.cera"
    _save(path)
    with cerata.open(path, options=cerata.OpenOptions(sync=1 << 30)) as store:
        put(store, 1_100)
        restored = {name: partial.seq for name, (_, partial) in fold_of(store)._partial.items()}
        assert list(restored.values()) == [2_048]
        assert store.search("honey", k=1)[0].id == 3_001
        assert len(store) == 4_101
        put(store, 4_000)
        assert not fold_of(store)._partial
        assert store.verify().ok


@pytest.mark.unwatched("it damages the file")
def test_a_damaged_chunk_is_folded_again_in_steps(tmp_path: Path) -> None:
    """And the checkpoint replaces it."""
    path = tmp_path / "a.cera"
    _save(path)
    with cerata.open(path, mode="r") as store:
        damaged = chunks(store, "frames")[1]
    spoil(path, damaged.offset + 70)
    with cerata.open(path, options=cerata.OpenOptions(sync=1 << 30)) as store:
        put(store, 5_000)
        assert spans(store, "frames") == [(1, 4096)]
        assert store.verify().ok
        assert len(store) == 8_001


def test_a_search_between_two_steps_changes_no_chunk() -> None:
    """A read folds to the head; the steps then fold less."""
    with cerata.open(":memory:") as store:
        for _ in range(66):
            store.put_frames(["wax tablet"] * 100)
            store.search("wax", k=1)
        assert spans(store, "fulltext") == [(1, 4096)]
        assert store.verify().ok
