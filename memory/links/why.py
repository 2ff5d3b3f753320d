"""Explanations of belief: the facts and frames that support a fact or speak against it.

Owns the tree that explains a fact's standing, and the printed form. Leaves out the rules of the
standing (`cerata.projections.links.labelling`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from cerata.engine.arguments import expect_integer
from cerata.engine.errors import InvalidInput, number_text
from cerata.engine.plain_value import PlainValue
from cerata.engine.unreadable import event_place, readable
from cerata.projections.facts.objects import Standing
from cerata.projections.links.labelling import Joined
from cerata.projections.links.reader import ATTACKING, REQUIRING, LinkKind
from cerata.retrieval.context.imitation import on_one_line

from ..snapshot.snapshot import Snapshot
from ..values.acts import Act
from ..values.facts import Fact, FactEvidence, FactId, fact_id
from ..values.graph import Link
from .reads import to_link

DEPTH_MAX: Final = 64
"""Most levels of a tree."""

_PASSIVE: Final = {
    "contradicts": "contradicted by",
    "invalidates": "invalidated by",
    "supersedes": "superseded by",
    "supports": "supported by",
}


@dataclass(frozen=True, slots=True)
class Reason(PlainValue):
    """A link that speaks for or against a fact, and the fact or frame at the other end.

    - ``why`` explains the fact at the other end; None for a frame.
    - ``frame`` is the frame at the other end, valid while current; None for a fact.
    """

    link: Link
    phrase: str
    """The relation from the fact to the other end: "depends on", "superseded by"."""
    standing: Standing
    why: Why | None
    frame: int | None


@dataclass(frozen=True, slots=True)
class Why(PlainValue):
    """Why a fact is believed or not, as a tree; `str` has a line for each reason.

    - A fact is believed if it is known, all facts and frames that it requires are valid, and no
      attacker is.
    - ``supports`` and ``contradicts`` have no effect on the standing.
    - A fact that occurs several times has reasons only at the occurrence nearest to the root. At
      the other occurrences, and below the depth limit, ``is_told`` is False.
    """

    fact: Fact
    requires: tuple[Reason, ...]
    attackers: tuple[Reason, ...]
    supports: tuple[Reason, ...]
    contradicts: tuple[Reason, ...]
    is_told: bool = True
    asserted: Act | None = None
    """The event that asserted the fact, with its actor and reason."""
    retracted: Act | None = None
    """The event that retracted the fact; None if it is known, or if the scope hides the event."""

    @property
    def standing(self) -> Standing:
        """The fact's standing."""
        return self.fact.standing

    @property
    def evidence(self) -> tuple[FactEvidence, ...]:
        """The places in which the fact was read."""
        return self.fact.evidence

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """All reasons: required, attacking, supporting and contradicting, in this order."""
        return (*self.requires, *self.attackers, *self.supports, *self.contradicts)

    def __str__(self) -> str:
        return "\n".join(self._lines(0))

    def _lines(self, indent: int) -> Iterator[str]:
        fact, below = self.fact, " " * (indent + 4)
        asserted = _credit(", asserted", self.asserted)
        retracted = ""
        if fact.retracted_by is not None:
            retracted = _credit(f", retracted by #{fact.retracted_by}", self.retracted)
        yield f"#{fact.id} {on_one_line(str(fact))}: {self.standing}{asserted}{retracted}"
        if not self.is_told:
            return
        for place in fact.evidence:
            span = "" if place.start is None else f" [{place.start}, {place.end})"
            yield f"{below}read in frame #{place.frame}{span}"
        for reason in self.reasons:
            if reason.why is None:
                current = "current" if reason.standing is Standing.STANDS else "no longer current"
                yield f"{below}{reason.phrase} frame #{reason.frame}: {current}"
                continue
            first, *rest = reason.why._lines(indent + 4)
            yield f"{below}{reason.phrase} {first}"
            yield from rest


def _credit(words: str, act: Act | None) -> str:
    """Return the words with an act's actor and reason; without these only if they name a seq."""
    credit = "" if act is None else act.credit
    return f"{words} {credit}" if credit else words if "#" in words else ""


def why(snapshot: Snapshot, fact: FactId, depth: int) -> Why:
    """Return why a fact is believed or not; see `WhyReads.why`."""
    depth = expect_integer("depth", depth)
    if not 1 <= depth <= DEPTH_MAX:
        raise InvalidInput(
            f"depth must be from 1 to {DEPTH_MAX}, not {number_text(depth)}",
            remedy="Pass depth=16.",
        )
    number = snapshot.fact_at(fact_id(fact, snapshot.ids)).id
    row = snapshot.facts_at.row_of(snapshot.seq_of(number))
    assert row is not None
    return _Tree(snapshot, row, depth).why(row)


class _Way(NamedTuple):
    """A link from a row to the row of another fact; ``next_row`` is None for a frame."""

    row: int
    next_row: int | None
    joined: Joined


class _Tree:
    """The facts around a root, nearest first, each reached by a single way."""

    def __init__(self, snapshot: Snapshot, root: int, depth: int) -> None:
        self._snapshot = snapshot
        self._ways: dict[int, list[_Way]] = {}
        self._reached_by: dict[int, _Way | None] = {root: None}
        waiting = [root]
        for _ in range(depth):
            following: list[int] = []
            for row in waiting:
                self._ways[row] = list(self._reasons(row))
                for way in self._ways[row]:
                    if way.next_row is not None and way.next_row not in self._reached_by:
                        self._reached_by[way.next_row] = way
                        following.append(way.next_row)
            waiting = following

    def _reasons(self, row: int) -> Iterator[_Way]:
        """Yield the links that speak for or against a row, in the order of `Why.reasons`."""
        labelling = self._snapshot.labelling
        outgoing = [_Way(row, joined.target, joined) for joined in labelling.of([row])]
        incoming = [_Way(row, joined.fact, joined) for joined in labelling.to([row])]
        validated = LinkKind.VALIDATED_BY
        contradicts = LinkKind.CONTRADICTS
        yield from (way for way in outgoing if way.joined.link.kind in REQUIRING)
        yield from (way for way in incoming if way.joined.link.kind in ATTACKING)
        yield from (way for way in incoming if way.joined.link.kind is LinkKind.SUPPORTS)
        yield from (way for way in outgoing if way.joined.link.kind is validated)
        yield from (way for way in (*outgoing, *incoming) if way.joined.link.kind is contradicts)

    def why(self, row: int, by: _Way | None = None) -> Why:
        """Return the tree below a row; only the row if its reasons belong to another way."""
        fact = self._snapshot.fact_of_row(row)
        if row not in self._ways or self._reached_by[row] != by:
            return Why(fact, (), (), (), (), is_told=False)
        reasons = [(way.joined.link.kind, self._reason(way)) for way in self._ways[row]]
        return Why(
            fact,
            tuple(reason for kind, reason in reasons if kind in REQUIRING),
            tuple(reason for kind, reason in reasons if kind in ATTACKING),
            tuple(reason for kind, reason in reasons if kind in _SUPPORTING),
            tuple(reason for kind, reason in reasons if kind is LinkKind.CONTRADICTS),
            asserted=self._act(fact.id),
            retracted=None if fact.retracted_by is None else self._act(fact.retracted_by),
        )

    def _act(self, number: int) -> Act | None:
        return next(readable([number], self._snapshot.act, event_place), None)

    def _reason(self, way: _Way) -> Reason:
        link = to_link(self._snapshot, way.joined.link)
        assert link is not None
        name = link.kind.replace("_", " ")
        phrase = name if way.joined.fact == way.row else _PASSIVE[name]
        if way.next_row is None:
            standing = Standing.STANDS if way.joined.is_current else Standing.INVALID
            return Reason(link, phrase, standing, None, link.target)
        why = self.why(way.next_row, way)
        return Reason(link, phrase, why.standing, why, None)


_SUPPORTING: Final = frozenset((LinkKind.SUPPORTS, LinkKind.VALIDATED_BY))
