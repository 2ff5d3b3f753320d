"""The goals of questions."""

from datetime import UTC, datetime

import pytest

from cerata.projections.columnar.times import to_microseconds
from cerata.retrieval.question_analysis import analysis_of

NOW = datetime(2026, 11, 23, 15, tzinfo=UTC)


@pytest.mark.parametrize(
    ("question", "answers"),
    [
        ("When did Mina leave?", {"when"}),
        ("For how long has he played?", {"when"}),
        ("On what date is it?", {"when"}),
        ("How many cats are there?", {"count"}),
        ("Where and when did they meet?", {"name", "when"}),
        ("Which city did she like?", {"name"}),
        ("Who came, and why?", {"name", "why"}),
        ("What does Mina paint?", set[str]()),
        ("whenever", set[str]()),
    ],
)
def test_the_words_of_a_question_tell_its_answer(question: str, answers: set[str]) -> None:
    assert analysis_of(question, NOW).answers == answers


@pytest.mark.parametrize(
    ("question", "start", "end"),
    [
        ("What was said in May 2023?", "2023-05-01", "2023-06-01"),
        ("What was said on 3 June, 2023?", "2023-06-03", "2023-06-04"),
        ("the photo of December 1,2023", "2023-12-01", "2023-12-02"),
        ("What was said on the 8th of May 2023?", "2023-05-08", "2023-05-09"),
        ("What was said last week?", "2026-11-16", "2026-11-23"),
        ("What was said since May 2023?", "2023-05-01", None),
        ("What was said before 2023-05-02?", None, "2023-05-02"),
    ],
)
def test_a_period_is_resolved_against_now(
    question: str, start: str | None, end: str | None
) -> None:
    (period,) = analysis_of(question, NOW).periods
    bounds = (period.start, period.end)
    assert bounds == tuple(None if time is None else to_microseconds(time) for time in (start, end))


def test_an_ambiguous_date_is_ignored_and_listed() -> None:
    analysis = analysis_of("Did it rain on 03/04/2026 or 3.4.26, not 1.2.3.4?", NOW)
    assert (analysis.periods, analysis.ignored) == ((), ("03/04/2026", "3.4.26"))
    parts = "103/04/2026, 1/03/04/2026, -3/4/26, 3-4-26-7, 3/4-2026, 3/4/202, a3/4/26 and 3.4.26."
    assert analysis_of(parts, NOW).ignored == ("3/4/26", "3.4.26")


def test_a_date_that_does_not_exist_names_no_period() -> None:
    assert analysis_of("What was said on 31 June 2023?", NOW).periods == ()


def test_a_month_of_a_year_needs_no_now() -> None:
    """At the newest event, now is read from the log, which costs more than the rest."""

    def refused() -> datetime:
        raise AssertionError("now was read")

    for question in ("Has it rained in May 2023?", "Did Mina leave since the 8th of May 2023?"):
        assert analysis_of(question, refused) == analysis_of(question, NOW)
        assert analysis_of(question, NOW).periods
    with pytest.raises(AssertionError, match="now was read"):
        analysis_of("Did Mina leave last week?", refused)


@pytest.mark.parametrize("text", ["sourdough", " Sourdough? ", "naïve", "хлеб", "useEffectOnce"])
def test_a_word_alone_is_no_question(text: str) -> None:
    assert analysis_of(text, NOW).is_word


@pytest.mark.parametrize(
    "text", ["", "?!", "a loaf", "what is bread?", "面包在哪里", "ขนมปังอยู่ที่ไหน"]
)
def test_more_than_a_word_asks_for_an_answer(text: str) -> None:
    assert not analysis_of(text, NOW).is_word
