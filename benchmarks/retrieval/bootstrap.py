"""The paired bootstrap: how sure the difference of two runs is.

Questions are drawn with replacement, the same for both runs, and the mean difference of each draw
is kept; the interval is its middle 95 % (Efron and Tibshirani, 1993). The seed is fixed, so equal
runs have equal intervals.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np

from cerata import InvalidInput

RESAMPLES: Final = 10_000
SEED: Final = 20_241_101
INTERVAL: Final = (2.5, 97.5)
"""Percentiles of the mean differences."""

_CHUNK: Final = 500
"""Resamples at a time, to bound memory."""

Scores = Mapping[str, Mapping[str, float]]
"""The metrics of each question."""


class Difference(NamedTuple):
    """A run less another, in the metric's unit: the mean, and its interval of 95 %."""

    first: float
    second: float
    mean: float
    low: float
    high: float
    better: int
    worse: int


def differences(
    first: Scores, second: Scores, *, resamples: int = RESAMPLES
) -> dict[str, Difference]:
    """Return the difference of each metric that both runs have: the first less the second.

    Raises:
        InvalidInput: the runs have other questions.
    """
    if first.keys() != second.keys():
        lone = sorted(first.keys() ^ second.keys())
        raise InvalidInput(
            f"The runs have different questions: {len(lone):,} are in one alone, such as "
            f"{lone[0]!r:.60}",
            remedy="Compare runs of the same set.",
        )
    names = dict.fromkeys(name for scores in first.values() for name in scores)
    return {
        name: _difference(pairs, resamples)
        for name in names
        if len(pairs := _pairs(first, second, name))
    }


def _pairs(first: Scores, second: Scores, name: str) -> list[tuple[float, float]]:
    return [
        (scores[name], second[question][name])
        for question, scores in first.items()
        if name in scores and name in second[question]
    ]


def _difference(pairs: list[tuple[float, float]], resamples: int) -> Difference:
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
