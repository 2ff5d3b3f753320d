"""Proper nouns are found by capitals alone, never by the place in a sentence."""

import pytest

from cerata.retrieval.word_kinds import proper_nouns


@pytest.mark.parametrize(
    ("question", "nouns"),
    [
        ("When did Mina see Rome and the Prado?", ("mina", "rome", "prado")),
        ("Did Mina like Mina's boat?", ("mina",)),
        ("is ROME near the EU?", ("rome", "eu")),
        ("Was it (the Prado) or \u201cPorto\u201d?", ("prado", "porto")),
        ("Où est Évora?", ("evora",)),
    ],
)
def test_capitals_within_a_sentence_are_proper_nouns(question: str, nouns: tuple[str, ...]) -> None:
    assert proper_nouns(question) == nouns


@pytest.mark.parametrize(
    "question",
    [
        "Paint is wet. Boats sail! Why? Harbours: Mills",
        "what did I paint in May, on Monday, or in December?",
        "Was It The boat?",
        "WHERE IS THE HARBOUR OF ROME?",
        "where is rome?",
        "",
    ],
)
def test_other_words_are_none(question: str) -> None:
    """First words, words of time, stop words, and words of a question without small letters."""
    assert proper_nouns(question) == ()
