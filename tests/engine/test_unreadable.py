"""A sector that the disk cannot read: a typed error for who needs it, and nothing lost for it."""

import errno
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager

import pytest

from cerata.engine.disk.memory_storage import MemoryFile
from cerata.engine.disk.storage import refused
from cerata.engine.errors import StorageFailed
from cerata.engine.log import Log
from cerata.engine.verify import verify_log

from .specimen import Specimen, build
from .words import Disk, put, stored

pytestmark = pytest.mark.unwatched("its disk is broken")

SECTOR = 512


@pytest.fixture(scope="module")
def specimen() -> Specimen:
    return build()


@contextmanager
def unreadable(sector: int) -> Generator[None, None, None]:
    """Have one sector of every file that the disk cannot read."""
    read_at = MemoryFile.read_at

    def failing(self: MemoryFile, offset: int, size: int) -> bytes:
        if offset < (sector + 1) * SECTOR and offset + size > sector * SECTOR:
            raise refused(OSError(errno.EIO, "Input/output error"), "read", "a.cera")
        return read_at(self, offset, size)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MemoryFile, "read_at", failing)
        yield


def is_typed(error: StorageFailed) -> bool:
    """Tell whether an error says which one the disk gave, and what to do."""
    return error.errno == errno.EIO and bool(error.remedy)


def everything(log: Log) -> list[object]:
    """Read all events and attachments, and verify."""
    events = stored(log.read())
    attached = [log.reader.attachments(log.snapshot, seq) for seq in range(1, log.head.seq + 1)]
    return [events, attached, verify_log(log).problems]


def test_who_needs_an_unreadable_sector_gets_a_typed_error(specimen: Specimen) -> None:
    """Who does not reads everything; nobody is given less, and nobody else's error."""
    with Disk.holding(specimen.data).open(mode="r") as log:
        whole = everything(log)
    found: Counter[str] = Counter()
    for sector in range(len(specimen.data) // SECTOR):
        with unreadable(sector):
            try:
                with Disk.holding(specimen.data).open(mode="r") as log:
                    assert everything(log) == whole, sector
                found["read"] += 1
            except StorageFailed as error:
                found["refused" if is_typed(error) else repr(error)] += 1
    assert found.keys() == {"read", "refused"}
    assert found["refused"] > 100


def test_an_unreadable_sector_costs_a_writer_nothing_that_was_acknowledged(
    specimen: Specimen,
) -> None:
    """It opens and appends, or is refused; where the disk reads again, all of it is there."""
    found: Counter[str] = Counter()
    for sector in range(len(specimen.data) // SECTOR):
        disk = Disk.holding(specimen.data)
        told = 0
        with unreadable(sector):
            try:
                with disk.open() as log:
                    log.append([put("more")])
                    told = 1
                    log.seal()
                found["written"] += 1
            except StorageFailed as error:
                found["refused" if is_typed(error) else repr(error)] += 1
        disk.kill()
        with disk.open() as log:
            events = stored(log.read())
            assert events[: len(specimen.events)] == specimen.events, sector
            assert told <= len(events) - len(specimen.events) <= 1, sector
            assert verify_log(log).problems == (), sector
    assert found.keys() == {"written", "refused"}
    assert min(found.values()) > 20
