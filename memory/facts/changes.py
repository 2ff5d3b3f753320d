"""Changes of facts between two states, in knowledge and in validity.

Owns the comparison of two views. A view's basis fixes the known facts; its instant, if any, the
time at which they must be true. Two bases give the facts asserted and retracted in between, two
instants the facts that began and ended.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

from cerata.engine.events import RetractFact
from cerata.engine.plain_value import PlainValue
from cerata.engine.unreadable import event_place, readable

from ..snapshot.fact_conversion import to_fact

if TYPE_CHECKING:
    from cerata.projections.facts.reader import FactsAt
    from cerata.projections.facts.validity import FactSpan

    from ..snapshot.points import Common
    from ..snapshot.snapshot import Snapshot
    from ..values.facts import Fact

FactVerb: TypeAlias = Literal["learned", "retracted", "corrected", "started", "ended", "changed"]


@dataclass(frozen=True, slots=True)
class FactChange(PlainValue):
    """The change of a fact between two states.

    - An added fact has no ``old``, a removed fact no ``new``.
    - If both are set, they are the same fact with another end, other names of entities, or another
      confidence, source or evidence.
    - ``verb`` is the act between the states, in either direction: a fact was learned or retracted;
      a corrected fact was retracted for another, which has this verb too; of two instants, a fact
      started or ended; an end was set.
    """

    _plain = ("kind", "verb", "old", "new")

    old: Fact | None
    new: Fact | None
    verb: FactVerb = field(default="changed", compare=False)

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


def fact_changes(a: Snapshot, b: Snapshot, common: Common) -> tuple[FactChange, ...]:
    """Return the changes of facts from a view to another view of the same memory, by id.

    Cost: a look at each fact asserted, repeated or retracted in between, and at the other values of
    functional predicates. If a view has an instant, facts have links, or entities were merged or
    split or a predicate declared in between, a pass over all facts at about 2 us each.
    """
    beginning = common.basis + common.drafts
    if beginning in (a.end, b.end):
        return _line(a, b)
    # Each state has events that the other lacks, so the way leads over the common beginning.
    middle = a.prefix(beginning)
    back = {_key(change, common, "a"): change for change in _line(a, middle)}
    forth = {_key(change, common, "b"): change for change in _line(middle, b)}
    changes: list[FactChange] = []
    for key in sorted(back.keys() | forth.keys()):
        first, second = back.get(key), forth.get(key)
        if first is None or second is None:
            changes.append(cast("FactChange", first or second))
        elif first.old != second.new:
            changes.append(FactChange(first.old, second.new, second.verb))
    return tuple(changes)


def _line(a: Snapshot, b: Snapshot) -> tuple[FactChange, ...]:
    return _with_corrections(a, b, _changes_of_one_line(a, b))


def _key(change: FactChange, common: Common, side: str) -> tuple[int, str]:
    """Return the identity of a fact; drafts of the two states have the same ids."""
    number = change.fact.id
    return number, "" if common.has(number) else side


def _changes_of_one_line(a: Snapshot, b: Snapshot) -> tuple[FactChange, ...]:
    """Return the changes between two states of which one continues the other."""
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
        if row not in stated_again and _same(before, was, after, now):
            continue
        first = None if was is None else to_fact(before, was, a.basis, a.present_us)
        second = None if now is None else to_fact(after, now, b.basis, b.present_us)
        if first == second:
            continue
        in_time = (first, second) if older is before else (second, first)
        changes.append(FactChange(first, second, _verb(older, newer, row, *in_time)))
    return tuple(changes)


def _verb(
    older: FactsAt, newer: FactsAt, row: int, early: Fact | None, late: Fact | None
) -> FactVerb:
    if not older.has_row(row):
        return "learned"
    if early is not None and late is not None:
        is_ended = late.valid.end is not None and late.valid.end != early.valid.end
        return "ended" if is_ended else "changed"
    if row not in older.known_rows([row]) or row not in newer.known_rows([row]):
        return "retracted"
    return "started" if early is None else "ended"


def _with_corrections(
    a: Snapshot, b: Snapshot, changes: tuple[FactChange, ...]
) -> tuple[FactChange, ...]:
    """Return the changes; facts retracted for a new fact, and the new fact, count as corrected."""
    retracted = {change.fact.id for change in changes if change.verb == "retracted"}
    if not retracted:
        return changes
    newer = b if a.end <= b.end else a
    corrected = set[int]()
    for change in changes:
        if change.verb != "learned":
            continue
        cause = newer.cause_of(change.fact.id)
        causes = [] if cause is None else [cause]
        event = next(readable(causes, newer.event_of, event_place), None)
        body = None if event is None else event.body
        if isinstance(body, RetractFact) and body.fact in retracted:
            corrected |= {body.fact, change.fact.id}
    return tuple(
        replace(change, verb="corrected") if change.fact.id in corrected else change
        for change in changes
    )


def _true(facts: FactsAt, rows: Iterable[int], instant: int | None) -> dict[int, FactSpan]:
    """Return the spans of the rows that are known, and true at the instant if any."""
    spans = facts.spans(facts.known_rows(rows))
    return {span.row: span for span in spans if instant is None or span.valid.contains(instant)}


def _same(before: FactsAt, was: FactSpan | None, after: FactsAt, now: FactSpan | None) -> bool:
    if was is None or now is None:
        return False
    stands_alike = before.standing_of(was.row) is after.standing_of(now.row)
    return was == now and stands_alike and before.name_key(was.row) == after.name_key(now.row)
