"""The rows of facts at one n: existence, lookup, and the entities that a row names.

Owns lookups by subject, predicate, object, evidence and id, within a scope, with names read through
merges and splits (`entity_resolution`). Leaves out valid time (`validity`) and the contents of a
row (`reader`).
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from copy import copy
from typing import Protocol, Self

import numpy as np

from cerata.engine.events import Scope, once

from ..columnar.columns import I64, U32, U64, Mask, distinct, rows_up_to
from ..columnar.hash_index import PairIndex, Rows, merged
from ..columnar.scopes import Reach
from .entity_resolution import ActRow
from .history import Facts
from .objects import ObjectKind, Standing, number_of, text_of


class Labels(Protocol):
    """The standing of facts by the links between them (`labelling`)."""

    def label(self, row: int) -> Standing:
        """Return the standing of a row."""
        ...

    def invalid(self, rows: Sequence[int] | I64) -> set[int]:
        """Return the invalid rows among known rows."""
        ...


class FactRows:
    """Rows of facts at one n; immutable, for any thread.

    - Lookups skip rows that are not known at n, and with ``labels`` rows that are invalid.
    """

    labels: Labels | None = None

    def __init__(self, facts: Facts, n: int, reach: Reach | None = None) -> None:
        """Read the facts at event ``n`` that ``reach`` admits; None admits all."""
        self.n = n
        self._facts = facts
        self._columns = facts.columns
        self._scopes = facts.columns.scopes.admitted(reach)
        self.roles = facts.roles(n, self._scopes)
        self._is_plain = self.roles.is_plain
        # A row is known at n if its closing has at least this index; `NO_ROW` is larger than all.
        self._closings = rows_up_to(facts.closing_seqs, n) if facts.any_closings else 0

    @property
    def is_empty(self) -> bool:
        """True if no event up to n asserts a fact."""
        births = self._facts.births
        return not len(births) or births[0] > self.n

    @property
    def row_count(self) -> int:
        """The count of rows at n."""
        return rows_up_to(self._facts.seqs, self.n)

    # --- lookup ----------------------------------------------------------------------------------

    def find(
        self,
        subject: str | None = None,
        predicate: str | None = None,
        object_: tuple[ObjectKind, object] | None = None,
        *,
        folded: bool = False,
        closed: bool = False,
        invalid: bool = False,
        instant: int | None = None,
    ) -> list[int]:
        """Return the rows known at n that match, ascending.

        With ``folded`` names and strings match that are equal as folded names. ``closed`` adds rows
        retracted by n, ``invalid`` rows that links invalidate. ``instant`` drops the rows whose
        stated range does not contain the instant.
        """
        codes: Sequence[int] | None = None
        if predicate is not None:
            codes = self._predicates(predicate, folded=folded)
            if not codes:
                return []
        if subject is not None:
            rows = self._of_subject(subject, codes, folded=folded)
        elif object_ is not None:
            rows = self._of_object(*object_, codes, folded=folded)
        else:
            rows = self._scan(codes, closed=closed)
        matches = self._matching(rows, codes, instant, closed=closed) if len(rows) else []
        if matches and object_ is not None:
            matches = self._with_object(matches, *object_, folded=folded)
        if invalid or self.labels is None:
            return matches
        return self._valid(matches, closed=closed)

    def _predicates(self, name: str, *, folded: bool) -> Sequence[int]:
        if folded:
            return self._facts.predicates_alike(name)
        code = self._columns.predicates.find(name)
        return () if code is None else (code,)

    def _scan(self, predicates: Sequence[int] | None, *, closed: bool) -> I64:
        mask = np.ones(self.row_count, np.bool_) if closed else self.known_mask()
        if predicates is not None:
            codes = self._columns.predicate.view()[: len(mask)]
            mask &= _is_any(codes, predicates)
        return np.flatnonzero(mask)

    def known_mask(self) -> Mask:
        """Return a mask over the rows by n of known rows, in any scope."""
        mask: Mask = self._columns.closed_at.view()[: self.row_count] >= self._closings
        return mask

    def shown_mask(self, instant: int | None = None) -> Mask:
        """Return a mask over the rows by n: known, within the scope, not invalid, and true.

        True means that the stated range contains the instant; succession is ignored.
        """
        mask = self.known_mask()
        columns = self._columns
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
        """Return (event, place) of the first fact that names an entity, for each tenant.

        The place is 0 as subject and 1 as object. Known or not, within the scope.
        """
        facts = self._facts
        columns = self._columns
        moments: dict[int, tuple[int, int]] = {}
        for place, rows in enumerate(
            (
                columns.by_subject.find(facts.subject_codes, code),
                columns.by_object.find(facts.object_numbers, code),
            )
        ):
            pending = self.tenants
            for row in rows:
                if not pending or facts.births[row] > self.n:
                    break
                if self._scopes is not None and facts.scopes[row] not in self._scopes:
                    continue
                tenant = self.tenant_of(row)
                if tenant in pending and (not place or facts.kinds[row] == ObjectKind.ENTITY):
                    pending.discard(tenant)
                    moment = facts.births[row], place
                    moments[tenant] = min(moment, moments.get(tenant, moment))
        return moments

    def _valid(self, rows: list[int], *, closed: bool = False) -> list[int]:
        """Return the rows that no link invalidates; with ``closed`` the rows may be retracted."""
        if self.labels is None or not rows:
            return rows
        open_rows = [row for row in rows if self.is_known(row)] if closed else rows
        rejected = self.labels.invalid(open_rows)
        return [row for row in rows if row not in rejected] if rejected else rows

    def _matching(
        self, rows: Rows, predicates: Sequence[int] | None, instant: int | None, *, closed: bool
    ) -> list[int]:
        """Return the rows that are known at n, within the scope, and match.

        They match if they have one of the predicates, and their stated range has the instant.
        """
        closings = 0 if closed else self._closings
        if isinstance(rows, list):
            return self._few_matching(rows, predicates, instant, closings)
        many: list[int] = self._many_matching(rows, predicates, instant, closings).tolist()
        return many

    def _few_matching(
        self, rows: list[int], codes: Sequence[int] | None, instant: int | None, closings: int
    ) -> list[int]:
        facts = self._facts
        n = self.n
        scopes = self._scopes
        births = facts.births
        predicates = facts.predicates
        matches: list[int] = []
        for row in rows:
            if codes is not None and predicates[row] not in codes:
                continue
            if instant is not None and not facts.starts[row] <= instant < facts.ends[row]:
                continue
            if births[row] > n or (closings and facts.closed[row] < closings):
                continue
            if scopes is None or facts.scopes[row] in scopes:
                matches.append(row)
        return matches

    def _many_matching(
        self, rows: I64, codes: Sequence[int] | None, instant: int | None, closings: int
    ) -> I64:
        facts = self._facts
        if codes is not None:
            rows = rows[_is_any(facts.predicate_codes[rows], codes)]
        if instant is not None:
            # In turn, since a read of a random row costs more than the comparison.
            rows = rows[facts.start_times[rows] <= instant]
            rows = rows[facts.end_times[rows] > instant]
        rows = rows[facts.seqs[rows] <= self.n]
        if closings:
            rows = rows[self._columns.closed_at.view()[rows] >= closings]
        if self._scopes is not None:
            rows = rows[np.isin(self._columns.scope.view()[rows], list(self._scopes))]
        return rows

    def _of_subject(
        self, name: str, predicates: Sequence[int] | None = None, *, folded: bool = False
    ) -> Rows:
        """Return the rows whose subject is read as the entity of a name, known or not.

        With predicates, rows with another predicate may be left out.
        """
        columns = self._columns
        facts = self._facts
        codes = self._codes(name, folded=folded)
        if self._is_plain:
            index = columns.by_subject
            if len(codes) == 1:
                keys = facts.subject_codes
                return index.rows_with(keys, codes[0], facts.predicate_codes, predicates)
            return self._of_keys(index, facts.subject_codes, codes, predicates)
        rows = {
            row
            for entity in self._related(codes)
            for row in columns.by_subject.find(facts.subject_codes, entity)
        }
        return sorted(row for row in rows if self._reads_as_any(row, facts.subjects[row], codes))

    def _of_object(
        self,
        kind: ObjectKind,
        value: object,
        predicates: Sequence[int] | None = None,
        *,
        folded: bool,
    ) -> Rows:
        """Return rows, among which are all with an object, known or not.

        With predicates, rows with another predicate may be left out.
        """
        numbers: Collection[int] = self._numbers(kind, value, folded=folded)
        if kind is ObjectKind.ENTITY and not self._is_plain:
            numbers = self._related(numbers)
        column = self._facts.object_numbers
        return self._of_keys(self._columns.by_object, column, numbers, predicates)

    def _of_keys(
        self,
        index: PairIndex,
        column: U32 | U64,
        keys: Collection[int],
        predicates: Sequence[int] | None,
    ) -> Rows:
        codes = self._facts.predicate_codes
        if len(keys) == 1:
            (key,) = keys
            return index.rows_with(column, key, codes, predicates)
        return merged([index.rows_with(column, key, codes, predicates) for key in keys])

    def _with_object(
        self, rows: list[int], kind: ObjectKind, value: object, *, folded: bool
    ) -> list[int]:
        """Return the rows with an object; entities compare as read."""
        numbers = self._numbers(kind, value, folded=folded)
        kinds = self._facts.kinds
        objects = self._facts.objects
        if kind is not ObjectKind.ENTITY or self._is_plain:
            return [row for row in rows if objects[row] in numbers and kinds[row] == kind]
        return [
            row
            for row in rows
            if kinds[row] == kind and self._reads_as_any(row, objects[row], numbers)
        ]

    def _numbers(self, kind: ObjectKind, value: object, *, folded: bool) -> Sequence[int]:
        """Return the numbers of an object in the columns; none if no column has the value."""
        if kind is ObjectKind.ENTITY or kind is ObjectKind.STRING:
            return self._codes(str(value), folded=folded)
        if kind is ObjectKind.BYTES:
            return self._codes(text_of(value), folded=False)
        return (number_of(kind, value),)

    def _codes(self, text: str, *, folded: bool) -> Sequence[int]:
        """Return the codes of a text, or of the texts that are equal when folded."""
        if folded:
            return self._facts.names_alike(text)
        code = self._columns.strings.find(text)
        return () if code is None else (code,)

    def _related(self, codes: Iterable[int]) -> set[int]:
        """Return the entities that may mean the same as any of some entities."""
        return {entity for code in codes for entity in self.roles.related(code)}

    def known_among(self, rows: I64) -> I64:
        """Return the rows that are known at n, not invalid, and within the scope."""
        return self.true_among(rows, None)

    def true_among(self, rows: I64, instant: int | None) -> I64:
        """Return `known_among` of rows, and of these the rows stated as true at an instant."""
        # The caller's rows may come from a later state than this reader.
        rows = rows[rows < self.row_count]
        rows = self._many_matching(rows, None, instant, self._closings)
        if self.labels is not None:
            rows = rows[~np.isin(rows, list(self.labels.invalid(rows)))]
        return rows

    def born_at(self, seqs: I64) -> I64:
        """Return the rows of facts that events first asserted; skips other events."""
        births: I64 = self._facts.seqs
        rows: I64 = np.searchsorted(births, seqs)
        rows = rows[rows < len(births)]
        born: I64 = rows[births[rows] == seqs[: len(rows)]]
        return born

    @once
    def known_count(self) -> int:
        """The count of rows that are known at n and within the scope, invalid rows included."""
        if self._scopes is None:
            return self.row_count - self._closings
        passes = np.zeros(len(self._columns.scopes) + 1, np.bool_)
        passes[list(self._scopes)] = True
        inside = passes[self._columns.scope.view()[: self.row_count]]
        return int(np.count_nonzero(self.known_mask() & inside))

    def labelled(self, labels: Labels) -> Self:
        """Return a copy that skips invalid facts."""
        reader = copy(self)
        reader.labels = labels
        return reader

    def standing_of(self, row: int) -> Standing:
        """Return the standing of a row; a retracted row is invalid."""
        if self.labels is not None:
            return self.labels.label(row)
        return Standing.STANDS if self.is_known(row) else Standing.INVALID

    def seq_of(self, row: int) -> int:
        """Return the event that first asserted a row."""
        return self._facts.births[row]

    def ids_of(self, rows: Sequence[int]) -> list[int]:
        """Return every id of rows: the events that assert or repeat them."""
        columns = self._columns
        ids = [self.seq_of(row) for row in rows]
        if self._facts.any_repeats:
            repeats = columns.repeats.seq.view()
            places = (place for row in rows for place in columns.repeats_of(row, self.n))
            ids += [int(repeats[place]) for place in places]
        return ids

    def rows_of(self, ids: I64) -> I64:
        """Return the rows by n that ids name, ascending; skips ids that name no fact."""
        columns = self._columns
        parts = list[I64]()
        for seqs, rows in (
            (self._facts.seqs, None),
            (columns.repeats.seq.view(), columns.repeat_row.view()),
        ):
            places = np.searchsorted(seqs, ids)
            inside = places < len(seqs)
            places = places[inside]
            candidates = ids[inside]
            places = places[seqs[places] == candidates]
            parts.append(places if rows is None else rows[places].astype(np.int64))
        matches = distinct(np.concatenate(parts))
        return matches[matches < self.row_count]

    def tenant_named(self, row: int) -> str:
        """Return the name of a row's tenant."""
        return self._columns.scopes.tenant_name(self.tenant_of(row))

    def entities_of(self, row: int) -> list[tuple[int, int]]:
        """Return tenant and entity of a row's subject, and of its object if that is an entity."""
        facts = self._facts
        tenant = self.tenant_of(row)
        names = [facts.subjects[row]]
        if facts.kinds[row] == ObjectKind.ENTITY:
            names.append(facts.objects[row])
        return [(tenant, self._read(row, name)) for name in names]

    @property
    def tenants(self) -> set[int]:
        """The tenants within the scope, those of later events included."""
        tenants = self._columns.scopes.tenants
        codes = range(1, len(tenants)) if self._scopes is None else self._scopes
        return {tenants[code] for code in codes}

    def rows_by_evidence(self, frames: Iterable[int]) -> dict[int, list[int]]:
        """Return by frame the known rows that cite the frame as evidence by n, ascending."""
        columns = self._columns
        rows_of = dict[int, list[int]]()
        end = rows_up_to(columns.evidence.seq.view(), self.n)
        keys = columns.evidence_frame.view()[:end].view(np.uint64)
        for frame in frames:
            places = columns.by_frame.find(keys, frame) if end else []
            rows = distinct(columns.evidence_row.view()[places]).astype(np.int64)
            rows_of[frame] = self.known_among(rows).tolist()
        return rows_of

    def frames_cited(self, rows: I64) -> tuple[I64, I64]:
        """Return the places of evidence of rows by n: the row and the frame of each."""
        columns = self._columns
        end = rows_up_to(columns.evidence.seq.view(), self.n)
        if not end or not len(rows):
            return rows[:0], rows[:0]
        keys = columns.evidence_row.view()[:end]
        places = np.array(columns.by_evidence.find_all(keys, rows.astype(np.uint64)), np.int64)
        return keys[places].astype(np.int64), columns.evidence_frame.view()[places]

    def recorded_in(self, rows: I64) -> tuple[I64, I64]:
        """Return the time of recording, and the code of the scope, of each row."""
        columns = self._columns
        return columns.recorded.view()[rows], columns.scope.view()[rows].astype(np.int64)

    def scope_with(self, code: int) -> Scope:
        """Return the scope with a code."""
        return self._columns.scopes.scope(code)

    def tenant_of(self, row: int) -> int:
        """Return the number of a row's tenant."""
        return self._columns.scopes.tenants[self._facts.scopes[row]]

    def _read(self, row: int, entity: int) -> int:
        return entity if self._is_plain else self.roles.read(self.tenant_of(row), row, entity)

    def _reads_as(self, row: int, entity: int, target: int) -> bool:
        """Return whether a name in a row is read as the same entity as ``target``."""
        return self._read(row, entity) == self.roles.root(self.tenant_of(row), target)

    def _reads_as_any(self, row: int, entity: int, targets: Sequence[int]) -> bool:
        return any(self._reads_as(row, entity, target) for target in targets)

    def row_of(self, fact: int) -> int | None:
        """Return the row of the fact that an event up to n asserted, known or not, or None."""
        if not 0 < fact <= self.n:
            return None
        row = self._columns.row_of(fact)
        return row if row is not None and self.has_row(row) else None

    def has_row(self, row: int) -> bool:
        """Return whether a row exists by n and is within the scope, known or not."""
        exists = 0 <= row < self.row_count
        return exists and (self._scopes is None or self._facts.scopes[row] in self._scopes)

    @property
    def facts(self) -> Facts:
        """The reader of all n under this reader."""
        return self._facts

    @property
    def visible(self) -> I64:
        """The rows by n within the scope, known or not."""
        if self._scopes is None:
            return np.arange(self.row_count)
        return self._many_matching(np.arange(self.row_count), None, None, 0)

    @property
    def acts(self) -> Iterator[ActRow]:
        """The acts by n within the scope."""
        columns = self._columns
        for scope, act in columns.acts.until(rows_up_to(columns.acts.seq.view(), self.n)):
            if self._scopes is None or scope in self._scopes:
                yield act

    def acts_naming(self, entity: int) -> Iterator[ActRow]:
        """Yield the acts by n within the scope that name an entity, in order."""
        return self._acts_by_n(self._columns.acts.rows_naming(entity))

    def scoped_acts_naming(self, entity: int) -> Iterator[tuple[int, ActRow]]:
        """Yield `acts_naming`, each with the code of its scope."""
        acts = self._columns.acts
        for row in acts.rows_naming(entity):
            if acts.seq.item(row) <= self.n:
                yield acts.scope.item(row), acts.act(row)

    @property
    def any_aliases(self) -> bool:
        """True if an event, also a later one, declares an alias."""
        return self._columns.acts.any_aliases

    def acts_of_alias(self, folded: int) -> Iterator[ActRow]:
        """Yield the acts by n within the scope that declare an alias, by its folded form."""
        return self._acts_by_n(self._columns.acts.rows_of_alias(folded))

    def _acts_by_n(self, rows: Iterable[int]) -> Iterator[ActRow]:
        acts = self._columns.acts
        for row in rows:
            if acts.seq.item(row) > self.n:
                return
            if self._scopes is None or acts.scope.item(row) in self._scopes:
                yield acts.act(row)

    def is_known(self, row: int) -> bool:
        """Return whether no event up to n retracted a row."""
        return self._facts.closed[row] >= self._closings

    def known_rows(self, rows: Iterable[int]) -> list[int]:
        """Return the rows that are known at n and within the scope."""
        # The caller's rows may come from a later state than this reader.
        count = len(self._facts.births)
        near = [row for row in rows if row < count]
        return self._valid(self._matching(near, None, None, closed=False))

    def touched_since(self, n: int) -> list[int]:
        """Return the rows that events after ``n`` asserted, repeated or retracted; ascending."""
        facts = self._facts
        columns = self._columns
        rows = set(range(rows_up_to(facts.seqs, n), self.row_count))
        closings = columns.closing_row.view()[rows_up_to(facts.closing_seqs, n) : self._closings]
        seqs = columns.repeats.seq.view()
        repeats = columns.repeat_row.view()[rows_up_to(seqs, n) : rows_up_to(seqs, self.n)]
        return sorted(rows.union(closings.tolist(), repeats.tolist()))

    def subject_of(self, row: int) -> str:
        """Return the name that a row's subject is read as."""
        return self._text(self._read(row, self._facts.subjects[row]))

    def _text(self, code: int) -> str:
        return self._columns.strings.text(code)


def _is_any(codes: U32 | U64, values: Sequence[int]) -> Mask:
    """Return a mask of the items that equal any of some values."""
    return codes == values[0] if len(values) == 1 else np.isin(codes, np.array(values, codes.dtype))
