"""Proper nouns of a text: its capitalised words besides words of time.

Owns the rule, for English: a word with a capital that does not begin a sentence, and is no stop
word, month or weekday. A text in capitals alone has none. Pure: equal on every machine.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from cerata.projections.fulltext.analyzer import term_of, word_places

_OF_TIMES: Final = frozenset(
    (
        *("january", "february", "march", "april", "may", "june", "july", "august"),
        *("september", "october", "november", "december"),
        *("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"),
    )
)
_OPENING: Final = " \t\n\"'\u201c\u2018("
_SENTENCE_ENDS: Final = ".?!:"


class _Capital(NamedTuple):
    """A capitalised word's term, its characters [start, end), and its place in a sentence."""

    term: str
    start: int
    end: int
    begins: bool


def proper_nouns(question: str) -> tuple[str, ...]:
    """Return the distinct terms of the proper nouns of a question, in order.

    >>> proper_nouns("When did Mina see Rome and the Prado in May?")
    ('mina', 'rome', 'prado')
    """
    return tuple(dict.fromkeys(each.term for each in _capitals(question) if not each.begins))


def proper_names(text: str) -> tuple[str, ...]:
    """Return the distinct names in a text as written, in order.

    A name is a run of capitalised words with a space between them. The first word of a sentence
    alone is no name.

    >>> proper_names("Did Anna Rossi call? Anna Bianchi did. Anna too, and Rossi.")
    ('Anna Rossi', 'Anna Bianchi', 'Rossi')
    """
    runs: list[list[_Capital]] = []
    for word in _capitals(text):
        is_next = runs and not word.begins and text[runs[-1][-1].end : word.start] == " "
        if is_next:
            runs[-1].append(word)
        else:
            runs.append([word])
    named = (run for run in runs if not run[-1].begins)
    return tuple(dict.fromkeys(text[run[0].start : run[-1].end] for run in named))


def _capitals(text: str) -> Iterator[_Capital]:
    if text.isupper():
        return
    for word, start, end in word_places(text):
        if end - start == 1 or not text[start].isupper() or word in _OF_TIMES:
            continue
        term = term_of(word.encode())
        if term is not None:
            before = start
            while before and text[before - 1] in _OPENING:
                before -= 1
            begins = not before or text[before - 1] in _SENTENCE_ENDS
            yield _Capital(term.decode(), start, end, begins)
