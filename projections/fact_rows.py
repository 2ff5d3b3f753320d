"""The rows of facts at one n: which there are, which have what is asked, and who is named in them.

Owns finding: by subject, predicate, object, evidence and id, within a scope, with names read as
merges and splits have it (`entity_roles`). When a row is true is `fact_spans`', what it says is
`fact_table`'s.
"""

from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from typing import TYPE_CHECKING, Final, Protocol, Self

import numpy as np

from .columns import I64, Mask, rows_up_to
from .entity_roles import ActRow
from .fact_values import TEXT_KINDS, ObjectKind, Standing, number_of, text_of

if TYPE_CHECKING:
    from .fact_table import Facts

_TEXTS_KEPT_MAX: Final = 1024


class Labels(Protocol):
    """What links between facts say of some of them (`labelling`)."""

    def label(self, row: int) -> Standing:
        """Return whether a row stands."""
        ...

    def invalid(self, rows: Sequence[int] | I64) -> set[int]:
        """Return those of known rows that are invalid."""
        ...


class FactRows:
    """Rows of facts at one n; immutable, for any thread. One is known at n, or it is passed over.

    With ``labels`` a row that these say is invalid is passed over too.
    """

    labels: Labels | None = None

    def __init__(self, facts: "Facts", n: int, scopes: frozenset[int] | None) -> None:
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
            left = self.tenants
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

    def labelled(self, labels: Labels) -> Self:
        """Return these facts without those that are invalid."""
        found = copy(self)
        found.labels = labels
        return found

    def standing_of(self, row: int) -> Standing:
        """Return whether a row stands; one that was retracted is invalid."""
        if self.labels is not None:
            return self.labels.label(row)
        return Standing.STANDS if self.is_known(row) else Standing.INVALID

    def seq_of(self, row: int) -> int:
        """Return the event that asserted a row for the first time."""
        return self._facts.births[row]

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
        return row if row is not None and self.has_row(row) else None

    def has_row(self, row: int) -> bool:
        """Tell whether a row is there by n and within the scope, known or not."""
        is_there = 0 <= row < self.row_count
        return is_there and (self._scopes is None or self._facts.scopes[row] in self._scopes)

    @property
    def facts(self) -> "Facts":
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

    def acts_naming(self, entity: int) -> Iterator[ActRow]:
        """Yield the acts by n within the scope that name an entity, in order."""
        return self._acts_by_n(self._columns.acts_naming(entity))

    def acts_of_alias(self, folded: int) -> Iterator[ActRow]:
        """Yield the acts by n within the scope that give an alias, by its folded form."""
        return self._acts_by_n(self._columns.acts_of_alias(folded))

    def _acts_by_n(self, rows: Iterable[int]) -> Iterator[ActRow]:
        columns, scopes = self._columns, self._scopes
        seqs = columns.act_seq.view()
        for row in rows:
            if seqs[row] > self.n:
                return
            if scopes is None or columns.scope_of_act(row) in scopes:
                yield columns.act_row(row)

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
