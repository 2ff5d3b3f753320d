"""Fusion: several ranked lists of the same items as one.

Owns the share of a rank in the score, by one of three methods, and the order of the sums. With r
the rank of an item in a lane, from 1, s its score there, and w the weight of the lane, the lane
adds

    rrf      w · 1 / (60 + r)
    minmax   w · (s − min) / (max − min)
    zscore   w · (s − min) / σ

with min, max and σ (of the population) over the scores of the lane. A lane may have other ranks
than 1, 2, …: those of the graph are hops; a lane adds nothing for items
that it did not return. `rrf` never compares scores of lanes (G. Cormack, C. Clarke and S. Büttcher,
*Reciprocal Rank Fusion outperforms Condorcet and individual Rank Learning Methods*, SIGIR 2009).
`minmax` is J. Lee's (*Analyses of Multiple Evidence Combination*, SIGIR 1997). `zscore` is the ZMUV
of M. Montague and J. Aslam (*Relevance Score Normalization for Metasearch*, CIKM 2001), shifted so
that the last item of a lane counts 0, like an item outside the lane. If all scores of a lane are
equal, as a single score is, each counts 1.

Owns the reorderings of fused items, too: by boosts of their scores, and by another score that only
some of the best items have. Leaves out the lanes and their weights (`profiles`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

import numpy as np

from cerata.projections.columnar.columns import F64, I64, Mask
from cerata.projections.fulltext.bm25 import SCORE_DECIMALS

RANK_CONSTANT: Final = 60
"""k of the paper on reciprocal rank fusion: the best value of its measurements."""

RERANK_HITS: Final = 50
"""Hits that token vectors rerank: more hardly improve recall (docs/search.md)."""

Method: TypeAlias = Literal["rrf", "minmax", "zscore"]
"""How ranks in lanes become one score."""

_NOT_FOUND: Final = np.iinfo(np.int64).max
"""A rank after all ranks."""

_SORTED_MAX: Final = 512
"""So few items are sorted faster than they are divided."""

_PENDING_AGE: Final = 1 << 62
"""Above every id of the log: ids of an open transaction sort from here on."""

_EQUAL: Final[Mapping[str, float]] = {}

OF_FACTS: Final = frozenset({"facts", "graph"})
"""The lanes that find few frames, those read as evidence, and add to the scores of the content."""


class LaneRanking(NamedTuple):
    """A ranked list: distinct ids, best first, and their scores (n,), never ascending.

    ``ranks`` (n,) are from 1, never descending; None counts 1, 2, ….
    """

    name: str
    ids: Sequence[int] | I64
    scores: Sequence[float] | F64
    ranks: Sequence[int] | I64 | None = None


class TurnWeights(NamedTuple):
    """The weights of lanes for the items that are turns, in place of those of all items.

    ``are_turns`` returns the mask of the turns among items, (items,), from their ids.
    """

    weights: Mapping[str, float]
    are_turns: Callable[[I64], Mask]

    def shared(self, lanes: Sequence[LaneRanking]) -> TurnWeights:
        """Return these weights as `shared_weights`."""
        return self._replace(weights=shared_weights(lanes, self.weights))


class Fused(NamedTuple):
    """An item: its score, and the lanes that returned it, in their order."""

    id: int
    score: float
    lanes: tuple[str, ...]


def fuse(
    lanes: Sequence[LaneRanking],
    k: int,
    *,
    method: Method = "rrf",
    weights: Mapping[str, float] = _EQUAL,
    turns: TurnWeights | None = None,
    adding: Callable[[I64], F64] | None = None,
) -> list[Fused]:
    """Return the best ``k`` items of the lanes; a single lane keeps its order and scores.

    ``adding`` returns what else counts for items, (items,), from their ids; if that is not 0 for
    all, a single lane is fused, too.

    Sums are taken in order of lanes and rounded to 9 digits; ties go to the better of the best
    ranks, then to the older item: ids below 0, of an open transaction, are newer than all ids of
    the log, −1 the oldest. ``weights`` are by name of lane, default 1; ``turns`` has those of
    turns. Cost: a sort of the ids.

    >>> lanes = [LaneRanking("text", [7, 8, 9], [3.0, 2.0, 1.0]), LaneRanking("facts", [9], [1.0])]
    >>> [item.id for item in fuse(lanes, k=2)]
    [9, 7]
    >>> [item.id for item in fuse(lanes, k=2, weights={"facts": 0.01})]
    [7, 8]
    """
    if not lanes:
        return []
    if len(lanes) == 1:
        return _alone(lanes[0], k, method, weights, turns, adding)
    ids, places = _joined(lanes)
    added = np.zeros(len(ids)) if adding is None else adding(ids)
    weight_of = _weight_of(ids, weights, turns)
    scores = np.zeros(len(ids))
    ranks = np.full((len(lanes), len(ids)), _NOT_FOUND)
    start = 0
    for lane, lane_ranks in zip(lanes, ranks, strict=True):
        end = start + len(lane.ids)
        positions = places[start:end]
        lane_ranks[positions] = np.arange(1, len(positions) + 1)
        scores[positions] += weight_of(lane.name, positions) * worth(lane, method)
        start = end
    scores += added
    best = _best(ids, np.round(scores, SCORE_DECIMALS), ranks.min(axis=0), k)
    names = [lane.name for lane in lanes]
    return [
        Fused(
            number,
            round(score, SCORE_DECIMALS),
            tuple(name for name, rank in zip(names, of_item, strict=True) if rank != _NOT_FOUND),
        )
        for number, score, of_item in zip(
            ids[best].tolist(), scores[best].tolist(), ranks[:, best].T.tolist(), strict=True
        )
    ]


def _alone(
    lane: LaneRanking,
    k: int,
    method: Method,
    weights: Mapping[str, float],
    turns: TurnWeights | None,
    adding: Callable[[I64], F64] | None,
) -> list[Fused]:
    """Return the best ``k`` items of a single lane, as `fuse`; faster, because ranks differ."""
    ids = np.asarray(lane.ids, np.int64)
    scores = np.asarray(lane.scores, np.float64)
    if adding is not None:
        added = adding(ids)
        if added.any():
            weight = _weight_of(ids, weights, turns)(lane.name, slice(None))
            scores = (weight * worth(lane, method) + added).round(SCORE_DECIMALS)
            best = (-scores).argsort(kind="stable")[:k]
            ids, scores = ids[best], scores[best]
    lanes = (lane.name,)
    return [
        Fused(number, round(score, SCORE_DECIMALS), lanes)
        for number, score in zip(ids[:k].tolist(), scores[:k].tolist(), strict=True)
    ]


def _weight_of(
    ids: I64, weights: Mapping[str, float], turns: TurnWeights | None
) -> Callable[[str, I64 | slice], float | F64]:
    """Return a function from a lane and places among items to its weight, or one for each place."""
    if turns is None:
        return lambda lane, _: weights.get(lane, 1.0)
    of_turns = turns.weights
    are_turns = turns.are_turns(ids)
    return lambda lane, places: np.where(
        are_turns[places], of_turns.get(lane, 1.0), weights.get(lane, 1.0)
    )


def _joined(lanes: Sequence[LaneRanking]) -> tuple[I64, I64]:
    """Return the distinct ids of lanes, and the place of each lane's ids, lane after lane."""
    all_ids = np.concatenate([np.asarray(lane.ids, np.int64) for lane in lanes])
    ids, places = np.unique(all_ids, return_inverse=True)
    return ids, places


def is_fused(lanes: Sequence[LaneRanking], adding: Callable[[I64], F64] | None = None) -> bool:
    """Return whether `fuse` computes new scores, or keeps those of a single lane."""
    if len(lanes) != 1 or adding is None:
        return len(lanes) > 1
    return bool(adding(np.asarray(lanes[0].ids, np.int64)).any())


def shared_weights(
    lanes: Sequence[LaneRanking], weights: Mapping[str, float]
) -> Mapping[str, float]:
    """Return the weights with those of the lanes that found any item as shares of 1.

    So another sum beside the lanes, that of the signals, counts the same with any lanes. The lanes
    "facts" and "graph" keep their weights: they add to the scores of the content.

    >>> lanes = [LaneRanking("text", [7], [3.0]), LaneRanking("vectors", [], [])]
    >>> shared_weights(lanes, {"text": 0.3, "facts": 0.5, "vectors": 0.3})
    {'text': 1.0, 'facts': 0.5, 'vectors': 1.0}
    """
    total = sum(
        weights.get(lane.name, 1.0) for lane in lanes if len(lane.ids) and lane.name not in OF_FACTS
    )
    if not total:
        return weights
    return {
        name: weight if name in OF_FACTS else weight / total for name, weight in weights.items()
    }


def boosted(fused: Sequence[Fused], factors: Mapping[int, float]) -> list[Fused]:
    """Return items in order of their scores times their factors, rounded to 9 digits.

    An item without a factor keeps its score; ties keep their order. See `boost_of` for scores
    below 0.

    >>> boosted([Fused(7, 2.0, ()), Fused(8, 1.5, ())], {8: 1.4})
    [Fused(id=8, score=2.1, lanes=()), Fused(id=7, score=2.0, lanes=())]
    """
    scored = [
        item._replace(
            score=round(
                item.score * boost_of(item.score, factors.get(item.id, 1.0)), SCORE_DECIMALS
            )
        )
        for item in fused
    ]
    return sorted(scored, key=lambda item: -item.score)


def boost_of(score: float, factor: float) -> float:
    """Return the factor that raises a score: its inverse for a score below 0.

    >>> boost_of(2.0, 1.25), boost_of(-2.0, 1.25)
    (1.25, 0.8)
    """
    return factor if score >= 0 else 1 / factor


def reranked(fused: Sequence[Fused], scores: Mapping[int, float]) -> list[Fused]:
    """Return items in a new order: those with a score are sorted among themselves, best first.

    They take each other's places; an item without a score stays in place. Ties keep their order.

    >>> items = [Fused(number, 1.0, ()) for number in (7, 8, 9, 6)]
    >>> [item.id for item in reranked(items, {7: 0.5, 9: 2.0, 6: 1.0})]
    [9, 8, 6, 7]
    """
    places = [place for place, item in enumerate(fused) if item.id in scores]
    best = sorted((fused[place] for place in places), key=lambda item: -scores[item.id])
    order = list(fused)
    for place, item in zip(places, best, strict=True):
        order[place] = item
    return order


def worth(lane: LaneRanking, method: Method) -> F64:
    """Return the share of each rank in a lane, before its weight: (n,) float64."""
    if method == "rrf":
        if lane.ranks is not None:
            return np.asarray(1.0 / (RANK_CONSTANT + np.asarray(lane.ranks, np.float64)))
        return 1.0 / np.arange(RANK_CONSTANT + 1, RANK_CONSTANT + 1 + len(lane.ids))
    scores = np.asarray(lane.scores, np.float64)
    if not len(scores) or scores[0] == scores[-1]:
        return np.ones(len(scores))
    spread = scores[0] - scores[-1] if method == "minmax" else _deviation(scores)
    return np.asarray((scores - scores[-1]) / spread)


def _deviation(scores: F64) -> float:
    """Return the standard deviation of scores; exact sums make it equal on any machine."""
    distances = scores - math.fsum(scores.tolist()) / len(scores)
    distances *= distances
    return math.sqrt(math.fsum(distances.tolist()) / len(scores))


def _best(ids: I64, scores: F64, ranks: I64, k: int) -> I64:
    """Return the indexes of the k best, by (score descending, best rank, age)."""
    candidates = np.arange(len(ids))
    if len(ids) > max(k, _SORTED_MAX):
        # Keep all scores equal to the k-th, so that rank and age alone break ties.
        candidates = np.flatnonzero(scores >= np.partition(scores, len(ids) - k)[len(ids) - k])
    ages = np.where(ids > 0, ids, _PENDING_AGE - ids)
    return candidates[np.lexsort((ages[candidates], ranks[candidates], -scores[candidates]))[:k]]
