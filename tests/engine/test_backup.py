"""Backup: the same log in a new file, whole or not at all, while others write."""

import threading
from pathlib import Path
from typing import Any

import pytest

import cerata
from cerata.engine.copies.backup import back_up
from cerata.engine.disk.memory_storage import MemoryFile
from cerata.engine.disk.storage import LockName
from cerata.engine.errors import CerataError, Conflict, Corrupt, InvalidInput, StorageFailed
from cerata.engine.log import Log
from cerata.engine.log_file.create import TEMPORARY_SUFFIX
from cerata.engine.open import open_log
from cerata.engine.verify import verify_log

from .specimen import build
from .words import PATH, RING, Disk, blob, put, stored, texts

COPY = "copy.cera"


def filled() -> tuple[Disk, Log]:
    """Return a log with segments, a spill, keys, attachments and a tail."""
    disk = Disk()
    log = disk.open()
    log.append([put("a"), put("b")], key="k", arguments=b"1")
    log.append([put("large" * 9000), blob(b"b" * 70_000)])
    log.seal()
    log.append([blob(b"c" * 100)])
    log.append([put("z" * 30_000)])
    return disk, log


def test_a_backup_is_the_same_log_in_another_file() -> None:
    """Same id, events, chain, root, keys and attachments; another file id."""
    disk, log = filled()
    back_up(log, COPY)
    with disk.log(path=COPY) as copy:
        assert stored(copy.read()) == stored(log.read())
        assert (copy.head.chain, copy.head.root) == (log.head.chain, log.head.root)
        assert copy.head.recorded == log.head.recorded
        assert copy.log_id == log.log_id
        assert copy.page.file_id != log.page.file_id
        assert verify_log(copy).problems == ()
        assert copy.report.is_clean
        for seq in range(1, 7):
            one = copy.reader.attachments(copy.snapshot, seq)
            assert one == log.reader.attachments(log.snapshot, seq)
        assert copy.append([put("a")], key="k", arguments=b"1").replayed
        assert copy.append([put("goes its own way")]).first_seq == 7
    assert log.append([put("as does this")]).first_seq == 7


def test_a_backup_holds_what_others_appended() -> None:
    """The log as it stands, not as this handle last saw it."""
    disk, log = filled()
    with disk.log() as other:
        last = other.append([put("of another")]).last_seq
    back_up(log, COPY)
    with disk.log(path=COPY) as copy:
        assert copy.head.seq == last


@pytest.mark.parametrize("path", [5, None, b"a.cera", "", "a\0b", "\ud800"])
def test_a_backup_to_what_is_no_path_is_refused(path: Any) -> None:
    """The same words as at opening, and nothing was made."""
    disk, log = filled()
    before = disk.image()
    with pytest.raises(InvalidInput, match=r"^The path"):
        back_up(log, path)
    with pytest.raises(InvalidInput, match=r"^The path"):
        cerata.open(path)
    assert disk.image() == before


def test_a_backup_of_everything_equals_it() -> None:
    """Also of an empty log, and of a file with every structure."""
    disk = Disk()
    with disk.log() as log:
        back_up(log, COPY)
        assert disk.open(path=COPY).head.chain == log.head.chain
    disk = Disk.holding(build().data)
    with disk.log(mode="r") as log:
        back_up(log, COPY)
        assert stored(disk.open(path=COPY).read()) == stored(log.read())


def test_a_backup_overwrites_nothing() -> None:
    """Not even when the name is taken while it is being made."""
    disk, log = filled()
    image = disk.image()
    with pytest.raises(Conflict, match="There is a file already"):
        back_up(log, PATH)
    assert disk.image() == image
    link = disk.storage.link
    disk.storage.link = lambda *_: False  # type: ignore[method-assign]
    with pytest.raises(Conflict):
        back_up(log, COPY)
    disk.storage.link = link  # type: ignore[method-assign]
    assert disk.storage.siblings(PATH) == [PATH]


@pytest.mark.parametrize("call", ["write_at", "sync"])
def test_a_failed_backup_leaves_nothing(call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever write or sync fails; and the log goes on."""
    disk, log = filled()
    real = getattr(MemoryFile, call)
    failures = 0
    for nth in range(50):
        left = [nth]

        def fail(self: MemoryFile, *arguments: Any, left: list[int] = left) -> None:
            left[0] -= 1
            if left[0] == -1:
                raise StorageFailed("Cannot do it")
            real(self, *arguments)

        monkeypatch.setattr(MemoryFile, call, fail)
        try:
            back_up(log, COPY)
        except CerataError:
            failures += 1
            assert disk.storage.siblings(PATH) == [PATH]
        else:
            break
    monkeypatch.undo()
    assert failures > 2
    assert stored(disk.open(path=COPY).read()) == stored(log.read())
    log.append([put("on")])


def test_a_crash_during_a_backup_leaves_a_temporary_that_the_next_opener_sweeps() -> None:
    """The name appears when everything is durable, and not before."""

    class Killed(BaseException):
        pass

    disk, log = filled()
    unlink = disk.storage.unlink

    def killed(*_: object) -> bool:
        raise Killed

    disk.storage.link, link = killed, disk.storage.link  # type: ignore[method-assign, assignment]
    disk.storage.unlink = lambda _: None  # type: ignore[method-assign, assignment]
    with pytest.raises(Killed):
        back_up(log, COPY)
    disk.storage.link, disk.storage.unlink = link, unlink  # type: ignore[method-assign]
    left = [name for name in disk.storage.siblings(PATH) if name.endswith(TEMPORARY_SUFFIX)]
    assert len(left) == 1
    disk.kill()
    back_up(log, COPY)
    with disk.log(path=COPY):
        assert disk.storage.siblings(PATH) == [PATH, COPY]


def test_damage_is_not_copied() -> None:
    """A backup of a damaged log is refused, and says where it is damaged."""
    disk, log = filled()
    segment = next(iter(log.reader.segment_refs(log.snapshot)))
    log.close()
    for offset in (segment.offset + 64 + 40, segment.offset + segment.length):
        spoilt = Disk.holding(bytearray(disk.image()))
        spoilt.spoil(offset)
        with spoilt.log(mode="r") as damaged, pytest.raises(Corrupt):
            back_up(damaged, COPY)
        assert spoilt.storage.siblings(PATH) == [PATH]


def test_a_backup_while_another_writes_is_a_prefix(tmp_path: Path) -> None:
    """As of one moment: whole batches, none missing in between."""
    with open_log(str(tmp_path / PATH), ring_bytes=RING) as log:
        done = threading.Event()

        def write() -> None:
            number = 0
            while not done.is_set():
                log.append([put(str(number)), put("x" * 3000)])
                number += 1

        writer = threading.Thread(target=write)
        writer.start()
        try:
            for number in range(5):
                back_up(log, str(tmp_path / f"{number}.cera"))
        finally:
            done.set()
            writer.join()
        everything = texts(log)
        for number in range(5):
            with open_log(str(tmp_path / f"{number}.cera"), mode="r") as copy:
                assert texts(copy) == everything[: copy.head.seq]
                assert copy.head.seq % 2 == 0
                assert verify_log(copy).problems == ()


def test_a_backup_under_way_is_not_swept() -> None:
    """Its temporary is locked, so a creator beside it leaves it alone."""
    disk, log = filled()
    seen: list[str] = []
    link = disk.storage.link

    def open_then_link(source: str, target: str) -> bool:
        file = disk.storage.open(source, mode="rw")
        assert not file.try_lock(LockName.PRESENCE, exclusive=True)
        seen.append(source)
        return link(source, target)

    disk.storage.link = open_then_link  # type: ignore[method-assign]
    back_up(log, COPY)
    assert len(seen) == 1


def test_what_was_taken_from_another_file_is_shown_at_once() -> None:
    """Whoever fills a copy may look at it before it is published."""
    disk, log = filled()
    batches = list(log.reader.batches(log.snapshot))
    with disk.log(path=COPY) as copy:
        with copy._lock.mutex, copy._lock.writing():
            copy.take_sealed(batches)
        assert copy.head.seq == copy.page.sealed_seq == log.head.seq
