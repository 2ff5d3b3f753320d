"""Terms beside words: pinned results, and one analyzer for texts, questions and highlights."""

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerata.engine.events import PutFrame
from cerata.projections.fulltext import word_starts
from cerata.projections.fulltext.analyzer import (
    beside_spans,
    question_spans,
    question_terms,
    spans,
    terms,
    word_places,
    words,
)
from cerata.projections.fulltext.bm25 import FulltextView
from cerata.projections.fulltext.fields import BESIDE_PART, PART_COUNT
from cerata.projections.fulltext.query import Phrase, Prefix, Term, Wildcard
from cerata.projections.fulltext.row_words import folded_rows

from ..histories import events_of, fold

MARK = "\u00b4"
ELSEWHERE = "elsewhere"
"""A second text, so that no word is in each."""

CASES = {
    "NoFizzStrategy useEffectOnce": ["fizz", "strategi", "use", "effect"],
    "parseJSON2Html HTTPServer APIs iOS": ["pars", "json", "2", "html", "http", "server"],
    "aGVsbG8gd29ybGQhIQpUZXN0IHN0cmluZw": [],
    "C++ C# F# A+ i++ x+y": ["cpp", "csharp", "fsharp", "aplus", "ipp"],
    "U.S.A. e.g. Ph.D. end.The AT&T R&D": ["usa", "eg", "phd", "att", "rd"],
    "re-entry state-of-the-art e-mail": ["reentri", "email"],
    "ISBN 978-3-16-148410-0, AX-200/7B": ["9783161484100", "ax200", "ax2007b"],
    "2026-01-31 1990-2000 3.11 1/2 10-20": [],
    "1,250,000 O'Brien O\u2019Neil didn't": ["1250000", "obrien", "oneil"],
    "+1 (555) 010-9999": [
        "0109999",
        "15550109999",
        "5550109999",
        "5550109999",
    ],
    "9fceb02d0ae598e95dc970b74767f19372d61af8 abcdefabcdef 1234567890": ["9fceb02"],
    "$5 $HOME": ["dollarsign"],
    "WHO asked? IT did, who else": ["whocapit", "itcapit"],
    "Caf\u00e9 cafe\u0301 \u0130stanbul": [MARK + "cafe\u0301"] * 2,
    "stra\u00dfe \u0141\u00f3d\u017a": [MARK + "stra\u00dfe", MARK + "\u0142o\u0301dz\u0301"],
    "\u00c9COLE \u00dcberKlasse": [
        "uber",
        "klass",
        MARK + "e\u0301cole",
        MARK + "u\u0308berklasse",
    ],
    "\u0643\u062a\u0627\u0628": [MARK + "\u0643\u062a\u0627", MARK + "\u062a\u0627\u0628"],
    "plain words, and a sentence.": [],
}


@pytest.mark.parametrize("text", CASES)
def test_terms_beside_known_texts(text: str) -> None:
    assert [span.term for span in beside_spans(text)] == CASES[text]


def test_a_name_is_found_by_each_spelling() -> None:
    """Contractions need no term beside them: one without its apostrophe has the same term."""
    for one, other in (("didnt", "didn't"), ("doesnt", "doesn\u2019t")):
        assert terms(one) == terms(other) != []
    assert question_terms("dont") == [MARK + "don"]
    assert question_terms("IT") == ["itcapit", MARK + "it"]
    assert question_terms("Who works in IT?") == ["work", "itcapit"]
    assert question_terms("of the and") == [MARK + "of", MARK + "the", MARK + "and"]
    assert question_terms("?! ...") == question_terms("") == []


_PIECES = (
    *("aBcDeF019", *"-'/.,&+#$(_ \n", "HTTP", "use", "the", "IT", "\u00e9", "\u0130", "\u00df"),
    *("e\u0301", "\u2019", "\u2010", "\u0438\u0306", "\u0439", "\u0643\u062a", "\u0e04\u0e2d"),
    *("\u6771", "\u20ac", "\U0001f680"),
)
_letters = st.sampled_from(_PIECES)
_texts = st.lists(_letters | st.characters(), max_size=14).map("".join)


@given(st.lists(st.lists(_texts, min_size=4, max_size=4), max_size=4))
def test_rows_in_a_buffer_have_the_words_of_each_text(rows: list[list[str]]) -> None:
    # The index cuts a batch of rows at once; questions and highlights cut a text by another path.
    data, sizes = folded_rows([part for row in rows for part in (*row, "")])
    buffer: list[list[bytes]] = []
    place = 0
    for size in sizes:
        buffer.append(data[place : place + size].split())
        place += size + 1
    for number, row in enumerate(rows):
        parts = buffer[number * PART_COUNT : (number + 1) * PART_COUNT]
        assert parts[:BESIDE_PART] == [words(text) for text in row]
        beside = [span.word.encode() for text in row for span in beside_spans(text)]
        assert set(beside) <= set(parts[BESIDE_PART])
        once = [word for word in parts[BESIDE_PART] if not word.startswith(MARK.encode())]
        assert len(set(once)) == len(once)


@given(_texts)
def test_a_term_beside_a_word_is_where_the_text_has_it(text: str) -> None:
    for span in beside_spans(text):
        assert 0 <= span.start < span.end <= len(text)
        part = text[span.start : span.end]
        # Three letters of a longer word are no word with letters beside it.
        threes = {MARK + word for word, _, _ in word_places(part)}
        found = {beside.term for beside in beside_spans(part)}
        assert span.term in found | threes | {*terms(part)}


def view_of(*texts: str) -> FulltextView:
    events = events_of([PutFrame(text=text) for text in texts])
    return fold(events)[1].snapshot().view(np.ones(len(texts), np.bool_))


@given(_texts, _texts)
def test_what_a_question_finds_is_marked(text: str, question: str) -> None:
    view = view_of(text, ELSEWHERE)
    found = 0 in view.search(question, k=2).rows.tolist()
    marks = view.highlights(text, question)
    assert bool(marks) == found
    has = {span.term for span in (*question_spans(text), *spans(text))}
    asked = question_terms(question)
    assert found == any(term in has or is_started(term, has) for term in asked) or not terms(
        question
    )


def is_started(term: str, has: set[str]) -> bool:
    """Return whether a start of a question begins one of these terms, and no text has its word."""
    start, known = word_starts.split(term)
    return (
        term.startswith(word_starts.START)
        and known not in has | {*terms(ELSEWHERE)}
        and any(word.startswith(start) for word in has)
    )


def test_terms_beside_words_part_no_phrase_and_lengthen_no_text() -> None:
    texts = ("an ArrayBuffer holds bytes", "an Arraybuffer holds bytes")
    view = view_of(*texts)
    assert view.search(Phrase("arraybuffer holds bytes"), k=2).rows.tolist() == [0, 1]
    assert view.text_lengths[[0, 1]].tolist() == [3, 3]
    one, two = view.search("bytes", k=2).scores.tolist()
    assert one == two
    assert view.search(Phrase("array buffer"), k=2).rows.tolist() == []
    assert view.search("array buffer", k=2).rows.tolist() == [0]


def test_patterns_find_no_part_of_a_word() -> None:
    view = view_of("\u0627\u0644\u0645\u062f\u0631\u0633\u0629", "the who")
    assert view.search(Wildcard("*\u0644\u0645\u062f"), k=2).rows.tolist() == []
    assert view.search(Prefix("wh"), k=2).rows.tolist() == []
    assert view.search(Prefix("\u0627\u0644\u0645\u062f\u0631"), k=2).rows.tolist() == [0]


def test_a_word_of_the_full_language_may_have_terms_beside_it_alone() -> None:
    view = view_of("Our line is with AT&T.", "the tea at four")
    assert view.search(Term("AT&T"), k=2).rows.tolist() == [0]
    assert view.highlights("Our line is with AT&T.", Term("AT&T"))


def test_stop_words_count_if_a_question_has_no_other_word() -> None:
    texts = ("The Who played.", "who asked", "green tea")
    view = view_of(*texts)
    assert view.search("The Who", k=3).rows.tolist() == [0, 1]
    assert view.search("the tea", k=3).rows.tolist() == [2]
    assert [texts[0][mark.start : mark.end] for mark in view.highlights(texts[0], "the who")] == [
        "The",
        "Who",
    ]
    assert [word.word for word in view.words("the who", 0)] == ["the", "who"]


@pytest.mark.parametrize("size", [1, 2, 3, 9, 40])
def test_letters_without_spaces_are_cut_in_threes(size: int) -> None:
    letters = "".join(Random(size).choices("\u0e01\u0e02\u0e04\u0e07\u0e08", k=size))
    expected = [letters[at : at + 3] for at in range(max(size - 2, 1))]
    assert terms(letters) == expected
    assert [(span.start, span.end - span.start) for span in spans(letters)] == [
        (at, min(size, 3)) for at in range(max(size - 2, 1))
    ]


def test_long_and_odd_texts_are_cut() -> None:
    """The most that a question may have, in one run of each kind, and half a character."""
    for text in ("aB" * 16_384, "a-" * 16_384, "1,000" * 6_000, "+" * 32_768, "(1" * 16_384):
        assert len(question_terms(text)) <= 32_768
    assert question_terms("what \ud800 useEffect") == ["useeffect", "use", "effect"]
    assert question_terms("\ud83d\ude80") == []
