"""English facts: a small extractor, of a few plain sentences that seldom mean anything else.

Owns the patterns. It would rather find nothing than something wrong: a sentence must begin with a
name, say one of a few verbs in the present, and go on with nothing that could change its meaning.
Leaves out what no pattern can know: who "she" is, irony, and every other language.
"""

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime
from typing import Final, NamedTuple

from .extraction import Candidate
from .fact_values import Entity

_CONFIDENCE: Final = 0.9
_CONFIDENCE_MOVED: Final = 0.7
"""Of who moved somewhere and so lives there: things and firms move too."""

_SENTENCE_MAX: Final = 1_000
"""Characters of a sentence that is read at all: a longer one is none of these."""

_UPPER: Final = "A-ZÀ-ÖØ-ÞĀĂĄĆČĎĐĒĖĘĚĞĢĪĮĶĹĻĽŁŃŅŇŌŐŒŔŘŚŞŠŢŤŪŮŰŲŹŻŽ"
_NAME: Final = (
    rf"(?:(?:Dr|Mr|Mrs|Ms|Prof|St)\. )?[{_UPPER}][\w&-]*"
    rf"(?: (?:(?:&|of|van|von|de|der|da|del|la|le) )*[{_UPPER}][\w&-]*)*"
)
"""Words that begin with a capital, of the Latin alphabet, and small words between them."""

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
"""What may follow: the sentence ends, or goes on with something that changes nothing."""

_END_MOVED: Final = r"(?= *(?:$|[.!;](?: |$)))"
"""What may follow a move: "and back to Paris" is one more."""

_CHANGES: Final = re.compile(
    r"(?:\b(?:not|never|nor|no longer|if|unless|until|whether|perhaps|probably)\b|n['’]t\b"
    r"|\b(?:says?|said|thinks?|thought|believes?|believed|claims?|claimed|hopes?|hoped)\b)",
    re.IGNORECASE,
)
"""What makes a sentence that goes on say something else: negation, condition, and hearsay."""

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
"""Words that begin a sentence with a capital and name nobody."""

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
"""Words that, before a name, say something of the whole sentence: "Suppose Anna lives in Oslo"."""


class _Pattern(NamedTuple):
    """A sentence's form; with ``predicate`` empty it is that of the role that the sentence has."""

    form: re.Pattern[str]
    predicate: str


def _pattern(between: str, predicate: str, *, when: str) -> _Pattern:
    """Return the form "NAME between NAME", and perhaps a date after the word ``when``."""
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
"""Lines up to a blank one, or one that Markdown marks."""
_MARKS: Final = re.compile(r"(?:#{1,6}|[-*+>]|\d{1,3}[.)]) +")
"""What Markdown puts before a line."""


class EnglishFacts:
    """Finds who lives where, works where, is married to whom, and is the what of what.

    >>> text = "Anna lives in Paris since 2020. Bob moved to New York in May 2024."
    >>> [str(found) for found in EnglishFacts().extract(text)]
    ['Anna · lives in · Paris', 'Bob · lives in · New York']
    """

    name = "english-facts"
    version = "2"

    def extract(self, text: str) -> Iterator[Candidate]:
        """Yield the facts that a text says, in the order in which it says them."""
        done = size = 0
        for start, sentence in _sentences(text):
            found = _read(sentence)
            if found is None:
                continue
            # Bytes are those of the text itself, counted on from the sentence before.
            size, done = size + len(text[done:start].encode()), start
            yield Candidate(
                found.subject,
                "lives in" if found.predicate == _MOVED else found.predicate,
                Entity(found.object),
                start=size,
                end=size + len(text[start : start + found.end].encode()),
                confidence=_CONFIDENCE_MOVED if found.predicate == _MOVED else _CONFIDENCE,
                valid_from=found.when,
            )


class _Said(NamedTuple):
    """What a sentence says: names, the character where that ends, and from when it is so."""

    subject: str
    predicate: str
    object: str
    end: int
    when: datetime | None


def _read(sentence: str) -> _Said | None:
    """Return what a sentence says, if it has one of the forms."""
    if sentence.rstrip().endswith("?"):
        return None
    for form, predicate in _PATTERNS:
        found = form.match(sentence)
        if found is None or not _is_name(found["subject"]):
            continue
        if _CHANGES.search(sentence, found.end()):
            return None
        given = found["when"]
        when = None if given is None else _day(given)
        if given is not None and when is None:
            return None
        said = predicate or f"is {found['role']} of"
        return _Said(found["subject"], said, found["object"], found.end(), when)
    return None


def _is_name(words: str) -> bool:
    """Tell whether words with capitals, where a sentence begins, are somebody's name."""
    first, *others = words.lower().split()
    return first not in _NOT_NAMES and not (others and first in _NOT_FIRST_NAMES)


def _sentences(text: str) -> Iterator[tuple[int, str]]:
    """Yield sentences with the character they start at; any white space within one is a space."""
    for paragraph in _PARAGRAPH.finditer(text):
        words = re.sub(r"\s", " ", paragraph[0])
        marks = _MARKS.match(words)
        start = 0 if marks is None else marks.end()
        for found in _SENTENCE_END.finditer(words):
            end = found.end()
            if end - start <= _SENTENCE_MAX:
                sentence = words[start:end]
                if _ABBREVIATION.search(sentence):
                    continue
                stripped = sentence.lstrip()
                yield paragraph.start() + end - len(stripped), stripped
            start = end


def _day(text: str) -> datetime | None:
    """Return the first instant of a year, month or day in UTC; None where there is no such day."""
    numbers = [int(one) for one in re.findall(r"\d+", text)]
    named = re.search(r"[A-Z][a-z]+", text)
    if named is None:
        year, month, day = (*numbers, 1, 1)[:3]
    else:
        month = _MONTHS.index(named[0].lower()) + 1
        *days, year = numbers
        day = days[0] if days else 1
    try:
        first = date(year, month, day)
    except ValueError:
        return None
    return datetime(first.year, first.month, first.day, tzinfo=UTC)
