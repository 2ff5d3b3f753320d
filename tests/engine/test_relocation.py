"""Following a log that was compacted into another file, and clearing the flag of one that died."""

from typing import Literal

import pytest
from msgspec.structs import replace

from cerata.engine.codec import SpillRef
from cerata.engine.copies.backup import back_up
from cerata.engine.disk.memory_storage import MemoryFile
from cerata.engine.disk.storage import LockName, StorageFile
from cerata.engine.errors import Corrupt, NotFound, Unsupported
from cerata.engine.limits import PAGE_SIZE
from cerata.engine.log import Log
from cerata.engine.log_file.file import PAGES_SIZE, LogFile, choose_page, turned
from cerata.engine.log_file.relocation import clear_moved, follow_move
from cerata.engine.verify import verify_log

from ..inside import state_of
from .words import PATH, Disk, put, texts

NEW = "new.cera"


def set_moved(disk: Disk) -> None:
    """Set the flag, as a compactor does under the writer lock when its new file is durable."""
    file = disk.storage.open(PATH, mode="rw")
    page, _ = choose_page(file.read_at(0, PAGES_SIZE), PATH)
    moved = replace(turned(page), moved=True)
    file.write_at(moved.number * PAGE_SIZE, moved.encode())
    file.sync()
    file.close()


def compact(disk: Disk) -> None:
    """Do what a compactor does: a new file of the same log takes the old one's place."""
    with disk.log(mode="r") as log:
        back_up(log, NEW)
    set_moved(disk)
    disk.storage.rename(NEW, PATH)


def is_moved(disk: Disk) -> bool:
    page, _ = choose_page(disk.image()[:PAGES_SIZE], PATH)
    return page.moved


def test_writers_and_readers_go_over_to_the_new_file() -> None:
    """Their next call is made there; nothing is lost, and views stay as they were."""
    disk = Disk()
    one, two, reader = disk.open(), disk.open(), disk.open(mode="r")
    one.append([put("a")])
    one.seal()
    one.append([put("b")])
    old = disk.node()
    reading = two.read()
    two.refresh()
    reading = two.read()
    next(reading)
    compact(disk)
    image = bytes(old.data)
    assert one.append([put("c")]).first_seq == 3
    assert two.append([put("d")], expect=3).first_seq == 4
    assert reader.refresh().seq == 4
    assert texts(one) == ["a", "b", "c"]
    assert texts(two) == texts(reader) == ["a", "b", "c", "d"]
    assert [event.seq for event in reading] == [2]
    assert bytes(old.data) == image
    for log in (one, two, reader):
        log.close()
    with disk.log() as log:
        assert texts(log) == ["a", "b", "c", "d"]
        assert log.report.alone
        assert verify_log(log).problems == ()


def is_alone(disk: Disk) -> bool:
    """Tell whether one who came now would take itself for alone on the file."""
    file = disk.storage.open(PATH, mode="rw")
    alone = file.try_lock(LockName.PRESENCE, exclusive=True)
    file.close()
    return alone


def test_a_writer_that_went_over_is_there_and_a_reader_is_not() -> None:
    """Another opener must not recover a file that somebody writes in; a reader hinders nobody."""
    disk = Disk()
    one, reader = disk.open(), disk.open(mode="r")
    compact(disk)
    assert reader.refresh().seq == 0
    assert is_alone(disk)
    one.append([put("a")])
    assert not is_alone(disk)
    one.close()
    assert is_alone(disk)
    reader.close()


@pytest.mark.unwatched("the test writes over the file")
def test_following_goes_nowhere_where_nothing_moved() -> None:
    """And the flag of one who died is given to whoever may clear it."""
    disk = Disk()
    with disk.log() as log:
        position = state_of(log)
        cleared: list[int] = []

        def follow() -> bool:
            return follow_move(
                position,
                position.log_file.read_pages(),
                disk.environment,
                writable=True,
                lock_timeout=0,
                clear=lambda page: cleared.append(page.flip),
            )

        assert not follow()
        log.seal()
        assert not follow()
        assert cleared == []
        set_moved(disk)
        file = position.log_file.file
        assert not follow()
        assert cleared == [log.page.flip + 1]
        assert position.log_file.file is file


@pytest.mark.unwatched("the test writes over the file")
def test_a_flag_is_cleared_durably_or_not_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """A newer Cerata's file is left alone; else both pages are synced in turn."""
    disk = Disk()
    disk.open().close()
    set_moved(disk)
    file = disk.storage.open(PATH, mode="rw")
    page, _ = choose_page(file.read_at(0, PAGES_SIZE), PATH)
    log_file = LogFile(file, PATH, page.file_id)
    image = disk.image()
    with pytest.raises(Unsupported):
        clear_moved(log_file, replace(page, write_features=1))
    assert disk.image() == image
    synced: list[bool] = []

    def sync(_: MemoryFile) -> None:
        synced.append(is_moved(disk))

    monkeypatch.setattr(MemoryFile, "sync", sync)
    clear_moved(log_file, page)
    assert synced == [True, False]
    assert choose_page(disk.image()[:PAGES_SIZE], PATH)[0] == replace(turned(page), moved=False)


@pytest.mark.unwatched("the test writes over the file")
def test_a_compactor_that_died_before_the_rename_is_cleared() -> None:
    """The path still names the same file: it goes on, by the first who holds the writer lock."""
    disk = Disk()
    with disk.log() as log:
        log.append([put("a")])
        set_moved(disk)
        assert is_moved(disk)
        log.refresh()
        assert is_moved(disk)
        log.append([put("b")])
        assert not is_moved(disk)
        assert verify_log(log).problems == ()
    with disk.log() as log:
        assert texts(log) == ["a", "b"]


def test_an_opener_clears_it_too() -> None:
    """Alone or not."""
    disk = Disk()
    with disk.log() as log:
        log.append([put("a")])
    set_moved(disk)
    with disk.log(mode="r") as log:
        assert texts(log) == ["a"]
    assert is_moved(disk)
    with disk.log() as log:
        assert texts(log) == ["a"]
        assert not is_moved(disk)
    image = disk.image()
    with disk.log():
        pass
    assert disk.image() == image


def test_an_opener_that_waited_opens_what_the_path_names_now() -> None:
    """It had the old file open when the compactor renamed the new one over it."""
    disk = Disk()
    with disk.log() as log:
        log.append([put("a")])
    waiting = disk.storage.open(PATH, mode="rw")
    old = disk.node()
    compact(disk)
    given = [waiting]
    opened = disk.storage.open

    def reopened(path: str, *, mode: Literal["r", "rw"]) -> StorageFile:
        return given.pop() if given and mode == "rw" else opened(path, mode=mode)

    disk.storage.open = reopened  # type: ignore[method-assign]
    with disk.log() as log:
        log.append([put("b")])
        assert not any(old.holders.values()), "the old one was given back"
    with disk.log(mode="r") as log:
        assert texts(log) == ["a", "b"]


def test_a_large_batch_is_written_again_into_the_new_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its extent went into the old one, which the record would name in vain."""
    disk = Disk()
    log = disk.open()
    log.append([put("a")])
    write = Log._write_spill
    spills: list[SpillRef] = []

    def then_compact(self: Log, *arguments: object) -> object:
        spill = write(self, *arguments)  # type: ignore[arg-type]
        if not spills:
            compact(disk)
        spills.append(spill.ref)
        return spill

    monkeypatch.setattr(Log, "_write_spill", then_compact)
    log.append([put("large" * 9000)])
    assert len(spills) == 2
    log.close()
    with disk.log() as log:
        assert texts(log) == ["a", "large" * 9000]
        assert verify_log(log).problems == ()


def test_a_stranger_in_the_logs_place_is_refused() -> None:
    """Another log with its own id must not get this one's events."""
    disk = Disk()
    log = disk.open()
    log.append([put("a")])
    disk.open(path=NEW).close()
    set_moved(disk)
    disk.storage.rename(NEW, PATH)
    image = disk.image()
    with pytest.raises(Corrupt, match="names another log"):
        log.append([put("b")])
    assert disk.image() == image
    assert is_alone(disk), "the stranger was given back"


def test_a_log_that_is_gone_is_not_found() -> None:
    """It was moved, and the file that it moved to was removed."""
    disk = Disk()
    log = disk.open()
    log.append([put("a")])
    set_moved(disk)
    disk.storage.unlink(PATH)
    with pytest.raises(NotFound, match="gone"):
        log.append([put("b")])
