"""Lanes of a search: which run by a profile and the kind of a question, and what they add."""

import math

import pytest

import cerata
from cerata import Entity, Filter, InvalidInput, Profile, Store, Unsupported
from cerata.memory.snapshot.reader import snapshot_of


@pytest.fixture
def store() -> Store:
    """Alice and Paris have a note by name, and one that only a fact leads to."""
    store = cerata.open(":memory:")
    store.put_frame("Alice moved in spring.", kind="move")
    store.put_frame("They took the flat by the river.")
    store.put_frame("Alice bought a table.")
    store.assert_fact("alice", "lives in", Entity("paris"), evidence=[1, 2])
    return store


def found(store: Store, query: str, **asked: object) -> list[tuple[int, float, tuple[str, ...]]]:
    hits = store.search(query, **asked)  # type: ignore[arg-type]
    return [(hit.id, hit.score, hit.lanes) for hit in hits]


def test_a_profile_without_facts_ranks_by_words_alone(store: Store) -> None:
    assert [(one, lanes) for one, _, lanes in found(store, "alice", profile="words")] == [
        (1, ("text",)),
        (3, ("text",)),
    ]
    ranked = snapshot_of(store).layers.ranking.search("alice")
    most = 2 * math.log(1 + 1.5 / 2.5)
    shares = [pytest.approx(score / most, abs=1e-7) for score in ranked.scores]
    assert [score for _, score, _ in found(store, "alice", profile="words")] == shares


@pytest.mark.parametrize("question", ["why alice", "who is alice", "alice"])
def test_lanes_add_what_the_profile_says_whatever_the_kind_of_question(
    store: Store, question: str
) -> None:
    """Evidence adds three steps of a twentieth."""
    mine = Profile("mine", 1, {"text": 1.0, "facts": 3.0})
    share = found(store, question, profile="words")[0][1]
    assert share > 0.15
    assert found(store, question, profile=mine) == [
        (1, round(share + 3 * 0.05, 9), ("text", "facts")),
        (3, share, ("text",)),
        (2, 0.15, ("facts",)),
    ]


def test_facts_alone_are_ranked_by_their_evidence(store: Store) -> None:
    """Frames of equal evidence are in order of age."""
    only = Profile("only", 1, {"facts": 1.0})
    assert found(store, "alice", profile=only) == [(1, 0.05, ("facts",)), (2, 0.05, ("facts",))]
    assert found(store, "nobody", profile=only) == []


def test_a_lane_adds_its_weight_times_its_share(store: Store) -> None:
    sums = Profile("sums", 1, {"text": 0.5, "facts": 1.0})
    share = found(store, "alice", profile="words")[0][1]
    assert found(store, "alice", profile=sums) == [
        (1, round(0.5 * share + 0.05, 9), ("text", "facts")),
        (3, round(0.5 * share, 9), ("text",)),
        (2, 0.05, ("facts",)),
    ]


def test_a_filter_holds_in_every_lane(store: Store) -> None:
    assert [one for one, *_ in found(store, "alice", where=Filter(kind="move"))] == [1]


def test_a_context_says_which_lanes_ran_by_which_profile(store: Store) -> None:
    """Vectors are in the profile; as nothing is embedded here, what ran says that they did not."""
    context = store.recall("where is alice?", profile="default")
    assert (context.lanes, context.profile) == (("text", "facts"), "default 1")
    assert store.recall('"alice"').lanes == ("text", "facts")
    assert store.recall(cerata.query("alice")).lanes == ("text",)
    words = store.recall("alice", profile="words")
    assert (words.lanes, words.profile) == (("text",), "words 1")
    assert [item.id for item in words.items] == [1, 3]
    assert words.to_dict()["lanes"] == ["text"]


def test_a_profile_of_which_nothing_can_run_is_told(store: Store) -> None:
    """An empty answer would pass for one that has nothing to say."""
    only = Profile("only", 2, {"facts": 1.0})
    with pytest.raises(Unsupported, match=r"lanes facts .*profile only 2.*lane that can run: text"):
        store.search(cerata.query("alice"), profile=only)
    with pytest.raises(Unsupported, match="vectors"):
        store.recall("alice", profile=Profile("far", 1, {"vectors": 1.0}))


def test_an_unknown_profile_is_told(store: Store) -> None:
    with pytest.raises(InvalidInput, match="Did you mean 'default'"):
        store.search("alice", profile="defaults")
