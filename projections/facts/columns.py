"""The columns of facts: births, repeats, evidence, assumptions, closings, and acts.

Owns the effect columns in order of seq, their place in digests and chunks, and the derived columns
and indexes for lookups. Leaves out the choice of effects (`fold`) and queries (`reader`).
"""

from collections.abc import Sequence, Sized
from enum import IntEnum
from functools import cached_property
from typing import Final, NamedTuple, cast

import numpy as np

from cerata.engine.events import Scope

from ..columnar.columns import (
    U64,
    AnyColumn,
    AppendOnly,
    Column,
    Columns,
    place_of,
    require,
    rows_up_to,
)
from ..columnar.hash_index import HashIndex, PairIndex
from ..columnar.names import NO_NAME, Names
from ..columnar.scopes import ScopeNames
from ..columnar.strings import Strings
from ..columnar.tables import ClosedRows, Table, check_codes
from .acts import ActTable, check_acts, roles_after
from .entity_resolution import Act, EntityRoles
from .name_index import FoldedDictionary, FoldedNames
from .objects import TEXT_KINDS, ObjectKind

FLAG_FROM_RECORDED: Final = 1
"""The start of validity is the time of recording, by default. On disk: never renumber."""
FLAG_EVIDENCE: Final = 2
"""The first assertion names evidence. On disk: never renumber."""
FLAG_ASSUMPTIONS: Final = 4
"""The first assertion names assumptions. On disk: never renumber."""

QUOTE_SIZE: Final = 16
"""Bytes of the hash of a quote; all zeros mean no hash. On disk: never change."""

CONFIDENCE_UNIT: Final = 1_000_000
"""Columns store confidence in millionths. On disk: never change."""

NO_PLACE: Final = -1
"""In a column of byte offsets: absent. On disk: never renumber."""

_FOLDED: Final = "strings.folded"
"""In a chunk: the hash of each string as a folded name. On disk: never rename."""

_MIX: Final = np.uint64(0x9E37_79B9_7F4A_7C15)
_TEXT_KINDS: Final = np.array([int(kind) for kind in TEXT_KINDS], np.uint8)


class FactAnomaly(IntEnum):
    """An anomaly that the fold counted and skipped. On disk: never renumber."""

    ERASED = 1
    """The payload was erased."""
    UNKNOWN_REFERENCE = 2
    """The event names a fact, merge or split that does not exist."""
    ALREADY_CLOSED = 3
    """The event retracts a closed fact, or merges an entity that is merged already."""
    CYCLE = 4
    """The event merges an entity into itself, or into an entity merged into the first."""
    NO_VALUE = 5
    """The object is of an unknown kind."""
    EMPTY_RANGE = 6
    """The fact ends before its start, so it is never true."""


class FactBirth(NamedTuple):
    """A row of `FactColumns.births`."""

    seq: int
    recorded: int
    scope: int
    subject: int
    predicate: int
    kind: int
    object: int
    valid_from: int
    valid_to: int
    confidence: int
    source: int
    depth: int
    flags: int

    @property
    def identity(self) -> tuple[int, ...]:
        """The key that equal facts share: scope, triple, and the range of the assertion."""
        unstated = self.flags & FLAG_FROM_RECORDED
        return (*self[2:7], unstated, 0 if unstated else self.valid_from, self.valid_to)


class FactColumns:
    """Every column of the facts fold, appended by one thread.

    - Row r of all birth columns is one fact; ``seq`` ascends with r.
    - A row is closed at most once, after its birth.
    - Derived columns have an item per row. A reader of an earlier state ignores the later closings
      that ``closed_at`` names.
    """

    def __init__(self) -> None:
        self.scopes = ScopeNames()
        self.predicates = Names("predicates")
        self.sources = Names("sources")
        self.kinds = Names("kinds")
        self.strings = Strings()
        self.folded_names = FoldedNames(self.strings)
        self.folded_predicates = FoldedDictionary(self.predicates)
        self.births = births = Table("facts", strict=True)
        self.seq = births.seq
        self.recorded = births.column("recorded", np.int64)
        self.scope = births.column("scope", np.uint32)
        self.subject = births.column("subject", np.uint32)
        self.predicate = births.column("predicate", np.uint32)
        self.kind = births.column("kind", np.uint8)
        self.object = births.column("object", np.uint64)
        self.valid_from = births.column("valid_from", np.int64)
        self.valid_to = births.column("valid_to", np.int64)
        self.confidence = births.column("confidence", np.uint32)
        self.source = births.column("source", np.uint32)
        self.depth = births.column("depth", np.uint32)
        self.flags = births.column("flags", np.uint8)
        self.repeats = Table("repeats")
        self.repeat_row = self.repeats.column("row", np.uint64)
        self.repeat_confidence = self.repeats.column("confidence", np.uint32)
        self.repeat_source = self.repeats.column("source", np.uint32)
        self.evidence = Table("evidence")
        self.evidence_row = self.evidence.column("row", np.uint64)
        self.evidence_frame = self.evidence.column("frame", np.int64)
        self.evidence_start = self.evidence.column("start", np.int64)
        self.evidence_end = self.evidence.column("end", np.int64)
        self.evidence_quote = self.evidence.column("quote", np.uint64)
        self.evidence_quote_low = self.evidence.column("quote_low", np.uint64)
        self.assumptions = Table("assumptions")
        self.assumption_row = self.assumptions.column("row", np.uint64)
        self.assumption_text = self.assumptions.column("text", np.uint32)
        self.closings = Table("closings")
        self.closing_recorded = self.closings.column("recorded", np.int64)
        self.closing_row = self.closings.column("row", np.uint32)
        self.acts = ActTable(self.scopes)
        # Derived.
        self.closed_at = ClosedRows()
        self._identity = Column(np.uint64)
        self.identities = HashIndex()
        self.by_subject = PairIndex()
        self.by_object = PairIndex()
        self.by_repeat = HashIndex()
        self.by_evidence = HashIndex()
        self.by_assumption = HashIndex()
        self.by_frame = HashIndex()
        self.roles = EntityRoles()
        """The reading of names after all acts."""

    # --- appending -------------------------------------------------------------------------------

    def scope_code(self, scope: Scope, seq: int) -> int:
        """Return the code of a scope; the order of its names does not matter."""
        return self.scopes.scope_code(scope, seq)

    def bear(self, births: Sequence[FactBirth]) -> None:
        """Append births and their derived columns."""
        self.births.append(births)
        self.closed_at.open(len(births))

    def close(self, rows: Sequence[tuple[int, int, int]]) -> None:
        """Append closings (seq, recorded, row) of open rows."""
        self.closings.append(rows)
        closed = np.array([row for _, _, row in rows], np.int64)
        self.closed_at.close(closed, len(self.closings) - len(closed))

    def share(self, columns: "FactColumns", through: int) -> None:
        """Become the facts of other columns up to event ``through``, which stay as they are.

        Cost: 4 bytes a row and the acts; an append then copies the column that it extends.
        """
        for table, shared_table in zip(self._tables, columns._tables, strict=True):
            table.share(shared_table, through)
        for names, shared_names in zip(self._names, columns._names, strict=True):
            names.share(shared_names, through)
        self.strings.share(columns.strings, through)
        rows = len(self.births)
        self.closed_at.open(rows)
        self.closed_at.close(self.closing_row.view(), 0)
        self._identity.share(columns._identity, min(rows, len(columns._identity)))
        self.folded_names.share(columns.folded_names)
        for (own, keys), (shared, _) in zip(self._indexes, columns._indexes, strict=True):
            own.share(shared, len(keys))
        self.roles = self.acts.roles()

    # --- lookups ---------------------------------------------------------------------------------

    def row_of(self, seq: int) -> int | None:
        """Return the row of the fact that event ``seq`` asserted or repeated, or None."""
        row = place_of(self.seq.view(), seq)
        if row is not None:
            return row
        place = place_of(self.repeats.seq.view(), seq)
        return None if place is None else self.repeat_row.item(place)

    def rows_of_subject(self, subject: int) -> list[int]:
        """Return the rows of a subject, ascending."""
        return self.by_subject.find(self.subject.view(), subject)

    def repeats_of(self, row: int, n: int) -> list[int]:
        """Return the indices in ``repeats`` for a row, up to event n, ascending."""
        end = rows_up_to(self.repeats.seq.view(), n)
        return self.by_repeat.find(self.repeat_row.view()[:end], row) if end else []

    def evidence_of(self, row: int, n: int) -> list[int]:
        """Return the indices in ``evidence`` for a row, up to event n, ascending."""
        end = rows_up_to(self.evidence.seq.view(), n)
        return self.by_evidence.find(self.evidence_row.view()[:end], row) if end else []

    def assumptions_of(self, row: int, n: int) -> list[int]:
        """Return the indices in ``assumptions`` for a row, up to event n, ascending."""
        end = rows_up_to(self.assumptions.seq.view(), n)
        return self.by_assumption.find(self.assumption_row.view()[:end], row) if end else []

    def all_identities(self) -> U64:
        """Return the identity key of every row; computes the keys of new rows."""
        start = len(self._identity)
        if start < len(self.births):
            births = [column[start:] for column in self.births.views()]
            self._identity.extend(_identity_keys(births))
        return self._identity.view()

    def identities_of(self, births: Sequence[FactBirth]) -> U64:
        """Return a key per assertion; equal facts have equal keys."""
        columns = [
            np.asarray(items, column.dtype)
            for column, items in zip(self.births.views(), zip(*births, strict=True), strict=True)
        ]
        return _identity_keys(cast("list[AnyColumn]", columns))

    def birth(self, row: int) -> FactBirth:
        """Return the birth in a row."""
        return FactBirth(*self.births.row(row))

    def row_closed_by(self, seq: int) -> int | None:
        """Return the row that event ``seq`` retracted, or None."""
        place = place_of(self.closings.seq.view(), seq)
        return None if place is None else self.closing_row.item(place)

    # --- effects ---------------------------------------------------------------------------------

    @cached_property
    def _tables(self) -> tuple[Table, ...]:
        facts = (self.births, self.repeats, self.evidence, self.assumptions)
        return *facts, self.closings, self.acts

    @cached_property
    def _names(self) -> tuple[Names, ...]:
        return self.scopes, self.predicates, self.sources, self.kinds

    @cached_property
    def _parts(self) -> tuple[Table | Names | Strings, ...]:
        return (*self._tables, *self._names, self.strings)

    @property
    def _indexes(self) -> tuple[tuple[HashIndex, Sized], ...]:
        """The indexes, each with a column of its keys."""
        return (
            (self.identities, self._identity),
            (self.by_subject, self.births),
            (self.by_object, self.births),
            (self.by_repeat, self.repeats),
            (self.by_evidence, self.evidence),
            (self.by_assumption, self.assumptions),
            (self.by_frame, self.evidence),
        )

    def effects(self, after: int, through: int) -> dict[str, AnyColumn]:
        """Return the canonical columns of events ``after + 1`` … ``through``."""
        effects: dict[str, AnyColumn] = {}
        for part in self._parts:
            effects.update(part.effects(after, through))
        return effects

    def effect_columns(self) -> list[AppendOnly]:
        """Return the collections that the fold appends to, without derived columns."""
        return self._effect_columns

    @cached_property
    def _effect_columns(self) -> list[AppendOnly]:
        parts: tuple[Table | Names | Strings, ...] = (*self._parts,)
        return [column for part in parts for column in part.effect_columns()]

    def derived(self, after: int, through: int) -> dict[str, AnyColumn]:
        """Return the hashes of the strings of these events, as they are and folded."""
        folded = self.folded_names.hashes(*self.strings.places(after, through))
        return {**self.strings.hashes(after, through), _FOLDED: folded}

    def load(self, columns: Columns, after: int, through: int) -> None:
        """Append the effects in a chunk. Raises `Corrupt` before any change."""
        births, repeats, evidence, assumptions, closings, acts = tables = [
            table.read(columns, after, through) for table in self._tables
        ]
        names = [dictionary.read(columns, after, through) for dictionary in self._names]
        strings = self.strings.read(columns, after, through)
        folded = columns.u64(_FOLDED)
        require(len(folded) == len(strings.sizes), "its strings and folded hashes differ in count")
        scopes, predicates, sources, kinds = (
            len(dictionary) + len(new.texts)
            for dictionary, new in zip(self._names, names, strict=True)
        )
        texts = len(self.strings) + len(strings.sizes)
        rows = len(self.births) + len(births["seq"])
        is_text = np.isin(births["kind"], _TEXT_KINDS)
        for codes, limit in (
            (births["scope"], scopes),
            (births["subject"], texts),
            (births["predicate"], predicates),
            (births["kind"], max(ObjectKind)),
            (births["object"][is_text], texts),
            (births["source"], sources),
            (repeats["source"], sources),
            (assumptions["text"], texts),
            (acts["what"], max(Act)),
        ):
            check_codes(codes, 1, limit)
        # The anomaly of an erased event has no scope.
        check_codes(acts["scope"], NO_NAME, scopes)
        for column in (repeats["row"], evidence["row"], assumptions["row"], closings["row"]):
            check_codes(column, 0, rows - 1)
        check_acts(acts, texts, predicates, kinds, rows)
        self.closed_at.check(self.seq.view(), births["seq"], closings["seq"], closings["row"])
        roles = roles_after(self.roles, acts, self.scopes.tenants_after(names[0]))
        for dictionary, new in zip(self._names, names, strict=True):
            dictionary.load(new)
        self.strings.load(strings)
        self.folded_names.load(folded)
        for table, loaded in zip(self._tables, tables, strict=True):
            table.load(loaded)
        self.closed_at.open(len(births["seq"]))
        self.closed_at.close(closings["row"], len(self.closings) - len(closings["row"]))
        self.roles = roles

    @property
    def size_bytes(self) -> int:
        """Memory used by columns, strings and indexes, without names."""
        derived = (self.closed_at, self._identity, self.strings, self.folded_names)
        size = sum(table.size_bytes for table in self._tables)
        size += sum(index.size_bytes for index, _ in self._indexes)
        return size + sum(part.size_bytes for part in derived)


def _identity_keys(births: Sequence[AnyColumn]) -> U64:
    """Return a u64 per birth, equal if `FactBirth.identity` is equal."""
    columns = dict(zip(FactBirth._fields, births, strict=True))
    unstated = (columns["flags"] & np.uint8(FLAG_FROM_RECORDED)) != 0
    starts = np.where(unstated, 0, columns["valid_from"])
    mixed = np.zeros(len(starts), np.uint64)
    for column in (*births[2:7], starts, columns["valid_to"]):
        mixed = (mixed ^ column.astype(np.uint64)) * _MIX
        mixed ^= mixed >> np.uint64(29)
    return mixed
