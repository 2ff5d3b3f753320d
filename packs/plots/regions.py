"""Regions: the parts of the plane (valid, known) that a fact covers, from views of each change.

Owns the rectangles of a fact. A value of a functional predicate ends at the start of the next
value, but only from when the next value was known: so a fact has several rectangles, one above the
other. Leaves out drawing (`bitemporal`).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from cerata.engine.errors import NotFound
from cerata.memory.snapshot.fact_conversion import spans_of, to_fact
from cerata.memory.snapshot.snapshot import Snapshot
from cerata.memory.values.facts import Fact
from cerata.projections.columnar.times import ENDLESS, Interval, to_microseconds
from cerata.projections.facts.entity_resolution import Act

_RULING: Final = (Act.PREDICATE, Act.MERGE, Act.SPLIT, Act.END)
"""Acts that can change the valid time of facts that were known before."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A rectangle: the valid time of a fact during an interval of known time, in microseconds."""

    known: Interval
    valid: Interval


@dataclass(frozen=True, slots=True)
class Region:
    """A fact and its pieces, upwards; the last piece of a fact still known is endless."""

    fact: Fact
    pieces: tuple[Piece, ...]


def regions_of(snapshot: Snapshot, facts: Sequence[Fact]) -> list[Region]:
    """Return the regions of facts, in their order, without facts that are never true.

    Cost: a read of each fact as of each event that has changed its subject and predicate.
    """
    ruling, renamed = _ruling(snapshot)
    changes: dict[tuple[str | None, str], list[tuple[int, int]]] = {}
    regions = list[Region]()
    for fact in facts:
        # If a merge or split ever renamed entities, facts of all subjects count.
        about = (None if renamed else fact.subject, fact.predicate)
        if about not in changes:
            changes[about] = _changes(snapshot, *about, ruling)
        pieces = tuple(_pieces(snapshot, fact, changes[about]))
        if pieces:
            regions.append(Region(fact, pieces))
    return regions


def _changes(
    snapshot: Snapshot, subject: str | None, predicate: str, ruling: Mapping[int, int]
) -> list[tuple[int, int]]:
    """Return the last event of each batch that can change the valid time of such facts, by time."""
    last_seqs = dict(ruling)
    facts = snapshot.facts_at
    for span in spans_of(facts, facts.find(subject, predicate, closed=True)):
        fact = to_fact(facts, span, snapshot.basis, snapshot.present_us)
        for when, seq in ((fact.known.start, fact.id), (fact.known.end, fact.retracted_by)):
            if when is not None and seq is not None and seq > 0:
                time = to_microseconds(when)
                last_seqs[time] = max(seq, last_seqs.get(time, 0))
    return sorted(last_seqs.items())


def _ruling(snapshot: Snapshot) -> tuple[dict[int, int], bool]:
    """Return the events of `_RULING` acts by time, and whether any is about entities."""
    acts = [
        act for act in snapshot.facts_at.acts if act.kind in _RULING and act.seq <= snapshot.basis
    ]
    seqs: dict[int, int] = {}
    for act in acts:
        for event in snapshot.events(act.seq, act.seq):
            seqs[event.recorded] = act.seq
    return seqs, any(act.kind != Act.PREDICATE for act in acts)


def _pieces(snapshot: Snapshot, fact: Fact, changes: Iterable[tuple[int, int]]) -> list[Piece]:
    known_time = fact.known.interval
    steps: list[tuple[int, Interval]] = []
    for time, seq in changes:
        valid = _valid_at(snapshot, fact, seq)
        if valid is not None and (not steps or steps[-1][1] != valid):
            steps.append((time, valid))
    if fact.id < 0:
        # A pending fact: no event of the log has it.
        steps = [(known_time.start, fact.valid.interval)]
    if not steps:
        # A fact retracted in the batch that asserted it was known at no time.
        return []
    ends = [*(time for time, _ in steps[1:]), known_time.end]
    return [
        Piece(Interval(time, end), valid)
        for (time, valid), end in zip(steps, ends, strict=True)
        if valid.start < valid.end and time < end
    ]


def _valid_at(snapshot: Snapshot, fact: Fact, seq: int) -> Interval | None:
    """Return the valid time of a fact as of an event; None if the fact was not known then."""
    if seq < fact.id:
        return None
    try:
        then = snapshot.earlier(seq).fact_at(fact.id)
    except NotFound:
        return None
    return then.valid.interval if then.is_known else None


def is_endless(piece: Piece) -> bool:
    """Return whether a piece is still known."""
    return piece.known.end >= ENDLESS
