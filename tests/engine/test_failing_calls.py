"""Calls of the operating system that fail: what the sweep over all of them found, told one by one.

`tests/fault_injection/test_sweep_io.py` tries them all.
"""

from collections.abc import Generator
from pathlib import Path

import pytest

from cerata.engine.errors import OutcomeUnknown, StorageFailed
from cerata.engine.log import Log
from cerata.engine.log_file.create import TEMPORARY_SUFFIX
from cerata.engine.open import open_log

from ..crash.system_calls import TORN_LATE, Fault, FaultySystem
from .words import RING, put, texts

pytestmark = pytest.mark.unwatched("its disk is broken")


@pytest.fixture
def system() -> Generator[FaultySystem, None, None]:
    system = FaultySystem()
    with system.installed():
        yield system


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "a.cera")


def opened(path: str, **options: object) -> Log:
    return open_log(path, ring_bytes=RING, lock_timeout=0, **options)  # type: ignore[arg-type]


def test_a_close_that_fails_is_no_error(system: FaultySystem, path: str) -> None:
    """All that was acknowledged was synced before; the error came through as it was, untyped."""
    log = opened(path)
    log.append([put("a")])
    with system.armed(Fault(1, "EIO", call="close")):
        log.close()
    assert system.met == 1
    with opened(path) as log:
        assert texts(log) == ["a"]


def test_a_record_that_is_there_is_not_refused(system: FaultySystem, path: str) -> None:
    """The write failed behind it, at the empty sector: it was refused, and stood in the log."""
    log = opened(path)
    with (
        system.armed(Fault(1, TORN_LATE, call="pwrite")),
        pytest.raises(OutcomeUnknown, match="No space left"),
    ):
        log.append([put("a")])
    with pytest.raises(OutcomeUnknown):
        log.append([put("b")])
    log.close()
    with opened(path) as log:
        assert texts(log) == ["a"]


def test_a_lock_that_cannot_be_released_stops_nobody_else(system: FaultySystem, path: str) -> None:
    """The batch was refused and stood in the log, and no other process ever wrote again."""
    log, other = opened(path), opened(path)
    with (
        system.armed(Fault(1, "ENOLCK", call="unlock")),
        pytest.raises(OutcomeUnknown, match="Cannot unlock"),
    ):
        log.append([put("a")])
    assert not log.is_open
    other.append([put("b")])
    assert texts(other) == ["a", "b"]
    log.close()
    other.close()


def test_a_writer_believes_no_read_only_file_system(system: FaultySystem, path: str) -> None:
    """ext4 says EROFS to a sync when it dropped what was pending; it was taken for nothing."""
    log = opened(path)
    with (
        system.armed(Fault(1, "EROFS", call="fdatasync")),
        pytest.raises(OutcomeUnknown, match="Read-only file system"),
    ):
        log.append([put("a")])
    log.close()
    with system.armed(Fault(1, "EROFS", call="fdatasync")), opened(path, mode="r") as reader:
        assert texts(reader) == ["a"], "a reader has nothing pending"
    assert system.met == 1


def test_a_temporary_name_that_stays_does_not_lock_the_file(
    system: FaultySystem, path: str
) -> None:
    """It could not be removed: creation failed, and kept the file locked for its process's life."""
    with system.armed(Fault(1, "EPERM", call="unlink")), opened(path) as log:
        log.append([put("a")])
    assert system.met == 1
    with opened(path) as log:
        assert texts(log) == ["a"]
    assert [entry.name for entry in Path(path).parent.iterdir()] == ["a.cera"]


def test_a_name_whose_sync_failed_is_synced_by_the_next_opener(
    system: FaultySystem, path: str
) -> None:
    """A power loss would have taken the file with all that the next opener acknowledged."""
    with system.armed(Fault(1, "EIO", call="fsync")), pytest.raises(StorageFailed):
        opened(path)
    names = sorted(entry.name for entry in Path(path).parent.iterdir())
    assert len(names) == 2
    assert names[1].endswith(TEMPORARY_SUFFIX)
    with system.armed():
        log = opened(path)
    assert system.calls.count("fsync") == 1
    assert system.calls.index("fsync") < system.calls.index("unlink")
    log.close()
    with system.armed():
        opened(path).close()
    assert "fsync" not in system.calls


def test_a_batch_whose_proof_fails_is_durable_and_said_to_be(
    system: FaultySystem, path: str
) -> None:
    """With ``sync="always"`` the mark's failure refused a batch that was there."""
    log = opened(path, sync="always")
    with (
        system.armed(Fault(3, "EIO", call="pwrite")),
        pytest.raises(OutcomeUnknown, match="Events 1 to 1 are durable but not proven yet"),
    ):
        log.append([put("a")])
    log.append([put("b")])
    assert texts(log) == ["a", "b"]
    log.close()


def test_a_leaked_descriptor_on_a_failed_look(system: FaultySystem, path: str) -> None:
    """The file was open already when the system refused to say what it is."""
    opened(path).close()
    with system.armed(Fault(1, "EIO", call="fstat")), pytest.raises(StorageFailed):
        opened(path)
    assert system.calls == ["open", "fstat", "close"]
