"""Corrections: the fact that takes the place of a retracted fact.

Leaves out the earlier facts (`frames.blame`) and the events of a fact (`frames.history`).
"""

from __future__ import annotations

from cerata.engine.events import AssertFact

from ..snapshot.snapshot import Snapshot
from ..values.facts import Fact


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
