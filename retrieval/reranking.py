"""Reranking: the best of a list in another order, by a score that only some of them have.

Owns the order alone. Leaves out what the score is: whoever has it says so.
"""

from collections.abc import Mapping, Sequence
from typing import Final

RERANK_HITS: Final = 50
"""Of so many the order is changed: more hardly find more (docs/search.md)."""


def reranked(ids: Sequence[int], scores: Mapping[int, float]) -> list[int]:
    """Return ids in a new order: of the first 50 those that have a score, best first.

    They take each other's places; what has no score keeps its own. Equals stay in their order.

    >>> reranked([7, 8, 9, 6], {7: 0.5, 9: 2.0, 6: 1.0})
    [9, 8, 6, 7]
    """
    first = ids[:RERANK_HITS]
    places = [place for place, one in enumerate(first) if one in scores]
    best = sorted((first[place] for place in places), key=lambda one: -scores[one])
    found = list(ids)
    for place, one in zip(places, best, strict=True):
        found[place] = one
    return found
