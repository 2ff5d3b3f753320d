"""Kinds of questions: four classes, by rules on the words, without a model.

Owns the kinds and their rules. The kind sets the weight of each lane of a search
(`ranking.profile`), never the set of matches.

    temporal      asks for a time, or names one: "when", "yesterday", "in March 2024", "before"
    exploratory   asks for everything: "tell me about", "overview", "everything"
    semantic      asks for reasons, ways or meaning: "why", "how", "explain", "difference"
    factual       asks for one thing, or names it exactly: "which", "is it", quotes, parse_date()

The first of these that matches decides; without a match the question is exploratory. Text in double
quotes is a thing, not a phrase of the question: all other rules ignore it, and "least recently
used", which names a policy. The rules are a list for
English, matched without regard to case; questions in other languages are temporal by their dates,
factual by quotes and names of code, else exploratory. Pure: a question has the same kind on any
machine.
"""

import re
from collections.abc import Iterable
from typing import Final, Literal, NamedTuple, TypeAlias, get_args

QuestionKind: TypeAlias = Literal["factual", "semantic", "temporal", "exploratory"]

KINDS: Final[tuple[QuestionKind, ...]] = get_args(QuestionKind)

_SIZE_MAX: Final = 1_000
"""Characters that are read: the words of a question precede a long text."""


class Classified(NamedTuple):
    """The kind of a question, and the words that decided; empty without a match."""

    kind: QuestionKind
    cue: str


# --- words ---------------------------------------------------------------------------------------

_MONTHS: Final = (
    *("january", "february", "march", "april", "may", "june", "july", "august", "september"),
    *("october", "november", "december", "jan", "feb", "mar", "apr", "jun", "jul", "aug", "sep"),
    *("sept", "oct", "nov", "dec"),
)
_DAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_SPANS: Final = (
    *("second", "minute", "hour", "day", "night", "morning", "afternoon", "evening", "week"),
    *("weekend", "month", "quarter", "year", "decade", "century", "spring", "summer", "autumn"),
    *("fall", "winter", "sprint"),
)
_RELATIVE: Final = (
    *("yesterday", "today", "tonight", "tomorrow", "ago", "recently", "lately", "latest", "newest"),
    *("most recent", "earliest", "oldest", "so far", "until now", "these days", "nowadays"),
    *("right now", "currently", "previously", "formerly"),
)
_TIME_QUESTIONS: Final = (
    *("when", "since when", "until when", "how long", "how old", "how often", "how recently"),
    *("what time", "how soon", "how late", "at what point"),
)
_TIME_RELATIONS: Final = ("before", "after", "until", "during", "prior to", "as of")
_ALL_OF_IT: Final = (
    *("tell me about", "tell me more", "everything", "anything", "overview", "summary"),
    *("summarise", "summarize", "catch me up", "what do we know", "what do you know"),
    *("what have we", "brainstorm", "ideas", "list all", "show me all", "what else"),
)
_REASONS: Final = (
    *("why", "how come", "how do", "how does", "how did", "how can", "how could", "how should"),
    *("how would", "how to", "how is", "how are", "how was", "how were", "how has", "how have"),
    *("explain", "describe", "compare", "compared", "contrast", "difference", "differences"),
    *("differ", "relate", "related", "relationship", "similar", "reason", "reasons", "rationale"),
    *("cause", "causes", "mean", "means", "meaning", "implications", "trade-off", "trade-offs"),
    *("pros and cons", "advantages", "disadvantages", "feel", "feels", "opinion", "think"),
)
_ONE_THING: Final = (
    *("who", "whose", "whom", "where", "which", "what", "how many", "how much", "how far"),
    *("how big", "how large", "how tall", "how high", "define", "definition of", "name"),
)
_YES_OR_NO: Final = (
    *("is", "are", "was", "were", "do", "does", "did", "has", "have", "had", "can", "could"),
    *("will", "would", "should", "may", "must"),
)


# --- rules ---------------------------------------------------------------------------------------


def _any(words: Iterable[str]) -> str:
    """Return a pattern of any of some words, each whole."""
    # Longer words first, so that the cue is the longest of those with the same beginning.
    ordered = sorted(words, key=lambda word: (-len(word), word))
    inner = "|".join(r"\s+".join(map(re.escape, word.split())) for word in ordered)
    return rf"(?<!\w)(?:{inner})(?!\w)"


_YEAR: Final = r"(?:19|20)\d\d"
_DAY: Final = r"\d{1,2}(?:st|nd|rd|th)?"
_POLITE: Final = r"^\W*(?:(?:please|hey|hi|hello|ok|okay|so|and|but|then|now)\b\W*)*"
# Each begins at the start of a run of its characters, so that no run is tried from within.
_CODE: Final = (
    r"(?<![a-z0-9+.-])[a-z][a-z0-9+.-]*://\S+",  # an address
    r"(?<![\w.+-])[\w.+-]+@[\w-]+\.\w+",  # a mailbox
    r"(?<!\w)\w+(?:\(\)|::\w+)",  # a function, a member
    r"(?<!\w)[^\W_]+(?:_[^\W_]+)+",  # snake_case
    r"(?<![\w./-])[\w.-]*/[\w.-]+/[\w./-]+",  # a path
    r"(?<![\w-])[\w-]+\.(?:py|js|ts|go|rs|c|h|cpp|java|md|txt|json|toml|ya?ml|csv|sql|sh|pdf)\b",
    r"(?<!\w)#\d+\b",
    r"(?<![\w-])[a-z]+-\d+\b",  # a ticket
    r"(?<![\w.])v?\d+\.\d+\.\d+\b",  # a version
)

_PATTERNS: Final[tuple[tuple[QuestionKind, str], ...]] = (
    ("temporal", rf"{_POLITE}({_any(_TIME_QUESTIONS)})"),
    ("temporal", r"\b(?:what|which)\s+(?:date|day|week|month|quarter|year|season)\b"),
    ("temporal", r"\bwhen\s+(?:is|are|was|were|do|does|did|has|have|will|can)\b"),
    ("temporal", rf"\b{_YEAR}-\d\d(?:-\d\d)?\b|\b\d{{1,2}}[./]\d{{1,2}}[./]{_YEAR}\b"),
    ("temporal", rf"{_any(_MONTHS)}\.?\s+(?:{_DAY}(?:,?\s+{_YEAR})?|{_YEAR})\b"),
    ("temporal", rf"\b{_DAY}\s+(?:of\s+)?{_any(_MONTHS)}"),
    ("temporal", rf"\b(?:in|since|until|by|early|late|of|last|next|this)\s+{_any(_MONTHS)}"),
    ("temporal", rf"(?<![\w.,#-]){_YEAR}(?![\w-]|[.,]\d)"),
    ("temporal", _any((*_RELATIVE, *_DAYS, *(f"{day}s" for day in _DAYS)))),
    (
        "temporal",
        r"\b(?:last|past|previous|this|next|coming)\s+(?:\w+\s+)?"
        + _any((*_SPANS, *(f"{span}s" for span in _SPANS))),
    ),
    ("temporal", rf"\bfor\s+how\s+long\b|{_any(_TIME_RELATIONS)}"),
    ("exploratory", _any(_ALL_OF_IT)),
    ("semantic", _any(_REASONS)),
    ("factual", "|".join(_CODE)),
    ("factual", rf"{_POLITE}({_any(_ONE_THING)})"),
    ("factual", rf"{_POLITE}({_any(_YES_OR_NO)})\s+\w"),
    ("factual", _any(("who", "whose", "whom", "where", "which", "how many", "how much"))),
)

_RULES: Final[tuple[tuple[QuestionKind, re.Pattern[str]], ...]] = tuple(
    (kind, re.compile(pattern, re.IGNORECASE)) for kind, pattern in _PATTERNS
)

_QUOTED: Final = re.compile(r'["\u201c\u201d]([^"\u201c\u201d]+)["\u201c\u201d]')

_POLICIES: Final = re.compile(r"\b(?:least|most)[\s-]+recently[\s-]+used\b", re.IGNORECASE)


def classify(question: str) -> Classified:
    """Return the kind of a question in plain language. Cost: tens of microseconds.

    >>> classify("When did we choose the index?")
    Classified(kind='temporal', cue='When')
    >>> classify("harbour bridge")
    Classified(kind='exploratory', cue='')
    """
    text = question[:_SIZE_MAX]
    quoted = _QUOTED.search(text)
    text = _POLICIES.sub(" ", _QUOTED.sub(" ", text))
    for kind, pattern in _RULES:
        # A quoted thing makes a question factual, unless it asks for a time, all or a reason.
        if kind == "factual" and quoted is not None:
            break
        if match := pattern.search(text):
            return Classified(kind, match[match.lastindex or 0].strip())
    return Classified("exploratory", "") if quoted is None else Classified("factual", quoted[0])
