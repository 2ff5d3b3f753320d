"""Fusion: several ranked lists of the same things as one.

Owns reciprocal rank fusion: what stands at rank r of a lane adds 1 / (60 + r) to its score
(G. Cormack, C. Clarke and S. Büttcher, Reciprocal Rank Fusion outperforms Condorcet and individual
Rank Learning Methods, SIGIR 2009). Scores of lanes are never compared. What the lanes are is the
business of whoever has them.
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

RANK_CONSTANT: Final = 60
"""k of the paper, with which it measured best."""


class Fused(NamedTuple):
    """One of the things: its score, and the lanes that found it, in their order."""

    id: int
    score: float
    lanes: tuple[str, ...]


def fuse(lanes: Mapping[str, Sequence[int]], k: int) -> list[Fused]:
    """Return the best ``k`` of what the lanes found; ties by best rank, then by id.

    >>> [one.id for one in fuse({"text": [7, 8, 9], "facts": [9]}, k=2)]
    [9, 7]
    """
    ranks: dict[int, dict[str, int]] = {}
    for lane, ids in lanes.items():
        for rank, one in enumerate(ids, start=1):
            ranks.setdefault(one, {})[lane] = rank
    found = [
        (sum(1 / (RANK_CONSTANT + rank) for rank in its.values()), min(its.values()), one)
        for one, its in ranks.items()
    ]
    best = sorted(found, key=lambda item: (-round(item[0], 9), item[1], item[2]))[:k]
    return [Fused(one, round(score, 9), tuple(ranks[one])) for score, _, one in best]
