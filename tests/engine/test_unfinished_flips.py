"""A flip whose page was never written: its footer says what it did, and whether all is there."""

import gc

import pytest

from cerata.engine.errors import Corrupt
from cerata.engine.log import Log

from .test_handle_lock import nothing_to_save
from .test_recovery import FIRST, disk_with, recovered
from .words import LATER, Disk, counted, put, texts


def unfinished(disk: Disk, *, killed: bool = True) -> Log:
    """Leave a flip that seals one more event, and whose page was never written."""
    log = disk.open()
    before = disk.image()[:8192]
    log.append([put("c")])
    log.seal()
    if killed:
        disk.kill()
    disk.spoil(0, before)
    return log


def test_a_flip_that_was_not_finished_is_finished() -> None:
    """TOC and footer are whole, the page that names them was never written."""
    disk = disk_with("a", "b")
    unfinished(disk)
    said, report = recovered(disk)
    assert (said, report.adopted_footer) == (["a", "b", "c"], True)


def test_what_an_adopted_footer_names_is_written_again() -> None:
    """The dead writer's sync may have failed: the system shows bytes that the disk never got."""
    disk = disk_with("a", close=True)
    log = disk.open()
    before, older = disk.image()[:8192], log.page
    log.append([put("b")])
    log.seal()
    disk.kill()
    disk.spoil(0, before)
    with counted("write_at") as writes, disk.log() as again:
        assert again.report.adopted_footer
    covered = older.data_end
    for offset, size in sorted(writes):
        if offset <= covered:
            covered = max(covered, offset + size)
    assert covered >= log.page.data_end


@pytest.mark.unwatched("the test writes over the file")
@pytest.mark.parametrize("torn", ["TOC", "footer"])
def test_an_unfinished_flip_that_is_torn_is_ignored(torn: str) -> None:
    """The older state and its ring are still whole."""
    disk = disk_with("a", "b")
    log = unfinished(disk)
    disk.spoil(log.page.toc_offset + 5 if torn == "TOC" else log.page.data_end - 512 + 20)
    said, report = recovered(disk)
    assert (said, report.adopted_footer) == (["a", "b", "c"], False)


def test_an_unfinished_flip_that_sealed_nothing_is_finished() -> None:
    """A TOC is all that it wrote, right where the older state ends."""
    disk = Disk()
    log = disk.open()
    log.append([put("a")])
    log.seal()
    before, older = disk.image()[:8192], log.page
    log.publish_projections(nothing_to_save)
    newer = log.page
    assert (newer.toc_offset, newer.sealed_seq) == (older.data_end, older.sealed_seq)
    disk.kill()
    disk.spoil(0, before)
    with disk.log() as log:
        assert log.report.adopted_footer
        assert log.page.generation > newer.generation
        assert texts(log) == ["a"]


def test_an_unfinished_flip_is_finished_whatever_became_of_older_events() -> None:
    """Only what it wrote itself is asked for: damage to the rest is met by whoever reads it."""
    disk = Disk()
    log = disk.open()
    log.append([put("a")])
    log.seal()
    (old,) = log.reader.segment_refs(log.snapshot)
    before = disk.image()[:8192]
    log.append([put("b")])
    log.seal()
    disk.kill()
    disk.spoil(0, before)
    disk.spoil(old.offset + old.length // 2)
    with disk.log() as log:
        assert log.report.adopted_footer
        assert texts(log, 2) == ["b"]
        with pytest.raises(Corrupt):
            texts(log)


def test_a_toc_that_was_read_to_be_believed_is_not_read_again() -> None:
    """By whoever asks for it after the opening that found it."""
    disk = disk_with("a", close=True)
    log = disk.open()
    before = disk.image()[:8192]
    log.append([put("b")])
    log.seal()
    disk.kill()
    # One page is lost, and the other one is of before.
    disk.spoil(0, before)
    disk.spoil(50)
    with counted("read_at") as reads, disk.log(mode="r") as reader:
        assert texts(reader) == ["a", "b"]
        assert reader.toc().sealed_seq == 2
    assert [offset for offset, _ in reads].count(log.page.toc_offset) == 1


@pytest.mark.unwatched("the test writes over the file")
def test_an_unfinished_cut_stays_cut() -> None:
    """It began a new incarnation, which keeps what was cut from joining what comes after it."""
    disk = Disk()
    log = disk.open(sync=LATER)
    for word in "abcd":
        log.append([put(word)])
    disk.kill()
    disk.spoil(FIRST + 512 + 100)
    before = disk.image()[:8192]
    cutting = disk.open()
    assert cutting.report.cut_records == 3
    disk.kill()
    disk.spoil(0, before)
    with disk.log() as log:
        assert log.report.adopted_footer
        assert log.report.cut_bytes == 0
        assert log.page.incarnation == cutting.page.incarnation
        log.append([put("x")])
    disk.kill()
    assert recovered(disk)[0] == ["a", "x"]


@pytest.mark.unwatched("the test writes over the file")
def test_an_opener_that_is_not_alone_finishes_no_flip() -> None:
    """Another may be about to write the page that names it."""
    disk = disk_with("a", "b")
    # Held to the end: what nobody holds gives its locks back when the collector comes by.
    first = unfinished(disk, killed=False)
    for mode in ("r", "rw"):
        gc.collect()
        with disk.log(mode=mode) as second:
            assert not second.report.adopted_footer
            assert texts(second) == ["a", "b", "c"]
    assert first.is_open
    disk.kill()
