"""Weights of the tokens of a question: the idf of the word that each token is of.

A question has many tokens that every text matches: "does", "the", the question mark. The sum of
their best matches would decide the order. Leaves out the idf itself
(`cerata.projections.fulltext.bm25`) and the comparison of tokens.
"""

from collections.abc import Callable, Sequence
from typing import Final

from cerata.projections.fulltext.analyzer import term_of, word_places

STOP_WORD_WEIGHT: Final = 1.0
"""The weight of a word that is not in the index: the idf of a word that every third text has."""


def token_weights(
    text: str, spans: Sequence[tuple[int, int] | None], idf: Callable[[str], float]
) -> list[float]:
    """Return a weight for each token, 0 for one of no word.

    A token of several words, as of a script without spaces, has the largest of their weights.

    Args:
        text: The question.
        spans: The characters [start, end) of each token; None for a special token.
        idf: Returns the idf of a term.

    >>> token_weights("the mill?", [(0, 3), (4, 8), (8, 9), None], lambda term: 2.5)
    [1.0, 2.5, 0.0, 0.0]
    """
    words: list[tuple[int, int, float]] = []
    known: dict[bytes, float] = {}
    for word, start, end in word_places(text):
        term = term_of(word.encode())
        if term is not None and term not in known:
            known[term] = idf(term.decode())
        words.append((start, end, STOP_WORD_WEIGHT if term is None else known[term]))
    return [
        max(
            (weight for start, end, weight in words if start < span[1] and span[0] < end),
            default=0.0,
        )
        if span is not None
        else 0.0
        for span in spans
    ]
