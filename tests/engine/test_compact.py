"""Compaction of a log: the same events in a new file, in the place of the old one."""

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

import cerata
from cerata.engine.copies import compact as compact_module
from cerata.engine.copies.compact import (
    COPY_SUFFIX,
    Retention,
    Steps,
    check_space,
    compact,
    live_size,
)
from cerata.engine.disk.memory_storage import MemoryStorage
from cerata.engine.disk.storage import LockName, OsStorage
from cerata.engine.errors import (
    Conflict,
    Corrupt,
    InvalidInput,
    Locked,
    ReadOnly,
    StorageFailed,
)
from cerata.engine.events import Draft, Erase, Erased
from cerata.engine.log import Log
from cerata.engine.open import open_log
from cerata.engine.verify import verify_log
from cerata.replay.fold import silent

from ..crash.operations import publish
from .words import PATH, Disk, blob, put, texts


def steps(
    retain: Callable[[], Retention | None] = lambda: None,
    save: Callable[[Log], None] = lambda _: None,
    is_over: Callable[[], bool] = lambda: False,
) -> Steps:
    return Steps(retain, save, silent, is_over)


def dropping(*seqs: int) -> Retention:
    """Return a retention that gives up some events."""
    targets = tuple((seq, 1) for seq in seqs)
    return Retention(
        np.array(seqs), (Draft(Erase(targets=targets, reason="retention", horizon=seqs[-1])),)
    )


def filled(log: Log) -> None:
    """Append batches of every size to a log, with sealed dead space between them."""
    for number in range(6):
        log.append([put(f"note {number}"), put("x" * 200)])
        publish(log)
    log.append([put("large " * 6_000), blob(b"beside" * 100)])
    log.append([put("last")])


def names(disk: Disk) -> list[str]:
    return sorted(disk.storage._nodes)


def test_the_copy_has_the_same_events_and_no_dead_space() -> None:
    """Chain, root, ids and attachments are those of the log; the old checkpoints are gone."""
    disk = Disk()
    with disk.log() as log:
        filled(log)
        head = log.head
        before = head.seq, head.chain, head.root
        events = [(event.seq, event.leaf, event.payload_bytes) for event in log.read()]
        size = log.file.file.size()
        assert compact(log, steps(save=publish))
        assert log.file.file.size() < 0.9 * size
        assert (log.head.seq, log.head.chain, log.head.root) == before
        assert [(event.seq, event.leaf, event.payload_bytes) for event in log.read()] == events
        assert log.reader.attachments(log.snapshot, 14) == (b"beside" * 100,)
        assert verify_log(log).problems == ()
        log.append([put("after")])
    assert names(disk) == [PATH]
    with disk.log() as log:
        assert texts(log)[-2:] == ["last", "after"]


def test_other_handles_follow_without_losing_a_batch() -> None:
    """A writer, a reader and a running read go on; a large batch is written to the new file."""
    disk = Disk()
    one, two, reader = disk.open(), disk.open(), disk.open(mode="r")
    filled(one)
    two.refresh()
    running = two.read()
    first = next(running)
    reader.refresh()
    assert compact(one, steps())
    two.append([put("large " * 6_000)])
    assert [event.seq for event in running] == list(range(first.seq + 1, 16))
    assert reader.refresh().seq == one.refresh().seq == 16
    assert texts(reader) == texts(one) == texts(two)
    for log in (one, two, reader):
        log.close()


def test_no_handle_keeps_the_old_file_once_it_has_followed() -> None:
    """The system gives the space back with the last handle that used the old file."""
    disk = Disk()
    one, two = disk.open(), disk.open()
    filled(one)
    old = disk.node()
    assert old.files == 2
    assert compact(one, steps())
    two.refresh()
    assert old.files == 0
    one.close()
    two.close()


def test_events_of_other_processes_during_the_copy_are_in_it() -> None:
    """The copy catches up before the swap, and under the writer lock takes the rest."""
    disk = Disk()
    one, two = disk.open(), disk.open()
    filled(one)
    saves: list[int] = []

    def save(copy: Log) -> None:
        saves.append(copy.head.seq)
        two.append([put(f"during {number}") for number in range(1_500)])

    assert compact(one, steps(save=save))
    assert saves == [15]
    assert one.head.seq == 1_515
    assert verify_log(one).problems == ()
    one.close()
    two.close()


def test_contents_that_were_given_up_leave_their_hashes() -> None:
    """Chain and root up to the erasure are the same, and the file names the erasure."""
    disk = Disk()
    with disk.log() as log, disk.log() as other:
        filled(log)
        root, chain = log.root_at(15), log.chain_at(15)
        assert compact(log, steps(lambda: dropping(2, 14)))
        assert log.head.seq == 16
        assert (log.root_at(15), log.chain_at(15)) == (root, chain)
        for seq in (2, 14):
            assert isinstance(log.event(seq).body, Erased)
            assert log.reader.attachments(log.snapshot, seq) == ()
        assert b"x" * 200 in (log.event(4).payload_bytes or b"")
        assert log.erased == 16
        assert (log.horizon().seq, log.horizon().by) == (14, 16)
        other.refresh()
        assert other.erased == 16
        assert verify_log(log).problems == ()
        # A later compaction keeps what the first gave up.
        assert compact(log, steps())
        assert isinstance(log.event(2).body, Erased)
        assert log.erased == 16


def test_contents_to_give_up_are_determined_again_under_the_lock() -> None:
    """A tag that came during the copy protects its contents: the copy begins again."""
    disk = Disk()
    # Each copy asks at its beginning, before the swap, and in it.
    answers = [*[dropping(2, 4)] * 2, *[dropping(2)] * 4]
    with disk.log() as log:
        filled(log)
        assert compact(log, steps(lambda: answers.pop(0)))
        assert isinstance(log.event(2).body, Erased)
        assert not isinstance(log.event(4).body, Erased)
        assert answers == []
    assert names(disk) == [PATH]


def test_contents_that_changed_during_the_copy_are_noticed_before_the_swap() -> None:
    """No process waits for a swap that cannot be."""
    disk = Disk()
    answers = [dropping(2, 4), *[dropping(2)] * 4]
    with disk.log() as log:
        filled(log)
        assert compact(log, steps(lambda: answers.pop(0)))
        assert not isinstance(log.event(4).body, Erased)
        assert answers == []
    assert names(disk) == [PATH]


def test_contents_that_change_at_every_try_are_a_conflict() -> None:
    """Nothing has changed then."""
    disk = Disk()
    numbers = iter(range(1, 100))
    with disk.log() as log:
        filled(log)
        image = disk.image()
        with pytest.raises(Conflict, match="tags"):
            compact(log, steps(lambda: dropping(next(numbers))))
        assert disk.image()[8192:] == image[8192:] or log.head.seq == 15
        assert log.head.seq == 15
    assert names(disk) == [PATH]


# --- continuing ----------------------------------------------------------------------------------


def test_a_compaction_that_ran_out_of_time_continues() -> None:
    """Its copy stays; the next call copies only what the copy lacks."""
    disk = Disk()
    with disk.log() as log:
        for number in range(40):
            log.append([put("x" * 5_000), put(str(number))])
        answers = iter([False] * 10 + [True] * 9)
        assert not compact(log, steps(is_over=lambda: next(answers)))
        (copy,) = [name for name in names(disk) if name.endswith(COPY_SUFFIX)]
        copied: list[int] = []
        work = Steps(
            lambda: None, lambda _: None, lambda _, done, __: copied.append(done), lambda: False
        )
        assert compact(log, work)
        assert copied[0] == 22
        assert copied[-1] == 80
        assert verify_log(log).problems == ()
    assert names(disk) == [PATH]
    assert copy not in names(disk)


def test_a_killed_compaction_continues_at_the_next() -> None:
    """The copy of a dead process is taken over; that of other work is removed."""
    disk = Disk()

    class Killed(BaseException):
        pass

    def die(_: Log) -> None:
        raise Killed

    with disk.log() as log:
        filled(log)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("cerata.engine.copies.compact.discard", mock.Mock())
            with pytest.raises(Killed):
                compact(log, steps(save=die))
            with pytest.raises(Killed):
                compact(log, steps(lambda: dropping(2), save=die))
        left = [name for name in names(disk) if name.endswith(COPY_SUFFIX)]
        assert len(left) == 2
        assert compact(log, steps())
        assert names(disk) == [PATH]
        assert verify_log(log).problems == ()


@pytest.mark.parametrize("spoilt", ["nothing", "pages", "events", "another log"])
def test_a_copy_that_does_not_fit_is_written_anew(spoilt: str) -> None:
    """A copy with a damaged page or with other events is never taken for the log's."""
    disk = Disk()
    with disk.log() as log:
        filled(log)
        answers = iter([False] * 5 + [True] * 9)
        assert not compact(log, steps(is_over=lambda: next(answers)))
        (name,) = [name for name in names(disk) if name.endswith(COPY_SUFFIX)]
        held = disk.node(name).data
        if spoilt == "pages":
            held[:8192] = bytes(8192)
        elif spoilt == "events":
            held[-6_000:] = bytes(6_000)
        elif spoilt == "another log":
            with disk.log(path="other.cera") as stranger:
                stranger.append([put("not of this log")])
            disk.node(name).data = bytearray(disk.image("other.cera"))
        assert compact(log, steps())
        assert verify_log(log).problems == ()
        assert log.head.seq == 15


# --- refusals ------------------------------------------------------------------------------------


def test_a_reader_and_a_second_compactor_are_refused() -> None:
    """And nothing is written."""
    disk = Disk()
    with disk.log() as log, disk.log(mode="r") as reader, disk.log() as other:
        filled(log)
        with pytest.raises(ReadOnly):
            compact(reader, steps())
        assert other.file.file.try_lock(LockName.COMPACTION, exclusive=True)
        with pytest.raises(Locked, match="Another process"):
            compact(log, steps())
    assert names(disk) == [PATH]


def test_two_compactions_of_one_handle_exclude_each_other() -> None:
    """The system grants a lock again to the handle that has it."""
    disk = Disk()
    with disk.log() as log:
        filled(log)
        refused: list[Exception] = []

        def again(_: Log) -> None:
            with pytest.raises(Locked) as caught:
                compact(log, steps())
            refused.append(caught.value)

        assert compact(log, steps(save=again))
        assert len(refused) == 1
        # The file has no dead space any more, so it stays.
        assert compact(log, steps()) is None


def test_a_checkpoint_in_steps_of_an_idle_process_stops_no_compaction() -> None:
    """It holds the maintenance lock until its next append, which may never come."""
    disk = Disk()
    with disk.log() as log, disk.log() as other:
        filled(log)
        assert other.file.file.try_lock(LockName.MAINTENANCE, exclusive=True)
        assert compact(log, steps())


def test_no_write_of_the_handle_releases_the_lock_of_its_swap() -> None:
    """A fold in the swap saved a checkpoint, which took the writer lock again and released it.

    Then another process wrote to the old file, and its acknowledged batch was lost.
    """
    disk = Disk()
    with disk.log() as log, disk.log(lock_timeout=0) as other:
        filled(log)
        tried: list[str] = []

        writes: dict[str, Callable[[], object]] = {
            "checkpoint": lambda: log.publish_projections(lambda _, __: {}, wait=False),
            "append": lambda: log.append([put("within")]),
            "append of another": lambda: other.append([put("lost")]),
        }

        def retain() -> Retention:
            for name, write in writes.items() if log.is_moving else ():
                with pytest.raises(Locked):
                    write()
                tried.append(name)
            return dropping(1)

        head = log.head.seq
        assert compact(log, steps(retain=retain))
        assert tried == [*writes]
        assert other.append([put("kept")]).last_seq == head + 2


def test_a_file_with_two_names_is_refused() -> None:
    """The other name would keep the old contents."""
    disk = Disk()
    with disk.log() as log:
        filled(log)
        assert disk.storage.link(PATH, "second.cera")
        with pytest.raises(Conflict, match="hard links"):
            compact(log, steps())
    assert names(disk) == [PATH, "second.cera"]


def test_a_second_name_that_a_dead_compactor_left_is_removed() -> None:
    """It is no name that anybody gave the file."""
    disk = Disk()
    with disk.log() as log:
        filled(log)
        assert disk.storage.link(PATH, f"{PATH}.0123456789ab.cerata-new")
        assert compact(log, steps())
    assert names(disk) == [PATH]


def test_a_file_that_was_replaced_or_removed_during_the_copy_is_refused() -> None:
    """Compaction must not put a log over a file that is none of its business."""
    disk = Disk()
    with disk.log() as log:
        filled(log)

        def replace(_: Log) -> None:
            disk.storage.unlink(PATH)
            with disk.log() as new:
                new.append([put("new")])

        with pytest.raises(Corrupt, match="replaced by another"):
            compact(log, steps(save=replace))
    with disk.log() as new:
        assert texts(new) == ["new"]
    assert names(disk) == [PATH]


@pytest.mark.parametrize("call", ["rename", "link", "sync_dir"])
def test_a_disk_that_refuses_a_name_leaves_a_whole_log(
    call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the rename the old file goes on, after it the new one; both have every event."""
    disk = Disk()
    log, other = disk.open(), disk.open()
    filled(log)

    def refuse(*_: object) -> None:
        raise StorageFailed("Cannot rename", where=PATH, remedy="Try again.")

    with monkeypatch.context() as patch:
        patch.setattr(MemoryStorage, call, refuse)
        with pytest.raises(StorageFailed):
            compact(log, steps())
    other.append([put("more")])
    log.append([put("and more")])
    other.refresh()
    assert texts(log)[-2:] == texts(other)[-2:] == ["more", "and more"]
    assert verify_log(log).problems == ()
    assert not log.page.moved
    log.close()
    other.close()
    with disk.log() as again:
        assert texts(again)[-2:] == ["more", "and more"]
    assert [name for name in names(disk) if name.endswith(COPY_SUFFIX)] == []


def test_a_damaged_event_is_not_copied() -> None:
    """The copy's own checks would hide the damage."""
    disk = Disk()
    with disk.log() as log:
        filled(log)
        log.seal()
        ref = next(iter(log.reader.segment_refs(log.snapshot)))
        disk.spoil(ref.offset + 120)
        log.forget()
        with pytest.raises(Corrupt):
            compact(log, steps())
    assert names(disk) == [PATH]


def test_a_disk_with_too_little_space_is_refused_before_the_copy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The error gives both figures."""
    disk = Disk()
    with disk.log() as log:
        filled(log)
        size = live_size(log)
        monkeypatch.setattr(MemoryStorage, "free_space", mock.Mock(return_value=size - 1))
        with pytest.raises(StorageFailed, match=f"{size:,} bytes beside the file; {size - 1:,}"):
            check_space(log, size)
        check_space(log, size - 1)


def test_the_new_name_is_durable_before_anybody_writes_to_the_new_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else a power loss could bring the old file back, without their batches."""
    disk = Disk()
    calls: list[str] = []
    for name in ("rename", "sync_dir"):
        before = getattr(MemoryStorage, name)

        def noted(self: MemoryStorage, *given: str, name: str = name, before: Any = before) -> Any:
            calls.append(name)
            return before(self, *given)

        monkeypatch.setattr(MemoryStorage, name, noted)
    log, other = disk.open(), disk.open()
    filled(log)
    calls.clear()
    swap = compact_module._Compaction._swap

    def swapped(self: Any, copy: Log, *given: Any) -> None:
        locked = copy.file.file

        def close() -> None:
            calls.append("open to writers")
            Log.close(copy)

        monkeypatch.setattr(copy, "close", close)
        assert locked.identity() != log.file.file.identity()
        swap(self, copy, *given)

    monkeypatch.setattr(compact_module._Compaction, "_swap", swapped)
    assert compact(log, steps())
    # The compactor's own handle follows as every other does: it makes the name durable first.
    assert calls[:4] == ["rename", "sync_dir", "open to writers", "sync_dir"]
    calls.clear()
    other.append([put("after")])
    assert calls == ["sync_dir"]
    log.close()
    other.close()


# --- on a real disk ------------------------------------------------------------------------------


def test_a_symbolic_link_keeps_its_target(tmp_path: Path) -> None:
    """The real file is replaced; the link still names it."""
    (tmp_path / "data").mkdir()
    real = tmp_path / "data" / "brain.cera"
    link = tmp_path / "link.cera"
    open_log(str(real)).close()
    link.symlink_to(real)
    with open_log(str(link)) as log:
        filled(log)
        before = real.stat().st_ino
        assert compact(log, steps())
        assert link.is_symlink()
        assert real.stat().st_ino != before
        log.append([put("after")])
        assert log.head.seq == 16
    assert os.listdir(tmp_path / "data") == ["brain.cera"]


def test_the_permissions_of_the_file_stay(tmp_path: Path) -> None:
    """A file that a group may read stays one."""
    path = tmp_path / "brain.cera"
    with open_log(str(path)) as log:
        filled(log)
        path.chmod(0o640)
        assert compact(log, steps())
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_mount_point_is_an_error_with_a_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that is mounted alone cannot be replaced by a rename."""
    path = tmp_path / "brain.cera"

    def rename(*_: object) -> None:
        raise OSError(18, "Invalid cross-device link")

    with open_log(str(path)) as log:
        filled(log)
        monkeypatch.setattr("cerata.engine.disk.storage.os.rename", rename)
        with pytest.raises(StorageFailed, match="in its own folder"):
            compact(log, steps())
        log.append([put("goes on")])
    assert os.listdir(tmp_path) == ["brain.cera"]


def test_only_a_compaction_writes_an_erase_event() -> None:
    """An event that says that contents are gone, while they are there, would be a lie."""
    assert OsStorage().free_space("/") > 0
    assert OsStorage().link_count("/no/such/file") == 0
    with cerata.open(":memory:") as store, pytest.raises(InvalidInput, match="compact"):
        store.append(Erase(targets=((1, 1),), reason="retention"))
