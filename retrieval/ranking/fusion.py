"""Fusion: one score from the lanes and the signals of a question.

Owns the sum, and the order of the sums:

    score(d) = text · words(d) + trust · (vectors · meaning(d) + late · tokens(d))
             + step · (facts · evidence(d) + graph / hops(d) + Σ weight · signal(d))
    step     = 0.05 · (1 + trust · (vectors + late)), of the lanes that found frames

Each name before a product is the weight of a lane. A share is of the question, not of a list:

- ``words(d)`` is BM25(d) over twice the sum of the idf of the question's words, those of no frame
  included: about a half for a frame of usual length that has each word once, and 1 for one that is
  full of them.
- ``meaning(d)`` is the cosine of the question and the frame, of a turn with the turns beside it.
- ``tokens(d)`` is the mean of the best cosines of the question's tokens, by weight.
- ``evidence(d)`` is 1 for a frame in which a fact for the question was read.

So a lane with one hit adds as much to it as a lane with a hundred, and a signal of weight 1 is a
twentieth of the most that the lanes can add. ``trust`` is how far the embedder knows the words of
the question (`cerata.retrieval.embedders.trust`). Every candidate of any lane has its exact share
in each lane, so a score depends on no depth and no page.

Owns the reorderings of fused items, too: by boosts of their scores, and by another score that only
some of the best items have. Leaves out the lanes and their weights (`profile`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import compress
from typing import Final, NamedTuple

import numpy as np

from cerata.projections.columnar.columns import F64, I64, Mask
from cerata.projections.fulltext.bm25 import SCORE_DECIMALS

STEP: Final = 0.05
"""The worth of a signal of weight 1, of the most that the lanes of a question can add."""

RERANK_HITS: Final = 50
"""Hits that token vectors rerank: more hardly improve recall (docs/search.md)."""

_SORTED_MAX: Final = 512
"""So few items are sorted faster than they are divided."""

_PENDING_AGE: Final = 1 << 62
"""Above every id of the log: ids of an open transaction sort from here on."""

OF_VECTORS: Final = frozenset({"vectors", "late"})
"""The lanes that compare vectors, which count as far as their embedder knows the question."""

OF_FACTS: Final = frozenset({"facts", "graph"})
"""The lanes that find few frames, those read as evidence, and add steps."""


class LaneRanking(NamedTuple):
    """A ranked list: distinct ids, best first, and their scores (n,), never ascending."""

    name: str
    ids: Sequence[int] | I64
    scores: Sequence[float] | F64


class Fused(NamedTuple):
    """An item: its score, and the lanes that add to it, in their order."""

    id: int
    score: float
    lanes: tuple[str, ...]


def step_of(weights: Mapping[str, float], found: Sequence[str]) -> float:
    """Return the worth of a signal of weight 1.

    Args:
        weights: The weight of each lane, with the trust of those of vectors.
        found: The lanes that found an item.

    >>> step_of({"text": 1.0, "vectors": 0.5}, ["text", "vectors"])
    0.075
    """
    of_vectors = 0.0
    for name in sorted(OF_VECTORS.intersection(found)):
        of_vectors += weights.get(name, 0.0)
    return round(STEP * (1.0 + of_vectors), SCORE_DECIMALS)


class Shares(NamedTuple):
    """How far items fit a question by a lane, and which items the lane finds; (items,) each."""

    shares: F64
    found: Mask


def fuse(
    ids: I64, lanes: Mapping[str, Shares], weights: Mapping[str, float], added: F64, k: int
) -> list[Fused]:
    """Return the best ``k`` items that a lane finds, by the sum of their weighted shares.

    Sums are rounded to 9 digits. Ties go to the older item: ids below 0, of an open transaction,
    are newer than all ids of the log, −1 the oldest. Cost: a sort of the ids.

    Args:
        ids: The items; (items,), distinct.
        lanes: The shares of each lane, in the order of the sum.
        weights: The part of a score that each lane adds for a share of 1.
        added: The parts that the signals add; (items,).
        k: The number of items.

    >>> text = Shares(np.array([0.5, 0.25]), np.array([True, True]))
    >>> fuse(np.array([7, 8]), {"text": text}, {"text": 1.0}, np.array([0.0, 0.5]), k=1)
    [Fused(id=8, score=0.75, lanes=('text',))]
    """
    if not lanes:
        return []
    scores = np.zeros(len(ids))
    for name, lane in lanes.items():
        scores += weights[name] * lane.shares
    scores += added
    names: list[str] = []
    masks: list[Mask] = []
    for name, lane in lanes.items():
        names.append(name)
        masks.append(lane.found)
    found = np.array(masks)
    are_found = np.flatnonzero(found.any(axis=0))
    best = are_found[_best(ids[are_found], np.round(scores[are_found], SCORE_DECIMALS), k)]
    fused: list[Fused] = []
    for number, score, of_item in zip(
        ids[best].tolist(), scores[best].tolist(), found[:, best].T.tolist(), strict=True
    ):
        # `tuple.__new__` calls no function of Python.
        fused.append(Fused(number, round(score, SCORE_DECIMALS), tuple(compress(names, of_item))))
    return fused


def candidates_of(rankings: Sequence[LaneRanking]) -> I64:
    """Return the distinct ids of rankings, ascending."""
    lists: list[I64] = [np.empty(0, np.int64)]
    for ranking in rankings:
        lists.append(np.asarray(ranking.ids, np.int64))
    ids = np.sort(np.concatenate(lists))
    # `numpy.unique` loads a module of 10 ms.
    return ids[np.flatnonzero(np.diff(ids, prepend=ids[:1] - 1))]


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


def _best(ids: I64, scores: F64, k: int) -> I64:
    """Return the indexes of the k best, by (score descending, age)."""
    candidates = np.arange(len(ids))
    if len(ids) > max(k, _SORTED_MAX):
        # Keep all scores equal to the k-th, so that age alone breaks ties.
        candidates = np.flatnonzero(scores >= np.partition(scores, len(ids) - k)[len(ids) - k])
    ages = np.where(ids > 0, ids, _PENDING_AGE - ids)
    return candidates[np.lexsort((ages[candidates], -scores[candidates]))[:k]]
