"""Marks of turns: which answers a turn may give, and whether it asks; a byte for each row.

Owns the bits and their rules, lists for English. A question for a time looks for turns with a word
of time, one for a place for turns with a name, and so on (`cerata.retrieval.ranking.signals`).
They are computed when a frame is folded, so a question reads no texts. Only frames with a role have
marks, because only turns are short enough that a mark means something; other rows are 0.

    TIME       a word of time: a day, a month, "ago", "week", or a year such as 2023
    NUMBER     a word that starts with a digit, or a number in words from two on
    NAME       a capital letter after a small letter or comma and a space: within a sentence
    CAUSE      "because", "since", "so that", "reason" …
    QUESTION   the text ends with a question mark
"""

from collections.abc import Sequence
from enum import IntFlag
from functools import cache
from typing import Final

import numpy as np

from ..columnar.columns import I64, U8, Mask
from .word_table import UNKNOWN, Words, WordTable, cut


class Mark(IntFlag):
    """A property of a turn. On disk: never renumber."""

    TIME = 1
    NUMBER = 2
    NAME = 4
    CAUSE = 8
    QUESTION = 16


MARK_MAX: Final = int(sum(Mark))
"""All bits; a larger byte is damage."""

# Only within the fold: "so" before "that" is a cause.
_SO: Final = 32
_THAT: Final = 64

_TIMES: Final = (
    *("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"),
    # Not "may", which is mostly a verb.
    *("january", "february", "march", "april", "june", "july", "august", "september"),
    *("october", "november", "december"),
    *("yesterday", "today", "tonight", "tomorrow", "ago", "last", "next", "recently", "soon"),
    *("day", "days", "week", "weeks", "weekend", "weekends", "month", "months", "year", "years"),
    *("morning", "afternoon", "evening", "night", "hour", "hours", "minutes"),
    *("spring", "summer", "autumn", "winter", "since", "birthday", "anniversary"),
    *map(str, range(1900, 2100)),
)
_NUMBERS: Final = (
    *("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("twenty", "thirty", "forty", "fifty", "hundred", "hundreds", "thousand", "thousands"),
    *("million", "dozen", "couple", "once", "twice", "both"),
)
_CAUSES: Final = (
    *("because", "cause", "since", "reason", "reasons", "why", "due", "therefore", "thus"),
)
_LISTS: Final = (
    (int(Mark.TIME), _TIMES),
    (int(Mark.NUMBER), _NUMBERS),
    (int(Mark.CAUSE), _CAUSES),
    (_SO, ("so",)),
    (_THAT, ("that",)),
)
_QUESTION_MARKS: Final = ("?", "？", "؟")


def marks_of(texts: Sequence[str], data: bytes, words: Words, spans: I64) -> U8:
    """Return the marks of texts, (texts,) uint8; about 2 us for 40 words.

    Args:
        texts: The texts of turns.
        data: The folded words of the texts and of further fields.
        words: The words of the data.
        spans: The places [start, end) of the words of each text, (texts, 2), ascending.
    """
    questions = np.array([asks(text) for text in texts], np.uint8)
    marks = _of_words(data, words, spans)
    marks |= questions * np.uint8(Mark.QUESTION)
    marks |= _have_names(texts) * np.uint8(Mark.NAME)
    return marks


def asks(text: str) -> bool:
    """Return whether a text ends with a question mark."""
    return text.rstrip().endswith(_QUESTION_MARKS)


def _of_words(data: bytes, words: Words, spans: I64) -> U8:
    if not len(words.starts):
        return np.zeros(len(spans), np.uint8)
    found = _table().find(words.low, words.high)
    # A last word without marks, so that the end of a span is always a place.
    by_word = np.zeros(len(found) + 1, np.uint8)
    by_word[:-1] = np.where(found == UNKNOWN, 0, found)
    first = np.frombuffer(data, np.uint8)[words.starts]
    by_word[:-1] |= _within(first, "0", "9") * np.uint8(Mark.NUMBER)
    goals = (by_word[:-1] & _SO > 0) & (by_word[1:] & _THAT > 0)
    # The word after the last word of a text is of another text.
    goals[spans[spans[:, 0] < spans[:, 1], 1] - 1] = False
    by_word[:-1] |= goals * np.uint8(Mark.CAUSE)
    marks = np.bitwise_or.reduceat(by_word, spans.ravel())[::2] & np.uint8(MARK_MAX)
    return np.where(spans[:, 0] < spans[:, 1], marks, 0).astype(np.uint8)


@cache
def _table() -> WordTable:
    """Return the marks of the listed words."""
    marks: dict[str, int] = {}
    for mark, names in _LISTS:
        for name in names:
            marks[name] = marks.get(name, 0) | mark
    words = cut(" ".join(marks).encode())
    table = WordTable()
    full = table.add(words.low, words.high, np.array([*marks.values()], np.int32))
    assert not full, full
    return table


def _have_names(texts: Sequence[str]) -> Mask:
    """Return which texts have a capital within a sentence; "I" alone is none."""
    parts = [text.encode("utf-8", "replace") for text in texts]
    data = np.frombuffer(b"\n".join((b"\n", *parts, b"\n")), np.uint8)
    ends = np.cumsum([len(part) + 1 for part in parts]) + 2
    small = _within(data, "a", "z")
    before = small | (data == ord(","))
    inner = before[:-3] & (data[1:-2] == ord(" ")) & _within(data[2:-1], "A", "Z") & small[3:]
    counts = np.searchsorted(np.flatnonzero(inner), ends)
    return np.diff(counts, prepend=0) > 0


def _within(data: U8, first: str, last: str) -> Mask:
    return (data >= ord(first)) & (data <= ord(last))
