"""Appending, sealing, reading: what a log holds, whatever way it got there."""

from functools import partial
from random import Random
from typing import Any
from unittest import mock

import pytest

from cerata.engine.codec import Prepared, WireEvent
from cerata.engine.copies.salvage import salvaged_events
from cerata.engine.errors import Closed, Conflict, InvalidInput, NotFound, ReadOnly
from cerata.engine.events import Draft, PutFrame
from cerata.engine.format.record import EMPTY_SECTOR
from cerata.engine.integrity import Tree, chain_next, chain_start, root_of
from cerata.engine.segments.reader import Reader, Snapshot
from cerata.engine.verify import verify_log

from ..inside import state_of
from .words import Disk, blob, one_chunk, other, put, stored, texts


def whole(disk: Disk, expected: list[str]) -> None:
    """Hold a log against what it must say: reopened, reread and recomputed."""
    with disk.log() as log:
        assert texts(log) == expected
        assert verify_log(log).problems == ()
    with disk.log(mode="r") as log:
        assert texts(log) == expected
        leaves = [event.leaf for event in log.read()]
        chain = chain_start(log.log_id)
        for leaf in leaves:
            chain = chain_next(chain, leaf)
        assert (log.head.chain, log.head.root) == (chain, root_of(leaves))


# --- what an append does -------------------------------------------------------------------------


def test_an_append_is_there_at_once_and_after_reopening() -> None:
    """The first promise."""
    disk = Disk()
    with disk.log() as log:
        done = log.append([put("a"), put("b")])
        assert (done.first_seq, done.last_seq, done.durable) == (1, 2, True)
        assert texts(log) == ["a", "b"]
    whole(disk, ["a", "b"])


def test_an_empty_log_is_whole() -> None:
    """Its chain begins with its id, its root is the hash of nothing."""
    disk = Disk()
    disk.open().close()
    whole(disk, [])


def test_expect_is_the_head_that_the_caller_saw() -> None:
    """Else somebody was faster, and nothing is written."""
    disk = Disk()
    with disk.log() as log:
        log.append([put("a")], expect=0)
        image = disk.image()
        with pytest.raises(Conflict, match="at event 1, not at 0"):
            log.append([put("b")], expect=0)
        assert disk.image() == image
        log.append([put("b")], expect=1)
    whole(disk, ["a", "b"])


@pytest.mark.parametrize("expect", [True, False, "0", 0.0])
def test_expect_is_a_number(expect: Any) -> None:
    """True is equal to 1, and nobody's head."""
    with Disk().log() as log:
        with pytest.raises(InvalidInput, match="expect must be a number"):
            log.append([put("a")], expect=expect)
        assert log.head.seq == 0


def test_validate_sees_what_came_since_and_refuses_by_raising() -> None:
    """It runs under the lock, so what it saw is all there is."""

    class Refusal(Exception):
        pass

    disk = Disk()
    with disk.log() as one, disk.log() as two:
        one.append([put("a")])
        one.append([put("b")])
        seen: list[int] = []

        def refuse(delta: Any) -> None:
            seen.extend(event.seq for event in delta)
            raise Refusal

        with pytest.raises(Refusal):
            two.append([put("c")], validate=refuse, known=1)
        assert seen == [2]
        two.append([put("c")], validate=lambda _: None, known=1)
    whole(disk, ["a", "b", "c"])


def test_recorded_increases_whatever_the_clock_does() -> None:
    """It stands still, then jumps back an hour; the raw clock is kept where it differs."""
    disk = Disk()
    disk.clock.step = 0
    with disk.log() as log:
        start = disk.clock.now
        log.append([put(), put()])
        log.append([put()])
        disk.clock.now -= 3_600_000_000
        log.append([put()])
        log.seal()
        log.append([put()])
        headers = [event.header for event in log.read()]
    assert [header.recorded - start for header in headers] == [0, 0, 1, 2, 3]
    back = start - 3_600_000_000
    assert [header.clock for header in headers] == [None, None, start, back, back]


def test_recorded_increases_across_reopening_and_writers() -> None:
    """The last recorded time is in the page, and whoever appends looks at it."""
    disk = Disk()
    disk.clock.step = 0
    for seal in (False, True, False):
        with disk.log() as one, disk.log() as two:
            one.append([put()])
            if seal:
                one.seal()
            two.append([put()])
    with disk.log() as log:
        times = [event.recorded for event in log.read()]
    assert times == sorted(set(times))


def test_close_is_harmless_twice_and_nothing_works_after_it() -> None:
    """A closed handle says so."""
    log = Disk().open()
    log.close()
    log.close()
    salvaging = partial(salvaged_events, log)
    appending = partial(log.append, [put()])
    for call in (appending, salvaging, log.refresh, log.seal, log.read, log.toc):
        with pytest.raises(Closed):
            call()


def test_a_reading_handle_refuses_to_write() -> None:
    """Whatever the writing call."""
    disk = Disk()
    disk.open().close()
    with disk.log(mode="r") as log:
        for call in (lambda: log.append([put()]), log.commit, log.seal):
            with pytest.raises(ReadOnly):
                call()


def test_what_is_not_there_is_not_found() -> None:
    """A chain hash of the future once came back as that of the head."""
    with Disk().log() as log:
        log.append([put()])
        for call in (log.event, log.chain_at, log.root_at):
            with pytest.raises(NotFound, match="There is no event 2"):
                call(2)
        with pytest.raises(NotFound):
            log.event(0)
        assert log.event(1).seq == 1
        assert log.chain_at(0) == chain_start(log.log_id)
        assert list(log.read(2)) == []
        assert [event.seq for event in log.read(0, 99)] == [1]


@pytest.mark.parametrize(
    "options",
    [
        {"mode": "w"},
        {"sync": "never"},
        {"sync": 0},
        {"sync": True},
        {"lock_timeout": -1},
        {"ring_bytes": 1},
        {"ring_bytes": (1 << 30) + 1},
    ],
)
def test_options_have_limits(options: dict[str, Any]) -> None:
    """A wrong one is refused before a file is made."""
    disk = Disk()
    with pytest.raises(InvalidInput):
        disk.open(**options)
    assert disk.storage.siblings("a") == []


# --- ring, padding, sealing ----------------------------------------------------------------------


def test_a_log_of_any_batch_sizes_reads_back(seed: int) -> None:
    """Records of all sizes meet the ring's end in every way: padding, wrap, exact fit, seal."""
    random = Random(seed)
    disk, expected = Disk(), list[str]()
    log = disk.open()
    for step in range(600):
        batch = [f"{step} " + "x" * random.choice([0, 1, 300, 400, 900, 5000])
                 for _ in range(random.choice([1, 1, 2, 5]))]  # fmt: skip
        log.append([put(text) for text in batch])
        expected += batch
        if random.random() < 0.02:
            log.seal()
        if random.random() < 0.02:
            log.close()
            log = disk.open()
    assert log.page.sealed_seq > 0
    log.close()
    whole(disk, expected)


@pytest.mark.parametrize("spare", range(0, 1500, 50))
def test_a_record_that_ends_at_the_rings_end_wraps(spare: int) -> None:
    """Exactly at it, a byte before it, a sector before it."""
    disk, expected = Disk(), list[str]()
    with disk.log() as log:
        log.append([put("x" * 10_000)])
        log.seal()
        expected.append("x" * 10_000)
        while (left := log.page.ring_end - state_of(log).cursor.offset) > 14_000:
            log.append([put("y" * 12_000)])
            expected.append("y" * 12_000)
        for text in ("z" * max(1, left - 160 - spare), "after", "the end"):
            log.append([put(text)])
            expected.append(text)
        assert state_of(log).cursor.offset < log.page.ring_start
    whole(disk, expected)


def test_a_zero_sector_ends_the_log(seed: int) -> None:
    """So the leavings of an earlier lap are never met."""
    random = Random(seed)
    with Disk().log() as log:
        for _ in range(400):
            log.append([put("x" * random.randrange(3000))])
            assert log.file.file.read_at(state_of(log).cursor.offset, 512) == EMPTY_SECTOR


def test_a_full_ring_is_never_an_error() -> None:
    """It is sealed and goes on."""
    disk = Disk()
    with disk.log() as log:
        for number in range(500):
            log.append([put(f"{number}")])
        assert log.head.seq == 500
        assert log.page.sealed_seq > 0
    whole(disk, [str(number) for number in range(500)])


def test_sealing_changes_nothing_that_can_be_seen() -> None:
    """Events, chain, root and recorded times are the same in a segment as in the ring."""
    with Disk().log() as log:
        log.append([put("a"), other(), blob(b"b" * 99)], key="k")
        log.append([Draft(PutFrame(text="c"), causation=1, actor="me", correlation="x")])
        before = stored(log.read()), log.head.chain, log.head.root, log.head.recorded
        log.seal()
        assert log.page.sealed_seq == 4
        after = stored(log.read()), log.head.chain, log.head.root, log.head.recorded
    assert before == after


def test_reading_any_part_equals_reading_all(seed: int) -> None:
    """Across segments, spills, blocks and the ring."""
    random = Random(seed)
    with Disk().log() as log:
        for number in range(60):
            log.append(
                [put(f"{number}", title="t" * random.randrange(900))] * random.randrange(1, 6)
            )
            if number % 13 == 0:
                log.append([put("large" * 5000), put("and small")])
            if number % 17 == 0:
                log.seal()
        everything = stored(log.read())
        head = log.head.seq
        for _ in range(200):
            first = random.randrange(1, head + 1)
            last = random.randrange(first, head + 1)
            assert stored(log.read(first, last)) == everything[first - 1 : last]
        for seq in random.sample(range(1, head + 1), 100):
            assert stored(iter([log.event(seq)])) == [everything[seq - 1]]


def test_every_head_has_its_own_chain_and_root() -> None:
    """In any order of asking, sealed or not."""
    with Disk().log() as log:
        for number in range(40):
            log.append([put(str(number))])
            if number in (9, 19):
                log.seal()
        leaves = [event.leaf for event in log.read()]
        chains = [chain_start(log.log_id)]
        for leaf in leaves:
            chains.append(chain_next(chains[-1], leaf))
        for seq in [40, 0, 9, 10, 11, 20, 19, 39, 5, 40, 1]:
            assert log.chain_at(seq) == chains[seq]
            assert log.root_at(seq) == root_of(leaves[:seq])


def test_chain_and_root_of_a_sealed_event_read_its_segment_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A fork asks for both; each was computed from the start of the segment."""
    with Disk().log() as log:
        log.append([put(str(number)) for number in range(9)])
        log.append([put("later")])
        log.seal()
        asked: list[int] = []
        computed = Reader.chain_and_tree

        def counted(reader: Reader, snapshot: Snapshot, seq: int) -> tuple[bytes, Tree]:
            asked.append(seq)
            return computed(reader, snapshot, seq)

        monkeypatch.setattr(Reader, "chain_and_tree", counted)
        log.chain_at(9)
        log.root_at(9)
        assert asked == [9]


def test_hashes_go_on_from_the_last_that_was_asked() -> None:
    """Each append of a chained run asks; from the start each time it would be quadratic."""
    with Disk().log() as log:
        log.append([put("a"), put("b")])
        assert log.head.root == root_of([event.leaf for event in log.read()])
        with mock.patch.object(Reader, "chain_and_tree", autospec=True) as from_the_start:
            for _ in range(3):
                log.append([put("c")])
                assert log.head.root == root_of([event.leaf for event in log.read()])
        assert from_the_start.call_count == 0


def test_what_projections_save_is_there_at_once() -> None:
    """The events before it are sealed, and the TOC names it."""
    disk = Disk()
    with disk.log() as log:
        log.append([put("a")])
        log.publish_projections(lambda flip, _: {"own": one_chunk(flip, 1, b"state")})
        assert list(log.toc().projections) == ["own"]
        assert log.page.sealed_seq == 1
    with disk.log(mode="r") as log:
        assert list(log.toc().projections) == ["own"]


def test_an_erased_event_keeps_its_leaf() -> None:
    """Through ring and segment; only the payload is gone."""
    commitment = b"c" * 32
    with Disk().log() as log:
        log.append([put("a")])
        with log._lock.writing():
            erased = WireEvent("putFrame", 1, None, None, commitment)
            kept = state_of(log).tail[0].events[0]
            log._writer.write_batch(Prepared((erased, kept), 200, None, None, "default"), None)
        log.commit()
        before = stored(log.read()), log.head.chain
        assert log.event(2).commitment == commitment
        log.seal()
        assert (stored(log.read()), log.head.chain) == before
        assert log.event(2).payload is None
        assert log.event(3).payload is not None
