"""The weight of a term: the part of a word that it is.

    weight_of("index")  1      a word
    weight_of("東京")    1/3    one of the three terms of 東京: both letters, and their pair

Owns the terms that are a part of a word: those of scripts that are cut into letters and pairs, and
those that the analyzer adds beside a word, which begin with `BESIDE`. Without the weight such a
word would count three times. A weight multiplies the idf of a term, everywhere (`scoring`). Leaves
out which terms a word has (`analyzer`).
"""

from bisect import bisect_right
from functools import cache
from typing import Final

from . import unicode_tables as tables

BESIDE: Final = "\u00b4"
"""The first character of a term beside a word, such as a word with its accents. No word has it:
the fold of text turns it into a space."""

PART_WEIGHT: Final = 1 / 3
"""The weight of a part: about three terms of a word match where the word does."""


def weight_of(term: str) -> float:
    """Return the weight of a term: 1, or `PART_WEIGHT` for a part of a word.

    >>> weight_of("index"), weight_of(BESIDE + "hà") == weight_of("東") == PART_WEIGHT
    (1.0, True)
    """
    first = term[:1]
    if first.isascii():
        return 1.0
    is_part = first == BESIDE or bisect_right(_unspaced(), ord(first)) % 2 == 1
    return PART_WEIGHT if is_part else 1.0


@cache
def _unspaced() -> tuple[int, ...]:
    """Return the starts and ends (one past) of the scripts that are cut into letters."""
    bounds: list[int] = []
    for item in tables.UNSPACED.split():
        first, last = item.split("-")
        bounds += (int(first, 16), int(last, 16) + 1)
    return tuple(bounds)
