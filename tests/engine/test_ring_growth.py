"""A ring that grows: a flip seals all events and names a new, larger ring behind the data."""

from collections.abc import Callable

import pytest

from cerata.engine.copies.backup import back_up
from cerata.engine.errors import CerataError, OutcomeUnknown
from cerata.engine.format.page import RING_OFFSET
from cerata.engine.limits import RING_SIZE_GROWN
from cerata.engine.log import Log
from cerata.engine.log_file import ring
from cerata.engine.open import open_log
from cerata.engine.verify import verify_log

from ..inside import state_of
from .test_recovery import recovered
from .words import PATH, RING, Disk, failing, put, texts

PAGES = 8192
LARGER = 2 * RING


def grown(disk: Disk, *words: str) -> Log:
    """Append a, grow the ring, and append the words; the log stays open."""
    log = disk.open()
    log.append([put("a")])
    log.seal(ring_bytes=LARGER)
    for word in words:
        log.append([put(word)])
    return log


def test_a_grown_ring_holds_the_events_that_follow() -> None:
    """Links and seqs go on from the old ring; the new ring lies behind the data of its time."""
    disk = Disk()
    log = grown(disk, "b", "c")
    assert (log.page.ring_size, log.page.sealed_seq) == (LARGER, 1)
    assert log.page.ring_offset > RING_OFFSET + RING
    assert log.page.ring_offset % 4096 == 0
    log.close()
    with disk.log() as log:
        assert texts(log) == ["a", "b", "c"]
        assert log.report.is_clean
        assert verify_log(log).problems == ()


def test_a_killed_writers_records_in_a_grown_ring_are_recovered() -> None:
    """Recovery looks where the page says that the ring is."""
    disk = Disk()
    grown(disk, "b", "c")
    disk.kill()
    said, report = recovered(disk)
    assert (said, report.sealed_events) == (["a", "b", "c"], 2)


def test_other_handles_follow_the_log_into_its_new_ring() -> None:
    """A reader and a writer that have read the old ring."""
    disk = Disk()
    with disk.log() as writer, disk.log(mode="r") as reader:
        log = grown(disk, "b")
        reader.refresh()
        assert texts(reader) == ["a", "b"]
        writer.append([put("c")])
        assert writer.page.ring_size == LARGER
        reader.refresh()
        log.refresh()
        assert texts(reader) == texts(log) == ["a", "b", "c"]
        log.close()


@pytest.mark.parametrize("is_large", [False, True])
def test_a_full_ring_grows_in_a_large_file_only(
    is_large: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A small file would hold more ring than data; a second growth never happens."""
    if is_large:
        monkeypatch.setattr(ring, "_GROWTH_RATIO", 0)
    disk = Disk()
    with disk.log() as log:
        for _ in range(9):
            log.append([put("x" * 14_000)])
        assert log.page.ring_size == (RING_SIZE_GROWN if is_large else RING)
        offset = log.page.ring_offset
        for _ in range(60):
            log.append([put("x" * 14_000)])
        assert log.page.ring_offset == offset
        assert len(texts(log)) == 69
        assert verify_log(log).problems == ()


def test_a_file_of_four_mebibytes_is_large() -> None:
    """The bound itself."""
    disk = Disk()
    with disk.log() as log:
        while log.page.data_end < 8 * RING_SIZE_GROWN:
            assert log.page.ring_size == RING
            log.append([put("x" * 200_000)])
            log.seal()
        for _ in range(9):
            log.append([put("x" * 14_000)])
        assert log.page.ring_size == RING_SIZE_GROWN


def unpublished(disk: Disk) -> Log:
    """Leave a flip to a new ring whose page was never written; return a handle from before it."""
    log = disk.open()
    grower = disk.open()
    log.append([put("a")])
    before = disk.image()[:PAGES]
    grower.seal(ring_bytes=LARGER)
    disk.spoil(0, before)
    return log


@pytest.mark.unwatched("the test writes over the file")
@pytest.mark.parametrize("bad_page", [None, 0, 1])
def test_a_process_goes_on_in_the_old_ring_beside_a_flip_that_was_never_published(
    bad_page: int | None,
) -> None:
    """A whole footer names an empty ring, and the events that follow are in the old ring.

    An opener that believed the footer would lose acknowledged events.
    """
    disk = Disk()
    log = unpublished(disk)
    log.append([put("b")])
    log.append([put("c")])
    disk.kill()
    if bad_page is not None:
        # The other page still names the old ring.
        disk.spoil(bad_page * 4096 + 50)
    said, _ = recovered(disk)
    assert said == ["a", "b", "c"]


@pytest.mark.unwatched("the test writes over the file")
def test_a_flip_to_a_new_ring_that_was_never_published_is_dropped() -> None:
    """All its events are still in the old ring; the space is given back."""
    disk = Disk()
    log = unpublished(disk)
    size = log.page.data_end
    disk.kill()
    with disk.log() as log:
        assert not log.report.adopted_footer
        assert log.report.trimmed_bytes > LARGER
        assert texts(log) == ["a"]
        assert log.page.ring_offset == RING_OFFSET
    assert size < len(disk.image())


@pytest.mark.unwatched("the test writes over the file")
@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("mode", ["r", "rw"])
def test_a_page_of_a_grown_ring_may_be_lost(mode: str, number: int) -> None:
    """Both pages name the new ring before it has a record."""
    disk = Disk()
    log = grown(disk, "b", "c")
    page = log.page
    disk.kill()
    disk.spoil(number * 4096 + 50)
    with disk.log(mode=mode) as log:
        assert log.page.ring_offset == page.ring_offset
        assert texts(log) == ["a", "b", "c"]
    if mode == "rw":
        assert recovered(disk)[0] == ["a", "b", "c"]


@pytest.mark.unwatched("the test writes over the file")
@pytest.mark.parametrize("is_joined", [False, True])
def test_a_page_that_moved_the_ring_may_never_have_reached_the_disk(
    is_joined: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its sync failed, but the system shows it; a later writer must not rely on it alone."""
    disk = Disk()
    log = disk.open()
    log.append([put("a")])
    log.commit()
    second = disk.open() if is_joined else None
    before = disk.image()[:PAGES]
    with monkeypatch.context() as patch:
        # The extents are synced, the page is not.
        failing("sync", patch, after=1)
        with pytest.raises(OutcomeUnknown):
            log.seal(ring_bytes=LARGER)
    (lost,) = (number for number in (0, 1) if page_at(disk, number) != page_in(before, number))
    if second is None:
        disk.kill()
        second = disk.open()
    second.append([put("b")])
    assert second.page.ring_size == LARGER
    disk.kill()
    disk.spoil(lost * 4096, page_in(before, lost))
    assert recovered(disk)[0] == ["a", "b"]


def page_in(pages: bytes, number: int) -> bytes:
    return pages[number * 4096 : (number + 1) * 4096]


def page_at(disk: Disk, number: int) -> bytes:
    return page_in(disk.image(), number)


@pytest.mark.unwatched("the test writes over the file")
def test_a_record_behind_an_unpublished_flip_may_be_torn() -> None:
    """The footer would hide it; the old page shows the torn record, and recovery reports it."""
    disk = Disk()
    log = unpublished(disk)
    log.append([put("b" * 900)])
    offset = state_of(log).cursor.last
    disk.kill()
    disk.spoil(offset + 700)
    disk.spoil((1 - log.page.number) * 4096 + 50)
    said, report = recovered(disk)
    assert (said, report.cut_records) == (["a"], 1)


@pytest.mark.unwatched("the test writes over the file")
@pytest.mark.parametrize("is_published", [True, False])
def test_salvage_finds_the_ring_that_is_in_use(is_published: bool) -> None:
    """Without any page: the newest footer, unless the old ring holds later events."""
    disk = Disk()
    log = grown(disk, "b", "c") if is_published else unpublished(disk)
    if not is_published:
        log.append([put("b")])
        log.append([put("c")])
    disk.kill()
    disk.spoil(0, bytes(PAGES))
    with open_log(PATH, mode="r", environment=disk.environment, salvage=True) as log:
        assert texts(log) == ["a", "b", "c"]


def sectors_of(image: bytes) -> list[int]:
    return list(range(0, len(image), 512))


def flip_bit(disk: Disk, at: int) -> None:
    disk.spoil(at)


def zero_sector(disk: Disk, at: int) -> None:
    disk.spoil(at, bytes(512))


@pytest.mark.unwatched("the test writes over the file")
@pytest.mark.parametrize("spoil", [flip_bit, zero_sector])
def test_damage_to_any_sector_is_detected_or_harmless(
    spoil: Callable[[Disk, int], None],
) -> None:
    """Of a file whose ring has grown: no damage changes or hides an event in silence."""
    disk = Disk()
    log = grown(disk, "b", "c", "d")
    log.close()
    image = disk.image()
    old = range(RING_OFFSET + 512, RING_OFFSET + RING)
    new = range(log.page.ring_offset + 8 * 512, log.page.ring_end)
    for at in sectors_of(image):
        if at in old or at in new:
            continue  # Zeros.
        damaged = Disk.holding(image)
        spoil(damaged, at)
        try:
            with damaged.log(mode="r") as log:
                said = texts(log)
                is_known = bool(verify_log(log).problems) or not log.report.is_clean
        except CerataError:
            continue  # Detected.
        assert said == ["a", "b", "c", "d"] or is_known, at


def test_a_backup_of_a_grown_ring_has_its_ring_in_front() -> None:
    """The space of the old ring is not copied."""
    disk = Disk()
    with grown(disk, "b") as log:
        back_up(log, "copy.cera")
    with disk.log(path="copy.cera") as copy:
        assert (copy.page.ring_offset, copy.page.ring_size) == (RING_OFFSET, LARGER)
        assert texts(copy) == ["a", "b"]
        assert verify_log(copy).dead_bytes < RING
