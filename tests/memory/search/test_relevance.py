"""Relevance: cosines of hits, least scores, and how well a context answers its question."""

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import cerata
from cerata import Floor, InvalidInput, Store
from cerata.engine.events import RecallContext
from cerata.memory.batch.writer import session_of
from cerata.retrieval.context import framing
from cerata.retrieval.ranking import relevance
from cerata.retrieval.ranking.relevance import BY_WORDS, MeaningMarks

SPACE = "toy@1/2/cosine"
CLOSE = [1.0, 0.1]
FAR = [0.1, -1.0]


@pytest.fixture
def store() -> Iterator[Store]:
    with cerata.open(":memory:") as opened:
        opened.put_frame("green tea", vectors=cerata.Vectors(dense=[1, 0], space=SPACE))
        opened.put_frame("a warm cup", vectors=cerata.Vectors(dense=[0.8, 0.6], space=SPACE))
        opened.put_frame("trains to the north", vectors=cerata.Vectors(dense=[-1, 0], space=SPACE))
        opened.put_frame("a harbour bridge")
        yield opened


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relevance, "BY_MEANING", {"toy": MeaningMarks(Floor(0.4, 0.2), 0.3)})


# --- hits ----------------------------------------------------------------------------------------


def test_a_hit_has_the_cosine_of_its_vector_in_every_mode(store: Store) -> None:
    """Ranks hide how close a hit is: the first of five bad hits had the score of a good one."""
    hits = store.search("tea bridge", vectors=cerata.Vectors(dense=CLOSE))
    cosines = {hit.id: hit.cosine for hit in hits}
    assert cosines == {
        1: pytest.approx(0.995037), 2: pytest.approx(0.855732), 3: pytest.approx(-0.995037), 4: None
    }  # fmt: skip
    assert hits[0].to_dict()["cosine"] == hits[0].cosine
    assert [hit.cosine for hit in store.search("tea")] == [None]
    by_vector = store.search("tea", mode="vector", vectors=cerata.Vectors(dense=CLOSE))
    assert [hit.cosine for hit in by_vector] == [hit.score for hit in by_vector]


def test_the_cosine_of_a_space_of_inner_products_is_a_cosine() -> None:
    with cerata.open(":memory:") as store:
        store.put_frame("tea", vectors=cerata.Vectors(dense=[3, 4], space="toy@1/2/dot"))
        [hit] = store.search("x", mode="vector", vectors=cerata.Vectors(dense=[6, 8]))
        assert (hit.score, hit.cosine) == (50, 1)
        with store.transaction():
            store.put_frame("cup", vectors=cerata.Vectors(dense=[-3, -4], space="toy@1/2/dot"))
            assert {
                hit.cosine for hit in store.search("x", vectors=cerata.Vectors(dense=[6, 8]))
            } == {1, -1}


def test_the_least_score_and_the_least_cosine_bound_the_hits(store: Store) -> None:
    close = cerata.Vectors(dense=CLOSE)
    least = cerata.Vectors(dense=CLOSE, min_cosine=0.8)
    assert [hit.id for hit in store.search("tea bridge", vectors=least)] == [1, 2]
    assert [hit.id for hit in store.search("tea bridge", k=1, vectors=least)] == [1]
    scores = [hit.score for hit in store.search("tea bridge", vectors=close)]
    bounded = store.search("tea bridge", floor=scores[1], vectors=close)
    assert [hit.score for hit in bounded] == [score for score in scores if score >= scores[1]]
    assert 0 < len(bounded) < len(scores)
    assert store.search("tea bridge", vectors=cerata.Vectors(min_cosine=-1)) == []
    assert store.search("tea", floor=99) == []


def test_a_least_cosine_without_vectors_is_refused_or_noticed(store: Store) -> None:
    """The empty result looked like a memory without anything close."""
    with pytest.raises(InvalidInput, match="mode 'text' compares no vectors"):
        store.search("tea", mode="text", vectors=cerata.Vectors(min_cosine=0.1))
    any_cosine = cerata.Vectors(min_cosine=-1)
    no_lane = "profile words 1 has no lane of vectors"
    cases: list[tuple[str | None, cerata.Vectors, str]] = [
        (None, any_cosine, "no vectors were compared"),
        ("words", any_cosine, no_lane),
        ("words", dataclasses.replace(any_cosine, dense=CLOSE), no_lane),
    ]
    for profile, vectors, reason in cases:
        hits = store.search("tea bridge", vectors=vectors, profile=profile)
        assert hits == []
        assert [notice for notice in hits.notices if reason in notice] == [*hits.notices] != []
    assert store.search("tea", vectors=cerata.Vectors(min_cosine=0.1, dense=CLOSE)).notices == ()
    assert store.search("tea").notices == ()


@pytest.mark.parametrize("least", ["0.3", True, float("nan"), float("inf"), 10**400])
def test_a_bound_that_is_no_number_is_refused(store: Store, least: Any) -> None:
    with pytest.raises(InvalidInput, match="floor must be a number"):
        store.search("tea", floor=least)
    with pytest.raises(InvalidInput, match="min_cosine must be a number"):
        store.search("tea", vectors=cerata.Vectors(min_cosine=least))


# --- the floor -----------------------------------------------------------------------------------


@pytest.mark.usefixtures("measured")
def test_a_question_below_the_least_mark_gets_nothing(store: Store) -> None:
    """Five personal notes were the answer to a question about physics."""
    unrelated = store.recall("quantum physics", vectors=cerata.Vectors(dense=FAR))
    assert (unrelated.confidence, unrelated.items, unrelated.omissions) == ("none", (), ())
    assert str(unrelated) == "nothing relevant, basis 4"
    assert unrelated.to_messages() == []
    assert (
        store.recall(
            "quantum physics", vectors=cerata.Vectors(dense=FAR), layout=cerata.Layout(framing=True)
        ).text
        == framing.EMPTY
    )
    assert (
        len(store.recall("quantum physics", floor=False, vectors=cerata.Vectors(dense=FAR)).items)
        == 3
    )
    assert store.recall("what to drink", vectors=cerata.Vectors(dense=CLOSE)).confidence == "clear"


def context_at(store: Store, score: float, **ask: Any) -> cerata.Context:
    """Return a context whose best entry has a cosine, and so a score, and no word."""
    vector = [score, (1 - score * score) ** 0.5]
    return store.recall("quantum physics", vectors=cerata.Vectors(dense=vector), **ask)


@pytest.mark.usefixtures("measured")
@pytest.mark.parametrize("is_framed", [False, True])
def test_between_the_marks_the_closest_entries_take_half_of_the_budget(*, is_framed: bool) -> None:
    """A floor refused 13 of 42 answers that the ranking had found."""
    with cerata.open(":memory:") as store:
        for number in range(30):
            store.put_frame(
                f"green tea of harvest {number}", vectors=cerata.Vectors(dense=[1, 0], space=SPACE)
            )
        contexts = {
            score: context_at(store, score, max_tokens=400, layout=cerata.Layout(framing=is_framed))
            for score in (0.19, 0.21, 0.39, 0.41)
        }
        assert [each.confidence for each in contexts.values()] == [
            *("none", "unclear", "unclear", "clear")
        ]
        for score, context in contexts.items():
            assert context.score == pytest.approx(score)
            assert context.floor == Floor(0.4, 0.2)
            assert context.framed is is_framed
            is_unclear = context.confidence == "unclear"
            assert context.text.startswith(framing.UNCLEAR) is is_unclear
            assert ("no entry clearly answers" in context.summary) is is_unclear
            assert (0 < context.tokens <= 200) is (is_unclear or (is_framed and not context.items))
        assert contexts[0.41].tokens > 200
        assert len(contexts[0.39].items) > 0


@pytest.mark.usefixtures("measured")
def test_entries_far_below_the_best_are_left_out(store: Store) -> None:
    beside = [0.8, -0.6]
    assert [
        item.id for item in store.recall("green tea", vectors=cerata.Vectors(dense=beside)).items
    ] == [1]
    assert (
        len(store.recall("green tea", floor=False, vectors=cerata.Vectors(dense=beside)).items) == 3
    )


@pytest.mark.usefixtures("measured")
def test_words_reach_the_marks_too(store: Store) -> None:
    assert store.recall("green tea", vectors=cerata.Vectors(dense=FAR)).confidence == "clear"
    assert (
        store.recall("green quantum field theory", vectors=cerata.Vectors(dense=FAR)).confidence
        == "none"
    )
    assert store.recall('"green tea"', vectors=cerata.Vectors(dense=FAR)).confidence == "clear"
    assert (
        store.recall(cerata.query("tea OR quantum"), vectors=cerata.Vectors(dense=FAR)).confidence
        == "clear"
    )


def test_the_marks_by_words_count_without_vectors(store: Store) -> None:
    assert store.recall("tea").confidence == "clear"
    absent = [f"word{number}" for number in range(8)]
    assert store.recall(" ".join(("tea", *absent[:2]))).confidence == "unclear"
    assert store.recall(" ".join(("tea", *absent))).confidence == "none"
    assert store.recall("quantum").confidence == "none"


@pytest.mark.parametrize("subject", ["bridges", "橋梁"])
def test_most_words_of_a_question_are_at_least_unclear(subject: str) -> None:
    """Words that each note of a small memory has count little, and were answered by nothing."""
    question = f"how long do {subject} last?"
    with cerata.open(":memory:") as store:
        for step in ("search", "read", "summarize", "report"):
            store.put_frame(f"Result of {step}: {subject} last 80 years.")
        context = store.recall(question)
        assert context.score < BY_WORDS.least
        assert (context.confidence, len(context.items)) == ("unclear", 4)
        for half in (f"how long is the {subject} season?", "how do tunnels last?"):
            assert store.recall(half).confidence == "none", half
        assert store.recall(question, floor=Floor(0.5, 0.3)).confidence == "none"


NAMED = [
    "Release 1.4.2 fixed the login bug.",
    "Release 2.4.1 broke the exports.",
    "Release 4.2.1 was withdrawn.",
    "Node 10.0.3.47 ran out of memory.",
    "Node 10.0.47.3 is the new bastion.",
    "Version 3.11 is required.",
    "Version 11.3 is obsolete.",
    "Error E_QUOTA_4291 means that the exports are used up.",
    "PAY-7731 was declined.",
    "Write to marta@paylane.example, not to the desk.",
    "/etc/atlas/limits.yaml has the limits.",
]


@pytest.mark.parametrize("name", ["1.4.2", "2.4.1", "4.2.1", "10.0.47.3", "3.11", "11.3"])
def test_the_numbers_of_a_name_count_in_their_order(name: str) -> None:
    """Versions with the same numbers had equal scores, so the oldest came first."""
    with cerata.open(":memory:") as store:
        for text in NAMED:
            store.put_frame(text)
        for question in (name, f"what do we know of {name}?"):
            assert f" {name} " in store.search(question)[0].text
            assert store.recall(question).confidence == "clear"


@pytest.mark.parametrize(
    ("there", "absent"),
    [
        ("4.2.1", "1.2.4"),
        ("10.0.3.47", "10.3.0.47"),
        ("E_QUOTA_4291", "E_QUOTA_9999"),
        ("PAY-7731", "PAY-9999"),
        ("marta@paylane.example", "jonas@paylane.example"),
        ("/etc/atlas/limits.yaml", "/etc/nginx/limits.yaml"),
    ],
)
def test_a_code_that_no_note_has_is_unclear(there: str, absent: str) -> None:
    """The note of another code looked like an answer."""
    with cerata.open(":memory:") as store:
        for text in NAMED:
            store.put_frame(text)
        assert store.recall(f"what about {there}?").confidence == "clear"
        assert store.recall(absent).confidence != "clear"
        assert store.recall(absent, floor=Floor(0.01, 0.01)).confidence == "clear"


@pytest.mark.usefixtures("measured")
def test_a_near_turn_counts_by_its_own_cosine() -> None:
    """The turns beside a turn lower its share, so its score alone refused it."""
    with cerata.open(":memory:") as store:
        for number in range(5):
            vector = [1, 0, 0] if number == 2 else [0, 0, 1]
            store.put_frame(
                f"turn {number}",
                role="Ann",
                vectors=cerata.Vectors(dense=vector, space="toy@1/3/cosine"),
                options=cerata.PutOptions(track="talk"),
            )
        ask: dict[str, Any] = {"vectors": cerata.Vectors(dense=[0.35, 0.9367, 0])}
        [nearest, *_] = store.search("quantum physics", **ask)
        assert nearest.id == 3
        assert nearest.cosine == pytest.approx(0.35, abs=1e-4)
        assert nearest.score < 0.2
        context = store.recall("quantum physics", **ask)
        assert (context.confidence, [item.id for item in context.items]) == ("unclear", [3])
        assert store.recall("quantum physics", **ask, floor=Floor(0.4, 0.2)).items == ()


def test_vectors_of_another_model_have_no_marks(store: Store) -> None:
    """A cosine of one model means nothing for another."""
    assert store.recall("quantum", vectors=cerata.Vectors(dense=FAR)).confidence == "clear"
    assert (
        store.recall("quantum", floor=Floor(0.5, 0.4), vectors=cerata.Vectors(dense=FAR)).confidence
        == "none"
    )


def test_no_context_is_filled_with_the_newest_if_the_question_has_a_word(store: Store) -> None:
    for floor in (True, False):
        context = store.recall("zeppelin", floor=floor)
        assert (context.confidence, context.fallback, context.items) == ("none", False, ())


def test_a_question_without_a_word_shows_the_newest(store: Store) -> None:
    """Nothing can be compared, so nothing is irrelevant."""
    for question in ("", "?!"):
        context = store.recall(question)
        assert (context.confidence, context.fallback) == ("clear", True)
        assert context.items[0].id == 4


@pytest.mark.usefixtures("measured")
def test_a_question_that_was_stored_does_not_answer_itself(store: Store) -> None:
    """An agent stores what its user asks."""
    question = "Which zeppelin do we take?"
    store.put_frame(question, vectors=cerata.Vectors(dense=[0, -1], space=SPACE))
    assert store.search(question)[0].text == question
    for asked in (question, question.upper()):
        assert store.recall(asked, vectors=cerata.Vectors(dense=[0, -1])).items == ()
        assert store.recall(asked).confidence == "none"
    answer = store.put_frame(
        "We take the zeppelin LZ 129.", vectors=cerata.Vectors(dense=[0, -1], space=SPACE)
    )
    assert [item.id for item in store.recall(question).items] == [answer.id]


def test_a_recorded_recall_has_its_floor(store: Store) -> None:
    """Else the text could not be reproduced."""
    for floor, fields in (
        (True, (True, None, None)),
        (False, (False, None, None)),
        (Floor(0.7, 0.5), (True, 0.7, 0.5)),
    ):
        context = store.recall(
            "quantum", floor=floor, record=True, vectors=cerata.Vectors(dense=FAR)
        )
        recall = next(store.log(context.recorded or 0)).body
        assert isinstance(recall, RecallContext)
        assert (recall.floor, recall.floor_clear, recall.floor_least) == fields
    assert store.verify().ok


@pytest.mark.parametrize(
    "make", [lambda: Floor(11), lambda: Floor(0.3, -1), lambda: Floor(0.1, 0.2)]
)
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
        session = session_of(store)
        session.embedders.passed = None
        for notices in (store.search("tea").notices, store.recall("tea").notices):
            [notice] = notices
            assert notice.startswith(
                "searched by words only: the vectors are of 'sizes@1/2/cosine'"
            )
            assert "open(embedder=…)" in notice
        assert store.search("tea", mode="text").notices == ()
        assert store.search("tea", profile="words").notices == ()
        assert store.search("tea", vectors=cerata.Vectors(dense=[1, 1])).notices == ()


# --- the measured floor --------------------------------------------------------------------------


@pytest.mark.minilm
def test_unrelated_questions_get_nothing_and_answerable_ones_their_note() -> None:
    """At most 2 of 50 clearly, and none; without the floor every question gets an answer."""
    from benchmarks import relevance_bench as bench
    from benchmarks.relevance_notes import SETS, notes

    first = SETS[0]
    questions = [question for _, question in first.answerable]
    with bench.store_of(notes(first)) as store:
        unrelated = bench.counts_of(store, first.unrelated)
        assert unrelated.clear <= 2
        assert unrelated.none >= 15
        assert bench.counts_of(store, questions).none == 0
        without = bench.counts_of(store, first.unrelated, floor=False)
        assert without.clear == len(first.unrelated)


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
