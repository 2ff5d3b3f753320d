"""Lanes of a search: which run by a profile and the kind of a question, and what they add."""

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
    assert [score for _, score, _ in found(store, "alice", profile="words")] == list(ranked.scores)


def test_lanes_weigh_what_the_profile_says_for_the_kind_of_question(store: Store) -> None:
    every = {"factual": 1.0, "semantic": 3.0, "temporal": 1.0, "exploratory": 1.0}
    mine = Profile("mine", 1, {"text": 1.0, "facts": every})
    first = (1, round(1 / 61 + 3 / 61, 9), ("text", "facts"))
    assert found(store, "why alice", profile=mine) == [
        first,
        (2, round(3 / 62, 9), ("facts",)),
        (3, round(1 / 62, 9), ("text",)),
    ]
    assert found(store, "who is alice", profile=mine)[0][1] == round(2 / 61, 9)


def test_facts_alone_are_ranked_by_their_own_scores(store: Store) -> None:
    only = Profile("only", 1, {"facts": 1.0})
    hits = found(store, "alice", profile=only)
    assert [(one, lanes) for one, _, lanes in hits] == [(1, ("facts",)), (2, ("facts",))]
    [fact] = store.search_facts("alice")
    assert {score for _, score, _ in hits} == {round(1 + fact.score / (1 + fact.score), 9)}
    assert found(store, "nobody", profile=only) == []


def test_scores_are_summed_where_the_profile_says_so(store: Store) -> None:
    sums = Profile("sums", 1, {"text": 1.0, "facts": 1.0}, method="minmax")
    text = {one: score for one, score, _ in found(store, "alice", profile="words")}
    assert text[1] == text[3]
    assert found(store, "alice", profile=sums) == [
        (1, 2.0, ("text", "facts")),
        (2, 1.0, ("facts",)),
        (3, 1.0, ("text",)),
    ]


def test_a_filter_holds_in_every_lane(store: Store) -> None:
    assert [one for one, *_ in found(store, "alice", where=Filter(kind="move"))] == [1]


def test_a_context_says_which_lanes_ran_by_which_profile(store: Store) -> None:
    """Vectors are in the profile; as nothing is embedded here, what ran says that they did not."""
    context = store.recall("where is alice?", profile="balanced")
    assert (context.lanes, context.profile) == (("text", "facts"), "balanced 5")
    assert store.recall('"alice"').lanes == ("text", "facts")
    assert store.recall(cerata.query("alice")).lanes == ("text",)
    words = store.recall("alice", profile="words")
    assert (words.lanes, words.profile) == (("text",), "words 2")
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
    with pytest.raises(InvalidInput, match="Did you mean 'balanced'"):
        store.search("alice", profile="balance")
