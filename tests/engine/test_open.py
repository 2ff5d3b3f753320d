"""Opening: what is ours, what is not, who made it, and what is left untouched."""

import errno
import os
import resource
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from cerata.engine import open as opening
from cerata.engine.copies.salvage import salvaged_events
from cerata.engine.disk.environment import Environment
from cerata.engine.disk.memory_storage import MemoryFile, MemoryStorage
from cerata.engine.disk.storage import LockName, OsStorage, StorageFile
from cerata.engine.errors import (
    CerataError,
    Closed,
    Corrupt,
    InvalidInput,
    Locked,
    NotFound,
    StorageFailed,
    Unsupported,
)
from cerata.engine.format.page import MAGIC, RING_OFFSET
from cerata.engine.limits import PAGE_SIZE, RING_SIZE_DEFAULT, RING_SIZE_MAX, RING_SIZE_MIN
from cerata.engine.log import Log
from cerata.engine.log_file.create import TEMPORARY_SUFFIX
from cerata.engine.log_file.file import PAGES_SIZE
from cerata.engine.log_file.recovery import RecoveredState, examine
from cerata.engine.open import open_log

from .test_layouts import forged_page
from .words import PATH, RING, Disk, put, texts


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.fixture(autouse=True)
def no_leak() -> Any:
    """Every way to fail gives its descriptors back."""
    before = descriptors()
    yield
    assert descriptors() == before


def open_with_small_ring(path: Path | str, **options: Any) -> Log:
    return open_log(str(path), ring_bytes=RING, **options)


def store(path: Path, *words: str) -> Path:
    with open_with_small_ring(path) as log:
        for word in words:
            log.append([put(word)])
    return path


def state(path: Path) -> tuple[bytes, int]:
    return path.read_bytes(), path.stat().st_mtime_ns


# --- what is not ours ----------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["r", "rw"])
@pytest.mark.parametrize(
    ("content", "error", "says"),
    [
        (b"", Unsupported, "empty"),
        (b"hello\n", Unsupported, "not a Cerata file"),
        (b"SQLite format 3\0" + bytes(9000), Unsupported, "not a Cerata file"),
        (bytes(20_000), Unsupported, "not a Cerata file"),
        ((MAGIC + b"\2\0").ljust(PAGE_SIZE, b"\0") * 2, Unsupported, "format version 2"),
        (MAGIC + b"\2\0" + bytes(9000), Corrupt, "Both header pages"),
        (MAGIC + b"\1\0" + bytes(9000), Corrupt, "Both header pages"),
        (MAGIC, Unsupported, "not a Cerata file"),
    ],
)
def test_what_is_not_ours_is_refused_and_left_alone(
    tmp_path: Path, content: bytes, error: type[CerataError], says: str, mode: str
) -> None:
    """No byte of it changes, and the message says what to do."""
    path = tmp_path / "a.cera"
    path.write_bytes(content)
    with pytest.raises(error, match=says) as caught:
        open_with_small_ring(path, mode=mode)
    assert caught.value.where
    assert caught.value.remedy
    assert path.read_bytes() == content
    assert os.listdir(tmp_path) == ["a.cera"]


@pytest.mark.parametrize("mode", ["r", "rw"])
def test_a_folder_is_refused(tmp_path: Path, mode: str) -> None:
    """With a word on what to name instead."""
    with pytest.raises(StorageFailed, match="Name a file, not a folder"):
        open_with_small_ring(tmp_path, mode=mode)


@pytest.mark.parametrize("mode", ["r", "rw"])
def test_a_pipe_or_socket_is_refused_without_waiting(tmp_path: Path, mode: str) -> None:
    """Opening a pipe waits for its other end, for ever."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(StorageFailed):
        open_with_small_ring(pipe, mode=mode)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))
        with pytest.raises(StorageFailed):
            open_with_small_ring(tmp_path / "socket", mode=mode)
    with pytest.raises(StorageFailed):
        open_with_small_ring("/dev/null", mode=mode)


@pytest.mark.parametrize("path", ["", "a\0b", "\ud800", 5])
def test_a_path_that_is_none_is_refused(path: Any) -> None:
    """Before the system sees it."""
    with pytest.raises(InvalidInput, match="path"):
        open_log(path)


@pytest.mark.parametrize(
    ("options", "ring_size"),
    [
        ({}, RING_SIZE_DEFAULT),
        ({"mode": "r", "sync": "always", "lock_timeout": 0.0}, RING_SIZE_DEFAULT),
        ({"sync": 1, "ring_bytes": RING_SIZE_MIN}, RING_SIZE_MIN),
        ({"ring_bytes": RING_SIZE_MIN + 1}, RING_SIZE_MIN + 512),
        ({"ring_bytes": RING_SIZE_MAX}, RING_SIZE_MAX),
        ({"mode": "a"}, None),
        ({"sync": "never"}, None),
        ({"sync": 0}, None),
        ({"sync": True}, None),
        ({"sync": 1.5}, None),
        ({"lock_timeout": -0.1}, None),
        ({"ring_bytes": RING_SIZE_MIN - 1}, None),
        ({"ring_bytes": RING_SIZE_MAX + 1}, None),
    ],
)
def test_options_are_taken_up_to_their_limits(
    options: dict[str, Any], ring_size: int | None
) -> None:
    """And refused beyond them; a ring is rounded up to whole sectors."""
    given: dict[str, Any] = {"mode": "rw", "sync": "commit", "lock_timeout": None, **options}
    given.setdefault("ring_bytes", None)
    if ring_size is not None:
        assert opening._checked_options(**given) == ring_size
        return
    with pytest.raises(InvalidInput) as caught:
        opening._checked_options(**given)
    assert caught.value.what


def test_a_missing_file_is_not_created_for_reading(tmp_path: Path) -> None:
    """And the nearest name is suggested."""
    store(tmp_path / "brain.cera", "a")
    with pytest.raises(NotFound, match=r"Did you mean .*brain\.cera"):
        open_with_small_ring(tmp_path / "brian.cera", mode="r")
    assert os.listdir(tmp_path) == ["brain.cera"]
    with pytest.raises(NotFound):
        open_with_small_ring(tmp_path / "no" / "such" / "folder.cera", mode="r")


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    """A file is created, a folder is not."""
    with pytest.raises(CerataError) as caught:
        open_with_small_ring(tmp_path / "missing" / "a.cera")
    assert "missing" in str(caught.value)


def test_a_name_too_long_is_refused(tmp_path: Path) -> None:
    """The temporary name is longer than the name itself."""
    with pytest.raises(StorageFailed, match="name too long"):
        open_with_small_ring(tmp_path / ("x" * 250))
    assert os.listdir(tmp_path) == []


# --- reading writes nothing ----------------------------------------------------------------------


def test_reading_writes_no_byte(tmp_path: Path) -> None:
    """On a clean file, a killed writer's, and one that wants recovery."""
    path = store(tmp_path / "a.cera", "a", "b")
    torn = bytearray(path.read_bytes())
    torn[RING_OFFSET + 512 + 60] ^= 1
    for content in (bytes(torn), path.read_bytes()):
        path.write_bytes(content)
        before = state(path)
        for salvage in (False, True):
            try:
                with open_with_small_ring(path, mode="r", salvage=salvage) as log:
                    list(log.read())
                    list(salvaged_events(log))
                    log.refresh()
            except Corrupt:
                continue
        assert state(path) == before
        assert os.listdir(tmp_path) == ["a.cera"]


def test_a_large_batch_that_comes_while_a_reader_opens_is_no_truncation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The reader asked for the size before the file grew, and met the batch's record after."""
    disk = Disk()
    writer = disk.open()
    writer.append([put("small")])
    ask = MemoryFile.size
    large = "x" * (RING // 2)

    def ask_then_grow(file: MemoryFile) -> int:
        size = ask(file)
        monkeypatch.undo()
        writer.append([put(large)])
        return size

    monkeypatch.setattr(MemoryFile, "size", ask_then_grow)
    with disk.open(mode="r") as reader:
        assert texts(reader) == ["small", large]


@dataclass
class Restless:
    """A log whose writer turns a page while a reader looks, so many times; it counts the looks."""

    turns: int
    damage: bool = False
    looks: int = 0
    disk: Disk = field(default_factory=Disk)
    real: Callable[..., RecoveredState] = examine

    def __post_init__(self) -> None:
        self.writer = self.disk.open()

    def examine(self, *arguments: Any, **options: Any) -> RecoveredState:
        self.looks += 1
        found = self.real(*arguments, **options)
        if self.looks <= self.turns:
            self.writer.append([put(f"turn {self.looks}")])
            self.writer.seal()
            if self.damage:
                raise Corrupt("half of one state and half of another")
        return found

    @property
    def written(self) -> list[str]:
        return [f"turn {number}" for number in range(1, self.turns + 1)]


@pytest.mark.parametrize("damage", [False, True])
@pytest.mark.parametrize("turns", [0, 1, 7])
def test_a_reader_looks_again_until_nothing_moves(
    monkeypatch: pytest.MonkeyPatch, turns: int, *, damage: bool
) -> None:
    """Damage that it met meanwhile may be none: it read half before a flip and half after it."""
    restless = Restless(turns, damage)
    monkeypatch.setattr(opening, "examine", restless.examine)
    with restless.disk.log(mode="r") as reader:
        assert texts(reader) == restless.written
        assert not reader.report.alone
    assert restless.looks == turns + 1


@pytest.mark.parametrize("damage", [False, True])
def test_a_reader_that_never_sees_a_file_still_takes_what_it_has(
    monkeypatch: pytest.MonkeyPatch, *, damage: bool
) -> None:
    """Eight looks; a state that was whole is one, and damage is told."""
    restless = Restless(8, damage)
    monkeypatch.setattr(opening, "examine", restless.examine)
    if damage:
        with pytest.raises(Corrupt, match="half"):
            restless.disk.open(mode="r")
    else:
        with restless.disk.log(mode="r") as reader:
            assert texts(reader) == restless.written[:7]
            reader.refresh()
            assert texts(reader) == restless.written
    assert restless.looks == 8


def test_a_reader_of_a_damaged_file_looks_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing moves: it is damage."""
    restless = Restless(0)
    restless.writer.append([put("a")])
    restless.writer.append([put("b")])
    monkeypatch.setattr(opening, "examine", restless.examine)
    restless.disk.spoil(RING_OFFSET + 100)
    with pytest.raises(Corrupt, match="Events 1 to 1"):
        restless.disk.open(mode="r")
    assert restless.looks == 1


@pytest.mark.unwatched("the test writes over the file")
@pytest.mark.parametrize(("lose", "error"), [(bytes(PAGES_SIZE), Unsupported), (None, Corrupt)])
def test_lost_pages_are_found_again_only_by_salvage(
    lose: bytes | None, error: type[CerataError]
) -> None:
    """The newest footer says what they said; but unasked, a file without pages is none."""
    disk = Disk()
    with disk.log() as log:
        log.append([put("a")])
        log.seal()
    if lose is not None:
        disk.spoil(0, lose)
    else:
        for number in (0, 1):
            disk.spoil(number * PAGE_SIZE + 100)
    for mode in ("r", "rw"):
        with pytest.raises(error):
            disk.open(mode=mode)
    with disk.log(mode="r", salvage=True) as log:
        assert texts(log) == ["a"]
        assert log.report.bad_pages == (0, 1)
    disk.spoil(PAGES_SIZE, bytes(len(disk.image()) - PAGES_SIZE))
    with pytest.raises(error):
        disk.open(mode="r", salvage=True)


@pytest.mark.unwatched("the test writes over the file")
def test_pages_of_a_newer_version_are_not_lost() -> None:
    """Whole, and not for us: salvage would read by this version's rules what is written by its."""
    disk = Disk()
    with disk.log() as log:
        log.append([put("a")])
        log.seal()
    for number in (0, 1):
        page = disk.image()[number * PAGE_SIZE : (number + 1) * PAGE_SIZE]
        newer = forged_page(page[:8] + b"\x02" + page[9:], number)
        disk.spoil(number * PAGE_SIZE, newer)
    with pytest.raises(Unsupported, match="format version 2"):
        disk.open(mode="r", salvage=True)


@pytest.mark.parametrize("proven", [False, True])
def test_a_reader_makes_durable_what_it_shows(
    monkeypatch: pytest.MonkeyPatch, *, proven: bool
) -> None:
    """What is written may be lost with the power, unless something proves that it is not."""
    disk = Disk()
    writer = disk.open(sync="always" if proven else 1 << 20)
    writer.append([put("a")])
    synced: list[MemoryFile] = []

    def sync(self: MemoryFile) -> None:
        synced.append(self)

    monkeypatch.setattr(MemoryFile, "sync", sync)
    disk.open(mode="r").close()
    assert len(synced) == (0 if proven else 1)


def test_a_read_only_file_in_a_read_only_folder_is_read(tmp_path: Path) -> None:
    """Nothing is created beside it, and syncing it is no error."""
    folder = tmp_path / "folder"
    folder.mkdir()
    path = store(folder / "a.cera", "a")
    path.chmod(0o400)
    folder.chmod(0o500)
    try:
        with open_with_small_ring(path, mode="r") as log:
            assert texts(log) == ["a"]
        if os.geteuid():
            with pytest.raises(StorageFailed, match="permissions"):
                open_with_small_ring(path)
    finally:
        folder.chmod(0o700)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_file_is_refused(tmp_path: Path) -> None:
    """With the permissions named."""
    path = store(tmp_path / "a.cera", "a")
    path.chmod(0)
    for mode in ("r", "rw"):
        with pytest.raises(StorageFailed, match="permissions"):
            open_with_small_ring(path, mode=mode)


# --- creation ------------------------------------------------------------------------------------


def test_a_new_file_is_its_owners_only(tmp_path: Path) -> None:
    """Memories are private."""
    assert store(tmp_path / "a.cera").stat().st_mode & 0o777 == 0o600


def test_dead_creators_temporaries_are_swept(tmp_path: Path) -> None:
    """Also the second name of a file whose creator died after giving it the first."""
    path = tmp_path / "a.cera"
    (tmp_path / f"a.cera.0123{TEMPORARY_SUFFIX}").write_bytes(b"half")
    kept = tmp_path / f"b.cera.0123{TEMPORARY_SUFFIX}"
    kept.write_bytes(b"another's")
    store(path, "a")
    os.link(path, tmp_path / f"a.cera.4567{TEMPORARY_SUFFIX}")
    (tmp_path / f"a.cera.89{TEMPORARY_SUFFIX}").mkdir()
    with open_with_small_ring(path) as log:
        assert texts(log) == ["a"]
    left = {"a.cera", kept.name, f"a.cera.89{TEMPORARY_SUFFIX}"}
    assert set(os.listdir(tmp_path)) == left


def test_what_dead_creators_left_makes_room_for_the_new_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On a full disk a creator that dies again and again would otherwise fill it up."""
    disk = Disk()
    left = f"{PATH}.01{TEMPORARY_SUFFIX}"
    disk.storage.create(left).close()
    make = MemoryStorage.create

    def without_space(self: MemoryStorage, path: str, **options: Any) -> StorageFile:
        if self.identity(left) is not None:
            raise StorageFailed("No space left on device")
        return make(self, path, **options)

    monkeypatch.setattr(MemoryStorage, "create", without_space)
    disk.open().close()
    assert disk.storage.siblings(PATH) == [PATH]


def test_a_living_creators_temporary_is_left(tmp_path: Path) -> None:
    """It holds the lock from before it has its name."""
    name = tmp_path / f"a.cera.0123{TEMPORARY_SUFFIX}"
    creating = OsStorage().create(str(name))
    creating.try_lock(LockName.PRESENCE, exclusive=True)
    store(tmp_path / "a.cera")
    assert name.exists()
    creating.close()
    store(tmp_path / "a.cera")
    assert not name.exists()


def test_temporaries_beside_a_dotted_path_are_swept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`./a.cera` and `a.cera` are the same file; the folder's listing once lost the dot."""
    monkeypatch.chdir(tmp_path)
    for path in ("./a.cera", "a.cera"):
        Path(f"a.cera.0123{TEMPORARY_SUFFIX}").write_bytes(b"half")
        open_log(path, ring_bytes=RING).close()
        assert os.listdir() == ["a.cera"]


def test_a_name_that_leads_nowhere_is_refused(tmp_path: Path) -> None:
    """It can neither be opened nor created; and nothing is made where it leads."""
    path = tmp_path / "a.cera"
    path.symlink_to(tmp_path / "nowhere")
    with pytest.raises(StorageFailed, match="neither be opened nor created"):
        open_with_small_ring(path)
    assert os.listdir(tmp_path) == ["a.cera"]


def test_who_comes_second_opens_what_the_first_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """The file was missing when it looked, and there when it would have made it."""
    disk = Disk()
    with disk.log() as log:
        log.append([put("a")])
    missed = [True]
    reach = MemoryStorage.open

    def late(self: MemoryStorage, path: str, **options: Any) -> StorageFile:
        if path == PATH and missed:
            missed.pop()
            raise NotFound("There is no such file")
        return reach(self, path, **options)

    monkeypatch.setattr(MemoryStorage, "open", late)
    temporary = f"{PATH}.01{TEMPORARY_SUFFIX}"
    disk.storage.create(temporary).close()
    with disk.log() as log:
        assert texts(log) == ["a"]
    assert missed == []
    assert disk.storage.siblings(PATH) == [PATH]


def test_an_opener_that_is_done_lets_others_join() -> None:
    """Alone it keeps everybody out until it has recovered; then presence is shared."""
    disk = Disk()
    for _ in range(2):
        with disk.log() as log:
            assert log.report.alone
            other = disk.storage.open(PATH, mode="rw")
            assert not other.try_lock(LockName.PRESENCE, exclusive=True)
            assert other.try_lock(LockName.PRESENCE, exclusive=False)
            assert other.try_lock(LockName.WRITER, exclusive=True)
            other.close()
            with disk.log() as second:
                assert not second.report.alone
                assert other.try_lock(LockName.PRESENCE, exclusive=False)
            other.close()


def test_an_opener_waits_for_one_who_recovers() -> None:
    """It may be cutting what the other would read."""
    disk = Disk()
    disk.open().close()
    recovering = disk.storage.open(PATH, mode="rw")
    assert recovering.try_lock(LockName.PRESENCE, exclusive=True)
    with pytest.raises(Locked, match="opening or recovering"):
        disk.open(lock_timeout=1.0)
    assert recovering.try_lock(LockName.PRESENCE, exclusive=True), "and gave nothing of it away"
    with disk.log(mode="r") as reader:
        assert texts(reader) == []
    recovering.close()
    disk.open(lock_timeout=0).close()


def test_a_handle_inherited_by_fork_is_given_up() -> None:
    """The child would keep the parent's locks after its death, and write beside it."""
    disk = Disk()
    log, reader = disk.open(), disk.open(mode="r")
    opening._abandon_in_child()
    for handle in (log, reader):
        with pytest.raises(Closed, match="inherited by fork"):
            handle.refresh()
    file = disk.storage.open(PATH, mode="rw")
    assert file.try_lock(LockName.PRESENCE, exclusive=True)


def test_creators_at_once_make_one_log(tmp_path: Path) -> None:
    """Eight processes; the losers open the winner's file."""
    program = (
        "import sys; from cerata.engine.events import Draft, PutFrame\n"
        "from cerata.engine.open import open_log\n"
        "sys.stdin.read()\n"
        "with open_log(sys.argv[1]) as log:\n"
        "    log.append([Draft(PutFrame(text=sys.argv[2]))]); print(log.log_id.hex())\n"
    )
    children = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(tmp_path / "a.cera"), str(number)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(8)
    ]
    for child in children:
        assert child.stdin is not None
        child.stdin.close()
    ids: set[str] = set()
    for child in children:
        assert child.stdout is not None
        ids.add(child.stdout.read())
        child.stdout.close()
        assert child.wait() == 0
    assert len(ids) == 1
    with open_with_small_ring(tmp_path / "a.cera", mode="r") as log:
        assert sorted(map(str, texts(log))) == [str(number) for number in range(8)]
    assert os.listdir(tmp_path) == ["a.cera"]


def test_a_log_in_memory_makes_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each opening is a new one; in an environment of memory it is a name like any other."""
    monkeypatch.chdir(tmp_path)
    with open_log(":memory:") as one, open_log(":memory:") as two:
        one.append([put("a")])
        assert (texts(one), texts(two)) == (["a"], [])
    assert os.listdir() == []
    environment = Environment.in_memory()
    for expected in ([], ["a"]):
        with open_log(":memory:", environment=environment) as log:
            assert texts(log) == expected
            log.append([put("a")])


# --- locks ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("timeout", [0, 0.02])
def test_a_held_lock_times_out_and_says_who_holds_it(tmp_path: Path, timeout: float) -> None:
    """0 fails at once, a little waits a little."""
    path = store(tmp_path / "a.cera", "a")
    other = OsStorage().open(str(path), mode="rw")
    with open_with_small_ring(path, lock_timeout=timeout) as log:
        assert other.try_lock(LockName.WRITER, exclusive=True)
        with pytest.raises(Locked, match="Another process is writing") as caught:
            log.append([put("b")])
        assert "lock_timeout" in str(caught.value.remedy)
        with pytest.raises(Locked):
            open_with_small_ring(path, lock_timeout=timeout)
        with open_with_small_ring(path, mode="r") as reader:
            assert texts(reader) == ["a"]
        other.close()
        log.append([put("b")])
        assert texts(log) == ["a", "b"]


def test_waiting_doubles_up_to_a_millisecond() -> None:
    """And ends when the time is up: counted on a clock that a test turns."""
    disk = Disk()
    disk.open()
    holder = disk.storage.open(PATH, mode="rw")
    holder.try_lock(LockName.WRITER, exclusive=True)
    with pytest.raises(Locked, match=r"waited 2\.5 s"):
        disk.open(lock_timeout=2.5)
    assert 2.5 <= disk.clock.waited < 2.502


def test_without_a_time_limit_one_waits_until_it_is_free() -> None:
    """None waits for ever."""
    disk = Disk()
    disk.open()
    holder = disk.storage.open(PATH, mode="rw")
    holder.try_lock(LockName.WRITER, exclusive=True)
    sleep = disk.clock.sleep

    def sleep_then_free(seconds: float) -> None:
        sleep(seconds)
        if disk.clock.waited > 100:
            holder.close()

    disk.clock.sleep = sleep_then_free  # type: ignore[method-assign]
    disk.open(lock_timeout=None).close()
    assert disk.clock.waited > 100


# --- a full disk ---------------------------------------------------------------------------------


def limited(size: int, *commands: str) -> subprocess.CompletedProcess[str]:
    """Run commands in a process whose files may not pass ``size`` bytes."""
    program = "\n".join(
        ["from cerata.engine.errors import *", "from cerata.engine.events import *",
         "from cerata.engine.open import *",
         "put = lambda text: Draft(PutFrame(text=text))", *commands]
    )  # fmt: skip

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    return subprocess.run(
        [sys.executable, "-c", program],
        check=False,
        capture_output=True,
        text=True,
        preexec_fn=limit,
    )


def test_no_space_to_create_leaves_nothing(tmp_path: Path) -> None:
    """A typed error, and no half of a file under any name."""
    path = tmp_path / "a.cera"
    run = limited(
        40_000,
        f"try: open_log({str(path)!r}, ring_bytes=65536)",
        "except StorageFailed as error: print(error.errno, error.remedy)",
    )
    assert run.stdout.startswith(f"{errno.EFBIG} Raise the file size limit"), run.stderr
    assert os.listdir(tmp_path) == []


def test_a_full_disk_refuses_and_keeps_what_was_acknowledged(tmp_path: Path) -> None:
    """Appends go on while the ring has room, then are refused; nothing acknowledged is lost."""
    path = tmp_path / "a.cera"
    run = limited(
        88_192,
        "import os, random",
        f"log = open_log({str(path)!r}, ring_bytes=65536)",
        "count = 0",
        "try:",
        "    while True:",
        "        log.append([put(os.urandom(1500).hex())]); count += 1",
        "except StorageFailed as error: print(count, error.errno)",
        "try: log.append([put('x' * 60000)])",
        "except StorageFailed as error: print(error.errno)",
        "print(log.refresh().seq)",
    )
    count, code, large_code, head = run.stdout.split()
    assert (code, large_code, head) == (str(errno.EFBIG), str(errno.EFBIG), count), run.stderr
    with open_with_small_ring(path) as log:
        assert log.head.seq == int(count) > 10
        log.append([put("there is space again")])
    with open_with_small_ring(path, mode="r") as log:
        assert log.head.seq == int(count) + 1


@pytest.mark.parametrize("mode", ["r", "rw"])
def test_descriptors_are_given_back_on_every_error(tmp_path: Path, mode: str) -> None:
    """The fixture counts them."""
    path = store(tmp_path / "a.cera", "a")
    whole = path.read_bytes()
    for length in (0, 100, 5000, 9000, len(whole) - 10):
        path.write_bytes(whole[:length])
        with pytest.raises(CerataError):
            open_with_small_ring(path, mode=mode)
    path.write_bytes(
        whole[:RING_OFFSET] + bytes([whole[RING_OFFSET] ^ 1]) + whole[RING_OFFSET + 1 :]
    )
    with pytest.raises(Corrupt):
        open_with_small_ring(path, mode=mode)
