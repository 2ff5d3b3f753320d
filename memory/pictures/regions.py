"""Regions: in which parts of (valid, known) a fact is, worked out from views of each change.

A value of a functional predicate ends where the next begins, but only from when that was known: so
a fact is a few rectangles, one over the other. Leaves out how they are drawn.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from cerata.engine.errors import NotFound
from cerata.projections.entity_roles import Act
from cerata.projections.intervals import ENDLESS, Interval
from cerata.projections.times import to_microseconds

from ..fact_values import Fact
from ..view import View

_RULING: Final = (Act.PREDICATE, Act.MERGE, Act.SPLIT, Act.END)
"""What may change when facts are true that were known before."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A rectangle: while it was known, from microsecond to microsecond, it was held valid so."""

    known: Interval
    valid: Interval


@dataclass(frozen=True, slots=True)
class Region:
    """A fact and its pieces, upwards; of one that is known still the last is endless."""

    fact: Fact
    pieces: tuple[Piece, ...]


def regions_of(view: View, facts: Sequence[Fact]) -> list[Region]:
    """Return the regions of facts, in their order; those that are never true are left out.

    Cost: a look at each fact from each event that has changed what is known of its subject and
    predicate.
    """
    ruling, renamed = _ruling(view)
    changes: dict[tuple[str | None, str], list[tuple[int, int]]] = {}
    found = list[Region]()
    for fact in facts:
        # Where entities were ever read as others, what was said of these counts too.
        about = (None if renamed else fact.subject, fact.predicate)
        if about not in changes:
            changes[about] = _changes(view, *about, ruling)
        pieces = tuple(_pieces(view, fact, changes[about]))
        if pieces:
            found.append(Region(fact, pieces))
    return found


def _changes(
    view: View, subject: str | None, predicate: str, ruling: Mapping[int, int]
) -> list[tuple[int, int]]:
    """Return by time the last events of batches that may change when such facts are true."""
    found = dict(ruling)
    for one in view.true_at(None).facts(subject, predicate, include_retracted=True):
        for when, seq in ((one.known.start, one.id), (one.known.end, one.retracted_by)):
            if when is not None and seq is not None and seq > 0:
                time = to_microseconds(when)
                found[time] = max(seq, found.get(time, 0))
    return sorted(found.items())


def _ruling(view: View) -> tuple[dict[int, int], bool]:
    """Return the events that say how facts are read, by time, and whether any names entities."""
    acts = [act for act in view.facts_at.acts if act.what in _RULING and act.seq <= view.basis]
    found: dict[int, int] = {}
    for act in acts:
        for event in view.log(act.seq, act.seq):
            found[event.recorded] = act.seq
    return found, any(act.what != Act.PREDICATE for act in acts)


def _pieces(view: View, fact: Fact, changes: Iterable[tuple[int, int]]) -> list[Piece]:
    """Return what was held of a fact after each change, and before the next."""
    known = fact.known.interval
    said: list[tuple[int, Interval]] = []
    for time, seq in changes:
        valid = _valid_at(view, fact, seq)
        if valid is not None and (not said or said[-1][1] != valid):
            said.append((time, valid))
    if fact.id < 0:
        # Only gathered: there is no earlier event that knows it.
        said = [(known.start, fact.valid.interval)]
    if not said:
        # Retracted in the batch that asserted it: there was no time at which it was known.
        return []
    ends = [*(time for time, _ in said[1:]), known.end]
    return [
        Piece(Interval(time, end), valid)
        for (time, valid), end in zip(said, ends, strict=True)
        if valid.start < valid.end and time < end
    ]


def _valid_at(view: View, fact: Fact, seq: int) -> Interval | None:
    """Return when a fact was held true as of an event; None where it was not known then."""
    if seq < fact.id:
        return None
    try:
        then = view.earlier(seq).fact(fact.id)
    except NotFound:
        return None
    return then.valid.interval if then.is_known else None


def is_endless(piece: Piece) -> bool:
    """Tell whether it is known still."""
    return piece.known.end >= ENDLESS
