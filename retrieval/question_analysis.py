"""The goal of a plain question: a time, a count, a name or a reason, and the periods it names.

Owns the rules on the words of English questions, and the resolution of the periods of
`question_times` against a given now. An answer to "when" has a word of time, so a search may prefer
turns with one (`ranking.signals`). A date such as 03/04/2026 is ambiguous: it names no period, and
is returned so that an explanation can list it. Pure: no clock, and equal on every machine.
"""

import re
from collections.abc import Callable
from datetime import datetime
from typing import Final, Literal, NamedTuple, TypeAlias

import msgspec

from cerata.engine.errors import InvalidInput
from cerata.projections.columnar.relative_times import RelativeTime
from cerata.projections.columnar.times import to_microseconds
from cerata.projections.frames.filter_tests import Time
from cerata.projections.fulltext.analyzer import words
from cerata.projections.fulltext.term_weights import weight_of

from .question_times import times_in

Answer: TypeAlias = Literal["when", "count", "name", "why"]
"""The content of an answer: a time, a number, a name of a place or person, a reason."""

_SIZE_MAX: Final = 1_000
"""Characters that are read."""

_RULES: Final[dict[Answer, re.Pattern[str]]] = {
    "when": re.compile(
        r"\b(?:when|how long|(?:what|which) (?:date|day|week|weekend|month|year|season|time))\b",
        re.IGNORECASE,
    ),
    "count": re.compile(r"\bhow (?:many|much|often|old)\b", re.IGNORECASE),
    "name": re.compile(
        r"\b(?:where|who|whom|whose|(?:what|which) (?:place|city|town|country|state|person))\b",
        re.IGNORECASE,
    ),
    "why": re.compile(r"\b(?:why|how come|what (?:is|was|were|are) the reasons?)\b", re.IGNORECASE),
}
_TESTS: Final = re.compile(
    r"\b(?:(?:unit|py)?test(?:s|ed|ing|case|cases)?|specs?)\b", re.IGNORECASE
)
# With a digit first, the search skips all other characters.
_AMBIGUOUS: Final = re.compile(r"\d(?<![\d/.-]\d)\d?([/.-])\d{1,2}\1(?:\d{4}|\d\d)(?![\d/-]|\.\d)")


class Period(NamedTuple):
    """A period that a question names: its words, and [start, end) in microseconds since 1970 UTC.

    None is an open side: "since May" has no end.
    """

    words: str
    start: int | None
    end: int | None


class QuestionAnalysis(msgspec.Struct, frozen=True):
    """The answers that a question asks for, and the periods that it names.

    - ``ignored`` are its dates that have two readings.
    - ``names_tests`` is True if it has a word for tests of code.
    - ``is_word`` is True if it is a word alone, which asks for its places and not for an answer.
    """

    answers: frozenset[Answer]
    periods: tuple[Period, ...]
    ignored: tuple[str, ...]
    names_tests: bool = False
    is_word: bool = False


def analysis_of(question: str, now: datetime | Callable[[], datetime]) -> QuestionAnalysis:
    """Return what a question in plain language asks for. Cost: tens of us; more with a time.

    Args:
        question: The question; its first 1,000 characters count.
        now: The time that "last week" counts from, or its source, called only for such words.

    >>> now = datetime.fromisoformat("2026-01-01T00:00:00+00:00")
    >>> found = analysis_of("Who left in May 2023, or on 03/04/2024?", now)
    >>> found.answers, [period.words for period in found.periods], found.ignored
    (frozenset({'name'}), ['May 2023'], ('03/04/2024',))
    """
    text = question[:_SIZE_MAX]
    periods: list[Period] = []
    for period, (start, end) in times_in(text):
        try:
            periods.append(Period(period, _moment(start, now), _moment(end, now)))
        except InvalidInput:
            # A time outside the years 1 to 9999 names no period.
            continue
    return QuestionAnalysis(
        frozenset(answer for answer, rule in _RULES.items() if rule.search(text)),
        tuple(periods),
        tuple(match[0] for match in _AMBIGUOUS.finditer(text)),
        _TESTS.search(text) is not None,
        _is_word(text),
    )


def _is_word(text: str) -> bool:
    """Return whether a text is a single word; a run without spaces can be a sentence in Thai."""
    [word, *others] = words(text)[:2] or [b""]
    return not others and word != b"" and weight_of(word.decode()) == 1.0


def _moment(time: Time | None, now: datetime | Callable[[], datetime]) -> int | None:
    if time is None:
        return None
    if not isinstance(time, RelativeTime):
        return to_microseconds(time)
    return time.at(now)
