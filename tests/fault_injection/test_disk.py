"""The simulated disk behaves as a kernel does, and remembers everything."""

import pytest

from cerata.engine.disk.storage import LockName
from cerata.engine.errors import NotFound, StorageFailed
from cerata.fault_injection.crash_states.operations import (
    Kill,
    Lock,
    Mark,
    Name,
    SetSize,
    Sync,
    Write,
)
from cerata.fault_injection.simulation.disk import ProcessKilled, SimulatedDisk


def test_every_operation_is_recorded_in_order() -> None:
    """Crash states are derived from the trace alone, so nothing may be missing from it."""
    disk = SimulatedDisk()
    process = disk.process("P")
    disk.step = "first"
    file = process.create("a")
    file.write_at(3, b"xyz")
    file.set_size(10)
    file.sync()
    assert file.try_lock(LockName.WRITER, exclusive=True)
    disk.acknowledge(1, "P")
    process.rename("a", "b")
    process.kill()
    assert [type(operation) for operation in disk.trace] == [
        Name,
        Write,
        SetSize,
        Sync,
        Lock,
        Mark,
        Name,
        Kill,
    ]
    assert disk.trace[1] == Write(process="P", step="first", node=1, offset=3, data=b"xyz")
    assert disk.names["b"].data == b"\0\0\0xyz\0\0\0\0"


def test_locks_belong_to_the_open_file() -> None:
    """OFD semantics: a second open in the same process is excluded, an unrelated close harmless."""
    disk = SimulatedDisk()
    process = disk.process()
    first = process.create("a")
    second = process.open("a", mode="rw")
    third = process.open("a", mode="rw")
    assert first.try_lock(LockName.WRITER, exclusive=True)
    assert not second.try_lock(LockName.WRITER, exclusive=True)
    assert not second.try_lock(LockName.WRITER, exclusive=False)
    third.close()
    assert not second.try_lock(LockName.WRITER, exclusive=True)
    first.close()
    assert second.try_lock(LockName.WRITER, exclusive=True)


def test_a_lock_is_converted_in_place() -> None:
    """Presence goes from exclusive to shared in one step, with no moment without it."""
    disk = SimulatedDisk()
    first = disk.process().create("a")
    second = disk.process().open("a", mode="rw")
    assert first.try_lock(LockName.PRESENCE, exclusive=True)
    assert first.try_lock(LockName.PRESENCE, exclusive=False)
    assert second.try_lock(LockName.PRESENCE, exclusive=False)
    assert not first.try_lock(LockName.PRESENCE, exclusive=True), "the other shares it"
    assert not second.try_lock(LockName.PRESENCE, exclusive=True), "a refused one keeps its own"


def test_a_killed_process_leaves_its_writes_and_drops_its_locks() -> None:
    """The kernel keeps what was written and releases the locks; nothing is closed cleanly."""
    disk = SimulatedDisk()
    dying, other = disk.process("dying"), disk.process("other")
    file = dying.create("a")
    assert file.try_lock(LockName.WRITER, exclusive=True)
    file.write_at(0, b"written")
    dying.kill()
    with pytest.raises(ProcessKilled):
        file.write_at(0, b"more")
    file.close()
    seen = other.open("a", mode="rw")
    assert seen.read_at(0, 100) == b"written"
    assert seen.try_lock(LockName.WRITER, exclusive=True)


def test_names_follow_the_storage_protocol() -> None:
    """A link fails where the target exists; a missing file is `NotFound`; modes are kept."""
    disk = SimulatedDisk()
    process = disk.process()
    process.create("d/a").write_at(0, b"1")
    assert process.link("d/a", "d/b")
    assert not process.link("d/a", "d/b")
    assert process.identity("d/a") == process.identity("d/b")
    assert process.siblings("d/b") == ["d/a", "d/b"]
    with pytest.raises(StorageFailed):
        process.create("d/a")
    with pytest.raises(NotFound):
        process.open("d/c", mode="r")
    with pytest.raises(StorageFailed):
        process.open("d/a", mode="r").write_at(0, b"2")
    process.unlink("d/a")
    process.unlink("d/a")
    assert process.identity("d/a") is None
