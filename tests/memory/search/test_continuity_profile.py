"""The profile "continuity": its lane of the graph by hops, its boosts, and recorded recalls."""

from collections.abc import Iterator
from itertools import pairwise

import pytest

import cerata
from cerata import Entity, Explanation, Filter, Profile, Store
from cerata.engine.events import RecallContext
from cerata.memory.facts.near_frames import HOPS
from cerata.retrieval.ranking.profile import DEFAULT, OPTIONAL_SIGNALS, PROFILES
from cerata.retrieval.ranking.relevance import BY_WORDS

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
        frame = store.put_frame(
            f"Line {place}.", role="user", options=cerata.PutOptions(track="talk")
        )
        store.assert_fact(subject, "leads to", Entity(object_), evidence=[frame])
        ids.append(frame.id)
    return ids


def explained(store: Store, question: str, profile: Profile | str) -> dict[int, Explanation]:
    return {hit.id: store.history.explain(hit) for hit in store.search(question, profile=profile)}


# --- the lane of the graph -----------------------------------------------------------------------


def test_a_frame_ranks_by_the_facts_between_it_and_the_question(store: Store) -> None:
    ids = chain(store)
    explanations = explained(store, "Where is Ann?", GRAPH)
    assert HOPS == 3
    assert [*explanations] == ids[:3]
    for hop, frame in enumerate(ids[:3], start=1):
        text, graph = explanations[frame].lanes
        assert (text.rank, graph.lane, graph.rank) == (None, "graph", hop)
        assert (graph.share, graph.added) == (1 / hop, 0.05 / hop)


def test_frames_of_one_hop_are_equal(store: Store) -> None:
    """Three frames at hop 1 add a step each, whatever their places in the list."""
    frames = [store.put_frame(f"tea {place}") for place in range(3)]
    for place, frame in enumerate(frames):
        store.assert_fact("Ann", f"drinks {place}", "tea", evidence=[frame])
    other = store.put_frame("Ann")
    explanations = explained(store, "Ann", GRAPH)
    assert [explanations[frame.id].lanes[1].added for frame in frames] == [0.05] * 3
    assert explanations[other.id].lanes[1].rank is None
    for explanation in explanations.values():
        assert explanation.score == round(sum(lane.added for lane in explanation.lanes), 9)


def test_the_shortest_way_counts_and_merged_names_are_one_entity(store: Store) -> None:
    frame = store.put_frame("Line.")
    store.assert_fact("Acme", "based in", Entity("Paris"), evidence=[frame])
    store.assert_fact("Ann", "works at", Entity("Acme Inc"))
    assert [*explained(store, "Where is Ann?", GRAPH)] == []
    store.graph.merge("Acme Inc", "Acme")
    assert explained(store, "Where is Ann?", GRAPH)[frame.id].lanes[1].share == 0.5
    store.assert_fact("Ann", "likes", Entity("Paris"), evidence=[frame])
    assert explained(store, "Where is Ann?", GRAPH)[frame.id].lanes[1].share == 1


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
    store.graph.declare("lives in", functional=True)
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
    assert len(store.search("Ann", profile=GRAPH, page=cerata.Page(group_by="frame"))) == 2
    assert (
        store.search(
            "Ann", profile=GRAPH, where=Filter(kind="chat"), page=cerata.Page(group_by="frame")
        )
        == []
    )
    anna = store.put_frame("Line.", options=cerata.PutOptions(scope={"user": "anna"}))
    store.assert_fact(
        "Bob",
        "knows",
        Entity("Cy"),
        evidence=[anna],
        options=cerata.FactOptions(scope={"user": "anna"}),
    )
    ben = store.at("HEAD").within({"user": "ben"})
    assert ben.search("Bob", profile=GRAPH, page=cerata.Page(group_by="frame")) == []


def test_drafts_of_a_transaction_are_found(store: Store) -> None:
    with store.transaction():
        frame = store.put_frame("Line.")
        store.assert_fact("Ann", "drinks", "tea", evidence=[frame])
        assert [hit.id for hit in store.search("Ann", profile=GRAPH)] == [frame.id]


# --- the profile ---------------------------------------------------------------------------------


def test_the_profile_is_the_default_with_the_graph_and_the_boosts() -> None:
    profile = PROFILES[NAME]
    assert dict(profile.weights) == {**DEFAULT.weights, "graph": 1.0}
    boosts = {name: OPTIONAL_SIGNALS[name] for name in BOOSTS}
    assert profile.signals == {**DEFAULT.signals, **boosts}
    assert not [name for name, each in PROFILES.items() if "graph" in each.weights and name != NAME]


def test_all_parts_add_up_to_the_score(store: Store) -> None:
    ids = chain(store)
    space = "toy@1/2/cosine"
    near = store.put_frame(
        "Ann speaks.",
        role="user",
        vectors=cerata.Vectors(dense=[1, 0], space=space),
        options=cerata.PutOptions(track="talk"),
    )
    hits = store.search("Where is Ann?", profile=NAME, vectors=cerata.Vectors(dense=[1, 0.1]))
    assert {hit.id for hit in hits} >= {near.id, *ids[:3]}
    lanes: set[str] = set()
    signals: set[str] = set()
    for hit in hits:
        explanation = store.history.explain(hit)
        assert explanation.profile.label == "continuity 1"
        parts = [lane.added for lane in explanation.lanes]
        parts += [signal.added for signal in explanation.signals]
        assert hit.score == round(sum(parts), 9)
        lanes.update(lane.lane for lane in explanation.lanes if lane.rank is not None)
        signals.update(signal.signal for signal in explanation.signals)
    assert lanes == {"text", "facts", "vectors", "graph"}
    assert signals >= BOOSTS


def test_a_boost_moves_a_frame_up_by_its_weight_in_steps(store: Store) -> None:
    """Of two equal lines, that of the conversation in progress comes first."""
    for track in ("old", "new"):
        store.put_frame(
            "The boat is in the harbour.", role="user", options=cerata.PutOptions(track=track)
        )
    assert [hit.id for hit in store.search("the boat", page=cerata.Page(group_by="frame"))] == [
        1,
        2,
    ]
    hits = store.search("the boat", profile=NAME, page=cerata.Page(group_by="frame"))
    assert [hit.id for hit in hits] == [2, 1]
    new, old = (
        {each.signal: each.added for each in store.history.explain(hit).signals} for hit in hits
    )
    assert new.pop("thread") == 0.05 * OPTIONAL_SIGNALS["thread"]
    assert new.keys() == old.keys() == {"short", "recency"}


def test_a_recorded_recall_is_equal_again(store: Store) -> None:
    """By the name and the version of the profile that its event has."""
    for number in range(3):
        text = f"The boat number {number} is in the harbour."
        space = "toy@1/2/cosine"
        store.put_frame(
            text,
            role="user",
            vectors=cerata.Vectors(dense=[1.0, 0.0], space=space),
            options=cerata.PutOptions(track="talk"),
        )
    ids = chain(store)
    context = store.recall(
        "Which boat has Ann?", profile=NAME, record=True, vectors=cerata.Vectors(dense=[0.3, 1.0])
    )
    assert {ids[0], 1} <= {item.id for item in context.items}
    assert context.recorded is not None
    event = next(store.log(context.recorded, context.recorded)).body
    assert isinstance(event, RecallContext)
    assert (event.profile, event.profile_version) == (NAME, 1)
    store.put_frame("The boat of Ann.", role="user", options=cerata.PutOptions(track="talk"))
    again = store.at(event.basis).recall(
        event.query,
        profile=f"{event.profile} {event.profile_version}",
        vectors=cerata.Vectors(dense=[0.3, 1.0]),
    )
    assert (again.text, again.items) == (context.text, context.items)


def test_a_recall_by_words_has_the_marks_of_words(store: Store) -> None:
    chain(store)
    context = store.recall("Where is Ann?", profile=NAME, record=True)
    assert context.floor == BY_WORDS
    event = next(store.log(context.recorded or 0)).body
    assert isinstance(event, RecallContext)
    assert event.floor
