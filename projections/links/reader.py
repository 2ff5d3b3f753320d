"""Links as of any event: the reader of the columns that `links` folds.

Owns the set of links that hold at seq n within a scope, and look-ups of links by fact and by
target. Leaves out their consequences for facts (`labelling`).
"""

from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import Final, NamedTuple, Self

import numpy as np

from cerata.engine.events import Scope

from ..columnar.columns import I64, U64, Columns, distinct, place_of, rows_up_to
from ..columnar.hash_index import HashIndex
from ..columnar.scopes import Reach, ScopeNames, tenant_in
from ..columnar.tables import ClosableColumns, Table

# --- The columns of links between facts: births, repeats and closings -----------------------------
#
# The fold in `projection` decides the rows to append; `reader` reads.


class LinkKind(IntEnum):
    """The relation of a fact to the target of its link. On disk: never renumber."""

    ASSUMES = 1
    CONTRADICTS = 2
    DEPENDS_ON = 3
    DERIVED_FROM = 4
    GENERATED_FROM = 5
    INVALIDATES = 6
    SUPERSEDES = 7
    SUPPORTS = 8
    VALIDATED_BY = 9


LINK_KINDS: Final = {kind.name.lower(): kind for kind in LinkKind}
"""The kinds by their names in events."""

REQUIRING: Final = frozenset(
    (LinkKind.ASSUMES, LinkKind.DEPENDS_ON, LinkKind.DERIVED_FROM, LinkKind.GENERATED_FROM)
)
"""A fact with such a link is `STANDS` only if the target is."""

ATTACKING: Final = frozenset((LinkKind.INVALIDATES, LinkKind.SUPERSEDES))
"""The target of such a link is invalid if the fact is `STANDS`."""

TO_FRAMES: Final = frozenset(
    (LinkKind.DEPENDS_ON, LinkKind.DERIVED_FROM, LinkKind.GENERATED_FROM, LinkKind.VALIDATED_BY)
)
"""The target of such a link may be a frame."""


class LinkAnomaly(IntEnum):
    """A reason why the fold skips an event. On disk: never renumber."""

    ERASED = 1
    """The payload was erased, so its content is unknown."""
    UNKNOWN_REFERENCE = 2
    """The event names no earlier event, or closes no link."""
    ALREADY_CLOSED = 3
    """The event closes a closed link."""
    NO_LINK = 4
    """The link has an unknown kind, its fact as target, no target, or two targets."""


class LinkBirth(NamedTuple):
    """A birth: a row of `LinkColumns.births`."""

    seq: int
    recorded: int
    scope: int
    fact: int
    kind: int
    target: int
    is_frame: int

    @property
    def identity(self) -> tuple[int, ...]:
        """Scope, fact, kind and target; two links with equal identities are the same link."""
        return self[2:]


class LinkColumns(ClosableColumns):
    """Every column of the links fold, appended by a single thread.

    - Row r of all birth columns is a link; ``seq`` ascends with r.
    """

    def __init__(self) -> None:
        self.scopes = ScopeNames()
        births = Table("links", strict=True)
        self.seq = births.seq
        self.recorded = births.column("recorded", np.int64)
        self.scope = births.column("scope", np.uint32, (1, self.scopes))
        self.fact = births.column("fact", np.uint64)
        self.kind = births.column("kind", np.uint8, (1, max(LinkKind)))
        self.target = births.column("target", np.uint64)
        self.is_frame = births.column("is_frame", np.uint8, (0, 1))
        self.repeats = Table("repeats", strict=True)
        self.repeat_row = self.repeats.column("row", np.uint32, (0, births))
        closings = Table("endings", strict=True)
        self.closing_recorded = closings.column("recorded", np.int64)
        self.closing_row = closings.column("row", np.uint32, (0, births))
        self.anomalies = Table("oddities", strict=True)
        self.anomaly = self.anomalies.column("what", np.uint8)
        tables = (births, self.repeats, closings, self.anomalies)
        super().__init__(births, closings, self.scopes, *tables)
        # Derived.
        self.by_fact = HashIndex()
        self.by_target = HashIndex()

    # --- appending -------------------------------------------------------------------------------

    def scope_code(self, scope: Scope, seq: int) -> int:
        """Return the code of a scope; the order of its names does not matter."""
        return self.scopes.scope_code(scope, seq)

    def share(self, columns: Self, through: int) -> None:
        """Become other columns up to event ``through``; see `share_parts`."""
        self.share_parts(columns, through)
        rows = len(self.births)
        self.by_fact.share(columns.by_fact, rows)
        self.by_target.share(columns.by_target, rows)

    # --- reading ---------------------------------------------------------------------------------

    def row_of(self, seq: int) -> int | None:
        """Return the row of the link that event ``seq`` created or repeated, or None."""
        row = place_of(self.seq.view(), seq)
        if row is not None:
            return row
        place = place_of(self.repeats.seq.view(), seq)
        return None if place is None else self.repeat_row.item(place)

    def rows_alike(self, birth: LinkBirth) -> list[int]:
        """Return the rows with the identity of a birth, ascending."""
        rows = self.by_fact.find(self.fact.view(), birth.fact)
        return [row for row in rows if self.births.row(row)[2:] == birth.identity]

    def birth(self, row: int) -> LinkBirth:
        return LinkBirth(*self.births.row(row))

    # --- effects ---------------------------------------------------------------------------------

    def load(self, columns: Columns, after: int, through: int) -> None:
        """Append the effects in a chunk. Raises `Corrupt` and then leaves the state unchanged."""
        self.take(self.read(columns, after, through))

    @property
    def size_bytes(self) -> int:
        """Memory of columns and indexes, without names."""
        return self.tables_size_bytes + self.by_fact.size_bytes + self.by_target.size_bytes


def keys_of(ids: Sequence[int]) -> U64:
    """Return ids in the dtype of the columns of links."""
    return np.array(ids, np.uint64)


# --- Links as of any event: the reader of the columns that `links` folds --------------------------


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
