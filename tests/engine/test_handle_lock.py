"""A handle's hold on its file: who may use it, who waits, and what is mended after a break-off."""

import errno
import os
import threading
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from cerata.engine import log as log_module
from cerata.engine.disk.memory_storage import MemoryFile
from cerata.engine.disk.storage import LockName
from cerata.engine.errors import Closed, Conflict, Locked, OutcomeUnknown, ReadOnly, StorageFailed
from cerata.engine.log_file.handle_lock import HandleLock
from cerata.engine.log_file.log_state import LogState
from cerata.engine.open import open_log

from .test_relocation import compact, set_moved
from .words import RING, Disk, counted, put, texts


def test_a_handle_says_whether_calls_can_succeed() -> None:
    """Open, closed, or poisoned by a sync that failed."""
    disk = Disk()
    log = disk.open()
    assert (log.is_open, log.is_writable) == (True, True)
    log.close()
    assert not log.is_open
    failing = disk.open()
    with (
        mock.patch.object(MemoryFile, "sync", side_effect=StorageFailed("no")),
        pytest.raises(OutcomeUnknown),
    ):
        failing.append([put("a")])
    assert not failing.is_open
    failing.close()
    reader = disk.open(mode="r")
    assert (reader.is_open, reader.is_writable) == (True, False)
    with pytest.raises(ReadOnly):
        reader._lock.writing().__enter__()
    reader.close()
    with pytest.raises(Closed):
        reader._lock.writing().__enter__()


def nothing_to_save(*_: object) -> dict[str, None]:
    return {}


# --- locks ---------------------------------------------------------------------------------------


def test_two_handles_never_write_at_once() -> None:
    """The second waits for as long as it may, and not at all where it was told so."""
    disk = Disk()
    one, two = disk.open(), disk.open(lock_timeout=2.0)
    with one._lock.writing():
        with pytest.raises(Locked, match="waited 2 s"):
            two.append([put("a")])
        assert disk.clock.waited >= 2
        before = disk.clock.waited
        with pytest.raises(Locked):
            two.publish_projections(nothing_to_save, wait=False)
        assert disk.clock.waited == before
    assert two.append([put("a")]).first_seq == 1
    one.close()
    two.close()


def test_a_reader_that_finds_no_quiet_moment_shares_the_lock_with_readers() -> None:
    """It makes writers wait, never another reader."""
    disk = Disk()
    with disk.log() as log, disk.log(mode="r", lock_timeout=0) as reader:
        log.append([put("a")])
        other = disk.storage.open("brain.cera", mode="r")
        assert other.try_lock(LockName.WRITER, exclusive=False)
        with mock.patch.object(log_module, "_READ_TRIES", 0):
            assert reader.refresh().seq == 1
            other.unlock(LockName.WRITER)
            log.append([put("b")])
            assert other.try_lock(LockName.WRITER, exclusive=True)
            with pytest.raises(Locked):
                reader.refresh()
        other.close()


@pytest.mark.parametrize("place", ["wait_for_writer", "begin_change", "catch_up"])
def test_an_interrupt_on_the_way_in_leaves_no_lock(place: str) -> None:
    """Whether it came before the lock, with it, or while catching up."""
    disk = Disk()
    one, two = disk.open(), disk.open(lock_timeout=0)
    real = getattr(HandleLock, place)

    def interrupted(self: HandleLock, *arguments: Any, **options: Any) -> None:
        real(self, *arguments, **options)
        raise KeyboardInterrupt

    with mock.patch.object(HandleLock, place, interrupted), pytest.raises(KeyboardInterrupt):
        one.append([put("a")])
    assert two.append([put("b")]).first_seq == 1
    assert one.append([put("c")]).first_seq == 2
    assert texts(one) == ["b", "c"]


# --- what a break-off leaves ---------------------------------------------------------------------


def test_a_refresh_that_was_broken_off_is_done_again() -> None:
    """Its cursor had moved and its tail had not: the event between them was never seen again."""
    disk = Disk()
    with disk.log() as log, disk.log(mode="r") as reader:
        log.append([put("a")])
        reader.refresh()
        log.append([put("b")])

        def half(self: LogState, pages: bytes, seen: Any) -> None:
            self.pages, self.cursor = pages, seen.cursor
            raise KeyboardInterrupt

        with mock.patch.object(LogState, "take_in", half), pytest.raises(KeyboardInterrupt):
            reader.refresh()
        assert reader.refresh().seq == 2
        assert texts(reader) == ["a", "b"]


def test_what_was_not_broken_off_is_not_read_again() -> None:
    """Neither after a refresh nor after a refusal: both leave the state whole."""
    disk = Disk()
    with disk.log() as log, disk.log(mode="r") as reader:
        for _ in range(40):
            log.append([put("a" * 900)])
        reader.refresh()
        with counted("read_at") as reads:
            reader.refresh()
        assert sum(size for _, size in reads) < 20_000
        with pytest.raises(Conflict):
            log.append([put("b")], expect=7)
        with counted("read_at") as reads:
            log.append([put("b")])
        assert sum(size for _, size in reads) < 3_000


def test_a_disk_that_failed_in_between_makes_the_state_be_read_again() -> None:
    """A write may have gone half through; what the next call believes is what the file says."""
    disk = Disk()
    with disk.log() as log:
        log.append([put("a")])
        real = MemoryFile.write_at

        def full(self: MemoryFile, offset: int, data: bytes) -> None:
            real(self, offset, data[:100])
            failure = StorageFailed("Cannot write")
            failure.errno = errno.ENOSPC
            raise failure

        with mock.patch.object(MemoryFile, "write_at", full), pytest.raises(StorageFailed):
            log.append([put("b")])
        with counted("read_at") as reads:
            log.append([put("c")])
        assert any(size > 1_000 for _, size in reads)
        assert texts(log) == ["a", "c"]


# --- moves ---------------------------------------------------------------------------------------


def test_files_that_were_left_are_given_back_at_the_close() -> None:
    """Reads that began there may go on until then; after it none is open."""
    disk = Disk()
    log = disk.open()
    log.append([put("a")])
    running = log.read()
    next(running)
    compact(disk)
    with mock.patch.object(MemoryFile, "close", autospec=True) as closing:
        log.append([put("b")])
        log.append([put("c")])
        assert closing.call_count == 0
        log.close()
        assert closing.call_count == 2


def test_a_dead_compactors_flag_that_cannot_be_cleared_poisons() -> None:
    """Its sync failed, so nobody knows which page the disk holds."""
    disk = Disk()
    log = disk.open()
    log.append([put("a")])
    set_moved(disk)
    with (
        mock.patch.object(MemoryFile, "sync", side_effect=StorageFailed("no")),
        pytest.raises(OutcomeUnknown),
    ):
        log.append([put("b")])
    assert not log.is_open
    disk.kill()
    with disk.log() as again:
        assert texts(again) == ["a"]
        again.append([put("c")])


def test_a_child_gives_back_what_it_inherited(tmp_path: Path) -> None:
    """Its copy of the descriptor would hold the locks for as long as it lives."""
    path = str(tmp_path / "a.cera")
    log = open_log(path, ring_bytes=RING)
    before = len(os.listdir("/proc/self/fd"))
    log.abandon()
    assert len(os.listdir("/proc/self/fd")) == before - 1
    with pytest.raises(Closed, match="inherited by fork"):
        log.append([put("a")])
    log.close()


@pytest.mark.parametrize("mutex", ["of the state", "of large batches"])
def test_a_child_does_not_wait_for_a_thread_that_it_does_not_have(
    tmp_path: Path, mutex: str
) -> None:
    """One that held the mutex at the fork, and will never give it back in the child."""
    log = open_log(str(tmp_path / "a.cera"), ring_bytes=RING)
    taken, done = threading.Event(), threading.Event()

    def hold() -> None:
        with log._lock.mutex if mutex == "of the state" else log._spill_mutex:
            taken.set()
            done.wait(30)

    holder = threading.Thread(target=hold)
    holder.start()
    taken.wait(30)
    log.abandon()
    refused: list[type[BaseException]] = []

    def ask() -> None:
        try:
            if mutex == "of the state":
                log.chain_at(0)
            else:
                log.append([put("a" * RING)])
        except Closed as error:
            refused.append(type(error))

    asking = threading.Thread(target=ask)
    asking.start()
    asking.join(10)
    in_time = list(refused)
    done.set()
    holder.join()
    asking.join()
    assert in_time == [Closed]
