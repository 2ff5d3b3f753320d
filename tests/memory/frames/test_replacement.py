"""Replacing a URI: one current frame remains, in every scope, transaction and process."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest

import cerata
from cerata import Conflict, IdempotencyConflict, InvalidInput, Store
from cerata.memory.batch.frame_rules import UriRules

from .upserts import WRITERS, Result, storm


def test_forty_writers_in_two_processes_leave_one_frame(tmp_path: Path) -> None:
    # 14 of 40 concurrent replacements by find_uri and supersede left two current frames.
    result = storm(tmp_path / "a.cera", 4)
    assert result == Result(4, 4, 4 * (WRITERS - 1), (), is_verified=True)
    assert result.is_right


def test_the_documented_command_prints_its_result() -> None:
    """`docs/measurements.md` names it."""
    command = [sys.executable, "-m", "tests.memory.frames.upserts", "--rounds", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    assert done.stdout.startswith(
        "1 rounds of 40 upserts in 2 processes: 1 current frames, 39 replaced, "
        "0 URIs with another count than one, file verified; "
    )


def _raced(store: Store, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Put a frame under "a" after the first look-up of a replacement of "a"; return its id."""
    put: list[int] = []
    check = UriRules.check

    def late(self: UriRules, state: object) -> object:
        result = check(self, state)  # type: ignore[arg-type]
        if not put:
            put.append(0)
            put[0] = store.put_frame("raced", uri="a").id
        return result

    monkeypatch.setattr(UriRules, "check", late)
    return put


def test_a_frame_put_after_the_look_up_is_replaced(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    raced = _raced(store, monkeypatch)
    receipt = store.put_frame("new", uri="a", options=cerata.PutOptions(replace=True))
    assert store.files.by_uri("a") == [receipt.id]
    assert receipt.replaced == tuple(raced)


def test_without_the_check_under_the_lock_two_frames_remain(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Breaks the mechanism, to show that the test before would notice.
    raced = _raced(store, monkeypatch)

    def admit(*_: object) -> None:
        return

    monkeypatch.setattr(UriRules, "_check_raced", admit)
    receipt = store.put_frame("new", uri="a", options=cerata.PutOptions(replace=True))
    assert store.files.by_uri("a") == [*raced, receipt.id]


def test_a_replacement_creates_then_supersedes(store: Store) -> None:
    first = store.put_frame("one", uri="a", tags=["x"], options=cerata.PutOptions(replace=True))
    assert first.replaced == ()
    second = store.put_frame("two", uri="a", options=cerata.PutOptions(replace=True))
    assert second.replaced == (first.id,)
    assert [frame.text for frame in store.history.of(second)] == ["one", "two"]
    # A replacement is a new frame, and inherits nothing.
    assert store.frame(second).tags == ()


def test_all_current_frames_of_the_uri_are_replaced(store: Store) -> None:
    ids = [store.put_frame(text, uri="a").id for text in ("one", "two")]
    assert store.put_frame(
        "three", uri="a", options=cerata.PutOptions(replace=True)
    ).replaced == tuple(ids)
    assert store.count() == (1, 2)


def test_a_document_is_replaced_with_its_chunks(store: Store) -> None:
    document = store.remember("\n\n".join(f"# {n}\n\n" + "word " * 300 for n in range(4)), uri="a")
    assert len(document.ids) > 2
    receipt = store.put_frame("short", uri="a", options=cerata.PutOptions(replace=True))
    assert receipt.replaced == (document.id,)
    assert store.files.by_uri("a") == [receipt.id]


def test_a_frame_below_another_frame_of_the_uri_is_closed_with_it(store: Store) -> None:
    above = store.put_frame("above", uri="a")
    store.put_frame("below", uri="a", options=cerata.PutOptions(parent=above))
    assert store.put_frame("new", uri="a", options=cerata.PutOptions(replace=True)).replaced == (
        above.id,
    )
    assert store.count() == (1, 2)


def test_other_scopes_keep_their_frames() -> None:
    with cerata.open(":memory:") as store:
        ann = store.put_frame(
            "ann's", uri="a", options=cerata.PutOptions(scope={"tenant": "t", "user": "ann"})
        ).id
        bob = {"tenant": "t", "user": "bob"}
        store.put_frame("bob's", uri="a", options=cerata.PutOptions(scope=bob, replace=True))
        new = store.put_frame(
            "bob's new", uri="a", options=cerata.PutOptions(scope=bob, replace=True)
        )
        assert store.files.by_uri("a") == [ann, new.id]


def test_a_key_returns_the_first_receipt(store: Store) -> None:
    first = store.put_frame("one", uri="a", options=cerata.PutOptions(replace=True, key="k"))
    store.put_frame("two", uri="a", options=cerata.PutOptions(replace=True))
    again = store.put_frame("one", uri="a", options=cerata.PutOptions(replace=True, key="k"))
    assert (again.id, again.added) == (first.id, False)
    with pytest.raises(IdempotencyConflict):
        store.put_frame("one", uri="a", options=cerata.PutOptions(key="k"))
    with store.transaction(key="block") as block:
        store.put_frame("three", uri="a", options=cerata.PutOptions(replace=True))
    with store.transaction(key="block") as repeated:
        store.put_frame("three", uri="a", options=cerata.PutOptions(replace=True))
    assert block.receipt is not None
    assert repeated.receipt is not None
    assert (block.receipt.ids, False) == (repeated.receipt.ids, repeated.receipt.added)


def test_a_transaction_replaces_its_pending_frames(store: Store) -> None:
    old = store.put_frame("old", uri="a")
    with store.transaction() as block:
        pending = store.put_frame("one", uri="a", options=cerata.PutOptions(replace=True))
        assert pending.replaced == (old.id,)
        assert store.put_frame(
            "two", uri="a", options=cerata.PutOptions(replace=True)
        ).replaced == (pending.id,)
        assert store.files.by_uri("a") == [-3]
    assert block.receipt is not None
    assert store.files.by_uri("a") == [block.receipt.seqs[2]]


def test_a_transaction_that_was_raced_raises_and_writes_nothing(store: Store) -> None:
    def block() -> None:
        with store.transaction():
            store.put_frame("mine", uri="a", options=cerata.PutOptions(replace=True))
            thread = threading.Thread(target=store.put_frame, args=("other",), kwargs={"uri": "a"})
            thread.start()
            thread.join()

    with pytest.raises(Conflict, match="same URI"):
        block()
    assert [frame.text for frame in store.frames()] == ["other"]


def test_a_chunk_is_replaced_with_its_document(store: Store) -> None:
    above = store.put_frame("above")
    with pytest.raises(InvalidInput, match="parent"):
        store.put_frame("x", uri="a", options=cerata.PutOptions(parent=above, replace=True))
    with pytest.raises(InvalidInput, match="uri"):
        store.put_frame("x", options=cerata.PutOptions(replace=True))
    assert store.head.seq == above.id
