"""Contradictions: known facts that cannot both be true at the same time.

Owns the pairs among some facts, and the marks of the facts of a context. Leaves out contradictions
by links (`cerata.projections.links.labelling`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from cerata.projections.columnar.intervals import Interval
from cerata.projections.facts.objects import ObjectKind

from ..snapshot.fact_conversion import id_of_seq

if TYPE_CHECKING:
    from cerata.projections.facts.reader import FactsAt
    from cerata.projections.facts.validity import FactSpan

    from ..snapshot.snapshot import Snapshot
    from ..values.facts import Fact


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
