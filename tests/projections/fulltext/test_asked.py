"""A question that was asked once: its best rows, the scores of any rows, and its most."""

import math
import random
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerata.engine.events import PutFrame
from cerata.projections.columnar.turn_order import turn_order
from cerata.projections.fulltext.bm25 import FulltextView
from cerata.projections.fulltext.query import And, AnyWord, Maybe, Query, Term
from cerata.projections.fulltext.term_weights import BESIDE, PART_WEIGHT, weight_of
from cerata.projections.fulltext.turns import turn_ranking

from ..histories import events_of, fold

QUESTIONS: Sequence[str | Query] = (
    "harbour mill",
    "salt harbour ferry unseen",
    "ferry",
    "unseen",
    "",
    "東京 mill",
    And((Term("harbour"), Maybe(AnyWord("mill salt")))),
)


def texts_of(dice: random.Random, count: int) -> list[str]:
    words = ("harbour", "mill", "ferry", "salt", "tea", "東京", "old", "new")
    return [" ".join(dice.choices(words, k=dice.randint(0, 9))) for _ in range(count)]


def view_of(texts: Sequence[str], conversations: Sequence[int] | None = None) -> FulltextView:
    """Return a view of texts, of which those with a conversation from 0 on are turns."""
    view = fold(events_of([PutFrame(text=text) for text in texts]))[1].snapshot()
    alive = np.ones(len(texts), np.bool_)
    turns = None if conversations is None else turn_order(np.array(conversations), alive)
    return view.view(alive, turns)


@pytest.mark.parametrize("shape", ["notes", "turns", "both", "many turns"])
@pytest.mark.parametrize("question", QUESTIONS)
def test_the_scores_of_rows_are_those_of_the_best(
    question: str | Query, shape: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bit for bit: a lane reads the scores of rows that another lane found."""
    dice = random.Random(7)
    if shape == "many turns":
        monkeypatch.setattr(turn_ranking, "_ALL_PLACES_MAX", 0)
        monkeypatch.setattr(turn_ranking, "_FEW", 3)
    texts = texts_of(dice, 300)
    least = 0 if shape == "turns" else -1
    talks = None if shape == "notes" else [dice.randint(least, 4) for _ in texts]
    view = view_of(texts, talks)
    whole = view.asked(question).best(len(texts))
    rows = np.array(dice.sample(range(len(texts)), 50))
    score_of = dict(zip(whole.rows.tolist(), whole.scores.tolist(), strict=True))
    expected = [score_of.get(row, 0.0) for row in rows.tolist()]
    assert view.asked(question).at(rows).tolist() == expected
    for k in (1, 5, 40, 300):
        asked = view.asked(question)
        best = asked.best(k)
        assert best.rows.tolist() == whole.rows[:k].tolist()
        assert best.scores.tolist() == whole.scores[:k].tolist()
        assert asked.at(best.rows).tolist() == best.scores.tolist()
        assert asked.at(rows).tolist() == expected
        assert asked.at(np.empty(0, np.int64)).tolist() == []


def test_the_most_is_twice_the_idf_of_all_words() -> None:
    """Words of no frame count, a repeated word once: the most is a property of the question."""
    view = view_of(["harbour mill", "mill", "salt"])
    idf = view.idf
    expected = 2 * math.fsum([idf("harbour"), idf("mill"), idf("ferry")])
    assert view.asked("mill harbour ferry mill").most == expected
    assert view.asked("the mills of a harbour, the ferry").most == expected
    query = And((Term("harbour"), Maybe(AnyWord("mill ferry"))))
    assert view.asked(query).most == pytest.approx(expected)
    assert view.asked("").most == 0.0 < view.asked("the").most
    assert idf("ferry") > idf("harbour") > idf("mill")


@given(st.permutations(["harbour", "mill", "salt", "ferry", "東京", "tea"]))
def test_the_order_of_words_changes_nothing(words: list[str]) -> None:
    texts = texts_of(random.Random(3), 60)
    view = view_of(texts, [row % 3 - 1 for row in range(60)])
    first, second = view.asked("harbour mill salt ferry 東京 tea"), view.asked(" ".join(words))
    assert first.best(60).rows.tolist() == second.best(60).rows.tolist()
    assert first.best(60).scores.tolist() == second.best(60).scores.tolist()
    assert first.most == second.most


@given(
    st.lists(st.sampled_from(["mill", "tea", "old", "salt"]), min_size=1, max_size=6),
    st.sampled_from(["harbour", "ferry", "mill"]),
)
def test_a_further_word_of_the_question_loses_no_rank(text: list[str], word: str) -> None:
    """A word takes the place of one that the question lacks, so that the lengths stay equal."""
    before = " ".join([*text, "new"])
    after = " ".join([*text, word])
    for talks in (None, [0, 1, 2, 3]):
        view = view_of([before, after, "harbour", "ferry old"], talks)
        without, with_word = view.asked("harbour ferry mill").at(np.array([0, 1])).tolist()
        assert with_word > without


def test_a_part_of_a_word_counts_a_third() -> None:
    """Both letters of 東京 and their pair match where the word does."""
    assert {weight_of(term) for term in ("index", "7", "й", "ñandú", "")} == {1.0}
    parts = (
        "東",
        "東京",
        "ไทย",
        "ລາວ",
        "မြန်",
        "ខ្មែ",
        "か",
        "カナ",
        "한",
        BESIDE + "hà",
        BESIDE + "بيت",
    )
    assert {weight_of(term) for term in parts} == {PART_WEIGHT}
    view = view_of(["東京", "mill", "mill 東京 harbour"])
    assert view.idf("東") == pytest.approx(view.idf("mill") / 3)
    assert view.asked("東京").most == pytest.approx(view.asked("mill").most)
    word, *parts_of_word = view.words("mill 東京", 2)
    assert word.word == "mill"
    assert {part.idf for part in parts_of_word} == {view.idf("東")}
    shares = view.shares_of_words(["mill", "東", "京", "東京"], np.array([0, 1, 2]))
    assert shares.tolist() == pytest.approx([0.5, 0.5, 1.0])
    coverages = view.coverages("mill 東京 absent", np.array([0, 1, 2]))
    assert coverages.tolist() == pytest.approx([1 / 3, 1 / 3, 2 / 3])
