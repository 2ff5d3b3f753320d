"""Reranking: another order of the best hits, by a score that only some of them have.

Owns the order. Leaves out the score.
"""

from collections.abc import Mapping, Sequence
from typing import Final

RERANK_HITS: Final = 50
"""Hits that are reordered: more hardly improve recall (docs/search.md)."""


def reranked(ids: Sequence[int], scores: Mapping[int, float]) -> list[int]:
    """Return ids in a new order: among the first 50, those with a score are sorted, best first.

    They take each other's places; an id without a score stays in place. Ties keep their order.

    >>> reranked([7, 8, 9, 6], {7: 0.5, 9: 2.0, 6: 1.0})
    [9, 8, 6, 7]
    """
    first = ids[:RERANK_HITS]
    places = [place for place, number in enumerate(first) if number in scores]
    best = sorted((first[place] for place in places), key=lambda number: -scores[number])
    order = list(ids)
    for place, number in zip(places, best, strict=True):
        order[place] = number
    return order
