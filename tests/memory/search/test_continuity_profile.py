"""The profile "continuity": its lanes, that of the graph by hops, its boosts, and its gate."""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pytest

import cerata
from cerata import Entity, Explanation, Filter, Floor, InvalidInput, Profile, Store
from cerata.engine.events import RecallContext
from cerata.memory.facts.near_frames import HOPS
from cerata.memory.search import gate
from cerata.retrieval.ranking.profiles import OPTIONAL_SIGNALS, PROFILES

NAME = "continuity"
BOOSTS = {"recency", "thread", "noun"}
GRAPH = Profile("graph", 1, {"text": 1, "graph": 1})


@pytest.fixture
def store() -> Iterator[Store]:
    with cerata.open(":memory:") as opened:
        yield opened


def chain(store: Store) -> list[int]:
    """Put a frame for each fact of a chain Ann - Acme - Paris - Seine - sea; return their ids."""
    names = ["Ann", "Acme", "Paris", "Seine", "sea"]
    ids: list[int] = []
    for place, (subject, object_) in enumerate(pairwise(names)):
        frame = store.put_frame(f"Line {place}.", role="user", track="talk")
        store.assert_fact(subject, "leads to", Entity(object_), evidence=[frame])
        ids.append(frame.id)
    return ids


def explained(store: Store, question: str, profile: Profile | str) -> dict[int, Explanation]:
    return {hit.id: store.explain(hit) for hit in store.search(question, profile=profile)}


# --- the lane of the graph -----------------------------------------------------------------------


def test_a_frame_ranks_by_the_facts_between_it_and_the_question(store: Store) -> None:
    ids = chain(store)
    explanations = explained(store, "Where is Ann?", GRAPH)
    assert HOPS == 3
    assert [*explanations] == ids[:3]
    for hop, frame in enumerate(ids[:3], start=1):
        text, graph = explanations[frame].lanes
        assert (text.rank, graph.lane, graph.rank) == (None, "graph", hop)


def test_hops_are_ranks_and_frames_of_one_hop_are_equal(store: Store) -> None:
    """Three frames at hop 1: by their places in the list they would score 1/61, 1/62 and 1/63."""
    frames = [store.put_frame(f"tea {place}") for place in range(3)]
    for place, frame in enumerate(frames):
        store.assert_fact("Ann", f"drinks {place}", "tea", evidence=[frame])
    other = store.put_frame("Ann")
    explanations = explained(store, "Ann", GRAPH)
    assert [explanations[frame.id].lanes[1].added for frame in frames] == [1 / 61] * 3
    assert explanations[other.id].lanes[1].rank is None
    for explanation in explanations.values():
        total = sum(lane.added for lane in explanation.lanes)
        assert explanation.score == pytest.approx(total, abs=1e-9)


def test_the_shortest_way_counts_and_merged_names_are_one_entity(store: Store) -> None:
    frame = store.put_frame("Line.")
    store.assert_fact("Acme", "based in", Entity("Paris"), evidence=[frame])
    store.assert_fact("Ann", "works at", Entity("Acme Inc"))
    assert [*explained(store, "Where is Ann?", GRAPH)] == []
    store.merge_entities("Acme Inc", "Acme")
    assert explained(store, "Where is Ann?", GRAPH)[frame.id].lanes[1].rank == 2
    store.assert_fact("Ann", "likes", Entity("Paris"), evidence=[frame])
    assert explained(store, "Where is Ann?", GRAPH)[frame.id].lanes[1].rank == 1


def test_facts_that_are_retracted_or_not_true_lead_nowhere(store: Store) -> None:
    frame = store.put_frame("Line.")
    fact = store.assert_fact(
        "Ann", "lives in", "Paris", valid_from="2020-01-01", valid_to="2021-01-01", evidence=[frame]
    )
    found = [frame.id]
    assert [*explained(store, "Where is Ann?", GRAPH)] == found
    past = store.at("HEAD", valid_at="2020-06-01")
    later = store.at("HEAD", valid_at="2022-06-01")
    assert [hit.id for hit in past.search("Where is Ann?", profile=GRAPH)] == found
    assert later.search("Where is Ann?", profile=GRAPH) == []
    before = store.at("HEAD")
    store.retract_fact(fact)
    assert explained(store, "Where is Ann?", GRAPH) == {}
    assert [hit.id for hit in before.search("Where is Ann?", profile=GRAPH)] == found


def test_a_value_that_another_replaced_leads_nowhere(store: Store) -> None:
    """Both values are stated without an end; the later one ends the earlier."""
    store.declare_predicate("lives in", functional=True)
    frames = [store.put_frame(f"Line {place}.").id for place in range(2)]
    for year, (city, frame) in enumerate(zip(("Paris", "Rome"), frames, strict=True), start=2020):
        store.assert_fact("Ann", "lives in", city, valid_from=f"{year}-01-01", evidence=[frame])
    for time, frame in zip(("2020-06-01", "2022-06-01"), frames, strict=True):
        view = store.at("HEAD", valid_at=time)
        assert [hit.id for hit in view.search("Where is Ann?", profile=GRAPH)] == [frame]


def test_no_way_passes_a_fact_that_the_filter_or_the_scope_leaves_out(store: Store) -> None:
    """A fact of another mode would else order the frames of this one."""
    code = store.put_frame("Line.", kind="code")
    chat = store.put_frame("Line.", kind="chat")
    store.assert_fact("Ann", "works at", Entity("Acme"), evidence=[code])
    store.assert_fact("Acme", "based in", Entity("Paris"), evidence=[chat])
    assert len(store.search("Ann", profile=GRAPH, group_by="frame")) == 2
    assert store.search("Ann", profile=GRAPH, where=Filter(kind="chat"), group_by="frame") == []
    anna = store.put_frame("Line.", scope={"user": "anna"})
    store.assert_fact("Bob", "knows", Entity("Cy"), evidence=[anna], scope={"user": "anna"})
    ben = store.at("HEAD").within({"user": "ben"})
    assert ben.search("Bob", profile=GRAPH, group_by="frame") == []


def test_drafts_of_a_transaction_are_found(store: Store) -> None:
    with store.transaction():
        frame = store.put_frame("Line.")
        store.assert_fact("Ann", "drinks", "tea", evidence=[frame])
        assert [hit.id for hit in store.search("Ann", profile=GRAPH)] == [frame.id]


# --- the profile ---------------------------------------------------------------------------------


def test_the_weights_are_those_of_the_reference() -> None:
    profile = PROFILES[NAME]
    assert dict(profile.weights) == {"text": 0.15, "facts": 0.15, "vectors": 0.8, "graph": 0.15}
    of_turns = {"text": 0.8, "facts": 0.15, "vectors": 0.2, "graph": 0.15}
    assert dict(profile.turn_weights) == of_turns
    assert (profile.method, profile.gate) == ("rrf", True)
    assert profile.signals == {name: OPTIONAL_SIGNALS[name] for name in BOOSTS}
    assert not [name for name, each in PROFILES.items() if each.gate and name != NAME]


def test_all_parts_add_up_to_the_score(store: Store) -> None:
    ids = chain(store)
    space = "toy@1/2/cosine"
    near = store.put_frame("Ann speaks.", role="user", track="talk", embedding=[1, 0], space=space)
    hits = store.search("Where is Ann?", profile=NAME, embedding=[1, 0.1])
    assert {hit.id for hit in hits} >= {near.id, *ids[:3]}
    lanes: set[str] = set()
    signals: set[str] = set()
    for hit in hits:
        explanation = store.explain(hit)
        assert explanation.profile.label == "continuity 2"
        parts = [lane.added for lane in explanation.lanes]
        parts += [signal.added for signal in explanation.signals]
        assert hit.score == pytest.approx(sum(parts), abs=2e-9)
        lanes.update(lane.lane for lane in explanation.lanes if lane.rank is not None)
        signals.update(signal.signal for signal in explanation.signals)
        assert "ranks fused" in str(explanation)
    assert lanes == {"text", "facts", "vectors", "graph"}
    assert signals == BOOSTS


# --- the gate ------------------------------------------------------------------------------------


def talk(store: Store, vector: list[float] | None = None) -> None:
    space = None if vector is None else "toy@1/2/cosine"
    for number in range(3):
        text = f"The boat number {number} is in the harbour."
        store.put_frame(text, role="user", track="talk", embedding=vector, space=space)
    text = "Mina is late."
    store.put_frame(text, role="assistant", track="talk", embedding=vector, space=space)


@pytest.mark.parametrize("vector", [None, [1.0, 0.0]])
def test_the_gate_replaces_the_floor(store: Store, vector: list[float] | None) -> None:
    talk(store, vector)
    far = None if vector is None else np.array([0.1, 1.0])

    def texts(question: str) -> list[str]:
        context = store.recall(question, profile=NAME, embedding=far)
        assert context.relevant == bool(context.items)
        return [item.text for item in context.items]

    assert texts("Which violin concerto has four movements?") == []
    assert texts("What did you say about Mina and violins?") == ["Mina is late."]
    assert len(texts("Do you remember the boat?")) == 4
    everything = store.recall(
        "Which violin boat has four movements?", profile=NAME, embedding=far, floor=False
    )
    assert len(everything.items) >= 3


def test_few_exchanges_need_a_lower_cosine(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    talk(store, [1.0, 0.0])
    question, near = "Which violin?", [0.3, 1.0]
    assert store.recall(question, profile=NAME, embedding=near).relevant
    assert not store.recall(question, profile=NAME, embedding=[0.1, 1.0]).relevant
    monkeypatch.setattr(gate, "FEW_EXCHANGES", 2)
    assert not store.recall(question, profile=NAME, embedding=near).relevant
    assert store.recall(question, profile=NAME, embedding=[0.6, 1.0]).relevant
    assert store.recall(question, profile=NAME, embedding=near, floor=Floor(0.2, 0.5)).relevant


def test_a_recorded_recall_has_the_numbers_of_the_gate(store: Store) -> None:
    talk(store, [1.0, 0.0])
    context = store.recall("Which boat?", profile=NAME, embedding=[0.3, 1.0], record=True)
    assert context.recorded is not None
    event = next(store.log(context.recorded, context.recorded)).body
    assert isinstance(event, RecallContext)
    assert (event.profile, event.profile_version) == (NAME, 2)
    assert (event.floor_cosine, event.floor_words) == (0.155, 0.5)
    again = store.at(event.basis).recall(
        event.query, profile=f"{event.profile} {event.profile_version}", embedding=[0.3, 1.0]
    )
    assert again.text == context.text


def test_a_gate_must_be_a_bool() -> None:
    with pytest.raises(InvalidInput, match="gate"):
        Profile("mine", 1, {"text": 1}, gate=1)  # type: ignore[arg-type]
