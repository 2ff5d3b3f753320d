"""Vectors of turns, with those of the turns beside them.

Owns the mean of the scores s of a turn d and of its neighbours in the conversation:

    score(d) = Σ_o share(o) · s(d + o) / Σ_o share(o), with share(0) = 1

over the neighbours that have a vector. The vector of a short turn lacks its subject, which the
turns beside it have. The shares are those of the words (`fulltext.context_kernel`): 0.5 for the
turn before, 0.3 for the next, 0.7 of that for each further step, up to six. Sums are in a fixed
order and rounded to 9 digits, so a score is equal on every machine. Leaves out the choice of the
turns to score.
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
        rows: Rows, turns or not; (n,).
    """
    mask = np.zeros(len(order.places), np.bool_)
    mask[rows] = True
    places = order.places[rows]
    places = places[places >= 0]
    for offset, _ in SHARES:
        near = order.rows[places + offset]
        mask[near[near >= 0]] = True
    return mask


def means(rows: I64, sources: I64, scores: F64, order: TurnOrder) -> F64:
    """Return the mean score of each row and of the turns beside it, (n,).

    Args:
        rows: The rows to score, some of the sources; (n,).
        sources: Rows with a score; (m,), distinct.
        scores: The scores of the sources; (m,).
        order: The order of the turns.
    """
    # The last item is of a gap (-1), which has no score.
    own = np.zeros(len(order.places) + 1)
    own[sources] = scores
    counts = np.zeros(len(own))
    counts[sources] = 1.0
    sums, totals = own[rows], np.ones(len(rows))
    places = order.places[rows]
    turns = np.flatnonzero(places >= 0)
    for offset, share in SHARES:
        near = order.rows[places[turns] + offset]
        sums[turns] += share * own[near]
        totals[turns] += share * counts[near]
    means_of_rows: F64 = np.round(sums / totals, SCORE_DIGITS)
    return means_of_rows
