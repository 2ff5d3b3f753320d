"""Function words: English words that hold a question together and name nothing.

Owns the list, which decides whether a fact shares enough words with a question to be shown. Scores
do not change: only `cerata.projections.fulltext.english` leaves words out of an index. A word of
another language counts as a word of content, so a question in that language needs more matches.
"""

from collections.abc import Iterable
from typing import Final

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
