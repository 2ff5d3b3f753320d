"""Late interaction with weights, and with the evidence of neighbouring turns.

Owns the evidence of a frame d for a token i of the question, and its sum:

    E(i, d)   = max(0, best cosine of i and a token of d - 0.35)
    E'(i, d)  = max over turns o places away of share(o) · E(i, d + o), with share(0) = 1
    score(d)  = Σ_i weight(i) · E'(i, d) / Σ_i weight(i)

An answer is often beside the turn that has the words of the question: a neighbour counts for a
token that the turn itself lacks, never twice. Any two words have a cosine, so a cosine below the
floor is no evidence. The shares are round numbers: 0.7 for the previous turn, 0.5 for the next, and
0.7 of that for each further step, up to four (docs/search.md has the measurements). Best cosines
are exact (`maxsim`); the rest is a fixed order of float64 operations, rounded to 9 digits, so a
score is equal on every machine. Leaves out the choice of the frames to compare.
"""

from typing import Final, NamedTuple

import numpy as np

from ..columnar.columns import F64, I64, Mask
from ..columnar.turn_order import TurnOrder
from .maxsim import TOKEN_SCALE, BestMatches, TokenFetch, Tokens, best_matches
from .nearest import SCORE_DIGITS

FLOOR: Final = 0.35
"""A cosine from which a match counts. Below it are the cosines of unrelated words."""

PREVIOUS: Final = 0.7
"""The share of the turn before."""

NEXT: Final = 0.5
"""The share of the turn after."""

DECAY: Final = 0.7
"""The share of each further step, of the step before."""

SIDE: Final = 4
"""Turns on each side that count; at most `turn_order.REACH`."""

_BLOCK_NUMBERS: Final = 1 << 18
"""Numbers that are compared at once: 2 MiB, which fits a processor's cache."""

_QUESTION_TOKENS: Final = 256
"""Tokens of a question whose matches are in memory at once: 32 MiB of 16,384 frames."""


def _shares() -> tuple[tuple[int, float], ...]:
    shares: list[tuple[int, float]] = []
    for first, sign in ((PREVIOUS, -1), (NEXT, 1)):
        share = first
        for step in range(1, SIDE + 1):
            shares.append((sign * step, share))
            share *= DECAY
    return tuple(shares)


SHARES: Final = _shares()
"""The share of each neighbour, by its distance in turns; previous turns are below 0."""


def beside(order: TurnOrder, rows: I64) -> Mask:
    """Return the mask of the rows and of the turns beside them.

    Args:
        order: The order of the turns.
        rows: Rows, turns or not; (n,).
    """
    places = order.places[rows]
    is_near = np.zeros(len(order.rows), np.bool_)
    is_near[places[places >= 0]] = True
    reached = is_near.copy()
    for offset, _ in SHARES:
        if offset > 0:
            reached[offset:] |= is_near[:-offset]
        else:
            reached[:offset] |= is_near[-offset:]
    near = order.rows[reached]
    mask = np.zeros(len(order.places), np.bool_)
    mask[near[near >= 0]] = True
    mask[rows] = True
    return mask


class TokenQuestion(NamedTuple):
    """The tokens of a question with a weight above 0: (tokens, dimension), and (tokens,)."""

    tokens: Tokens
    weights: F64


def token_question(tokens: Tokens, weights: F64 | None) -> TokenQuestion:
    """Return a question without its tokens of weight 0; all weights are 1 by default."""
    if weights is None:
        weights = np.ones(len(tokens))
    return TokenQuestion(tokens[weights > 0], weights[weights > 0])


def window_scores(
    question: TokenQuestion,
    rows: I64,
    sources: I64,
    fetch: TokenFetch,
    order: TurnOrder | None,
) -> F64:
    """Return the scores of rows by the evidence in the sources, (n,); without tokens 0.

    Cost: the products of the sources' tokens, and 0.1 us for each token of the question and row.

    Args:
        question: The tokens of the question.
        rows: The rows to score; (n,).
        sources: Rows with token vectors, ``rows`` among them; (m,), distinct.
        fetch: Yields the token vectors of sources.
        order: The order of the turns; None without neighbours.
    """
    sums = np.zeros(len(rows))
    for start in range(0, len(question.tokens), _QUESTION_TOKENS):
        part = slice(start, start + _QUESTION_TOKENS)
        matches = best_matches(fetch(sources), question.tokens[part])
        evidence = evidence_of(matches)
        step = max(_BLOCK_NUMBERS // evidence.shape[1], 1)
        for first in range(0, len(rows), step):
            block = slice(first, first + step)
            best = with_neighbours(evidence, sources, rows[block], order)
            # One token after the other: a sum in another order has other last bits.
            for token, weight in enumerate(question.weights[part].tolist()):
                sums[block] += weight * best[:, token]
    return np.round(sums / total_weight(question), SCORE_DIGITS)


def total_weight(question: TokenQuestion) -> float:
    """Return the sum of the weights; 1 without tokens."""
    return float(sum(question.weights.tolist())) or 1.0


def evidence_of(matches: BestMatches) -> F64:
    """Return the evidence in best matches, (n, tokens): cosines above the floor."""
    cosines: F64 = matches / TOKEN_SCALE**2
    cosines -= FLOOR
    return np.maximum(cosines, 0.0, out=cosines)


def with_neighbours(evidence: F64, sources: I64, rows: I64, order: TurnOrder | None) -> F64:
    """Return the best evidence for each token in rows and the turns beside them, (n, tokens).

    Args:
        evidence: The evidence in the sources; (m, tokens).
        sources: Rows; (m,).
        rows: Some of the sources; (n,).
        order: The order of the turns; None without neighbours.
    """
    row_count = int(sources.max()) + 1 if order is None else len(order.places)
    # The last item is of a gap (-1), which has no evidence, as a row without token vectors.
    index = np.full(row_count + 1, len(evidence))
    index[sources] = np.arange(len(sources))
    best: F64 = evidence[index[rows]]
    if order is None:
        return best
    places = order.places[rows]
    turns = np.flatnonzero(places >= 0)
    of_turns = best[turns]
    padded = np.concatenate([evidence, np.zeros((1, evidence.shape[1]))])
    for offset, share in SHARES:
        near = padded[index[order.rows[places[turns] + offset]]]
        near *= share
        np.maximum(of_turns, near, out=of_turns)
    best[turns] = of_turns
    return best
