"""The columns of facts: births, repeats, evidence, assumptions, closings, and acts.

Owns the effect columns in order of seq, and the derived columns and indexes for lookups. Leaves out
the choice of effects (`projection`) and queries (`reader`).
"""

from collections.abc import Sequence, Sized
from enum import IntEnum
from typing import Final, NamedTuple, Self, cast

import numpy as np

from cerata.engine.events import Scope

from ..columnar.columns import (
    U64,
    AnyColumn,
    Column,
    Columns,
    place_of,
    require,
    rows_up_to,
)
from ..columnar.hash_index import HashIndex, PairIndex
from ..columnar.names import Names
from ..columnar.scopes import ScopeNames
from ..columnar.strings import Strings
from ..columnar.tables import ClosableColumns, Table, check_codes
from .acts import ActTable, check_acts, roles_after
from .entity_resolution import EntityRoles
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


class FactColumns(ClosableColumns):
    """Every column of the facts fold, appended by one thread.

    - Row r of all birth columns is one fact; ``seq`` ascends with r.
    - Derived columns have an item per row.
    """

    def __init__(self) -> None:
        self.scopes = ScopeNames()
        self.predicates = Names("predicates")
        self.sources = Names("sources")
        self.kinds = Names("kinds")
        self.strings = Strings()
        self.folded_names = FoldedNames(self.strings)
        self.folded_predicates = FoldedDictionary(self.predicates)
        births = Table("facts", strict=True)
        self.seq = births.seq
        self.recorded = births.column("recorded", np.int64)
        self.scope = births.column("scope", np.uint32, (1, self.scopes))
        self.subject = births.column("subject", np.uint32, (1, self.strings))
        self.predicate = births.column("predicate", np.uint32, (1, self.predicates))
        self.kind = births.column("kind", np.uint8, (1, max(ObjectKind)))
        self.object = births.column("object", np.uint64)
        self.valid_from = births.column("valid_from", np.int64)
        self.valid_to = births.column("valid_to", np.int64)
        self.confidence = births.column("confidence", np.uint32)
        self.source = births.column("source", np.uint32, (1, self.sources))
        self.depth = births.column("depth", np.uint32)
        self.flags = births.column("flags", np.uint8)
        self.repeats = Table("repeats")
        self.repeat_row = self.repeats.column("row", np.uint64, (0, births))
        self.repeat_confidence = self.repeats.column("confidence", np.uint32)
        self.repeat_source = self.repeats.column("source", np.uint32, (1, self.sources))
        self.evidence = Table("evidence")
        self.evidence_row = self.evidence.column("row", np.uint64, (0, births))
        self.evidence_frame = self.evidence.column("frame", np.int64)
        self.evidence_start = self.evidence.column("start", np.int64)
        self.evidence_end = self.evidence.column("end", np.int64)
        self.evidence_quote = self.evidence.column("quote", np.uint64)
        self.evidence_quote_low = self.evidence.column("quote_low", np.uint64)
        self.assumptions = Table("assumptions")
        self.assumption_row = self.assumptions.column("row", np.uint64, (0, births))
        self.assumption_text = self.assumptions.column("text", np.uint32, (1, self.strings))
        closings = Table("closings")
        self.closing_recorded = closings.column("recorded", np.int64)
        self.closing_row = closings.column("row", np.uint32, (0, births))
        self.acts = ActTable(self.scopes)
        super().__init__(
            births,
            closings,
            *(births, self.repeats, self.evidence, self.assumptions, closings, self.acts),
            *(self.scopes, self.predicates, self.sources, self.kinds, self.strings),
        )
        # Derived.
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

    def share(self, columns: Self, through: int) -> None:
        """Become other columns up to event ``through``; see `share_parts`."""
        self.share_parts(columns, through)
        self._identity.share(columns._identity, min(len(self.births), len(columns._identity)))
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

    def derived(self, after: int, through: int) -> dict[str, AnyColumn]:
        """Return the hashes of the strings of these events, as they are and folded."""
        folded = self.folded_names.hashes(*self.strings.places(after, through))
        return {**self.strings.hashes(after, through), _FOLDED: folded}

    def load(self, columns: Columns, after: int, through: int) -> None:
        """Append the effects in a chunk. Raises `Corrupt` before any change."""
        chunk = self.read(columns, after, through)
        births, acts = chunk.rows[self.births], chunk.rows[self.acts]
        folded = columns.u64(_FOLDED)
        is_whole = len(folded) == len(chunk.strings[self.strings].sizes)
        require(is_whole, "its strings and folded hashes differ in count")
        texts = chunk.count(self.strings)
        check_codes(births["object"][np.isin(births["kind"], _TEXT_KINDS)], 1, texts)
        predicates, kinds = chunk.count(self.predicates), chunk.count(self.kinds)
        check_acts(acts, texts, predicates, kinds, chunk.count(self.births))
        tenants = self.scopes.tenants_after(chunk.names[self.scopes])
        roles = roles_after(self.roles, acts, tenants)
        self.take(chunk)
        self.folded_names.load(folded)
        self.roles = roles

    @property
    def size_bytes(self) -> int:
        """Memory used by columns, strings and indexes, without names."""
        derived = (self._identity, self.strings, self.folded_names)
        indexes = sum(index.size_bytes for index, _ in self._indexes)
        return self.tables_size_bytes + indexes + sum(part.size_bytes for part in derived)


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
