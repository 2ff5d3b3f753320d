"""An idempotency key: the same call again is the first call, wherever its batch stands by now."""

from random import Random
from unittest import mock

import pytest
from blake3 import blake3

from cerata.engine import log as log_module
from cerata.engine.codec import Batch, WireEvent, key_hash, prepare
from cerata.engine.errors import Corrupt, IdempotencyConflict, InvalidInput, ReadOnly
from cerata.engine.events import Draft, PutFrame
from cerata.engine.format.extent import ExtentKind
from cerata.engine.format.toc import Ref
from cerata.engine.log_file import idempotency
from cerata.engine.log_file.file import Flip, LogFile
from cerata.engine.log_file.idempotency import KeyIndex, encode_run
from cerata.engine.segments.reader import Reader
from cerata.engine.verify import verify_log

from ..inside import state_of
from .words import RING, Disk, erasing, put, texts

TENANT = (("tenant", "other"),)


def test_the_same_key_and_arguments_write_once() -> None:
    """The second call returns what the first did, and says so."""
    with Disk().log() as log:
        first = log.append([put("a"), put("b")], key="k", arguments=b"1")
        again = log.append([put("not written")], key="k", arguments=b"1")
        assert (again.first_seq, again.last_seq, again.replayed) == (1, 2, True)
        assert (first.replayed, again.head, again.durable) == (False, first.head, True)
        assert texts(log) == ["a", "b"]


@pytest.mark.parametrize("arguments", [None, b"2"])
def test_the_same_key_with_other_arguments_is_refused(arguments: bytes | None) -> None:
    """It would be another request under the name of the first."""
    with Disk().log() as log:
        log.append([put("a")], key="k", arguments=b"1")
        with pytest.raises(IdempotencyConflict, match="event 1"):
            log.append([put("a")], key="k", arguments=arguments)


def test_a_key_belongs_to_its_tenant() -> None:
    """Two tenants never meet."""
    with Disk().log() as log:
        log.append([put("a")], key="k")
        log.append([Draft(PutFrame(text="b"), TENANT)], key="k")
        assert texts(log) == ["a", "b"]
        assert log.append([Draft(PutFrame(text="c"), TENANT)], key="k").first_seq == 2


def test_a_key_is_looked_up_before_expect() -> None:
    """A retry of a call that had succeeded must not fail because it succeeded."""
    with Disk().log() as log:
        log.append([put("a")], key="k", expect=0)
        assert log.append([put("a")], key="k", expect=0).replayed


@pytest.mark.parametrize("where", ["ring", "segment", "spill", "reopened", "another handle"])
def test_a_key_is_found_wherever_its_batch_is(where: str) -> None:
    """In the ring, sealed, in a spill, after reopening, by another process."""
    disk = Disk()
    log = disk.open()
    text = "x" * (RING if where == "spill" else 1)
    log.append([put("first")])
    log.append([put(text)], key="k")
    if where == "segment":
        log.seal()
    if where == "reopened":
        log.close()
        log = disk.open()
    if where == "another handle":
        log = disk.open()
    assert log.append([put("again")], key="k").first_seq == 2
    log.seal()
    assert log.append([put("again")], key="k").first_seq == 2


def test_thousands_of_keys_stand_in_few_runs(seed: int) -> None:
    """Runs merge like a binary counter; every key is found, and no other."""
    disk = Disk()
    with disk.log() as log:
        for number in range(3000):
            log.append([put(str(number))], key=f"key {number}")
            if number % 100 == 0:
                log.seal()
        runs = log.toc().keys
        assert len(runs) <= 12
        assert sum(run.length for run in runs) == 12 * log.page.sealed_seq
        for number in Random(seed).sample(range(3000), 200):
            assert log.append([put("again")], key=f"key {number}").first_seq == number + 1
        assert log.append([put("new")], key="key 3000").first_seq == 3001
        assert verify_log(log).problems == ()


def test_runs_merge_like_a_binary_counter() -> None:
    """One that is at most twice as long goes in: each key is written O(log n) times."""
    disk = Disk()
    with disk.log() as log:
        grown: list[list[int]] = []
        for number in range(9):
            log.append([put(str(number))], key=f"key {number}")
            log.seal()
            grown.append([run.length // 12 for run in log.toc().keys])
        assert grown == [[1], [2], [3], [3, 1], [5], [5, 1], [5, 2], [8], [8, 1]]
        (whole, rest) = log.toc().keys
        assert [(run.first_seq, run.last_seq) for run in (whole, rest)] == [(1, 8), (9, 9)]


def test_a_seal_without_keys_adds_no_run() -> None:
    """And leaves those that there are."""
    with Disk().log() as log:
        log.append([put("a")], key="k")
        log.seal()
        runs = log.toc().keys
        log.append([put("b")])
        log.seal()
        assert log.toc().keys == runs


def test_keys_of_one_hash_are_all_candidates_oldest_first() -> None:
    """A hit decides nothing: the event is read."""
    with Disk().log() as log:
        flip = Flip(log.file, log.page)
        entries = [(7, 109), (5, 101), (7, 104), (2**64 - 1, 103), (0, 102)]
        body = encode_run(entries, 100)
        refs = [
            flip.add(ExtentKind.KEYS, body, 100, 110),
            flip.add(ExtentKind.KEYS, body, 200, 210),
        ]
        flip.write(log.toc())
        index = KeyIndex(log.file)
        assert list(index.candidates(refs, 7)) == [104, 109, 204, 209]
        assert list(index.candidates(refs, 2**64 - 1)) == [103, 203]
        assert list(index.candidates(refs, 0)) == [102, 202]
        assert list(index.candidates(refs, 6)) == []
        assert list(index.candidates([], 7)) == []


def test_a_run_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """However often keys are looked up in it."""
    read: list[int] = []
    real = LogFile.read_extent

    def reading(self: LogFile, ref: Ref, kind: ExtentKind) -> bytes:
        read.append(ref.offset)
        return real(self, ref, kind)

    with Disk().log() as log:
        log.append([put("a")], key="k")
        log.seal()
        runs = log.toc().keys
        monkeypatch.setattr(LogFile, "read_extent", reading)
        index = KeyIndex(log.file)
        for _ in range(3):
            assert list(index.candidates(runs, key_hash("default", "k"))) == [1]
        assert read == [runs[0].offset]


def test_each_batch_of_a_tail_is_looked_at_once() -> None:
    """However often keys are looked up, and whatever is appended meanwhile."""
    with Disk().log() as log:
        position = state_of(log)
        wanted = key_hash("default", "k")
        index = KeyIndex(log.file)
        looked: list[int] = []

        class Looking(Reader):
            def wire_events(self, batch: Batch) -> tuple[WireEvent, ...]:
                looked.append(batch.first_seq)
                return super().wire_events(batch)

        reader = Looking(log.file)
        assert index.in_tail(position.tail, reader, wanted) == []
        log.append([put("a"), put("b")])
        log.append([put("c")], key="k")
        for _ in range(2):
            assert index.in_tail(position.tail, reader, wanted) == [3]
        log.append([put("d"), put("e")], key="l")
        assert index.in_tail(position.tail, reader, wanted) == [3]
        assert index.in_tail(position.tail, reader, key_hash("default", "l")) == [4]
        assert looked == [1, 3, 4]
        log.seal()
        assert index.in_tail(position.tail, reader, wanted) == []


def test_a_run_of_a_wrong_size_is_damage() -> None:
    """Whole and checked, and yet no row of entries."""
    with Disk().log() as log:
        flip = Flip(log.file, log.page)
        ref = flip.add(ExtentKind.KEYS, bytes(25), 1, 2)
        flip.write(log.toc())
        with pytest.raises(Corrupt, match="wrong size") as caught:
            list(KeyIndex(log.file).candidates([ref], 0))
        assert caught.value.offset == ref.offset


def test_a_lost_toc_does_not_lose_keys() -> None:
    """They are read from the events again; a rebuilt TOC once knew none of them."""
    disk = Disk()
    with disk.log() as log:
        for number in range(10):
            log.append([put(str(number))], key=f"key {number}")
        log.seal()
        page = log.page
    disk.spoil(page.toc_offset)
    with disk.log() as log:
        assert log.report.rebuilt_toc
        assert log.append([put("again")], key="key 3").first_seq == 4
        assert verify_log(log).problems == ()


def test_a_damaged_run_of_keys_is_made_again() -> None:
    """It is derived: the events know their keys, and sealing goes on."""
    disk = Disk()
    with disk.log() as log:
        log.append([put("a")], key="k")
        log.seal()
        run = log.toc().keys[0]
    disk.spoil(run.offset + 70)
    with disk.log() as log:
        assert [problem.offset for problem in verify_log(log).problems] == [run.offset]
        assert log.append([put("again")], key="k").first_seq == 1
        assert verify_log(log).problems == ()


def test_sealing_with_a_damaged_run_goes_on() -> None:
    """A merge that met the damage once made the log refuse every further event."""
    disk = Disk()
    with disk.log() as log:
        log.append([put("a")], key="k")
        log.seal()
        run = log.toc().keys[0]
    disk.spoil(run.offset + 70)
    with disk.log() as log:
        with log._lock.writing():
            # Past the look-up, which would have mended it first.
            prepared = prepare([put("b")], disk.random.randbytes, key="l")
            log._writer.write_batch(prepared, None)
        log.seal()
        assert verify_log(log).problems == ()
        assert log.append([put("again")], key="k").first_seq == 1


def test_what_a_key_was_used_for_can_be_asked() -> None:
    """The first result and the hash of its arguments; nothing is written."""
    disk = Disk()
    with disk.log() as log, disk.log(mode="r") as reader:
        assert log.find_key("k", "default") is None
        log.append([put("a"), put("b")], key="k", arguments=b"1")
        image = disk.image()
        use = log.find_key("k", "default")
        assert use is not None
        assert (use.appended.first_seq, use.appended.last_seq) == (1, 2)
        salts = [event.salt for event in log.read()]
        assert use.arguments == blake3(b"1" + b"".join(filter(None, salts))).digest()
        use.check("k", b"1")
        assert log.find_key("k", "other") is None
        with pytest.raises(InvalidInput):
            log.find_key("", "default")
        with pytest.raises(ReadOnly):
            reader.find_key("k", "default")
        assert disk.image() == image


def test_the_hash_of_arguments_is_bound_to_the_salts_of_the_batch() -> None:
    """A plain hash would let a reader test guesses of what was erased since."""
    with Disk().log() as log:
        guesses = [b"four digits: " + str(number).encode() for number in range(3)]
        log.append([put("a"), put("b")], key="k", arguments=blake3(guesses[1]).digest())
        payload = log.event(1).payload
        assert payload is not None
        assert payload.arguments not in [blake3(guess).digest() for guess in guesses]
        assert log.append([put("a")], key="k", arguments=blake3(guesses[1]).digest()).replayed


@pytest.mark.parametrize("sealed", [False, True])
@pytest.mark.parametrize("arguments", [None, b"1", b"2"])
def test_a_key_whose_batch_lost_an_event_cannot_be_used_again(
    arguments: bytes | None, sealed: bool
) -> None:
    """Nothing can be compared, and the error names the event that was erased."""
    with Disk().log() as log:
        with erasing(2):
            log.append([put("a"), put("b"), put("c")], key="k", arguments=b"1")
        if sealed:
            log.seal()
        with pytest.raises(IdempotencyConflict, match="lost event 2 to an erasure"):
            log.append([put("a")], key="k", arguments=arguments)
        assert log.head.seq == 3


def test_the_key_of_an_erased_event_is_free_again() -> None:
    """It stood in the payload that is gone."""
    with Disk().log() as log:
        with erasing(1):
            log.append([put("a"), put("b")], key="k", arguments=b"1")
        assert log.append([put("c")], key="k", arguments=b"1").first_seq == 3


@pytest.mark.parametrize("sealed", [False, True])
def test_keys_of_one_hash_are_not_confused(sealed: bool) -> None:
    """64 bits tell nearly all keys apart, and the events all of them."""
    with (
        mock.patch.object(log_module, "key_hash", return_value=7),
        mock.patch.object(idempotency, "key_hash", return_value=7),
        Disk().log() as log,
    ):
        for number in range(3):
            assert not log.append([put("a")], key=f"key {number}").replayed
            if sealed:
                log.seal()
        for number in range(3):
            assert log.append([put("a")], key=f"key {number}").first_seq == number + 1
        assert not log.append([Draft(PutFrame(text="a"), TENANT)], key="key 1").replayed
