"""The kind of a question: a table of questions, and what holds of any text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerata.retrieval.query_classifier import KINDS, classify

from ..timing import seconds

QUESTIONS = {
    "temporal": (
        ("when did we choose the index?", "when"),
        ("Please, since when is it so?", "since when"),
        ("how long does a checkpoint take", "how long"),
        ("what happened yesterday", "yesterday"),
        ("the latest decision on storage", "latest"),
        ("what happened after the launch?", "after"),
        ("who joined last week", "last week"),
        ("which cache was used recently?", "recently"),
        ("the past two weeks", "past two weeks"),
        ("what was decided on Monday", "Monday"),
        ("notes from March 2024", "March 2024"),
        ("meeting on 5 March", "5 March"),
        ("birthday, July 4th", "July 4th"),
        ("what did we decide in May", "in May"),
        ("2026-01-05 stand-up", "2026-01-05"),
        ("budget of 2024", "2024"),
        ("which year did Alice move?", "which year"),
        ('when did Bob say "ship it"', "when"),
        ("tell me about last summer", "last summer"),
        ("wann war das Treffen, 2024-01-05?", "2024-01-05"),
    ),
    "exploratory": (
        ("tell me about Alice", "tell me about"),
        ("everything on billing", "everything"),
        ("give me an overview of why and how", "overview"),
        ("summarise the design", "summarise"),
        ("harbour bridge", ""),
        ("least recently used", ""),
        ("a most-recently-used cache", ""),
        ("our favourite restaurant", ""),
        ("may", ""),
        ("the last straw", ""),
        ("qué índice", ""),
        ("", ""),
    ),
    "semantic": (
        ("why did we pick HNSW", "why"),
        ("so why HNSW", "why"),
        ("how do I restart the worker?", "how do"),
        ("explain sealing", "explain"),
        ("what is the difference between a seal and a checkpoint", "difference"),
        ("what does sealed mean", "mean"),
        ("is it similar to a tree?", "similar"),
        ('why do we say "sealed"', "why"),
    ),
    "factual": (
        ("which index did we choose?", "which"),
        ("who owns the billing service", "who"),
        ("OK, where is it?", "where"),
        ("what is the port", "what"),
        ("how many frames are there", "how many"),
        ("did Alice move to Paris?", "did"),
        ("May I see it?", "May"),
        ("Alice lives where?", "where"),
        ('"ship it"', '"ship it"'),
        ('the "event log" design', '"event log"'),
        ("parse_date raises", "parse_date"),
        ("call close() twice", "close()"),
        ("src/app/main.py", "src/app/main.py"),
        ("errors in main.py", "main.py"),
        ("issue #42", "#42"),
        ("ABC-123 again", "ABC-123"),
        ("release 3.11.7", "3.11.7"),
        ("https://example.org/a b", "https://example.org/a"),
        ("mail from bob@example.org", "bob@example.org"),
    ),
}


@pytest.mark.parametrize(
    ("kind", "question", "cue"),
    [(kind, question, cue) for kind, rows in QUESTIONS.items() for question, cue in rows],
)
def test_a_question_is_of_its_kind_and_says_by_which_words(
    kind: str, question: str, cue: str
) -> None:
    assert classify(question) == (kind, cue)


def test_the_table_has_every_kind() -> None:
    assert set(QUESTIONS) == set(KINDS)


@given(st.text())
def test_any_text_is_of_a_kind_that_its_cue_shows(text: str) -> None:
    kind, cue = classify(text)
    assert kind in KINDS
    assert cue in text
    assert cue or kind == "exploratory"


@given(st.sampled_from([question for rows in QUESTIONS.values() for question, _ in rows]))
def test_case_does_not_count(question: str) -> None:
    assert classify(question.upper()).kind == classify(question).kind


def cost(text: str) -> float:
    return seconds(lambda: [classify(text) for _ in range(10)])


@pytest.mark.parametrize(
    "run", ["a", "a.", "a-", "a_", "/a", "and ", "1.", "(", '"', "so ", "last "]
)
def test_no_text_takes_long(run: str) -> None:
    """A pattern that starts anew within what it has read takes 16 times as long for four times."""
    text = run * 1_000
    assert cost(text[:920]) < 9 * cost(text[:230])
