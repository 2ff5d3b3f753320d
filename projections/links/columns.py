"""The columns of links between facts: births, repeats and closings.

Owns the effect columns in order of seq, and the derived columns that index links. The fold in
`projection` decides the rows to append; `reader` reads.
"""

from collections.abc import Sequence
from enum import IntEnum
from typing import Final, NamedTuple, Self

import numpy as np

from cerata.engine.events import Scope

from ..columnar.columns import U64, Columns, place_of
from ..columnar.hash_index import HashIndex
from ..columnar.scopes import ScopeNames
from ..columnar.tables import ClosableColumns, Table


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
