"""Values of signals, one by one."""

from dataclasses import replace

import msgspec
import numpy as np
import pytest

from cerata.projections.fulltext.marks import Mark
from cerata.retrieval.question_analysis import Answer, Period, QuestionAnalysis
from cerata.retrieval.ranking.signals import SIGNALS, Candidates, sum_of, values_of

DAY = 86_400_000_000
NOTHING = QuestionAnalysis(frozenset(), (), ())


def candidates(count: int = 1, **arrays: object) -> Candidates:
    """Return candidates without any property but the given."""
    off = np.zeros(count, np.bool_)
    none = Candidates(
        marks=np.zeros(count, np.uint8),
        terms=np.full(count, 100),
        have_role=~off,
        are_named=off,
        follow=off,
        in_thread=off,
        are_tests=off,
        noun_shares=np.zeros(count),
        reply_shares=np.zeros(count),
        ages=np.full(count, np.inf),
        times=np.empty(0, np.int64),
        frames_of_times=np.empty(0, np.int64),
    )
    return replace(none, **{name: np.array(value) for name, value in arrays.items()})


def asking(answer: Answer) -> QuestionAnalysis:
    return QuestionAnalysis(frozenset({answer}), (), ())


@pytest.mark.parametrize("signal", ["question", "follows", "short"])
def test_a_word_alone_asks_for_no_answer(signal: str) -> None:
    """A short turn was behind an answer that had the word in its title alone."""
    found = candidates(marks=[int(Mark.QUESTION)], follow=[True], terms=[0])
    assert values_of(signal, NOTHING, found).tolist() == [1.0]
    assert values_of(signal, msgspec.structs.replace(NOTHING, is_word=True), found).tolist() == [
        0.0
    ]


@pytest.mark.parametrize(
    ("signal", "question", "found"),
    [
        ("speaker", NOTHING, candidates(are_named=[True])),
        ("when", asking("when"), candidates(marks=[int(Mark.TIME)])),
        ("count", asking("count"), candidates(marks=[int(Mark.NUMBER)])),
        ("name", asking("name"), candidates(marks=[int(Mark.NAME)])),
        ("why", asking("why"), candidates(marks=[int(Mark.CAUSE)])),
        ("question", NOTHING, candidates(marks=[int(Mark.QUESTION)])),
        ("follows", NOTHING, candidates(follow=[True])),
        ("short", NOTHING, candidates(terms=[0])),
        ("recency", NOTHING, candidates(ages=[0.0])),
        ("thread", NOTHING, candidates(in_thread=[True])),
        ("test", NOTHING, candidates(are_tests=[True])),
        ("noun", NOTHING, candidates(noun_shares=[1.0])),
        ("replies", NOTHING, candidates(reply_shares=[1.0])),
        (
            "period",
            QuestionAnalysis(frozenset(), (Period("", 0, DAY),), ()),
            candidates(times=[0], frames_of_times=[0]),
        ),
    ],
)
def test_each_signal_has_its_property_and_no_other(
    signal: str, question: QuestionAnalysis, found: Candidates
) -> None:
    values = {name: values_of(name, question, found).tolist() for name in SIGNALS}
    assert values == {name: [float(name == signal)] for name in SIGNALS}
    assert sum_of({signal: 2.5}, question, found).tolist() == [2.5]
    assert sum_of({signal: 0.0}, question, found).tolist() == [0.0]
    marked = candidates(marks=[31])
    if signal in ("when", "count", "name", "why"):
        # The mark alone does not count without the question.
        assert values_of(signal, NOTHING, marked).tolist() == [0.0]


@pytest.mark.parametrize(
    ("start", "end", "values"),
    [
        # By day: -2, -1, 0, 1, 2, 8, 9, and the last moment of the grace.
        (0, DAY, {-2: 0, -1: 1, 0: 1, 1: 1, 2: 0.5, 8: 0.5, 9: 0}),
        (0, 30 * DAY, {-2: 0, -1: 1, 29: 1, 30: 1, 31: 0.4, 43: 0.4, 44: 0}),
        (None, DAY, {-900: 1, 1: 1, 2: 0}),
        (0, None, {-2: 0, -1: 1, 900: 1}),
    ],
)
def test_a_period_counts_less_on_the_days_after_it(
    start: int | None, end: int | None, values: dict[int, float]
) -> None:
    days = [*values]
    found = candidates(
        len(days), times=[day * DAY for day in days], frames_of_times=range(len(days))
    )
    question = QuestionAnalysis(frozenset(), (Period("", start, end),), ())
    assert values_of("period", question, found).tolist() == [*values.values()]


def test_the_nearest_time_and_period_of_a_frame_count() -> None:
    periods = (Period("", 0, DAY), Period("", 100 * DAY, 101 * DAY))
    found = candidates(2, times=[5 * DAY, 100 * DAY, 5 * DAY], frames_of_times=[0, 0, 1])
    question = QuestionAnalysis(frozenset(), periods, ())
    assert values_of("period", question, found).tolist() == [1.0, 0.5]


def test_short_turns_count_by_their_missing_terms() -> None:
    found = candidates(
        4, terms=[0, 6, 8, 0], have_role=[True, True, True, False], **candidates_of_none(4)
    )
    assert values_of("short", NOTHING, found).tolist() == [1.0, 0.25, 0.0, 0.0]


def candidates_of_none(count: int) -> dict[str, object]:
    return {"are_named": [False] * count}


def test_recency_falls_by_e_in_14_days() -> None:
    found = candidates(2, ages=[0.0, 14.0])
    assert values_of("recency", NOTHING, found) == pytest.approx([1.0, np.exp(-1)])
