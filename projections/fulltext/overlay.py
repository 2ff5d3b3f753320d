"""Full text of two folds read as one: the log's below, that of an open transaction above.

Owns the join. The upper fold, built from the drafts of a transaction alone, numbers rows and terms
from 0. In the join its rows follow those of the lower fold, and its terms have the lower fold's
ids, or the next free ids in order. So a search of both returns the same results as after the drafts
are appended, and the lower state is shared, not copied.
"""

from collections.abc import Sequence

import numpy as np

from ..columnar.columns import U32, Column, concatenate
from . import postings
from .bm25 import Fulltext
from .fields import FieldLengths
from .vocabulary import VocabularyView


class JointTerms:
    """The ids of an upper fold's terms in the joint vocabulary; grows with the fold.

    - An id in ``ids`` never changes; new terms get ids in order of first occurrence.
    """

    def __init__(self, lower: VocabularyView) -> None:
        self.lower = lower
        self.ids = Column(np.uint32)

    def extend(self, upper: VocabularyView) -> None:
        """Assign ids to the upper fold's new terms; about 10 us each."""
        lower_count = len(self.lower)
        following = lower_count + int(np.count_nonzero(self.ids.view() >= lower_count))
        added: list[int] = []
        for term_id in range(len(self.ids), len(upper)):
            lower_id = self.lower.find(upper.text(term_id))
            added.append(following if lower_id is None else lower_id)
            following += lower_id is None
        # Append in a single call, so that an interrupt leaves the ids unchanged.
        self.ids.extend(added)


class LayeredVocabulary(VocabularyView):
    """Two vocabularies read as one; immutable, for any thread."""

    __slots__ = ("_added", "_count", "_ids", "_lower", "_upper", "_upper_rows")

    def __init__(self, terms: JointTerms, upper: VocabularyView, upper_rows: int) -> None:
        self._lower = terms.lower
        self._upper = upper
        self._upper_rows = upper_rows
        self._ids = terms.ids.view()
        # The upper terms that the lower vocabulary lacks, in the order of their joint ids.
        self._added = np.flatnonzero(self._ids >= len(self._lower))

    def __len__(self) -> int:
        return len(self._lower) + len(self._added)

    def count_at(self, rows: int) -> int:
        return len(self)

    def find(self, term: str, count: int | None = None) -> int | None:
        lower_id = self._lower.find(term)
        if lower_id is not None:
            return lower_id
        place = self._upper.find(term)
        return None if place is None or place >= len(self._ids) else int(self._ids[place])

    def text(self, term: int) -> str:
        lower_count = len(self._lower)
        return (
            self._lower.text(term)
            if term < lower_count
            else self._upper.text(int(self._added[term - lower_count]))
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
    """Return the first ``rows`` rows of ``lower``, followed by all rows of ``upper``.

    Cost: O(tokens of ``upper``), and a copy of the lengths: 12 bytes a row.
    """
    terms.extend(upper.vocabulary)
    count = len(upper.lengths.total)
    piece = postings.gather(upper.pieces, 0, count)
    stream = terms.ids.view()[postings.stream_of(piece, upper.lengths.total)]
    below = [
        postings.cut(part, part.first_row, min(part.end_row, rows))
        for part in lower.pieces
        if part.first_row < rows
    ]
    return Fulltext(
        (*below, postings.invert(stream, upper.lengths, rows)),
        LayeredVocabulary(terms, upper.vocabulary, count),
        _end_to_end([lower.lengths.part(0, rows), upper.lengths]),
        upper.seq,
    )


def _end_to_end(parts: Sequence[FieldLengths]) -> FieldLengths:
    def column(name: str) -> U32:
        return concatenate([getattr(part, name) for part in parts], np.uint32)

    return FieldLengths(column("total"), column("title"), column("tags"))
