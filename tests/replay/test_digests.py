"""Digests: the same log gives the same state, however it was reached and on whatever run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import cerata
from cerata.projections.core.event_batch import EventBatch
from cerata.projections.fulltext.projection import FulltextProjection
from cerata.replay import fold as folding

PRINT_DIGESTS = """
import sys, cerata
with cerata.open(sys.argv[1], mode="r") as store:
    for replay in (False, True):
        for name, digest in sorted(store.stream.digests(replay=replay).items()):
            print(name, digest.hex())
"""


def write_history(path: Path) -> None:
    """A history with every kind of event that a store writes, a checkpoint and a tail."""
    with cerata.open(path, options=cerata.OpenOptions(ring_bytes=1 << 16)) as store:
        ids = store.put_frames([f"wörd{n % 13} text {n}" for n in range(300)]).ids
        for number in range(0, 100, 7):
            store.delete(ids[number])
        for number in range(101, 200, 9):
            store.supersede(ids[number], f"better {number}")
        store.remember("# A\n" + "\n\n".join(f"## B{n}\n" + "w " * 500 for n in range(5)), uri="u")
        store.checkpoint()
        store.put_frame(b"bytes", tags=["x"], options=cerata.PutOptions(search_text="späte Notiz"))
        store.delete(ids[250])


def digests_in_a_process(path: Path, checkout: Path, hash_seed: str) -> list[str]:
    """The digests that another process prints: from the checkpoint, then from a replay."""
    done = subprocess.run(
        [sys.executable, "-c", PRINT_DIGESTS, str(path)],
        capture_output=True,
        text=True,
        check=True,
        cwd=checkout,
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
    )
    return done.stdout.split("\n")[:-1]


def test_checkpoint_and_replay_agree_in_two_processes_with_two_hash_seeds(
    tmp_path: Path, checkout: Path
) -> None:
    """No set order, hash order or memory address may enter a state."""
    path = tmp_path / "memory.cera"
    write_history(path)
    first = digests_in_a_process(path, checkout, "1")
    second = digests_in_a_process(path, checkout, "2")
    assert first == second
    assert len(first) == 28
    assert first[:14] == first[14:]


def test_a_projection_that_folds_differently_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Verification must be able to fail: with a bug planted in the fold it names the projection."""
    path = tmp_path / "memory.cera"
    write_history(path)
    fold = FulltextProjection._fold

    def fold_all_but_the_first(one: FulltextProjection, events: EventBatch) -> None:
        fold(one, events[1:])

    monkeypatch.setattr(FulltextProjection, "_fold", fold_all_but_the_first)
    with cerata.open(path, mode="r") as store:
        found = store.verify()
    assert not found.ok
    assert found.diverging == ("fulltext",)


def test_two_stores_that_save_at_once_leave_one_whole_checkpoint(tmp_path: Path) -> None:
    """The later one publishes only if the chunks that it built on are still named."""
    path = tmp_path / "memory.cera"
    with cerata.open(path) as first, cerata.open(path) as second:
        first.put_frames([f"text {n}" for n in range(50)])
        second.checkpoint()
        first.put_frames([f"more {n}" for n in range(10)])
        first.checkpoint()
        second.put_frame("last")
        second.checkpoint()
        assert first.verify().ok
    with cerata.open(path, mode="r") as store:
        assert store.stream.digests() == store.stream.digests(replay=True)
        reports = store._fold.reports
        assert {report.replayed_events for report in reports.values()} == {0}
        assert {report.restored_events for report in reports.values()} == {61}


def test_a_checkpoint_has_few_chunks_however_often_it_is_saved(tmp_path: Path) -> None:
    """Complete ranges take the place of partial ones, so the TOC stays small."""
    path = tmp_path / "memory.cera"
    with cerata.open(path) as store:
        for number in range(200):
            store.put_frame(f"text {number}")
            store.checkpoint()
        toc = store._log.toc()
        chunks = [
            len(store._log.file.page(page))
            for key in toc.projections
            for page in toc.saved(key).chunks
        ]
        # Frames and full text; the states of the other projections are empty.
        assert chunks == [1] * 2
        assert len(toc.encode()) < 4096
        assert store.verify().ok


def test_closing_costs_are_estimated_never_clocked() -> None:
    """The same history must leave the same file on a fast machine and a slow one."""
    source = Path(folding.__file__).read_text()
    assert "monotonic" not in source
    assert "perf_counter" not in source
