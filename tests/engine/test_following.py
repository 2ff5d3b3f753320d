"""Several handles on one file: what each sees of the others."""

import pytest

from cerata.engine.copies.backup import back_up
from cerata.engine.disk.memory_storage import MemoryFile
from cerata.engine.errors import Corrupt
from cerata.engine.log_file.log_state import LogState
from cerata.engine.segments.reader import Snapshot

from .test_log import whole
from .words import PATH, Disk, put, texts


def test_two_handles_follow_each_other() -> None:
    """Appends alternate; each sees the other's on refresh, sealed or not."""
    disk = Disk()
    with disk.log() as one, disk.log() as two, disk.log(mode="r") as reader:
        for number in range(300):
            (one if number % 3 else two).append([put(str(number))])
            if number % 50 == 7:
                two.seal()
            if number % 11 == 0:
                assert reader.refresh().seq == number + 1
        assert one.refresh() == two.refresh()
        expected = [str(number) for number in range(300)]
        assert texts(one) == texts(two) == expected
        reader.refresh()
        assert texts(reader) == expected
    whole(disk, expected)


def test_a_writer_reads_on_without_a_sync_of_what_its_own_sync_covers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each commit of two writers synced twice: first the other's events, then its own.

    Events that no record proves durable stay hidden, unless one of them is asked for.
    """
    syncs: list[MemoryFile] = []
    sync = MemoryFile.sync

    def counting(file: MemoryFile) -> None:
        syncs.append(file)
        sync(file)

    monkeypatch.setattr(MemoryFile, "sync", counting)
    disk = Disk()
    with disk.log() as one, disk.log() as two:
        one.append([put("a")])
        syncs.clear()
        assert two.refresh_for("useEmbedder").seq == 0
        assert syncs == []
        # The next record names the first as durable.
        one.append([put("b")])
        syncs.clear()
        assert two.refresh_for("useEmbedder").seq == 1
        assert syncs == []
        assert two.append([put("c")]).durable
        assert len(syncs) == 1
        assert texts(two) == ["a", "b", "c"]
        one.refresh()
        one.append([put("d")])
        syncs.clear()
        assert two.refresh_for("putFrame").seq == 4
        assert len(syncs) == 1
        # A seal proves everything.
        one.append([put("e")])
        one.seal()
        syncs.clear()
        assert two.refresh_for("useEmbedder").seq == 5
        assert syncs == []
        assert two.page == one.page
    whole(disk, [*"abcde"])


def test_a_look_that_finds_nothing_new_makes_no_snapshot(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each put of a transaction looks; a snapshot of the batches not yet synced took longer."""
    calls: list[LogState] = []
    snapshot = LogState.snapshot

    def counting(state: LogState) -> Snapshot:
        calls.append(state)
        return snapshot(state)

    monkeypatch.setattr(LogState, "snapshot", counting)
    disk = Disk()
    with disk.log(sync=100) as one, disk.log(sync=100) as two:
        one.append([put("a")])
        calls.clear()
        assert one.refresh_for("useEmbedder").seq == 1
        assert calls == []
        assert two.refresh_for("putFrame").seq == 1
        calls.clear()
        assert two.refresh_for("putFrame").seq == 1
        assert calls == []
        one.append([put("b")])
        one.seal()
        assert two.refresh_for("useEmbedder").seq == 2
        assert two.page == one.page
    whole(disk, [*"ab"])


def test_an_append_sees_whichever_page_was_turned() -> None:
    """It looks only where the two pages meet; a seal alone leaves the ring as it was."""
    disk = Disk()
    with disk.log() as one, disk.log() as two:
        for number in range(4):
            one.append([put(f"one {number}")])
            two.refresh()
            one.seal()
            assert two.page.flip < one.page.flip
            two.append([put(f"two {number}")])
            assert (two.page, one.page.number) == (one.page, number % 2)
    whole(disk, [f"{name} {number}" for number in range(4) for name in ("one", "two")])


def test_a_snapshot_stays_while_others_write_and_seal() -> None:
    """A read that began goes on over what it began with."""
    disk = Disk()
    with disk.log() as writer, disk.log() as log:
        for number in range(20):
            log.append([put(str(number))])
        reading = log.read()
        next(reading)
        snapshot = log.snapshot
        for number in range(400):
            writer.append([put("later" + str(number))])
        log.refresh()
        assert [event.seq for event in reading] == list(range(2, 21))
        assert [event.seq for event in log.reader.events(snapshot, 1, 20)] == list(range(1, 21))


def test_marks_between_batches_do_not_disturb() -> None:
    """Every handle that closes leaves one."""
    disk = Disk()
    with disk.log() as stays:
        for number in range(10):
            with disk.log() as log:
                log.append([put(str(number))])
        stays.append([put("last")])
    whole(disk, [*(str(number) for number in range(10)), "last"])


# --- a file that is not where it was -------------------------------------------------------------


def test_a_removed_file_is_not_followed() -> None:
    """What another appends there has no name any more; reading on would look like nothing new."""
    disk = Disk()
    log = disk.open()
    log.append([put("a")])
    disk.storage.unlink(PATH)
    with pytest.raises(Corrupt, match="was removed while it was open"):
        log.refresh()


def test_a_file_put_in_its_place_is_not_followed() -> None:
    """As a sync tool or an editor does; a compacted one says so in the old one's header."""
    disk = Disk()
    log, reader = disk.open(), disk.open(mode="r")
    log.append([put("a")])
    back_up(log, "copy.cera")
    disk.storage.rename("copy.cera", PATH)
    for handle in (log, reader):
        with pytest.raises(Corrupt, match="was replaced by another while it was open"):
            handle.refresh()
