"""Changes of facts between two states, in knowledge and in validity.

Owns the comparison of two views. A view's basis fixes the known facts; its instant, if any, the
time at which they must be true. Two bases give the facts asserted and retracted in between, two
instants the facts that began and ended.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, cast

from cerata.engine.plain_value import PlainValue
from cerata.projections.facts.reader import FactsAt
from cerata.projections.facts.validity import FactSpan

from ..snapshot.fact_conversion import to_fact
from ..snapshot.snapshot import Snapshot
from ..values.facts import Fact


@dataclass(frozen=True, slots=True)
class FactChange(PlainValue):
    """The change of a fact between two states.

    - An added fact has no ``old``, a removed fact no ``new``.
    - If both are set, they are the same fact with another end, other names of entities, or another
      confidence, source or evidence.
    """

    _plain = ("kind", "old", "new")

    old: Fact | None
    new: Fact | None

    @property
    def kind(self) -> Literal["added", "removed", "changed"]:
        """The kind of the change."""
        if self.old is None:
            return "added"
        return "removed" if self.new is None else "changed"

    @property
    def fact(self) -> Fact:
        """The fact in the second state, else in the first."""
        return cast("Fact", self.new or self.old)

    def __str__(self) -> str:
        if self.old is not None and self.new is not None:
            return f"~ #{self.old.id} {self.old}, {self.old.valid} → {self.new}, {self.new.valid}"
        sign = "+" if self.old is None else "-"
        return f"{sign} #{self.fact.id} {self.fact}, {self.fact.valid}"


def fact_changes(a: Snapshot, b: Snapshot) -> tuple[FactChange, ...]:
    """Return the changes of facts from a view to another view of the same memory, by id.

    Cost: a look at each fact asserted, repeated or retracted in between, and at the other values of
    functional predicates. If a view has an instant, facts have links, or entities were merged or
    split or a predicate declared in between, a pass over all facts at about 2 us each.
    """
    before, after = a.facts_at, b.facts_at
    older, newer = (before, after) if before.n <= after.n else (after, before)
    touched = newer.touched_since(older.n)
    is_timeless = a.valid_at_us is None and b.valid_at_us is None
    alone = newer.roles.reads_as(older.roles) and older.labels is None and newer.labels is None
    rows: Iterable[int] = range(newer.row_count)
    if is_timeless and alone:
        rows = newer.with_values_beside(touched)
    old = _true(before, rows, a.valid_at_us)
    new = _true(after, rows, b.valid_at_us)
    stated_again = set(touched)
    changes: list[FactChange] = []
    for row in sorted(old.keys() | new.keys()):
        was = old.get(row)
        now = new.get(row)
        if was is not None and now is not None:
            if row not in stated_again and _same(before, was, after, now):
                continue
            change = FactChange(
                to_fact(before, was, a.basis, a.present_us),
                to_fact(after, now, b.basis, b.present_us),
            )
            if change.old == change.new:
                continue
        else:
            change = FactChange(
                None if was is None else to_fact(before, was, a.basis, a.present_us),
                None if now is None else to_fact(after, now, b.basis, b.present_us),
            )
        changes.append(change)
    return tuple(changes)


def _true(facts: FactsAt, rows: Iterable[int], instant: int | None) -> dict[int, FactSpan]:
    """Return the spans of the rows that are known, and true at the instant if any."""
    spans = facts.spans(facts.known_rows(rows))
    return {span.row: span for span in spans if instant is None or span.valid.contains(instant)}


def _same(before: FactsAt, was: FactSpan, after: FactsAt, now: FactSpan) -> bool:
    stands_alike = before.standing_of(was.row) is after.standing_of(now.row)
    return was == now and stands_alike and before.name_key(was.row) == after.name_key(now.row)
