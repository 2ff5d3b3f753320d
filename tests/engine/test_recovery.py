"""Recovery: what each kind of ending of a file means, and what is done about it."""

from collections.abc import Callable
from typing import Any
from unittest import mock

import pytest

from cerata.engine.errors import Corrupt
from cerata.engine.format.extent import ExtentKind
from cerata.engine.format.page import RING_OFFSET
from cerata.engine.log_file import recovery
from cerata.engine.log_file.file import choose_page
from cerata.engine.log_file.recovery import RecoveryReport
from cerata.engine.log_file.ring import look_beyond
from cerata.engine.verify import verify_log

from ..inside import state_of
from .words import Disk, put, stored, texts

FIRST = RING_OFFSET
"""Where the ring, and its first record, begins."""


def disk_with(*words: str, close: bool = False) -> Disk:
    """Return a disk whose writer was killed after appending, or closed; a sector each."""
    disk = Disk()
    log = disk.open()
    for word in words:
        log.append([put(word)])
    if close:
        log.close()
    disk.kill()
    return disk


def recovered(disk: Disk) -> tuple[list[str | None], RecoveryReport]:
    """Open for writing twice: recovering again must change nothing."""
    with disk.log() as log:
        said, report = texts(log), log.report
        assert verify_log(log).problems == ()
        # The handle goes by the page that mending wrote.
        assert log.page == choose_page(log.file.read_pages(), log.path)[0]
    image = disk.image()
    with disk.log() as log:
        assert texts(log) == said
        assert log.report.is_clean
    assert disk.image() == image
    return said, report


def test_a_cleanly_closed_file_needs_nothing() -> None:
    """The mark proves the head."""
    assert recovered(disk_with("a", "b", close=True)) == (["a", "b"], RecoveryReport(alone=True))


def test_a_killed_writers_records_are_sealed_anew() -> None:
    """Their pages may have been marked clean by an earlier failure: no plain sync is trusted."""
    said, report = recovered(disk_with("a", "b"))
    assert (said, report.sealed_events, report.cut_bytes) == (["a", "b"], 2, 0)


@pytest.mark.unwatched("the test writes over the file")
def test_a_torn_tail_is_cut_and_reported_and_kept() -> None:
    """The last group may have been acknowledged; what it was stays in the file."""
    disk = disk_with("a", "b", "c")
    disk.spoil(FIRST + 1024 + 100)
    torn = disk.image()[FIRST + 1024 : FIRST + 1536]
    said, report = recovered(disk)
    assert said == ["a", "b"]
    assert (report.cut_bytes, report.cut_records, report.cut_offset) == (512, 1, FIRST + 1024)
    assert report.ambiguous_tail
    with disk.log() as log:
        kept = log.file.read_extent(log.toc().quarantine[0], ExtentKind.QUARANTINE)
    assert torn in kept


def test_damage_below_what_is_proven_is_corrupt() -> None:
    """The third record says that the second is durable, so it cannot have been torn."""
    disk = disk_with("a", "b", "c")
    disk.spoil(FIRST + 512 + 100)
    image = disk.image()
    for mode in ("r", "rw"):
        with pytest.raises(Corrupt, match="Events 2 to 2 were acknowledged") as caught:
            disk.open(mode=mode)
        assert caught.value.offset == FIRST + 512
    assert disk.image() == image


def test_after_a_clean_close_the_last_record_is_proven_too() -> None:
    """This is what the mark is for."""
    disk = disk_with("a", "b", close=True)
    disk.spoil(FIRST + 512 + 100)
    with pytest.raises(Corrupt, match="Events 2 to 2"):
        disk.open()


@pytest.mark.unwatched("the test writes over the file")
def test_a_hole_in_an_unsynced_group_is_no_corruption() -> None:
    """Any part of what was never synced may be missing; what lies beyond is cut with it."""
    disk = Disk()
    log = disk.open(sync=1 << 20)
    for word in "abc":
        log.append([put(word)])
    disk.kill()
    disk.spoil(FIRST + 512, bytes(512))
    said, report = recovered(disk)
    assert said == ["a"]
    assert (report.cut_records, report.cut_bytes) == (1, 1024)


@pytest.mark.unwatched("the test writes over the file")
def test_a_record_written_after_a_cut_does_not_meet_what_was_cut() -> None:
    """A new incarnation and a zero sector keep the old rest from joining the new log."""
    disk = Disk()
    log = disk.open(sync=1 << 20)
    for word in "abcd":
        log.append([put(word)])
    disk.kill()
    disk.spoil(FIRST + 512 + 100)
    recovered(disk)
    with disk.log() as log:
        log.append([put("x")])
    disk.kill()
    assert recovered(disk)[0] == ["a", "x"]


def test_a_spoilt_sector_after_the_mark_is_all_that_is_cut() -> None:
    """The mark itself was counted as cut, and with it nearly the whole ring."""
    disk = disk_with("a", "b", close=True)
    disk.spoil(FIRST + 1536, b"\1")
    said, report = recovered(disk)
    assert said == ["a", "b"]
    assert (report.cut_bytes, report.cut_records) == (512, 0)


@pytest.mark.parametrize("page", [0, 1])
@pytest.mark.parametrize("close", [False, True])
def test_one_header_page_is_enough(page: int, close: bool) -> None:
    """The other, and the newest footer, say everything; the bad page is written again."""
    disk = disk_with("a", "b", close=close)
    log = disk.open()
    log.append([put("c")])
    log.seal()
    log.append([put("d")])
    if close:
        log.close()
    disk.kill()
    disk.spoil(4096 * page + 50)
    with disk.log(mode="r") as log:
        assert texts(log) == ["a", "b", "c", "d"]
        assert log.report.bad_pages == (page,)
    said, report = recovered(disk)
    assert (said, report.bad_pages) == (["a", "b", "c", "d"], (page,))


def test_orphans_are_trimmed() -> None:
    """Nothing names what a dead writer left at the end."""
    disk = disk_with("a", close=True)
    size = len(disk.image())
    disk.spoil(size, b"orphan" * 1000)
    said, report = recovered(disk)
    assert (said, report.trimmed_bytes, len(disk.image())) == (["a"], 6000, size)


def test_an_opener_that_is_not_alone_trims_nothing() -> None:
    """Another may be writing there."""
    disk = Disk()
    with disk.log() as log:
        log.append([put("a")])
        disk.spoil(len(disk.image()), b"being written")
        with disk.log() as second:
            assert not second.report.alone
            assert second.report.trimmed_bytes == 0


# --- while somebody writes -----------------------------------------------------------------------


def look_beyond_after(act: Callable[[], object]) -> Any:
    """Let somebody else act between the walk of an opening and its look beyond."""
    acted: list[object] = []

    def looking(*arguments: Any) -> Any:
        if not acted:
            acted.append(act())
        return look_beyond(*arguments)

    return mock.patch.object(recovery, "look_beyond", looking)


def test_what_is_proven_while_the_walk_goes_on_is_no_hole() -> None:
    """The walk passed just before it was written; it is walked again, and all of it is there."""
    disk = Disk()
    log = disk.open()
    log.append([put("a")])

    def write() -> None:
        for word in ("b", "c"):
            log.append([put(word)])
        log.close()

    with look_beyond_after(write), disk.log(mode="r") as reader:
        assert texts(reader) == ["a", "b", "c"]
        assert reader.head.seq == 3


@pytest.mark.unwatched("the test writes over the file")
def test_a_hole_behind_what_was_written_meanwhile_is_one() -> None:
    """Walking again finds the first of three; the third proves the second, which is not there."""
    disk = Disk()
    log = disk.open()
    log.append([put("a")])

    def write() -> None:
        log.append([put("b")])
        at = state_of(log).cursor.offset
        log.append([put("c")])
        log.append([put("d")])
        disk.spoil(at + 100)

    with look_beyond_after(write), pytest.raises(Corrupt, match="Events 3 to 3 were acknowledged"):
        disk.open(mode="r")


def test_a_truncated_file_is_refused() -> None:
    """Its header names what is not there any more; a writer must not begin again before it."""
    disk = disk_with("a", close=True)
    size = len(disk.image())
    disk.node().data[:] = disk.image()[:-1]
    for mode in ("r", "rw"):
        with pytest.raises(Corrupt, match=f"is {size - 1:,} bytes; its header names {size:,}"):
            disk.open(mode=mode)
    assert len(disk.image()) == size - 1


def test_a_lost_toc_is_not_rebuilt_without_its_segments() -> None:
    """The events of a lost one are in no other place; nothing is made up and nothing written."""
    disk = Disk()
    with disk.log() as log:
        for word in "abc":
            log.append([put(word)])
            log.seal()
        last = list(log.reader.segment_refs(log.snapshot))[-1]
    disk.spoil(log.page.toc_offset + 10)
    disk.spoil(last.offset + 70)
    image = disk.image()
    with disk.log(mode="r") as log, pytest.raises(Corrupt, match="whole segment ends with event 3"):
        list(log.read())
    with pytest.raises(Corrupt, match="whole segment ends with event 3"):
        disk.open()
    assert disk.image() == image


def test_a_lost_toc_is_rebuilt_from_the_segments() -> None:
    """They describe themselves."""
    disk = Disk()
    with disk.log() as log:
        for word in "abcdef":
            log.append([put(word)])
            log.seal()
        page, events = log.page, stored(log.read())
        head = log.head.chain, log.head.root
    disk.spoil(page.toc_offset + 10)
    with disk.log(mode="r") as log:
        assert stored(log.read()) == events
        assert (log.head.chain, log.head.root) == head
    said, report = recovered(disk)
    assert (said, report.rebuilt_toc) == (list("abcdef"), True)


@pytest.mark.unwatched("the test writes over the file")
def test_a_dead_writers_segment_is_not_taken_for_the_logs() -> None:
    """A flip that died left a whole segment of events that were cut later; a rebuild took it."""
    disk = Disk()
    log = disk.open(sync=1 << 20)
    log.append([put("a")])
    log.seal()
    pages = disk.image()[:8192]
    log.append([put("never acknowledged")])
    log.append([put("nor this")])
    log.seal()
    disk.kill()
    # The footer, the page and the record itself did not reach the disk; the segment did.
    disk.spoil(log.page.toc_offset, bytes(log.page.data_end - log.page.toc_offset))
    disk.spoil(0, pages)
    disk.spoil(FIRST + 512, bytes(1024))
    # Others are there, so nobody trims it.
    with disk.open(mode="rw"), disk.log() as log:
        log.append([put("b")])
        log.seal()
        log.append([put("c")])
        log.seal()
        page = log.page
    disk.spoil(page.toc_offset + 10)
    assert recovered(disk)[0] == ["a", "b", "c"]


def test_damage_met_under_the_writer_lock_is_mended_by_whoever_holds_it() -> None:
    """A dead writer's half record is cut by the next append of a living one."""
    disk = Disk()
    with disk.log() as log:
        log.append([put("a")])
        disk.spoil(state_of(log).cursor.offset, b"half a record")
        log.append([put("b")])
        assert log.report.cut_bytes == 512
        assert texts(log) == ["a", "b"]
    assert recovered(disk)[0] == ["a", "b"]


def test_a_handle_does_not_let_go_of_what_it_knows_to_be_durable() -> None:
    """Its own acknowledged record rots; cutting it as torn would give its seq to another event."""
    disk = Disk()
    log = disk.open()
    log.append([put("a")])
    log.append([put("b")])
    disk.spoil(FIRST + 512 + 100)
    disk.spoil(state_of(log).cursor.offset, b"half a record")
    with pytest.raises(Corrupt, match="went back from event 2 to 1"):
        log.append([put("c")])


def test_a_file_replaced_by_an_older_copy_is_noticed() -> None:
    """A reader that saw event 3 is not told that there are two."""
    disk = Disk()
    log = disk.open()
    log.append([put("a")])
    older = disk.image()
    log.append([put("b")])
    log.seal()
    reader = disk.open(mode="r")
    assert reader.head.seq == 2
    disk.node().data[:] = older
    with pytest.raises(Corrupt, match="restored while it was open"):
        reader.refresh()


def test_pages_of_two_files_are_refused() -> None:
    """A page of another file, written here by mistake, verifies on its own."""
    disk, other = disk_with("a", close=True), Disk()
    other.random.seed(8)
    for _ in range(5):
        with other.log() as log:
            log.append([put("b")])
            log.seal()
    disk.spoil(0, other.image()[:4096])
    with pytest.raises(Corrupt, match="different files"):
        disk.open()


def test_a_copy_taken_between_commits_opens() -> None:
    """``cp`` of a live file."""
    disk = Disk()
    log = disk.open()
    for number in range(200):
        log.append([put(str(number) * 50)])
        with Disk.holding(disk.image()).log(mode="r") as reader:
            assert reader.head.seq == number + 1
    assert len(recovered(Disk.holding(disk.image()))[0]) == 200
