"""Full text of two folds read as one: what the log holds and, above it, what is not yet in it.

Owns the join: an upper fold, made of the drafts of a transaction alone, has its own rows and its
own numbers for terms; here its rows follow those of the lower one, and its terms have the numbers
that the lower one gives them, or the next ones in order. So every search over both is what it will
be once the drafts are appended, and the lower state is shared, not copied.
"""

from collections.abc import Sequence

import numpy as np

from . import postings
from .columns import U32, Column, concatenate
from .fields import FieldLengths
from .ranking import Fulltext
from .vocabulary import VocabularyView


class JointTerms:
    """The numbers of an upper fold's terms in the joint vocabulary; grows as the fold does.

    - ``ids`` of the first terms never change; new terms are numbered in order of first occurrence.
    """

    def __init__(self, lower: VocabularyView) -> None:
        self.lower = lower
        self.ids = Column(np.uint32)

    def extend(self, upper: VocabularyView) -> None:
        """Number the terms that the upper fold has met since; about 10 us each."""
        known = len(self.lower)
        following = known + int(np.count_nonzero(self.ids.view() >= known))
        added: list[int] = []
        for term_id in range(len(self.ids), len(upper)):
            lower_id = self.lower.find(upper.text(term_id))
            added.append(following if lower_id is None else lower_id)
            following += lower_id is None
        # All at once: an interrupt leaves the numbers of before.
        self.ids.extend(added)


class LayeredVocabulary(VocabularyView):
    """Two vocabularies as one; immutable, for any thread."""

    __slots__ = ("_count", "_ids", "_lower", "_own", "_upper", "_upper_rows")

    def __init__(self, terms: JointTerms, upper: VocabularyView, upper_rows: int) -> None:
        self._lower = terms.lower
        self._upper = upper
        self._upper_rows = upper_rows
        self._ids = terms.ids.view()
        # The upper terms that the lower vocabulary lacks, in the order of their joint numbers.
        self._own = np.flatnonzero(self._ids >= len(self._lower))

    def __len__(self) -> int:
        return len(self._lower) + len(self._own)

    def count_at(self, rows: int) -> int:
        return len(self)

    def find(self, term: str, count: int | None = None) -> int | None:
        found = self._lower.find(term)
        if found is not None:
            return found
        own = self._upper.find(term)
        return None if own is None or own >= len(self._ids) else int(self._ids[own])

    def text(self, term: int) -> str:
        known = len(self._lower)
        return (
            self._lower.text(term)
            if term < known
            else self._upper.text(int(self._own[term - known]))
        )

    def starting_with(self, start: str, rows: int) -> U32:
        return self._joined(
            self._lower.starting_with(start, rows - self._upper_rows),
            self._upper.starting_with(start, self._upper_rows),
        )

    def matching(self, pattern: str, rows: int) -> U32:
        return self._joined(
            self._lower.matching(pattern, rows - self._upper_rows),
            self._upper.matching(pattern, self._upper_rows),
        )

    def _joined(self, lower: U32, upper: U32) -> U32:
        return np.union1d(lower, self._ids[upper[upper < len(self._ids)]]).astype(np.uint32)


def layered(lower: Fulltext, rows: int, upper: Fulltext, terms: JointTerms) -> Fulltext:
    """Return the first ``rows`` rows of one full text, and after them all rows of another.

    Cost: O(tokens of ``upper``), and a copy of the lengths: 12 bytes a row.
    """
    terms.extend(upper.vocabulary)
    count = len(upper.lengths.total)
    piece = postings.gather(upper.pieces, 0, count)
    stream = terms.ids.view()[postings.stream_of(piece, upper.lengths.total)]
    below = [_cut(one, rows) for one in lower.pieces if one.first_row < rows]
    return Fulltext(
        (*below, postings.invert(stream, upper.lengths, rows)),
        LayeredVocabulary(terms, upper.vocabulary, count),
        _end_to_end([lower.lengths.part(0, rows), upper.lengths]),
        upper.seq,
    )


def _cut(piece: postings.Piece, rows: int) -> postings.Piece:
    return postings.cut(piece, piece.first_row, min(piece.end_row, rows))


def _end_to_end(parts: Sequence[FieldLengths]) -> FieldLengths:
    def column(name: str) -> U32:
        return concatenate([getattr(part, name) for part in parts], np.uint32)

    return FieldLengths(column("total"), column("title"), column("tags"))
