"""What is durable when a call returns, and what a disk that fails leaves of a promise."""

import threading
from typing import Any
from unittest import mock

import pytest

from cerata.engine.disk.memory_storage import MemoryFile
from cerata.engine.errors import Closed, OutcomeUnknown, StorageFailed
from cerata.engine.head import Appended
from cerata.engine.log import Log
from cerata.engine.log_file.writer import Writer

from .test_log import whole
from .words import LATER, Disk, failing, put, texts

# --- policies ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "durable"), [("commit", True), ("always", True), (1 << 20, False), (512, True)]
)
def test_a_receipt_says_what_held_on_return(policy: Any, durable: bool) -> None:
    """Under a number of bytes it is durable only when that many were written."""
    disk = Disk()
    with disk.log(sync=policy) as log:
        assert log.append([put("a")]).durable is durable
        assert texts(log) == ["a"]
        log.commit()
        assert log.append([put("b")], key="k").durable is durable
        log.commit()
        assert log.append([put("b")], key="k").durable
    whole(disk, ["a", "b"])


def syncs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the syncs from here on."""
    calls: list[str] = []

    def sync(self: MemoryFile) -> None:
        calls.append("sync")

    monkeypatch.setattr(MemoryFile, "sync", sync)
    return calls


@pytest.mark.parametrize(("policy", "count"), [("commit", 10), ("always", 20), (2048, 2)])
def test_each_policy_syncs_as_often_as_it_says(
    policy: Any, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each record takes a sector; 2,048 bytes are four of them."""
    log = Disk().open(sync=policy)
    calls = syncs(monkeypatch)
    for _ in range(10):
        log.append([put("a")])
    assert len(calls) == count


def test_what_is_durable_is_not_synced_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither by a commit, nor at the close, whose mark and header page take one sync each."""
    log = Disk().open()
    log.append([put("a")])
    calls = syncs(monkeypatch)
    log.commit()
    assert calls == []
    log.close()
    assert calls == ["sync", "sync"]


def test_a_close_proves_what_another_has_not_synced_yet() -> None:
    """It met it under the lock, and its mark must not follow what may be lost."""
    disk = Disk()
    one, two = disk.open(sync=LATER), disk.open()
    one.append([put("a")])
    two.close()
    disk.kill()
    with disk.log() as log:
        assert log.report.is_clean
        assert texts(log) == ["a"]


def test_what_a_thread_appends_during_the_close_is_durable_when_it_returns() -> None:
    """It wrote after the mark; the close syncs for it before the file is given back."""
    disk = Disk()
    log = disk.open()
    log.append([put("a")])
    written, closed = threading.Event(), threading.Event()
    done: list[Appended] = []
    name_head, sync_through = Log._name_head, Log._sync_through

    def append() -> None:
        done.append(log.append([put("b")]))

    thread = threading.Thread(target=append)

    def then_another_appends(self: Log) -> None:
        name_head(self)
        thread.start()
        assert written.wait(30)

    def later(self: Log, seq: int) -> None:
        if threading.current_thread() is thread:
            written.set()
            assert closed.wait(30)
        sync_through(self, seq)

    with (
        mock.patch.object(Log, "_name_head", then_another_appends),
        mock.patch.object(Log, "_sync_through", later),
    ):
        log.close()
        with mock.patch.object(MemoryFile, "sync", side_effect=Closed("It was given back")):
            closed.set()
            thread.join()
    assert [(one.last_seq, one.durable) for one in done] == [(2, True)]
    whole(disk, ["a", "b"])


def test_a_clean_close_proves_the_head_once() -> None:
    """The mark makes later damage to the last batch visible; closing again adds nothing."""
    disk = Disk()
    with disk.log() as log:
        log.append([put("a")])
    image = disk.image()
    with disk.log():
        pass
    assert disk.image() == image


def test_a_reader_shows_nothing_that_is_not_durable(monkeypatch: pytest.MonkeyPatch) -> None:
    """What another process wrote and has not synced, a reader syncs before it shows it."""
    disk = Disk()
    with disk.log(sync=1 << 20) as writer, disk.log(mode="r") as reader:
        writer.append([put("a")])
        calls = syncs(monkeypatch)
        reader.refresh()
        assert calls == ["sync"]
        assert texts(reader) == ["a"]
        reader.refresh()
        assert calls == ["sync"]


def test_what_another_wrote_under_a_key_is_durable_before_we_say_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It may not have synced it yet; whoever replays it, or looks it up, does so once."""
    disk = Disk()
    with disk.log(sync=LATER) as one, disk.log() as two, disk.log() as three:
        one.append([put("a")], key="k")
        calls = syncs(monkeypatch)
        for _ in range(2):
            done = two.append([put("a")], key="k")
            assert (done.replayed, done.durable, calls) == (True, True, ["sync"])
        found = three.find_key("k", "default")
        assert found is not None
        assert (found.appended.durable, calls) == (True, ["sync", "sync"])


@pytest.mark.parametrize("policy", ["commit", LATER])
@pytest.mark.parametrize("proved", [True, False])
def test_a_replayed_batch_of_another_can_be_read(policy: Any, proved: bool) -> None:
    """The receipt named an event that this handle did not show, and its head had no chain."""
    disk = Disk()
    with disk.log(sync="always" if proved else LATER) as one, disk.log(sync=policy) as two:
        first = one.append([put("a")], key="k")
        again = two.append([put("a")], key="k")
        assert texts(two) == ["a"]
        assert again.durable
        assert (again.head.chain, again.head.root) == (first.head.chain, first.head.root)


def test_a_replay_under_a_number_of_bytes_waits_for_no_disk(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It says that it is not durable, as the first call did."""
    with Disk().log(sync=LATER) as log:
        log.append([put("a")], key="k")
        calls = syncs(monkeypatch)
        done = log.append([put("a")], key="k")
        assert (done.replayed, done.durable, calls) == (True, False, [])


# --- errors of the disk --------------------------------------------------------------------------


def test_a_failed_sync_poisons_the_handle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody knows what the disk holds; reopening finds out."""
    disk = Disk()
    log = disk.open()
    log.append([put("a")])
    failing("sync", monkeypatch)
    with pytest.raises(OutcomeUnknown):
        log.append([put("b")])
    for call in (lambda: log.append([put("c")]), log.refresh, log.read):
        with pytest.raises(OutcomeUnknown):
            call()
    log.close()
    with disk.log() as log:
        assert texts(log) == ["a", "b"]
        assert log.report.sealed_events == 2


@pytest.mark.parametrize("after", [0, 1])
def test_a_seal_whose_sync_fails_poisons(after: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """That of what was sealed, or that of the page which names it; nothing is lost by either."""
    disk = Disk()
    log = disk.open()
    log.append([put("a")])
    failing("sync", monkeypatch, after=after)
    with pytest.raises(OutcomeUnknown):
        log.seal()
    assert not log.is_open
    log.close()
    whole(disk, ["a"])


def test_a_failed_write_that_cannot_be_looked_at_poisons() -> None:
    """The record may be there: whoever goes on would give its seq to another event."""
    disk = Disk()
    log = disk.open()
    log.append([put("a")])
    broken = mock.patch.object(MemoryFile, "read_at", side_effect=StorageFailed("Cannot read"))

    real = MemoryFile.write_at

    def write_at(self: MemoryFile, offset: int, data: bytes) -> None:
        if offset in log.page.witness_offsets:
            return real(self, offset, data)
        broken.start()
        raise StorageFailed("Cannot write")

    try:
        with (
            mock.patch.object(MemoryFile, "write_at", write_at),
            pytest.raises(OutcomeUnknown),
        ):
            log.append([put("b")])
    finally:
        broken.stop()
    assert not log.is_open
    log.close()
    whole(disk, ["a"])


def test_a_failed_sync_of_the_proof_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """The batch is durable; that the disk failed since must not be kept from the caller."""
    log = Disk().open(sync="always")
    failing("sync", monkeypatch, after=1)
    with pytest.raises(OutcomeUnknown):
        log.append([put("a")])
    assert not log.is_open


def test_a_failed_write_acknowledges_nothing_and_the_handle_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The record may be there in part: the next append cuts it."""
    disk = Disk()
    log = disk.open()
    log.append([put("a")])
    failing("write_at", monkeypatch)
    with pytest.raises(StorageFailed):
        log.append([put("b")])
    log.append([put("c")])
    log.close()
    whole(disk, ["a", "c"])


@pytest.mark.parametrize("after", [0, 1])
def test_a_full_disk_during_a_seal_does_not_poison(
    after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing names what was written; when there is space again, the same call succeeds."""
    disk = Disk()
    log = disk.open()
    log.append([put("a" * 5000)])
    if after == 0:
        failing("write_at", monkeypatch)
        with pytest.raises(StorageFailed):
            log.seal()
        log.seal()
    log.append([put("b")])
    log.close()
    whole(disk, ["a" * 5000, "b"])


@pytest.mark.parametrize("step", range(2))
def test_an_interrupt_leaves_the_handle_true(step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """It struck between cursor and tail, and the handle went on with a gap in its events."""
    disk = Disk()
    log = disk.open()
    log.append([put("a")])
    name = "write_record" if step else "_make_room"
    real = getattr(Writer, name)

    def interrupted(self: Writer, *arguments: Any) -> None:
        real(self, *arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(Writer, name, interrupted)
    with pytest.raises(KeyboardInterrupt):
        log.append([put("b")])
    monkeypatch.setattr(Writer, name, real)
    log.append([put("c")])
    expected = ["a", "b", "c"] if step else ["a", "c"]
    assert texts(log) == expected
    log.close()
    whole(disk, expected)
