"""The witnesses: a second proof of what is durable, beside the ring that damage may take."""

from collections.abc import Callable
from random import Random
from unittest import mock

import pytest

from cerata.engine.copies.backup import back_up
from cerata.engine.copies.compact import Steps, compact
from cerata.engine.disk.memory_storage import MemoryFile
from cerata.engine.errors import Corrupt, StorageFailed
from cerata.engine.format.page import HeaderPage
from cerata.engine.format.witness import decode_witness, encode_witness
from cerata.engine.limits import SECTOR_SIZE
from cerata.engine.log import Log
from cerata.engine.log_file.file import choose_page
from cerata.engine.verify import verify_log

from .words import Disk, counted, failing, put, texts

KEY = bytes(range(32))
Contents = Callable[[int], bytes]


def page_of(disk: Disk) -> HeaderPage:
    return choose_page(disk.image()[:8192], "brain.cera")[0]


def named(log: Log) -> tuple[int | None, int | None]:
    return log.file.read_witnesses(log.page)


def written(count: int, *, close: bool, sync: str = "commit") -> Disk:
    """Return a disk with events in the ring, one a batch, whose writer closed or was killed."""
    disk = Disk()
    log = disk.open(sync=sync)
    for number in range(count):
        log.append([put(f"word {number}")])
    if close:
        log.close()
    disk.kill()
    return disk


def test_no_bit_of_a_witness_can_change() -> None:
    """It is what says that events are missing; nor does it hold in another place or file."""
    data = encode_witness(KEY, 8192, 7)
    assert len(data) == SECTOR_SIZE
    assert decode_witness(KEY, 8192, data) == 7
    assert decode_witness(KEY, 8704, data) is None
    assert decode_witness(bytes(32), 8192, data) is None
    assert decode_witness(KEY, 8192, bytes(SECTOR_SIZE)) is None
    for bit in range(8 * 40):
        bent = bytearray(data)
        bent[bit // 8] ^= 1 << bit % 8
        assert decode_witness(KEY, 8192, bytes(bent)) is None


def test_witnesses_take_turns_and_name_what_is_durable() -> None:
    """Never the batch that they are written with: its sync has not returned."""
    disk = Disk()
    with disk.log() as log:
        seen: list[tuple[int | None, int | None]] = []
        for _ in range(5):
            log.append([put("a")])
            seen.append(named(log))
        # The first that there is to write goes to both: nothing is known of what is there.
        assert seen == [(0, 0), (1, 1), (2, 1), (2, 3), (4, 3)]
        log.close()
        with disk.log(mode="r") as reader:
            assert named(reader) == (5, 5)


def test_a_seal_needs_no_witness() -> None:
    """The header pages name what is sealed."""
    with Disk().log() as log:
        log.append([put("a")])
        log.seal()
        # The seal has written both, over a failed sync of an earlier process.
        assert named(log) == (1, 1)
        with counted("write_at") as writes:
            log.append([put("b")])
        assert len(writes) == 1
        assert named(log) == (1, 1)


def test_what_did_not_rise_is_not_written_again() -> None:
    """Under a number of bytes, and by a batch behind a mark."""
    with Disk().log(sync=1 << 20) as log:
        log.append([put("a")])
        with counted("write_at") as writes:
            log.append([put("b")])
        assert len(writes) == 1
        log.commit()
        with counted("write_at") as writes:
            log.append([put("c")])
        assert len(writes) == 3
    with Disk().log(sync="always") as log:
        log.append([put("a")])
        assert named(log) == (1, 1)
        with counted("write_at") as writes:
            log.append([put("b")])
        # The record, the two witnesses and the mark.
        assert len(writes) == 4
        assert named(log) == (2, 2)


def test_processes_that_take_turns_write_the_older_witness() -> None:
    """Otherwise both might write the same one, and the other would fall behind."""
    disk = Disk()
    with disk.log() as one, disk.log() as two:
        for _ in range(3):
            one.append([put("a")])
            two.append([put("b")])
        # The last of six knows of its own four; nobody told it that the fifth is synced.
        assert sorted(value or 0 for value in named(one)) == [3, 4]


@pytest.mark.unwatched("the test writes over the file")
@pytest.mark.parametrize("contents", [bytes, Random(1).randbytes], ids=["zeros", "noise"])
@pytest.mark.parametrize("count", [1, 5, 60])
def test_a_range_over_the_end_of_the_ring_is_noticed(count: int, contents: Contents) -> None:
    """Without the witnesses zeros left 0 to 59 of 60 acknowledged events, and said nothing."""
    for first in {0, count // 2, count - 1}:
        disk = written(count, close=True)
        page = page_of(disk)
        start = page.ring_start + first * SECTOR_SIZE
        for stop in (page.ring_start + (count + 1) * SECTOR_SIZE, page.ring_end + SECTOR_SIZE):
            hit = Disk.holding(disk.image())
            hit.spoil(start, contents(stop - start))
            for mode in ("r", "rw"):
                with pytest.raises(Corrupt, match=f"Events {first + 1} to {count} were ackn"):
                    hit.open(mode=mode)


@pytest.mark.unwatched("the test writes over the file")
def test_of_a_killed_writer_only_the_last_batch_can_go_unseen() -> None:
    """Whatever else the range holds; one witness less is one batch more, and that is reported."""
    disk = written(6, close=False)
    page = page_of(disk)
    at = page.ring_start
    assert_lost(disk, at + 5 * SECTOR_SIZE, page.ring_end, [f"word {n}" for n in range(5)])
    for first in range(5):
        hit = Disk.holding(disk.image())
        hit.spoil(at + first * SECTOR_SIZE, bytes(page.ring_end - at - first * SECTOR_SIZE))
        with pytest.raises(Corrupt):
            hit.open()


def assert_lost(disk: Disk, start: int, stop: int, left: list[str]) -> None:
    hit = Disk.holding(disk.image())
    hit.spoil(start, bytes(stop - start))
    with hit.log(mode="r") as log:
        assert texts(log) == left


@pytest.mark.unwatched("the test writes over the file")
@pytest.mark.parametrize("number", [0, 1])
def test_a_damaged_witness_is_reported_and_mended(number: int) -> None:
    """Its events are all there; a reader says so, and an opener for writing writes it anew."""
    disk = written(3, close=True)
    offset = page_of(disk).witness_offsets[number]
    disk.spoil(offset, b"noise")
    with disk.log(mode="r") as log:
        assert log.report.bad_witnesses == (number,)
        assert [problem.offset for problem in verify_log(log).problems] == [offset]
        assert len(texts(log)) == 3
    with disk.log() as log:
        assert log.report.bad_witnesses == (number,)
        assert named(log) == (3, 3)
    with disk.log() as log:
        assert log.report.is_clean
        assert verify_log(log).problems == ()


@pytest.mark.unwatched("the test writes over the file")
@pytest.mark.parametrize("contents", [bytes, Random(2).randbytes], ids=["zeros", "noise"])
@pytest.mark.parametrize("reopened", [0, 1, 2])
def test_damage_to_ring_and_both_witnesses_is_refused_until_it_is_repaired(
    reopened: int, contents: Contents
) -> None:
    """It took every batch; no opening said so, and the next write left no trace of the loss."""
    disk = written(5, close=True)
    for _ in range(reopened):
        with disk.log() as log:
            log.append([put("b")])
    page = page_of(disk)
    assert page.number == 0
    for start in (4_096, page.witness_offsets[0]):
        hit = Disk.holding(disk.image())
        hit.spoil(start, contents(page.ring_end + SECTOR_SIZE - start))
        for mode in ("r", "rw", "rw"):
            with pytest.raises(Corrupt):
                hit.open(mode=mode)
        with hit.log(salvage=True) as log:
            assert texts(log) == []


@pytest.mark.unwatched("the test writes over the file")
def test_an_older_ring_with_its_witnesses_is_behind_the_page() -> None:
    """All of it verifies, and only the header page names the events that are gone."""
    disk = Disk()
    log = disk.open()
    log.append([put("a")])
    older = disk.image()
    log.append([put("b")])
    log.close()
    page = page_of(disk)
    for start in (4_096, page.witness_offsets[0]):
        disk.spoil(start, older[start : page.ring_end + SECTOR_SIZE])
        for mode in ("r", "rw"):
            with pytest.raises(Corrupt, match="Events 2 to 2 were acknowledged"):
                disk.open(mode=mode)


@pytest.mark.unwatched("the test writes over the file")
@pytest.mark.parametrize("close", [False, True])
def test_both_witnesses_are_torn_only_by_the_crash_of_an_open_log(close: bool) -> None:
    """The page of a clean close comes after their sync: there it is damage, with no event gone."""
    disk = written(3, close=close)
    for offset in page_of(disk).witness_offsets:
        disk.spoil(offset, b"noise")
    if close:
        with pytest.raises(Corrupt, match="Both witnesses of the log's end are damaged"):
            disk.open()
        return
    with disk.log() as log:
        assert log.report.bad_witnesses == (0, 1)
        assert len(texts(log)) == 3
    with disk.log() as log:
        assert log.report.is_clean


def no_report(_step: str, _count: int, _total: int) -> None: ...


def test_a_copy_of_earlier_events_does_not_claim_the_head_of_its_original() -> None:
    """The page of a copy is made from that of the original, which names a later event."""
    disk = written(4, close=True)
    with disk.log() as log:
        assert log.page.closed_seq == 4
        back_up(log, "copy.cera", through=2)
        log.append([put("b")])
        steps = Steps(lambda: None, lambda _: None, no_report, lambda: False)
        assert compact(log, steps) is not False
    with disk.open("copy.cera") as log:
        assert (log.page.closed_seq, len(texts(log))) == (0, 2)


def test_a_clean_close_takes_one_sync_more_than_its_mark() -> None:
    """Of a new file, and of one that was closed before; nothing is written if it named the head."""
    disk, sync_file = Disk(), MemoryFile.sync
    for sync, count in (("commit", 2), ("commit", 2), ("always", 1), ("always", 1)):
        log = disk.open(sync=sync)
        for _ in range(2):
            log.append([put("a")])
        with mock.patch.object(MemoryFile, "sync", autospec=True, side_effect=sync_file) as syncs:
            log.close()
        assert syncs.call_count == count
        assert (page_of(disk).closed_seq, page_of(disk).number) == (log.head.seq, 0)
    with disk.log() as log, counted("write_at") as writes:
        log.close()
    assert writes == []


def test_a_handle_that_wrote_nothing_names_the_head_in_page_0() -> None:
    """Page 1 is so near to the ring that one damage may take both, and an older image hides it."""
    disk = written(3, close=True)
    writer, idle = disk.open(), disk.open()
    writer.append([put("b")])
    idle.close()
    writer.close()
    assert (page_of(disk).closed_seq, page_of(disk).number) == (4, 0)


@pytest.mark.parametrize("after", range(6))
def test_a_close_whose_write_is_refused_loses_nothing(after: int) -> None:
    """The disk refuses one write after the other; the next opening finds the batches."""
    disk = Disk()
    log = disk.open()
    for _ in range(3):
        log.append([put("a")])
    with pytest.MonkeyPatch.context() as patch:
        failing("write_at", patch, after=after)
        try:
            log.close()
        except StorageFailed:
            assert after < 5
        else:
            assert after == 5
    with disk.log() as log:
        assert len(texts(log)) == 3


@pytest.mark.unwatched("the test writes over the file")
def test_a_witness_that_a_crash_kept_back_is_written_at_the_next_opening() -> None:
    """The mark reached the disk, its witnesses did not: they would name too little for good."""
    disk = written(3, close=True)
    key = disk.open(mode="r").file.key
    for offset in page_of(disk).witness_offsets:
        disk.spoil(offset, encode_witness(key, offset, 2))
    with disk.log() as log:
        assert log.report.is_clean
        assert named(log) == (3, 3)
        with counted("write_at") as writes:
            log.close()
        assert writes == []


def test_a_batch_whose_witness_cannot_be_written_is_not_there() -> None:
    """It comes first: what was refused must not be found later."""
    disk = Disk()
    log = disk.open()
    log.append([put("a")])
    with pytest.MonkeyPatch.context() as patch:
        failing("write_at", patch)
        with pytest.raises(StorageFailed):
            log.append([put("b")])
    log.append([put("c")])
    log.close()
    with disk.log() as log:
        assert texts(log) == ["a", "c"]
        assert log.report.is_clean


def test_a_reader_meets_half_of_a_write_of_a_witness() -> None:
    """It takes no lock, and looks again."""
    disk = written(2, close=True)
    real, torn = MemoryFile.read_at, [True]

    def tearing(self: MemoryFile, offset: int, size: int) -> bytes:
        data = real(self, offset, size)
        if size == 40 and torn:
            torn.pop()
            return data[:20] + bytes(20)
        return data

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MemoryFile, "read_at", tearing)
        with disk.log(mode="r") as log:
            assert log.report.is_clean
    assert torn == []
