"""The storage interface: both implementations keep it, and the real one meets every bad disk."""

import errno
import fcntl
import os
import stat
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Literal

import pytest

from cerata.engine.disk import storage as storage_module
from cerata.engine.disk.memory_storage import MemoryStorage
from cerata.engine.disk.storage import (
    LockName,
    OsStorage,
    Storage,
    StorageFile,
    refused,
    search_sectors,
)
from cerata.engine.errors import Closed, NotFound, StorageFailed
from cerata.engine.limits import SECTOR_SIZE

from ..crash.system_calls import NOTHING, SHORT, Fault, FaultySystem

pytestmark = pytest.mark.unwatched("it writes what is no log")

WRITER, PRESENCE, MAINTENANCE, COMPACTION = LockName


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every name is relative to a folder of the test's own."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "d").mkdir()


@pytest.fixture(params=["system", "memory"])
def storage(request: pytest.FixtureRequest) -> Storage:
    return OsStorage() if request.param == "system" else MemoryStorage()


@pytest.fixture
def system() -> Generator[FaultySystem, None, None]:
    system = FaultySystem()
    with system.installed():
        yield system


def content(file: StorageFile) -> bytes:
    return file.read_at(0, 1 << 20)


def wall(code: int) -> Callable[..., int]:
    """Return a system call that always fails so."""

    def call(*_: object) -> int:
        raise OSError(code, os.strerror(code))

    return call


# --- both ----------------------------------------------------------------------------------------


def test_what_is_written_is_read_and_nothing_else_changes(storage: Storage) -> None:
    """Inside, across the end, past the end; fewer bytes come back only where the file ends."""
    file = storage.create("a")
    file.write_at(0, b"0123456789")
    file.write_at(3, b"abc")
    assert content(file) == b"012abc6789"
    file.write_at(8, b"xyz")
    file.write_at(13, memoryview(b"!"))
    assert content(file) == b"012abc67xyz\0\0!"
    assert (file.read_at(3, 3), file.read_at(12, 9), file.read_at(14, 9)) == (b"abc", b"\0!", b"")
    assert file.size() == 14
    file.sync()
    file.set_size(4)
    file.set_size(6)
    assert content(file) == b"012a\0\0"
    assert file.size() == 6
    other = storage.open("a", mode="r")
    assert content(other) == b"012a\0\0"
    file.close()
    other.close()
    file.close()


def test_names_come_and_go(storage: Storage) -> None:
    """A second name is of the same file, never over another; moving goes over it; removing may."""
    one, two = storage.create("one"), storage.create("two")
    one.write_at(0, b"1")
    assert one.identity() == storage.identity("one") != storage.identity("two") == two.identity()
    assert storage.link("one", "d/again")
    assert storage.identity("d/again") == one.identity()
    assert not storage.link("one", "two")
    assert storage.identity("two") == two.identity()
    with pytest.raises(NotFound):
        storage.link("missing", "d/other")
    storage.rename("d/again", "two")
    assert storage.identity("two") == one.identity()
    assert storage.identity("d/again") is None
    assert storage.identity("one/inside") is None
    storage.unlink("one")
    storage.unlink("one")
    assert storage.identity("one") is None
    again = storage.open("two", mode="rw")
    assert content(again) == b"1"
    for file in (one, two, again):
        file.close()


def test_siblings_are_those_of_the_folder(storage: Storage) -> None:
    """Sorted, and spelt as the caller spells the folder."""
    for name in ("b", "a", "d/z", "d/y"):
        storage.create(name).close()
    here = storage.siblings("any")
    assert [name for name in here if name != "d"] == ["a", "b"]
    assert storage.siblings("d/any") == ["d/y", "d/z"]
    assert storage.siblings("missing/any") == []


def test_what_is_there_is_not_created_and_what_is_missing_not_opened(storage: Storage) -> None:
    """With the name that the caller knows."""
    storage.create("a").close()
    with pytest.raises(StorageFailed) as caught:
        storage.create("a")
    assert (caught.value.errno, caught.value.where) == (errno.EEXIST, "a")
    with pytest.raises(StorageFailed) as caught:
        storage.create("a", known_as="its target")
    assert caught.value.where == "its target"
    for mode in ("r", "rw"):
        with pytest.raises(NotFound) as missing:
            storage.open("b", mode=mode)
        assert missing.value.where == "b"


def test_locks_exclude_each_other_as_they_must(storage: Storage) -> None:
    """By open file; sharing shares; a lock is converted in place; closing gives all back."""
    one = storage.create("a")
    two = storage.open("a", mode="rw")
    assert one.try_lock(PRESENCE, exclusive=True)
    assert one.try_lock(PRESENCE, exclusive=True), "it is its own"
    assert not two.try_lock(PRESENCE, exclusive=False)
    assert two.try_lock(WRITER, exclusive=True), "another lock"
    assert one.try_lock(PRESENCE, exclusive=False)
    assert two.try_lock(PRESENCE, exclusive=False)
    assert not one.try_lock(PRESENCE, exclusive=True), "the other shares it"
    two.unlock(PRESENCE)
    two.unlock(PRESENCE)
    assert one.try_lock(PRESENCE, exclusive=True)
    one.unlock(PRESENCE)
    assert two.try_lock(PRESENCE, exclusive=True)
    two.close()
    for name in LockName:
        assert one.try_lock(name, exclusive=True)
    one.close()


@pytest.mark.parametrize("size", [2 << 20, (2 << 20) + SECTOR_SIZE])
def test_sectors_are_found_by_their_first_number(storage: Storage, size: int) -> None:
    """From low to high, both included; only whole sectors, only before the stop."""
    file = storage.create("a")
    places = {0: 5, 512: 6, (1 << 20) - 512: 7, 1 << 20: 8, size - 512: 5, size: 6}
    for offset, number in places.items():
        file.write_at(offset, number.to_bytes(8, "little") + (6).to_bytes(8, "little"))
    file.set_size(size + 500)
    assert file.search(0, size, 5, 8) == [*places][:-1]
    assert file.search(0, size, 6, 7) == [512, (1 << 20) - 512]
    assert file.search(512, 1024, 1, 8) == [512]
    assert file.search(size, size + 512, 1, 8) == [], "not whole"
    file.close()


def test_a_search_reads_a_mebibyte_at_a_time() -> None:
    """So that a ring of 1 GiB needs no more memory than one of 1 MiB."""
    reads: list[tuple[int, int]] = []

    def read_at(offset: int, size: int) -> bytes:
        reads.append((offset, size))
        return bytes(size)

    assert search_sectors(read_at, 512, (2 << 20) + 1024, 1, 2) == []
    assert reads == [(512, 1 << 20), ((1 << 20) + 512, 1 << 20), ((2 << 20) + 512, 512)]


# --- the real disk -------------------------------------------------------------------------------


def test_a_file_that_nobody_has_any_more_is_closed() -> None:
    """An interrupt may have struck before it had a name; its locks would stay for ever."""
    OsStorage().create("a").close()
    before = os.listdir("/proc/self/fd")
    OsStorage().open("a", mode="rw").try_lock(WRITER, exclusive=True)
    assert os.listdir("/proc/self/fd") == before
    file = OsStorage().open("a", mode="rw")
    assert file.try_lock(WRITER, exclusive=True)
    file.close()


def test_an_error_says_what_it_was_about() -> None:
    """What failed, where, what to do, and the system's number."""
    full = refused(OSError(errno.ENOSPC, "x"), "write", "a")
    assert (full.what, full.where, full.errno) == (
        "Cannot write: No space left on device",
        "a",
        errno.ENOSPC,
    )
    assert full.remedy == "Free space on the disk and call again."
    odd = refused(OSError("odd"), "read", "a")
    assert (odd.what, odd.remedy, odd.errno) == ("Cannot read: odd", "Check the disk.", None)


@pytest.mark.parametrize("call", ["pread", "pwrite"])
def test_a_short_call_is_carried_on(system: FaultySystem, call: str) -> None:
    """Half of the bytes, then half of the rest, is legal."""
    data = bytes(range(256)) * 20
    file = OsStorage().create("a")
    for fault in (Fault(1, SHORT, call=call), Fault(1, SHORT, forever=True, call=call)):
        file.write_at(0, b"first" + bytes(len(data)))
        with system.armed(fault):
            file.write_at(5, data)
            assert content(file) == b"first" + data
            assert file.read_at(7, 1000) == data[2:1002]
        assert system.met
    file.close()


def test_a_write_that_makes_no_progress_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """At first it may pass; later it would be for ever."""
    file = OsStorage().create("a")
    system = FaultySystem()
    with system.installed(), system.armed(Fault(1, NOTHING, call="pwrite")):
        file.write_at(0, b"abc")
    assert content(file) == b"abc"
    steps = [1, 0, 3]
    real = os.pwrite

    def write(descriptor: int, data: bytes, offset: int) -> int:
        return real(descriptor, data[: steps.pop(0)], offset)

    monkeypatch.setattr(os, "pwrite", write)
    with pytest.raises(StorageFailed, match="Cannot write") as caught:
        file.write_at(3, b"def")
    assert caught.value.errno == errno.EIO
    assert content(file) == b"abcd"
    file.close()


ON_A_FILE: list[tuple[str, str, Callable[[StorageFile], object]]] = [
    ("pread", "read", lambda file: file.read_at(0, 1)),
    ("pwrite", "write", lambda file: file.write_at(0, b"a")),
    ("fdatasync", "sync", lambda file: file.sync()),
    ("ftruncate", "resize", lambda file: file.set_size(0)),
    ("fstat", "look at", lambda file: file.size()),
    ("lock", "lock", lambda file: file.try_lock(WRITER, exclusive=True)),
    ("unlock", "unlock", lambda file: file.unlock(WRITER)),
]


@pytest.mark.parametrize(("call", "doing", "act"), ON_A_FILE)
def test_a_failing_call_on_a_file_is_a_typed_error(
    system: FaultySystem, call: str, doing: str, act: Callable[[StorageFile], object]
) -> None:
    """And on a closed file it says so, whatever the number of its descriptor is by now."""
    file = OsStorage().create("a")
    with system.armed(Fault(1, "EIO", call=call)):
        with pytest.raises(StorageFailed, match=f"Cannot {doing}: Input/output") as caught:
            act(file)
        act(file)
    assert caught.value.where == "a"
    file.close()
    with pytest.raises(Closed):
        act(file)


def test_a_file_that_is_closed_while_it_is_read_gives_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By then its descriptor may be another file's, and the bytes that one's."""
    file = OsStorage().create("a")
    file.write_at(0, b"abc")
    read = os.pread

    def close_and_read(descriptor: int, size: int, offset: int) -> bytes:
        data = read(descriptor, size, offset)
        file.close()
        return data

    monkeypatch.setattr(os, "pread", close_and_read)
    with pytest.raises(Closed):
        file.read_at(0, 3)


ON_A_NAME: list[tuple[str, str, Callable[[Storage], object]]] = [
    ("open", "open", lambda storage: storage.create("b")),
    ("open", "open", lambda storage: storage.open("a", mode="r")),
    ("link", "create", lambda storage: storage.link("a", "b")),
    ("rename", "rename", lambda storage: storage.rename("a", "b")),
    ("unlink", "remove", lambda storage: storage.unlink("a")),
    ("stat", "look at", lambda storage: storage.identity("a")),
    ("fsync", "sync the folder of", lambda storage: storage.sync_dir("a")),
]


@pytest.mark.parametrize(("call", "doing", "act"), ON_A_NAME)
def test_a_failing_call_on_a_name_is_a_typed_error(
    system: FaultySystem, call: str, doing: str, act: Callable[[Storage], object]
) -> None:
    """With the system's reason."""
    OsStorage().create("a").close()
    with (
        system.armed(Fault(1, "EIO", call=call)),
        pytest.raises(StorageFailed, match=f"Cannot {doing}: Input/output"),
    ):
        act(OsStorage())


def test_only_a_readers_sync_may_be_refused_by_a_read_only_disk(system: FaultySystem) -> None:
    """It has nothing pending; who wrote would be told that it is durable what was dropped."""
    OsStorage().create("a").close()
    reader, writer = OsStorage().open("a", mode="r"), OsStorage().open("a", mode="rw")
    new = OsStorage().create("b")
    with system.armed(Fault(1, "EROFS", forever=True, call="fdatasync")):
        reader.sync()
        for file in (writer, new):
            with pytest.raises(StorageFailed):
                file.sync()
    for file in (reader, writer, new):
        file.close()


def test_a_file_opened_for_reading_cannot_be_written() -> None:
    """Whatever asks for it; and one for writing can."""
    storage = OsStorage()
    storage.create("a").close()
    reader, writer = storage.open("a", mode="r"), storage.open("a", mode="rw")
    with pytest.raises(StorageFailed):
        reader.write_at(0, b"a")
    writer.write_at(0, b"b")
    assert content(reader) == b"b"
    reader.close()
    writer.close()


def test_a_new_file_is_its_owners_only() -> None:
    """Nobody else may read, write or run it."""
    mask = os.umask(0)
    try:
        OsStorage().create("a").close()
    finally:
        os.umask(mask)
    assert stat.S_IMODE(os.stat("a").st_mode) == 0o600


def test_what_is_no_regular_file_is_refused_and_given_back() -> None:
    """A folder, a pipe, a device: without waiting for its other end, without a descriptor left."""
    os.mkfifo("pipe")
    before = os.listdir("/proc/self/fd")
    for path, code in (("d", errno.EISDIR), ("pipe", errno.EINVAL), ("/dev/null", errno.EINVAL)):
        with pytest.raises(StorageFailed) as caught:
            OsStorage().open(path, mode="r")
        assert caught.value.errno == code
    assert os.listdir("/proc/self/fd") == before


@pytest.mark.parametrize("mode", ["r", "rw"])
@pytest.mark.parametrize("stream", [0, 2])
def test_no_file_takes_the_place_of_a_standard_stream(
    system: FaultySystem, stream: int, mode: Literal["r", "rw"]
) -> None:
    """A stray print would be written into the store; what it is opened for stays the same."""
    OsStorage().create("a").close()
    kept = os.dup(stream)
    os.close(stream)
    try:
        file = OsStorage().open("a", mode=mode)
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(stream)
    finally:
        os.dup2(kept, stream)
        os.close(kept)
    with system.armed(Fault(1, "EROFS", forever=True, call="fdatasync")):
        if mode == "r":
            file.sync()
        else:
            file.write_at(0, b"a")
            with pytest.raises(StorageFailed):
                file.sync()
    assert Path("a").read_bytes() == (b"" if mode == "r" else b"a")
    file.close()


@pytest.mark.parametrize(("path", "folder"), [("a", "."), ("d/a", "d")])
def test_the_folder_that_is_synced_holds_the_name(
    monkeypatch: pytest.MonkeyPatch, path: str, folder: str
) -> None:
    """That one, once; a file system that cannot sync folders is none to be refused."""
    synced: list[bool] = []
    opened = os.open(folder, os.O_RDONLY)

    def sync(descriptor: int) -> None:
        synced.append(os.path.sameopenfile(descriptor, opened))

    monkeypatch.setattr(os, "fsync", sync)
    before = os.listdir("/proc/self/fd")
    OsStorage().sync_dir(path)
    assert synced == [True]
    monkeypatch.setattr(os, "fsync", wall(errno.EINVAL))
    OsStorage().sync_dir(path)
    assert os.listdir("/proc/self/fd") == before
    os.close(opened)


# --- other systems -------------------------------------------------------------------------------


def test_without_locks_on_open_files_one_process_has_the_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """From opening to closing: presence stands for all three."""
    monkeypatch.setattr(storage_module, "_HAVE_OFD", False)
    one = OsStorage().create("a")
    two = OsStorage().open("a", mode="rw")
    assert one.try_lock(PRESENCE, exclusive=True)
    assert not two.try_lock(PRESENCE, exclusive=False)
    assert one.try_lock(PRESENCE, exclusive=False)
    assert not two.try_lock(PRESENCE, exclusive=False), "nobody joins"
    for name in (WRITER, MAINTENANCE, COMPACTION):
        assert one.try_lock(name, exclusive=True)
        one.unlock(name)
    one.unlock(PRESENCE)
    assert not two.try_lock(PRESENCE, exclusive=True), "only closing gives it back"
    one.close()
    assert two.try_lock(PRESENCE, exclusive=True)
    two.close()
    with pytest.raises(Closed):
        two.try_lock(PRESENCE, exclusive=True)


@pytest.mark.parametrize("code", [0, errno.ENOTSUP, errno.EINVAL, errno.ENOTTY, errno.EIO])
def test_on_macos_a_sync_goes_through_the_drives_cache(
    monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    """Where the drive can; where not, as far as it goes; and what fails is told."""
    asked: list[object] = []
    plain: list[int] = []

    def control(descriptor: int, command: int) -> None:
        asked.append((descriptor, command))
        if code:
            raise OSError(code, os.strerror(code))

    monkeypatch.setattr(fcntl, "F_FULLFSYNC", 51, raising=False)
    monkeypatch.setattr(fcntl, "fcntl", control)
    monkeypatch.setattr(os, "fsync", plain.append)
    if code == errno.EIO:
        with pytest.raises(OSError, match="Input/output"):
            storage_module._full_sync(7)
    else:
        storage_module._full_sync(7)
    assert asked == [(7, 51)]
    assert plain == ([7] if code in (errno.ENOTSUP, errno.EINVAL, errno.ENOTTY) else [])
