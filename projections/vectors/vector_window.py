"""Vectors of turns, with those of the turns beside them.

Owns the mean of the scores s of a turn d and of its neighbours in the conversation:

    score(d) = Σ_o share(o) · s(d + o) / Σ_o share(o)

over the neighbours that have a vector, with share(0) = 1. The vector of a short turn lacks its
subject, which the turns beside it have. The shares are those of the words
(`fulltext.turns.context_kernel`): 0.5 for the turn before, 0.3 for the next, 0.7 of that for each
further step, up to six; each times the square of the part of the conversation
(`fulltext.turns.conversation_parts`). Sums are in a fixed order and rounded to 9 digits, so a score
is equal on every machine. Leaves out the choice of the turns to score.
"""

from typing import Final

import numpy as np

from ..columnar.columns import F64, I64, Mask
from ..columnar.turn_order import TurnOrder
from .nearest import SCORE_DIGITS

PREVIOUS: Final = 0.5
"""The share of the turn before."""

NEXT: Final = 0.3
"""The share of the turn after."""

DECAY: Final = 0.7
"""The share of each further step, of the step before."""

SIDE: Final = 6
"""Turns on each side that count; at most `turn_order.REACH`."""

_DENSE_PART: Final = 4
"""With a row to score in more than one place in 4, sums in all places are faster than look-ups."""

SHARES: Final = tuple(
    (sign * step, first * DECAY ** (step - 1))
    for first, sign in ((PREVIOUS, -1), (NEXT, 1))
    for step in range(1, SIDE + 1)
)
"""The share of each neighbour, by its distance in turns; previous turns are below 0."""


def around(order: TurnOrder, rows: I64) -> Mask:
    """Return the mask of the rows and of the turns beside them.

    Args:
        order: The order of the turns.
        rows: Rows, turns or not; (n,), distinct.
    """
    mask = np.zeros(len(order.places), np.bool_)
    mask[rows] = True
    places = order.places[rows]
    places = places[places >= 0]
    if len(places) == order.turn_count:
        # All turns are among the rows.
        return mask
    for offset, _ in SHARES:
        near = order.rows[places + offset]
        mask[near[near >= 0]] = True
    return mask


def means(rows: I64, sources: I64, scores: F64, order: TurnOrder, parts: F64 | None = None) -> F64:
    """Return the mean score of each row and of the turns beside it, (n,).

    Args:
        rows: The rows to score, some of the sources; (n,).
        sources: Rows with a score; (m,), ascending.
        scores: The scores of the sources; (m,).
        order: The order of the turns.
        parts: The part of the conversation of each place, (places,); default None: all are 1.
    """
    places = order.places[rows]
    # The scores of turns by place, and a 1 for each; gaps have zeros.
    line = np.zeros((2, len(order.rows)))
    places_of_sources = order.places[sources]
    of_turns = np.flatnonzero(places_of_sources >= 0)
    line[0, places_of_sources[of_turns]] = scores[of_turns]
    line[1, places_of_sources[of_turns]] = 1.0
    at = np.maximum(places, SIDE)
    if parts is None:
        sums = _spread(line, at)
    else:
        shared = line * (parts * parts)
        sums = _spread(shared, at)
        sums += (line - shared).take(at, axis=1)
    alone = np.flatnonzero(places < 0)
    sums[0, alone] = scores[np.searchsorted(sources, rows[alone])]
    sums[1, alone] = 1.0
    totals: F64 = sums[0]
    totals /= sums[1]
    return np.round(totals, SCORE_DIGITS)


def _spread(line: F64, places: I64) -> F64:
    """Return the sum of the items in each place and in those beside it, by their shares.

    Args:
        line: Rows of items, with gaps at both ends; (rows, places).
        places: The places; (n,).
    """
    if len(places) * _DENSE_PART < line.shape[1]:
        sums = line.take(places, axis=1)
        for offset, share in SHARES:
            sums += share * line.take(places + offset, axis=1)
        return sums
    # Slices take less time than look-ups.
    end = line.shape[1] - SIDE
    sums = line[:, SIDE:end].copy()
    for offset, share in SHARES:
        sums += share * line[:, SIDE + offset : end + offset]
    return sums.take(places - SIDE, axis=1)
