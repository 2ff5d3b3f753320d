"""English facts: a small extractor for a few plain forms of sentences.

Owns the patterns. They prefer precision over recall: a sentence must begin with a name, have one of
a few verbs in the present, and contain nothing after them that could change its meaning. Leaves out
the meaning of pronouns, irony, and other languages.
"""

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime
from typing import Final, NamedTuple

from ..values.facts import Entity
from .extraction import Candidate

_CONFIDENCE: Final = 0.9
_CONFIDENCE_MOVED: Final = 0.7
"""Confidence that a subject that moved to a place lives there: objects and firms move, too."""

_SENTENCE_MAX: Final = 1_000
"""Most characters of a sentence; the extractor skips longer sentences."""

_UPPER: Final = "A-ZÀ-ÖØ-ÞĀĂĄĆČĎĐĒĖĘĚĞĢĪĮĶĹĻĽŁŃŅŇŌŐŒŔŘŚŞŠŢŤŪŮŰŲŹŻŽ"
_NAME: Final = (
    rf"(?:(?:Dr|Mr|Mrs|Ms|Prof|St)\. )?[{_UPPER}][\w&-]*"
    rf"(?: (?:(?:&|of|van|von|de|der|da|del|la|le) )*[{_UPPER}][\w&-]*)*"
)
"""Latin words that begin with a capital letter, and small words between them."""

_MONTHS: Final = (
    *("january", "february", "march", "april", "may", "june", "july"),
    *("august", "september", "october", "november", "december"),
)
_MONTH: Final = rf"(?:{'|'.join(name.capitalize() for name in _MONTHS)})"
_DATE: Final = (
    rf"(?:\d{{4}}-\d\d-\d\d|\d{{1,2}} {_MONTH} \d{{4}}|{_MONTH} \d{{1,2}}, \d{{4}}"
    rf"|{_MONTH} \d{{4}}|\d{{4}})"
)
_END: Final = r"(?= *(?:$|[.!;](?: |$))|,? (?:and|but|with) )"
"""The allowed rest: the end of the sentence, or a conjunction that does not change the meaning."""

_END_MOVED: Final = r"(?= *(?:$|[.!;](?: |$)))"
"""The allowed rest after a move, without conjunctions: "and back to Paris" is a further move."""

_CHANGES: Final = re.compile(
    r"(?:\b(?:not|never|nor|no longer|if|unless|until|whether|perhaps|probably)\b|n['’]t\b"
    r"|\b(?:says?|said|thinks?|thought|believes?|believed|claims?|claimed|hopes?|hoped)\b)",
    re.IGNORECASE,
)
"""Words in the rest that change the meaning: negation, condition and hearsay."""

_ROLE: Final = r"[A-Za-z][A-Za-z-]*(?: [A-Za-z][A-Za-z-]*){0,2}?"

_NOT_NAMES: Final = frozenset(
    (
        *("a", "all", "an", "another", "any", "anybody", "anyone", "both", "but", "each", "either"),
        *("every", "everybody", "everyone", "few", "he", "her", "here", "his", "how", "i", "if"),
        *("it", "its", "many", "maybe", "most", "my", "neither", "nobody", "none", "no", "nothing"),
        *("one", "our", "perhaps", "she", "some", "somebody", "someone", "something", "that"),
        *("the", "their", "there", "these", "they", "this", "those", "though", "unless", "we"),
        *("what", "when", "where", "which", "while", "who", "whoever", "why", "you", "your"),
        *("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday", "now"),
        *("today", "tomorrow", "tonight", "yesterday"),
    )
)
"""Words that begin a sentence with a capital letter and are no names."""

_NOT_FIRST_NAMES: Final = frozenset(
    (
        *("according", "admittedly", "after", "albeit", "allegedly", "almost", "also", "although"),
        *("and", "apparently", "are", "arguably", "as", "assume", "assuming", "at", "barely"),
        *("because", "before", "believe", "by", "can", "cannot", "certainly", "claim"),
        *("clearly", "conceivably", "consider", "could", "currently", "despite", "did", "do"),
        *("does", "doubtless", "even", "eventually", "except", "false", "for", "formerly"),
        *("fortunately", "from", "generally", "given", "granted", "guess", "had", "hardly", "has"),
        *("have", "hence", "hopefully", "however", "hypothetically", "ideally", "imagine", "in"),
        *("is", "just", "lately", "lest", "let", "like", "likely", "meanwhile", "might", "must"),
        *("nearly", "never", "nor", "normally", "not", "nowadays", "obviously", "occasionally"),
        *("often", "on", "once", "only", "or", "ostensibly", "otherwise", "plainly", "plausibly"),
        *("possibly", "presumably", "presume", "presuming", "pretend", "previously", "probably"),
        *("provided", "providing", "purportedly", "rarely", "recently", "reportedly", "rumor"),
        *("rumour", "sadly", "say", "scarcely", "seemingly", "seldom", "shall", "should"),
        *("since", "so", "sometimes", "soon", "still", "suppose", "supposedly", "supposing"),
        *("surely", "than", "then", "theoretically", "therefore", "think", "thus", "till", "to"),
        *("true", "unfortunately", "unlike", "unlikely", "until", "untrue", "usually", "was"),
        *("were", "whatever", "whenever", "whereas", "wherever", "whether", "whichever"),
        *("whose", "wish", "with", "without", "would", "wrong", "yes", "yet"),
    )
)
"""Words that qualify the sentence if a name follows: "Suppose Anna lives in Oslo"."""


class _Pattern(NamedTuple):
    """A form of sentences; if ``predicate`` is empty, the role in the sentence gives it."""

    form: re.Pattern[str]
    predicate: str


def _pattern(between: str, predicate: str, *, when: str) -> _Pattern:
    """Return the form "NAME between NAME", with an optional date after the word ``when``."""
    dated = rf"(?: {when} (?P<when>{_DATE}))"
    dated += "" if predicate == _MOVED else "?"
    end = _END_MOVED if predicate == _MOVED else _END
    return _Pattern(
        re.compile(rf"(?P<subject>{_NAME}) {between} (?P<object>{_NAME}){dated}{end}"), predicate
    )


_MOVED: Final = "moved to"

_PATTERNS: Final = (
    _pattern(r"lives in", "lives in", when="since"),
    _pattern(r"works (?:at|for)", "works at", when="since"),
    _pattern(r"is married to", "is married to", when="since"),
    _pattern(r"is located in", "is located in", when="since"),
    _pattern(rf"is (?:the|a|an) (?P<role>{_ROLE}) of", "", when="since"),
    _pattern(r"moved to", _MOVED, when="in"),
)

_ABBREVIATION: Final = re.compile(r"(?:^|\s)(?:Dr|Mr|Mrs|Ms|Prof|St)\.$")
_SENTENCE_END: Final = re.compile(r"[.!?](?= |$)|$")
_PARAGRAPH: Final = re.compile(
    r"\S[^\n]*(?:\n(?![ \t]*\n|[ \t]*(?:#{1,6}|[-*+>]|\d{1,3}[.)]) )[^\n]+)*"
)
"""Lines up to a blank line, or to a line with a Markdown mark."""
_MARKS: Final = re.compile(r"(?:#{1,6}|[-*+>]|\d{1,3}[.)]) +")
"""A Markdown mark at the start of a line."""


class EnglishFacts:
    """Finds homes, employers, marriages, locations and roles in English sentences.

    >>> text = "Anna lives in Paris since 2020. Bob moved to New York in May 2024."
    >>> [str(fact) for fact in EnglishFacts().extract(text)]
    ['Anna · lives in · Paris', 'Bob · lives in · New York']
    """

    name = "english-facts"
    version = "2"

    def extract(self, text: str) -> Iterator[Candidate]:
        """Yield the facts in a text, in the order of the text.

        Args:
            text: The text to read.
        """
        last_start = size = 0
        for start, sentence in _sentences(text):
            statement = _read(sentence)
            if statement is None:
                continue
            # Count UTF-8 bytes of the original text, from the sentence before.
            size, last_start = size + len(text[last_start:start].encode()), start
            yield Candidate(
                statement.subject,
                "lives in" if statement.predicate == _MOVED else statement.predicate,
                Entity(statement.object),
                start=size,
                end=size + len(text[start : start + statement.end].encode()),
                confidence=_CONFIDENCE_MOVED if statement.predicate == _MOVED else _CONFIDENCE,
                valid_from=statement.when,
            )


class _Said(NamedTuple):
    """The fact in a sentence; ``end`` is the index after its last character."""

    subject: str
    predicate: str
    object: str
    end: int
    when: datetime | None


def _read(sentence: str) -> _Said | None:
    if sentence.rstrip().endswith("?"):
        return None
    for form, predicate in _PATTERNS:
        match = form.match(sentence)
        if match is None or not _is_name(match["subject"]):
            continue
        if _CHANGES.search(sentence, match.end()):
            return None
        date_text = match["when"]
        when = None if date_text is None else _day(date_text)
        if date_text is not None and when is None:
            return None
        name = predicate or f"is {match['role']} of"
        return _Said(match["subject"], name, match["object"], match.end(), when)
    return None


def _is_name(words: str) -> bool:
    """Return whether capitalised words at the start of a sentence are a name."""
    first, *rest = words.lower().split()
    return first not in _NOT_NAMES and not (rest and first in _NOT_FIRST_NAMES)


def _sentences(text: str) -> Iterator[tuple[int, str]]:
    """Yield each sentence with its first character's index; white space becomes blanks."""
    for paragraph in _PARAGRAPH.finditer(text):
        words = re.sub(r"\s", " ", paragraph[0])
        marks = _MARKS.match(words)
        start = 0 if marks is None else marks.end()
        for match in _SENTENCE_END.finditer(words):
            end = match.end()
            if end - start <= _SENTENCE_MAX:
                sentence = words[start:end]
                if _ABBREVIATION.search(sentence):
                    continue
                stripped = sentence.lstrip()
                yield paragraph.start() + end - len(stripped), stripped
            start = end


def _day(text: str) -> datetime | None:
    """Return the first instant of a year, month or day in UTC; None if no such day exists."""
    numbers = [int(digits) for digits in re.findall(r"\d+", text)]
    month_name = re.search(r"[A-Z][a-z]+", text)
    if month_name is None:
        year, month, day = (*numbers, 1, 1)[:3]
    else:
        month = _MONTHS.index(month_name[0].lower()) + 1
        *days, year = numbers
        day = days[0] if days else 1
    try:
        first = date(year, month, day)
    except ValueError:
        return None
    return datetime(first.year, first.month, first.day, tzinfo=UTC)
