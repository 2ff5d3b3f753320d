"""Links as of any event: the reader of the columns that `links` folds.

Owns the set of links that hold at seq n within a scope, and look-ups of links by fact and by
target. Leaves out their consequences for facts (`labelling`).
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from cerata.engine.events import Scope

from ..columnar.columns import I64, U64, distinct, rows_up_to
from ..columnar.scopes import Reach, tenant_in
from .columns import LinkBirth, LinkColumns, LinkKind, keys_of


class LinkRow(NamedTuple):
    """A link: the seq of its event, its tenant, and its ends as in the event."""

    row: int
    seq: int
    tenant: str
    fact: int
    kind: LinkKind
    target: int
    is_frame: bool


class Links:
    """Reads links at any n up to ``seq``. Immutable; safe for threads during a fold."""

    def __init__(self, columns: LinkColumns, seq: int) -> None:
        self.seq = seq
        self.columns = columns
        self.seqs: I64 = columns.seq.view()
        self.closing_seqs: I64 = columns.closings.seq.view()

    @property
    def is_empty(self) -> bool:
        """True if no event up to ``seq`` created a link."""
        return not len(self.seqs)


class LinksAt:
    """The links at seq n; immutable, for any thread."""

    def __init__(self, links: Links, n: int, reach: Reach | None = None) -> None:
        """Read the links at event ``n`` that ``reach`` admits; None admits all."""
        self.n = n
        self._links = links
        self._columns = links.columns
        self._rows = rows_up_to(links.seqs, n) if len(links.seqs) else 0
        self._closings = rows_up_to(links.closing_seqs, n) if len(links.closing_seqs) else 0
        self._scopes = links.columns.scopes.admitted(reach)

    def __len__(self) -> int:
        """Return the number of links created by n, in all scopes, closed links included."""
        return self._rows

    @property
    def ends(self) -> U64:
        """The ids of all facts and targets linked by n, ascending, each once."""
        columns = self._columns
        ends = (columns.fact.view()[: self._rows], columns.target.view()[: self._rows])
        return distinct(np.concatenate(ends))

    def of(self, facts: Sequence[int]) -> list[LinkRow]:
        """Return the links that hold from facts with these ids, in order of seq."""
        rows = self._columns.by_fact.find_all(self._columns.fact.view(), keys_of(facts))
        return self._holding(rows)

    def to(self, targets: Sequence[int]) -> list[LinkRow]:
        """Return the links that hold to facts or frames with these ids, in order of seq."""
        rows = self._columns.by_target.find_all(self._columns.target.view(), keys_of(targets))
        return self._holding(rows)

    def all_links(self, *, closed: bool = False) -> list[LinkRow]:
        """Return all links that hold, in order of seq; with ``closed`` also closed links."""
        rows = range(self._rows)
        return [self._row(row) for row in rows if self._is_seen(row, closed=closed)]

    def link(self, seq: int) -> LinkRow | None:
        """Return the link that an event up to n created or repeated, closed or not, or None."""
        row = self._columns.row_of(seq) if 0 < seq <= self.n else None
        return self._row(row) if row is not None and self._is_seen(row, closed=True) else None

    def _holding(self, rows: Iterable[int]) -> list[LinkRow]:
        return [self._row(row) for row in sorted(rows) if self._is_seen(row, closed=False)]

    def _is_seen(self, row: int, *, closed: bool) -> bool:
        """Return whether a row is within the scope and, unless ``closed``, holds at n.

        A closing from any scope counts, as with a retraction.
        """
        if row >= self._rows or not (closed or self.holds(row)):
            return False
        return self._scopes is None or int(self._columns.scope.view()[row]) in self._scopes

    def holds(self, row: int) -> bool:
        """Return whether a row was not closed by n."""
        return bool(self._columns.closed_at.view()[row] >= self._closings)

    def _row(self, row: int) -> LinkRow:
        birth = self._columns.birth(row)
        return LinkRow(
            row,
            birth.seq,
            tenant_in(self._columns.scopes.scope(birth.scope)),
            birth.fact,
            LinkKind(birth.kind),
            birth.target,
            bool(birth.is_frame),
        )

    def events_of(self, row: int) -> list[int]:
        """Return the seqs by n that created and repeated a row, ascending; a pass over repeats."""
        columns = self._columns
        repeats = columns.repeats.seq.view()
        # The columns may be longer than the state at n.
        count = rows_up_to(repeats, self.n) if len(repeats) else 0
        places = np.flatnonzero(columns.repeat_row.view()[:count] == row)
        return [self.birth(row).seq, *repeats[places].tolist()]

    def birth(self, row: int) -> LinkBirth:
        """Return the birth of a row."""
        return self._columns.birth(row)

    def scope_of(self, row: int) -> Scope:
        return self._columns.scopes.scope(self.birth(row).scope)

    def closing_of(self, row: int) -> tuple[int, int] | None:
        """Return recorded time and seq of a row's closing, or None if the row holds at n."""
        if self.holds(row):
            return None
        place = int(self._columns.closed_at.view()[row])
        when = int(self._columns.closing_recorded.view()[place])
        return when, int(self._links.closing_seqs[place])
