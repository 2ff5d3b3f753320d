"""The ring, record by record: where a walk ends, and what lies beyond it, whatever its size."""

from dataclasses import dataclass, field

import pytest
from msgspec.structs import replace

from cerata.engine.codec import WireBatch, encode_content, prepare
from cerata.engine.format.page import HeaderPage
from cerata.engine.format.record import RecordPrefix, encode_padding, encode_record
from cerata.engine.limits import BATCH_EVENTS_MAX, RING_SIZE_GROWN, SECTOR_SIZE
from cerata.engine.log_file.ring import Cursor, End, Walk, grown_size, look_beyond, walk

from .words import Disk, put, texts

STEP = 64 << 10
"""A walk reads so much at a time."""


def a_page(ring_size: int, start: int) -> HeaderPage:
    with Disk().log(ring_bytes=ring_size) as log:
        return replace(log.page, ring_start=log.page.ring_offset + start)


@dataclass
class Ring:
    """A ring that is written by hand. ``at`` is where the next record goes."""

    size: int = 4 * STEP
    start: int = 0
    key: bytes = bytes(range(32))
    page: HeaderPage = field(init=False)
    disk: Disk = field(init=False)
    at: Cursor = field(init=False)

    def __post_init__(self) -> None:
        self.page = a_page(self.size, self.start)
        self.disk = Disk.holding(bytes(self.page.ring_end))
        self.at = Cursor.at_start(self.page)

    def read(self, offset: int, size: int) -> bytes:
        assert self.page.ring_offset <= offset
        assert offset + size <= self.page.ring_end
        return bytes(self.disk.node().data[offset : offset + size])

    def record(self, size: int = SECTOR_SIZE, *, count: int = 1, **changes: int) -> int:
        """Write a record of ``size`` bytes of ring, or nearly; return its offset.

        ``changes`` are of seq, durable or incarnation, against what would connect.
        """
        at = self.at
        seq = at.next_seq + changes.get("seq", 0)
        incarnation = at.incarnation + changes.get("incarnation", 0)
        text = "x" * max(1, size - 300)
        events = prepare([put(text)] * count, bytes).events if count else ()
        content = encode_content(WireBatch(seq, None, events)) if count else b""
        prefix = RecordPrefix(changes.get("durable", 0), 0, count, at.link)
        data, link = encode_record(self.key, at.offset, seq, incarnation, prefix, content)
        self.disk.spoil(at.offset, data)
        following = at.offset + len(data)
        self.at = Cursor(
            self.page.ring_offset if following == self.page.ring_end else following,
            at.used + len(data),
            seq + count,
            link,
            incarnation,
            max(at.durable_through, prefix.durable_through),
            at.offset,
        )
        return at.offset

    def padding(self) -> None:
        at = self.at
        size = self.page.ring_end - at.offset
        self.disk.spoil(
            at.offset, encode_padding(self.key, at.offset, at.incarnation, size, at.link)
        )
        self.at = replace(at, offset=self.page.ring_offset, used=at.used + size)

    def walk(self) -> Walk:
        return walk(self.read, self.key, self.page, Cursor.at_start(self.page))

    def beyond(self) -> list[int]:
        """Return the offsets of what lies beyond the end of the walk, in the order found."""
        file = self.disk.storage.open("brain.cera", mode="r")
        cursor = self.walk().cursor
        return [row.offset for row in look_beyond(file, self.key, self.page, cursor)]


# --- walking -------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [SECTOR_SIZE, 3 * SECTOR_SIZE, 9_000, STEP, STEP + 700])
@pytest.mark.parametrize("start", [0, SECTOR_SIZE, 3 * STEP + SECTOR_SIZE])
def test_records_are_followed_over_every_read_and_the_wrap(size: int, start: int) -> None:
    """A record begins in one read and ends in the next; the ring goes on at its beginning."""
    ring = Ring(start=start)
    written = 0
    while ring.at.used + 2 * size + SECTOR_SIZE < ring.size:
        if ring.at.offset + size + SECTOR_SIZE > ring.page.ring_end:
            ring.padding()
        ring.record(size)
        written += 1
    found = ring.walk()
    assert (found.cursor, found.end, len(found.batches)) == (ring.at, End.EMPTY, written)
    assert [batch.first_seq for batch in found.batches] == list(range(1, written + 1))


def test_a_walk_reads_no_more_than_it_must() -> None:
    """A step at a time, and a record's rest only where it goes on past it."""
    ring = Ring()
    while ring.at.used < 3 * STEP:
        ring.record(5_000)
    read: list[tuple[int, int]] = []

    def reading(offset: int, size: int) -> bytes:
        read.append((offset - ring.page.ring_offset, size))
        return ring.read(offset, size)

    assert walk(reading, ring.key, ring.page, Cursor.at_start(ring.page)).cursor == ring.at
    assert len(read) == 4
    assert [size for _, size in read[:3]] == [STEP] * 3


@pytest.mark.parametrize(
    ("changes", "end"),
    [
        ({"seq": 1}, End.UNLINKED),
        ({"seq": -1}, End.STALE),
        ({"incarnation": -1}, End.STALE),
        ({"durable": 3}, End.TORN),
        ({"durable": 4}, End.TORN),
        ({"durable": 2, "incarnation": 1}, End.EMPTY),
    ],
)
def test_a_record_that_says_the_wrong_thing_ends_the_walk(
    changes: dict[str, int], end: End
) -> None:
    """The third of three: another seq, an earlier life, or proof of itself."""
    ring = Ring()
    ring.record()
    ring.record()
    before = ring.at
    ring.record(**changes)
    found = ring.walk()
    assert found.end is end
    assert (found.cursor == before) is (end is not End.EMPTY)


def test_a_record_that_would_pass_the_rings_end_is_none() -> None:
    """However well it verifies; one that ends there is one."""
    ring = Ring()
    while ring.at.offset + SECTOR_SIZE < ring.page.ring_end:
        ring.record()
    ring.record()
    whole = ring.walk()
    # All of it is used: the next record would be the first again.
    assert (whole.end, whole.cursor.used) == (End.FULL, ring.size)
    ring = Ring()
    while ring.at.offset + SECTOR_SIZE < ring.page.ring_end:
        ring.record()
    last = ring.at
    ring.disk.node().data.extend(bytes(SECTOR_SIZE))
    ring.record(2 * SECTOR_SIZE)
    found = ring.walk()
    assert (found.end, found.cursor) == (End.BAD, last)
    assert ring.beyond() == []


def test_padding_that_ends_elsewhere_or_belongs_to_another_record_is_not_followed() -> None:
    """It must reach the ring's end exactly, and carry the link of the record before it."""
    ring = Ring()
    ring.record()
    at = ring.at
    short = encode_padding(ring.key, at.offset, at.incarnation, 2 * SECTOR_SIZE, at.link)
    ring.disk.spoil(at.offset, short)
    assert ring.walk().end is End.BAD
    size = ring.page.ring_end - at.offset
    foreign = encode_padding(ring.key, at.offset, at.incarnation, size, bytes(len(at.link)))
    ring.disk.spoil(at.offset, foreign)
    assert ring.walk().end is End.STALE
    assert ring.walk().cursor == at


# --- looking beyond ------------------------------------------------------------------------------


def broken(start: int, *, rest: int = 3) -> tuple[Ring, list[int]]:
    """Return a ring of two records, a hole, and ``rest`` more, with the offsets of these."""
    ring = Ring(start=start)
    ring.record()
    ring.record()
    hole = ring.record()
    beyond: list[int] = []
    for _ in range(rest):
        if ring.at.offset + 4 * SECTOR_SIZE > ring.page.ring_end:
            ring.padding()
        beyond.append(ring.record(4 * SECTOR_SIZE))
    ring.disk.spoil(hole)
    return ring, beyond


@pytest.mark.parametrize("start", [0, SECTOR_SIZE, 228 * SECTOR_SIZE, 4 * STEP - 8 * SECTOR_SIZE])
def test_what_lies_beyond_a_hole_is_found_in_ring_order(start: int) -> None:
    """Also where it goes on at the ring's beginning, before what came first."""
    ring, beyond = broken(start)
    assert ring.walk().end is End.BAD
    assert ring.beyond() == beyond


@pytest.mark.parametrize("start", [0, 2 * STEP])
def test_a_connected_mark_is_not_beyond(start: int) -> None:
    """It bears the next event's seq, as what comes after the end does."""
    ring = Ring(start=start)
    ring.record()
    ring.record(count=0, durable=1)
    end = ring.at
    assert ring.walk().cursor == end
    assert ring.beyond() == []
    # A mark further on that connects to nothing says nothing either; an event there does.
    ring.at = replace(end, offset=end.offset + 8 * SECTOR_SIZE)
    ring.record(count=0, durable=1)
    assert ring.beyond() == []
    ring.at = replace(end, offset=end.offset + 8 * SECTOR_SIZE)
    assert [ring.record()] == ring.beyond()


def test_a_record_right_at_the_end_that_does_not_follow_is_beyond() -> None:
    """Nothing lies between it and the end; its seq says that something is missing."""
    ring = Ring()
    ring.record()
    unlinked = ring.record(seq=1)
    assert ring.walk().end is End.UNLINKED
    assert ring.beyond() == [unlinked]


def test_no_seq_is_beyond_that_the_ring_could_not_hold() -> None:
    """Every record of the ring with as many events as one can have: more is another life's."""
    ring = Ring()
    ring.record()
    end = ring.at
    furthest = BATCH_EVENTS_MAX * (ring.size // SECTOR_SIZE)
    for seq, expected in ((furthest, 1), (furthest + 1, 0)):
        ring.at = replace(end, offset=end.offset + SECTOR_SIZE)
        ring.record(seq=seq)
        assert len(ring.beyond()) == expected


def test_a_record_of_an_earlier_life_is_not_beyond() -> None:
    """It was cut: it must never count as the rest of a group."""
    ring = Ring()
    ring.record(incarnation=1)
    ring.at = replace(ring.at, offset=ring.at.offset + SECTOR_SIZE)
    ring.record(seq=3, incarnation=-1)
    assert ring.beyond() == []


def test_a_record_whose_body_does_not_hold_is_not_beyond() -> None:
    """Its header alone proves nothing."""
    ring, beyond = broken(0)
    ring.disk.spoil(beyond[1] + 700)
    assert ring.beyond() == [beyond[0], beyond[2]]


def test_a_large_ring_is_read_again_as_it_was_written() -> None:
    """Through a log, with records that do not fit the steps of the walk."""
    disk = Disk()
    words = [f"{number} " + "y" * (997 * number % 30_000) for number in range(60)]
    with disk.log(ring_bytes=4 << 20) as log:
        for word in words:
            log.append([put(word)])
        disk.kill()
        for mode in ("r", "rw"):
            with Disk.holding(disk.image()).log(mode=mode) as again:
                assert texts(again) == words


@pytest.mark.parametrize(
    ("data_end", "ring_size", "size"),
    [
        (8 * RING_SIZE_GROWN, RING_SIZE_GROWN - SECTOR_SIZE, RING_SIZE_GROWN),
        (8 * RING_SIZE_GROWN - 1, RING_SIZE_GROWN - SECTOR_SIZE, None),
        (8 * RING_SIZE_GROWN, RING_SIZE_GROWN, None),
    ],
)
def test_a_ring_grows_once_in_a_large_file(data_end: int, ring_size: int, size: int | None) -> None:
    """From 4 MiB on, and only a smaller ring."""
    page = replace(a_page(2 * STEP, 0), data_end=data_end, ring_size=ring_size)
    assert grown_size(page) == size
