"""A file that changes under an open handle: cut short, or an older copy written over it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from cerata.engine.errors import Corrupt, Unsupported
from cerata.engine.log import Log
from cerata.engine.open import open_log

from .words import Disk, put, texts

pytestmark = pytest.mark.unwatched("the test writes over the file")

Change = Callable[[Disk, Log], None]


def append(log: Log, count: int, size: int = 10) -> None:
    for _ in range(count):
        log.append([put("x" * size)])


def seal_twice(log: Log) -> None:
    for _ in range(2):
        log.append([put("sealed")])
        log.seal()


BETWEEN: dict[str, Callable[[Log], None]] = {
    "one record": lambda log: append(log, 1),
    "some records": lambda log: append(log, 5),
    "a long record": lambda log: append(log, 1, 9_000),
    "a seal": lambda log: log.seal(),
    "two seals": seal_twice,
    "a lap of the ring": lambda log: append(log, 40, 9_000),
    "a large batch": lambda log: append(log, 1, 40_000),
}


@pytest.mark.parametrize("between", list(BETWEEN))
def test_an_older_copy_written_over_an_open_file_is_refused(between: str) -> None:
    """A write was acknowledged, and the next opening was Corrupt: now nothing is written."""
    disk = Disk()
    log, reader = disk.open(), disk.open(mode="r")
    append(log, 3)
    older = disk.image()
    BETWEEN[between](log)
    reader.refresh()
    disk.node().data[:] = older
    for act in (lambda: log.append([put("lost")]), log.refresh, log.seal, reader.refresh):
        with pytest.raises(Corrupt, match=r"restored while it was open.*Open it again"):
            act()
    with pytest.raises(Corrupt):
        log.close()
    assert disk.image() == older
    with disk.log() as log:
        assert texts(log) == ["x" * 10] * 3
        append(log, 1)


@pytest.mark.parametrize("large", [False, True])
def test_a_file_cut_short_is_refused(large: bool) -> None:
    """Its sealed events are gone, or a large batch's: a write would be the last that goes well."""
    disk = Disk()
    log, reader = disk.open(), disk.open(mode="r")
    append(log, 2, 20_000)
    log.seal()
    append(log, 1, 40_000 if large else 10)
    reader.refresh()
    whole = disk.image()
    del disk.node().data[len(whole) - 512 :]
    for act in (lambda: log.append([put("lost")]), log.refresh, reader.refresh):
        with pytest.raises(Corrupt, match="cut short") as caught:
            act()
        assert caught.value.where == "brain.cera"
    assert disk.image() == whole[:-512]
    # It is the file that is refused, not the handle.
    disk.node().data[:] = whole
    log.append([put("a")])
    log.close()


@pytest.mark.parametrize("rest", [b"", b"not this file", bytes(100_000)])
def test_a_file_that_is_emptied_is_refused(rest: bytes) -> None:
    """As the first half of a copy leaves it: that is damage, and no file of another kind."""
    disk = Disk()
    log = disk.open()
    append(log, 1)
    disk.node().data[:] = rest
    for act in (lambda: log.append([put("lost")]), log.refresh):
        with pytest.raises(Corrupt, match="cut short, overwritten"):
            act()


def test_another_file_written_over_an_open_one_is_refused() -> None:
    """Its pages verify, and have a higher flip."""
    disk, other = Disk(), Disk()
    other.random.seed(9)
    with other.log() as theirs:
        seal_twice(theirs)
        append(theirs, 9)
    log = disk.open()
    append(log, 1)
    disk.node().data[:] = other.image()
    for act in (lambda: log.append([put("lost")]), log.refresh):
        with pytest.raises(Corrupt, match="another file"):
            act()


def test_a_copy_of_the_same_state_is_no_change() -> None:
    """Nor is a later one: nothing that the handle knows is missing."""
    disk = Disk()
    log = disk.open()
    append(log, 2)
    before = disk.image()
    disk.node().data[:] = before
    append(log, 1)
    with disk.log() as other:
        append(other, 2)
        other.seal()
    assert log.refresh().seq == 5
    append(log, 1)
    log.close()


def test_a_real_file_that_cp_wrote_over_is_refused(tmp_path: Path) -> None:
    """Through the system: the same inode, so the path names the same file as before."""
    path, copy = tmp_path / "a.cera", tmp_path / "b.cera"
    log = open_log(str(path))
    append(log, 3)
    copy.write_bytes(path.read_bytes())
    append(log, 3)
    with path.open("r+b") as file:
        file.truncate(0)
        file.write(copy.read_bytes())
    with pytest.raises(Corrupt, match="restored while it was open"):
        log.append([put("lost")])
    with pytest.raises(Corrupt):
        log.close()
    assert path.read_bytes() == copy.read_bytes()


def test_a_newer_version_written_over_an_open_file_is_unsupported() -> None:
    """A whole page says so; it is no damage."""
    from blake3 import blake3

    disk = Disk()
    log = disk.open()
    append(log, 1)
    for number in (0, 1):
        body = bytearray(disk.image()[4096 * number : 4096 * number + 4064])
        body[8] = 2
        place = b"P" + (4096 * number).to_bytes(8, "little")
        disk.spoil(4096 * number, bytes(body) + blake3(place + bytes(body)).digest())
    with pytest.raises(Unsupported, match="format version 2"):
        log.append([put("lost")])
