"""Fusion: several ranked lists of the same things as one.

Owns what a place in a lane counts, by one of three methods, and the order of the sums. With r the
rank of a thing in a lane, from 1, s its score there, and w the weight of the lane, it adds

    rrf      w · 1 / (60 + r)
    minmax   w · (s − min) / (max − min)
    zscore   w · (s − min) / σ

where min, max and σ (of the population) are those of what the lane found; what a lane did not find
adds nothing. `rrf` never compares scores of lanes (G. Cormack, C. Clarke and S. Büttcher,
*Reciprocal Rank Fusion outperforms Condorcet and individual Rank Learning Methods*, SIGIR 2009).
`minmax` is J. Lee's (*Analyses of Multiple Evidence Combination*, SIGIR 1997). `zscore` is the
ZMUV of M. Montague and J. Aslam (*Relevance Score Normalization for Metasearch*, CIKM 2001), moved
so that the least of a lane counts as much as what it did not find: 0. Where all scores of a lane
are equal, as a single one is, each counts 1.

Leaves out which lanes there are, and how much each weighs: whoever has them says so.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

import numpy as np

from cerata.projections.columns import F64, I64
from cerata.projections.ranking import SCORE_DECIMALS

RANK_CONSTANT: Final = 60
"""k of the paper on reciprocal rank fusion, with which it measured best."""

Method: TypeAlias = Literal["rrf", "minmax", "zscore"]
"""How places in lanes become one score."""

_NOT_FOUND: Final = np.iinfo(np.int64).max
"""A rank after every other."""

_GATHERED: Final = 1 << 62
"""Above every id of the log: from here on those of an open transaction are ordered."""

_EQUAL: Final[Mapping[str, float]] = {}


class Lane(NamedTuple):
    """One ranked list: ids, each once, best first, and their scores (n,), never ascending."""

    name: str
    ids: Sequence[int] | I64
    scores: Sequence[float] | F64


class Fused(NamedTuple):
    """One of the things: its score, and the lanes that found it, in their order."""

    id: int
    score: float
    lanes: tuple[str, ...]


def fuse(
    lanes: Sequence[Lane],
    k: int,
    *,
    method: Method = "rrf",
    weights: Mapping[str, float] = _EQUAL,
) -> list[Fused]:
    """Return the best ``k`` of what lanes found; of one lane alone, in its order by its scores.

    Sums are taken in order of lanes and rounded to 9 digits; ties go to the better of the best
    ranks, then to the older thing: ids below 0, of an open transaction, are newer than the others,
    −1 the oldest. ``weights`` are by name of lane, 1 where there is none. Cost: a sort of the ids.

    >>> lanes = [Lane("text", [7, 8, 9], [3.0, 2.0, 1.0]), Lane("facts", [9], [1.0])]
    >>> [one.id for one in fuse(lanes, k=2)]
    [9, 7]
    >>> [one.id for one in fuse(lanes, k=2, weights={"facts": 0.01})]
    [7, 8]
    """
    if len(lanes) < 2:
        return [
            Fused(int(one), round(float(score), SCORE_DECIMALS), (lane.name,))
            for lane in lanes
            for one, score in zip(lane.ids[:k], lane.scores[:k], strict=True)
        ]
    every = np.concatenate([np.asarray(lane.ids, np.int64) for lane in lanes])
    ids, places = np.unique(every, return_inverse=True)
    scores = np.zeros(len(ids))
    ranks = np.full((len(lanes), len(ids)), _NOT_FOUND)
    start = 0
    for lane, own in zip(lanes, ranks, strict=True):
        end = start + len(lane.ids)
        found = places[start:end]
        own[found] = np.arange(1, len(found) + 1)
        scores[found] += weights.get(lane.name, 1.0) * worth(lane, method)
        start = end
    best = _best(ids, np.round(scores, SCORE_DECIMALS), ranks.min(axis=0), k)
    return [
        Fused(
            int(ids[at]),
            round(float(scores[at]), SCORE_DECIMALS),
            tuple(
                lane.name
                for lane, rank in zip(lanes, ranks[:, at].tolist(), strict=True)
                if rank != _NOT_FOUND
            ),
        )
        for at in best.tolist()
    ]


def boosted(fused: Sequence[Fused], factors: Mapping[int, float]) -> list[Fused]:
    """Return things in order of their scores times their factors, rounded to 9 digits.

    What has none keeps its score; equals stay in their order.

    >>> boosted([Fused(7, 2.0, ()), Fused(8, 1.5, ())], {8: 1.4})
    [Fused(id=8, score=2.1, lanes=()), Fused(id=7, score=2.0, lanes=())]
    """
    if not factors:
        return list(fused)
    scored = [
        one._replace(score=round(one.score * factors.get(one.id, 1.0), SCORE_DECIMALS))
        for one in fused
    ]
    return sorted(scored, key=lambda one: -one.score)


def worth(lane: Lane, method: Method) -> F64:
    """Return what each place in a lane counts, before its weight: (n,) float64."""
    if method == "rrf":
        return 1.0 / np.arange(RANK_CONSTANT + 1, RANK_CONSTANT + 1 + len(lane.ids))
    scores = np.asarray(lane.scores, np.float64)
    if not len(scores) or scores[0] == scores[-1]:
        return np.ones(len(scores))
    spread = scores[0] - scores[-1] if method == "minmax" else _deviation(scores)
    return np.asarray((scores - scores[-1]) / spread)


def _deviation(scores: F64) -> float:
    """Return the standard deviation of scores; exact sums, so it is the same on any machine."""
    mean = math.fsum(scores.tolist()) / len(scores)
    return math.sqrt(math.fsum(((scores - mean) ** 2).tolist()) / len(scores))


def _best(ids: I64, scores: F64, ranks: I64, k: int) -> I64:
    """Return where the k best are, by (score descending, best rank, age)."""
    kept = np.arange(len(ids))
    if len(ids) > k:
        # Everything equal to the k-th stays in, so that ties are broken by rank and age alone.
        kept = np.flatnonzero(scores >= np.partition(scores, len(ids) - k)[len(ids) - k])
    ages = np.where(ids > 0, ids, _GATHERED - ids)
    return kept[np.lexsort((ages[kept], ranks[kept], -scores[kept]))[:k]]
