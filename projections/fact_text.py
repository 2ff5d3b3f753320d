"""The words of facts: postings of what each asserts, and the best of them for a question.

Owns which words a fact has, and which rows are current facts; the fold is `fulltext`'s, ranking is
`ranking`'s, facts are `fact_table`'s. A fact's words are those of its subject, predicate and
object; names that it is read under otherwise, by a merge or an alias, are no words of it.
"""

from typing import ClassVar, NamedTuple

import numpy as np

from cerata.engine.events import AssertFact, Erased, EventBody

from .columns import I64, Mask, rows_up_to
from .fact_table import FactsAt
from .fact_values import ObjectKind, kind_of_value
from .fulltext import FulltextProjection
from .ranking import Fulltext
from .times import to_datetime


class FactTextProjection(FulltextProjection):
    """Folds assertFact into postings."""

    name: ClassVar[str] = "facttext"
    version: ClassVar[int] = 1
    row_type: ClassVar[str] = AssertFact.wire_name

    def fact_text(self) -> "FactText":
        """Return an immutable reader of the state at ``seq``; any thread may use it."""
        return FactText(self.snapshot(), self._seqs.view())

    def _searched(self, body: EventBody | Erased) -> tuple[str, str, str]:
        if not isinstance(body, AssertFact):
            return "", "", ""
        kind = kind_of_value(body.object_kind, body.object)
        return f"{body.subject} {body.predicate} {_words_of(kind, body.object)}", "", ""


def _words_of(kind: ObjectKind | None, value: object) -> str:
    """Return the words of an object: of a timestamp its date, of bytes none."""
    if kind is None or kind is ObjectKind.BYTES:
        return ""
    if kind is ObjectKind.TIMESTAMP and isinstance(value, int):
        return to_datetime(value).date().isoformat()
    return str(value).lower() if kind is ObjectKind.BOOL else str(value)


class FactText(NamedTuple):
    """The words of facts up to an event: ``seqs`` has that of each row."""

    fulltext: Fulltext
    seqs: I64

    def view(self, facts: FactsAt) -> "FactTextView":
        """Return the ranking of the facts that are known at an n, within a scope.

        Cost: about 10 ms for 1,000,000 facts; keep it for the next question.
        """
        return FactTextView(self, facts)


class FactTextView:
    """Ranks the facts of one state."""

    def __init__(self, text: FactText, facts: FactsAt) -> None:
        # Where no assertion by n repeats another, a fact's row of words has its own number.
        count = facts.row_count
        is_same = rows_up_to(text.seqs, facts.n) == count
        born = facts.facts.seqs[:count]
        self._rows: I64 | None = None if is_same else np.searchsorted(text.seqs, born)
        self._ranking = text.fulltext.view(self._spread(facts.shown_mask()))

    def ranked(self, query: str, k: int, among: Mask) -> list[tuple[int, float]]:
        """Return the best rows of facts for a question among some of them, with their scores.

        Scores are BM25 over those that are known, so at n they are what they were then.
        """
        found = self._ranking.search(query, k=k, among=self._spread(among))
        rows = found.rows if self._rows is None else np.searchsorted(self._rows, found.rows)
        return list(zip(rows.tolist(), found.scores.tolist(), strict=True))

    def _spread(self, mask: Mask) -> Mask:
        """Return a mask of facts as one of rows of words."""
        if self._rows is None:
            return mask
        found = np.zeros(int(self._rows[-1]) + 1 if len(self._rows) else 0, np.bool_)
        found[self._rows] = mask
        return found
