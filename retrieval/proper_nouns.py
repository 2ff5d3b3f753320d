"""Proper nouns of a question: its capitalised words besides words of time.

Owns the rule, for English: a word with a capital that does not begin a sentence, and is no stop
word, month or weekday. A question in capitals alone has none. Pure: equal on every machine.
"""

from typing import Final

from cerata.projections.fulltext.analyzer import term_of, word_places

_OF_TIMES: Final = frozenset(
    (
        *("january", "february", "march", "april", "may", "june", "july", "august"),
        *("september", "october", "november", "december"),
        *("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"),
    )
)
_OPENING: Final = " \t\n\"'\u201c\u2018("
_SENTENCE_ENDS: Final = (".", "?", "!", ":")


def proper_nouns(question: str) -> tuple[str, ...]:
    """Return the distinct terms of the proper nouns of a question, in order.

    >>> proper_nouns("When did Mina see Rome and the Prado in May?")
    ('mina', 'rome', 'prado')
    """
    if question.isupper():
        return ()
    nouns: dict[str, None] = {}
    for word, start, end in word_places(question):
        before = question[:start].rstrip(_OPENING)
        begins = not before or before.endswith(_SENTENCE_ENDS)
        if begins or end - start == 1 or not question[start].isupper() or word in _OF_TIMES:
            continue
        if (term := term_of(word.encode())) is not None:
            nouns[term.decode()] = None
    return tuple(nouns)
