"""The paired bootstrap: how sure the difference of two orders of the same questions is.

Questions are drawn with replacement, the same for both, and the mean difference of each draw is
kept; the interval is its middle 95 % (B. Efron and R. Tibshirani, *An Introduction to the
Bootstrap*, 1993). The seed is fixed, so equal scores have equal intervals.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

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
