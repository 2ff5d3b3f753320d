"""Explanations: what they say of a score is the score, and what was left out was."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cerata
from cerata import Entity, Filter, Hit, InvalidInput, Profile, Store, View
from cerata.memory.values.explanation import Explanation

WORDS = ("alice", "paris", "index", "river", "indexes", "the")
EACH = Profile("each", 1, {"text": 0.3, "facts": 0.7})
PROFILES = ("default", "words", "continuity", EACH)
QUERIES = (
    "why alice or the index by the river",
    '"alice index" river',
    "paris",
    cerata.query("ind* OR (river NOT kind:note)"),
)


@pytest.fixture
def store() -> Store:
    """Of two frames with her name one is superseded; a third is read in a fact."""
    store = cerata.open(":memory:")
    store.put_frame("Alice moved in spring.", title="Alice", tags=["home"])
    store.put_frame("They took the flat by the river.")
    store.put_frame("Alice bought a table.")
    store.supersede(3, "Alice bought two tables.")
    store.delete(store.put_frame("Alice is gone."))
    store.assert_fact("alice", "lives in", Entity("paris"), evidence=[1, 2])
    return store


def explained(store: Store | View, query: str, **asked: object) -> dict[int, Explanation]:
    hits = store.search(query, page=cerata.Page(group_by="frame"), **asked)  # type: ignore[arg-type]
    return {hit.id: store.history.explain(hit) for hit in hits}


def test_a_quoted_phrase_has_a_line_without_an_idf(store: Store) -> None:
    """The bonus was divided by an idf that a phrase has not."""
    said = explained(store, '"took the flat" river')[2]
    phrase, *words = said.words
    assert (phrase.word, phrase.idf, phrase.count) == ('"took the flat"', 0, 1)
    assert 0 < max(word.added for word in words) < phrase.added
    assert '"took the flat"  ' + f"{phrase.added:.3f} = the phrase (count 1)" in str(said)
    [text] = [lane for lane in said.lanes if lane.lane == "text"]
    assert text.score == pytest.approx(sum(word.added for word in said.words))


@st.composite
def stores(draw: st.DrawFn) -> Store:
    """A store of few words, some frames closed, some read in facts, some in another scope."""
    store = cerata.open(":memory:")
    texts = draw(
        st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=5), min_size=1, max_size=8)
    )
    for number, words in enumerate(texts):
        kind = draw(st.sampled_from(["note", "text"]))
        scope = {"tenant": "default", "user_id": draw(st.sampled_from(["u1", "u2"]))}
        role = draw(st.sampled_from([None, "mina"]))
        one = store.put_frame(
            " ".join(words),
            kind=kind,
            title=words[0],
            role=role,
            options=cerata.PutOptions(scope=scope),
        )
        match draw(st.integers(0, 5)):
            case 0:
                store.delete(one)
            case 1:
                store.supersede(one, "the newer index")
            case 2 | 3:
                store.assert_fact("alice", f"likes {number}", Entity(words[-1]), evidence=[one])
            case _:
                pass
    return store


def added(explanation: Explanation) -> float:
    """Return the sum of all parts of a score, in their order."""
    parts = [share.added for share in explanation.lanes]
    parts += [share.added for share in explanation.signals]
    return round(sum(parts), 9)


def test_a_turn_and_a_passage_have_the_same_weights() -> None:
    """Equal in words and meaning, they came apart when each kind of frame had its own weights."""
    with cerata.open(":memory:") as store:
        turn = store.put_frame(
            "The index.",
            role="mina",
            vectors=cerata.Vectors(dense=[1, 0.2], space="toy"),
            options=cerata.PutOptions(track="chat"),
        ).id
        passage = store.put_frame(
            "The index.", kind="chunk", vectors=cerata.Vectors(dense=[1, 0.2], space="toy")
        ).id
        of = explained(store, "index", vectors=cerata.Vectors(dense=[1, 0]))
        for explanation in of.values():
            weights = {share.lane: share.weight for share in explanation.lanes}
            assert weights == {"text": 1.0, "facts": 0.2, "vectors": 1.0}
            assert explanation.score == added(explanation)
        assert of[turn].lanes[2].share == of[passage].lanes[2].share


@settings(max_examples=60)
@given(
    store=stores(),
    query=st.sampled_from(QUERIES),
    profile=st.sampled_from(PROFILES),
    kind=st.sampled_from([None, "note"]),
    closed=st.tuples(st.booleans(), st.booleans()),
    user=st.sampled_from([None, "u1"]),
)
def test_what_an_explanation_says_adds_up(
    store: Store,
    query: str,
    profile: str | Profile,
    kind: str | None,
    closed: tuple[bool, bool],
    user: str | None,
) -> None:
    """Lanes to the score, words to that of the text, what was left out and what came to all."""
    view = store.history.view()
    if user is not None:
        view = view.within((("user_id", user),))
    hits = view.search(
        query,
        k=100,
        profile=profile,
        page=cerata.Page(group_by="frame"),
        where=Filter(kind=kind, include_superseded=closed[0], include_deleted=closed[1]),
    )
    for hit in hits:
        said = view.history.explain(hit)
        assert (said.id, said.score) == (hit.id, hit.score)
        assert added(said) == hit.score
        assert tuple(lane.lane for lane in said.lanes if lane.rank is not None) == hit.lanes
        for lane in said.lanes:
            left = lane.left_out
            assert lane.added == lane.weight * lane.share
            assert lane.found == left.candidates - left.deleted - left.superseded - left.where
            assert not (left.superseded and closed[0])
            assert not (left.deleted and closed[1])
            if lane.lane == "text" and lane.score is not None:
                assert sum(word.added for word in said.words) == pytest.approx(lane.score, abs=1e-9)


def test_each_lane_says_its_rank_and_what_it_added(store: Store) -> None:
    """The words are "alice", of two frames of three, and "live", of none."""
    said = explained(store, "where does Alice live?", profile="default")
    most = 2 * (math.log(1 + 1.5 / 2.5) + math.log(1 + 3.5 / 0.5))
    text, facts = said[1].lanes
    assert (text.lane, text.rank, text.found, text.weight) == ("text", 1, 2, 1.0)
    assert text.score is not None
    assert text.added == text.share == pytest.approx(text.score / most, abs=1e-7)
    assert (facts.lane, facts.rank, facts.found) == ("facts", 1, 2)
    assert (facts.weight, facts.share, facts.added) == (0.1, 1.0, 0.1)
    assert said[1].facts == (store.facts("alice")[0].id,)
    text, facts = said[2].lanes
    assert (text.rank, text.score, text.added, said[2].words) == (None, None, 0.0, ())
    assert (facts.rank, facts.added) == (2, 0.1)
    assert said[4].facts == ()


def test_words_are_as_they_were_asked_for_with_what_they_are_worth(store: Store) -> None:
    """Two documents have Alice's name, so its idf is that of two of three."""
    [table, alice] = explained(store, "Alice's TABLES?", profile="words")[4].words
    assert (alice.word, alice.count, table.word, table.count) == ("alice", 1, "tables", 1)
    assert round(alice.idf, 6) == 0.470004
    assert round(table.idf, 6) == 0.980829
    query = cerata.query('(title:alice OR tab* OR b?ught OR "moved spring")')
    names = {word.word: word.count for word in explained(store, query)[1].words}  # type: ignore[arg-type]
    assert names == {"title:alice": 2, "moved": 1, "spring": 1, "tab*": 0, "b?ught": 0}


def test_what_was_left_out_is_counted_by_its_reason(store: Store) -> None:
    [said] = explained(store, "alice", where=Filter(tags=["home"])).values()
    assert said.lanes[0].left_out.to_dict() == {
        "candidates": 4,
        "deleted": 1,
        "superseded": 1,
        "where": 1,
        "expired": 0,
    }
    assert said.lanes[1].left_out.where == 1
    [said, *_] = explained(store, "alice", where=Filter(include_deleted=True)).values()
    assert (said.lanes[0].left_out.deleted, said.lanes[0].left_out.superseded) == (0, 1)


def test_no_count_tells_of_another_scope() -> None:
    """Else who is let into one scope could ask, word by word, what stands in the others."""
    store = cerata.open(":memory:")
    store.put_frame("a secret", options=cerata.PutOptions(scope={"tenant": "a"}))
    store.put_frame("a secret of b", options=cerata.PutOptions(scope={"tenant": "b"}))
    mine = store.history.view().within((("tenant", "b"),))
    [said] = explained(mine, "secret").values()
    assert said.lanes[0].left_out.candidates == 1
    assert said.words[0].idf == mine.history.explain(mine.search("secret")[0]).words[0].idf


def test_an_explanation_is_of_the_view_that_found_it(store: Store) -> None:
    [first, *_] = store.search("alice")
    before, basis = store.history.explain(first), store.head.seq
    assert first.search is not None
    store.put_frame("Alice, alice, alice")
    assert store.history.explain(first) == before
    assert store.history.explain(store.at(basis).search("alice")[0]) == before


def test_frames_of_an_open_transaction_are_explained(store: Store) -> None:
    with store.transaction():
        store.put_frame("Alice returned")
        said = explained(store, "returned")
        assert [word.word for word in said[-1].words] == ["returned"]
        assert added(said[-1]) == said[-1].score


def test_only_hits_of_the_same_scope_are_explained() -> None:
    """A store explained a hit of another user: words, counts and scores of private frames."""
    with cerata.open(":memory:") as store:
        ann, bob = (store.scoped({"user": user}) for user in ("ann", "bob"))
        ann.put_frame("a secret")
        [hit] = ann.search("secret")
        assert ann.history.view().history.explain(hit).id == hit.id
        for asked in (bob, store, bob.history.view()):
            with pytest.raises(InvalidInput, match="another scope"):
                asked.history.explain(hit)


def test_only_hits_of_the_same_log_are_explained(store: Store) -> None:
    other = cerata.open(":memory:")
    other.put_frame("alice")
    with pytest.raises(InvalidInput, match="another log"):
        store.history.explain(other.search("alice")[0])
    with pytest.raises(InvalidInput, match="hit must be a Hit, not Frame"):
        store.history.explain(store.frame(1))  # type: ignore[call-overload]


def test_printing_an_explanation_says_it_in_a_few_lines(store: Store) -> None:
    hits: list[Hit] = store.search("where does Alice live? in spring?", profile="default")
    assert str(store.history.explain(hits[0])).splitlines() == [
        "#1 scores 0.310 = text 0.210 + facts 0.100",
        "  profile default 1, 1 for a frame full of the question's words",
        "  text   0.210 = weight 1 x 0.210, rank 1 of 2, score 1.481",
        "         spring  0.814 = idf 0.981 x 0.830 (count 1)",
        "         alice   0.667 = idf 0.470 x 1.419 (count 3)",
        "         not in it: live",
        "         left out of 4 candidates: 1 deleted, 1 superseded",
        "  facts  0.100 = weight 0.1 x 1.000, rank 1 of 2, score 1.365",
        "         read in it: fact #8",
    ]
    [only, *_] = store.search("tables", profile="words")
    assert str(store.history.explain(only)).splitlines() == [
        "#4 scores 0.531 = text 0.531",
        "  profile words 1, 1 for a frame full of the question's words",
        "  text  0.531 = weight 1 x 0.531, rank 1 of 1, score 1.042",
        "        tables  1.042 = idf 0.981 x 1.062 (count 1)",
        "        left out of 2 candidates: 1 superseded",
    ]
