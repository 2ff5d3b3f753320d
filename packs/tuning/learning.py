"""Learning: weights of a linear score from questions whose relevant candidates are known.

Owns the fit. The score of a candidate is the sum of its features times their weights. The loss of a
question is the listwise softmax of Z. Cao et al. (*Learning to Rank: From Pairwise Approach to
Listwise Approach*, ICML 2007): the cross entropy between the grades of its candidates and the
softmax of their scores. The loss is convex, so its least value depends on no start and no random
number; Newton steps with halving find it.

The weights are pulled to earlier weights (`PULL`): few questions change little, and a feature that
no candidate has keeps its weight. Only the proportions of weights matter to an order, so the pull
is to the multiple of the earlier weights that fits best. Leaves out the features (`candidates`).
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple, TypeVar

import numpy as np

from cerata.projections.columnar.columns import F64, I64, Mask

PULL: Final = 16.0
"""Half the squared distance from the earlier weights, times this, adds to the loss.

With 1, weights from 10 questions order further questions worse than the earlier weights; with 16
they are level, and 30 questions gain as much as with any smaller value."""

_SCALE_PULL: Final = 1e-3
"""Keeps the multiple finite if the earlier weights order every question perfectly."""

_STEPS: Final = 100
_HALVINGS: Final = 30
_TOLERANCE: Final = 1e-9
"""A smaller improvement of a loss, relative to the loss, ends the fit."""


class JudgedList(NamedTuple):
    """The candidates of a question.

    - ``features`` are (candidates, features).
    - ``grades`` are (candidates,): above 0 for a relevant candidate, which at least one is.
    """

    features: F64
    grades: F64


def fitted(lists: Sequence[JudgedList], earlier: F64, nonnegative: Mask) -> F64:
    """Return the learned weights, (features,), in the unit of the softmax.

    Args:
        lists: The judged questions, at least one.
        earlier: The weights that the result is pulled to, (features,).
        nonnegative: The features whose weight is at least 0, (features,).
    """
    problem = _Problem(lists)
    scale = _scale(lists, earlier)
    target = earlier * scale
    free = np.ones(len(earlier), np.bool_)
    while True:
        weights = _newton(problem, target, free)
        below = free & nonnegative & (weights < 0)
        if not below.any():
            return weights
        # The most negative weight stays 0, and the rest is fitted again.
        free[int(np.argmin(np.where(below, weights, 0.0)))] = False


def _scale(lists: Sequence[JudgedList], earlier: F64) -> float:
    """Return the multiple of the earlier weights that fits best: above 0, else 1."""
    along = _Problem([JudgedList(each.features @ earlier[:, None], each.grades) for each in lists])
    scale = float(_newton(along, np.zeros(1), np.ones(1, np.bool_), pull=_SCALE_PULL)[0])
    return scale if scale > 0 else 1.0


class _Problem:
    """All candidates end to end, and where each question's begin."""

    def __init__(self, lists: Sequence[JudgedList]) -> None:
        sizes = np.array([len(judged.grades) for judged in lists])
        self.features: F64 = np.concatenate([judged.features for judged in lists])
        self.shares: F64 = np.concatenate([judged.grades / judged.grades.sum() for judged in lists])
        self.starts: I64 = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        self.questions: I64 = np.repeat(np.arange(len(sizes)), sizes)

    def chances(self, weights: F64) -> tuple[F64, float]:
        """Return the softmax of the scores within each question, and the loss of all."""
        scores = self.features @ weights
        scores -= np.maximum.reduceat(scores, self.starts)[self.questions]
        powers = np.exp(scores)
        sums = np.add.reduceat(powers, self.starts)
        loss = float(np.log(sums).sum() - (self.shares * scores).sum())
        return powers / sums[self.questions], loss

    def loss(self, weights: F64, target: F64, pull: float) -> float:
        """Return the loss of all questions, with the pull to the target."""
        return self.chances(weights)[1] + pull / 2 * float(((weights - target) ** 2).sum())

    def curvature(self, chances: F64) -> F64:
        """Return the second derivative of the loss, (features, features)."""
        weighted = self.features * chances[:, None]
        means = np.add.reduceat(weighted, self.starts, axis=0)
        return np.asarray(self.features.T @ weighted - means.T @ means)


def _newton(problem: _Problem, target: F64, free: Mask, *, pull: float = PULL) -> F64:
    """Return the weights of least loss; those that are not free stay 0."""
    target = np.where(free, target, 0.0)
    weights = target
    loss = problem.loss(weights, target, pull)
    for _ in range(_STEPS):
        chances, _ = problem.chances(weights)
        slope = problem.features.T @ (chances - problem.shares) + pull * (weights - target)
        curvature = problem.curvature(chances) + pull * np.eye(len(weights))
        step = np.zeros(len(weights))
        step[free] = np.linalg.solve(curvature[np.ix_(free, free)], slope[free])
        for halving in range(_HALVINGS):
            moved = weights - step / 2**halving
            moved_loss = problem.loss(moved, target, pull)
            if moved_loss <= loss:
                break
        else:
            return weights
        gain, loss, weights = loss - moved_loss, moved_loss, moved
        if gain <= _TOLERANCE * max(1.0, loss):
            break
    return weights


# --- The paired bootstrap: how sure the difference of two orders of the same questions is ---------
#
# Questions are drawn with replacement, the same for both, and the mean difference of each draw is
# kept; the interval is its middle 95 % (B. Efron and R. Tibshirani, *An Introduction to the
# Bootstrap*, 1993). The seed is fixed, so equal scores have equal intervals.


RESAMPLES: Final = 10_000
SEED: Final = 20_241_101
INTERVAL: Final = (2.5, 97.5)
"""Percentiles of the mean differences."""

_CHUNK: Final = 500
"""Resamples at a time, to bound memory."""


class Difference(NamedTuple):
    """The first less the second, in the metric's unit: the mean, and its interval of 95 %."""

    first: float
    second: float
    mean: float
    low: float
    high: float
    better: int
    worse: int


def difference(pairs: Sequence[tuple[float, float]], *, resamples: int = RESAMPLES) -> Difference:
    """Return the difference of the two scores of each question, at least one."""
    columns = np.array(pairs, np.float64)
    change = columns[:, 0] - columns[:, 1]
    source = np.random.default_rng(SEED)
    means: list[float] = []
    for start in range(0, resamples, _CHUNK):
        shape = min(_CHUNK, resamples - start), len(change)
        means += change[source.integers(0, len(change), shape)].mean(axis=1).tolist()
    low, high = np.percentile(means, INTERVAL)
    return Difference(
        float(columns[:, 0].mean()),
        float(columns[:, 1].mean()),
        float(change.mean()),
        float(low),
        float(high),
        int((change > 0).sum()),
        int((change < 0).sum()),
    )


# --- Metrics of a ranked list against graded items: recall, and the discounted gain ---------------
#
# The share of relevant items among the first k, and the discounted gain over that of the best order
# (K. Järvelin and J. Kekäläinen, *Cumulated Gain-Based Evaluation of IR Techniques*, 2002). The
# gain of an item is its grade.


Item = TypeVar("Item")


def recall(ranked: Sequence[Item], relevant: Mapping[Item, float], depth: int) -> float:
    """Return the share of the relevant items among the first ``depth``, each ranked once.

    >>> recall(["a", "b", "c"], {"b": 1, "d": 1}, 2)
    0.5
    """
    return sum(item in relevant for item in ranked[:depth]) / len(relevant)


def gain(ranked: Sequence[Item], relevant: Mapping[Item, float], depth: int) -> float:
    """Return nDCG: the discounted gain of the first ``depth``, over the largest possible.

    >>> gain(["a", "b"], {"a": 2}, 2)
    1.0
    """
    best = sorted(relevant.values(), reverse=True)
    return _discounted(relevant.get(item, 0.0) for item in ranked[:depth]) / _discounted(
        best[:depth]
    )


def _discounted(gains: Iterable[float]) -> float:
    return sum(value / math.log2(place + 2) for place, value in enumerate(gains))
