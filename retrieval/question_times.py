"""Times in a plain question: the parts of "what did we decide last week?" that name a time.

Owns the recogniser. Few phrases count, each with a word that leads to it or that is a time in any
sentence, so "may", "second" or a number alone is never a time. Leaves out their meaning
(`cerata.projections.columnar.relative_times`). A question has the same times on any machine.
"""

import re
from functools import reduce
from typing import Final

from cerata.engine.errors import InvalidInput
from cerata.projections.columnar.relative_times import RelativeTime, bounds_of
from cerata.projections.columnar.times import to_datetime
from cerata.projections.frames.filter_tests import Time
from cerata.projections.frames.filters import Filter

_SIZE_MAX: Final = 1_000
"""Characters that are read."""

_MONTHS: Final = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_MONTH: Final = rf"(?:{'|'.join(_MONTHS)})"
_WEEKDAY: Final = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_COUNT: Final = r"(?:\d{1,3}|an?|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)"
_UNIT: Final = r"(?:second|minute|hour|day|week|month|year)s?"
_PHRASE: Final = (
    rf"\d{{4}}-\d\d-\d\d|\d{{1,2}}(?:st|nd|rd|th)?\s+(?:of\s+)?{_MONTH},?\s+\d{{4}}"
    rf"|{_MONTH}\s+\d{{1,2}}(?:st|nd|rd|th)?(?:,?\s+|,)\d{{4}}|{_MONTH},?\s+\d{{4}}"
    rf"|{_COUNT}\s+{_UNIT}\s+ago"
    rf"|(?:last|past)\s+{_COUNT}\s+{_UNIT}|past\s+(?:week|month|year)"
    rf"|(?:last|this)\s+(?:week|month|year)|last\s+(?:{_WEEKDAY}|{_MONTH})"
    r"|the\s+day\s+before\s+yesterday|yesterday|today"
)
_IN_MONTH: Final = rf"(?<=\bin\s)(?:{_MONTH}|(?:19|20)\d\d)(?!\s+\d)"
_AFTER_ON: Final = rf"(?<=\bon\s){_WEEKDAY}"
_TIME: Final = re.compile(
    rf"(?<![\w-])(?:(?P<relation>before|after|since|until)\s+)?(?:the\s+)?"
    rf"(?P<time>{_PHRASE}|{_IN_MONTH}|{_AFTER_ON})(?:(?=T\d\d)|(?![\w'\u2019-]))",
    re.IGNORECASE,
)
_DIGIT: Final = re.compile(r"[0-9]")
_PARTS: Final = ("day", "last", "this", "past", "ago", *_MONTHS)
"""Each phrase has a digit or one of these. A look for them takes a tenth of the time of the phrases
themselves, and most questions name no time."""

_QUOTED: Final = re.compile(r'["\u201c][^"\u201d]*["\u201d]')


def times_in(question: str) -> list[tuple[str, tuple[Time | None, Time | None]]]:
    """Return the times that a question names, each as its words and a range of a filter.

    Text in double quotes names no time.

    >>> times_in("what changed since last week?")
    [('since last week', (RelativeTime(text='last week', edge='start'), None))]
    """
    if question.isascii() and not _may_name_time(question):
        return []
    text = _QUOTED.sub(lambda quoted: " " * len(quoted[0]), question[:_SIZE_MAX])
    found: list[tuple[str, tuple[Time | None, Time | None]]] = []
    for match in _TIME.finditer(text):
        try:
            words = f"{match['relation'] or ''} {match['time']}".lower()
            start, end = map(_shown, bounds_of(" ".join(words.split())))
        except InvalidInput:
            continue
        found.append((match[0], (start, end)))
    return found


def _may_name_time(ascii_text: str) -> bool:
    lowered = ascii_text.lower()
    return _DIGIT.search(lowered) is not None or any(map(lowered.__contains__, _PARTS))


def time_filter(question: str) -> Filter | None:
    """Return the filter of the content times that a question names, or None if it names none."""
    ranges = [Filter(content=span) for _, span in times_in(question)]
    return reduce(lambda left, right: left | right, ranges) if ranges else None


def _shown(bound: int | RelativeTime | None) -> Time | None:
    return to_datetime(bound) if isinstance(bound, int) else bound
