"""The columns of links between facts: births, repetitions and endings.

Owns the effect columns in order of seq, their place in digests and chunks, and the derived columns
by which links are found. The fold in `links` decides what to append; `link_table` reads.
"""

from collections.abc import Sequence
from enum import IntEnum
from typing import Final, NamedTuple

import numpy as np

from cerata.engine.events import Scope

from .columns import (
    I64,
    NO_ROW,
    U64,
    AnyColumn,
    Column,
    Columns,
    concatenate,
    require,
)
from .hash_index import HashIndex
from .names import Names
from .scopes import by_name, is_within, read_scope, scope_text, tenant_in
from .tables import LoadedRows, Table


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
        self.scopes = Names()
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
        self.ended_at = Column(np.uint32)
        self.by_fact, self.by_target = HashIndex(), HashIndex()
        self._scopes: list[Scope] = [()]
        self._within: dict[Scope, tuple[int, frozenset[int]]] = {}

    # --- appending -------------------------------------------------------------------------------

    def scope_code(self, scope: Scope, seq: int) -> int:
        """Return the code of a scope, whatever the order of its names."""
        code = self.scopes.code(scope_text(by_name(scope)), seq)
        if code == len(self._scopes):
            self._scopes.append(by_name(scope))
        return code

    def bear(self, births: Sequence[LinkBirth]) -> None:
        """Append births, which hold."""
        self.births.append(births)
        self.ended_at.extend(np.full(len(births), NO_ROW, np.uint32))

    def end(self, rows: Sequence[tuple[int, int, int]]) -> None:
        """Append endings (seq, recorded, row) of rows that hold."""
        self.endings.append(rows)
        self._mark_ended(np.array([row for _, _, row in rows], np.int64))

    def _mark_ended(self, rows: I64) -> None:
        end = len(self.endings)
        self.ended_at.set_once(rows, np.arange(end - len(rows), end, dtype=np.uint32))

    # --- reading ---------------------------------------------------------------------------------

    def row_of(self, seq: int) -> int | None:
        """Return the row of the link that event ``seq`` made, for the first time or again."""
        for seqs, rows in ((self.seq.view(), None), (self.repeat_seq.view(), self.repeat_row)):
            place = int(np.searchsorted(seqs, seq))
            if place < len(seqs) and seqs[place] == seq:
                return place if rows is None else int(rows.view()[place])
        return None

    def rows_alike(self, birth: LinkBirth) -> list[int]:
        """Return the rows with the identity of a birth, ascending."""
        rows = self.by_fact.find(self.fact.view(), birth.fact)
        return [row for row in rows if self.births.row(row)[2:] == birth.identity]

    def is_ended(self, row: int) -> bool:
        return bool(self.ended_at.view()[row] != NO_ROW)

    def birth(self, row: int) -> LinkBirth:
        """Return one birth."""
        return LinkBirth(*self.births.row(row))

    def scope_named(self, code: int) -> Scope:
        """Return the scope with a code."""
        return self._scopes[code]

    def tenant_of(self, code: int) -> str:
        """Return the tenant of a scope."""
        return tenant_in(self._scopes[code])

    def scopes_within(self, wanted: Scope | None) -> frozenset[int] | None:
        """Return the codes of the scopes that lie within one; None where all do."""
        if wanted is None:
            return None
        known = self._within.get(wanted)
        if known is None or known[0] < len(self.scopes):
            count = len(self.scopes)
            every = range(1, count + 1)
            codes = frozenset(code for code in every if is_within(self.scope_named(code), wanted))
            known = self._within[wanted] = count, codes
        return known[1]

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

    def derived(self, after: int, through: int) -> dict[str, AnyColumn]:
        """Return nothing: what is derived is derived again."""
        return {}

    def load(self, columns: Columns, after: int, through: int) -> None:
        """Append the effects in a chunk. Raises `Corrupt`, and then changes nothing."""
        births, repeats, endings, _ = tables = [
            table.read(columns, after, through) for table in self._tables
        ]
        scopes = self.scopes.read(columns, "scopes", after, through)
        found = [read_scope(text) for text in scopes.texts]
        _check(births["scope"], 1, len(self.scopes) + len(found))
        _check(births["kind"], 1, max(LinkKind))
        _check(births["is_frame"], 0, 1)
        rows = len(self.births) + len(births["seq"])
        for column in (repeats["row"], endings["row"]):
            _check(column, 0, rows - 1)
        self._check_endings(births["seq"], endings)
        self.scopes.load(scopes)
        self._scopes += found
        for table, loaded in zip(self._tables, tables, strict=True):
            table.load(loaded)
        self.ended_at.extend(np.full(len(births["seq"]), NO_ROW, np.uint32))
        self._mark_ended(endings["row"].astype(np.int64))

    def _check_endings(self, seqs: AnyColumn, endings: LoadedRows) -> None:
        """Raise `Corrupt` unless each ending ends a row that holds, after its birth."""
        when, rows = endings["seq"], endings["row"]
        if not len(rows):
            return
        born = concatenate([self.seq.view(), seqs.astype(np.int64)], np.int64)
        require(bool((born[rows] < when).all()), "an ending comes before its birth")
        before = rows[rows < len(self.ended_at)]
        open_before = self.ended_at.view()[before] == NO_ROW
        once = len(np.unique(rows)) == len(rows)
        require(once and bool(open_before.all()), "a link is ended twice")

    @property
    def size_bytes(self) -> int:
        """Memory held by columns and indexes, names left out."""
        held = sum(table.size_bytes for table in self._tables) + self.ended_at.size_bytes
        return held + self.by_fact.size_bytes + self.by_target.size_bytes


def _check(codes: AnyColumn, low: int, high: int) -> None:
    """Raise `Corrupt` unless codes are of what there is."""
    inside = not len(codes) or low <= int(codes.min()) <= int(codes.max()) <= high
    require(inside, "a code is of nothing that is there")


def keys_of(ids: Sequence[int]) -> U64:
    """Return ids as the columns of links have them."""
    return np.array(ids, np.uint64)
