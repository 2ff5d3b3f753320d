"""Meta-patterns: two predicates that often lead, one after the other, from an entity to another.

Owns the count and the score of chains. An unvalidated heuristic; the limits are those of the
source, that of hubs is ours.

- A chain is a known fact from A to B, and a known fact from B to C; A, B and C are three entities.
  A predicate has at least 5 known facts between entities.
- The yield counts the distinct pairs of A and C, at least 3. The overlap, at most .9, is the share
  of these pairs that a fact joins directly, in either direction.
- The score is yield · (1 − overlap) · mean confidence of the facts in the chains. 12 are returned.
- An entity with over 100 facts of a predicate on the same side is a hub: no chain goes through it
  by that predicate.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import product
from typing import Final, NamedTuple

import numpy as np

from cerata.engine.plain_value import PlainValue
from cerata.memory.snapshot.snapshot import Snapshot
from cerata.projections.facts.objects import ObjectKind

PATTERNS: Final = 12
"""Meta-patterns that are returned, at most."""

FACTS_MIN: Final = 5
"""Known facts of a predicate, at least."""

YIELD_MIN: Final = 3
OVERLAP_MAX: Final = 0.9
HUB: Final = 100
"""Facts of a predicate on one side of an entity, at most; a bound on the chains."""

EVIDENCE: Final = 3
"""Chains that are shown."""


@dataclass(frozen=True, slots=True)
class PatternChain(PlainValue):
    """Two facts, by their ids, that lead from ``start`` over ``middle`` to ``end``."""

    start: str
    middle: str
    end: str
    facts: tuple[int, int]


@dataclass(frozen=True, slots=True)
class MetaPattern(PlainValue):
    """Two predicates that often follow each other, with their oldest chains as evidence.

    - ``yields`` counts the distinct pairs of ends; ``overlap`` is the share of them that a fact
      joins directly; ``confidence`` is the mean of the facts in all chains.
    - ``score`` is yields · (1 − overlap) · confidence.
    """

    first: str
    second: str
    yields: int
    overlap: float
    confidence: float
    score: float
    evidence: tuple[PatternChain, ...]


class _Edge(NamedTuple):
    """A known fact between two entities."""

    id: int
    subject: str
    object: str
    confidence: float


class _Predicate:
    """The edges of a predicate, in order of id, by each end."""

    def __init__(self) -> None:
        self.count = 0
        self.into: dict[str, list[_Edge]] = defaultdict(list)
        self.out_of: dict[str, list[_Edge]] = defaultdict(list)

    def add(self, edge: _Edge) -> None:
        self.count += 1
        self.into[edge.object].append(edge)
        self.out_of[edge.subject].append(edge)


def meta_patterns_of(snapshot: Snapshot) -> list[MetaPattern]:
    """Return the best 12 meta-patterns of the known facts within the scope, best first.

    Cost: a pass over the facts, and over the chains of each two predicates.
    """
    predicates: dict[str, _Predicate] = defaultdict(_Predicate)
    joined: set[tuple[str, str]] = set()
    facts = snapshot.log_only.facts_at
    for row in facts.known_among(np.arange(facts.row_count)).tolist():
        seq, subject, predicate, kind, value, _, (confidence, _), *_ = facts.contents(row)
        if kind == ObjectKind.ENTITY and isinstance(value, str) and value != subject:
            predicates[predicate].add(_Edge(seq, subject, value, confidence))
            joined.update(((subject, value), (value, subject)))
    frequent = sorted(name for name, each in predicates.items() if each.count >= FACTS_MIN)
    patterns = [
        pattern
        for first in frequent
        for second in frequent
        if (pattern := _pattern(first, second, predicates, joined)) is not None
    ]
    patterns.sort(key=lambda each: (-each.score, each.first, each.second))
    return patterns[:PATTERNS]


def _pattern(
    first: str,
    second: str,
    predicates: dict[str, _Predicate],
    joined: set[tuple[str, str]],
) -> MetaPattern | None:
    """Return the pattern of two predicates, or None: too few pairs, or joined."""
    into, out_of = predicates[first].into, predicates[second].out_of
    pairs: set[tuple[str, str]] = set()
    confidences: dict[int, float] = {}
    chains: list[tuple[_Edge, _Edge]] = []
    for middle in into.keys() & out_of.keys():
        if max(len(into[middle]), len(out_of[middle])) > HUB:
            continue
        for edge, next_edge in product(into[middle], out_of[middle]):
            if edge.subject != next_edge.object:
                pairs.add((edge.subject, next_edge.object))
                confidences[edge.id] = edge.confidence
                confidences[next_edge.id] = next_edge.confidence
                chains.append((edge, next_edge))
    if len(pairs) < YIELD_MIN:
        return None
    overlap = len(pairs & joined) / len(pairs)
    if overlap > OVERLAP_MAX:
        return None
    # In order of id: a sum of floats depends on the order.
    confidence = sum(confidences[number] for number in sorted(confidences)) / len(confidences)
    oldest = sorted(chains, key=lambda each: (max(each[0].id, each[1].id), each[0].id, each[1].id))
    return MetaPattern(
        first,
        second,
        len(pairs),
        overlap,
        confidence,
        len(pairs) * (1 - overlap) * confidence,
        tuple(
            PatternChain(edge.subject, edge.object, next_edge.object, (edge.id, next_edge.id))
            for edge, next_edge in oldest[:EVIDENCE]
        ),
    )
