"""Duplicates: whether a text says again what another one says.

Owns the rule. Two texts are equal if they are, but for runs of whitespace and the case of A to Z;
of other letters Unicode's versions do not agree what their case is. They are close if the Jaccard
coefficient of their shingles, those of both over those of either, is at least a share, where a
shingle is four words in a row (A. Broder, *On the resemblance and containment of documents*,
SEQUENCES 1997; four words and 0.9 as in C. Manning, P. Raghavan and H. Schütze, *Introduction to
Information Retrieval*, 2008, 19.6). Three empty words are put at each end, so that one word more or
less changes seven of the shingles of both wherever it stands. Of texts so short that this alone
makes less than the share, which at 0.9 is below 63 words, only equal ones are duplicates: no note
is dropped for another that names a different port. So it is of texts over 65,536 characters.
"""

from typing import Final, TypeAlias

from cerata.projections.text import words

SHINGLE_WORDS: Final = 4

SIZE_MAX: Final = 65_536
"""Characters of a text that is compared closely: its shingles take a hundred times its size."""

Shingles: TypeAlias = frozenset[tuple[bytes, ...]]

_END: Final = [b""] * (SHINGLE_WORDS - 1)


class Duplicates:
    """The texts that were told, by the ids of their entries; ``share`` 1 is for equal ones."""

    def __init__(self, share: float) -> None:
        self._share = share
        self._equal: dict[bytes, int] = {}
        self._close: list[tuple[int, Shingles]] = []

    def equal_to(self, text: str) -> int | None:
        """Return the entry whose text is equal, or None."""
        return self._equal.get(_folded(text))

    def close_to(self, text: str) -> int | None:
        """Return the first entry whose text is close, or None.

        Cost: where the text is long, its shingles, and a comparison with each long one.
        """
        own = self._shingles(text)
        close = (one for one, theirs in self._close if resemblance(own, theirs) >= self._share)
        return next(close, None) if own else None

    def add(self, entry: int, text: str) -> None:
        """Say that an entry was told."""
        self._equal.setdefault(_folded(text), entry)
        if own := self._shingles(text):
            self._close.append((entry, own))

    def _shingles(self, text: str) -> Shingles:
        """Return those of a text that may be close to another without being equal, else none."""
        # Of scripts without spaces a character is a word, and so is each pair.
        if len(text) > SIZE_MAX or not self._is_enough(2 * len(text) + len(_END)):
            return frozenset()
        own = shingles(text)
        return own if self._is_enough(len(own)) else frozenset()

    def _is_enough(self, count: int) -> bool:
        """Tell whether so many shingles are close to those of the text with one word more."""
        return (count - SHINGLE_WORDS + 1) / (count + SHINGLE_WORDS) >= self._share


def shingles(text: str) -> Shingles:
    """Return every four words in a row of a text, folded; beyond its ends stand empty ones."""
    run = [*_END, *words(text), *_END]
    return frozenset(zip(*(run[start:] for start in range(SHINGLE_WORDS)), strict=False))


def resemblance(one: Shingles, other: Shingles) -> float:
    """Return the Jaccard coefficient of two sets of shingles, from 0 to 1.

    >>> resemblance(shingles("the port is 1"), shingles("The port is 2."))
    0.2727272727272727
    """
    shared = len(one & other)
    return shared / (len(one) + len(other) - shared)


def _folded(text: str) -> bytes:
    return b" ".join(text.encode().lower().split())
