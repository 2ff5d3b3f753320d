"""Corrections: the fact that takes the place of a retracted fact.

Leaves out the earlier facts (`frames.blame`) and the events of a fact (`frames.history`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from cerata.engine.events import AssertFact
from cerata.projections.columnar.times import Interval
from cerata.projections.facts.objects import ObjectKind

from ..snapshot.fact_conversion import id_of_seq
from ..snapshot.snapshot import Snapshot
from ..values.facts import Fact

if TYPE_CHECKING:
    from cerata.projections.facts.reader import FactsAt
    from cerata.projections.facts.validity import FactSpan


def correction_of(snapshot: Snapshot, fact: Fact) -> Fact | None:
    """Return the fact that corrects a fact, or None: the retraction in its batch is its cause."""
    if fact.retracted_by is None:
        return None
    retraction = snapshot.event_of(fact.retracted_by)
    if retraction is None:
        return None
    if retraction.seq < 0:
        numbers = range(retraction.seq - 1, -snapshot.end + snapshot.basis - 1, -1)
    else:
        last = min(retraction.header.last_seq, snapshot.basis)
        numbers = range(retraction.seq + 1, last + 1)
    for number in numbers:
        event = snapshot.event_of(number)
        if event is None or event.causation != retraction.seq:
            continue
        row = snapshot.facts_at.row_of(snapshot.seq_of(number))
        if isinstance(event.body, AssertFact) and row is not None:
            return snapshot.fact_at(number)
    return None


def current_fact(snapshot: Snapshot, fact: Fact) -> Fact | None:
    """Return the newest correction of a retracted fact; None if the fact was retracted for good."""
    newest: Fact | None = fact
    while newest is not None and not newest.is_known:
        newest = correction_of(snapshot, newest)
    return newest


# --- Contradictions: known facts that cannot both be true at the same time ------------------------


def contradicted(snapshot: Snapshot, facts: Sequence[Fact]) -> dict[int, tuple[int, ...]]:
    """Return the facts that contradict each fact, by ids; without facts that none contradicts.

    Cost: a look at the facts of the subjects of functional predicates.
    """
    at = snapshot.facts_at
    shown = {row for fact in facts if (row := at.row_of(snapshot.seq_of(fact.id))) is not None}
    beside = {
        near
        for row in shown
        if at.is_functional(row)
        for near in at.of_tenant(at.group_of(row), at.tenant_of(row))
    }
    pairs: dict[int, list[int]] = {}
    for first, second, _ in pairs_among(at, sorted(beside)):
        for span, rival in ((first, second), (second, first)):
            if span.row in shown:
                number = id_of_seq(at.seq_of(span.row), snapshot.basis)
                pairs.setdefault(number, []).append(id_of_seq(at.seq_of(rival.row), snapshot.basis))
    return {number: tuple(sorted(rivals)) for number, rivals in pairs.items()}


def pairs_among(
    facts: FactsAt, rows: Sequence[int]
) -> Iterator[tuple[FactSpan, FactSpan, Interval]]:
    """Yield the pairs of known facts that cannot both be true, with the period, by their starts.

    Cost: a sort, and a step for each overlapping pair of values of a functional predicate, or of
    bools.
    """
    for group in facts.groups(rows).values():
        spans = facts.spans(group.rows, group.rows)
        if not group.functional:
            spans = [span for span in spans if facts.value_key(span.row)[0] == ObjectKind.BOOL]
        spans.sort(key=lambda span: span.valid)
        for place, span in enumerate(spans, start=1):
            for following in range(place, len(spans)):
                later = spans[following]
                if later.valid.start >= span.valid.end:
                    # Spans are sorted by start, so no later span overlaps.
                    break
                shared = Interval(later.valid.start, min(span.valid.end, later.valid.end))
                differ = facts.value_key(span.row) != facts.value_key(later.row)
                if differ and shared.start < shared.end:
                    first, second = sorted((span, later))
                    yield first, second, shared
