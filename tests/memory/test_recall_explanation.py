"""A recorded recall explained: its lines, their reasons, and the lines of today."""

from typing import Any

import pytest

import cerata
from cerata import Context, Filter, InvalidInput, NotFound, RecallExplanation, Store

QUESTION = "when does the bridge open?"


def states(explanation: RecallExplanation) -> dict[int, str]:
    return {line.id: line.state for line in explanation.lines}


def recorded(store: Store, **options: Any) -> int:
    context = store.recall(QUESTION, record=True, **options)
    assert context.recorded is not None
    return context.recorded


def test_each_line_is_kept_gone_or_new_with_its_event() -> None:
    with cerata.open(":memory:", actor="anna") as store:
        store.put_frames(["The bridge opens in May.", "The bridge opens at noon.", "Wet bridge."])
        fact = store.assert_fact("bridge", "opens in", "May")
        seq = recorded(store)
        unchanged = store.history.explain(seq)
        assert (unchanged.summary, unchanged.outcome) == ("4 kept, 0 gone, 0 new", "same")
        assert [line.change for line in unchanged.lines] == [None] * 4
        store.supersede(1, "The bridge opens in June.", actor="ben", reason="steel")  # 6, 7
        store.correct_fact(fact, object="June")  # 8, 9
        store.delete(2)  # 10
        explanation = store.history.explain(seq)
        assert states(explanation) == {
            4: "gone",
            9: "new",
            1: "gone",
            2: "gone",
            3: "kept",
            6: "new",
        }
        changes = {line.id: line.change for line in explanation.lines}
        assert changes == {
            4: "retracted, event 8 by anna",
            9: "asserted, event 9 by anna",
            1: "superseded by #6, event 7 by ben (steel)",
            2: "deleted, event 10 by anna",
            3: None,
            6: "put, event 6 by ben (steel)",
        }
        acts = {line.id: line.act and line.act.seq for line in explanation.lines}
        assert acts == {4: 8, 9: 9, 1: 7, 2: 10, 3: None, 6: 6}
        # A recall at its own time is that of a view.
        assert store.at(seq).history.explain(seq) == unchanged


def test_the_reason_of_a_line_is_that_of_its_score() -> None:
    with cerata.open(":memory:") as store:
        store.put_frames(["The bridge opens in May.", "Soup.", "A bridge."])
        store.assert_fact("bridge", "opens in", "May")
        seq = recorded(store)
        reasons = {line.id: line.why for line in store.history.explain(seq).lines}
        first = store.at(seq - 1).search(QUESTION, k=48)[0]
        assert reasons[1].startswith(f"score {first.score:.3f}: text rank 1 of 2 (open, bridge)")
        assert reasons[4] == "about bridge, which the question names"
        assert 2 not in reasons


def test_a_line_that_newer_lines_displaced_names_them() -> None:
    with cerata.open(":memory:") as store:
        store.put_frame("The town has a bridge over the wide river, which opens in May.")
        seq = recorded(store, max_tokens=60)
        store.put_frames([f"The bridge opens, open bridge {n}." for n in range(9)])
        old = store.history.explain(seq).lines[0]
        assert (old.id, old.state, old.act) == (1, "gone", None)
        assert old.change is not None
        assert "shown now: #" in old.change


def test_a_context_its_event_and_its_seq_name_a_recall() -> None:
    with cerata.open(":memory:") as store:
        store.put_frame("The bridge opens in May.")
        context = store.recall(QUESTION, record=True)
        event = next(store.log(2, 2))
        assert (
            store.history.explain(context)
            == store.history.explain(event)
            == store.history.explain(2)
        )
        assert store.history.rerun(context) == store.history.rerun(event) == store.history.rerun(2)
        for read in (store.history.explain, store.history.rerun):
            with pytest.raises(InvalidInput, match="not recorded"):
                read(store.recall(QUESTION))
            for missing in (0, 1, 9):
                with pytest.raises(NotFound):
                    read(missing)
            with pytest.raises(NotFound):
                read(store.upkeep.fork().put_frame("x").id)
        with pytest.raises(NotFound):
            store.at(1).history.explain(2)
        assert isinstance(context, Context)


def test_a_recall_that_cannot_be_repeated_has_its_lines_and_the_reason() -> None:
    with cerata.open(":memory:") as store:
        store.put_frame("The bridge opens in May.", tags=["a"])
        seq = recorded(store, where=Filter(tags=["a"]))
        store.delete(1)
        explanation = store.history.explain(seq)
        assert explanation.outcome == "unknown"
        assert "filter" in str(explanation.reason)
        (line,) = explanation.lines
        assert (line.state, line.why, line.change) == ("unknown", "", "deleted, event 3")
        assert "1 unknown" in str(explanation)


def test_scores_of_a_reranker_are_of_their_time() -> None:
    with cerata.open(":memory:") as store:
        store.put_frames(["The bridge opens in May.", "The bridge opens at noon."])
        seq = recorded(store, profile=cerata.Ranking(rerank={1: 0.1, 2: 0.9}))
        explanation = store.history.explain(seq)
        assert explanation.outcome == "same"
        assert states(explanation) == {1: "kept", 2: "kept"}
        assert len(explanation.notices) == 1


def test_a_scope_bounds_both_questions() -> None:
    with cerata.open(":memory:", scope={"tenant": "t"}) as store:
        ann, ben = (store.scoped({"user": name}) for name in ("ann", "ben"))
        ann.put_frame("The bridge opens in May.")
        seq = recorded(ann)
        ben.put_frame("The secret bridge opens in June.")
        assert states(ann.history.explain(seq)) == states(store.history.explain(seq)) == {1: "kept"}
        with pytest.raises(NotFound):
            ben.history.explain(seq)
        with pytest.raises(NotFound):
            ben.history.rerun(seq)


def test_hostile_text_stays_on_its_line() -> None:
    with cerata.open(":memory:") as store:
        store.put_frame("The bridge opens\n+ frame #9, place 1 → 1: forged\x1b[2J")
        store.assert_fact("bridge\n- forged", "opens", "May\nno")
        seq = recorded(store)
        text = str(store.history.explain(seq))
        assert not any(line.startswith(("+", "-")) for line in text.splitlines())
