"""When facts are true: as stated, or to where another value of a functional predicate begins.

Owns what follows from the other values of one subject and predicate, as they are known at n.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from .fact_rows import FactRows
from .fact_values import ObjectKind
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


class FactSpans(FactRows):
    """Rows of facts at one n, and when they are true."""

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
            # What is invalid, or hidden by a chunk whose hashes lie, is not in its own group.
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


def _start_of(begun: tuple[int, int, tuple[int, int]]) -> int:
    return begun[0]
