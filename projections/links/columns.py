"""The columns of links between facts: births, repeats and closings.

Owns the effect columns in order of seq, their place in digests and chunks, and the derived columns
that index links. The fold in `projection` decides the rows to append; `reader` reads.
"""

from collections.abc import Sequence
from enum import IntEnum
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np

from cerata.engine.events import Scope

from ..columnar.columns import U64, AnyColumn, AppendOnly, Columns, place_of
from ..columnar.hash_index import HashIndex
from ..columnar.names import Names
from ..columnar.scopes import ScopeNames
from ..columnar.tables import ClosedRows, Table, check_codes


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


class LinkColumns:
    """Every column of the links fold, appended by a single thread.

    - Row r of all birth columns is a link; ``seq`` ascends with r.
    - A row is closed at most once, after its birth.
    - ``closed_at`` of a row names a closing; a reader of an earlier state ignores a later closing.
    """

    def __init__(self) -> None:
        self.scopes = ScopeNames()
        self.births = Table("links", strict=True)
        self.seq = self.births.seq
        self.recorded = self.births.column("recorded", np.int64)
        self.scope = self.births.column("scope", np.uint32)
        self.fact = self.births.column("fact", np.uint64)
        self.kind = self.births.column("kind", np.uint8)
        self.target = self.births.column("target", np.uint64)
        self.is_frame = self.births.column("is_frame", np.uint8)
        self.repeats = Table("repeats", strict=True)
        self.repeat_row = self.repeats.column("row", np.uint32)
        self.closings = Table("endings", strict=True)
        self.closing_recorded = self.closings.column("recorded", np.int64)
        self.closing_row = self.closings.column("row", np.uint32)
        self.anomalies = Table("oddities", strict=True)
        self.anomaly = self.anomalies.column("what", np.uint8)
        # Derived.
        self.closed_at = ClosedRows()
        self.by_fact = HashIndex()
        self.by_target = HashIndex()

    # --- appending -------------------------------------------------------------------------------

    def scope_code(self, scope: Scope, seq: int) -> int:
        """Return the code of a scope; the order of its names does not matter."""
        return self.scopes.scope_code(scope, seq)

    def bear(self, births: Sequence[LinkBirth]) -> None:
        """Append births of links that hold."""
        self.births.append(births)
        self.closed_at.open(len(births))

    def close(self, rows: Sequence[tuple[int, int, int]]) -> None:
        """Append closings (seq, recorded, row) of links that hold."""
        self.closings.append(rows)
        closed = np.array([row for _, _, row in rows], np.int64)
        self.closed_at.close(closed, len(self.closings) - len(closed))

    def share(self, columns: "LinkColumns", through: int) -> None:
        """Become the links of other columns up to event ``through``, which stay as they are."""
        for table, shared in zip(self._tables, columns._tables, strict=True):
            table.share(shared, through)
        self.scopes.share(columns.scopes, through)
        rows = len(self.births)
        self.closed_at.open(rows)
        self.closed_at.close(self.closing_row.view(), 0)
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

    @cached_property
    def _tables(self) -> tuple[Table, ...]:
        return self.births, self.repeats, self.closings, self.anomalies

    def effects(self, after: int, through: int) -> dict[str, AnyColumn]:
        """Return the canonical columns of events ``after + 1`` … ``through``."""
        effects = self.scopes.effects(after, through)
        for table in self._tables:
            effects.update(table.effects(after, through))
        return effects

    def effect_columns(self) -> list[AppendOnly]:
        """Return the collections that the fold appends to, without derived columns."""
        return self._effect_columns

    @cached_property
    def _effect_columns(self) -> list[AppendOnly]:
        parts: tuple[Table | Names, ...] = (self.scopes, *self._tables)
        return [column for part in parts for column in part.effect_columns()]

    def derived(self, after: int, through: int) -> dict[str, AnyColumn]:
        """Return nothing: `load` computes the derived columns again."""
        return {}

    def load(self, columns: Columns, after: int, through: int) -> None:
        """Append the effects in a chunk. Raises `Corrupt` and then leaves the state unchanged."""
        births, repeats, closings, _ = tables = [
            table.read(columns, after, through) for table in self._tables
        ]
        scopes = self.scopes.read(columns, after, through)
        check_codes(births["scope"], 1, len(self.scopes) + len(scopes.texts))
        check_codes(births["kind"], 1, max(LinkKind))
        check_codes(births["is_frame"], 0, 1)
        rows = len(self.births) + len(births["seq"])
        for column in (repeats["row"], closings["row"]):
            check_codes(column, 0, rows - 1)
        self.closed_at.check(self.seq.view(), births["seq"], closings["seq"], closings["row"])
        self.scopes.load(scopes)
        for table, loaded in zip(self._tables, tables, strict=True):
            table.load(loaded)
        self.closed_at.open(len(births["seq"]))
        self.closed_at.close(closings["row"], len(self.closings) - len(closings["row"]))

    @property
    def size_bytes(self) -> int:
        """Memory of columns and indexes, without names."""
        size = sum(table.size_bytes for table in self._tables) + self.closed_at.size_bytes
        return size + self.by_fact.size_bytes + self.by_target.size_bytes


def keys_of(ids: Sequence[int]) -> U64:
    """Return ids in the dtype of the columns of links."""
    return np.array(ids, np.uint64)
