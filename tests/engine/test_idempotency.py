"""An idempotency key: the same call again is the first call, wherever its batch stands by now."""

from random import Random

import pytest

from cerata.engine import Draft, PutFrame
from cerata.engine.codec import prepare
from cerata.engine.errors import IdempotencyConflict
from cerata.engine.verify import verify_log

from .words import RING, Disk, put, texts

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
        with log._hold.writing():
            # Past the look-up, which would have mended it first.
            prepared = prepare([put("b")], disk.random.randbytes, key="l")
            log._writer.write_batch(prepared, None)
        log.seal()
        assert verify_log(log).problems == ()
        assert log.append([put("again")], key="k").first_seq == 1
