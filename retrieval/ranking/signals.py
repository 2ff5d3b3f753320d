"""Signals: properties of a frame and a question that add to a fused score.

Owns the value of each signal, from 0 to 1, and the sum over their weights. A profile gives each a
weight (`profile`); a signal without weight is off. Leaves out where the properties come from
(`cerata.memory.search.signals`).

    speaker     the question names the speaker of the turn
    period      the frame is of a period that the question names: 1 within it or a day beside it;
                0.5 up to 8 days after a day, 0.4 up to 14 days after a longer period, because
                people speak of an event in the days after it
    when        the question asks for a time, and the turn has a word of time
    count       it asks for a number, and the turn has one
    name        it asks for a place or person, and the turn has a name
    why         it asks for a reason, and the turn gives one
    question    the turn is a question, which rarely answers another
    follows     the turn follows a question of another speaker, so it may answer
    short       the turn has less than 8 terms: 1 without any, 1/8 less for each
    recency     exp(−age / 14 days)
    thread      the turn is of the conversation of the newest turn
    test        the frame is of a file of tests, and the question has no word for tests: a test has
                the words of the code that it tests, and seldom explains the code
    noun        the share of the question's proper nouns that the frame has
    replies     the turn follows a question of another speaker, which has words of the question:
                their share of its words, by idf

Weights are in steps: a step is a twentieth of the most that lanes add to a score (`fusion`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from cerata.projections.columnar.columns import F64, I64, U8, Mask
from cerata.projections.fulltext.marks import Mark
from cerata.projections.fulltext.scoring import SCORE_DECIMALS

from ..question_analysis import Period, QuestionAnalysis

SIGNALS: Final = (
    *("speaker", "period", "when", "count", "name", "why"),
    *("question", "follows", "short", "recency", "thread", "test", "noun", "replies"),
)
"""All signals, in the order of their sum."""

_ALL: Final = {*SIGNALS}

SHORT_TERMS: Final = 8
"""A turn with as many terms is not short."""

RECENCY_DAYS: Final = 14.0

_DAY: Final = 86_400_000_000
_AFTER_DAY: Final = (0.5, 8 * _DAY)
_AFTER_LONGER: Final = (0.4, 14 * _DAY)
_DAY_LONGEST: Final = 25 * 3_600_000_000

_MARKS: Final = {
    "when": int(Mark.TIME),
    "count": int(Mark.NUMBER),
    "name": int(Mark.NAME),
    "why": int(Mark.CAUSE),
    "question": int(Mark.QUESTION),
}
_OF_ANSWERS: Final = frozenset(_MARKS) - {"question"}
"""Signals that count if the question asks for them."""
_PROPERTIES: Final = {
    "speaker": "are_named",
    "test": "are_tests",
    "noun": "noun_shares",
    "replies": "reply_shares",
    "follows": "follow",
    "thread": "in_thread",
}
"""Signals whose value is a property of a candidate."""
_OF_DIALOGUE: Final = frozenset(("question", "follows", "short"))
"""Signals of answers, which a word alone does not ask for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """The properties of frames that signals need; each array is (frames,).

    - None is a property that no frame has, or that no signal with a weight needs.
    - ``times`` and ``frames_of_times`` are (times,): each time of a frame, in microseconds since
      1970 UTC, and the frame's place.
    - ``ages`` are in days.
    """

    marks: U8
    terms: I64 | None = None
    have_role: Mask | None = None
    are_named: Mask | None = None
    follow: Mask | None = None
    in_thread: Mask | None = None
    are_tests: Mask | None = None
    noun_shares: F64 | None = None
    reply_shares: F64 | None = None
    ages: F64 | None = None
    times: I64 | None = None
    frames_of_times: I64 | None = None

    def __len__(self) -> int:
        return len(self.marks)


def values_of(signal: str, question: QuestionAnalysis, candidates: Candidates) -> F64:
    """Return the value of a signal for each frame, (frames,) from 0 to 1.

    Args:
        signal: One of `SIGNALS`.
        question: The goals of the question.
        candidates: The frames.
    """
    values = None
    if signal in signals_asked(question):
        values = _asked(signal, question, candidates)
    return np.zeros(len(candidates)) if values is None else np.asarray(values, np.float64)


def _asked(signal: str, question: QuestionAnalysis, candidates: Candidates) -> F64 | Mask | None:
    """Return the value of a signal that the question asks for; None if it is 0 for every frame."""
    if signal in _MARKS:
        return np.bitwise_and(candidates.marks, _MARKS[signal]) > 0
    if signal == "period":
        return _nearness(question.periods, candidates)
    if signal == "short":
        terms, have_role = candidates.terms, candidates.have_role
        if terms is None or have_role is None:
            return None
        return np.maximum(SHORT_TERMS - terms, 0) / SHORT_TERMS * have_role
    if signal == "recency":
        if candidates.ages is None:
            return None
        # The last digits of an exponential differ between machines.
        decays: F64 = np.exp(-candidates.ages / RECENCY_DAYS)
        return decays.round(SCORE_DECIMALS)
    values: F64 | Mask | None = getattr(candidates, _PROPERTIES[signal])
    return values


def signals_asked(question: QuestionAnalysis) -> set[str]:
    """Return the signals that a question asks for; each other is 0 for every frame."""
    left_out = _OF_ANSWERS - question.answers
    if not question.periods:
        left_out |= {"period"}
    if question.names_tests:
        left_out |= {"test"}
    if question.is_word:
        left_out |= _OF_DIALOGUE
    return _ALL.difference(left_out)


def _nearness(periods: tuple[Period, ...], candidates: Candidates) -> F64:
    nearness = np.zeros(len(candidates))
    times, frames = candidates.times, candidates.frames_of_times
    if times is None or frames is None:
        return nearness
    for period in periods:
        low = times.min(initial=0) if period.start is None else period.start - _DAY
        high = times.max(initial=0) + 1 if period.end is None else period.end + _DAY
        of_times = ((times >= low) & (times < high)).astype(np.float64)
        if period.start is not None and period.end is not None:
            is_day = period.end - period.start <= _DAY_LONGEST
            value, span = _AFTER_DAY if is_day else _AFTER_LONGER
            is_after = (times >= high) & (times < period.end + span)
            of_times[is_after] = value
        np.maximum.at(nearness, frames, of_times)
    return nearness


def sum_of(weights: Mapping[str, float], question: QuestionAnalysis, candidates: Candidates) -> F64:
    """Return the weighted sum of the signals of each frame, (frames,)."""
    total = np.zeros(len(candidates.marks))
    asked = signals_asked(question)
    for signal in SIGNALS:
        weight = weights.get(signal, 0.0)
        if not weight or signal not in asked:
            continue
        name = _PROPERTIES.get(signal)
        values = _asked(signal, question, candidates) if name is None else getattr(candidates, name)
        if values is not None:
            total += weight * values
    return total
