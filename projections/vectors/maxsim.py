"""Late interaction: frames ranked by the similarity of their tokens to those of a question.

Owns the best matches of MaxSim (O. Khattab and M. Zaharia, ColBERT, SIGIR 2020): for each token of
the question, the largest inner product with any token of the frame. Token vectors are int8, so
products are whole numbers. A product over 1,024 dimensions is at most 2**24, so it is exact in
float32 for any order and blocking of the matrix product, and equal bit for bit on every machine.
The score that the matches add up to is below.

If there are many frames, a first stage selects candidates by a row of signs per frame: the signs of
the sum of its token vectors. The question's sum is not reduced to signs (an asymmetric distance:
A. Gordo, F. Perronnin, Y. Gong and S. Lazebnik, Asymmetric Distances for Binary Embeddings, PAMI
2014), which has a better recall than a comparison of signs with signs (docs/search.md).
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from ..columnar.columns import F64, I32, I64, Mask
from ..columnar.turn_order import TurnOrder
from .nearest import SCORE_DIGITS, first_best
from .reader import Space, agreement

Tokens: TypeAlias = npt.NDArray[np.int8]
"""Token vectors of a text, (tokens, dimension)."""

F32: TypeAlias = npt.NDArray[np.float32]

BestMatches: TypeAlias = npt.NDArray[np.float64]
"""The largest product of each question token with a token of each frame, (frames, tokens).

The products are whole numbers, not scaled.
"""

TokenFetch: TypeAlias = Callable[[I64], Iterable[Tokens]]
"""Yields the token vectors of each row of a space, in order."""

TOKEN_SCALE: Final = 127
"""The scale of token vectors: 127 means 1. A score of unit vectors is a sum of cosines."""

ALL_FRAMES_MAX: Final = 4_096
"""Up to this many frames, every frame is scored."""

CANDIDATES_MIN: Final = 4_096
CANDIDATES_MAX: Final = 16_384
CANDIDATES_SHARE: Final = 20
"""Of more frames, 1 in 20 is scored, within these bounds. The share is larger than for vectors: the
signs of a sum describe its tokens less well than the signs of a vector describe the vector."""

_WEIGHT_STEPS: Final = 1 << 10
"""Steps of a weight in the first stage."""

_BLOCK_TOKENS: Final = 4_096
"""Tokens that are multiplied at once: 2 MiB at 128 dimensions, which fits a processor's cache."""

_QUERY_TOKENS: Final = 64
"""Tokens of a question that are multiplied at once, so that the product is small, too."""

_PRODUCTS: Final = 3 << 16
"""Products in a call of OpenBLAS, three quarters of the count at which it starts threads: on a busy
machine each synchronization of the threads takes 8 ms."""

_PIECE_TOKENS: Final = 32
"""Tokens in a call are a multiple of this, a whole number of a processor's registers."""


def best_matches(frames: Iterable[Tokens], query: Tokens) -> BestMatches:
    """Return the best match of each of the query's tokens in each frame, exact.

    Each frame has at least one token, and the query's dimension, at most 1,024. Frames are read a
    block at a time, and only a block is in memory.
    """
    results = [np.empty((len(query), 0), np.float32)]
    results += [np.concatenate(parts) for parts in _matches(frames, query)]
    matches: BestMatches = np.concatenate(results, axis=1).T.astype(float, order="C")
    return matches


def _matches(frames: Iterable[Tokens], query: Tokens) -> Iterator[list[F32]]:
    """Yield for each block of frames the best products, (tokens, frames) for parts of a query."""
    tokens_of_query = query.astype(np.float32)
    parts = [
        tokens_of_query[start : start + _QUERY_TOKENS]
        for start in range(0, len(tokens_of_query), _QUERY_TOKENS)
    ]
    buffer = np.empty((_BLOCK_TOKENS, query.shape[1]), np.float32)
    products = np.empty(min(len(query), _QUERY_TOKENS) * _BLOCK_TOKENS, np.float32)
    for block in _blocks(frames):
        ends = np.array([0, *accumulate(map(len, block))])
        count = int(ends[-1])
        if count > len(buffer):
            buffer = np.empty((count, query.shape[1]), np.float32)
            products = np.empty(min(len(query), _QUERY_TOKENS) * count, np.float32)
        # Reuse the buffers: fresh memory would cost as much as the products.
        tokens = np.concatenate(block, out=buffer[:count])
        yield [
            np.maximum.reduceat(_products(tokens, part, products), ends[:-1], axis=1)
            for part in parts
        ]


def _products(tokens: F32, query: F32, out: F32) -> F32:
    """Return the inner products of question tokens and tokens, (question tokens, tokens), in out.

    The tokens of a frame are adjacent then, so that their largest product is found fast.
    """
    count, dimension = tokens.shape
    size = max(_PRODUCTS // query.size // _PIECE_TOKENS, 1) * _PIECE_TOKENS
    whole = count // size * size
    products = out[: len(query) * count].reshape(len(query), count)
    pieces = tokens[:whole].reshape(-1, size, dimension).transpose(0, 2, 1)
    of_pieces = products[:, :whole].reshape(len(query), -1, size).transpose(1, 0, 2)
    np.matmul(query, pieces, out=of_pieces)
    np.matmul(query, tokens[whole:].T, out=products[:, whole:])
    return products


def _blocks(frames: Iterable[Tokens]) -> Iterator[list[Tokens]]:
    """Yield the frames to multiply together: as many tokens as fit a block, or a single frame."""
    block: list[Tokens] = []
    count = 0
    for tokens in frames:
        if block and count + len(tokens) > _BLOCK_TOKENS:
            yield block
            block = []
            count = 0
        block.append(tokens)
        count += len(tokens)
    if block:
        yield block


def compares_all(count: int, k: int) -> bool:
    """Return whether all of so many frames are scored."""
    return count <= max(ALL_FRAMES_MAX, k)


def pooled_query(query: Tokens, weights: F64 | None = None) -> I32:
    """Return the sum of a query's token vectors, (dimension,), each number below 2**21.

    With weights each vector counts by its weight: (tokens,), the largest above 0.
    """
    if weights is None:
        total: I32 = query.sum(axis=0, dtype=np.int32)
        return total
    # Whole weights: the bits of a sum of floats depend on its order.
    whole = np.rint(weights * (_WEIGHT_STEPS / weights.max())).astype(np.int64)
    weighted: I32 = (whole @ query.astype(np.int64) // _WEIGHT_STEPS).astype(np.int32)
    return weighted


def token_candidates(space: Space, rows: I64, pooled: I32, k: int) -> I64:
    """Return the rows to score, ascending: those whose signs agree most with the query's sum.

    Ties go to the older row. If the rows are few, returns all of them.
    """
    if compares_all(len(rows), k):
        return rows
    count = min(max(len(rows) // CANDIDATES_SHARE, CANDIDATES_MIN), CANDIDATES_MAX)
    count = min(max(count, k), len(rows))
    is_prefix = len(rows) == int(rows[-1]) + 1
    agreeing = agreement(space, slice(len(rows)) if is_prefix else rows, pooled)
    limit = np.partition(agreeing, len(rows) - count)[len(rows) - count]
    return rows[first_best(-agreeing, -int(limit), count)]


# --- Late interaction with weights, and with the evidence of neighbouring turns -------------------
#
#     E(i, d)   = max(0, best cosine of i and a token of d - 0.35)
#     E'(i, d)  = max over turns o places away of share(o) · E(i, d + o), with share(0) = 1
#     score(d)  = Σ_i weight(i) · E'(i, d) / Σ_i weight(i)
#
# An answer is often beside the turn that has the words of the question: a neighbour counts for a
# token that the turn itself lacks, never twice. Any two words have a cosine, so a cosine below the
# floor is no evidence. The shares are round numbers: 0.7 for the previous turn, 0.5 for the next,
# and 0.7 of that for each further step, up to four (docs/search.md has the measurements). Best
# cosines are exact (`maxsim`); the rest is a fixed order of float64 operations, rounded to 9
# digits, so a score is equal on every machine.


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
