"""The columns of facts: births, repetitions, evidence, assumptions, closings, and acts.

Owns the effect columns in order of seq, their place in digests and chunks, and the derived columns
by which facts are found. The fold in `facts` decides what to append; `fact_table` answers
questions.
"""

from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import Final, cast

import numpy as np

from cerata.engine.events import Scope

from .columns import (
    NO_ROW,
    U64,
    AnyColumn,
    AnyGrowing,
    Column,
    Columns,
    concatenate,
    require,
    rows_up_to,
)
from .fact_values import TEXT_KINDS, ObjectKind
from .hash_index import HashIndex
from .names import Names, check_seqs
from .scopes import is_within, read_scope, tenant_in
from .strings import Strings

FLAG_FROM_RECORDED: Final = 1
"""No start was given: it is when the fact was recorded. On disk: never renumber."""
FLAG_EVIDENCE: Final = 2
"""The event that asserted it names evidence. On disk: never renumber."""
FLAG_ASSUMPTIONS: Final = 4
"""It names assumptions. On disk: never renumber."""

NO_PLACE: Final = -1
"""In a column of byte places: none given. On disk: never renumber."""

_MIX: Final = np.uint64(0x9E37_79B9_7F4A_7C15)
_TEXT_KINDS: Final = np.array([int(kind) for kind in TEXT_KINDS], np.uint8)


class Act(IntEnum):
    """What an act says, with its three numbers. On disk: never renumber."""

    PREDICATE = 1
    """(predicate, 0, whether it is functional)"""
    ENTITY = 2
    """(entity, kind's name or 0, 0)"""
    ALIAS = 3
    """(entity, alias, the alias folded)"""
    MERGE = 4
    """(entity, into, 0)"""
    SPLIT = 5
    """(entity, into, row of one fact)"""
    END = 6
    """(0, 0, seq of the merge or split that ends)"""
    ODDITY = 7
    """(0, 0, `FactOddity`)"""


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

FactBirth = tuple[int, int, int, int, int, int, int, int, int, int, int, int, int]
"""One birth: the items of `FactColumns.births` in order."""


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
        self.seq, self.recorded = Column(np.int64), Column(np.int64)
        self.scope, self.subject = Column(np.uint32), Column(np.uint32)
        self.predicate, self.source = Column(np.uint32), Column(np.uint32)
        self.kind, self.object = Column(np.uint8), Column(np.uint64)
        self.valid_from, self.valid_to = Column(np.int64), Column(np.int64)
        self.confidence, self.depth = Column(np.uint32), Column(np.uint32)
        self.flags = Column(np.uint8)
        self.births: tuple[tuple[str, AnyGrowing], ...] = (
            ("facts.seq", self.seq),
            ("facts.recorded", self.recorded),
            ("facts.scope", self.scope),
            ("facts.subject", self.subject),
            ("facts.predicate", self.predicate),
            ("facts.kind", self.kind),
            ("facts.object", self.object),
            ("facts.valid_from", self.valid_from),
            ("facts.valid_to", self.valid_to),
            ("facts.confidence", self.confidence),
            ("facts.source", self.source),
            ("facts.depth", self.depth),
            ("facts.flags", self.flags),
        )
        self.repeat_seq, self.repeat_row = Column(np.int64), Column(np.uint64)
        self.repeat_confidence, self.repeat_source = Column(np.uint32), Column(np.uint32)
        self.repeats: tuple[tuple[str, AnyGrowing], ...] = (
            ("repeats.seq", self.repeat_seq),
            ("repeats.row", self.repeat_row),
            ("repeats.confidence", self.repeat_confidence),
            ("repeats.source", self.repeat_source),
        )
        self.evidence_seq, self.evidence_row = Column(np.int64), Column(np.uint64)
        self.evidence_frame = Column(np.int64)
        self.evidence_start, self.evidence_end = Column(np.int64), Column(np.int64)
        self.evidence: tuple[tuple[str, AnyGrowing], ...] = (
            ("evidence.seq", self.evidence_seq),
            ("evidence.row", self.evidence_row),
            ("evidence.frame", self.evidence_frame),
            ("evidence.start", self.evidence_start),
            ("evidence.end", self.evidence_end),
        )
        self.assumption_seq, self.assumption_row = Column(np.int64), Column(np.uint64)
        self.assumption_text = Column(np.uint32)
        self.assumptions: tuple[tuple[str, AnyGrowing], ...] = (
            ("assumptions.seq", self.assumption_seq),
            ("assumptions.row", self.assumption_row),
            ("assumptions.text", self.assumption_text),
        )
        self.closing_seq, self.closing_recorded = Column(np.int64), Column(np.int64)
        self.closing_row = Column(np.uint32)
        self.closings: tuple[tuple[str, AnyGrowing], ...] = (
            ("closings.seq", self.closing_seq),
            ("closings.recorded", self.closing_recorded),
            ("closings.row", self.closing_row),
        )
        self.act_seq, self.act_scope = Column(np.int64), Column(np.uint32)
        self.act_what = Column(np.uint8)
        self.act_one, self.act_other = Column(np.uint32), Column(np.uint32)
        self.act_number = Column(np.int64)
        self.acts: tuple[tuple[str, AnyGrowing], ...] = (
            ("acts.seq", self.act_seq),
            ("acts.scope", self.act_scope),
            ("acts.what", self.act_what),
            ("acts.one", self.act_one),
            ("acts.other", self.act_other),
            ("acts.number", self.act_number),
        )
        # Derived.
        self.closed_at = Column(np.uint32)
        self.identity = Column(np.uint64)
        self.subject_key, self.object_key = Column(np.uint64), Column(np.uint64)
        self.identities, self.by_subject, self.by_object = HashIndex(), HashIndex(), HashIndex()
        self.by_repeat, self.by_evidence, self.by_assumption = HashIndex(), HashIndex(), HashIndex()
        self.ruling = Column(np.uint32)
        """The rows of the acts that decide how facts are read."""
        self.scope_tenant: list[int] = [0]
        self._tenants: dict[str, int] = {}
        self._scopes: dict[int, Scope] = {}
        self._within: dict[Scope, tuple[int, frozenset[int]]] = {}

    # --- appending -------------------------------------------------------------------------------

    def scope_code(self, text: str, tenant: str, seq: int) -> int:
        """Return the code of a scope, whose one text is given."""
        code = self.scopes.code(text, seq)
        if code == len(self.scope_tenant):
            self._add_tenant(tenant)
        return code

    def _add_tenant(self, tenant: str) -> None:
        self.scope_tenant.append(self._tenants.setdefault(tenant, len(self._tenants) + 1))

    def tenant_code(self, tenant: str) -> int | None:
        """Return the number of a tenant, or None."""
        return self._tenants.get(tenant)

    def tenant_name(self, number: int) -> str:
        """Return the tenant of a number."""
        return list(self._tenants)[number - 1]

    def bear(self, rows: Sequence[FactBirth]) -> None:
        """Append births and what is derived of them."""
        if not rows:
            return
        for (_, column), items in zip(self.births, zip(*rows, strict=True), strict=True):
            column.extend(items)
        self._derive(len(rows))

    def append(
        self, group: Sequence[tuple[str, AnyGrowing]], rows: Sequence[tuple[int, ...]]
    ) -> None:
        """Append rows to one of the other groups."""
        if rows:
            for (_, column), items in zip(group, zip(*rows, strict=True), strict=True):
                column.extend(items)

    def act(self, rows: Sequence[tuple[int, ...]]) -> None:
        """Append acts."""
        self.append(self.acts, rows)
        self._derive_acts(len(rows))

    def _derive_acts(self, count: int) -> None:
        start = len(self.act_seq) - count
        ruling = np.flatnonzero(np.isin(self.act_what.view()[start:], _RULING)) + start
        self.ruling.extend(ruling.astype(np.uint32))

    def close(self, rows: Sequence[tuple[int, int, int]]) -> None:
        """Append closings (seq, recorded, row) of open rows."""
        if rows:
            first = len(self.closing_seq)
            self.append(self.closings, rows)
            closed = np.array([row for _, _, row in rows], np.int64)
            numbers = np.arange(first, first + len(rows), dtype=np.uint32)
            self.closed_at.set_once(closed, numbers)

    def _derive(self, count: int) -> None:
        """Derive what the last ``count`` births imply."""
        start = len(self.seq) - count
        self.closed_at.extend(np.full(count, NO_ROW, np.uint32))
        kind, object_ = self.kind.view()[start:], self.object.view()[start:]
        subject = self.subject.view()[start:]
        hashes = self.strings.all_hashes()
        self.subject_key.extend(hashes[subject - np.uint32(1)])
        is_text = np.isin(kind, _TEXT_KINDS)
        keys = object_.copy()
        keys[is_text] = hashes[object_[is_text].astype(np.int64) - 1]
        self.object_key.extend(object_keys(keys, kind))
        self.identity.extend(_identity_keys([column.view()[start:] for _, column in self.births]))

    # --- what the fold asks ----------------------------------------------------------------------

    def row_of(self, seq: int) -> int | None:
        """Return the row of the fact that event ``seq`` asserted, for the first time or again."""
        seqs = self.seq.view()
        row = int(np.searchsorted(seqs, seq))
        if row < len(seqs) and seqs[row] == seq:
            return row
        again = self.repeat_seq.view()
        place = int(np.searchsorted(again, seq))
        if place < len(again) and again[place] == seq:
            return int(self.repeat_row.view()[place])
        return None

    def rows_of_subject(self, subject: int) -> list[int]:
        """Return the rows of a subject, ascending."""
        key = int(self.strings.all_hashes()[subject - 1])
        subjects = self.subject.view()
        return [
            row
            for row in self.by_subject.find(self.subject_key.view(), key)
            if subjects[row] == subject
        ]

    def acts_from(self, first: int, end: int | None = None) -> Iterator[tuple[int, ...]]:
        """Yield the acts from row ``first`` to before ``end``: the items of ``acts`` in order."""
        columns = (np.asarray(column.view()[first:end], np.int64) for _, column in self.acts)
        items: list[list[int]] = [column.tolist() for column in columns]
        return zip(*items, strict=True)

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
            texts = enumerate(self.scopes.texts(), start=1)
            codes = frozenset(code for code, text in texts if is_within(read_scope(text), wanted))
            known = self._within[wanted] = len(self.scopes), codes
        return known[1]

    def identities_of(self, births: Sequence[FactBirth]) -> U64:
        """Return the keys by which assertions that may be the same fact are found."""
        columns = [
            np.asarray(items, column.view().dtype)
            for (_, column), items in zip(self.births, zip(*births, strict=True), strict=True)
        ]
        return _identity_keys(cast("list[AnyColumn]", columns))

    def identity_of(self, row: int) -> tuple[int, ...]:
        """Return what makes another assertion the same fact as a row."""
        birth = [int(column.view()[row]) for _, column in self.births]
        return identity_of_birth(birth)

    def row_closed_by(self, seq: int) -> int | None:
        """Return the row that event ``seq`` retracted, or None."""
        seqs = self.closing_seq.view()
        place = int(np.searchsorted(seqs, seq))
        if place < len(seqs) and seqs[place] == seq:
            return int(self.closing_row.view()[place])
        return None

    def is_closed(self, row: int) -> bool:
        return bool(self.closed_at.view()[row] != NO_ROW)

    # --- effects ---------------------------------------------------------------------------------

    @property
    def _groups(self) -> tuple[tuple[tuple[str, AnyGrowing], ...], ...]:
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
        for group in self._groups:
            seqs = group[0][1].view().astype(np.int64, copy=False)
            start, end = rows_up_to(seqs, after), rows_up_to(seqs, through)
            effects.update({name: column.view()[start:end] for name, column in group})
        for prefix, names in self._names():
            effects.update(names.effects(prefix, after, through))
        return {**effects, **self.strings.effects(after, through)}

    def load(self, columns: Columns, after: int, through: int) -> None:
        """Append the effects in a chunk. Raises `Corrupt`, and then changes nothing."""
        groups = [
            [columns.like(name, column.view()) for name, column in group] for group in self._groups
        ]
        for place, group in enumerate(groups):
            seqs = group[0].astype(np.int64, copy=False)
            check_seqs(seqs, after, through, "a seq column", strict=place == 0)
            require(len({len(column) for column in group}) == 1, "its columns differ in length")
        names = [one.read(columns, prefix, after, through) for prefix, one in self._names()]
        scopes = [read_scope(text) for text in names[0].texts]
        strings = self.strings.read(columns, after, through)
        births, repeats, evidence, assumptions, closings, acts = groups
        limits = [
            len(one) + len(new.texts) for (_, one), new in zip(self._names(), names, strict=True)
        ]
        texts = len(self.strings) + len(strings.sizes)
        _check_codes(births[2], limits[0])
        _check_codes(births[3], texts)
        _check_codes(births[4], limits[1])
        _check_codes(births[10], limits[2])
        _check_codes(repeats[3], limits[2])
        _check_codes(assumptions[2], texts)
        _check_codes(acts[1], limits[0])
        is_text = np.isin(births[5], _TEXT_KINDS)
        _check_codes(births[6][is_text], texts)
        for column, least, most in ((births[5], 1, max(ObjectKind)), (acts[2], 1, max(Act))):
            inside = not len(column) or least <= int(column.min()) <= int(column.max()) <= most
            require(inside, "a kind is not known")
        rows = len(self.seq) + len(births[0])
        for column in (repeats[1], evidence[1], assumptions[1], closings[2]):
            require(
                not len(column) or int(column.max()) < rows, "it names a fact that is not there"
            )
        self._check_acts(acts, texts, limits[1], limits[3], rows)
        self._check_closings(births[0], closings)
        for scope in scopes:
            self._add_tenant(tenant_in(scope))
        for (_, one), new in zip(self._names(), names, strict=True):
            one.load(new)
        self.strings.load(strings)
        for columns_kept, items in zip(self._groups, groups, strict=True):
            for (_, growing), added in zip(columns_kept, items, strict=True):
                growing.adopt(added)
        self._derive(len(births[0]))
        self._derive_acts(len(acts[0]))
        closed = closings[2].astype(np.int64)
        first = len(self.closing_seq) - len(closed)
        self.closed_at.set_once(closed, np.arange(first, first + len(closed), dtype=np.uint32))

    def _check_acts(
        self, acts: Sequence[AnyColumn], texts: int, predicates: int, kinds: int, rows: int
    ) -> None:
        """Raise `Corrupt` unless acts name what is there."""
        what, one, other, number = acts[2], acts[3], acts[4], acts[5]
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

    def _check_closings(self, seqs: AnyColumn, closings: Sequence[AnyColumn]) -> None:
        """Raise `Corrupt` unless each closing closes an open row after its birth."""
        when, rows = closings[0], closings[2]
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
        held = sum(column.size_bytes for group in self._groups for _, column in group)
        derived = (self.closed_at, self.identity, self.subject_key, self.object_key)
        indexes = (self.identities, self.by_subject, self.by_object, self.strings)
        return held + sum(one.size_bytes for one in (*derived, *indexes))


def _check_codes(codes: AnyColumn, limit: int) -> None:
    """Raise `Corrupt` unless codes are of what there is."""
    inside = not len(codes) or 1 <= int(codes.min()) <= int(codes.max()) <= limit
    require(inside, "a code is of nothing that is there")


def object_keys(numbers: U64, kinds: AnyColumn) -> U64:
    """Return u64s that differ where objects of the same number have different kinds."""
    return (numbers + kinds.astype(np.uint64)) * _MIX


def object_key(number: int, kind: ObjectKind) -> int:
    """Return `object_keys` of one."""
    return (number + int(kind)) * int(_MIX) & 0xFFFF_FFFF_FFFF_FFFF


def _identity_keys(births: Sequence[AnyColumn]) -> U64:
    """Return one u64 for each birth, the same where they are the same fact."""
    unstated = (births[12] & np.uint8(FLAG_FROM_RECORDED)) != 0
    given = np.where(unstated, 0, births[7])
    mixed = np.zeros(len(given), np.uint64)
    for column in (*births[2:7], given, births[8]):
        mixed = (mixed ^ column.astype(np.uint64)) * _MIX
        mixed ^= mixed >> np.uint64(29)
    return mixed


def identity_of_birth(birth: Sequence[int]) -> tuple[int, ...]:
    """Return what makes two assertions the same fact: scope, triple, and the range given."""
    unstated = birth[12] & FLAG_FROM_RECORDED
    return (*birth[2:7], unstated, 0 if unstated else birth[7], birth[8])
