"""What changed of facts between two states: in what was known, and in what was true.

Owns the comparison. A state is a view: its basis is what is known, its instant, if it has one, when
that has to be true. Two bases tell what was learned and retracted, two instants what began and
ended.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, cast

from cerata.engine.events import JsonValue
from cerata.projections.fact_spans import FactSpan
from cerata.projections.fact_table import FactsAt

from .fact_showing import shown
from .fact_values import Fact

if TYPE_CHECKING:
    from .view import View


@dataclass(frozen=True, slots=True)
class FactChange:
    """What became of one fact: ``old`` is None where it was added, ``new`` where it was removed.

    Where both are there, it is one fact of which something else is true now: until when it holds,
    the names of its entities, what was said of it again.
    """

    old: Fact | None
    new: Fact | None

    @property
    def kind(self) -> Literal["added", "removed", "changed"]:
        """Which of the three it is."""
        if self.old is None:
            return "added"
        return "removed" if self.new is None else "changed"

    @property
    def fact(self) -> Fact:
        """The fact as the second state has it, or else the first."""
        return cast("Fact", self.new or self.old)

    def __str__(self) -> str:
        if self.old is not None and self.new is not None:
            return f"~ #{self.old.id} {self.old}, {self.old.valid} → {self.new}, {self.new.valid}"
        sign = "+" if self.old is None else "-"
        return f"{sign} #{self.fact.id} {self.fact}, {self.fact.valid}"

    def to_dict(self) -> dict[str, JsonValue]:
        return {
            "kind": self.kind,
            "old": None if self.old is None else self.old.to_dict(),
            "new": None if self.new is None else self.new.to_dict(),
        }


def fact_changes(a: "View", b: "View") -> tuple[FactChange, ...]:
    """Return what changed of facts from a view to another one of the same memory, by id.

    Cost: the facts asserted, repeated and retracted between the two, of a functional predicate with
    its other values; a pass over all facts, about 2 us each, where an instant is given, facts are
    linked, entities are merged or split, or a predicate was declared in between.
    """
    before, after = a.facts_at, b.facts_at
    older, newer = (before, after) if before.n <= after.n else (after, before)
    touched = newer.touched_since(older.n)
    is_timeless = a.valid_at_us is None and b.valid_at_us is None
    alone = newer.roles.reads_as(older.roles) and older.labels is None and newer.labels is None
    rows: Iterable[int] = range(newer.row_count)
    if is_timeless and alone:
        rows = newer.with_values_beside(touched)
    old, new = _true(before, rows, a.valid_at_us), _true(after, rows, b.valid_at_us)
    again = set(touched)
    found: list[FactChange] = []
    for row in sorted(old.keys() | new.keys()):
        was, now = old.get(row), new.get(row)
        if was is not None and now is not None:
            if row not in again and _same(before, was, after, now):
                continue
            change = FactChange(shown(before, was, a.basis), shown(after, now, b.basis))
            if change.old == change.new:
                continue
        else:
            change = FactChange(
                None if was is None else shown(before, was, a.basis),
                None if now is None else shown(after, now, b.basis),
            )
        found.append(change)
    return tuple(found)


def _true(facts: FactsAt, rows: Iterable[int], instant: int | None) -> dict[int, FactSpan]:
    """Return when rows are true, those that are known, and true at an instant if there is one."""
    spans = facts.spans(facts.known(rows))
    return {span.row: span for span in spans if instant is None or span.valid.contains(instant)}


def _same(before: FactsAt, was: FactSpan, after: FactsAt, now: FactSpan) -> bool:
    stands_alike = before.standing_of(was.row) is after.standing_of(now.row)
    return was == now and stands_alike and before.named(was.row) == after.named(now.row)
