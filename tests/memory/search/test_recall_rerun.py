"""A recorded recall, asked again at its basis: same, different or unknown."""

from pathlib import Path

import msgspec
import pytest

import cerata
from cerata.engine.events import Draft, RecallContext
from cerata.engine.salted_hashes import NOT_COMPARABLE
from cerata.memory.search.recall_rerun import _between, rerun_recall

QUESTION = "when does the bridge open?"


def test_a_recall_is_the_same_after_later_events(tmp_path: Path) -> None:
    with cerata.open(tmp_path / "a.cera") as store:
        store.put_frames([f"The bridge opens in May, says note {n}." for n in range(9)])
        store.recall(QUESTION, record=True)
        seq = store.head.seq
        store.put_frames([f"The bridge opens in June, says letter {n}." for n in range(9)])
        rerun = rerun_recall(store, seq)
        assert (rerun.outcome, rerun.difference, rerun.reason) == ("same", None, None)
        assert (rerun.basis, rerun.query) == (9, QUESTION)


def test_an_unrepeatable_recall_is_unknown(tmp_path: Path) -> None:
    with cerata.open(tmp_path / "a.cera") as store:
        store.put_frame("The bridge opens in May.")
        store.recall(QUESTION, where=cerata.Filter(tags=["none"]), record=True)
        rerun = rerun_recall(store, store.head.seq)
        assert (rerun.outcome, rerun.difference) == ("unknown", None)
        assert "filter" in str(rerun.reason)


def test_a_recording_that_differs_says_where(tmp_path: Path) -> None:
    """Also one whose text was other, and one whose hash was erased with an entry."""
    with cerata.open(tmp_path / "a.cera") as store:
        store.put_frames(["The bridge opens in May.", "The bridge opens at noon."])
        store.recall(QUESTION, record=True)
        recall = next(iter(store.log(3, 3))).body
        assert isinstance(recall, RecallContext)
        assert {*recall.frames} == {1, 2}
        first, second = recall.frames
        planted = (
            {"frames": (second, first)},
            {"context": bytes(range(32))},
            {"context": NOT_COMPARABLE},
            {"profile": "mine"},
        )
        store.append(*(Draft(msgspec.structs.replace(recall, **change)) for change in planted))
        moved, rewritten, erased, unlike = (rerun_recall(store, seq) for seq in range(4, 8))
        assert moved.outcome == "different"
        assert str(moved.difference) == f"frame 1: recorded #{second}, now #{first}"
        assert [each.place for each in moved.differences] == [1, 2]
        assert store.history.rerun(4) == moved
        assert (rewritten.outcome, rewritten.difference) == ("different", None)
        assert (erased.outcome, unlike.outcome) == ("unknown", "unknown")
        assert "erased" in str(erased.reason)
        assert "mine" in str(unlike.reason)


def test_other_events_and_hidden_recalls_are_not_found(tmp_path: Path) -> None:
    with cerata.open(tmp_path / "a.cera") as store:
        store.put_frame("The bridge opens in May.")
        ann = store.scoped({"user": "ann"})
        ann.put_frame("The bridge of Ann opens in June.")
        ann.recall(QUESTION, record=True)
        seq = store.head.seq
        assert rerun_recall(ann, seq).outcome == "same"
        for reader, number in (
            (store, 1),
            (store, 99),
            (store, 0),
            (store.scoped({"user": "bob"}), seq),
        ):
            with pytest.raises(cerata.NotFound):
                rerun_recall(reader, number)


def test_the_first_difference_has_its_place() -> None:
    first, second = _between("frame", (1, 2, 3), (1, 3))
    assert str(first) == "frame 2: recorded #2, now #3"
    assert str(second) == "frame 3: recorded #3, now nothing"
    (added,) = _between("fact", (1,), (1, 4))
    assert str(added) == "fact 2: recorded nothing, now #4"
