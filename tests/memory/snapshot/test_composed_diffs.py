"""Differences of any two composed views of one log: each leads from one state to the other."""

from typing import TypeAlias

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import cerata
from cerata import View
from cerata.engine.events import AssertFact, PutFrame, RetractFact, SupersedeFrame
from cerata.memory.snapshot.points import Common, common_beginning
from cerata.memory.snapshot.reader import snapshot_of

from ..acts import ACTS, Act
from .test_composed_views import DAYS, FACT_ACTS, copy_of, drafts_of, perform_any

Key: TypeAlias = tuple[int, str]
ANY_ACTS = st.lists(st.one_of(ACTS, FACT_ACTS), max_size=4)


def key(number: int, common: Common, side: str) -> Key:
    """The identity of a thing; drafts of two states share their ids."""
    return number, "" if common.has(number) else side


def frames_of(view: View, common: Common, side: str) -> dict[Key, str]:
    return {key(frame.id, common, side): frame.text for frame in view.frames()}


def facts_of(view: View, common: Common, side: str) -> dict[Key, object]:
    return {key(fact.id, common, side): fact.to_dict() for fact in view.facts()}


@settings(max_examples=30, deadline=None, phases=[Phase.generate], report_multiple_bugs=False)
@given(before=st.lists(st.one_of(ACTS, FACT_ACTS), max_size=10), data=st.data())
def test_a_difference_of_any_two_views_leads_from_one_to_the_other(
    before: list[Act], data: st.DataObject
) -> None:
    """Each of the views has a point, drafts of its own, and perhaps an instant."""
    with cerata.open(":memory:") as store:
        for act in before:
            perform_any(store, act)
        instant = data.draw(st.sampled_from((None, None, *DAYS)))
        views: list[View] = []
        for _ in range(2):
            n = data.draw(st.integers(0, store.head.seq))
            with copy_of(store, n) as copy:
                drafts = drafts_of(copy, data.draw(ANY_ACTS))
            views.append(store.at(n).upkeep.speculate(*drafts).true_at(instant))
        a, b = views
        common = common_beginning(snapshot_of(a), snapshot_of(b))
        found = store.diff(a, b)
        frames, expected = frames_of(a, common, "a"), frames_of(b, common, "b")
        for change in found:
            if change.old is not None:
                old = key(change.old.id, common, "a")
                assert frames.pop(old, change.old.text) == change.old.text
            if change.new is not None:
                frames[key(change.new.id, common, "b")] = change.new.text
        assert frames == expected
        assert {name for name, _ in frames} >= {*found.added, *found.changed}
        facts = facts_of(a, common, "a")
        for fact_change in found.facts:
            if fact_change.old is not None:
                assert facts.pop(key(fact_change.old.id, common, "a")) is not None
            if fact_change.new is not None:
                facts[key(fact_change.new.id, common, "b")] = fact_change.new.to_dict()
        assert facts.keys() == facts_of(b, common, "b").keys()
        back = store.diff(b, a)
        assert (back.added, back.removed) == (found.removed, found.added)
        assert {(new, old) for old, new in back.replaced} == set(found.replaced)
        assert back.changed == found.changed
        assert sorted(map(str, (one.verb for one in back))) == sorted(one.verb for one in found)
        assert [fact.verb for fact in back.facts if fact.kind == "changed"] == [
            fact.verb for fact in found.facts if fact.kind == "changed"
        ]
        assert not store.diff(a, a)


def test_the_verbs_of_changes_are_those_of_the_log() -> None:
    """Learned, retracted, corrected, ended; added, superseded, deleted: in both directions."""
    with cerata.open(":memory:") as store:
        note = store.put_frame("note")
        old = store.put_frame("old")
        tea = store.assert_fact("ann", "likes", "tea")
        milk = store.assert_fact("ann", "likes", "milk")
        store.graph.declare("lives in", functional=True)
        rome = store.assert_fact("ann", "lives in", "Rome", valid_from="2020-01-01")
        start = store.head
        store.supersede(note, "new note")
        store.delete(old)
        store.put_frame("added")
        store.correct_fact(tea, object="green tea")
        store.retract_fact(milk)
        store.assert_fact("ann", "lives in", "Bern", valid_from="2024-01-01")
        for found in (store.diff(start), store.diff("HEAD", start)):
            assert sorted(change.verb for change in found) == ["added", "deleted", "superseded"]
            assert {change.fact.id: change.verb for change in found.facts} == {
                tea.id: "corrected",
                milk.id: "retracted",
                rome.id: "ended",
                rome.id + 6: "corrected",
                rome.id + 8: "learned",
            }
        views = [store.at("HEAD", valid_at=day) for day in ("2023-01-01", "2025-01-01")]
        verbs = {change.fact.id: change.verb for change in store.diff(*views).facts}
        assert verbs == {rome.id: "ended", rome.id + 8: "started"}


def test_a_question_shows_which_results_changed_rank_and_why() -> None:
    """A new version, a deletion, a new frame, and a rank that another result took."""
    with cerata.open(":memory:", actor="anna") as store:
        first = store.put_frame("the harbour opens in May")
        second = store.put_frame("harbour tours begin in the harbour")
        third = store.put_frame("the harbour bridge and its long long long description")
        start = store.head
        store.supersede(first, "the harbour opens in June", reason="moved")
        store.delete(second)
        found = store.history.since(start, query="harbour opens")
        assert {(one.id, one.kind) for one in found.results} == {
            (4, "appeared"),
            (1, "vanished"),
            (2, "vanished"),
            (third.id, "rose"),
        }
        why = {one.id: one.why for one in found.results}
        assert why[4] == "put by event 4 by anna (moved)"
        assert why[1] == "superseded by #4, event 5 by anna (moved)"
        assert why[2] == "deleted, event 6 by anna"
        assert "no longer above it: #1" in why[3] or "no longer above it: #2" in why[3]
        assert "#4 appeared, rank – → 1: put by event 4 by anna (moved)" in str(found)
        assert store.diff("HEAD", query="harbour").results == ()
        below = store.diff(0, start, query="harbour opens", k=1).results
        assert [(one.new_rank, one.kind) for one in below] == [(1, "appeared")]
        more = store.history.view().upkeep.speculate(PutFrame(text="harbour opens harbour opens"))
        changes = more.history.since(store.head.seq, query="harbour opens", k=1).results
        assert [one.why for one in changes] == [
            "put by speculative event 1",
            "below the first 1 now",
        ]


def test_changes_of_speculative_events_are_told() -> None:
    """From the log to the view, and between two such views that share a beginning."""
    with cerata.open(":memory:") as store:
        store.put_frame("one")
        tea = store.assert_fact("ann", "likes", "tea")
        base = store.upkeep.speculate(PutFrame(text="two"))
        left = base.upkeep.speculate(SupersedeFrame(old=1, new=-1))
        right = base.upkeep.speculate(RetractFact(fact=tea.id), PutFrame(text="three"))
        assert store.diff("HEAD", base).added == (-1,)
        found = store.diff(left, right)
        assert (found.added, found.removed, found.replaced) == ((1, -3), (), ())
        assert [(one.verb, one.fact.id) for one in found.facts] == [("retracted", tea.id)]
        drinks = AssertFact(subject="ann", predicate="likes", object_kind="string", object="x")
        two = store.diff(store.upkeep.speculate(drinks), store.upkeep.speculate(drinks, drinks))
        assert [one.kind for one in two.facts] == ["changed"]
        other = store.diff(
            store.at(1).upkeep.speculate(drinks), store.upkeep.speculate(PutFrame(text="x"))
        )
        assert [(one.kind, one.fact.id) for one in other.facts] == [("removed", -1), ("added", 2)]
