"""Times in questions: the few phrases that count, and the many that do not."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerata.projections.columnar.relative_times import RelativeTime
from cerata.retrieval import question_times
from cerata.retrieval.question_times import time_filter, times_in

START, END = "start", "end"


@pytest.mark.parametrize(
    ("question", "words", "time"),
    [
        ("What did we decide yesterday?", "yesterday", "yesterday"),
        ("what happened last Tuesday", "last Tuesday", "last tuesday"),
        ("who called last November?", "last November", "last november"),
        ("Who called on Friday?", "Friday", "friday"),
        ("notes from the last 3 days", "the last 3 days", "last 3 days"),
        ("What was the port two weeks ago?", "two weeks ago", "two weeks ago"),
        ("plans in March", "March", "march"),
        ("the release of March 2024", "March 2024", "march 2024"),
        ("what did I eat this week", "this week", "this week"),
    ],
)
def test_a_time_in_a_question_is_found(question: str, words: str, time: str) -> None:
    assert times_in(question) == [(words, (RelativeTime(time), RelativeTime(time, "end")))]


def test_a_relation_opens_a_range() -> None:
    week = "last week"
    ranges = {
        "since": (RelativeTime(week), None),
        "before": (None, RelativeTime(week)),
        "after": (RelativeTime(week, "end"), None),
        "until": (None, RelativeTime(week, "end")),
    }
    for relation, span in ranges.items():
        assert times_in(f"what changed {relation} last week") == [(f"{relation} last week", span)]
    day = datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 3, 2, tzinfo=UTC)
    assert times_in("on 2026-03-01?") == [("2026-03-01", day)]
    assert times_in("what failed at 2026-03-01T17:14:00Z?") == [("2026-03-01", day)]
    assert times_in("2026-03-01Tea") == []
    assert len(times_in("yesterday or last week")) == 2


@pytest.mark.parametrize(
    "question",
    [
        "May I march in the second week?",
        "what is the last commit this engineer made",
        'who wrote "Yesterday" in "last week tonight"?',
        "is 10 enough for a second",
        "yesterday-ish today's",
        "03/04/2026",
        "which friday",
        "",
    ],
)
def test_other_words_are_no_time(question: str) -> None:
    """A wrong time would hide the right answer."""
    assert times_in(question) == []
    assert time_filter(question) is None


@given(st.from_regex(question_times._TIME, alphabet=st.characters(max_codepoint=0x7F)))
def test_a_question_without_a_part_of_a_phrase_names_no_time(question: str) -> None:
    """Most questions have none, and skip the phrases: each phrase has a part."""
    assert question_times._may_name_time(question)
