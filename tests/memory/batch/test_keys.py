"""A transaction with a key may be run again: its key stands for the calls, not for what came."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import msgspec
import pytest
from blake3 import blake3

import cerata
from cerata import IdempotencyConflict
from cerata.engine.events import Draft, PutFrame
from cerata.memory.batch import session as appending
from cerata.memory.batch.transaction import block_of
from cerata.memory.snapshot.reader import snapshot_of

from ...embedders import Hashing, HashingTokens

LONG = "\n\n".join(f"## Part {number}\n" + "w " * 400 for number in range(6))


def remembers(store: cerata.Store) -> None:
    store.remember(LONG, uri="u", tags=["t"], metadata={"a": [1]})


def remembers_and_puts(store: cerata.Store) -> None:
    store.remember("what is there the second time", uri="u")
    store.put_frame("put")
    store.put_frames(["many", "more"])


def tags(store: cerata.Store) -> None:
    store.put_frame("put")
    store.history.tag("v1")
    store.history.tag("v2", at=3)


def closes(store: cerata.Store) -> None:
    new = store.supersede(1, "newer")
    store.delete(new)
    store.supersede(2, 3)


def looks_first(store: cerata.Store) -> None:
    if not store.search("absent"):
        store.put_frame("absent until now")


def of_another_tenant(store: cerata.Store) -> None:
    store.remember("for alice", uri="a", options=cerata.PutOptions(scope={"tenant": "alice"}))
    store.put_frame("for alice", options=cerata.PutOptions(scope={"tenant": "alice"}))


BLOCKS = [remembers, remembers_and_puts, tags, closes, looks_first, of_another_tenant]


@pytest.mark.parametrize("block", BLOCKS)
def test_a_keyed_block_is_run_once(tmp_path: Path, block: Callable[[cerata.Store], None]) -> None:
    """The second run gathered nothing and had no receipt, or gathered other drafts: a conflict."""
    path = tmp_path / "memory.cera"
    with cerata.open(path) as store:
        store.put_frames(["one", "two", "three"])
        with store.transaction(key="k") as first:
            block(store)
        assert first.receipt.added
        head = store.put_frame("what others write meanwhile").head
        with store.transaction(key="k") as again:
            block(store)
        assert (again.receipt.ids, again.receipt.seqs) == (first.receipt.ids, first.receipt.seqs)
        assert (again.receipt.id, again.receipt.head) == (first.receipt.id, first.receipt.head)
        assert not again.receipt.added
        assert store.head == head
    with cerata.open(path) as store, store.transaction(key="k", expect=0) as later:
        block(store)
    assert later.receipt.seqs == first.receipt.seqs


def test_a_block_that_is_run_again_knows_nothing_of_later() -> None:
    """`tag` and `at` read the newest event there is, and so did `head`."""
    seen: list[object] = []

    def block(store: cerata.Store) -> None:
        refused = None
        try:
            store.delete(1)
            store.delete(1)
        except cerata.Conflict as error:
            refused = str(error)
        store.history.tag("here")
        store.history.tag("back", at="HEAD~1")
        with pytest.raises(cerata.NotFound):
            store.at("later")
        with pytest.raises(cerata.NotFound):
            store.at(4)
        drafts = snapshot_of(store).unsalted_drafts
        seen.append((store.head.seq, store.at("HEAD").basis, refused, drafts, store.history.tags()))

    with cerata.open(":memory:") as store:
        store.put_frame("one")
        store.put_frames(["two", "three"])
        with store.transaction(key="k"):
            block(store)
        store.history.tag("later")
        store.put_frames(["four", "five"])
        with store.transaction(key="k") as again:
            block(store)
        assert not again.receipt.added
        assert seen[0] == seen[1]
        assert store.at("here").basis == 3


def test_who_was_slower_is_not_refused_for_what_the_same_block_did(tmp_path: Path) -> None:
    """The call met what the quicker one had closed: that is the same request, done already."""
    path = tmp_path / "memory.cera"
    with cerata.open(path) as store, cerata.open(path) as other:
        store.put_frame("one")
        with store.transaction(key="k") as slower:
            with other.transaction(key="k") as quicker:
                other.delete(1)
            store.delete(1)
        assert slower.receipt.seqs == quicker.receipt.seqs
        with store.transaction(key="other"), pytest.raises(cerata.Conflict):
            store.delete(1)


def test_a_key_stands_for_its_calls() -> None:
    """Other arguments, another order, or a call more are another request."""

    def said(*texts: str) -> Callable[[cerata.Store], object]:
        return lambda store: [store.remember(text) for text in texts]

    with cerata.open(":memory:") as store:
        store.remember("there before")
        with store.transaction(key="k"):
            said("a", "b")(store)
        for other in (said("a"), said("b", "a"), said("a", "b", "there before"), tags):
            with pytest.raises(cerata.IdempotencyConflict), store.transaction(key="k"):
                other(store)
        # Nothing asked for is nothing that differs: the block found that it was done.
        with store.transaction(key="k") as nothing:
            pass
        assert nothing.receipt.seqs == (2, 3)


def test_who_was_slower_gets_the_first_receipt(tmp_path: Path) -> None:
    """Both began before the key was there; the second one's block found everything done."""
    path = tmp_path / "memory.cera"
    with cerata.open(path) as store, cerata.open(path) as other:
        with store.transaction(key="k") as slower:
            with other.transaction(key="k") as quicker:
                other.remember("done", uri="u")
            store.remember("done", uri="u")
        assert slower.receipt.seqs == quicker.receipt.seqs == (1,)
        assert not slower.receipt.added


def test_a_block_that_does_nothing_leaves_no_key() -> None:
    """There is no batch that could carry it, and so nothing to be repeated."""
    with cerata.open(":memory:") as store:
        store.remember("there", uri="u")
        with store.transaction(key="k") as nothing:
            store.remember("there", uri="u")
        assert (nothing.receipt.seqs, nothing.receipt.added) == ((), False)
        with store.transaction(key="k") as first:
            store.put_frame("something else")
        assert first.receipt.added


def test_drafts_that_were_gathered_without_a_call_are_compared() -> None:
    """Drafts may be given to the block itself; others than the first are another request."""
    with cerata.open(":memory:") as store:

        def adds(text: str) -> None:
            with store.transaction(key="k") as gathered:
                block_of(gathered).add([cerata.Draft(PutFrame(text=text))])
            assert gathered.receipt.seqs == (1,)

        adds("one")
        adds("one")
        with pytest.raises(cerata.IdempotencyConflict):
            adds("two")


def test_a_file_that_is_gone_is_told_when_a_block_is_run_again(tmp_path: Path) -> None:
    """The calls are the same ones; the advice must not be to write it all again."""
    path = tmp_path / "note.md"
    path.write_text("noted")
    with cerata.open(":memory:") as store:
        with store.transaction(key="k"):
            store.remember(path)
        path.unlink()
        with (
            pytest.raises(
                cerata.IdempotencyConflict, match=r"can no longer be repeated: .+"
            ) as caught,
            store.transaction(key="k"),
        ):
            store.remember(path)
        assert "is written" in (caught.value.remedy or "")
        assert isinstance(caught.value.__cause__, cerata.NotFound)


@pytest.mark.parametrize("in_a_block", [False, True])
def test_what_is_derived_is_no_part_of_what_was_asked(in_a_block: bool) -> None:
    """A key of an earlier version, which derived less, is known: its retries are no conflicts."""
    with cerata.open(":memory:") as store:

        def put() -> cerata.Receipt:
            if not in_a_block:
                return store.put_frame(
                    "hello", metadata={"a": 1}, options=cerata.PutOptions(key="k")
                )
            with store.transaction(key="k") as tx:
                store.put_frame("hello", metadata={"a": 1})
            return tx.receipt

        with mock.patch.object(appending, "contents_of", contents_before):
            assert put().added
        assert not put().added
        # Of a frame of this text and metadata, for good.
        [event] = store.log()
        payload = event.payload
        assert payload is not None
        assert payload.arguments is not None
        assert event.salt is not None
        pinned = bytes.fromhex(PINNED[in_a_block])
        assert payload.arguments == blake3(pinned + event.salt).digest()


def contents_before(drafts: Sequence[Draft]) -> object:
    """The contents of drafts, as they were hashed when frames had no content hash."""
    bodies = [draft.body for draft in drafts]
    return [
        (body.wire_name, draft.scope, msgspec.structs.replace(body, content_hash=None))
        for draft, body in zip(drafts, bodies, strict=True)
        if isinstance(body, PutFrame)
    ]


PINNED = {
    False: "dcbec5872afad9d87cacccc873b33bd1a39ecf285ce4b103f6495f861f1284eb",
    True: "9d97e42ff614cd567e1415383672cdf1a372daa96d5ccef7477bc5afa4d8e536",
}


@pytest.mark.parametrize("tenant", ["default", "acme"])
def test_a_correction_is_recognised_after_its_fact_gained_evidence(
    tmp_path: Path, tenant: str
) -> None:
    """The key recorded the corrected fact, so a retry after such news raised."""
    scope = {"tenant": tenant}
    with cerata.open(tmp_path / "m.cera") as store, cerata.open(tmp_path / "m.cera") as other:
        note, late = (
            store.put_frame(text, options=cerata.PutOptions(scope=scope))
            for text in ("a note", "a late note")
        )
        fact = store.assert_fact(
            "ada", "lives in", "rome", confidence=0.5, options=cerata.FactOptions(scope=scope)
        )

        def correct() -> cerata.Receipt:
            with store.transaction(key="k") as block:
                store.correct_fact(fact, object="oslo", evidence=[note])
                other.assert_fact(
                    "ada",
                    "lives in",
                    "rome",
                    evidence=[late],
                    confidence=0.9,
                    options=cerata.FactOptions(scope=scope),
                )
            return block.receipt

        first = correct()
        # A new frame, which the state before the first run lacks.
        late = store.put_frame("a later note", options=cerata.PutOptions(scope=scope))
        again = correct()
        assert (first.added, again.added, again.ids) == (True, False, first.ids)
        with pytest.raises(IdempotencyConflict), store.transaction(key="k"):
            store.correct_fact(fact, object="bern", evidence=[note])


def test_a_repeated_recall_may_have_another_embedder(tmp_path: Path) -> None:
    """The key covered the question's vector and the numbers of the floor, not the call alone."""
    path = tmp_path / "memory.cera"

    def added(embedder: Hashing | None, **more: Any) -> bool:
        with (
            cerata.open(path, embedder=embedder) as store,
            store.transaction(key=f"k{sorted(more)}") as tx,
        ):
            store.recall("green tea", record=True, **more)
        assert tx.receipt is not None
        return tx.receipt.added

    with cerata.open(path, embedder=HashingTokens()) as store:
        store.put_frame("green tea")
    calls: list[dict[str, Any]] = [
        {},
        {"floor": cerata.Floor(0.5, 0.5)},
        {"layout": cerata.Layout(neighbours=1)},
    ]
    for more in calls:
        assert added(HashingTokens(), **more)
        assert not added(None, **more)
        assert not added(HashingTokens("2"), **more)
    others: list[dict[str, Any]] = [
        {"floor": cerata.Floor(0.6, 0.5)},
        {"floor": False},
        {"layout": cerata.Layout(neighbours=2)},
    ]
    for more in others:
        with pytest.raises(cerata.IdempotencyConflict):
            added(HashingTokens(), **more)
