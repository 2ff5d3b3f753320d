"""The figures of `benchmarks/checkpoint_bench.py`, small: what a checkpoint writes, and the TOC."""

from pathlib import Path

import pytest

from benchmarks.checkpoint_bench import checkpoint_cost, toc_size
from cerata.engine.format.toc import SavedProjection
from cerata.engine.log_file.file import LogFile
from cerata.projections.core import seal
from cerata.projections.registry import BUILT_IN
from cerata.projections.rows import row_fold
from cerata.replay import checkpoint
from cerata.replay.checkpoint import SavedRange


def test_a_checkpoint_after_100_documents_writes_little(tmp_path: Path) -> None:
    """Measured 0.26 % of 100,000 documents on average; of 20,000 it may be five times that."""
    cost = checkpoint_cost(tmp_path / "a.cera", 20_000, 4)
    assert cost.shares[-1] < 0.02


def largest_share_of_100_000(path: Path) -> float:
    """Return the largest share of a file of 100,000 documents that a checkpoint would write.

    Of the checkpoints around event 32,768, where ranges of every size end. What one writes does
    not depend on how many documents there are; the file does.
    """
    documents = 32_600
    cost = checkpoint_cost(path, documents, 3)
    return cost.shares[-1] * documents / 100_000


def test_no_checkpoint_writes_much(tmp_path: Path) -> None:
    """Measured 1.71 % at 100,000: the largest range that is ever joined is 4,096 events."""
    assert largest_share_of_100_000(tmp_path / "a.cera") < 0.02


def test_with_larger_ranges_some_checkpoint_would(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bound is that of the ranges: joined further, one checkpoint wrote 9 %."""
    monkeypatch.setattr(seal, "_SIZES", (32_768, 512))
    monkeypatch.setattr(row_fold, "RANGE_SEQS_MAX", 32_768)
    assert largest_share_of_100_000(tmp_path / "a.cera") > 0.05


def test_without_kept_chunks_it_would_write_everything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The figure comes from ranges that need no writing again."""

    def forgotten(_file: LogFile, _saved: SavedProjection) -> list[SavedRange]:
        return []

    monkeypatch.setattr(checkpoint, "saved_ranges", forgotten)
    cost = checkpoint_cost(tmp_path / "a.cera", 5_000, 2)
    assert cost.shares[0] > 0.1


def test_the_toc_does_not_grow_with_checkpoints(tmp_path: Path) -> None:
    """Chunks are named by pages, earlier digests by a ledger: 1,666 bytes for 1,000,000 frames."""
    few, _ = toc_size(tmp_path / "few.cera", 2_000, 20)
    many, _ = toc_size(tmp_path / "many.cera", 8_000, 200)
    assert many < few + 100
    assert many < 200 * len(BUILT_IN)
