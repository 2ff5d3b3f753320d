"""The ordering monitor objects to each wrong order, at the write itself, and to nothing else."""

import pytest

from cerata.engine.disk.storage import StorageFile
from cerata.fault_injection.simulation.disk import SimulatedDisk, SimulatedFile
from cerata.fault_injection.simulation.file_layout import FileGeometry
from cerata.fault_injection.simulation.write_order_monitor import (
    Layout,
    OrderingMonitor,
    OrderViolation,
)
from cerata.fault_injection.stories.engine_workloads import Session, append_long, append_small

from ..crash.operations import fresh_world

RING, RING_END, WITNESS, DATA = 8192, 16384, 16384, 16896


class ToyGeometry:
    """A page is [order, sealed seq, data end in sectors] as bytes; 255 marks a page."""

    def layout(self, page: bytes, number: int) -> Layout | None:
        if page[:1] != b"\xff":
            return None
        return Layout(page[1], page[3] * 512, RING, RING_END, page[2], (WITNESS,))

    def first_seq(self, record: bytes) -> int:
        return record[0]

    def witnessed_seq(self, sector: bytes) -> int:
        return sector[0]


def page(order: int, sealed: int = 0, end: int = DATA) -> bytes:
    return bytes([255, order, sealed, end // 512]).ljust(4096, b"\0")


def record(seq: int) -> bytes:
    return bytes([seq]) * 512


def fresh() -> tuple[OrderingMonitor, StorageFile]:
    """Return a file with synced header pages and an empty ring."""
    monitor = OrderingMonitor(ToyGeometry())
    file = monitor.storage(SimulatedDisk().process()).create("a")
    file.write_at(0, page(1) + page(0) + bytes(DATA - RING))
    file.sync()
    return monitor, file


def test_the_right_order_raises_nothing() -> None:
    """Append, seal, flip, reuse of the freed ring: the monitor stays silent."""
    monitor, file = fresh()
    for seq in range(1, 4):
        file.write_at(RING + (seq - 1) * 512, record(seq) + bytes(512))
        file.sync()
        monitor.acknowledge(file.identity(), seq)
    file.write_at(DATA, b"segment, TOC and footer".ljust(512))
    file.sync()
    file.write_at(4096, page(2, 3, DATA + 512))
    file.sync()
    file.write_at(RING, record(4))
    file.sync()
    monitor.acknowledge(file.identity(), 4)
    assert monitor.violations == []
    assert monitor.writes == 7


def test_a_header_page_before_its_data_is_caught() -> None:
    """A crash could keep the page and lose what it names."""
    _, file = fresh()
    file.write_at(DATA, b"segment")
    with pytest.raises(OrderViolation, match=r"^pages: header page 1"):
        file.write_at(4096, page(2))


def test_two_unsynced_header_pages_are_caught() -> None:
    """A crash could tear both, and nothing would say where the log is."""
    _, file = fresh()
    file.write_at(4096, page(2))
    with pytest.raises(OrderViolation, match=r"^two pages"):
        file.write_at(0, page(3))


def test_overwriting_what_a_synced_page_names_is_caught() -> None:
    """The data region is append-only; so is its end."""
    _, file = fresh()
    file.write_at(DATA, b"segment".ljust(512))
    file.sync()
    file.write_at(4096, page(2, end=DATA + 512))
    file.sync()
    with pytest.raises(OrderViolation, match=r"^settled: offsets"):
        file.write_at(DATA + 8, b"x")
    with pytest.raises(OrderViolation, match=r"^settled: the file is cut"):
        file.set_size(DATA)


def test_reusing_the_ring_before_the_second_sync_is_caught() -> None:
    """Freed in a page that is not durable is not freed."""
    _, file = fresh()
    file.write_at(RING, record(1))
    file.sync()
    file.write_at(4096, page(2, 1))
    with pytest.raises(OrderViolation, match=r"^ring: the sector at 8192"):
        file.write_at(RING, record(2))


def test_writing_into_the_sector_of_a_synced_record_is_caught() -> None:
    """A torn write would take the acknowledged record with it."""
    _, file = fresh()
    file.write_at(RING, record(1)[:300])
    file.sync()
    with pytest.raises(OrderViolation, match=r"^ring"):
        file.write_at(RING + 300, record(2)[:100])


def test_nobody_has_a_turn_while_the_monitor_looks_at_what_others_did(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whoever got it then waited for the guard, and the schedule for them: it hung for ever."""
    monitor, file = fresh()
    file.write_at(RING, record(1))
    file.sync()
    read_at, reads = SimulatedFile.read_at, list[bool]()

    def seen(self: SimulatedFile, offset: int, size: int) -> bytes:
        reads.extend(watched.guard.locked() for watched in monitor._files.values())
        return read_at(self, offset, size)

    monkeypatch.setattr(SimulatedFile, "read_at", seen)
    with pytest.raises(OrderViolation, match="overwritten"):
        file.write_at(RING, record(2))
    assert reads
    assert not any(reads)


def test_the_ring_may_be_reused_when_others_have_led_it_around() -> None:
    """Only the last of their pages is read here, and the ring starts where our record stood.

    So a killed writer's companion was accused of an overwrite, once in some thousand kills.
    """
    disk = SimulatedDisk()
    disk.put("a", page(1) + page(0) + bytes(RING_END - RING))
    ours = OrderingMonitor(ToyGeometry()).storage(disk.process()).open("a", mode="rw")
    theirs = disk.process().open("a", mode="rw")
    ours.write_at(RING, record(1))
    ours.sync()
    # They seal, fill the rest of the ring, and seal again: it starts at our record's sector.
    theirs.write_at(4096, page(2, 1))
    theirs.write_at(0, page(3, 16))
    ours.write_at(RING, record(17))
    ours.sync()
    with pytest.raises(OrderViolation, match=r"^ring: the sector at 8192"):
        ours.write_at(RING, record(18))


def test_a_witness_of_what_is_not_synced_is_an_objection() -> None:
    """A crash could keep it and lose the record: the batch would look acknowledged, and lost."""
    _, file = fresh()
    file.write_at(RING, record(1) + bytes(512))
    file.sync()
    file.write_at(RING + 512, record(2) + bytes(512))
    file.write_at(WITNESS, record(1))
    with pytest.raises(OrderViolation, match=r"^witness: seq 2 is named"):
        file.write_at(WITNESS, record(2))


def test_a_ring_that_another_process_led_around_to_the_same_place_is_free() -> None:
    """The engine itself: the other one, unseen, seals when the ring is full to its last sector."""
    world = fresh_world()
    ours = Session(world, OrderingMonitor(FileGeometry()))
    append_small(ours)
    theirs = Session(world)
    # One of several sectors, so that the pages have not turned as often as the ring has sectors.
    append_long(theirs)
    theirs.log.seal()
    while theirs.log.page.ring_start != ours.log.page.ring_start:
        append_small(theirs)
        theirs.log.seal()
    append_small(ours)
    assert ours.log.head.seq == theirs.log.head.seq + 1
    assert ours.monitor is not None
    assert ours.monitor.violations == []


def test_what_holds_no_events_is_freed_with_the_batch_before_it() -> None:
    """A mark, or padding, is needed as long as the record that it stands behind, and no longer."""
    _, file = fresh()
    mark = b"\0mark".ljust(512, b"x")
    file.write_at(RING, record(1) + mark)
    file.write_at(RING + 1024, mark)
    file.sync()
    with pytest.raises(OrderViolation, match=r"^ring: the sector at 9216"):
        file.write_at(RING + 1024, record(2))
    file.write_at(4096, page(2, 1))
    file.sync()
    file.write_at(RING + 1024, record(2))


def test_the_zero_sector_after_a_record_may_be_overwritten() -> None:
    """It holds no record: the next one belongs there."""
    monitor, file = fresh()
    file.write_at(RING, record(1) + bytes(512))
    file.sync()
    file.write_at(RING + 512, record(2) + bytes(512))
    assert monitor.violations == []


def test_an_acknowledgement_without_a_sync_is_caught() -> None:
    """Also where the sync was another process's, and came before the write."""
    monitor, file = fresh()
    file.write_at(RING, record(1))
    file.sync()
    file.write_at(RING + 512, record(2))
    monitor.acknowledge(file.identity(), 1)
    with pytest.raises(OrderViolation, match="acknowledged: seq 2"):
        monitor.acknowledge(file.identity(), 2)


def test_a_file_under_creation_may_be_written_in_any_order() -> None:
    """Nobody can see it before it is linked; what counts is that it was synced by then."""
    monitor = OrderingMonitor(ToyGeometry())
    file = monitor.storage(SimulatedDisk().process()).create("a")
    file.write_at(DATA, b"first extent")
    file.write_at(4096, page(1))
    file.write_at(0, page(2))
    file.sync()
    assert monitor.violations == []


def test_a_file_that_was_there_before_is_read_when_it_is_opened() -> None:
    """What its header pages name is protected from the first write on."""
    disk = SimulatedDisk()
    disk.put("a", page(1) + page(2, end=DATA + 1024) + bytes(DATA))
    file = OrderingMonitor(ToyGeometry()).storage(disk.process()).open("a", mode="rw")
    with pytest.raises(OrderViolation, match="settled"):
        file.write_at(DATA + 512, b"x")


def test_another_process_may_write_an_extent_while_a_page_is_written() -> None:
    """Large payloads are written outside the lock, past every end that the page names.

    Python 3.13 gave the second process the memory, and so the id, of the first: seen as one.
    """
    disk = SimulatedDisk()
    monitor = OrderingMonitor(ToyGeometry())
    disk.put("a", page(1) + page(0) + bytes(RING_END - RING))
    ours = monitor.storage(disk.process()).open("a", mode="rw")
    theirs = monitor.storage(disk.process()).open("a", mode="rw")
    theirs.write_at(DATA + 4096, b"their extent")
    ours.write_at(4096, page(2))
    theirs.write_at(RING, record(1))
    ours.sync()
    theirs.write_at(RING + 512, record(2))
    with pytest.raises(OrderViolation, match="pages"):
        ours.write_at(0, page(3))
