"""The words of facts: postings of subjects, predicates and objects, and their ranking.

Owns the text of a fact, and the mapping from facts to rows of words. Leaves out the fold of
postings (`fulltext.projection`), ranking (`fulltext.bm25`) and facts (`reader`). The text is
subject, predicate and object as asserted, without names that a merge or an alias adds.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar, Final, NamedTuple

import numpy as np

from cerata.engine.events import AssertFact, Erased, EventBody

from ..columnar.columns import I64, Mask, concatenate, rows_up_to
from ..columnar.times import to_datetime
from ..fulltext.analyzer import terms_of
from ..fulltext.bm25 import Fulltext
from ..fulltext.fields import PART_COUNT, Field
from ..fulltext.occurrences import Occurrences
from ..fulltext.projection import FulltextProjection
from .objects import ObjectKind, kind_of_value
from .reader import FactsAt

_COMMON_MIN: Final = 16
"""A word in at most this many facts is never common."""

_COMMON_PART: Final = 50
"""A word in more than one fact in this many is common: alone it selects no fact."""


class FactTextProjection(FulltextProjection):
    """Folds assertFact into postings."""

    name: ClassVar[str] = "facttext"
    version: ClassVar[int] = 5
    row_type: ClassVar[str] = AssertFact.wire_name

    def fact_text(self) -> "FactText":
        """Return an immutable reader of the state at ``seq``; any thread may use it."""
        return FactText(self.snapshot(), self._seqs.view())

    def _searched(self, bodies: Sequence[EventBody | Erased]) -> list[str]:
        parts = [""] * (PART_COUNT * len(bodies))
        parts[Field.TEXT :: PART_COUNT] = map(_text_of, bodies)
        return parts


def _text_of(body: EventBody | Erased) -> str:
    if not isinstance(body, AssertFact):
        return ""
    kind = kind_of_value(body.object_kind, body.object)
    return f"{body.subject} {body.predicate} {_words_of(kind, body.object)}"


def _words_of(kind: ObjectKind | None, value: object) -> str:
    """Return the text of an object: the date of a timestamp, nothing for bytes."""
    if kind is None or kind is ObjectKind.BYTES:
        return ""
    if kind is ObjectKind.TIMESTAMP and isinstance(value, int):
        return to_datetime(value).date().isoformat()
    return str(value).lower() if kind is ObjectKind.BOOL else str(value)


class FactText(NamedTuple):
    """The words of facts up to an event; ``seqs`` has the asserting event of each row."""

    fulltext: Fulltext
    seqs: I64

    def view(self, facts: FactsAt) -> "FactTextView":
        """Return the ranking of the known facts of a reader.

        Cost: about 10 ms for 1,000,000 facts; reuse the view for more queries.
        """
        return FactTextView(self, facts)

    def sharing(
        self,
        facts: FactsAt,
        words: Iterable[bytes],
        instant: int | None = None,
        passing: Callable[[I64], I64] | None = None,
    ) -> I64:
        """Return the known rows that share the most of some words, ascending, if that is enough.

        Enough is half of the words, and two unless there is only one. Words that are common among
        the known facts of the reader's scope do not count. With ``instant`` only facts whose stated
        range contains the instant are read; ``passing`` returns the rows that may be returned, and
        changes no statistics. Cost: the postings of the words.
        """
        terms = {*terms_of(words)} - {None}
        parts = self._rows_with(facts, terms, instant)
        if not parts:
            return np.empty(0, np.int64)
        common_min = max(_COMMON_MIN, facts.known_count // _COMMON_PART)
        rare = [rows for rows in parts if len(rows) <= common_min]
        count = len(terms) - len(parts) + len(rare)
        rows, shared = np.unique(concatenate(rare, np.int64), return_counts=True)
        is_enough = shared >= max((count + 1) // 2, min(count, 2))
        rows = rows[is_enough]
        shared = shared[is_enough]
        if passing is not None:
            admitted = np.isin(rows, passing(rows))
            rows = rows[admitted]
            shared = shared[admitted]
        return rows[shared == shared.max()] if len(rows) else rows

    def _rows_with(
        self, facts: FactsAt, terms: Iterable[bytes | None], instant: int | None
    ) -> list[I64]:
        """Return the known rows of facts with each of the terms that occur, in any order."""
        vocabulary = self.fulltext.vocabulary
        rows_end = rows_up_to(self.seqs, facts.n)
        ids = vocabulary.find_each(terms, rows_end)
        if not ids:
            return []
        present = np.array(sorted(ids), np.uint32)
        occurrences = Occurrences(
            self.fulltext.pieces, self.fulltext.lengths, rows_end, self.fulltext.groups
        )
        rows, ends, _ = occurrences.gather(present)
        parts = np.split(self.seqs[rows], ends[:-1])
        return [facts.true_among(facts.born_at(seqs), instant) for seqs in parts]


class FactTextView:
    """Ranks the facts of one state."""

    def __init__(self, text: FactText, facts: FactsAt) -> None:
        # Without repeats up to n, a fact and its words have the same row number.
        count = facts.row_count
        is_same = rows_up_to(text.seqs, facts.n) == count
        born = facts.facts.seqs[:count]
        self._rows: I64 | None = None if is_same else np.searchsorted(text.seqs, born)
        self._ranking = text.fulltext.view(self._spread(facts.shown_mask()))

    def ranked(self, query: str, k: int, among: Mask) -> list[tuple[int, float]]:
        """Return the best rows among ``among`` for a query, with their scores.

        Scores are BM25 over the known facts at n, so later events do not change them.
        """
        hits = self._ranking.search(query, k=k, among=self._spread(among))
        rows = hits.rows if self._rows is None else np.searchsorted(self._rows, hits.rows)
        return list(zip(rows.tolist(), hits.scores.tolist(), strict=True))

    def _spread(self, mask: Mask) -> Mask:
        """Convert a mask over facts to a mask over rows of words."""
        if self._rows is None:
            return mask
        spread = np.zeros(int(self._rows[-1]) + 1 if len(self._rows) else 0, np.bool_)
        spread[self._rows] = mask
        return spread
