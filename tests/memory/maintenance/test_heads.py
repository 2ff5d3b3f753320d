"""A head that was kept elsewhere shows what a file that is whole in itself cannot."""

import shutil
from pathlib import Path

import pytest

import cerata
from cerata import Diverged, Environment, InvalidInput, Store
from cerata.engine.log import Log
from cerata.engine.remembered import HeadCheck, RememberedHead
from cerata.fault_injection.simulation.simulated_world import SeededBytes

from ...clocks import StandingClock
from ...inside import log_of

START_US = 1_700_000_000_000_000


def opened(path: Path) -> Store:
    """Open a store whose log id and salts are the same for every file."""
    clock = StandingClock(START_US)
    return cerata.open(path, environment=Environment(clock=clock, random_bytes=SeededBytes("a")))


def written(path: Path, *texts: str, sealed: int = 0) -> str:
    """Write texts, the first of them into a segment, and return the head's text."""
    with opened(path) as store:
        for count, text in enumerate(texts, start=1):
            store.put_frame(text)
            if count == sealed:
                store.checkpoint()
        return store.head.text


def compared(path: Path, head: str) -> HeadCheck:
    """Return how a file compares with a head."""
    with cerata.open(path, mode="r") as store:
        found = store.verify(against=head)
    assert found.against is not None
    assert found.ok == (found.against.outcome == "agrees")
    return found.against


@pytest.mark.parametrize("sealed", [0, 1, 3])
def test_every_point_of_a_log_agrees_with_it(tmp_path: Path, sealed: int) -> None:
    """In the ring and in segments, between batches and inside one, before the first event too."""
    path = tmp_path / "a.cera"
    written(path, "one", "two", "three", sealed=sealed)
    with opened(path) as store:
        store.put_frames(["four", "five", "six"])
        heads = [store.at(seq).head.text for seq in range(7)]
    assert [compared(path, head).outcome for head in heads] == ["agrees"] * 7
    without_id = heads[5].rpartition(":")[0]
    assert compared(path, without_id).outcome == "agrees"


def test_an_older_copy_is_a_rollback(tmp_path: Path) -> None:
    """It is whole, and nothing in it says that there was more."""
    path, older = tmp_path / "a.cera", tmp_path / "older.cera"
    written(path, "one")
    shutil.copy(path, older)
    head = written(path, "two")
    check = compared(older, head)
    assert check.outcome == "rollback"
    error = check.diverged
    assert isinstance(error, Diverged)
    assert (error.kind, error.remembered, error.exit_code) == ("rollback", head, 3)
    assert error.found == written(older)
    assert str(error) == (
        f"The file ends at event 1, before the head at event 2 ({older}, event 1). Write nothing "
        "to the file. Compare your backups with 'cerata file verify --head', and continue with a "
        "backup that agrees."
    )


@pytest.mark.parametrize("sealed", [0, 2])
def test_edited_history_is_a_fork(tmp_path: Path, sealed: int) -> None:
    """Every hash of the other file holds: it was made by the same engine."""
    head = written(tmp_path / "a.cera", "pay ann", "two", "three", sealed=sealed)
    other = tmp_path / "other.cera"
    assert written(other, "pay eve", "two", "three", "four", sealed=sealed).endswith(head[-33:])
    check = compared(other, head)
    assert check.outcome == "fork"
    assert check.diverged is not None
    assert check.diverged.found != head
    with cerata.open(other, mode="r") as store:
        assert check.diverged.found == store.at(3).head.text


def test_no_stored_hash_is_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An attacker can store the root that was remembered; the events do not give it."""
    head = written(tmp_path / "a.cera", "pay ann", "two")
    other = tmp_path / "other.cera"
    written(other, "pay eve", "two", sealed=2)

    def root_at(_: Log, __: int) -> bytes:
        return RememberedHead.parse(head).root

    monkeypatch.setattr(Log, "root_at", root_at)
    with cerata.open(other, mode="r") as store:
        assert store.head.text == head
        found = store.verify(against=head).against
    assert found is not None
    assert found.outcome == "fork"


def test_another_log_is_foreign(tmp_path: Path) -> None:
    """With the id in the text it is named as such, whatever the events are."""
    path = tmp_path / "a.cera"
    head = written(tmp_path / "b.cera", "one")
    with cerata.open(path) as store:
        store.put_frame("one")
    assert compared(path, head).outcome == "foreign"
    assert compared(path, head.rpartition(":")[0]).outcome == "fork"


def test_damage_before_the_head_leaves_it_open(tmp_path: Path) -> None:
    """Unreadable events are neither the same nor others."""
    path = tmp_path / "a.cera"
    with opened(path) as store:
        for text in ("one", "two", "three"):
            store.put_frame(text)
            store.checkpoint()
        head, first = store.head.text, store.at(1).head.text
        [_, second, _] = log_of(store).reader.segment_refs(log_of(store).snapshot)
    data = bytearray(path.read_bytes())
    data[second.offset + second.length // 2] ^= 4
    path.write_bytes(data)
    with cerata.open(path, mode="r") as store:
        found = store.verify(against=head)
        before = store.verify(against=first)
    assert found.against is not None
    assert before.against is not None
    assert (found.against.outcome, before.against.outcome) == ("unreadable", "agrees")
    assert not found.ok
    assert not before.ok


def test_a_head_itself_is_taken(tmp_path: Path) -> None:
    """Of another handle: a head of this one has the hashes of this file."""
    with opened(tmp_path / "a.cera") as store, opened(tmp_path / "b.cera") as other:
        store.put_frame("one")
        other.put_frame("two")
        assert store.verify(against=store.head).ok
        found = store.verify(against=other.head).against
    assert found is not None
    assert found.outcome == "fork"
    assert found.to_dict()["outcome"] == "fork"


@pytest.mark.parametrize(
    "head", ["", "8", "8:9f3c", "-1:" + 64 * "0", "8:" + 64 * "g", "8:" + 64 * "0" + ":00", 8, b"8"]
)
def test_what_is_no_head_is_refused(head: object) -> None:
    """A part of a root would agree with too much."""
    with cerata.open(":memory:") as store, pytest.raises(InvalidInput, match="cerata info --head"):
        store.verify(against=head)  # type: ignore[arg-type]


def test_the_text_of_a_head_reads_back() -> None:
    """With the id of the log and without."""
    for text in ("8:" + 64 * "a", "0:" + 64 * "0" + ":" + 32 * "f"):
        assert str(RememberedHead.parse(f" {text.upper()}\n")) == text
