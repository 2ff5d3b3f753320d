"""What a handle writes: marks, room in the ring, flips and what they leave known."""

from random import Random

import pytest

from cerata.engine.errors import StorageFailed
from cerata.engine.format.extent import ExtentKind
from cerata.engine.format.record import RECORD_HEADER_SIZE, decode_record_body, decode_record_header
from cerata.engine.limits import PAGE_SIZE, SECTOR_SIZE
from cerata.engine.log import Log
from cerata.engine.verify import verify_log

from ..inside import state_of
from .words import RING, Disk, counted, failing, put, texts

# --- marks and proofs ----------------------------------------------------------------------------


def test_records_and_marks_say_what_is_durable_and_nothing_else() -> None:
    """No flags: a reader of another make must not look for a spill."""
    disk = Disk()
    with disk.log() as log:
        start, key = state_of(log).cursor.offset, log.file.key
        log.append([put("a")])
        log.append([put("b")])
        log.close()
    prefixes: list[tuple[int, int, int]] = []
    for at in range(start, start + 3 * SECTOR_SIZE, SECTOR_SIZE):
        data = disk.image()[at : at + SECTOR_SIZE]
        header = decode_record_header(key, at, data)
        assert header is not None
        body = data[RECORD_HEADER_SIZE : RECORD_HEADER_SIZE + header.length]
        prefix = decode_record_body(key, at, header, body)
        assert prefix is not None
        prefixes.append((prefix.durable_through, prefix.flags, prefix.count))
    assert prefixes == [(0, 0, 1), (1, 0, 1), (2, 0, 0)]


def in_ring(log: Log, writes: list[tuple[int, int]]) -> list[int]:
    """Return the offsets of the writes of records; the witnesses stand beside the ring."""
    page = log.page
    return [offset for offset, _ in writes if page.ring_offset <= offset < page.ring_end]


def test_a_head_that_is_proven_is_not_proven_again() -> None:
    """Neither by the next call nor at the close, which only names it in a header page."""
    disk = Disk()
    with disk.log(sync="always") as log:
        log.append([put("a")])
        log.append([put("b")])
        with counted("write_at") as writes:
            log.commit()
            log.close()
        assert [offset for offset, _ in writes] == [0]


@pytest.mark.parametrize("at_the_end", [False, True])
def test_the_mark_of_a_closed_log_is_written_again_before_a_record(at_the_end: bool) -> None:
    """Its sync may have failed unseen: then nothing behind it would connect. Once is enough."""
    disk = Disk()
    log = disk.open()
    log.append([put("x" * 700)])
    left = 2 * SECTOR_SIZE
    while at_the_end and log.page.ring_end - state_of(log).cursor.offset > left:
        log.append([put("a")])
    log.seal()
    log.append([put("b")])
    mark = state_of(log).cursor.offset
    log.close()
    with disk.log() as log, counted("write_at") as writes:
        after = state_of(log).cursor.offset
        assert after == (log.page.ring_offset if at_the_end else mark + SECTOR_SIZE)
        for _ in range(2):
            log.append([put("c")])
        assert in_ring(log, writes) == [mark, after, after + SECTOR_SIZE]
    with disk.log() as log:
        assert texts(log)[-3:] == ["b", "c", "c"]
        assert verify_log(log).problems == ()


def test_padding_behind_a_mark_is_no_mark(monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer died between the padding and its record; the next one goes on at the start."""
    disk = Disk()
    log = disk.open()
    while log.page.ring_end - state_of(log).cursor.offset > 14_000:
        log.append([put("x" * 9_000)])
    log.seal()
    log.append([put("b")])
    log.close()
    log = disk.open()
    # The newest page, the mark and the padding come before the record.
    failing("write_at", monkeypatch, after=3)
    with pytest.raises(StorageFailed):
        log.append([put("y" * 14_000)])
    disk.kill()
    with disk.log() as log:
        assert log.report.is_clean
        assert state_of(log).cursor.offset == log.page.ring_offset
        log.append([put("z")])
        assert texts(log)[-1] == "z"
    with disk.log() as log:
        assert verify_log(log).problems == ()


def test_a_mark_that_others_wrote_behind_is_left_alone() -> None:
    """What stands after it connects to it as it is."""
    disk = Disk()
    with disk.log() as log:
        log.append([put("a")])
    with disk.log() as one, disk.log() as two:
        two.append([put("b")])
        with counted("write_at") as writes:
            one.append([put("c")])
        assert len(in_ring(one, writes)) == 1
    with disk.log() as log:
        assert texts(log) == ["a", "b", "c"]


def test_bytes_count_toward_the_next_sync_from_none() -> None:
    """From the opening, from a sync and from a seal on."""
    disk = Disk()
    with disk.log(sync=SECTOR_SIZE + 1) as log:
        assert not log.append([put("a")]).durable
        assert log.append([put("b")]).durable
        assert not log.append([put("c")]).durable
        log.seal()
        assert not log.append([put("d")]).durable
        log.commit()
        assert not log.append([put("e")]).durable


# --- room in the ring ----------------------------------------------------------------------------


def size_in_the_ring(text: str) -> int:
    with Disk().log() as log:
        log.append([put(text)])
        return state_of(log).cursor.used


@pytest.mark.parametrize("seed", range(4))
def test_the_ring_is_sealed_just_when_a_record_does_not_fit(seed: int) -> None:
    """Beside a model of the ring: a record never wraps, and an empty sector follows the last."""
    dice = Random(seed)
    words = ["x" * size for size in (1, 700, 2_000, 9_000, 14_000)]
    sizes = {word: size_in_the_ring(word) for word in words}
    with Disk().log() as log:
        page = log.page
        place, used, sealed = page.ring_offset, 0, 0
        for number in range(600):
            word = words[0] if dice.random() < 0.7 else dice.choice(words)
            size = sizes[word]
            padding = page.ring_end - place if place + size > page.ring_end else 0
            if used + padding + size + SECTOR_SIZE > RING:
                used, sealed = 0, number
            log.append([put(word)])
            if place + size > page.ring_end:
                used += page.ring_end - place
                place = page.ring_offset
            used += size
            place = page.ring_offset if place + size == page.ring_end else place + size
            cursor = state_of(log).cursor
            assert (cursor.offset, cursor.used, log.page.sealed_seq) == (place, used, sealed)


@pytest.mark.parametrize("start", [0, 1, 5])
def test_the_ring_is_filled_to_its_last_sector_but_one(start: int) -> None:
    """The empty sector after the last record ends the log; nothing else is left free."""
    with Disk().log() as log:
        for _ in range(start):
            log.append([put("a")])
        log.seal()
        count = RING // SECTOR_SIZE - 1
        for _ in range(count):
            log.append([put("a")])
        assert (log.page.sealed_seq, state_of(log).cursor.used) == (start, RING - SECTOR_SIZE)
        log.append([put("b")])
        assert (log.page.sealed_seq, state_of(log).cursor.used) == (start + count, SECTOR_SIZE)


# --- flips ---------------------------------------------------------------------------------------


def test_a_seal_is_one_generation_and_leaves_nothing_to_ask() -> None:
    """What comes after it knows the new page and TOC, and that all of it is durable."""
    disk = Disk()
    with disk.log(sync=1 << 20) as log:
        for number in range(3):
            assert not log.append([put("a")], key=f"k{number}").durable
            before = log.page
            log.seal()
            assert (log.page.generation, log.page.flip) == (
                before.generation + 1,
                before.flip + 1,
            )
            assert log.append([put("a")], key=f"k{number}").durable


def test_who_sealed_knows_what_it_wrote() -> None:
    """Neither the pages nor the TOC are read again by the next call."""
    with Disk().log() as log:
        log.append([put("a")])
        log.seal()
        page = log.page
        with counted("read_at") as reads:
            log.append([put("b")])
            log.seal()
        assert page.toc_offset not in {offset for offset, _ in reads}
        # Two turns of the pages were looked for, and the new pages kept once. The monitor of all
        # tests reads each single page before its write; the writer reads both pages or none.
        sizes = [size for offset, size in reads if offset < page.ring_offset]
        assert [size for size in sizes if size != PAGE_SIZE] == [212, 212, 2 * PAGE_SIZE]


def test_what_was_cut_is_kept_with_the_place_where_it_stood() -> None:
    """In one extent, under the seq that would have come: its checks can be tried again."""
    disk = Disk()
    with disk.log() as log:
        log.append([put("a")])
        at = state_of(log).cursor.offset
        half = b"half a record".ljust(SECTOR_SIZE, b"!")
        incarnation = log.page.incarnation
        disk.spoil(at, half)
        log.append([put("b")])
        (ref,) = log.toc().quarantine
        body = log.file.read_extent(ref, ExtentKind.QUARANTINE)
        assert (body[:8], body[8:]) == (at.to_bytes(8, "little"), half)
        assert (ref.first_seq, ref.last_seq) == (2, 2)
        assert log.page.incarnation == incarnation + 1


def test_a_toc_that_was_made_again_is_written_once() -> None:
    """With every segment it had, past the 256 that stand in it; then all is as before."""
    disk = Disk()
    words = [str(number) for number in range(300)]
    with disk.log() as log:
        for word in words:
            log.append([put(word)], key=word)
            log.seal()
        page = log.page
    disk.spoil(page.toc_offset + 10)
    with disk.log() as log:
        assert log.report.rebuilt_toc
        assert not log.reader.rebuilt
        log.append([put("more")], key="more")
        before = log.page.data_end
        log.seal()
        # A segment, a run of keys, a TOC: no second list of all the segments.
        assert log.page.data_end - before < 20_000
    for mode in ("r", "rw"):
        with disk.log(mode=mode) as log:
            assert texts(log) == [*words, "more"]
            assert verify_log(log).problems == ()


# --- mending -------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", [0, 1])
def test_a_damaged_page_met_by_an_append_is_written_anew(page: int) -> None:
    """Under the writer lock, with others about: nothing of theirs is trimmed."""
    disk = Disk()
    with disk.log() as other, disk.log() as log:
        log.append([put("a")])
        log.seal()
        log.append([put("b")])
        disk.spoil(PAGE_SIZE * page + (PAGE_SIZE - 1 if page == 0 else 60))
        size = len(disk.image())
        disk.node().data.extend(b"what another writer is about to name" + bytes(476))
        log.append([put("c")])
        assert log.report.bad_pages == (page,)
        assert log.report.trimmed_bytes == 0
        assert disk.image()[size:].startswith(b"what another writer is about to name")
        assert texts(log) == ["a", "b", "c"]
        other.refresh()
        assert texts(other) == ["a", "b", "c"]
    with disk.log() as log:
        assert log.report.bad_pages == ()
        assert texts(log) == ["a", "b", "c"]


def test_the_report_counts_what_opening_sealed() -> None:
    """Of the events that were not proven, and none that a segment held already."""
    disk = Disk()
    log = disk.open()
    for word in ("a", "b"):
        log.append([put(word)])
    log.seal()
    for word in ("c", "d", "e"):
        log.append([put(word)])
    disk.kill()
    with disk.log() as again:
        assert again.report.sealed_events == 3
        assert texts(again) == ["a", "b", "c", "d", "e"]
