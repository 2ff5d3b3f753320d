"""Versions of a projection: each has its entry in the file, until nobody runs it."""

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

import cerata
from cerata.memory.store import Store
from cerata.projections.core.projection import FoldedEvent, Parameters
from cerata.projections.registry import Registry, projection_key
from cerata.projections.rows.row_fold import row_fold
from cerata.replay import checkpoint
from cerata.replay import feed as feeding
from cerata.replay.fold import replay

from ..inside import fold_of, log_of
from .spending import Spending
from .words import Killed, fill, opened


def test_a_new_version_is_folded_from_the_start_and_saved_on_the_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kill in the middle costs one step; the old version's entry stays for who runs it."""
    monkeypatch.setattr(feeding, "_SAVE_SEQS", 512)
    path = tmp_path / "a.cera"
    with opened(path) as store:
        fill(store, 3_000)
        store.checkpoint()

    class Newer(Spending):
        version = 2

    class Dying(Newer):
        def apply(self, events: Sequence[FoldedEvent]) -> None:
            if events[-1].seq > 1_536:
                raise Killed
            super().apply(events)

    with cerata.open(path, projections=[Dying]) as store:
        with pytest.raises(Killed):
            store.stream.projection("spending")
        log_of(store).abandon()
    with cerata.open(path, projections=[Newer]) as store:
        rows = dict(store.stream.projection(Newer).rows)
        assert fold_of(store).reports["spending"].restored_events == 1_536
    with opened(path, "r") as store:
        assert dict(store.stream.projection(Spending).rows) == rows
        assert fold_of(store).reports["spending"].restored_events == 3_000


class SpendingParted(Spending):
    """With a parameter: another projection of the same name."""

    @property
    def parameters(self) -> Parameters:
        return {"part": 1}


class SpendingNewer(Spending):
    version = 2


class SpendingLatest(Spending):
    version = 3


SPENDINGS = (Spending, SpendingParted, SpendingNewer, SpendingLatest)


def entries(store: Store) -> set[str]:
    """The kinds of ``spending`` that have an entry in a file."""
    there = log_of(store).toc().projections
    return {kind.__name__ for kind in SPENDINGS if projection_key(row_fold(kind)) in there}


def test_the_entry_of_a_version_that_nobody_runs_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was carried for ever, and with it everything that it names."""
    monkeypatch.setattr(checkpoint, "OUTLIVED_SEQS", 1_024)
    path = tmp_path / "a.cera"
    for kind in SPENDINGS:
        with cerata.open(path, projections=[kind]) as store:
            fill(store, 100)
            store.checkpoint()
    with cerata.open(path, projections=[SpendingNewer]) as store:
        fill(store, 600)
        store.checkpoint()
        assert entries(store) == {kind.__name__ for kind in SPENDINGS}
        with cerata.open(path, projections=[SpendingParted]) as other:
            other.checkpoint()
        fill(store, 600)
        store.checkpoint()
        # Still there: one that somebody runs, and a later version, which is not ours to drop.
        assert entries(store) == {"SpendingParted", "SpendingNewer", "SpendingLatest"}
        assert store.verify().ok
    with cerata.open(path, projections=[Spending]) as store:
        rows = dict(store.stream.projection(Spending).rows)
        assert fold_of(store).reports["spending"].restored_events == 0
        assert rows == dict(
            replay(log_of(store), registry=Registry([Spending])).own("spending", 1_600).rows
        )
        store.checkpoint()
        assert "Spending" in entries(store)


@pytest.mark.parametrize(
    "key", ["spending", "spending/1", "spending/x/0123456789abcdef", "spendings/1/0123456789abcdef"]
)
def test_a_name_that_is_no_key_of_a_lower_version_is_carried(key: str) -> None:
    with cerata.open(":memory:", projections=[SpendingLatest]) as store:
        store.checkpoint()
        toc = msgspec.structs.replace(log_of(store).toc(), projections={key: {}})
        own = projection_key(row_fold(SpendingLatest))
        assert list(checkpoint.outlived(toc, {own: 1 << 40})) == []
