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
        self._close: list[tuple[int, Shingles]] = []

    def add(self, entry: int, text: str, folded_text: bytes) -> int | None:
        """Add the text of an entry, or return the first entry whose text is close.

        Cost: for a long text its shingles, and a comparison with each long text.
        """
        shingles_of_text = self._shingles(text)
        if shingles_of_text:
            for close, shingles_of_entry in self._close:
                if resemblance(shingles_of_text, shingles_of_entry) >= self._share:
                    return close
            self._close.append((entry, shingles_of_text))
        self.equal.setdefault(folded_text, entry)
        return None

    def _shingles(self, text: str) -> Shingles | None:
        """Return the shingles of a text that may be close to an unequal one, else None."""
        # In scripts without spaces each character is a word, and so is each pair.
        if len(text) > SIZE_MAX or not self._is_enough(2 * len(text) + len(_END)):
            return None
        run = words(text)
        # Some shingles may be equal.
        if not self._is_enough(len(run) + len(_END)):
            return None
        runs = _shingles_of(run)
        return runs if self._is_enough(len(runs)) else None

    def _is_enough(self, count: int) -> bool:
        """Return whether a text of ``count`` shingles is close to itself with a word added."""
        return (count - SHINGLE_WORDS + 1) / (count + SHINGLE_WORDS) >= self._share


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
