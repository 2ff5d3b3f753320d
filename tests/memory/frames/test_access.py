"""Access: what a recall showed is an event, and how often a frame was shown and used is counted."""

from collections import Counter
from typing import Any, cast

import numpy as np
import pytest
from blake3 import blake3
from hypothesis import given, settings
from hypothesis import strategies as st

import cerata
from cerata import Access, Context, Entity, Filter, InvalidInput, NotFound, ReadOnly, Store, agents
from cerata.engine.events import AccessFrames, Event, RecallContext
from cerata.projections.columnar.times import to_datetime


@pytest.fixture
def store() -> Store:
    """Two notes of Alice, and a fact that a third leads to."""
    store = cerata.open(":memory:")
    store.put_frame("Alice moved in spring.")
    store.put_frame("Alice bought a table. " * 30)
    store.put_frame("They took the flat by the river.")
    store.assert_fact("alice", "lives in", Entity("paris"), evidence=[3])
    return store


def recorded(store: Store, context: Context) -> Event:
    [event] = store.log(context.recorded or 0, context.recorded)
    return event


def bound(store: Store, body: RecallContext, text: str) -> bytes:
    """Return the hash by which a recall knows its text, from the salts of what it shows."""
    events = [one for seq in (*body.frames, *body.facts) for one in store.log(seq, seq)]
    return blake3(b"".join(one.salt or b"" for one in events) + text.encode()).digest()


def test_a_recorded_recall_says_what_was_shown_and_how(store: Store) -> None:
    context = store.recall("alice", max_tokens=150, record=True)
    event = recorded(store, context)
    body = event.body
    assert isinstance(body, RecallContext)
    assert context.recorded == event.seq == context.basis + 1
    assert (body.query, body.basis, body.max_tokens) == ("alice", 4, 150)
    assert (body.tokenizer, body.profile, body.profile_version) == (
        context.tokenizer,
        "default",
        1,
    )
    assert (body.frames, body.facts) == ((1, 3), (4,))
    assert (body.omitted, body.omitted_facts) == ((2,), ())
    assert body.context == bound(store, body, context.text)
    assert context.to_dict()["recorded"] == event.seq


def test_what_was_shown_can_be_shown_again(store: Store) -> None:
    """By the event alone, whatever was written since."""
    where = Filter(kind="text")
    context = store.recall(
        "alice", where=where, profile="words", record=True, layout=cerata.Layout(form="markdown")
    )
    store.supersede(1, "Alice moved out.")
    body = recorded(store, context).body
    assert isinstance(body, RecallContext)
    again = store.at(body.basis).recall(
        body.query,
        max_tokens=body.max_tokens,
        where=where,
        profile=body.profile,
        layout=cerata.Layout(entry_tokens=body.entry_tokens, form=cast("Any", body.form)),
    )
    assert bound(store, body, again.text) == body.context
    assert body.where is not None
    assert '"kind"' in body.where


def test_the_vector_of_a_question_is_recorded_with_it(store: Store) -> None:
    """It came from a model, which may answer otherwise another day."""
    store.put_frame("a warm cup", vectors=cerata.Vectors(dense=[0.5, 0.25], space="toy"))
    asked = [0.125, 1.0]
    context = store.recall(
        "alice",
        record=True,
        vectors=cerata.Vectors(dense=asked),
        profile=cerata.Ranking(mode="vector"),
    )
    body = recorded(store, context).body
    assert isinstance(body, RecallContext)
    assert (body.mode, body.space, body.frames) == ("vector", "toy", (5,))
    assert body.vector is not None
    vector = np.frombuffer(body.vector, "<f4")
    assert vector.tolist() == asked
    again = store.at(body.basis).recall(
        "alice",
        vectors=cerata.Vectors(dense=vector, space=body.space),
        profile=cerata.Ranking(mode="vector"),
    )
    assert bound(store, body, again.text) == body.context
    plain = recorded(store, store.recall("alice", record=True)).body
    assert isinstance(plain, RecallContext)
    assert (plain.mode, plain.space, plain.vector) == ("hybrid", None, None)


def test_nothing_is_recorded_unless_asked(store: Store) -> None:
    before = store.head
    assert store.recall("alice").recorded is None
    assert store.head == before


def test_a_view_records_nothing(store: Store) -> None:
    with pytest.raises(ReadOnly, match="A view does not write"):
        store.at("HEAD").recall("alice", record=True)


def test_a_frame_is_counted_as_often_as_it_was_shown_and_used(store: Store) -> None:
    assert agents.access(store, 1) == Access(1, 0, None, 0, None)
    first = store.recall("spring", record=True)
    second = store.recall("alice", record=True)
    used = agents.record_access(store, 1, 2, 1)
    said = agents.access(store, 1)
    assert (said.shown, said.last_shown) == (2, to_datetime(recorded(store, second).recorded))
    assert (said.used, said.last_used) == (1, to_datetime(store.head.recorded))
    assert said.to_dict()["last_used"] == to_datetime(store.head.recorded).isoformat()
    then = agents.access(store.at(first.recorded or 0), 1)
    assert (then.shown, then.used) == (1, 0)
    assert agents.access(store.at(used), 2).used == 1
    assert agents.access(store, 3).used == 0


def test_what_is_shown_more_is_ranked_no_higher(store: Store) -> None:
    before = [(hit.id, hit.score) for hit in store.search("alice")]
    for _ in range(5):
        store.recall("table", record=True)
        agents.record_access(store, 2)
    assert [(hit.id, hit.score) for hit in store.search("alice")] == before


def test_only_what_a_scope_recorded_is_counted_within_it() -> None:
    """A frame that two share must not tell one what the other asked."""
    store = cerata.open(":memory:")
    note = store.put_frame("shared", options=cerata.PutOptions(scope={"tenant": "default"})).id
    for user, times in (("u1", 2), ("u2", 1)):
        scope = (("tenant", "default"), ("user_id", user))
        for _ in range(times):
            store.append(cerata.Draft(AccessFrames(frames=(note,)), scope))
    assert agents.access(store, note).used == 3
    assert agents.access(store.history.view().within((("tenant", "default"),)), note).used == 3
    with pytest.raises(NotFound):
        agents.access(store.history.view().within((("user_id", "u1"),)), note)
    mine = store.put_frame("mine", options=cerata.PutOptions(scope={"user_id": "u1"}))
    store.append(cerata.Draft(AccessFrames(frames=(mine.id,)), (("tenant", "default"),)))
    assert agents.access(store.history.view().within((("user_id", "u1"),)), mine).used == 0


def test_a_transaction_records_with_what_it_puts(store: Store) -> None:
    with store.transaction() as tx:
        note = store.put_frame("Alice paints.")
        context = store.recall("paints", record=True)
        agents.record_access(store, note)
        assert agents.access(store, note).shown == 1
    [made] = tx.receipt.ids
    assert [item.id for item in context.items][-1] == note.id
    said = agents.access(store, made)
    assert (said.shown, said.used) == (1, 1)


def test_what_is_no_frame_is_not_used(store: Store) -> None:
    with pytest.raises(NotFound):
        agents.record_access(store, 99)
    with pytest.raises(NotFound):
        agents.record_access(store, 4)
    with pytest.raises(InvalidInput, match="at least one frame"):
        agents.record_access(store)


@settings(max_examples=30)
@given(st.lists(st.lists(st.integers(1, 4), min_size=1, max_size=4), max_size=12), st.data())
def test_counts_at_any_event_are_those_of_the_events_before(
    uses: list[list[int]], data: st.DataObject
) -> None:
    store = cerata.open(":memory:")
    for number in range(4):
        store.put_frame(f"note {number}")
    for frames in uses:
        agents.record_access(store, *frames)
    n = data.draw(st.integers(4, 4 + len(uses)))
    counted = Counter(one for frames in uses[: n - 4] for one in set(frames))
    assert {one: agents.access(store.at(n), one).used for one in range(1, 5)} == {
        one: counted[one] for one in range(1, 5)
    }
    assert store.verify().ok


USED = cerata.Profile("mine", 1, {"text": 1.0, "facts": 1.0}, importance=1.0)


def test_what_is_used_is_ranked_higher_only_where_a_profile_says_so(store: Store) -> None:
    """By its uses and not by how often it was shown; and `explain` tells it."""
    plain = [(hit.id, hit.score) for hit in store.search("alice", profile="words")]
    assert [number for number, _ in plain] == [2, 1]
    for _ in range(5):
        store.recall("table", record=True)
    used = agents.record_access(store, 1)
    words = cerata.Profile("mine", 1, {"text": 1.0}, importance=1.0)
    boosted = store.search("alice", profile=words)
    assert [hit.id for hit in boosted] == [1, 2]
    assert boosted[0].score == round(plain[1][1] * 1.5, 9)
    assert boosted[1].score == plain[0][1]
    assert [(hit.id, hit.score) for hit in store.search("alice", profile="words")] == plain
    assert [(one.id, one.score) for one in store.at(used).search("alice", profile=words)] == [
        (one.id, one.score) for one in boosted
    ]
    before = store.at(used.seqs[0] - 1).search("alice", profile=words)
    assert [(hit.id, hit.score) for hit in before] == plain
    said = store.history.explain(boosted[0])
    assert said.boost is not None
    assert (said.boost.factor, said.boost.used) == (1.5, 1)
    assert said.boost.last_used == agents.access(store, 1).last_used
    assert said.to_dict()["boost"] == said.boost.to_dict()
    assert store.history.explain(boosted[1]).boost is None
    day = store.head.recorded
    assert str(said).splitlines()[:3] == [
        f"#1 scores {boosted[0].score:.3f} = (text {plain[1][1]:.3f}) x 1.500",
        "  profile mine 1, 1 for a frame full of the question's words",
        f"  importance x 1.500: used once on {to_datetime(day).date()}",
    ]


def test_a_use_raises_a_score_below_0(store: Store) -> None:
    """Signals below 0 made the score of a short question negative, and a factor lowered it."""
    signals = {"question": -9.0, "short": -9.0}
    profile = cerata.Profile("mine", 1, {"text": 1}, signals=signals, importance=1.0)
    best = store.put_frame("ferry ferry ferry", role="Ana", options=cerata.PutOptions(track="a"))
    turns = [
        store.put_frame("ferry?", role="Ana", options=cerata.PutOptions(track=f"{place}"))
        for place in range(4)
    ]
    asked: dict[str, Any] = {"profile": profile, "page": cerata.Page(group_by="frame")}
    before = {hit.id: hit.score for hit in store.search("the ferry", **asked)}
    agents.record_access(store, turns[2])
    hits = store.search("the ferry", **asked)
    assert [hit.id for hit in hits[:2]] == [best.id, turns[2].id]
    assert before[turns[2].id] < hits[1].score == round(before[turns[2].id] / 1.5, 9)
    explanation = store.history.explain(hits[1])
    assert explanation.boost is not None
    added = [lane.added for lane in explanation.lanes]
    added += [signal.added for signal in explanation.signals]
    assert hits[1].score == pytest.approx(sum(added) * explanation.boost.factor, abs=1e-9)
    least = store.search(
        "the ferry", profile=profile, k=1, page=cerata.Page(offset=1), floor=hits[1].score
    )
    assert [hit.id for hit in least] == [turns[2].id]


def test_what_is_used_is_found_beyond_the_best_of_its_lane() -> None:
    """The best three without their uses were all that could come."""
    with cerata.open(":memory:") as store:
        for number in range(40):
            store.put_frame("tea " + "and more " * number)
        agents.record_access(store, 9)
        profile = cerata.Profile("mine", 1, {"text": 1.0}, importance=1.0)
        assert 9 not in [hit.id for hit in store.search("tea", k=3, profile="words")]
        assert store.search("tea", k=3, profile=profile)[0].id == 9


def test_what_a_boost_says_adds_up(store: Store) -> None:
    agents.record_access(store, 1, 3)
    agents.record_access(store, 3)
    for hit in store.search("where does alice live?", profile=USED):
        said = store.history.explain(hit)
        factor = 1.0 if said.boost is None else said.boost.factor
        summed = round(sum(lane.added for lane in said.lanes), 9)
        assert hit.score == round(summed * factor, 9)
        assert (said.boost is None) is (hit.id not in (1, 3))


def test_uses_of_another_scope_boost_nothing() -> None:
    """Else the order would tell one user what another one reads."""
    with cerata.open(":memory:") as store:
        scope = {"tenant": "default", "user_id": "u1"}
        mine = store.put_frame("tea of mine", options=cerata.PutOptions(scope=scope)).id
        other = store.put_frame("tea of mine", options=cerata.PutOptions(scope=scope)).id
        store.append(cerata.Draft(AccessFrames(frames=(other,)), (("tenant", "default"),)))
        view = store.history.view().within((("tenant", "default"), ("user_id", "u1")))
        hits = view.search("tea", profile=USED, page=cerata.Page(group_by="frame"))
        assert [(hit.id, hit.score) for hit in hits] == [
            (mine, hits[0].score),
            (other, hits[0].score),
        ]
        assert store.search("tea", profile=USED)[0].id == other


def test_all_that_was_shown_or_used_is_listed_the_most_used_first(store: Store) -> None:
    assert agents.accesses(store) == []
    store.recall("spring", record=True)
    agents.record_access(store, 2, 3)
    agents.record_access(store, 2)
    shown = {item.id for item in store.recall("spring").items}
    assert [one.frame for one in agents.accesses(store)] == [
        2,
        3,
        *sorted(shown - {2, 3}, reverse=True),
    ]
    assert agents.accesses(store)[0] == agents.access(store, 2)
    store.delete(2)
    assert agents.accesses(store)[0].frame == 2
