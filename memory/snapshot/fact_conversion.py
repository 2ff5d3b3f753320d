"""Showing: the values that a caller gets, from the stored rows of facts.

Owns `shown`. Leaves out the choice of rows (`facts.reads`, `facts.search`).
"""

from cerata.projections.columnar.times import to_datetime
from cerata.projections.facts.reader import FactsAt
from cerata.projections.facts.validity import FactSpan

from ..values.facts import Fact, FactEvidence, Period, period_of, shown_object


def shown(facts: FactsAt, span: FactSpan, basis: int) -> Fact:
    """Return the fact of a row with its valid period, in a view of the log at ``basis``."""
    row = span.row
    recorded, retracted, by = facts.known_period_of(row)
    confidence, source = facts.last_assertion_of(row)
    valid = period_of(span.valid)
    return Fact(
        shown_seq(facts.seq_of(row), basis),
        facts.subject_of(row),
        facts.predicate_of(row),
        shown_object(*facts.object_of(row)),
        valid,
        valid if span.by is None else period_of(facts.stated(row).valid),
        Period(to_datetime(recorded), None if retracted is None else to_datetime(retracted)),
        confidence,
        source,
        tuple(
            [
                FactEvidence(shown_seq(place.frame, basis), place.start, place.end, place.quote)
                for place in facts.evidence_of(row)
            ]
        ),
        tuple(facts.assumptions_of(row)),
        facts.depth_of(row),
        dict(facts.scope_of(row)),
        None if span.by is None else shown_seq(facts.seq_of(span.by), basis),
        None if by is None else shown_seq(by, basis),
        facts.standing_of(row),
    )


def shown_seq(seq: int, basis: int) -> int:
    """Return the id of a seq: gathered events, after the log's end, are −1, −2, …."""
    return seq if seq <= basis else basis - seq
