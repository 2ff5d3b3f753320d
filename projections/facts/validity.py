"""Valid time of facts: as stated, or until another value of a functional predicate begins.

Owns succession among the values of one subject and predicate that are known at n.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Final, NamedTuple

from ..columnar.times import ENDLESS, Interval
from .objects import ObjectKind
from .rows import FactRows

_new: Final = tuple.__new__  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]


class FactSpan(NamedTuple):
    """A row and its valid time: as stated, or until the value of row ``by`` begins."""

    row: int
    valid: Interval
    by: int | None


class FactGroup(NamedTuple):
    """Rows with the same subject and predicate; ``functional`` means one value at a time."""

    rows: list[int]
    functional: bool


class FactSpans(FactRows):
    """Rows of facts at one n, and their valid times."""

    def spans(self, rows: Sequence[int], group: Sequence[int] | None = None) -> list[FactSpan]:
        """Return the valid times of known rows, in order.

        ``group``, if the caller has it, is all known rows of the rows' common subject and
        predicate. Cost: all rows of each group of a functional predicate.
        """
        facts = self._facts
        roles = self.roles
        if not roles.any_functional:
            starts, ends = facts.starts, facts.ends
            # As `stated`, without a call for each row.
            return [
                _new(FactSpan, (row, _new(Interval, (starts[row], ends[row])), None))
                for row in rows
            ]
        spans: list[FactSpan] = []
        groups: dict[tuple[int, int, int], dict[int, FactSpan]] = {}
        for row in rows:
            tenant = self.tenant_of(row)
            predicate = facts.predicates[row]
            if not roles.is_functional(tenant, predicate):
                spans.append(self.stated(row))
                continue
            key = (tenant, self._read(row, facts.subjects[row]), predicate)
            if key not in groups:
                members = group if group is not None else self.group_of(row)
                groups[key] = self._succession(self.of_tenant(members, tenant))
            # An invalid row, or a row hidden by wrong hashes in a chunk, is missing from its group.
            spans.append(groups[key].get(row) or self.stated(row))
        return spans

    def is_functional(self, row: int) -> bool:
        """Return whether the predicate of a row is functional: one value of a subject at a time."""
        return self.roles.is_functional(self.tenant_of(row), self._facts.predicates[row])

    def group_of(self, row: int) -> list[int]:
        """Return the known rows with the subject, as read, and the predicate of a row."""
        facts = self._facts
        subject = self.subject_of(row)
        predicates = (facts.predicates[row],)
        rows = self._of_subject(subject, predicates)
        return self._valid(self._matching(rows, predicates, None, closed=False))

    def of_tenant(self, rows: Iterable[int], tenant: int) -> list[int]:
        """Return the rows of a tenant."""
        return [row for row in rows if self.tenant_of(row) == tenant]

    def value_key(self, row: int) -> tuple[int, int]:
        """Return a key that rows with the same object at n share."""
        kind = self._facts.kinds[row]
        number = self._facts.objects[row]
        return kind, self._read(row, number) if kind == ObjectKind.ENTITY else number

    def _succession(self, rows: Sequence[int]) -> dict[int, FactSpan]:
        """Return the valid times of the values of one subject and predicate."""
        starts = self._facts.starts
        ends = self._facts.ends
        real = sorted(
            (starts[row], row, self.value_key(row)) for row in rows if starts[row] < ends[row]
        )
        spans: dict[int, FactSpan] = {}
        for row in rows:
            start = starts[row]
            end = ends[row]
            by = None
            value = self.value_key(row)
            # The successor is the first later start of another value.
            for place in range(bisect_right(real, start, key=itemgetter(0)), len(real)):
                began, rival, rival_value = real[place]
                if began >= end:
                    break
                if (rival > row or end == ENDLESS) and rival_value != value:
                    end = began
                    by = rival
                    break
            spans[row] = FactSpan(row, Interval(start, end), by)
        return spans

    def stated(self, row: int) -> FactSpan:
        """Return the stated valid time of a row, without succession."""
        # `tuple.__new__` takes half the time of the classes' methods.
        valid = _new(Interval, (self._facts.starts[row], self._facts.ends[row]))
        return _new(FactSpan, (row, valid, None))

    def groups(self, rows: Iterable[int]) -> "dict[tuple[int, int, int], FactGroup]":
        """Return rows by tenant, subject as read, and predicate; in order of first row."""
        facts = self._facts
        groups: dict[tuple[int, int, int], FactGroup] = {}
        for row in rows:
            tenant = self.tenant_of(row)
            predicate = facts.predicates[row]
            key = (tenant, self._read(row, facts.subjects[row]), predicate)
            group = groups.get(key)
            if group is None:
                functional = self.roles.is_functional(tenant, predicate)
                group = groups[key] = FactGroup([], functional)
            group.rows.append(row)
        return groups

    def with_values_beside(self, rows: Iterable[int]) -> list[int]:
        """Return rows and all rows of the same subjects and functional predicates, ascending.

        These rows may end each other. Correct only without merges and splits.
        """
        facts = self._facts
        columns = self._columns
        related = set(rows)
        groups = {
            (facts.subjects[row], facts.predicates[row])
            for row in related
            if self.roles.is_functional(self.tenant_of(row), facts.predicates[row])
        }
        for subject, predicate in groups:
            beside = columns.by_subject.find(facts.subject_codes, subject)
            related.update(row for row in beside if facts.predicates[row] == predicate)
        return sorted(related)
