"""Metrics of a ranked list against graded items: recall, and the discounted gain.

The share of relevant items among the first k, and the discounted gain over that of the best order
(K. Järvelin and J. Kekäläinen, *Cumulated Gain-Based Evaluation of IR Techniques*, 2002). The gain
of an item is its grade.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

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
