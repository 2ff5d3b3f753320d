"""Receipts and frames of a transaction after its block: they name the things that it wrote."""

import copy
import pickle
import threading
from typing import cast

import pytest

import cerata


def test_a_receipt_of_a_call_names_the_same_thing_after_the_block() -> None:
    """It was -1 for ever, and had to be mapped by hand through the ids of the transaction."""
    with cerata.open(":memory:") as store:
        store.put_frame("before")
        with store.transaction() as tx:
            frame = store.put_frame("a note")
            fact = store.assert_fact("Ann", "is", "here", evidence=[frame])
            link = store.graph.link(fact, "derived_from", frame)
            hit = store.search("note")[0]
            read = store.frame(frame)
            assert store.frame(hit) == read
            assert store.graph.fact(fact).id == fact.id == -2
        assert tx.receipt.ids == (2, 3, 4)
        for value in (frame, read, hit, pickle.loads(pickle.dumps(frame)), copy.copy(read)):
            assert store.frame(value).id == 2
            assert store.frame(value).text == "a note"
        assert store.graph.fact(fact).id == 3
        assert store.at(fact).basis == 4
        store.graph.unlink(link)
        assert store.graph.links(fact) == []
        assert store.supersede(read, "newer").replaced == (2,)
        assert store.correct_fact(fact, object="there").id > 5
        with store.transaction():
            # In the next block -1 is another frame.
            store.put_frame("another note")
            assert store.frame(frame).text == "a note"
            assert store.frame(-1).text == "another note"


def test_a_receipt_of_a_call_that_wrote_nothing_is_readable_after_the_block() -> None:
    """The receipts of update, delete and sweep did not know their block."""
    with cerata.open(":memory:") as store:
        store.put_frame("before")
        with store.transaction() as tx:
            frame = store.put_frame("a note", tags=["x"])
            same = store.update(frame, tags=["x"])
            nothing = store.delete(where=cerata.Filter(tags=["y"])), store.upkeep.sweep()
            assert (same.id, same.added, same.head) == (-1, False, None)
        assert store.frame(same).text == "a note"
        assert [store.at(receipt).basis for receipt in (same, *nothing)] == [2, 2, 2]
        assert tx.receipt.seqs == (2,)
        assert store.delete(same).deleted == (2,)


def test_a_view_of_the_block_keeps_its_ids() -> None:
    """It has the pending frames, and not those that the batch became."""
    with cerata.open(":memory:") as store:
        with store.transaction():
            frame = store.put_frame("a note")
            view = store.history.view()
        assert view.frame(frame).id == -1
        assert store.frame(frame).id == 1


def test_a_receipt_of_a_block_that_failed_names_nothing() -> None:
    """In a later block it would have named the first frame of that."""
    with cerata.open(":memory:") as store:
        values: list[cerata.Receipt | cerata.Frame] = []

        def fails() -> None:
            values.append(store.put_frame("a note"))
            values.append(store.frame(values[0]))
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError), store.transaction() as tx:
            fails()
        with store.transaction():
            store.put_frame("another note")
            for value in values:
                with pytest.raises(cerata.NotFound, match="transaction that has written nothing"):
                    store.frame(value)
                with pytest.raises(cerata.NotFound, match="transaction that has written nothing"):
                    store.delete(value)
        with pytest.raises(cerata.InvalidInput, match="has written nothing"):
            store.at(cast("cerata.Receipt", values[0]))
        with pytest.raises(cerata.Conflict, match="left by an exception"):
            _ = tx.receipt
        assert len(store) == 1


def test_a_receipt_of_an_open_block_means_nothing_elsewhere() -> None:
    """Another thread's block had a frame of the same number."""
    failures: list[str] = []
    with cerata.open(":memory:") as store:

        def elsewhere(frame: cerata.Receipt) -> None:
            with store.transaction():
                store.put_frame("of the thread")
                try:
                    store.delete(frame)
                except cerata.NotFound as error:
                    failures.append(error.what)

        with store.transaction() as tx:
            frame = store.put_frame("of the block")
            with pytest.raises(cerata.Conflict, match="is open"):
                _ = tx.receipt
            thread = threading.Thread(target=elsewhere, args=(frame,))
            thread.start()
            thread.join()
        assert len(failures) == 1
        assert store.frame(frame).text == "of the block"


def test_a_receipt_of_a_repeated_block_names_what_the_first_run_wrote() -> None:
    """The block writes nothing, and its ids mean the first batch."""
    with cerata.open(":memory:") as store:
        frames: list[cerata.Receipt] = []
        for added in (True, False):
            with store.transaction(key="k") as tx:
                store.put_frame("first")
                frames.append(store.put_frame("second"))
            assert tx.receipt.added is added
            store.put_frame("between")
        assert [store.frame(frame).id for frame in frames] == [2, 2]
        assert store.at(frames[1]).basis == 2


def test_an_empty_block_has_a_receipt_of_nothing() -> None:
    """A loop over no items is no special case for its caller."""
    with cerata.open(":memory:") as store:
        store.put_frame("a")
        with store.transaction() as tx:
            pass
        receipt = tx.receipt
        assert (receipt.ids, receipt.seqs, receipt.added, receipt.durable) == ((), (), False, True)
        assert store.at(receipt).basis == 1
        with pytest.raises(cerata.NotFound):
            store.frame(receipt)


def test_a_transaction_shows_its_receipt_only() -> None:
    """A dozen names of its internals were public by accident."""
    assert [name for name in dir(cerata.Transaction) if not name.startswith("_")] == ["receipt"]
