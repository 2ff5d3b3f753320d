"""Relevance: cosines of hits, least scores, and the floor under which a question gets nothing."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import cerata
from cerata import Floor, InvalidInput, Store
from cerata.engine.events import RecallContext
from cerata.retrieval.context import framing
from cerata.retrieval.ranking import relevance
from cerata.retrieval.ranking.profiles import PROFILES

SPACE = "toy@1/2/cosine"
CLOSE = [1.0, 0.1]
FAR = [0.1, -1.0]


@pytest.fixture
def store() -> Iterator[Store]:
    with cerata.open(":memory:") as opened:
        opened.put_frame("green tea", embedding=[1, 0], space=SPACE)
        opened.put_frame("a warm cup", embedding=[0.8, 0.6], space=SPACE)
        opened.put_frame("trains to the north", embedding=[-1, 0], space=SPACE)
        opened.put_frame("a harbour bridge")
        yield opened


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relevance, "MEASURED", {"toy": Floor(0.5, 0.6)})


# --- hits ----------------------------------------------------------------------------------------


def test_a_hit_has_the_cosine_of_its_vector_in_every_mode(store: Store) -> None:
    """Ranks hide how close a hit is: the first of five bad hits had the score of a good one."""
    hits = store.search("tea bridge", embedding=CLOSE)
    cosines = {hit.id: hit.cosine for hit in hits}
    assert cosines == {
        1: pytest.approx(0.995037), 2: pytest.approx(0.855732), 3: pytest.approx(-0.995037), 4: None
    }  # fmt: skip
    assert hits[0].to_dict()["cosine"] == hits[0].cosine
    assert [hit.cosine for hit in store.search("tea")] == [None]
    by_vector = store.search("tea", embedding=CLOSE, mode="vector")
    assert [hit.cosine for hit in by_vector] == [hit.score for hit in by_vector]


def test_the_cosine_of_a_space_of_inner_products_is_a_cosine() -> None:
    with cerata.open(":memory:") as store:
        store.put_frame("tea", embedding=[3, 4], space="toy@1/2/dot")
        [hit] = store.search("x", embedding=[6, 8], mode="vector")
        assert (hit.score, hit.cosine) == (50, 1)
        with store.transaction():
            store.put_frame("cup", embedding=[-3, -4], space="toy@1/2/dot")
            assert {hit.cosine for hit in store.search("x", embedding=[6, 8])} == {1, -1}


def test_the_least_score_and_the_least_cosine_bound_the_hits(store: Store) -> None:
    ask: dict[str, Any] = {"embedding": CLOSE}
    assert [hit.id for hit in store.search("tea bridge", **ask, min_cosine=0.8)] == [1, 2]
    assert [hit.id for hit in store.search("tea bridge", **ask, min_cosine=0.8, k=1)] == [1]
    scores = [hit.score for hit in store.search("tea bridge", **ask)]
    bounded = store.search("tea bridge", **ask, min_score=scores[1])
    assert [hit.score for hit in bounded] == [score for score in scores if score >= scores[1]]
    assert 0 < len(bounded) < len(scores)
    assert store.search("tea bridge", min_cosine=-1) == []
    assert store.search("tea", min_score=99) == []


def test_a_least_cosine_without_vectors_is_refused_or_noticed(store: Store) -> None:
    """The empty result looked like a memory without anything close."""
    with pytest.raises(InvalidInput, match="mode 'text' compares no vectors"):
        store.search("tea", min_cosine=0.1, mode="text")
    cases: list[tuple[dict[str, Any], str]] = [
        ({}, "no vectors were compared"),
        ({"profile": "words"}, "profile words 2 has no lane of vectors"),
        ({"profile": "words", "embedding": CLOSE}, "profile words 2 has no lane of vectors"),
    ]
    for ask, reason in cases:
        hits = store.search("tea bridge", min_cosine=-1, **ask)
        assert hits == []
        assert [notice for notice in hits.notices if reason in notice] == [*hits.notices] != []
    assert store.search("tea", min_cosine=0.1, embedding=CLOSE).notices == ()
    assert store.search("tea").notices == ()


@pytest.mark.parametrize("name", ["min_score", "min_cosine"])
@pytest.mark.parametrize("least", ["0.3", True, float("nan"), float("inf"), 10**400])
def test_a_bound_that_is_no_number_is_refused(store: Store, name: str, least: Any) -> None:
    with pytest.raises(InvalidInput, match=f"{name} must be a number"):
        store.search("tea", **{name: least})


# --- the floor -----------------------------------------------------------------------------------


@pytest.mark.usefixtures("measured")
def test_a_question_below_the_floor_gets_nothing(store: Store) -> None:
    """Five personal notes were the answer to a question about physics."""
    unrelated = store.recall("quantum physics", embedding=FAR)
    assert (unrelated.relevant, unrelated.items, unrelated.omissions) == (False, (), ())
    assert str(unrelated) == "nothing relevant, basis 4"
    assert unrelated.to_messages() == []
    assert store.recall("quantum physics", embedding=FAR, framing=True).text == framing.EMPTY
    assert len(store.recall("quantum physics", embedding=FAR, floor=False).items) == 3
    assert store.recall("what to drink", embedding=CLOSE).relevant


@pytest.mark.usefixtures("measured")
def test_words_pass_the_floor_too(store: Store) -> None:
    """Most of the question's words, or any word of a hit without a vector."""
    assert store.recall("green tea", embedding=FAR).relevant
    assert not store.recall("green quantum field theory", embedding=FAR).relevant
    assert store.recall("bridge of quantum field theory", embedding=FAR).relevant
    assert store.recall('"green tea"', embedding=FAR).relevant
    assert store.recall(cerata.query("tea OR quantum"), embedding=FAR).relevant


def test_without_a_measured_model_only_finding_nothing_counts(store: Store) -> None:
    """A cosine of one model means nothing for another."""
    assert store.recall("quantum", embedding=FAR).relevant
    assert not store.recall("quantum", embedding=FAR, floor=Floor(0.5)).relevant
    assert store.recall("tea").relevant
    assert not store.recall("quantum").relevant


def test_a_question_without_a_word_shows_the_newest(store: Store) -> None:
    """Nothing can be compared, so nothing is irrelevant."""
    for question in ("", "what is it?"):
        context = store.recall(question)
        assert (context.relevant, context.fallback, context.items[0].id) == (True, True, 4)


def test_a_recorded_recall_has_its_floor(store: Store) -> None:
    """Else the text could not be reproduced."""
    for floor, fields in (
        (True, (True, None, None)),
        (False, (False, None, None)),
        (Floor(0.5, 0.7), (True, 0.5, 0.7)),
    ):
        context = store.recall("quantum", embedding=FAR, floor=floor, record=True)
        recall = next(store.log(context.recorded or 0)).body
        assert isinstance(recall, RecallContext)
        assert (recall.floor, recall.floor_cosine, recall.floor_words) == fields
    assert store.verify().ok


@pytest.mark.parametrize("make", [lambda: Floor(2), lambda: Floor(0.3, -1), lambda: Floor(-2)])
def test_a_floor_out_of_range_is_refused(make: Any) -> None:
    with pytest.raises(InvalidInput, match="A floor's"):
        make()


def test_a_floor_of_another_type_is_refused(store: Store) -> None:
    with pytest.raises(InvalidInput, match="floor must be a Floor"):
        store.recall("tea", floor=0.3)  # type: ignore[arg-type]


# --- notices -------------------------------------------------------------------------------------


def test_a_search_without_the_remembered_embedder_says_so() -> None:
    """A file of a custom embedder was searched by words, with no sign of it."""
    counts = cerata.CallableEmbedder(
        lambda texts: [[len(text), 1] for text in texts], name="sizes", revision="1", dimension=2
    )
    with cerata.open(":memory:", embedder=counts) as store:
        store.put_frame("green tea")
        assert store.search("tea").notices == store.recall("tea").notices == ()
        session = store._session
        session.embedders.passed = None
        for notices in (store.search("tea").notices, store.recall("tea").notices):
            [notice] = notices
            assert notice.startswith(
                "searched by words only: the vectors are of 'sizes@1/2/cosine'"
            )
            assert "open(embedder=…)" in notice
        assert store.search("tea", mode="text").notices == ()
        assert store.search("tea", profile="words").notices == ()
        assert store.search("tea", embedding=[1, 1]).notices == ()


# --- the measured floor --------------------------------------------------------------------------


@pytest.mark.usefixtures("measured")
def test_turns_of_a_named_speaker_pass() -> None:
    """A name is not in the question's vector, so a question for a person was refused."""
    with cerata.open(":memory:") as store:
        for role, text in (("Mina Berg", "the mill by the sea"), ("user", "a harbour bridge")):
            store.put_frame(text, role=role, track="chat", embedding=[1, 0], space=SPACE)
        for question, is_relevant in (
            ("What does Mina earn on an average day?", True),
            ("What does anyone earn on an average day?", False),
            ("What does a user earn on an average day?", False),
        ):
            context = store.recall(question, embedding=FAR)
            assert context.relevant == is_relevant, question
        named = "What does Mina earn on an average day?"
        off = replace(PROFILES["chat"], name="off", signals={})
        assert not store.recall(named, embedding=FAR, profile=off).relevant
        assert not store.recall(named, embedding=FAR, mode="vector").relevant
        recorded = store.recall(named, embedding=FAR, record=True)
        assert recorded.text == store.at(recorded).recall(named, embedding=FAR).text


@pytest.mark.minilm
def test_unrelated_questions_get_nothing_and_answerable_ones_their_note() -> None:
    """At most 2 of 50, and at most 1 of 50; without the floor every question gets an answer."""
    from benchmarks import relevance_bench as bench
    from benchmarks.relevance_notes import SETS, notes

    first = SETS[0]
    questions = [question for _, question in first.answerable]
    with bench.store_of(notes(first)) as store:
        answered, suppressed = bench.outcome(store, first.unrelated, questions)
        assert answered <= 2
        assert suppressed <= 1
        without = bench.outcome(store, first.unrelated, [], floor=False)
        assert without.answered == len(first.unrelated)


@pytest.mark.minilm
def test_the_program_of_the_readme_finds_by_meaning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The blocks of the two pages, as they stand; a second run prints the same."""
    monkeypatch.chdir(tmp_path)
    for page in ("README.md", "docs/quickstart.md"):
        text = (Path(__file__).parents[3] / page).read_text(encoding="utf-8")
        program = text.partition("finds_by_meaning\n")[2].partition("```")[0]
        exec(program, {})  # noqa: S102 - the page's own program
        said = capsys.readouterr().out
        assert said.splitlines()[1] == "I am allergic to peanuts."
        assert ("nothing relevant" in said) is ("volcanoes" in program)
