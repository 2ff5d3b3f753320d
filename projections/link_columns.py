"""The columns of links between facts: births, repetitions and endings.

Owns the effect columns in order of seq, their place in digests and chunks, and the derived columns
by which links are found. The fold in `links` decides what to append; `link_table` reads.
"""

from collections.abc import Sequence
from enum import IntEnum
from typing import Final, NamedTuple

import numpy as np

from cerata.engine.events import Scope

from .closed_rows import ClosedRows
from .columns import (
    U64,
    AnyColumn,
    Column,
    Columns,
    place_of,
)
from .hash_index import HashIndex
from .scope_names import ScopeNames
from .seal import Kept
from .tables import Table, check_codes


class LinkKind(IntEnum):
    """How a fact stands to what it is linked to. On disk: never renumber."""

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
"""The kinds by the words that events have."""

REQUIRING: Final = frozenset(
    (LinkKind.ASSUMES, LinkKind.DEPENDS_ON, LinkKind.DERIVED_FROM, LinkKind.GENERATED_FROM)
)
"""Of these a fact stands only if what it is linked to does."""

ATTACKING: Final = frozenset((LinkKind.INVALIDATES, LinkKind.SUPERSEDES))
"""What a fact that stands is so linked to is invalid."""

TO_FRAMES: Final = frozenset(
    (
        LinkKind.DEPENDS_ON,
        LinkKind.DERIVED_FROM,
        LinkKind.GENERATED_FROM,
        LinkKind.VALIDATED_BY,
    )
)
"""Of these the target may be a frame."""


class LinkOddity(IntEnum):
    """What the fold met and passed over. On disk: never renumber."""

    ERASED = 1
    """The payload is gone, so what it said is unknown."""
    UNKNOWN_REFERENCE = 2
    """It names what is no earlier event, or ends no link."""
    ALREADY_ENDED = 3
    """It ends what had ended."""
    NO_LINK = 4
    """Its kind is unknown, or it links a fact to itself, or to nothing or two things."""


class LinkBirth(NamedTuple):
    """One birth: a row of `LinkColumns.births`."""

    seq: int
    recorded: int
    scope: int
    fact: int
    kind: int
    target: int
    is_frame: int

    @property
    def identity(self) -> tuple[int, ...]:
        """What makes two links the same: scope, ends and kind."""
        return self[2:]


class LinkColumns:
    """Every column of the links fold, appended by one thread.

    - Row r of all birth columns is one link; ``seq`` ascends with r.
    - A row is ended at most once, after its birth.
    - ``ended_at`` of a row names an ending, which a reader of an earlier state passes over.
    """

    def __init__(self) -> None:
        self.scopes = ScopeNames()
        self.seq, self.recorded = Column(np.int64), Column(np.int64)
        self.scope, self.kind = Column(np.uint32), Column(np.uint8)
        self.fact, self.target = Column(np.uint64), Column(np.uint64)
        self.is_frame = Column(np.uint8)
        self.births = Table(
            "links",
            strict=True,
            seq=self.seq,
            recorded=self.recorded,
            scope=self.scope,
            fact=self.fact,
            kind=self.kind,
            target=self.target,
            is_frame=self.is_frame,
        )
        self.repeat_seq, self.repeat_row = Column(np.int64), Column(np.uint32)
        self.repeats = Table("repeats", strict=True, seq=self.repeat_seq, row=self.repeat_row)
        self.ending_seq, self.ending_recorded = Column(np.int64), Column(np.int64)
        self.ending_row = Column(np.uint32)
        self.endings = Table(
            "endings",
            strict=True,
            seq=self.ending_seq,
            recorded=self.ending_recorded,
            row=self.ending_row,
        )
        self.oddity_seq, self.oddity = Column(np.int64), Column(np.uint8)
        self.oddities = Table("oddities", strict=True, seq=self.oddity_seq, what=self.oddity)
        # Derived.
        self.ended_at = ClosedRows()
        self.by_fact, self.by_target = HashIndex(), HashIndex()

    # --- appending -------------------------------------------------------------------------------

    def scope_code(self, scope: Scope, seq: int) -> int:
        """Return the code of a scope, whatever the order of its names."""
        return self.scopes.scope_code(scope, seq)

    def bear(self, births: Sequence[LinkBirth]) -> None:
        """Append births, which hold."""
        self.births.append(births)
        self.ended_at.open(len(births))

    def end(self, rows: Sequence[tuple[int, int, int]]) -> None:
        """Append endings (seq, recorded, row) of rows that hold."""
        self.endings.append(rows)
        ended = np.array([row for _, _, row in rows], np.int64)
        self.ended_at.close(ended, len(self.endings) - len(ended))

    # --- reading ---------------------------------------------------------------------------------

    def row_of(self, seq: int) -> int | None:
        """Return the row of the link that event ``seq`` made, for the first time or again."""
        row = place_of(self.seq, seq)
        if row is not None:
            return row
        place = place_of(self.repeat_seq, seq)
        return None if place is None else self.repeat_row.item(place)

    def rows_alike(self, birth: LinkBirth) -> list[int]:
        """Return the rows with the identity of a birth, ascending."""
        rows = self.by_fact.find(self.fact.view(), birth.fact)
        return [row for row in rows if self.births.row(row)[2:] == birth.identity]

    def birth(self, row: int) -> LinkBirth:
        """Return one birth."""
        return LinkBirth(*self.births.row(row))

    # --- effects ---------------------------------------------------------------------------------

    @property
    def _tables(self) -> tuple[Table, ...]:
        return self.births, self.repeats, self.endings, self.oddities

    def effects(self, after: int, through: int) -> dict[str, AnyColumn]:
        """Return the canonical columns of events ``after + 1`` … ``through``."""
        effects = self.scopes.effects("scopes", after, through)
        for table in self._tables:
            effects.update(table.effects(after, through))
        return effects

    def kept(self) -> list[Kept]:
        """Return the things that the fold appends to, but no derived columns."""
        return [*self.scopes.kept(), *(items for table in self._tables for items in table.kept())]

    def derived(self, after: int, through: int) -> dict[str, AnyColumn]:
        """Return nothing: what is derived is derived again."""
        return {}

    def load(self, columns: Columns, after: int, through: int) -> None:
        """Append the effects in a chunk. Raises `Corrupt`, and then changes nothing."""
        births, repeats, endings, _ = tables = [
            table.read(columns, after, through) for table in self._tables
        ]
        scopes = self.scopes.read(columns, "scopes", after, through)
        check_codes(births["scope"], 1, len(self.scopes) + len(scopes.texts))
        check_codes(births["kind"], 1, max(LinkKind))
        check_codes(births["is_frame"], 0, 1)
        rows = len(self.births) + len(births["seq"])
        for column in (repeats["row"], endings["row"]):
            check_codes(column, 0, rows - 1)
        self.ended_at.check(self.seq.view(), births["seq"], endings["seq"], endings["row"])
        self.scopes.load(scopes)
        for table, loaded in zip(self._tables, tables, strict=True):
            table.load(loaded)
        self.ended_at.open(len(births["seq"]))
        self.ended_at.close(endings["row"], len(self.endings) - len(endings["row"]))

    @property
    def size_bytes(self) -> int:
        """Memory held by columns and indexes, names left out."""
        held = sum(table.size_bytes for table in self._tables) + self.ended_at.size_bytes
        return held + self.by_fact.size_bytes + self.by_target.size_bytes


def keys_of(ids: Sequence[int]) -> U64:
    """Return ids as the columns of links have them."""
    return np.array(ids, np.uint64)
