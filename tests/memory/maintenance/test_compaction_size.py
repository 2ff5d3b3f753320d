"""Compaction never grows a file, and gives up contents at any size."""

from collections.abc import Callable
from pathlib import Path

import pytest

import cerata


def notes(store: cerata.Store) -> None:
    for number in range(30):
        store.put_frame(f"note {number} " * 40)


def saved(store: cerata.Store) -> None:
    notes(store)
    store.checkpoint()


def dead(store: cerata.Store) -> None:
    for _ in range(6):
        saved(store)


def empty(_: cerata.Store) -> None:
    """Write nothing."""


@pytest.mark.parametrize("fill", [empty, notes, saved, dead])
@pytest.mark.parametrize("reopen", [False, True])
def test_no_compaction_grows_a_file(
    tmp_path: Path, fill: Callable[[cerata.Store], None], reopen: bool
) -> None:
    """A file with one checkpoint grew by 1,024 bytes, and the next call wrote it again."""
    path = tmp_path / "a.cera"
    with cerata.open(str(path)) as store:
        fill(store)
        if not reopen:
            grown(store, path)
    with cerata.open(str(path)) as store:
        for _ in range(2):
            grown(store, path)
        assert store.verify().ok
    assert [file.name for file in tmp_path.iterdir()] == ["a.cera"]


def grown(store: cerata.Store, path: Path) -> None:
    before = path.stat().st_size
    result = store.upkeep.compact()
    size = path.stat().st_size
    assert (result.before, result.after) == (before, size)
    assert result.done == (size < before)
    assert size <= before


def test_contents_are_given_up_though_the_file_may_grow(tmp_path: Path) -> None:
    path = tmp_path / "a.cera"
    with cerata.open(str(path)) as store:
        store.delete(store.put_frame("secret words"))
        store.checkpoint()
        store.upkeep.compact()
        result = store.upkeep.compact(horizon="HEAD")
        assert (result.done, result.dropped) == (True, 1)
        assert result.after == path.stat().st_size
    assert b"secret words" not in path.read_bytes()
