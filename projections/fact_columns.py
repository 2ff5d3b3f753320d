"""The columns of facts: births, repetitions, evidence, assumptions, closings, and acts.

Owns the effect columns in order of seq, their place in digests and chunks, and the derived columns
by which facts are found. The fold in `facts` decides what to append; `fact_table` answers
questions.
"""

from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import Final, NamedTuple, cast

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
    rows_up_to,
)
from .entity_roles import Act, ActRow, EntityRoles
from .fact_values import TEXT_KINDS, ObjectKind
from .folded_names import FoldedNames
from .hash_index import HashIndex
from .names import Names
from .scopes import by_name, is_within, read_scope, scope_text, tenant_in
from .strings import Strings
from .tables import LoadedRows, Table

FLAG_FROM_RECORDED: Final = 1
"""No start was given: it is when the fact was recorded. On disk: never renumber."""
FLAG_EVIDENCE: Final = 2
"""The event that asserted it names evidence. On disk: never renumber."""
FLAG_ASSUMPTIONS: Final = 4
"""It names assumptions. On disk: never renumber."""

QUOTE_SIZE: Final = 16
"""Bytes of the hash of a quote; where all are 0 there is none. On disk: never change."""

NO_PLACE: Final = -1
"""In a column of byte places: none given. On disk: never renumber."""

_MIX: Final = np.uint64(0x9E37_79B9_7F4A_7C15)
_TEXT_KINDS: Final = np.array([int(kind) for kind in TEXT_KINDS], np.uint8)


class FactOddity(IntEnum):
    """What the fold met and passed over. On disk: never renumber."""

    ERASED = 1
    """The payload is gone, so what it said is unknown."""
    UNKNOWN_REFERENCE = 2
    """It names a fact, merge or split that is not there."""
    ALREADY_CLOSED = 3
    """It ends what had ended, or merges an entity that is merged."""
    CYCLE = 4
    """It merges an entity into itself, or into one that is read as it."""
    NO_VALUE = 5
    """The object is of no kind that is known."""
    EMPTY_RANGE = 6
    """The fact ends before it begins, so it is never true."""


_RULING: Final = np.array([Act.PREDICATE, Act.MERGE, Act.SPLIT, Act.END], np.uint8)

CONFIDENCE_UNIT: Final = 1_000_000
"""Confidence is kept in millionths. On disk: never change."""


class FactBirth(NamedTuple):
    """One birth: a row of `FactColumns.births`."""

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
        """What makes two assertions the same fact: scope, triple, and the range given."""
        unstated = self.flags & FLAG_FROM_RECORDED
        return (*self[2:7], unstated, 0 if unstated else self.valid_from, self.valid_to)


class FactColumns:
    """Every column of the facts fold, appended by one thread.

    - Row r of all birth columns is one fact; ``seq`` ascends with r.
    - A row is closed at most once, after its birth.
    - Derived columns have a row each; ``closed_at`` of a row names a closing, which a reader of an
      earlier state passes over.
    """

    def __init__(self) -> None:
        self.scopes, self.predicates, self.sources = Names(), Names(), Names()
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
        self.act_what = Column(np.uint8)
        self.act_one, self.act_other = Column(np.uint32), Column(np.uint32)
        self.act_number = Column(np.int64)
        self.acts = Table(
            "acts",
            seq=self.act_seq,
            scope=self.act_scope,
            what=self.act_what,
            one=self.act_one,
            other=self.act_other,
            number=self.act_number,
        )
        # Derived.
        self.closed_at = Column(np.uint32)
        self._identity = Column(np.uint64)
        self.identities, self.by_subject, self.by_object = HashIndex(), HashIndex(), HashIndex()
        self.by_repeat, self.by_evidence, self.by_assumption = HashIndex(), HashIndex(), HashIndex()
        self.by_frame = HashIndex()
        self.ruling = Column(np.uint32)
        """The rows of the acts that decide how facts are read."""
        self.roles = EntityRoles()
        """Who is who after all acts."""
        self.scope_tenant: list[int] = [0]
        self._tenants: dict[str, int] = {}
        self._scopes: dict[int, Scope] = {}
        self._within: dict[Scope, tuple[int, frozenset[int]]] = {}

    # --- appending -------------------------------------------------------------------------------

    def scope_code(self, scope: Scope, seq: int) -> int:
        """Return the code of a scope, whatever the order of its names."""
        code = self.scopes.code(scope_text(by_name(scope)), seq)
        if code == len(self.scope_tenant):
            self._add_tenant(tenant_in(scope))
        return code

    def _add_tenant(self, tenant: str) -> None:
        self.scope_tenant.append(self._tenants.setdefault(tenant, len(self._tenants) + 1))

    def tenant_code(self, tenant: str) -> int | None:
        """Return the number of a tenant, or None."""
        return self._tenants.get(tenant)

    def tenant_name(self, number: int) -> str:
        """Return the tenant of a number."""
        return list(self._tenants)[number - 1]

    def bear(self, births: Sequence[FactBirth]) -> None:
        """Append births and what is derived of them."""
        self.births.append(births)
        self._open(len(births))

    def act(self, rows: Sequence[tuple[int, ...]]) -> None:
        """Append acts, which ``roles`` has followed."""
        self.acts.append(rows)
        self._derive_acts(len(rows))

    def _derive_acts(self, count: int) -> None:
        start = len(self.acts) - count
        ruling = np.flatnonzero(np.isin(self.act_what.view()[start:], _RULING)) + start
        self.ruling.extend(ruling.astype(np.uint32))

    def close(self, rows: Sequence[tuple[int, int, int]]) -> None:
        """Append closings (seq, recorded, row) of open rows."""
        self.closings.append(rows)
        self._mark_closed(np.array([row for _, _, row in rows], np.int64))

    def _open(self, count: int) -> None:
        """Derive of the last births that none is closed."""
        self.closed_at.extend(np.full(count, NO_ROW, np.uint32))

    def _mark_closed(self, rows: I64) -> None:
        """Derive what the last closings imply, which are of these rows."""
        end = len(self.closings)
        self.closed_at.set_once(rows, np.arange(end - len(rows), end, dtype=np.uint32))

    # --- what the fold asks ----------------------------------------------------------------------

    def row_of(self, seq: int) -> int | None:
        """Return the row of the fact that event ``seq`` asserted, for the first time or again."""
        row = _place_of(self.seq, seq)
        if row is not None:
            return row
        place = _place_of(self.repeat_seq, seq)
        return None if place is None else self.repeat_row.item(place)

    def rows_of_subject(self, subject: int) -> list[int]:
        """Return the rows of a subject, ascending."""
        return self.by_subject.find(self.subject.view(), subject)

    def act_row(self, row: int) -> ActRow:
        """Return one act."""
        return self._with_tenant(self.acts.row(row))

    def scope_of_act(self, row: int) -> int:
        """Return the code of an act's scope."""
        return int(self.act_scope.view()[row])

    def acts_until(self, end: int) -> Iterator[tuple[int, ActRow]]:
        """Yield the first ``end`` acts in order, each with its scope's code."""
        return ((row[1], self._with_tenant(row)) for row in self.acts.rows(0, end))

    def _with_tenant(self, row: tuple[int, ...]) -> ActRow:
        return ActRow(row[0], self.scope_tenant[row[1]], *row[2:])

    def repeats_of(self, row: int, n: int) -> list[int]:
        """Return the places in repeats of a row by event n, ascending."""
        end = rows_up_to(self.repeat_seq.view(), n)
        return self.by_repeat.find(self.repeat_row.view()[:end], row) if end else []

    def evidence_of(self, row: int, n: int) -> list[int]:
        """Return the places in evidence of a row by event n, ascending."""
        end = rows_up_to(self.evidence_seq.view(), n)
        return self.by_evidence.find(self.evidence_row.view()[:end], row) if end else []

    def assumptions_of(self, row: int, n: int) -> list[int]:
        """Return the places in assumptions of a row by event n, ascending."""
        end = rows_up_to(self.assumption_seq.view(), n)
        return self.by_assumption.find(self.assumption_row.view()[:end], row) if end else []

    def scope_named(self, code: int) -> Scope:
        """Return the scope with a code."""
        found = self._scopes.get(code)
        if found is None:
            found = self._scopes[code] = read_scope(self.scopes.text(code) or "[]")
        return found

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

    def all_identities(self) -> U64:
        """Return the identity key of every row; of those that were loaded they are made here."""
        start = len(self._identity)
        if start < len(self.births):
            births = [column[start:] for column in self.births.views()]
            self._identity.extend(_identity_keys(births))
        return self._identity.view()

    def identities_of(self, births: Sequence[FactBirth]) -> U64:
        """Return the keys by which assertions that may be the same fact are found."""
        columns = [
            np.asarray(items, column.dtype)
            for column, items in zip(self.births.views(), zip(*births, strict=True), strict=True)
        ]
        return _identity_keys(cast("list[AnyColumn]", columns))

    def birth(self, row: int) -> FactBirth:
        """Return one birth."""
        return FactBirth(*self.births.row(row))

    def row_closed_by(self, seq: int) -> int | None:
        """Return the row that event ``seq`` retracted, or None."""
        place = _place_of(self.closing_seq, seq)
        return None if place is None else self.closing_row.item(place)

    def is_closed(self, row: int) -> bool:
        return bool(self.closed_at.view()[row] != NO_ROW)

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

    def derived(self, after: int, through: int) -> dict[str, AnyColumn]:
        """Return the hashes of the strings of these events."""
        return {"strings.hashes": self.strings.hashes(after, through)}

    def load(self, columns: Columns, after: int, through: int) -> None:
        """Append the effects in a chunk. Raises `Corrupt`, and then changes nothing."""
        births, repeats, evidence, assumptions, closings, acts = tables = [
            table.read(columns, after, through) for table in self._tables
        ]
        names = [one.read(columns, prefix, after, through) for prefix, one in self._names()]
        strings = self.strings.read(columns, after, through)
        tenants = [tenant_in(read_scope(text)) for text in names[0].texts]
        scopes, predicates, sources, kinds = (
            len(one) + len(new.texts) for (_, one), new in zip(self._names(), names, strict=True)
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
            (acts["scope"], scopes),
            (acts["what"], max(Act)),
        ):
            _check_codes(codes, limit)
        for column in (repeats["row"], evidence["row"], assumptions["row"], closings["row"]):
            inside = not len(column) or int(column.max()) < rows
            require(inside, "it names a fact that is not there")
        _check_acts(acts, texts, predicates, kinds, rows)
        self._check_closings(births["seq"], closings)
        roles = self._roles_after(acts, tenants)
        for tenant in tenants:
            self._add_tenant(tenant)
        for (_, one), new in zip(self._names(), names, strict=True):
            one.load(new)
        self.strings.load(strings)
        for table, loaded in zip(self._tables, tables, strict=True):
            table.load(loaded)
        self._open(len(births["seq"]))
        self._derive_acts(len(acts["seq"]))
        self._mark_closed(closings["row"].astype(np.int64))
        self.roles = roles

    def _roles_after(self, acts: LoadedRows, tenants: Sequence[str]) -> EntityRoles:
        """Return who is who after the acts of a chunk. Raises `Corrupt` where one cannot hold."""
        if not len(acts["seq"]):
            return self.roles
        roles, numbers, known = self.roles.copy(), list(self.scope_tenant), dict(self._tenants)
        numbers += [known.setdefault(tenant, len(known) + 1) for tenant in tenants]
        for seq, scope, *said in zip(*(column.tolist() for column in acts.values()), strict=True):
            act = ActRow(seq, numbers[scope], *said)
            require(roles.may_hold(act), "it merges in a circle, or ends what does not hold")
            roles.take(act)
        return roles

    def _check_closings(self, seqs: AnyColumn, closings: LoadedRows) -> None:
        """Raise `Corrupt` unless each closing closes an open row after its birth."""
        when, rows = closings["seq"], closings["row"]
        if not len(rows):
            return
        born = concatenate([self.seq.view(), seqs.astype(np.int64)], np.int64)
        require(bool((born[rows] < when).all()), "a closing comes before its birth")
        before = rows[rows < len(self.closed_at)]
        open_before = self.closed_at.view()[before] == NO_ROW
        once = len(np.unique(rows)) == len(rows)
        require(once and bool(open_before.all()), "a fact is closed twice")

    @property
    def size_bytes(self) -> int:
        """Memory held by columns, strings and indexes, names left out."""
        held = sum(table.size_bytes for table in self._tables)
        derived = (self.closed_at, self._identity)
        indexes = (
            self.identities,
            self.by_subject,
            self.by_object,
            self.strings,
            self.folded_names,
            *(self.by_repeat, self.by_evidence, self.by_assumption, self.by_frame),
        )
        return held + sum(one.size_bytes for one in (*derived, *indexes))


def _place_of(seqs: Column[np.int64], seq: int) -> int | None:
    """Return the first place of an event in a column that ascends, or None."""
    place = int(seqs.view().searchsorted(seq))
    return place if place < len(seqs) and seqs.item(place) == seq else None


def _check_codes(codes: AnyColumn, limit: int) -> None:
    """Raise `Corrupt` unless codes are of what there is."""
    inside = not len(codes) or 1 <= int(codes.min()) <= int(codes.max()) <= limit
    require(inside, "a code is of nothing that is there")


def _check_acts(acts: LoadedRows, texts: int, predicates: int, kinds: int, rows: int) -> None:
    """Raise `Corrupt` unless acts name what is there."""
    what, one, other, number = acts["what"], acts["one"], acts["other"], acts["number"]
    _check_codes(one[what == Act.PREDICATE], predicates)
    named = (what >= Act.ENTITY) & (what <= Act.SPLIT)
    _check_codes(one[named], texts)
    _check_codes(other[named & (what != Act.ENTITY)], texts)
    kind = other[what == Act.ENTITY]
    require(not len(kind) or int(kind.max()) <= kinds, "a kind of entity has no such code")
    _check_codes(number[what == Act.ALIAS], texts)
    facts = number[what == Act.SPLIT]
    inside = not len(facts) or (int(facts.min()) >= 0 and int(facts.max()) < rows)
    require(inside, "a split names a fact that is not there")


def _identity_keys(births: Sequence[AnyColumn]) -> U64:
    """Return one u64 for each birth, the same where `FactBirth.identity` is."""
    columns = dict(zip(FactBirth._fields, births, strict=True))
    unstated = (columns["flags"] & np.uint8(FLAG_FROM_RECORDED)) != 0
    given = np.where(unstated, 0, columns["valid_from"])
    mixed = np.zeros(len(given), np.uint64)
    for column in (*births[2:7], given, columns["valid_to"]):
        mixed = (mixed ^ column.astype(np.uint64)) * _MIX
        mixed ^= mixed >> np.uint64(29)
    return mixed
