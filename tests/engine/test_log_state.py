"""Where a handle stands in its file: what it takes in of others, and what it shows before whom."""

from unittest import mock

import pytest

from cerata.engine.disk.memory_storage import MemoryFile
from cerata.engine.errors import Corrupt

from ..inside import state_of
from .test_relocation import compact
from .words import LATER, Disk, counted, put, texts


def test_a_picture_of_what_is_durable_ends_with_the_last_batch_that_is() -> None:
    """At every place: none, some, all; with what a segment holds before it."""
    for sealed in (0, 2):
        with Disk().log(sync=LATER) as log:
            recorded = [0] * 7
            for number in range(1, sealed + 1):
                recorded[number] = log.append([put("a")]).head.recorded
            log.seal()
            for number in range(sealed + 1, 7):
                recorded[number] = log.append([put("a")]).head.recorded
            position = state_of(log)
            for durable in range(sealed, 7):
                position.durable = durable
                picture = position.durable_snapshot()
                assert (picture.head_seq, picture.tail_count) == (durable, durable - sealed)
                assert durable == 0 or picture.recorded == recorded[durable]
            position.durable = sealed


def test_what_somebody_else_wrote_is_shown_when_it_is_durable() -> None:
    """Our own unsynced events may be seen by us; another's never, so it is synced first."""
    disk = Disk()
    with disk.log(sync=LATER) as one, disk.log(sync=LATER) as two:
        assert not one.append([put("a")]).durable
        assert not one.append([put("b")]).durable
        assert two.append([put("c")]).durable
        assert not two.append([put("d")]).durable


def test_what_somebody_else_sealed_needs_no_sync_of_ours() -> None:
    """Their page says that it is durable."""
    disk = Disk()
    with disk.log() as one, disk.log(sync=LATER) as two, disk.log(mode="r") as reader:
        one.append([put("a")])
        one.seal()
        with mock.patch.object(MemoryFile, "sync", autospec=True) as syncing:
            assert reader.refresh().seq == 1
            assert not two.append([put("b")]).durable
        assert syncing.call_count == 0


def test_what_somebody_else_wrote_and_proved_needs_no_sync_of_ours() -> None:
    """Its mark says that it is durable; what we write after it is ours alone."""
    disk = Disk()
    one = disk.open()
    with disk.log(sync=LATER) as two:
        one.append([put("a")])
        one.close()
        assert not two.append([put("b")]).durable
        assert texts(two) == ["a", "b"]


def test_pages_that_were_taken_in_are_not_read_again() -> None:
    """The first append after another's seal reads them, the second does not."""
    disk = Disk()
    with disk.log() as one, disk.log() as two:
        one.append([put("a")])
        one.seal()
        two.append([put("b")])
        with counted("read_at") as reads:
            two.append([put("c")])
        assert sum(size for _, size in reads) < 2_000


def test_a_log_never_goes_back_before_what_was_shown() -> None:
    """Shown to this handle's readers, though no sync has made it durable."""
    disk = Disk()
    log = disk.open(sync=LATER)
    starts: list[int] = []
    for word in ("a", "b", "c"):
        starts.append(state_of(log).cursor.offset)
        log.append([put(word)])
    disk.spoil(starts[1] + 100)
    disk.spoil(state_of(log).cursor.offset, b"half a record")
    with pytest.raises(Corrupt, match="went back from event 3 to 1"):
        log.append([put("d")])


def test_after_a_move_everything_is_looked_for_in_the_new_file() -> None:
    """Keys that only it has, and that it is the one that the path names."""
    disk = Disk()
    log, reader = disk.open(), disk.open(mode="r")
    log.append([put("a")], key="a")
    log.seal()
    reader.refresh()
    compact(disk)
    with disk.log() as other:
        other.append([put("b")], key="b")
        other.seal()
    assert log.append([put("b")], key="b").first_seq == 2
    assert log.append([put("a")], key="a").first_seq == 1
    assert log.append([put("c")]).first_seq == 3
    for handle in (reader, log):
        for _ in range(2):
            assert handle.refresh().seq == 3
        assert texts(handle) == ["a", "b", "c"]
