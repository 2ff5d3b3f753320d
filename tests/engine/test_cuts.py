"""What is cut: how far an unsynced rest reaches, round the ring's end too, and what is kept."""

from typing import Any

import pytest

from cerata.engine.format.extent import ExtentKind
from cerata.engine.format.record import RecordPrefix, encode_record
from cerata.engine.limits import SECTOR_SIZE
from cerata.engine.log import Log
from cerata.engine.log_file.ring import Cursor

from ..inside import state_of
from .test_recovery import recovered
from .words import LATER, RING, Disk, put

pytestmark = pytest.mark.unwatched("the tests write over the file")

RECORDS_OF_TWO_SECTORS = "x" * 700


def with_left(left: int, **options: Any) -> tuple[Disk, Log]:
    """Return a log that is sealed, so many bytes before the ring's end."""
    disk = Disk()
    log = disk.open(**options)
    while log.page.ring_end - state_of(log).cursor.offset > 14_000:
        log.append([put("x" * 12_000)])
    while log.page.ring_end - state_of(log).cursor.offset > left:
        log.append([put("a")])
    log.seal()
    return disk, log


def forge(disk: Disk, log: Log) -> Cursor:
    """Put the first sector of a record of two at the cursor, its body damaged."""
    cursor, page = state_of(log).cursor, log.page
    prefix = RecordPrefix(state_of(log).durable, 0, 1, cursor.link)
    record, _ = encode_record(
        log.file.key, cursor.offset, cursor.next_seq, page.incarnation, prefix, bytes(700)
    )
    assert len(record) == 2 * SECTOR_SIZE
    disk.spoil(cursor.offset, record[:SECTOR_SIZE])
    disk.spoil(cursor.offset + 100)
    disk.kill()
    return cursor


def test_a_cut_goes_on_at_the_rings_start() -> None:
    """What is kept is what stood there, in the order in which it was written."""
    disk, log = with_left(2 * SECTOR_SIZE, sync=LATER)
    page = log.page
    for word in ("one", "two", "three", "four"):
        log.append([put(word)])
    hole = page.ring_end - SECTOR_SIZE
    assert state_of(log).cursor.offset == page.ring_offset + 2 * SECTOR_SIZE
    disk.kill()
    disk.spoil(hole + 100)
    image = disk.image()
    said, report = recovered(disk)
    assert said[-1] == "one"
    assert (report.cut_offset, report.cut_bytes, report.cut_records) == (hole, 1536, 3)
    with disk.log(mode="r") as log:
        kept = log.file.read_extent(log.toc().quarantine[0], ExtentKind.QUARANTINE)
    ring = image[hole : page.ring_end] + image[page.ring_offset : page.ring_offset + 1024]
    assert kept == hole.to_bytes(8, "little") + ring


def test_a_torn_record_is_cut_to_its_end() -> None:
    """Also where that is the ring's."""
    for left in (2, 3):
        disk, log = with_left(left * SECTOR_SIZE)
        offset = state_of(log).cursor.offset
        log.append([put(RECORDS_OF_TWO_SECTORS)])
        disk.kill()
        disk.spoil(offset + 100)
        report = recovered(disk)[1]
        assert (report.cut_offset, report.cut_bytes) == (offset, 2 * SECTOR_SIZE)


def test_a_record_that_would_pass_the_rings_end_is_cut_to_its_sector() -> None:
    """No writer writes one, so its length says nothing."""
    disk, log = with_left(SECTOR_SIZE)
    cursor = forge(disk, log)
    report = recovered(disk)[1]
    assert (report.cut_offset, report.cut_bytes) == (cursor.offset, SECTOR_SIZE)


def test_nothing_connected_is_cut() -> None:
    """In a full ring the rest is one sector, whatever a length says."""
    disk, log = with_left(8 * SECTOR_SIZE)
    while state_of(log).cursor.used < RING - SECTOR_SIZE:
        log.append([put("a")])
    cursor = forge(disk, log)
    assert cursor.offset + SECTOR_SIZE == log.page.ring_start
    report = recovered(disk)[1]
    assert (report.cut_offset, report.cut_bytes) == (cursor.offset, SECTOR_SIZE)
