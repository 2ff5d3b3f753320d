"""Extracts and duplicates: which sentences say most, and which texts say nothing new."""

import re
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerata.retrieval.context.duplicates import (
    SIZE_MAX,
    Duplicates,
    folded,
    resemblance,
    shingles,
)
from cerata.retrieval.context.extracts import by_worth, sentences


def pieces(text: str, near: int = 0) -> list[str]:
    return [text[start:end] for start, end in sentences(text, near)]


def test_sentences_end_at_their_marks_and_at_lines() -> None:
    text = '  One is 3.5 m. "Two?" (Three!)\n- a\n\n* b\r\n東京です。はい。 Four'
    assert pieces(text) == [
        "One is 3.5 m.",
        '"Two?"',
        "(Three!)",
        "- a",
        "* b",
        "東京です。",
        "はい。",
        "Four",
    ]
    assert pieces(" \n ") == []


@given(st.text("ab.! \n。\r", max_size=200), st.integers(0, 200))
def test_sentences_are_all_of_a_text_but_the_blanks(text: str, near: int) -> None:
    spans = sentences(text, near)
    assert [*chain(*spans)] == sorted(chain(*spans))
    if len(spans) < 64:
        assert "".join("".join(pieces(text, near)).split()) == "".join(text.split())


def test_of_a_long_text_the_sentences_around_what_is_asked_for_are_looked_at() -> None:
    text = " ".join(f"Sentence {number}." for number in range(3_000))
    near = text.index("Sentence 2000.")
    found = pieces(text, near)
    assert len(found) == 64
    assert found[16] == "Sentence 2000."
    assert pieces(text)[0] == "Sentence 0."
    assert pieces(text, len(text))[-1] == "Sentence 2999."


def test_the_next_sentence_says_what_is_asked_for_and_not_yet_said() -> None:
    """By hand: of two that answer, the second says again what the first does."""
    text = "It rains. The bridge opens in May. The bridge opens in May again. Anna sells tickets."
    marks = [(found.start(), found.end()) for found in re.finditer("bridge|Anna", text)]
    order = [text[start:end] for start, end in by_worth(text, sentences(text), marks)]
    assert order == [
        "The bridge opens in May.",
        "Anna sells tickets.",
        "It rains.",
        "The bridge opens in May again.",
    ]
    plain = [text[start:end] for start, end in by_worth(text, sentences(text), [])]
    assert plain[0] == "It rains."


def added(seen: Duplicates, entry: int, text: str) -> int | None:
    """Add the text of an entry, or return the entry whose text is close."""
    return seen.add(entry, text, folded(text))


def equal_to(seen: Duplicates, text: str) -> int | None:
    """Return the entry whose text is equal, or None."""
    return seen.equal.get(folded(text))


def test_equal_texts_differ_in_case_and_blanks_alone() -> None:
    seen = Duplicates(0.9)
    added(seen, 1, "We use C++ in  Zürich.")
    assert equal_to(seen, " we USE c++\nin zürich. ") == 1
    for other in ("We use C in Zürich.", "We use C++ in Zurich.", "We use C++ in Zürich"):
        assert equal_to(seen, other) is None


@pytest.mark.parametrize(("words", "close"), [(62, False), (72, False), (73, True), (200, True)])
def test_one_word_of_a_long_text_makes_no_other_text(words: int, close: bool) -> None:
    """Four shingles of 73 + 3 differ, and 72 / 80 is 0.9."""
    text = [f"w{number}" for number in range(words)]
    other = [*text[:40], "changed", *text[41:]]
    seen = Duplicates(0.9)
    added(seen, 7, " ".join(text))
    assert added(seen, 8, " ".join(other)) == (7 if close else None)
    assert added(seen, 8, " ".join([*text[:-1], "changed"])) == (7 if close else None)
    assert added(Duplicates(1.0), 8, " ".join(text)) is None


def test_a_word_more_needs_a_text_of_63() -> None:
    for words, close in ((62, None), (63, 7)):
        text = [f"w{number}" for number in range(words)]
        seen = Duplicates(0.9)
        added(seen, 7, " ".join(text))
        assert added(seen, 8, " ".join([*text[:30], "not", *text[30:]])) == close


def test_a_very_long_text_is_compared_for_equality_alone() -> None:
    """Its shingles would take gigabytes."""
    text = " ".join(f"w{number}" for number in range(SIZE_MAX // 4))
    seen = Duplicates(0.5)
    added(seen, 7, text)
    assert equal_to(seen, text.upper()) == 7
    assert added(seen, 8, f"{text} more") is None
    assert not seen._close


def test_resemblance_is_the_share_of_common_shingles() -> None:
    one, other = shingles("a b c d e"), shingles("A b, c d f")
    assert len(one) == len(other) == 8
    assert resemblance(one, other) == 4 / 12
    assert resemblance(one, one) == 1
