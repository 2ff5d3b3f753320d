"""Duplicates: texts that repeat another text.

Owns the rule. Two texts are equal if they differ only in runs of whitespace and in the case of A to
Z; Unicode versions disagree about the case of other letters. Two texts are close if the Jaccard
coefficient of their shingles (shared over all) is at least a share; a shingle is four words in a
row (A. Broder, *On the resemblance and containment of documents*, SEQUENCES 1997; four words and
0.9 as in C. Manning, P. Raghavan and H. Schütze, *Introduction to Information Retrieval*, 2008,
19.6). Three empty words pad each end, so that an added word changes seven shingles at any place. If
these seven alone bring a text below the share (at 0.9, a text below 63 words), only equal texts are
duplicates: a note is never dropped for another that names a different port. The same holds for
texts over 65,536 characters.
"""

import math
from functools import cache
from typing import Final, TypeAlias

from cerata.projections.fulltext.analyzer import words

SHINGLE_WORDS: Final = 4

SIZE_MAX: Final = 65_536
"""Characters of the longest text with shingles, which take a hundred times its size."""

Shingles: TypeAlias = frozenset[tuple[bytes, ...]]

_END: Final = [b""] * (SHINGLE_WORDS - 1)


class Duplicates:
    """The texts of the entries in a context.

    - ``equal`` has the id of the first entry by its `folded` text.

    Args:
        share: least Jaccard coefficient of a close text, above 0; 1 admits equal texts only
    """

    def __init__(self, share: float) -> None:
        self.equal: dict[bytes, int] = {}
        self._share = share
        self._least = _least_shingles(share)
        self._close: list[tuple[int, Shingles]] = []

    def add(self, entry: int, text: str, folded_text: bytes) -> int | None:
        """Add the text of an entry, or return the first entry whose text is close.

        Cost: for a long text its shingles, and a comparison with each long text.
        """
        size = len(text)
        # In scripts without spaces each character is a word, and so is each pair.
        most = (size + 1) // 2 if text.isascii() else 2 * size
        if size <= SIZE_MAX and most + len(_END) >= self._least:
            run = words(text)
            # Some shingles may be equal.
            if len(run) + len(_END) >= self._least:
                close = self._close_to(entry, _shingles_of(run))
                if close is not None:
                    return close
        self.equal.setdefault(folded_text, entry)
        return None

    def _close_to(self, entry: int, shingles_of_text: Shingles) -> int | None:
        """Add the shingles of an entry, or return the first entry with close ones."""
        if len(shingles_of_text) < self._least:
            return None
        for close, shingles_of_entry in self._close:
            if resemblance(shingles_of_text, shingles_of_entry) >= self._share:
                return close
        self._close.append((entry, shingles_of_text))
        return None


@cache
def _least_shingles(share: float) -> float:
    """Return the least count of shingles of a text that is close to itself with a word added."""
    if share == 1:
        return math.inf
    count = max(0, int((SHINGLE_WORDS * share + len(_END)) / (1 - share)) - 1)
    while (count - len(_END)) / (count + SHINGLE_WORDS) < share:
        count += 1
    return count


def shingles(text: str) -> Shingles:
    """Return each run of four words of a text, folded; empty words pad both ends."""
    return _shingles_of(words(text))


def _shingles_of(words_of_text: list[bytes]) -> Shingles:
    run = [*_END, *words_of_text, *_END]
    return frozenset(zip(run, run[1:], run[2:], run[3:], strict=False))


def resemblance(one: Shingles, other: Shingles) -> float:
    """Return the Jaccard coefficient of two sets of shingles, from 0 to 1.

    >>> resemblance(shingles("the port is 1"), shingles("The port is 2."))
    0.2727272727272727
    """
    shared = len(one & other)
    return shared / (len(one) + len(other) - shared)


def folded(text: str) -> bytes:
    """Return the key that equal texts share."""
    return b" ".join(text.encode().lower().split())
