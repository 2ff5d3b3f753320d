"""Appending, sealing, following: what a log holds, whatever way it got there."""

from random import Random
from typing import Any

import pytest

from cerata.engine import Draft, PutFrame
from cerata.engine.codec import Prepared, WireEvent
from cerata.engine.errors import (
    Closed,
    Conflict,
    InvalidInput,
    NotFound,
    OutcomeUnknown,
    ReadOnly,
    StorageFailed,
)
from cerata.engine.events import Attachment
from cerata.engine.format.record import EMPTY_SECTOR
from cerata.engine.integrity import chain_next, chain_start, hash_bytes, root_of
from cerata.engine.memory import MemoryFile
from cerata.engine.verify import verify_log
from cerata.engine.writer import Writer

from .words import RING, Disk, blob, other, put, stored, texts


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


@pytest.mark.parametrize(
    ("policy", "durable"), [("commit", True), ("always", True), (1 << 20, False), (512, True)]
)
def test_a_receipt_says_what_held_on_return(policy: Any, durable: bool) -> None:
    """Under a number of bytes it is durable only when that many were written."""
    disk = Disk()
    with disk.log(sync=policy) as log:
        assert log.append([put("a")]).durable is durable
        assert texts(log) == ["a"]
        log.commit()
        assert log.append([put("b")], key="k").durable is durable
        log.commit()
        assert log.append([put("b")], key="k").durable
    whole(disk, ["a", "b"])


def syncs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the syncs from here on."""
    calls: list[str] = []

    def sync(self: MemoryFile) -> None:
        calls.append("sync")

    monkeypatch.setattr(MemoryFile, "sync", sync)
    return calls


@pytest.mark.parametrize(("policy", "count"), [("commit", 10), ("always", 20), (2048, 2)])
def test_each_policy_syncs_as_often_as_it_says(
    policy: Any, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each record takes a sector; 2,048 bytes are four of them."""
    log = Disk().open(sync=policy)
    calls = syncs(monkeypatch)
    for _ in range(10):
        log.append([put("a")])
    assert len(calls) == count


def test_a_clean_close_proves_the_head_once() -> None:
    """The mark makes later damage to the last batch visible; closing again adds nothing."""
    disk = Disk()
    with disk.log() as log:
        log.append([put("a")])
    image = disk.image()
    with disk.log():
        pass
    assert disk.image() == image


def test_close_is_harmless_twice_and_nothing_works_after_it() -> None:
    """A closed handle says so."""
    log = Disk().open()
    log.close()
    log.close()
    for call in (lambda: log.append([put()]), log.refresh, log.seal, log.read, log.toc):
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
        while (left := log.page.ring_end - log._position.cursor.offset) > 14_000:
            log.append([put("y" * 12_000)])
            expected.append("y" * 12_000)
        for text in ("z" * max(1, left - 160 - spare), "after", "the end"):
            log.append([put(text)])
            expected.append(text)
        assert log._position.cursor.offset < log.page.ring_start
    whole(disk, expected)


def test_a_zero_sector_ends_the_log(seed: int) -> None:
    """So the leavings of an earlier lap are never met."""
    random = Random(seed)
    with Disk().log() as log:
        for _ in range(400):
            log.append([put("x" * random.randrange(3000))])
            assert log.file.file.read_at(log._position.cursor.offset, 512) == EMPTY_SECTOR


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


# --- large batches -------------------------------------------------------------------------------


def test_a_large_batch_goes_beside_the_ring() -> None:
    """Only a record that names it goes through, so the ring stays small."""
    disk = Disk()
    with disk.log() as log:
        log.append([put("a" * RING), put("b")])
        assert log._position.cursor.used == 512
    whole(disk, ["a" * RING, "b"])


def test_an_unsealed_large_batch_outlives_reopening() -> None:
    """Opening alone once trimmed what only a ring record names: acknowledged events were lost."""
    disk = Disk()
    with disk.log() as log:
        log.append([put("a" * 40_000)])
        log.append([put("b")])
    for _ in range(3):
        whole(disk, ["a" * 40_000, "b"])
    disk.open()
    disk.kill()
    whole(disk, ["a" * 40_000, "b"])


def test_a_large_batch_of_a_killed_writer_outlives_it() -> None:
    """The same where recovery has to seal it."""
    disk = Disk()
    disk.open().append([put("a" * 40_000)])
    disk.kill()
    with disk.log() as log:
        assert log.report.sealed_events == 1
    whole(disk, ["a" * 40_000])


def test_a_refused_large_batch_leaves_only_dead_space() -> None:
    """Its extent was written before the refusal; the next opener that is alone trims it."""
    disk = Disk()
    with disk.log() as log:
        size = len(disk.image())
        with pytest.raises(Conflict):
            log.append([put("a" * 40_000)], expect=7)
        assert len(disk.image()) > size
    with disk.log() as log:
        assert log.report.trimmed_bytes > 0
        assert len(disk.image()) == size


def test_attachments_come_back_by_their_hash() -> None:
    """From ring, segment and spill; and no others do."""
    small, large = b"s" * 100, b"l" * 100_000
    with Disk().log() as log:
        log.append([blob(small)])
        log.append([blob(large), blob(small)])
        for _ in range(2):
            for seq, data in ((1, small), (2, large), (3, small)):
                assert log.attachment(seq, Attachment(hash_bytes(data), len(data))) == data
            with pytest.raises(NotFound):
                log.attachment(1, Attachment(hash_bytes(large), len(large)))
            log.seal()


def test_an_erased_event_keeps_its_leaf() -> None:
    """Through ring and segment; only the payload is gone."""
    commitment = b"c" * 32
    with Disk().log() as log:
        log.append([put("a")])
        with log._hold.writing():
            erased = WireEvent("putFrame", 1, None, None, commitment)
            kept = log._position.tail[0].events[0]
            log._writer.write_batch(Prepared((erased, kept), 200, None, None, "default"), None)
        log.commit()
        before = stored(log.read()), log.head.chain
        assert log.event(2).commitment == commitment
        log.seal()
        assert (stored(log.read()), log.head.chain) == before
        assert log.event(2).payload is None
        assert log.event(3).payload is not None


# --- several handles -----------------------------------------------------------------------------


def test_two_handles_follow_each_other() -> None:
    """Appends alternate; each sees the other's on refresh, sealed or not."""
    disk = Disk()
    with disk.log() as one, disk.log() as two, disk.log(mode="r") as reader:
        for number in range(300):
            (one if number % 3 else two).append([put(str(number))])
            if number % 50 == 7:
                two.seal()
            if number % 11 == 0:
                assert reader.refresh().seq == number + 1
        assert one.refresh() == two.refresh()
        expected = [str(number) for number in range(300)]
        assert texts(one) == texts(two) == expected
        reader.refresh()
        assert texts(reader) == expected
    whole(disk, expected)


def test_an_append_sees_whichever_page_was_turned() -> None:
    """It looks only where the two pages meet; a seal alone leaves the ring as it was."""
    disk = Disk()
    with disk.log() as one, disk.log() as two:
        for number in range(4):
            one.append([put(f"one {number}")])
            two.refresh()
            one.seal()
            assert two.page.flip < one.page.flip
            two.append([put(f"two {number}")])
            assert (two.page, one.page.number) == (one.page, number % 2)
    whole(disk, [f"{name} {number}" for number in range(4) for name in ("one", "two")])


def test_a_snapshot_stays_while_others_write_and_seal() -> None:
    """A read that began goes on over what it began with."""
    disk = Disk()
    with disk.log() as writer, disk.log() as log:
        for number in range(20):
            log.append([put(str(number))])
        reading = log.read()
        next(reading)
        snapshot = log.snapshot
        for number in range(400):
            writer.append([put("later" + str(number))])
        log.refresh()
        assert [event.seq for event in reading] == list(range(2, 21))
        assert [event.seq for event in log.reader.events(snapshot, 1, 20)] == list(range(1, 21))


def test_marks_between_batches_do_not_disturb() -> None:
    """Every handle that closes leaves one."""
    disk = Disk()
    with disk.log() as stays:
        for number in range(10):
            with disk.log() as log:
                log.append([put(str(number))])
        stays.append([put("last")])
    whole(disk, [*(str(number) for number in range(10)), "last"])


def test_a_reader_shows_nothing_that_is_not_durable(monkeypatch: pytest.MonkeyPatch) -> None:
    """What another process wrote and has not synced, a reader syncs before it shows it."""
    disk = Disk()
    with disk.log(sync=1 << 20) as writer, disk.log(mode="r") as reader:
        writer.append([put("a")])
        calls = syncs(monkeypatch)
        reader.refresh()
        assert calls == ["sync"]
        assert texts(reader) == ["a"]


# --- errors of the disk --------------------------------------------------------------------------


def failing(name: str, monkeypatch: pytest.MonkeyPatch, *, after: int = 0) -> None:
    """Make a call of the file fail once, after so many that succeed."""
    real = getattr(MemoryFile, name)
    left = [after]

    def fail(self: MemoryFile, *arguments: Any) -> Any:
        left[0] -= 1
        if left[0] == -1:
            raise StorageFailed("Cannot do it", remedy="Check the disk.")
        return real(self, *arguments)

    monkeypatch.setattr(MemoryFile, name, fail)


def test_a_failed_sync_poisons_the_handle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody knows what the disk holds; reopening finds out."""
    disk = Disk()
    log = disk.open()
    log.append([put("a")])
    failing("sync", monkeypatch)
    with pytest.raises(OutcomeUnknown):
        log.append([put("b")])
    for call in (lambda: log.append([put("c")]), log.refresh, log.read):
        with pytest.raises(OutcomeUnknown):
            call()
    log.close()
    with disk.log() as log:
        assert texts(log) == ["a", "b"]
        assert log.report.sealed_events == 2


def test_a_failed_write_acknowledges_nothing_and_the_handle_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The record may be there in part: the next append cuts it."""
    disk = Disk()
    log = disk.open()
    log.append([put("a")])
    failing("write_at", monkeypatch)
    with pytest.raises(StorageFailed):
        log.append([put("b")])
    log.append([put("c")])
    log.close()
    whole(disk, ["a", "c"])


@pytest.mark.parametrize("after", [0, 1])
def test_a_full_disk_during_a_seal_does_not_poison(
    after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing names what was written; when there is space again, the same call succeeds."""
    disk = Disk()
    log = disk.open()
    log.append([put("a" * 5000)])
    if after == 0:
        failing("write_at", monkeypatch)
        with pytest.raises(StorageFailed):
            log.seal()
        log.seal()
    log.append([put("b")])
    log.close()
    whole(disk, ["a" * 5000, "b"])


@pytest.mark.parametrize("step", range(2))
def test_an_interrupt_leaves_the_handle_true(step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """It struck between cursor and tail, and the handle went on with a gap in its events."""
    disk = Disk()
    log = disk.open()
    log.append([put("a")])
    name = "write_record" if step else "_make_room"
    real = getattr(Writer, name)

    def interrupted(self: Writer, *arguments: Any) -> None:
        real(self, *arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(Writer, name, interrupted)
    with pytest.raises(KeyboardInterrupt):
        log.append([put("b")])
    monkeypatch.setattr(Writer, name, real)
    log.append([put("c")])
    expected = ["a", "b", "c"] if step else ["a", "c"]
    assert texts(log) == expected
    log.close()
    whole(disk, expected)
