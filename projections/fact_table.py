"""Facts as of any event: the reader over the columns that `facts` folds.

Owns questions about what was known at seq n, and what follows from it: where a value of a
functional predicate ends, what contradicts what, and which names stand for one entity
(`entity_roles`). The answers at n are those of a store that stopped at n.

Cost of a look-up by subject or object: O(log² n) and the facts with that name, whatever n is. By
predicate alone, or nothing, a pass over the columns.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from typing import Final, NamedTuple, Protocol

import numpy as np

from cerata.engine.events import Scope

from .columns import I64, Mask, rows_up_to
from .entity_roles import Act, ActRow, EntityRoles
from .fact_columns import (
    CONFIDENCE_UNIT,
    FLAG_ASSUMPTIONS,
    FLAG_EVIDENCE,
    NO_PLACE,
    QUOTE_SIZE,
    FactColumns,
)
from .fact_values import TEXT_KINDS, ObjectKind, Standing, number_of, text_of, value_of
from .intervals import ENDLESS, Interval


class FactSpan(NamedTuple):
    """A row, and when it is true: as stated, or to where another value began (``by``, a row)."""

    row: int
    valid: Interval
    by: int | None


class FactGroup(NamedTuple):
    """Rows with one subject and predicate, and whether that has one value at a time."""

    rows: list[int]
    functional: bool


class EvidencePlace(NamedTuple):
    """A frame, and the UTF-8 bytes [start, end) of its text and their hash, where given."""

    frame: int
    start: int | None
    end: int | None
    quote: bytes | None


class Facts:
    """Reads facts at any n up to ``seq``. Immutable: any thread may use it meanwhile."""

    def __init__(self, columns: FactColumns, seq: int) -> None:
        self.seq = seq
        self.columns = columns
        self.seqs: I64 = columns.seq.view()
        self.closing_seqs: I64 = columns.closing_seq.view()
        self.subject_codes, self.object_numbers = columns.subject.view(), columns.object.view()
        # A number out of a memoryview takes a third of the time of one out of an array.
        self.births = columns.seq.view().data
        self.recorded = columns.recorded.view().data
        self.subjects = self.subject_codes.data
        self.predicates = columns.predicate.view().data
        self.kinds = columns.kind.view().data
        self.objects = self.object_numbers.data
        self.starts = columns.valid_from.view().data
        self.ends = columns.valid_to.view().data
        self.scopes = columns.scope.view().data
        self.confidences = columns.confidence.view().data
        self.sources = columns.source.view().data
        self.depths = columns.depth.view().data
        self.flags = columns.flags.view().data
        self.closed = columns.closed_at.view().data
        self.closings = self.closing_seqs.data
        self.any_repeats = len(columns.repeats) > 0
        self._ruling = columns.ruling.view()
        self._ruling_seqs: I64 = columns.act_seq.view()[self._ruling]
        self._unruled = EntityRoles()
        self._roles: dict[tuple[int, frozenset[int] | None], EntityRoles] = {}

    def at(self, n: int, wanted: Scope | None = None) -> "FactsAt":
        """Return the facts as event ``n`` left them, those within a scope."""
        return FactsAt(self, n, self.columns.scopes.within(wanted))

    def roles(self, n: int, scopes: frozenset[int] | None) -> EntityRoles:
        """Return who is who at event ``n``. Cost: the merges, splits and declarations by then."""
        columns = self.columns
        count = rows_up_to(self._ruling_seqs, n) if len(self._ruling) else 0
        if not count:
            return self._unruled
        found = self._roles.get((count, scopes))
        if found is None:
            if len(self._roles) >= _ROLES_KEPT_MAX:
                self._roles.clear()
            found = EntityRoles()
            for row in self._ruling[:count].tolist():
                act = columns.act_row(row)
                # Whoever ended it, it has ended, as with a retraction.
                if scopes is None or act.what == Act.END or columns.scope_of_act(row) in scopes:
                    found.take(act)
            self._roles[count, scopes] = found
        return found

    # --- what an append is checked by ------------------------------------------------------------

    def scope_of_fact(self, fact: int) -> Scope | None:
        """Return the scope of the fact that an id names, or None where there is none."""
        row = self.columns.row_of(fact)
        if row is None or row >= len(self.seqs):
            return None
        return self.columns.scopes.scope(self.scopes[row])

    def fact_named(self, fact: int) -> int:
        """Return the id of the fact that an id names, which may be of an event that repeats it."""
        row = self.columns.row_of(fact) if fact > 0 else None
        return fact if row is None else int(self.seqs[row])

    def is_closed(self, fact: int, n: int) -> bool:
        """Tell whether a fact was retracted by event ``n``."""
        row = self.columns.row_of(fact) if fact > 0 else None
        if row is None or row >= len(self.seqs):
            return False
        return self.closed[row] < rows_up_to(self.closing_seqs, n)

    def holds(self, seq: int, n: int) -> bool:
        """Tell whether a merge or split holds at event ``n``, by its seq."""
        return self.roles(n, None).holds(seq)

    def merge_named(self, seq: int, n: int) -> tuple[str, str]:
        """Return the tenant and the entity of a merge that holds at event ``n``."""
        tenant, entity = self.roles(n, None).merges[seq]
        return self.columns.scopes.tenant_name(tenant), self.columns.strings.text(entity)

    def merged_into(self, tenant: str, name: str, n: int) -> str | None:
        """Return what an entity is merged into at event ``n``, or None."""
        columns = self.columns
        code, number = columns.strings.find(name), columns.scopes.tenant_number(tenant)
        if code is None or number is None:
            return None
        into = self.roles(n, None).merged.get((number, code))
        return None if into is None else columns.strings.text(into)


_ROLES_KEPT_MAX: Final = 16

_TEXTS_KEPT_MAX: Final = 1024


def _start_of(begun: tuple[int, int, tuple[int, int]]) -> int:
    return begun[0]


class Labels(Protocol):
    """What links between facts say of some of them (`labelling`)."""

    def label(self, row: int) -> Standing:
        """Return whether a row stands."""
        ...

    def invalid(self, rows: Sequence[int] | I64) -> set[int]:
        """Return those of known rows that are invalid."""
        ...


class FactsAt:
    """The facts at one n; immutable, for any thread. A row is known at n, or it is passed over.

    With ``labels`` a row that these say is invalid is passed over too.
    """

    labels: Labels | None = None

    def __init__(self, facts: Facts, n: int, scopes: frozenset[int] | None) -> None:
        self.n = n
        self._facts = facts
        self._columns = facts.columns
        self._scopes = scopes
        self.roles = facts.roles(n, scopes)
        self._is_plain = self.roles.is_plain
        # Closings that came since are of rows that were known: a reader's rows name those too.
        self._closings = rows_up_to(facts.closing_seqs, n)
        self._texts: dict[int, str] = {}

    @property
    def row_count(self) -> int:
        """How many rows there are at n."""
        return rows_up_to(self._facts.seqs, self.n)

    # --- finding ---------------------------------------------------------------------------------

    def find(
        self,
        subject: str | None = None,
        predicate: str | None = None,
        object_: tuple[ObjectKind, object] | None = None,
        *,
        closed: bool = False,
        invalid: bool = False,
        instant: int | None = None,
    ) -> list[int]:
        """Return the rows known at n with what is given, ascending; with ``closed`` all by n.

        With ``invalid`` what is known and invalid comes too. ``instant`` leaves out those that were
        not even said to be true then.
        """
        facts, code = self._facts, None
        if predicate is not None:
            code = self._columns.predicates.find(predicate)
            if code is None:
                return []
        if subject is not None:
            rows = self._of_subject(subject)
            if rows and object_ is not None:
                rows = self._with_object(rows, *object_)
        elif object_ is not None:
            rows = self._of_object(*object_)
        else:
            rows = self._scan(code, closed=closed)
            code = None
        if not rows:
            return rows
        predicates, starts, ends = facts.predicates, facts.starts, facts.ends
        found: list[int] = []
        for row in rows:
            if code is not None and predicates[row] != code:
                continue
            if instant is None or starts[row] <= instant < ends[row]:
                found.append(row)
        return self._seen(found, closed=closed, invalid=invalid) if found else found

    def _scan(self, predicate: int | None, *, closed: bool) -> list[int]:
        mask = np.ones(self.row_count, np.bool_) if closed else self.known_mask()
        if predicate is not None:
            mask &= self._columns.predicate.view()[: len(mask)] == predicate
        rows: list[int] = np.flatnonzero(mask).tolist()
        return rows

    def known_mask(self) -> Mask:
        """Return which of the rows by n are known; those outside the scope among them."""
        found: Mask = self._columns.closed_at.view()[: self.row_count] >= self._closings
        return found

    def shown_mask(self, instant: int | None = None) -> Mask:
        """Return which of the rows by n are shown: known, within the scope, not invalid, and true.

        True as was stated, that is, whatever ended it.
        """
        mask, columns = self.known_mask(), self._columns
        count = len(mask)
        if instant is not None:
            mask &= columns.valid_from.view()[:count] <= instant
            mask &= columns.valid_to.view()[:count] > instant
        if self._scopes is not None:
            mask &= np.isin(columns.scope.view()[:count], list(self._scopes))
        if self.labels is not None:
            mask[list(self.labels.invalid(np.flatnonzero(mask)))] = False
        return mask

    def first_named(self, code: int) -> dict[int, tuple[int, int]]:
        """Return when facts first name each tenant's entity of a name: (event, place).

        The place is 0 as subject and 1 as object. Known or not, within the scope.
        """
        facts, columns = self._facts, self._columns
        found: dict[int, tuple[int, int]] = {}
        for place, rows in enumerate(
            (
                columns.by_subject.find(facts.subject_codes, code),
                columns.by_object.find(facts.object_numbers, code),
            )
        ):
            left = set(columns.scopes.tenants[1:])
            for row in rows:
                if not left or facts.births[row] > self.n:
                    break
                if self._scopes is not None and facts.scopes[row] not in self._scopes:
                    continue
                tenant = self.tenant_of(row)
                if tenant in left and (not place or facts.kinds[row] == ObjectKind.ENTITY):
                    left.discard(tenant)
                    moment = facts.births[row], place
                    found[tenant] = min(moment, found.get(tenant, moment))
        return found

    def _seen(self, rows: Iterable[int], *, closed: bool, invalid: bool = False) -> list[int]:
        """Leave out rows that are not known at n, that are invalid, or outside the scope."""
        facts, n, scopes = self._facts, self.n, self._scopes
        births = facts.births
        found = [row for row in rows if births[row] <= n]
        if not closed and self._closings:
            found = [row for row in found if self.is_known(row)]
        if scopes is not None:
            codes = facts.scopes
            found = [row for row in found if codes[row] in scopes]
        if self.labels is None or invalid:
            return found
        known = [row for row in found if self.is_known(row)] if closed else found
        gone = self.labels.invalid(known)
        return [row for row in found if row not in gone] if gone else found

    def _of_subject(self, name: str) -> list[int]:
        """Return the rows whose subject is read as what a name is, known or not."""
        columns, facts = self._columns, self._facts
        code = columns.strings.find(name)
        if code is None:
            return []
        if self._is_plain:
            self._keep(code, name)
            return columns.by_subject.find(facts.subject_codes, code)
        rows: list[int] = []
        for one in self.roles.related(code):
            rows += columns.by_subject.find(facts.subject_codes, one)
        return sorted(row for row in rows if self._reads_as(row, facts.subjects[row], code))

    def _of_object(self, kind: ObjectKind, value: object) -> list[int]:
        """Return the rows with an object, known or not; of entities those read as it."""
        columns, numbers = self._columns, self._facts.object_numbers
        number = self._number(kind, value)
        if number is None:
            return []
        if kind is not ObjectKind.ENTITY or self._is_plain:
            kinds = self._facts.kinds
            found = columns.by_object.find(numbers, number)
            return [row for row in found if kinds[row] == kind]
        rows: list[int] = []
        for one in self.roles.related(number):
            rows += columns.by_object.find(numbers, one)
        return self._with_object(sorted(rows), kind, value)

    def _with_object(self, rows: Sequence[int], kind: ObjectKind, value: object) -> list[int]:
        """Leave out the rows with another object; entities count as what they are read as."""
        kinds, objects, number = self._facts.kinds, self._facts.objects, self._number(kind, value)
        if number is None:
            return []
        if kind is not ObjectKind.ENTITY or self._is_plain:
            return [row for row in rows if objects[row] == number and kinds[row] == kind]
        return [
            row for row in rows if kinds[row] == kind and self._reads_as(row, objects[row], number)
        ]

    def _number(self, kind: ObjectKind, value: object) -> int | None:
        """Return what stands for an object in the columns, or None where nothing does."""
        if kind not in TEXT_KINDS:
            return number_of(kind, value)
        text = text_of(value)
        code = self._columns.strings.find(text)
        if code is not None:
            self._keep(code, text)
        return code

    def known_among(self, rows: I64) -> I64:
        """Leave out rows that are not known at n, that are invalid, or outside the scope."""
        rows = rows[rows < self.row_count]
        rows = rows[self._columns.closed_at.view()[rows] >= self._closings]
        if self._scopes is not None:
            rows = rows[np.isin(self._columns.scope.view()[rows], list(self._scopes))]
        if self.labels is not None:
            rows = rows[~np.isin(rows, list(self.labels.invalid(rows)))]
        return rows

    def labelled(self, labels: Labels) -> "FactsAt":
        """Return these facts without those that are invalid."""
        found = copy(self)
        found.labels = labels
        return found

    def standing_of(self, row: int) -> Standing:
        """Return whether a row stands; one that was retracted is invalid."""
        if self.labels is not None:
            return self.labels.label(row)
        return Standing.STANDS if self.is_known(row) else Standing.INVALID

    def ids_of(self, rows: Sequence[int]) -> list[int]:
        """Return every id of rows: of the events that assert them, for the first time and again."""
        columns, found = self._columns, [self.seq_of(row) for row in rows]
        if self._facts.any_repeats:
            again = columns.repeat_seq.view()
            places = (place for row in rows for place in columns.repeats_of(row, self.n))
            found += [int(again[place]) for place in places]
        return found

    def rows_of(self, ids: I64) -> I64:
        """Return the rows by n that ids name; what names no fact is left out."""
        columns, found = self._columns, list[I64]()
        for seqs, rows in (
            (self._facts.seqs, None),
            (columns.repeat_seq.view(), columns.repeat_row.view()),
        ):
            places = np.searchsorted(seqs, ids)
            inside = places < len(seqs)
            places, wanted = places[inside], ids[inside]
            places = places[seqs[places] == wanted]
            found.append(places if rows is None else rows[places].astype(np.int64))
        every = np.unique(np.concatenate(found))
        return every[every < self.row_count]

    def tenant_named(self, row: int) -> str:
        """Return a row's tenant."""
        return self._columns.scopes.tenant_name(self.tenant_of(row))

    def entities_of(self, row: int) -> list[tuple[int, int]]:
        """Return the tenant and entity of a row's subject, and of its object if that is one."""
        facts, tenant = self._facts, self.tenant_of(row)
        named = [facts.subjects[row]]
        if facts.kinds[row] == ObjectKind.ENTITY:
            named.append(facts.objects[row])
        return [(tenant, self._read(row, one)) for one in named]

    @property
    def tenants(self) -> set[int]:
        """The tenants within the scope, those of later events too."""
        tenants = self._columns.scopes.tenants
        codes = range(1, len(tenants)) if self._scopes is None else self._scopes
        return {tenants[code] for code in codes}

    def rows_said_by(self, frames: Iterable[int]) -> dict[int, list[int]]:
        """Return by frame the known rows that have it as evidence by n, ascending."""
        columns, found = self._columns, dict[int, list[int]]()
        end = rows_up_to(columns.evidence_seq.view(), self.n)
        keys = columns.evidence_frame.view()[:end].view(np.uint64)
        for frame in frames:
            places = columns.by_frame.find(keys, frame) if end else []
            rows = np.unique(columns.evidence_row.view()[places]).astype(np.int64)
            found[frame] = self.known_among(rows).tolist()
        return found

    def tenant_of(self, row: int) -> int:
        """Return the number of a row's tenant."""
        return self._columns.scopes.tenants[self._facts.scopes[row]]

    def _read(self, row: int, entity: int) -> int:
        """Return what an entity that a row names is read as."""
        return entity if self._is_plain else self.roles.read(self.tenant_of(row), row, entity)

    def _reads_as(self, row: int, entity: int, wanted: int) -> bool:
        """Tell whether an entity that a row names is read as ``wanted`` is."""
        return self._read(row, entity) == self.roles.root(self.tenant_of(row), wanted)

    def row_of(self, fact: int) -> int | None:
        """Return the row of the fact that an event asserted by n, known or not, or None."""
        if not 0 < fact <= self.n:
            return None
        row = self._columns.row_of(fact)
        if row is None or row >= self.row_count:
            return None
        outside = self._scopes is not None and self._facts.scopes[row] not in self._scopes
        return None if outside else row

    @property
    def facts(self) -> Facts:
        """The reader of every n that this is of."""
        return self._facts

    @property
    def visible(self) -> I64:
        """The rows by n within the scope, known or not."""
        if self._scopes is None:
            return np.arange(self.row_count)
        rows = self._seen(range(self.row_count), closed=True, invalid=True)
        return np.array(rows, np.int64)

    @property
    def acts(self) -> Iterator[ActRow]:
        """The acts by n within the scope."""
        columns = self._columns
        for scope, act in columns.acts_until(rows_up_to(columns.act_seq.view(), self.n)):
            if self._scopes is None or scope in self._scopes:
                yield act

    def is_known(self, row: int) -> bool:
        """Tell whether a row was not retracted by n."""
        return self._facts.closed[row] >= self._closings

    def known(self, rows: Iterable[int]) -> list[int]:
        """Leave out rows that are not known at n, or outside the scope."""
        # Rows of a later state may be unknown to the reader that this one is of.
        count = len(self._facts.births)
        return self._seen([row for row in rows if row < count], closed=False)

    def touched_since(self, n: int) -> list[int]:
        """Return the rows that events after ``n`` asserted, repeated or retracted; ascending."""
        facts, columns = self._facts, self._columns
        rows = set(range(rows_up_to(facts.seqs, n), self.row_count))
        closings = columns.closing_row.view()[rows_up_to(facts.closing_seqs, n) : self._closings]
        again = columns.repeat_seq.view()
        repeats = columns.repeat_row.view()[rows_up_to(again, n) : rows_up_to(again, self.n)]
        return sorted(rows.union(closings.tolist(), repeats.tolist()))

    def with_values_beside(self, rows: Iterable[int]) -> list[int]:
        """Return rows and those whose end they may decide: of the same functional predicate.

        Where names are read as themselves.
        """
        facts, columns, found = self._facts, self._columns, set(rows)
        groups = {
            (facts.subjects[row], facts.predicates[row])
            for row in found
            if self.roles.is_functional(self.tenant_of(row), facts.predicates[row])
        }
        for subject, predicate in groups:
            beside = columns.by_subject.find(facts.subject_codes, subject)
            found.update(row for row in beside if facts.predicates[row] == predicate)
        return sorted(found)

    # --- when they are true ----------------------------------------------------------------------

    def spans(self, rows: Sequence[int], group: Sequence[int] | None = None) -> list[FactSpan]:
        """Return when rows that are known are true, in their order.

        ``group`` are all the known rows of their one subject and predicate, where the caller has
        them. Cost: each group of a functional predicate in full.
        """
        facts, roles = self._facts, self.roles
        starts, ends = facts.starts, facts.ends
        if not roles.any_functional:
            return [self.stated(row) for row in rows]
        found: list[FactSpan] = []
        groups: dict[tuple[int, int, int], dict[int, FactSpan]] = {}
        for row in rows:
            tenant, predicate = self.tenant_of(row), facts.predicates[row]
            if not roles.is_functional(tenant, predicate):
                found.append(FactSpan(row, Interval(starts[row], ends[row]), None))
                continue
            key = (tenant, self._read(row, facts.subjects[row]), predicate)
            if key not in groups:
                members = group if group is not None else self._group(row)
                groups[key] = self._succession(self.of_tenant(members, tenant))
            # A chunk whose hashes lie hides a row from its own group.
            found.append(groups[key].get(row) or self.stated(row))
        return found

    def _group(self, row: int) -> list[int]:
        """Return the known rows with the subject and predicate of a row."""
        facts = self._facts
        subject = self.subject_of(row)
        predicate = facts.predicates[row]
        rows = [one for one in self._of_subject(subject) if facts.predicates[one] == predicate]
        return self._seen(rows, closed=False)

    def of_tenant(self, rows: Iterable[int], tenant: int) -> list[int]:
        """Leave out the rows of other tenants."""
        return [row for row in rows if self.tenant_of(row) == tenant]

    def value_key(self, row: int) -> tuple[int, int]:
        """Return what is equal for rows that have the same object at n."""
        kind, number = self._facts.kinds[row], self._facts.objects[row]
        return kind, self._read(row, number) if kind == ObjectKind.ENTITY else number

    def _succession(self, rows: Sequence[int]) -> dict[int, FactSpan]:
        """Return when each value of one subject and predicate is true: to where the next begins."""
        starts, ends = self._facts.starts, self._facts.ends
        real = sorted(
            (starts[row], row, self.value_key(row)) for row in rows if starts[row] < ends[row]
        )
        found: dict[int, FactSpan] = {}
        for row in rows:
            start, end, by = starts[row], ends[row], None
            value = self.value_key(row)
            # The first that begins after this one, at the latest that of a neighbouring value.
            for place in range(bisect_right(real, start, key=_start_of), len(real)):
                began, other, its_value = real[place]
                if began >= end:
                    break
                if (other > row or end == ENDLESS) and its_value != value:
                    end, by = began, other
                    break
            found[row] = FactSpan(row, Interval(start, end), by)
        return found

    def stated(self, row: int) -> FactSpan:
        """Return when a row was said to be true, whatever else is known."""
        return FactSpan(row, Interval(self._facts.starts[row], self._facts.ends[row]), None)

    def groups(self, rows: Iterable[int]) -> "dict[tuple[int, int, int], FactGroup]":
        """Return rows by tenant, subject as it is read, and predicate; in order of first row."""
        facts = self._facts
        found: dict[tuple[int, int, int], FactGroup] = {}
        for row in rows:
            tenant, predicate = self.tenant_of(row), facts.predicates[row]
            key = (tenant, self._read(row, facts.subjects[row]), predicate)
            group = found.get(key)
            if group is None:
                functional = self.roles.is_functional(tenant, predicate)
                group = found[key] = FactGroup([], functional)
            group.rows.append(row)
        return found

    # --- what a row holds ------------------------------------------------------------------------

    def subject_of(self, row: int) -> str:
        """Return the name that a row's subject is read as."""
        return self._text(self._read(row, self._facts.subjects[row]))

    def _text(self, code: int) -> str:
        """Return the string with a code; those that were asked for are at hand."""
        found = self._texts.get(code)
        if found is None:
            found = self._columns.strings.text(code)
            self._keep(code, found)
        return found

    def _keep(self, code: int, text: str) -> None:
        if len(self._texts) >= _TEXTS_KEPT_MAX:
            self._texts.clear()
        self._texts[code] = text

    def predicate_of(self, row: int) -> str:
        return self._columns.predicates.text(self._facts.predicates[row]) or ""

    def object_of(self, row: int) -> tuple[ObjectKind, str | int | float | bool | bytes]:
        """Return a row's object; of an entity the name that it is read as."""
        kind, number = self._facts.kinds[row], self._facts.objects[row]
        if kind == ObjectKind.ENTITY:
            return ObjectKind.ENTITY, self._text(self._read(row, number))
        if kind == ObjectKind.STRING:
            return ObjectKind.STRING, self._text(number)
        if kind == ObjectKind.BYTES:
            return ObjectKind.BYTES, self._text(number).encode("latin-1")
        return ObjectKind(kind), value_of(ObjectKind(kind), number)

    def named(self, row: int) -> tuple[int, tuple[int, int]]:
        """Return what is equal for rows whose subjects and objects are read as the same."""
        return self._read(row, self._facts.subjects[row]), self.value_key(row)

    def named_by(self, row: int) -> tuple[str, str | None]:
        """Return the entities that a row names, as subject and object, before any merge."""
        facts, strings, tenant = self._facts, self._columns.strings, self.tenant_of(row)
        subject = strings.text(self.roles.named(tenant, row, facts.subjects[row]))
        if facts.kinds[row] != ObjectKind.ENTITY:
            return subject, None
        return subject, strings.text(self.roles.named(tenant, row, facts.objects[row]))

    def seq_of(self, row: int) -> int:
        return self._facts.births[row]

    def known_of(self, row: int) -> tuple[int, int | None, int | None]:
        """Return when a row was recorded, when retracted, and by which event, by n."""
        recorded, closing = self._facts.recorded[row], self._facts.closed[row]
        if closing >= self._closings:
            return recorded, None, None
        when = self._columns.closing_recorded.item(closing)
        return recorded, when, self._facts.closings[closing]

    def scope_of(self, row: int) -> Scope:
        return self._columns.scopes.scope(self._facts.scopes[row])

    def depth_of(self, row: int) -> int:
        return self._facts.depths[row]

    def said_of(self, row: int) -> tuple[float, str]:
        """Return the confidence and source of the last time that a row was asserted by n."""
        columns, facts = self._columns, self._facts
        confidence, source = facts.confidences[row], facts.sources[row]
        again = columns.repeats_of(row, self.n) if facts.any_repeats else None
        if again:
            confidence = columns.repeat_confidence.item(again[-1])
            source = columns.repeat_source.item(again[-1])
        return confidence / CONFIDENCE_UNIT, columns.sources.text(source) or ""

    def evidence_of(self, row: int) -> list[EvidencePlace]:
        """Return the evidence of a row by n, in order of the events that gave it, none twice."""
        if not self._says_more(row, FLAG_EVIDENCE):
            return []
        columns, found = self._columns, list[EvidencePlace]()
        for place in columns.evidence_of(row, self.n):
            start, end = columns.evidence_start.item(place), columns.evidence_end.item(place)
            high, low = columns.evidence_quote.item(place), columns.evidence_quote_low.item(place)
            found.append(
                EvidencePlace(
                    columns.evidence_frame.item(place),
                    None if start == NO_PLACE else start,
                    None if end == NO_PLACE else end,
                    (high << 64 | low).to_bytes(QUOTE_SIZE) if high or low else None,
                )
            )
        return list(dict.fromkeys(found))

    def assumptions_of(self, row: int) -> list[str]:
        """Return what a row takes for granted, by n, none twice."""
        columns = self._columns
        if not self._says_more(row, FLAG_ASSUMPTIONS):
            return []
        codes = columns.assumption_text.view()
        texts = (
            columns.strings.text(int(codes[place])) for place in columns.assumptions_of(row, self.n)
        )
        return list(dict.fromkeys(texts))

    def _says_more(self, row: int, flag: int) -> bool:
        """Tell whether a row's event has what a flag stands for, or one that repeats it may."""
        facts = self._facts
        if facts.flags[row] & flag:
            return True
        return facts.any_repeats and bool(self._columns.repeats_of(row, self.n))
