"""The columns of facts: births, repeats, evidence, assumptions, closings, and acts.

Owns the effect columns in order of seq, their place in digests and chunks, and the derived columns
and indexes for lookups. Leaves out the choice of effects (`fold`) and queries (`reader`).
"""

from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import Final, NamedTuple, cast

import numpy as np

from cerata.engine.events import Scope

from ..columnar.append_only import AppendOnly
from ..columnar.columns import U64, AnyColumn, Column, Columns, place_of, require, rows_up_to
from ..columnar.hash_index import HashIndex
from ..columnar.names import NO_NAME, Names
from ..columnar.scopes import ScopeNames
from ..columnar.strings import Strings
from ..columnar.tables import ClosedRows, LoadedRows, Table, check_codes
from .entity_resolution import Act, ActRow, EntityRoles
from .name_index import FoldedNames
from .objects import TEXT_KINDS, ObjectKind
from .role_history import RoleHistory

FLAG_FROM_RECORDED: Final = 1
"""The start of validity is the time of recording, by default. On disk: never renumber."""
FLAG_EVIDENCE: Final = 2
"""The first assertion names evidence. On disk: never renumber."""
FLAG_ASSUMPTIONS: Final = 4
"""The first assertion names assumptions. On disk: never renumber."""

QUOTE_SIZE: Final = 16
"""Bytes of the hash of a quote; all zeros mean no hash. On disk: never change."""

NO_PLACE: Final = -1
"""In a column of byte offsets: absent. On disk: never renumber."""

_MIX: Final = np.uint64(0x9E37_79B9_7F4A_7C15)
_TEXT_KINDS: Final = np.array([int(kind) for kind in TEXT_KINDS], np.uint8)


class FactOddity(IntEnum):
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


_RULING: Final = np.array([Act.PREDICATE, Act.MERGE, Act.SPLIT, Act.END], np.uint8)

_OF_TWO: Final = frozenset((Act.MERGE, Act.SPLIT))
"""Acts whose second number names an entity."""
_OF_ENTITIES: Final = _OF_TWO | {Act.ENTITY, Act.ALIAS}
"""Acts whose first number names an entity."""

CONFIDENCE_UNIT: Final = 1_000_000
"""Columns store confidence in millionths. On disk: never change."""


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
        self.predicates = Names()
        self.sources = Names()
        self.kinds = Names()
        self.strings = Strings()
        self.folded_names = FoldedNames(self.strings)
        self.seq, self.recorded = Column(np.int64), Column(np.int64)
        self.scope, self.subject = Column(np.uint32), Column(np.uint32)
        self.predicate, self.source = Column(np.uint32), Column(np.uint32)
        self.kind, self.object = Column(np.uint8), Column(np.uint64)
        self.valid_from, self.valid_to = Column(np.int64), Column(np.int64)
        self.confidence, self.depth = Column(np.uint32), Column(np.uint32)
        self.flags = Column(np.uint8)
        self.births = Table(
            "facts",
            strict=True,
            seq=self.seq,
            recorded=self.recorded,
            scope=self.scope,
            subject=self.subject,
            predicate=self.predicate,
            kind=self.kind,
            object=self.object,
            valid_from=self.valid_from,
            valid_to=self.valid_to,
            confidence=self.confidence,
            source=self.source,
            depth=self.depth,
            flags=self.flags,
        )
        self.repeat_seq, self.repeat_row = Column(np.int64), Column(np.uint64)
        self.repeat_confidence, self.repeat_source = Column(np.uint32), Column(np.uint32)
        self.repeats = Table(
            "repeats",
            seq=self.repeat_seq,
            row=self.repeat_row,
            confidence=self.repeat_confidence,
            source=self.repeat_source,
        )
        self.evidence_seq, self.evidence_row = Column(np.int64), Column(np.uint64)
        self.evidence_frame = Column(np.int64)
        self.evidence_start, self.evidence_end = Column(np.int64), Column(np.int64)
        self.evidence_quote, self.evidence_quote_low = Column(np.uint64), Column(np.uint64)
        self.evidence = Table(
            "evidence",
            seq=self.evidence_seq,
            row=self.evidence_row,
            frame=self.evidence_frame,
            start=self.evidence_start,
            end=self.evidence_end,
            quote=self.evidence_quote,
            quote_low=self.evidence_quote_low,
        )
        self.assumption_seq, self.assumption_row = Column(np.int64), Column(np.uint64)
        self.assumption_text = Column(np.uint32)
        self.assumptions = Table(
            "assumptions",
            seq=self.assumption_seq,
            row=self.assumption_row,
            text=self.assumption_text,
        )
        self.closing_seq, self.closing_recorded = Column(np.int64), Column(np.int64)
        self.closing_row = Column(np.uint32)
        self.closings = Table(
            "closings",
            seq=self.closing_seq,
            recorded=self.closing_recorded,
            row=self.closing_row,
        )
        self.act_seq, self.act_scope = Column(np.int64), Column(np.uint32)
        self.act_kind = Column(np.uint8)
        self.act_subject, self.act_target = Column(np.uint32), Column(np.uint32)
        self.act_number = Column(np.int64)
        self.acts = Table(
            "acts",
            seq=self.act_seq,
            scope=self.act_scope,
            what=self.act_kind,
            one=self.act_subject,
            other=self.act_target,
            number=self.act_number,
        )
        # Derived.
        self.closed_at = ClosedRows()
        self._identity = Column(np.uint64)
        self.identities = HashIndex()
        self.by_subject = HashIndex()
        self.by_object = HashIndex()
        self.by_repeat = HashIndex()
        self.by_evidence = HashIndex()
        self.by_assumption = HashIndex()
        self.by_frame = HashIndex()
        self.by_act_subject = HashIndex()
        self.by_act_target = HashIndex()
        self.by_act_number = HashIndex()
        self.ruling = Column(np.uint32)
        """The rows of the acts that change the reading of facts."""
        self.roles = EntityRoles()
        """The reading of names after all acts."""
        self._role_history = RoleHistory()

    # --- appending -------------------------------------------------------------------------------

    def scope_code(self, scope: Scope, seq: int) -> int:
        """Return the code of a scope; the order of its names does not matter."""
        return self.scopes.scope_code(scope, seq)

    def bear(self, births: Sequence[FactBirth]) -> None:
        """Append births and their derived columns."""
        self.births.append(births)
        self.closed_at.open(len(births))

    def act(self, rows: Sequence[tuple[int, ...]]) -> None:
        """Append acts that the caller applied to ``roles``."""
        self.acts.append(rows)
        self._derive_acts(len(rows))

    def _derive_acts(self, count: int) -> None:
        start = len(self.acts) - count
        ruling = np.flatnonzero(np.isin(self.act_kind.view()[start:], _RULING)) + start
        self.ruling.extend(ruling.astype(np.uint32))

    def close(self, rows: Sequence[tuple[int, int, int]]) -> None:
        """Append closings (seq, recorded, row) of open rows."""
        self.closings.append(rows)
        closed = np.array([row for _, _, row in rows], np.int64)
        self.closed_at.close(closed, len(self.closings) - len(closed))

    # --- lookups ---------------------------------------------------------------------------------

    def row_of(self, seq: int) -> int | None:
        """Return the row of the fact that event ``seq`` asserted or repeated, or None."""
        row = place_of(self.seq, seq)
        if row is not None:
            return row
        place = place_of(self.repeat_seq, seq)
        return None if place is None else self.repeat_row.item(place)

    def rows_of_subject(self, subject: int) -> list[int]:
        """Return the rows of a subject, ascending."""
        return self.by_subject.find(self.subject.view(), subject)

    def act_row(self, row: int) -> ActRow:
        """Return the act in a row."""
        return self._with_tenant(self.acts.row(row))

    def scope_of_act(self, row: int) -> int:
        """Return the code of an act's scope."""
        return int(self.act_scope.view()[row])

    def role_history(self, count: int) -> RoleHistory:
        """Return the history of the first ``count`` ruling acts.

        Cost: about 5 us for each act since the last call.
        """
        ruling = self.ruling.view()
        self._role_history.follow(count, lambda place: self._scoped_act(int(ruling[place])))
        return self._role_history

    def _scoped_act(self, row: int) -> tuple[int, ActRow]:
        return self.scope_of_act(row), self.act_row(row)

    def acts_naming(self, code: int) -> list[int]:
        """Return the acts that name a string as an entity, ascending."""
        kinds = self.act_kind.view()
        subjects = self.by_act_subject.find(self.act_subject.view(), code)
        targets = self.by_act_target.find(self.act_target.view(), code)
        rows = {row for row in subjects if kinds[row] in _OF_ENTITIES}
        return sorted(rows.union(row for row in targets if kinds[row] in _OF_TWO))

    def acts_of_alias(self, folded: int) -> list[int]:
        """Return the acts that declare an alias, by the code of its folded form; ascending."""
        numbers = self.act_number.view().view(np.uint64)
        kinds = self.act_kind.view()
        return [row for row in self.by_act_number.find(numbers, folded) if kinds[row] == Act.ALIAS]

    def acts_until(self, end: int) -> Iterator[tuple[int, ActRow]]:
        """Yield the first ``end`` acts in order, each with its scope's code."""
        return ((row[1], self._with_tenant(row)) for row in self.acts.rows(0, end))

    def _with_tenant(self, row: tuple[int, ...]) -> ActRow:
        return ActRow(row[0], self.scopes.tenants[row[1]], *row[2:])

    def repeats_of(self, row: int, n: int) -> list[int]:
        """Return the indices in ``repeats`` for a row, up to event n, ascending."""
        end = rows_up_to(self.repeat_seq.view(), n)
        return self.by_repeat.find(self.repeat_row.view()[:end], row) if end else []

    def evidence_of(self, row: int, n: int) -> list[int]:
        """Return the indices in ``evidence`` for a row, up to event n, ascending."""
        end = rows_up_to(self.evidence_seq.view(), n)
        return self.by_evidence.find(self.evidence_row.view()[:end], row) if end else []

    def assumptions_of(self, row: int, n: int) -> list[int]:
        """Return the indices in ``assumptions`` for a row, up to event n, ascending."""
        end = rows_up_to(self.assumption_seq.view(), n)
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
        place = place_of(self.closing_seq, seq)
        return None if place is None else self.closing_row.item(place)

    # --- effects ---------------------------------------------------------------------------------

    @property
    def _tables(self) -> tuple[Table, ...]:
        return (
            self.births,
            self.repeats,
            self.evidence,
            self.assumptions,
            self.closings,
            self.acts,
        )

    def _names(self) -> tuple[tuple[str, Names], ...]:
        return (
            ("scopes", self.scopes),
            ("predicates", self.predicates),
            ("sources", self.sources),
            ("kinds", self.kinds),
        )

    def effects(self, after: int, through: int) -> dict[str, AnyColumn]:
        """Return the canonical columns of events ``after + 1`` … ``through``."""
        effects: dict[str, AnyColumn] = {}
        for table in self._tables:
            effects.update(table.effects(after, through))
        for prefix, names in self._names():
            effects.update(names.effects(prefix, after, through))
        return {**effects, **self.strings.effects(after, through)}

    def effect_columns(self) -> list[AppendOnly]:
        """Return the collections that the fold appends to, without derived columns."""
        tables = [items for table in self._tables for items in table.effect_columns()]
        names = [items for _, dictionary in self._names() for items in dictionary.effect_columns()]
        return [*tables, *names, *self.strings.effect_columns()]

    def derived(self, after: int, through: int) -> dict[str, AnyColumn]:
        """Return the hashes of the strings of these events."""
        return {"strings.hashes": self.strings.hashes(after, through)}

    def load(self, columns: Columns, after: int, through: int) -> None:
        """Append the effects in a chunk. Raises `Corrupt` before any change."""
        births, repeats, evidence, assumptions, closings, acts = tables = [
            table.read(columns, after, through) for table in self._tables
        ]
        names = [
            dictionary.read(columns, prefix, after, through) for prefix, dictionary in self._names()
        ]
        strings = self.strings.read(columns, after, through)
        scopes, predicates, sources, kinds = (
            len(dictionary) + len(new.texts)
            for (_, dictionary), new in zip(self._names(), names, strict=True)
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
        # The oddity of an erased event has no scope.
        check_codes(acts["scope"], NO_NAME, scopes)
        for column in (repeats["row"], evidence["row"], assumptions["row"], closings["row"]):
            inside = not len(column) or int(column.max()) < rows
            require(inside, "a row names a fact that does not exist")
        _check_acts(acts, texts, predicates, kinds, rows)
        self.closed_at.check(self.seq.view(), births["seq"], closings["seq"], closings["row"])
        roles = self._roles_after(acts, self.scopes.tenants_after(names[0]))
        for (_, dictionary), new in zip(self._names(), names, strict=True):
            dictionary.load(new)
        self.strings.load(strings)
        for table, loaded in zip(self._tables, tables, strict=True):
            table.load(loaded)
        self.closed_at.open(len(births["seq"]))
        self._derive_acts(len(acts["seq"]))
        self.closed_at.close(closings["row"], len(self.closings) - len(closings["row"]))
        self.roles = roles

    def _roles_after(self, acts: LoadedRows, tenants: Sequence[int]) -> EntityRoles:
        """Return the roles after the acts of a chunk. Raises `Corrupt` for an invalid act."""
        if not len(acts["seq"]):
            return self.roles
        roles = self.roles.copy()
        for seq, scope, *rest in zip(*(column.tolist() for column in acts.values()), strict=True):
            act = ActRow(seq, tenants[scope], *rest)
            require(
                roles.is_valid(act), "an act merges in a cycle, or ends an act that does not hold"
            )
            roles.take(act)
        return roles

    @property
    def size_bytes(self) -> int:
        """Memory used by columns, strings and indexes, without names."""
        size = sum(table.size_bytes for table in self._tables)
        derived = (self.closed_at, self._identity)
        indexes = (
            self.identities,
            self.by_subject,
            self.by_object,
            self.strings,
            self.folded_names,
            *(self.by_repeat, self.by_evidence, self.by_assumption, self.by_frame),
            *(self.by_act_subject, self.by_act_target, self.by_act_number),
        )
        return size + sum(part.size_bytes for part in (*derived, *indexes))


def _check_acts(acts: LoadedRows, texts: int, predicates: int, kinds: int, rows: int) -> None:
    """Raise `Corrupt` unless the codes and rows in acts exist."""
    act_kinds = acts["what"]
    sources = acts["one"]
    targets = acts["other"]
    numbers = acts["number"]
    check_codes(sources[act_kinds == Act.PREDICATE], 1, predicates)
    named = (act_kinds >= Act.ENTITY) & (act_kinds <= Act.SPLIT)
    check_codes(sources[named], 1, texts)
    check_codes(targets[named & (act_kinds != Act.ENTITY)], 1, texts)
    kind = targets[act_kinds == Act.ENTITY]
    require(not len(kind) or int(kind.max()) <= kinds, "an entity has an unknown kind")
    check_codes(numbers[act_kinds == Act.ALIAS], 1, texts)
    facts = numbers[act_kinds == Act.SPLIT]
    inside = not len(facts) or (int(facts.min()) >= 0 and int(facts.max()) < rows)
    require(inside, "a split names a fact that does not exist")


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
