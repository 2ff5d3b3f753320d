"""Rebuilding on the side, and resumed wherever it was killed."""

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from cerata.engine.disk.storage import Buffer
from cerata.projections.fulltext.projection import FulltextProjection
from cerata.projections.registry import Registry
from cerata.replay import feed as feeding
from cerata.replay.fold import Fold, replay
from cerata.replay.rebuild import rebuild

from ..engine.words import Disk
from ..inside import fold_of, log_of
from .spending import Spending
from .words import Killed, chunks, draft, fill, opened, spoil


def _save_nothing(_: int) -> bool:
    return False


def test_a_rebuild_goes_on_where_it_was_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old state serves until the new one is whole; then nothing of the rebuild is left."""
    monkeypatch.setattr(feeding, "_SAVE_SEQS", 512)
    path = tmp_path / "a.cera"
    with opened(path) as store:
        fill(store, 3_000)
        store.checkpoint()
        digests, old = store.stream.digests(), chunks(store, "fulltext")
    seen: list[int] = []

    def until(stop: int) -> Callable[[str, int, int], None]:
        def progress(_what: str, done: int, total: int) -> None:
            assert total == 3_000
            seen.append(done)
            if done >= stop:
                raise Killed

        return progress

    with opened(path) as store:
        with pytest.raises(Killed):
            store.upkeep.rebuild("fulltext", until(1_536))
        log_of(store).abandon()
    with opened(path) as store:
        assert chunks(store, "fulltext") == old
        assert [key for key in log_of(store).toc().projections if key.endswith("~")] != []
        assert store.search("honey")
        seen.clear()
        store.upkeep.rebuild("fulltext", until(10_000))
        assert seen[0] == 2_048
        assert seen[-1] == 3_000
        assert [key for key in log_of(store).toc().projections if key.endswith("~")] == []
        # Equal chunks are named, not written again.
        assert chunks(store, "fulltext") == old
        assert store.stream.digests() == digests
    with opened(path) as store:
        assert store.stream.digests() == digests
        assert fold_of(store).reports["fulltext"].restored_events == 3_000
        assert store.verify().ok


def killed_at(stop: int) -> Callable[[str, int, int], None]:
    """Return a progress that ends the process once so many events are rebuilt."""

    def progress(_what: str, done: int, _total: int) -> None:
        if done >= stop:
            raise Killed

    return progress


@pytest.fixture
def half_rebuilt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of 3,000 events whose full text is being rebuilt: 1,024 are saved on the side."""
    monkeypatch.setattr(feeding, "_SAVE_SEQS", 512)
    path = tmp_path / "a.cera"
    with opened(path) as store:
        fill(store, 3_000)
        store.checkpoint()
    kill_rebuild(path, 1_024)
    return path


def kill_rebuild(path: Path, stop: int) -> None:
    """Rebuild the full text up to an event, and end."""
    with opened(path) as store:
        with pytest.raises(Killed):
            store.upkeep.rebuild("fulltext", killed_at(stop))
        log_of(store).abandon()


def check_is_rebuilt(path: Path) -> None:
    """Nothing of the side is left, and all was restored from whole chunks."""
    with opened(path) as store:
        assert [key for key in log_of(store).toc().projections if key.endswith("~")] == []
        assert store.stream.digests() == store.stream.digests(replay=True)
        report = fold_of(store).reports["fulltext"]
        assert (report.restored_events, report.bad_chunks) == (3_000, ())
        assert store.verify().ok


def test_a_rebuild_writes_only_chunks_that_differ(tmp_path: Path) -> None:
    """It wrote all again, a fifth of its time and as much dead space as the index."""
    path = tmp_path / "a.cera"
    with opened(path) as store:
        fill(store, 3_000)
        store.checkpoint()
        old = chunks(store, "fulltext")
        digests = store.stream.digests()
    with opened(path) as store:
        before = path.stat().st_size
        assert store.upkeep.rebuild("fulltext").equal
        assert chunks(store, "fulltext") == old
        # A page of references, the ledger, the TOC and its footer.
        assert path.stat().st_size - before < 16_384
    spoil(path, old[2].offset + 64 + old[2].length // 2)
    with opened(path) as store:
        assert store.upkeep.rebuild("fulltext").seq == 3_000
        new = chunks(store, "fulltext")
        assert [ref for ref in new if ref not in old] == [new[2]]
        assert store.stream.digests() == digests
        assert store.verify().ok


def test_progress_that_names_chunks_of_the_old_state_is_counted_once(half_rebuilt: Path) -> None:
    """Else dead space that the progress shares with the old state would not show."""
    with opened(half_rebuilt) as store:
        toc = log_of(store).toc()
        (side,) = (key for key in toc.projections if key.endswith("~"))
        shared = log_of(store).file.page(toc.saved(side).chunks[0])
        assert {*shared} <= {*chunks(store, "fulltext")}
        verification = store.verify()
        assert verification.ok
        size = half_rebuilt.stat().st_size
        assert 0 < verification.log.dead_bytes < size


def test_a_compaction_during_a_rebuild_takes_no_chunk_away(tmp_path: Path) -> None:
    """The chunks of the old state have other places afterwards, so the rebuild writes its own."""
    path = tmp_path / "a.cera"
    with opened(path) as store:
        fill(store, 1_500)
        store.checkpoint()
        fill(store, 1_500, seed=2)
        store.checkpoint()
        digests = store.stream.digests()
    compacted: list[int] = []

    def beside(_what: str, done: int, total: int) -> None:
        if done == total and not compacted:
            compacted.append(done)
            with opened(path) as other:
                other.upkeep.compact()

    with opened(path) as store:
        assert store.upkeep.rebuild(["frames", "fulltext"], beside).equal
        assert store.stream.digests() == digests
    assert compacted == [3_000]
    with opened(path) as store:
        assert store.stream.digests() == digests
        assert fold_of(store).reports["fulltext"].bad_chunks == ()
        assert store.verify().ok


def test_an_old_state_far_behind_the_head_is_compared_at_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its last ranges were joined in a fold to the head, and each looked like a difference."""
    path = tmp_path / "a.cera"
    with opened(path) as store:
        fill(store, 5_000)
        store.checkpoint()
        digests = store.stream.digests()
    with opened(path) as store:
        monkeypatch.setattr(fold_of(store), "save_gradually", _save_nothing)
        fill(store, 5_000, seed=2)
        log_of(store).abandon()
    with opened(path) as store:
        toc = log_of(store).toc()
        assert {toc.saved(key).seq for key in toc.projections} == {5_000}
        assert store.stream.digests() != digests
        result = store.upkeep.rebuild()
        assert (result.divergences, result.unmatched) == ((), ())
        assert store.verify().ok


def test_a_damaged_chunk_of_a_killed_rebuild_is_made_anew(half_rebuilt: Path) -> None:
    """It was carried into the result, which was damaged then and served."""
    with opened(half_rebuilt, "r") as store:
        toc = log_of(store).toc()
        (side,) = (key for key in toc.projections if key.endswith("~"))
        chunk = log_of(store).file.page(toc.saved(side).chunks[0])[0]
    spoil(half_rebuilt, chunk.offset + 64 + chunk.length // 2)
    with opened(half_rebuilt) as store:
        store.upkeep.rebuild("fulltext")
        assert fold_of(store).reports.get("frames") is None
    check_is_rebuilt(half_rebuilt)


def test_of_two_rebuilds_at_once_both_end_and_a_checkpoint_stays(half_rebuilt: Path) -> None:
    """The second one to end found its side gone, and took the checkpoint out of the file."""
    ended: list[int] = []

    def beside(_what: str, done: int, total: int) -> None:
        if done == total and not ended:
            ended.append(done)
            with opened(half_rebuilt) as other:
                other.upkeep.rebuild("fulltext")

    with opened(half_rebuilt) as store:
        store.upkeep.rebuild("fulltext", beside)
    assert ended == [3_000]
    check_is_rebuilt(half_rebuilt)


def test_a_rebuild_that_another_overtook_and_left_is_whole(half_rebuilt: Path) -> None:
    """What the other one saved and did not finish is not put in the place of what serves."""
    seen: list[int] = []

    def beside(_what: str, done: int, total: int) -> None:
        seen.append(done)
        if len(seen) == 1:
            kill_rebuild(half_rebuilt, 2_560)

    with opened(half_rebuilt) as store:
        store.upkeep.rebuild("fulltext", beside)
    assert seen[-1] == 3_000
    check_is_rebuilt(half_rebuilt)


def test_what_is_being_rebuilt_is_told_from_what_serves(half_rebuilt: Path) -> None:
    """Both went by one name, and the side's seq was shown."""
    with opened(half_rebuilt, "r") as store:
        shown = store.upkeep.info()["checkpoints"]
        version = FulltextProjection.version
        assert isinstance(shown, dict)
        assert shown[f"fulltext/{version}"] == 3_000
        assert shown[f"fulltext/{version}~"] == 1_024


class _Seen:
    """What a rebuild said of its progress."""

    def __init__(self) -> None:
        self.done: list[int] = []

    def __call__(self, _what: str, done: int, _total: int) -> None:
        self.done.append(done)


def test_a_rebuild_may_be_killed_at_any_write(monkeypatch: pytest.MonkeyPatch) -> None:
    """After each write, whole or half: the file opens, the old state serves, the rebuild ends."""
    monkeypatch.setattr(feeding, "_SAVE_SEQS", 512)
    disk = Disk()
    registry = Registry([Spending])
    source = Random(3)
    with disk.open() as log:
        for first in range(1, 1_500, 250):
            log.append([draft(source, first + n) for n in range(250)])
        fold = Fold(log, registry)
        fold.save()
        digests = fold.digests()
        before = disk.image()
        writes: list[tuple[int, bytes]] = []
        write_at = type(log.file.file).write_at

        def recorded(file: Any, offset: int, data: Buffer) -> None:
            writes.append((offset, bytes(data)))
            write_at(file, offset, data)

        with monkeypatch.context() as patched:
            patched.setattr(type(log.file.file), "write_at", recorded)
            rebuild(log, fold, ["fulltext"])
    assert len(writes) >= 6
    begun: set[int] = set()
    for count, (offset, data) in enumerate(writes):
        for part in (b"", data[: len(data) // 2]):
            image = bytearray(before)
            for at, written in [*writes[:count], (offset, part)]:
                image.extend(bytes(max(0, at + len(written) - len(image))))
                image[at : at + len(written)] = written
            with Disk.holding(image).open() as log:
                fold = Fold(log, registry)
                assert fold.digests() == digests
                assert {report.replayed_events for report in fold.reports.values()} == {0}
                seen = _Seen()
                rebuild(log, fold, ["fulltext"], seen)
                begun.add(seen.done[0])
                assert fold.digests() == digests == replay(log, registry=registry).digests()
    # It went on from each of the saves, from the start, and over a whole one.
    assert begun == {512, 1_024, 1_500}
