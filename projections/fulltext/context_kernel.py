"""The context kernel: words of neighbouring turns count for a turn, less with each step.

Owns the sums of a turn d and its neighbours, before BM25 saturates them:

    tf'(t, d) = Σ_o share(o) · tf(t, d + o),    length'(d) = Σ_o share(o) · length(d + o)

A turn often answers the one before it, and has few of the question's words itself. Sums of scores
find less: only inside the saturation does a word that both turns have count less than twice. The
shares are round numbers: half for the previous turn, 0.3 for the next, and 0.7 of that for each
further step (docs/search.md has the measurements).
"""

from typing import Final

import numpy as np

from ..columnar.columns import F64, I64
from ..columnar.turn_order import REACH, TurnOrder

PREVIOUS: Final = 0.5
"""The share of the turn before."""

NEXT: Final = 0.3
"""The share of the turn after."""

DECAY: Final = 0.7
"""The share of each further step, of the step before."""

_STEPS: Final = np.arange(REACH)
# A turn counts for those after it as their previous turn, and for those before it as their next.
_OFFSETS: Final = np.concatenate([[0], _STEPS + 1, -1 - _STEPS])
_SHARES: Final = np.concatenate([[1.0], PREVIOUS * DECAY**_STEPS, NEXT * DECAY**_STEPS])


_DENSE_PART: Final = 12
"""With a count in more than one place in 12, sums of whole columns are faster than look-ups."""


class Shares:
    """The sums of shares of one word after another. Not thread-safe.

    Its buffer has an item for each place, and is all zeros between two calls.
    """

    def __init__(self, order: TurnOrder) -> None:
        self._sums = np.zeros(len(order.rows))

    def spread(self, places: I64, counts: F64) -> tuple[I64, F64]:
        """Return the places that have a share of the counts, and the sum in each.

        A place may occur several times, each time with its whole sum; gaps occur, too. Cost: about
        0.2 us a count, at most 30 ns a place.

        Args:
            places: The places of turns with a count; (n,), distinct.
            counts: Their counts; (n,).
        """
        sums = self._sums
        if len(places) * _DENSE_PART > len(sums):
            sums[places] = counts
            spread = summed(sums)
            sums[places] = 0.0
            return np.arange(len(sums)), spread
        targets: list[I64] = []
        for offset, share in zip(_OFFSETS.tolist(), _SHARES.tolist(), strict=True):
            at = places + offset
            sums[at] += share * counts
            targets.append(at)
        reached = np.concatenate(targets)
        values = sums[reached]
        sums[reached] = 0.0
        return reached, values


def summed(lengths: F64) -> F64:
    """Return the sums of shares in every place, of the lengths in all places; (places,) each.

    Gaps have length 0; their own sums have no meaning.
    """
    sums = lengths.copy()
    for offset, share in zip(_OFFSETS[1:].tolist(), _SHARES[1:].tolist(), strict=True):
        if offset > 0:
            sums[offset:] += share * lengths[:-offset]
        else:
            sums[:offset] += share * lengths[-offset:]
    return sums
