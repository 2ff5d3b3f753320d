"""Starts of words: other written forms of a question's words, in languages without a stemmer."""

import numpy as np
import pytest

from cerata.engine.events import PutFrame
from cerata.projections.fulltext.analyzer import question_spans, question_terms
from cerata.projections.fulltext.bm25 import FulltextView
from cerata.projections.fulltext.query import AnyWord

from ..histories import events_of, fold

CASES = {
    # An accent or a function word shows another language.
    "çocuklara okulu": ["^cocuk", "^okulu"],
    "Wo ist das Buch?": ["^buch"],
    "gdzie jest klucz": ["^gdzie", "^jest", "^klucz"],
    # Without, a start names the term that excludes it.
    "index decisions": ["^index^index", "^decis^decis"],
    "Where are the decisions?": [],
    "Where is Łukasz?": [],
    # Vietnamese words have no endings; scripts with a stemmer have their own.
    "người Việt thường": [],
    "решения книги ελληνικά كتاب हिंदी": [],
    "東京都 ภาษา": [],
    "গ্রন্থাগারের বই": ["^গ্র"],
    "புத்தகம்": ["^புத"],
    "was ist 3d2000 los x86abc": [],
}


def view_of(*texts: str, rows: int | None = None) -> FulltextView:
    alive = np.ones(len(texts) if rows is None else rows, np.bool_)
    return fold(events_of([PutFrame(text=text) for text in texts]))[1].snapshot().view(alive)


def found(view: FulltextView, question: str) -> list[int]:
    rows: list[int] = view.search(question, k=9).rows.tolist()
    return rows


@pytest.mark.parametrize("question", CASES)
def test_starts_of_known_questions(question: str) -> None:
    terms = question_terms(question)
    assert [term for term in terms if term.startswith("^")] == CASES[question]


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("Kitaplar kütüphanede duruyor.", "kitap nerede?"),
        ("Yeni evimizin anahtarlari komşuda.", "komşular"),
        ("Mam uczulenie na orzechy.", "orzech"),
        ("Die Straßenbahnhaltestelle wird verlegt.", "Wo hält die Straßenbahn?"),
        ("Los equipos están en la oficina.", "oficinas"),
        ("গ্রন্থাগারের বইগুলো ফেরত দিতে হবে।", "গ্রন্থাগার"),
        ("நூலகத்தின் புத்தகங்களை தர வேண்டும்.", "புத்தகம்"),
        ("ઘરની ચાવીઓ પાડોશી પાસે છે.", "ચાવી ક્યાં છે"),
        ("ਕਿਰਾਏ ਦਾ ਸਮਝੌਤਾ ਦੋ ਸਾਲ ਦਾ ਹੈ।", "ਸਮਝੌਤੇ"),
    ],
)
def test_a_question_finds_and_marks_other_forms(text: str, question: str) -> None:
    # The user of an agent never asks in the inflection of the note.
    view = view_of("nothing of it", text)
    assert found(view, question) == [1]
    (mark, *_) = view.highlights(text, question)
    assert text[mark.start : mark.end] in text.replace(".", " ").split()


def test_a_written_word_comes_before_its_other_forms() -> None:
    view = view_of("kitaplara baktik", "kitap baktik")
    assert found(view, "hangi kitap") == [1, 0]
    added = [
        {word.word: word.added > 0 for word in view.words("hangi kitap", row)} for row in (0, 1)
    ]
    assert added[0] == {"kitap": False, "kitap*": True, "hangi": False}
    assert added[1] == {"kitap": True, "kitap*": True, "hangi": False}


def test_a_known_word_without_a_language_has_no_start() -> None:
    # "internet" does not ask for interviews; a word that no text has is asked for by its start.
    view = view_of("the internet", "an interview", "internal notes")
    assert found(view, "internet") == [0]
    assert view.highlights("internal", "internet") == []
    assert sorted(found(view, "internists")) == [0, 1, 2]
    assert view.asked("internet").most == 2 * view.idf("internet")


def test_a_start_that_begins_no_word_adds_nothing_to_the_most() -> None:
    view = view_of("mill", "salt")
    assert view.asked("unseen").most == 2 * view.idf("unseen")
    assert view.asked(AnyWord("unseen", None)).most == view.asked("unseen").most


def test_later_words_of_a_start_do_not_count_in_an_earlier_state() -> None:
    texts = ("kitap", "kitaplar", "kitapta")
    early, alone = view_of(*texts, rows=1), view_of(*texts[:1])
    for view in (early, alone):
        assert found(view, "hangi kitaptan") == [0]
        assert view.highlights(texts[1], "hangi kitaptan") == []
    assert (
        early.search("hangi kitaptan", k=3).scores.tolist()
        == alone.search("hangi kitaptan", k=3).scores.tolist()
    )


def test_the_two_ways_to_ask_score_alike() -> None:
    view = view_of("kitaplar ve kitapta", "kitap", "ev")
    rows = np.arange(3)
    by_words = view.asked("hangi kitaptan").at(rows)
    by_tree = view.asked(AnyWord("hangi kitaptan", None)).at(rows)
    np.testing.assert_allclose(by_words, by_tree)
    assert by_words[0] > 0
    assert len(question_spans("hangi kitaptan")) == len({*question_terms("hangi kitaptan")})
