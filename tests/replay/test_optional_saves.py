"""Saves that nobody asked for: they follow what is done already, and neither wait nor fail."""

import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest

import cerata
from cerata.engine.disk.environment import Environment, SystemClock
from cerata.engine.disk.memory_storage import MemoryStorage
from cerata.engine.disk.storage import LockName, OsStorage
from cerata.engine.errors import Corrupt
from cerata.engine.events import PutFrame
from cerata.projections.core.projection import FoldedEvent, Parameters
from cerata.projections.rows.row_projection import RowProjection
from cerata.replay import feed as feeding
from cerata.replay.fold import Fold

from ..inside import fold_of, log_of


class ImpatientClock(SystemClock):
    """Fails the test where anybody waits."""

    def sleep(self, seconds: float) -> None:
        raise AssertionError("somebody waited for a lock")


class Leaving(RowProjection[str, int]):
    """A fold that wants to end the process at event 100."""

    name = "leaving"
    handles = (PutFrame,)

    def apply(self, events: Sequence[FoldedEvent]) -> None:
        for event in events:
            if event.seq == 100:
                sys.exit(3)
            self.rows["seen"] = event.seq


class Fickle(RowProjection[str, int]):
    """A projection whose other code raises, once it is in use."""

    name = "fickle"
    handles = (PutFrame,)
    is_in_use = False

    @property
    def parameters(self) -> Parameters:
        if self.is_in_use:
            raise ValueError("no parameters today")
        return {}

    def apply(self, events: Sequence[FoldedEvent]) -> None:
        self.rows["seen"] = events[-1].seq


def test_closing_a_store_in_memory_folds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkpoint that nothing could open took a quarter of a short life."""

    def save(fold: Fold) -> None:
        raise AssertionError("saved for nobody")

    monkeypatch.setattr(Fold, "save", save)
    with cerata.open(":memory:") as store:
        put(store, 1_000)
    kept = Environment(storage=MemoryStorage())
    with pytest.raises(AssertionError), cerata.open(":memory:", environment=kept) as store:
        put(store, 1_000)


def put(store: cerata.Store, count: int) -> None:
    """Put frames in batches of 500."""
    for first in range(0, count, 500):
        head = store.put_frames([f"frame {first + n}" for n in range(500)]).head
        assert head is not None
        assert head.seq == store.head.seq


def damage_first_segment(path: Path) -> None:
    """Flip a bit of a block of sealed events."""
    with cerata.open(path, mode="r") as store:
        segment = next(iter(log_of(store).reader.segment_refs(log_of(store).snapshot)))
    data = bytearray(path.read_bytes())
    data[segment.offset + segment.length // 2] ^= 1
    path.write_bytes(data)


def test_puts_go_on_over_a_damaged_block(tmp_path: Path) -> None:
    """From event 4,096 on every put raised Corrupt, though its frames had been acknowledged."""
    whole, path = tmp_path / "whole.cera", tmp_path / "a.cera"
    with cerata.open(whole) as store:
        put(store, 2_000)
        # It has no checkpoint.
        store.backup(path)
    damage_first_segment(path)
    with cerata.open(path) as store:
        put(store, 4_000)
        assert store.head.seq == 6_000
        with pytest.raises(Corrupt, match="The log is damaged after event"):
            len(store)
        put(store, 500)
    with cerata.open(path, mode="r") as store:
        assert store.head.seq == 6_500


def test_puts_go_on_where_a_fold_leaves_the_process() -> None:
    """``sys.exit()`` in a fold ends the program, after the put; who stays can go on."""
    kept = Environment(storage=MemoryStorage())
    store = cerata.open(":memory:", environment=kept, projections=[Leaving])
    with pytest.raises(SystemExit):
        put(store, 5_000)
    while store.head.seq < 5_000:
        with suppress(SystemExit):
            put(store, 500)
    with pytest.raises(SystemExit):
        store.stream.projection(Leaving)
    assert len(store) == 5_000
    with pytest.raises(SystemExit):
        store.close()


def test_puts_go_on_where_a_projection_raises_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a user's code does while its state is saved, the put is done."""
    with cerata.open(":memory:", projections=[Fickle]) as store:
        monkeypatch.setattr(Fickle, "is_in_use", True)
        put(store, 5_000)
        monkeypatch.setattr(Fickle, "is_in_use", False)
        # Tried again, once 512 events more were there, in steps.
        put(store, 500)
        put(store, 2_500)
        assert fold_of(store)._saved_seq() == 4_096
        assert store.stream.projection(Fickle).rows["seen"] == 8_000


def test_a_read_does_not_wait_to_save_what_it_folded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It took 3.6 s while another handle held the writer lock."""
    monkeypatch.setattr(feeding, "_SAVE_SEQS", 512)
    path, whole = tmp_path / "a.cera", tmp_path / "whole.cera"
    with cerata.open(whole) as store:
        put(store, 2_000)
        store.backup(path)
    environment = Environment(clock=ImpatientClock())
    store = cerata.open(path, environment=environment)
    other = OsStorage().open(str(path), mode="rw")
    try:
        assert other.try_lock(LockName.WRITER, exclusive=True)
        assert len(store) == 2_000
        assert fold_of(store)._saved_seq() == 0
        other.unlock(LockName.WRITER)
        assert store.search("frame 7")
        # What the full text folded on the way was saved, now that nobody writes.
        assert "fulltext" in str(log_of(store).toc().projections)
    finally:
        other.close()
        store.close()
