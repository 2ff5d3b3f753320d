"""Function words: English words that hold a question together and name nothing.

Owns the list, which decides whether a fact shares enough words with a question to be shown. Scores
do not change: only `cerata.projections.fulltext.english` leaves words out of an index. A word of
another language counts as a word of content, so a question in that language needs more matches.
"""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from cerata.projections.fulltext.analyzer import term_of, word_places

FUNCTION_WORDS: Final = frozenset(
    (
        # Articles, pronouns and determiners.
        *("a", "an", "the", "this", "that", "these", "those", "i", "me", "my", "mine", "myself"),
        *("we", "us", "our", "ours", "you", "your", "yours", "he", "him", "his", "she", "her"),
        *("hers", "it", "its", "they", "them", "their", "theirs", "one", "ones", "some", "any"),
        *("all", "each", "every", "both", "such", "other", "another", "same", "own", "no", "none"),
        *("something", "anything", "everything", "nothing", "someone", "anyone", "everyone"),
        # Questions.
        *("who", "whom", "whose", "what", "which", "where", "when", "why", "how", "whether"),
        # Verbs without content, and the words that ask.
        *("be", "am", "is", "are", "was", "were", "been", "being", "do", "does", "did", "done"),
        *("doing", "have", "has", "had", "having", "can", "could", "will", "would", "shall"),
        *("should", "may", "might", "must", "ought", "let", "get", "gets", "got", "please"),
        *("tell", "say", "said", "know", "known", "show", "give", "find", "list", "explain"),
        *("describe", "remember", "remind", "mean", "means", "thing", "things", "ok", "okay"),
        *("hello", "hi", "hey", "thanks", "thank", "yes"),
        # Prepositions, conjunctions and adverbs.
        *("of", "in", "on", "at", "by", "to", "from", "for", "with", "without", "about", "into"),
        *("onto", "over", "under", "between", "through", "up", "down", "out", "off", "as", "than"),
        *("and", "or", "but", "nor", "if", "then", "else", "so", "because", "while", "also"),
        *("too", "very", "just", "only", "even", "still", "again", "ever", "never", "not", "here"),
        *("there", "now", "much", "many", "more", "most", "few", "less", "least"),
        # The parts of contractions.
        *("s", "t", "d", "m", "ll", "re", "ve", "don", "doesn", "didn", "isn", "aren", "wasn"),
        *(
            "weren",
            "hasn",
            "haven",
            "hadn",
            "won",
            "wouldn",
            "couldn",
            "shouldn",
            "mustn",
            "cannot",
            *("didnt", "doesnt", "dont", "isnt", "arent", "wasnt", "werent", "hasnt", "havent"),
            *("hadnt", "wouldnt", "couldnt", "shouldnt", "mustnt"),
        ),
    )
)
"""Folded words, as `cerata.projections.fulltext.analyzer.words` returns them."""


def content_words(words: Iterable[bytes]) -> list[bytes]:
    """Return the words that are not function words, in order."""
    content: list[bytes] = []
    for word in words:
        if word.decode() not in FUNCTION_WORDS:
            content.append(word)
    return content


# --- Proper nouns of a text: its capitalised words besides words of time --------------------------
#
# A text in capitals alone has none. Pure: equal on every machine.


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
