"""Highlights are places in the text as stored, for whatever the query asked."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerata.engine.events import PutFrame
from cerata.projections.fulltext.analyzer import question_terms, terms
from cerata.projections.fulltext.bm25 import FulltextView
from cerata.projections.fulltext.fields import Field
from cerata.projections.fulltext.query import (
    And,
    AnyWord,
    Not,
    Or,
    Phrase,
    Prefix,
    Query,
    Term,
    Wildcard,
)

from ..histories import WORDS, events_of, fold

TEXT = "The Event-Log of décisions, and events: 東京都 logs the event log."


def view_of(text: str, *others: str) -> FulltextView:
    events = events_of([PutFrame(text=one) for one in (text, *others)])
    return fold(events)[1].snapshot().view(np.ones(len(others) + 1, np.bool_))


def marked(query: Query | str, text: str = TEXT, field: Field = Field.TEXT) -> list[str]:
    """Return the marked parts of a text."""
    return [text[one.start : one.end] for one in view_of(text).highlights(text, query, field)]


CASES: list[tuple[Query | str, list[str]]] = [
    ("logging", ["Log", "logs", "log"]),
    # Stop words count if the question has no other word.
    ("the", ["The", "the"]),
    ("the log", ["Log", "logs", "log"]),
    ("nothing", []),
    ('"event log"', ["Event-Log", "events", "logs", "event log"]),
    ('"event log" decision', ["Event-Log", "décisions", "events", "logs", "event log"]),
    (Phrase("logs event"), ["logs the event"]),
    (Phrase("log", Field.TITLE), []),
    (Prefix("Decisio"), ["décisions"]),
    (Wildcard("e*t*"), ["Event-Log", "events", "event"]),
    (And((Term("décision"), Not(Term("event")))), ["décisions"]),
    (Or((Phrase("event log"), Term("log"))), ["Event-Log", "logs", "event log"]),
    ("京都", ["京都"]),
    ("東京都", ["東京都"]),
    (Term("event-log"), ["Event-Log", "event log"]),
]


@pytest.mark.parametrize(("query", "expected"), CASES)
def test_highlights_of_a_known_text(query: Query | str, expected: list[str]) -> None:
    assert marked(query) == expected


def test_another_field_is_asked_by_name() -> None:
    assert marked(Term("log", Field.TITLE), field=Field.TITLE) == ["Log", "logs", "log"]
    assert marked(Term("log", Field.TEXT), field=Field.TITLE) == []


@given(
    st.lists(st.sampled_from((*WORDS, "x-y", "½", "\ufb01ne")) | st.text(max_size=6), max_size=12)
)
def test_highlights_ascend_apart_and_are_what_was_asked(parts: list[str]) -> None:
    text = " ".join(parts)
    asked = AnyWord(" ".join(parts[::2]))
    found = view_of(text).highlights(text, asked)
    ends = [0, *(one.end for one in found)]
    assert all(end <= one.start < one.end for end, one in zip(ends, found, strict=False))
    wanted = set(question_terms(asked.text))
    assert bool(found) == bool(wanted)
    assert all(wanted & set(question_terms(text[one.start : one.end])) for one in found)


@given(st.lists(st.sampled_from(WORDS), min_size=1, max_size=8), st.data())
def test_what_a_query_finds_in_a_text_is_marked(words: list[str], data: st.DataObject) -> None:
    # A hit always shows why; and where nothing is marked, nothing was found.
    text = " ".join(words)
    view = view_of(text)
    some = " ".join(data.draw(st.lists(st.sampled_from(WORDS), min_size=1, max_size=2)))
    start = data.draw(st.sampled_from(WORDS))
    start = start[: data.draw(st.integers(2, len(start)))]
    queries: tuple[Query, ...] = (
        AnyWord(some),
        Phrase(some),
        Prefix(start),
        Wildcard("?" + start[1:] + "*"),
    )
    for query in queries:
        if isinstance(query, Prefix | Wildcard) and len(terms(start)) != 1:
            continue
        assert bool(len(view.search(query))) == bool(view.highlights(text, query)), query
