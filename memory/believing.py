"""Why a fact is believed or not: what it stands on, and what speaks for and against it.

Owns the tree that explains a fact's standing, and how it prints. Which facts stand is worked out by
`cerata.projections.labelling`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from cerata.engine.errors import InvalidInput
from cerata.engine.events import JsonValue
from cerata.projections.fact_values import Standing
from cerata.projections.labelling import Joined
from cerata.projections.link_columns import ATTACKING, REQUIRING, LinkKind

from .drafting import check_number
from .fact_reading import FactReads
from .fact_values import Fact, FactEvidence, FactId
from .link_reading import shown_link
from .link_values import Link

if TYPE_CHECKING:
    from .view import View

DEPTH_MAX: Final = 64
"""The deepest tree that can be asked for."""

_PASSIVE: Final = {
    "contradicts": "contradicted by",
    "invalidates": "invalidated by",
    "supersedes": "superseded by",
    "supports": "supported by",
}


@dataclass(frozen=True, slots=True)
class Reason:
    """A link that speaks for or against a fact, and what is at its other end.

    That is a fact, with why it is believed, or a frame, which stands while it is current.
    """

    link: Link
    phrase: str
    """How the fact stands to it: "depends on", "superseded by"."""
    standing: Standing
    why: "Why | None"
    frame: int | None

    def to_dict(self) -> dict[str, JsonValue]:
        return {
            "link": self.link.to_dict(),
            "phrase": self.phrase,
            "standing": self.standing.value,
            "why": None if self.why is None else self.why.to_dict(),
            "frame": self.frame,
        }


@dataclass(frozen=True, slots=True)
class Why:
    """Why a fact stands, or does not. Printing it gives the tree, a line for each reason.

    It stands if it is known, all that it ``requires`` stands, and none of its ``attackers`` does;
    ``supports`` and ``contradicts`` are told, and decide nothing. What comes several times in a
    tree is told once, where it is nearest; elsewhere, and at the tree's end, ``is_told`` is False.
    """

    fact: Fact
    requires: tuple[Reason, ...]
    attackers: tuple[Reason, ...]
    supports: tuple[Reason, ...]
    contradicts: tuple[Reason, ...]
    is_told: bool = True

    @property
    def standing(self) -> Standing:
        """Whether the fact stands."""
        return self.fact.standing

    @property
    def evidence(self) -> tuple[FactEvidence, ...]:
        """Where the fact is said."""
        return self.fact.evidence

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """All reasons: what is required, what attacks, what supports, what contradicts."""
        return (*self.requires, *self.attackers, *self.supports, *self.contradicts)

    def __str__(self) -> str:
        return "\n".join(self._lines(0))

    def _lines(self, indent: int) -> Iterator[str]:
        fact, below = self.fact, " " * (indent + 4)
        retracted = "" if fact.retracted_by is None else f", retracted by #{fact.retracted_by}"
        yield f"#{fact.id} {fact}: {self.standing}{retracted}"
        if not self.is_told:
            return
        for place in fact.evidence:
            span = "" if place.start is None else f" [{place.start}, {place.end})"
            yield f"{below}said by frame #{place.frame}{span}"
        for reason in self.reasons:
            if reason.why is None:
                current = "current" if reason.standing is Standing.STANDS else "no longer current"
                yield f"{below}{reason.phrase} frame #{reason.frame}: {current}"
                continue
            first, *others = reason.why._lines(indent + 4)
            yield f"{below}{reason.phrase} {first}"
            yield from others

    def to_dict(self) -> dict[str, JsonValue]:
        return {
            "fact": self.fact.to_dict(),
            "requires": [one.to_dict() for one in self.requires],
            "attackers": [one.to_dict() for one in self.attackers],
            "supports": [one.to_dict() for one in self.supports],
            "contradicts": [one.to_dict() for one in self.contradicts],
            "is_told": self.is_told,
        }


class Beliefs(FactReads):
    """The read that explains; ``view`` says of which state."""

    def why(self, fact: FactId, *, depth: int = 16) -> Why:
        """Return why a fact is believed or not, and why what it rests on is, to a depth.

        Cost: a look-up for each fact in the tree.

        Raises:
            NotFound: no such fact. InvalidInput: a depth that is not from 1 to 64.
        """
        check_number("depth", depth)
        if not 1 <= depth <= DEPTH_MAX:
            raise InvalidInput(f"depth is {depth}", remedy=f"Give 1 to {DEPTH_MAX}.")
        view = self.view()
        found = view.fact(fact)
        row = view.facts_at.row_of(view.fact_seq(found.id))
        assert row is not None
        return _Tree(view, row, depth).why(row)


class _Way(NamedTuple):
    """From a row by a link to the row of another fact, or to a frame."""

    row: int
    other: int | None
    joined: Joined


class _Tree:
    """The facts around one, nearest first, each reached from one place."""

    def __init__(self, view: "View", root: int, depth: int) -> None:
        self._view = view
        self._ways: dict[int, list[_Way]] = {}
        self._told_from: dict[int, _Way | None] = {root: None}
        waiting = [root]
        for _ in range(depth):
            following: list[int] = []
            for row in waiting:
                self._ways[row] = list(self._reasons(row))
                for way in self._ways[row]:
                    if way.other is not None and way.other not in self._told_from:
                        self._told_from[way.other] = way
                        following.append(way.other)
            waiting = following

    def _reasons(self, row: int) -> Iterator[_Way]:
        """Yield the links that speak for or against a row, in the order in which they are told."""
        labelling = self._view.labelling
        mine = [_Way(row, one.target, one) for one in labelling.of([row])]
        others = [_Way(row, one.fact, one) for one in labelling.to([row])]
        validated, contradicts = LinkKind.VALIDATED_BY, LinkKind.CONTRADICTS
        yield from (way for way in mine if way.joined.link.kind in REQUIRING)
        yield from (way for way in others if way.joined.link.kind in ATTACKING)
        yield from (way for way in others if way.joined.link.kind is LinkKind.SUPPORTS)
        yield from (way for way in mine if way.joined.link.kind is validated)
        yield from (way for way in (*mine, *others) if way.joined.link.kind is contradicts)

    def why(self, row: int, by: _Way | None = None) -> Why:
        """Return the tree below a row, or where it is told elsewhere the row alone."""
        fact = self._view.fact_in(row)
        if row not in self._ways or self._told_from[row] != by:
            return Why(fact, (), (), (), (), is_told=False)
        told = [(way.joined.link.kind, self._reason(way)) for way in self._ways[row]]
        return Why(
            fact,
            tuple(reason for kind, reason in told if kind in REQUIRING),
            tuple(reason for kind, reason in told if kind in ATTACKING),
            tuple(reason for kind, reason in told if kind in _SUPPORTING),
            tuple(reason for kind, reason in told if kind is LinkKind.CONTRADICTS),
        )

    def _reason(self, way: _Way) -> Reason:
        link = shown_link(self._view, way.joined.link)
        assert link is not None
        name = link.kind.replace("_", " ")
        phrase = name if way.joined.fact == way.row else _PASSIVE[name]
        if way.other is None:
            standing = Standing.STANDS if way.joined.is_current else Standing.INVALID
            return Reason(link, phrase, standing, None, link.target)
        why = self.why(way.other, way)
        return Reason(link, phrase, why.standing, why, None)


_SUPPORTING: Final = frozenset((LinkKind.SUPPORTS, LinkKind.VALIDATED_BY))
