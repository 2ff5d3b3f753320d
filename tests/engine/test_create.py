"""Creating a file: what a new one holds, in which order it comes to be, and who wins."""

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from cerata.engine.disk.environment import Environment
from cerata.engine.disk.storage import LockName, StorageFile
from cerata.engine.errors import NotFound, StorageFailed
from cerata.engine.format.page import RING_OFFSET, HeaderPage, decode_page
from cerata.engine.format.record import NO_LINK
from cerata.engine.integrity import Tree, chain_start
from cerata.engine.limits import PAGE_SIZE
from cerata.engine.log_file.create import (
    TEMPORARY_SUFFIX,
    create,
    new_page,
    sweep_temporaries,
    temporary_of,
    write_empty,
)
from cerata.engine.log_file.file import PAGES_SIZE, LogFile, choose_page
from cerata.engine.open import open_log
from cerata.fault_injection.crash_states.operations import Lock, Name, Sync, SyncNames, Write
from cerata.fault_injection.simulation.disk import SimulatedDisk, SimulatedProcess

from .words import PATH, RING, TickingClock

DATA = RING_OFFSET + RING + PAGE_SIZE
"""Where the data region of a new file begins: past the ring and its second witness."""

pytestmark = pytest.mark.unwatched("it looks at every operation itself")

PRESENCE = LockName.PRESENCE


class Process:
    """A process on a simulated disk, and what it needs to create a file there."""

    def __init__(self, disk: SimulatedDisk | None = None) -> None:
        self.disk = disk or SimulatedDisk()
        self.storage = self.disk.process()
        self.clock = TickingClock()
        random = Random(self.storage.name)
        self.environment = Environment(self.storage, self.clock, random.randbytes)

    def create(self) -> StorageFile | None:
        return create(PATH, self.environment, RING)

    @property
    def names(self) -> list[str]:
        return sorted(self.disk.names)


def fail(*_: Any, **__: Any) -> Any:
    raise StorageFailed("the disk is gone")


# --- what is in it -------------------------------------------------------------------------------


def test_a_new_page_is_that_of_a_file_without_events() -> None:
    """Pages, a witness, the ring, a witness, and nothing after them."""
    process = Process()
    page = new_page(process.environment, RING)
    assert (len(page.file_id), len(page.log_id)) == (16, 16)
    assert page.file_id != page.log_id
    assert page == HeaderPage(
        number=1,
        file_id=page.file_id,
        log_id=page.log_id,
        flip=0,
        generation=0,
        toc_offset=DATA,
        toc_size=0,
        data_end=DATA,
        ring_offset=RING_OFFSET,
        ring_size=RING,
        ring_start=RING_OFFSET,
        sealed_seq=0,
        link=NO_LINK,
        recorded=0,
        created=process.clock.now,
        incarnation=1,
    )
    moved = new_page(process.environment, RING, log_id=b"l" * 16)
    assert moved.log_id == b"l" * 16
    assert moved.file_id != page.file_id


def test_a_new_file_is_whole_twice_and_durable() -> None:
    """Both pages, a ring of zeros that is not sparse, a TOC of no events; the last act a sync."""
    process = Process()
    page = new_page(process.environment, RING)
    file = process.storage.create(PATH)
    write_empty(file, PATH, page)
    data = bytes(process.disk.names[PATH].data)
    first, second = (decode_page(data[at : at + 4096], at // 4096) for at in (0, 4096))
    assert first is not None
    assert second is not None
    assert (first.number, first.flip, second.number, second.flip) == (0, 1, 1, 2)
    assert (first.generation, second.generation) == (1, 1)
    assert choose_page(data[:PAGES_SIZE], PATH) == (second, ())
    assert data[RING_OFFSET : RING_OFFSET + RING] == bytes(RING)
    assert LogFile(file, PATH, page.file_id).read_witnesses(second) == (0, 0)
    assert (second.toc_offset, second.data_end) == (DATA, len(data))
    toc = LogFile(file, PATH, page.file_id).read_toc(second)
    assert (toc.generation, toc.sealed_seq, toc.incarnation) == (1, 0, 1)
    assert (toc.chain, toc.tree) == (chain_start(page.log_id), Tree())
    writes = [one for one in process.disk.trace if isinstance(one, Write)]
    assert (writes[0].offset, len(writes[0].data)) == (0, DATA)
    kinds = [type(one) for one in process.disk.trace]
    assert kinds == [Name, Write, Write, Write, Write, Sync, Write, Sync, Write, Sync]
    assert [one.offset for one in writes[1:]] == [*page.witness_offsets, DATA, 0, 4096]


# --- in which order ------------------------------------------------------------------------------


def test_a_file_has_its_name_only_when_it_is_whole_and_durable() -> None:
    """Locked, written, synced, named, the name synced; only then the temporary name goes."""
    process = Process()
    file = process.create()
    assert file is not None
    trace = process.disk.trace
    steps = [
        f"{one.verb} {one.path}" if isinstance(one, Name) else type(one).__name__
        for one in trace
        if not isinstance(one, Write)
    ]
    (created,) = (one for one in trace if isinstance(one, Name) and one.verb == "create")
    assert created.path.startswith(f"{PATH}.")
    assert created.path.endswith(TEMPORARY_SUFFIX)
    assert steps == [
        f"create {created.path}",
        "Lock",
        "Sync",
        "Sync",
        "Sync",
        f"link {PATH}",
        "SyncNames",
        f"unlink {created.path}",
    ]
    (lock,) = (one for one in trace if isinstance(one, Lock))
    assert (lock.lock, lock.mode, lock.got) == (PRESENCE, "exclusive", True)
    (synced,) = (one for one in trace if isinstance(one, SyncNames))
    assert synced.path == PATH
    assert process.names == [PATH]
    other = Process(process.disk).storage.open(PATH, mode="rw")
    assert not other.try_lock(PRESENCE, exclusive=False), "nobody recovers it meanwhile"


def test_a_temporary_name_is_drawn_anew_each_time() -> None:
    """Two creators in one folder never meet under it."""
    process = Process()
    one, two = (temporary_of("d/a", process.environment) for _ in range(2))
    assert one != two
    for name in (one, two):
        assert len(name) == len("d/a.") + 12 + len(TEMPORARY_SUFFIX)


def test_the_loser_gives_everything_back() -> None:
    """Somebody gave the name to a file of his own while this one was made."""
    process = Process()
    winner = Process(process.disk).create()
    assert winner is not None
    assert process.create() is None
    assert process.storage.files == set()
    assert process.names == [PATH]
    assert process.disk.names[PATH].number == winner.identity()[1]


def test_a_temporary_that_a_sweeper_took_is_as_if_somebody_was_first() -> None:
    """It had a name before it had a lock."""
    process = Process()
    make = process.storage.create

    def swept(path: str, *, known_as: str | None = None) -> StorageFile:
        file = make(path, known_as=known_as)
        Process(process.disk).storage.unlink(path)
        return file

    process.storage.create = swept  # type: ignore[assignment,method-assign]
    assert process.create() is None
    assert process.storage.files == set()
    assert process.names == []


@pytest.mark.parametrize("call", ["link", "sync_dir"])
@pytest.mark.parametrize("error", [StorageFailed("the disk is gone"), KeyboardInterrupt()])
def test_a_creation_that_fails_gives_its_file_back(call: str, error: BaseException) -> None:
    """Its name stays where the file got it, or may have: it says that the folder is unsynced."""
    process = Process()

    def broken(*_: str) -> None:
        raise error

    setattr(process.storage, call, broken)
    with pytest.raises(type(error)):
        process.create()
    assert process.storage.files == set()
    left = [name for name in process.names if name.endswith(TEMPORARY_SUFFIX)]
    refused = call == "link" and isinstance(error, StorageFailed)
    assert len(left) == (0 if refused else 1)
    assert (PATH in process.names) == (call == "sync_dir")


def test_a_creation_that_cannot_be_written_leaves_no_name() -> None:
    """Nothing could be wrong with the folder yet."""
    process = Process()
    make = process.storage.create

    def unsyncable(path: str, *, known_as: str | None = None) -> StorageFile:
        file = make(path, known_as=known_as)
        file.sync = fail  # type: ignore[method-assign]
        return file

    process.storage.create = unsyncable  # type: ignore[assignment,method-assign]
    with pytest.raises(StorageFailed):
        process.create()
    assert (process.names, process.storage.files) == ([], set())


def test_a_missing_folder_is_not_made() -> None:
    """A file is created, a folder is not; and what is missing is said under the file's name."""
    process = Process()

    def missing(path: str, *, known_as: str | None = None) -> StorageFile:
        raise NotFound("There is no such file", where=known_as)

    process.storage.create = missing  # type: ignore[assignment,method-assign]
    with pytest.raises(NotFound, match="folder") as caught:
        process.create()
    assert caught.value.where == PATH


def test_a_temporary_that_cannot_be_removed_is_left_to_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The file is made all the same."""
    process = Process()
    with monkeypatch.context() as patch:
        patch.setattr(SimulatedProcess, "unlink", fail)
        file = process.create()
    assert file is not None
    assert len(process.names) == 2
    sweep_temporaries(PATH, Process(process.disk).environment)
    assert process.names == [PATH]


# --- sweeping ------------------------------------------------------------------------------------


def swept(process: Process, *names: str) -> list[str]:
    """Put files of these names on the disk, sweep beside the log, and return which are left."""
    for name in names:
        process.disk.put(name, b"half")
    sweep_temporaries(PATH, process.environment)
    assert process.storage.files == set()
    return process.names


def test_only_what_dead_creators_left_is_swept() -> None:
    """Beside this path, of that suffix: another log's, and what merely looks alike, stay."""
    kept = [f"a.cera.01{TEMPORARY_SUFFIX}", f"{PATH}.01", f"x{PATH}.01{TEMPORARY_SUFFIX}"]
    assert swept(Process(), f"{PATH}.01{TEMPORARY_SUFFIX}", *kept) == sorted(kept)


@pytest.mark.parametrize("exclusive", [False, True])
def test_what_a_living_creator_makes_stays(exclusive: bool) -> None:
    """It is locked from before it has a name; one that is shared is used, too."""
    process = Process()
    name = f"{PATH}.01{TEMPORARY_SUFFIX}"
    process.disk.put(name, b"half")
    creating = Process(process.disk).storage.open(name, mode="rw")
    assert creating.try_lock(PRESENCE, exclusive=exclusive)
    assert swept(process) == [name]
    creating.close()
    assert swept(process) == []


def test_a_second_name_goes_only_after_the_first_is_durable() -> None:
    """Its creator died between the two; whoever opened the file keeps it locked."""
    process = Process()
    file = process.create()
    assert file is not None
    name = f"{PATH}.01{TEMPORARY_SUFFIX}"
    process.storage.link(PATH, name)
    del process.disk.trace[:]
    sweep_temporaries(PATH, process.environment)
    assert process.names == [PATH]
    assert [type(one) for one in process.disk.trace] == [SyncNames, Name]
    other = Process(process.disk).storage.open(PATH, mode="rw")
    assert not other.try_lock(PRESENCE, exclusive=False), "sweeping took no lock away"


def test_what_cannot_be_opened_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gone meanwhile, or a folder: the next one is swept all the same."""
    process = Process()
    reach: Callable[..., Any] = SimulatedProcess.open
    first, second = (f"{PATH}.0{number}{TEMPORARY_SUFFIX}" for number in (1, 2))

    def refuse(self: SimulatedProcess, path: str, **options: Any) -> Any:
        return fail() if path == first else reach(self, path, **options)

    monkeypatch.setattr(SimulatedProcess, "open", refuse)
    assert swept(process, first, second) == [first]


def test_an_opened_file_can_be_joined_at_once() -> None:
    """Presence is converted when the creator is done."""
    process = Process()
    log = open_log(PATH, environment=process.environment, ring_bytes=RING)
    other = Process(process.disk).storage.open(PATH, mode="rw")
    assert not other.try_lock(PRESENCE, exclusive=True)
    assert other.try_lock(PRESENCE, exclusive=False)
    log.close()
