"""Late interaction: frames ranked by the similarity of their tokens to those of a question.

Owns the best matches of MaxSim (O. Khattab and M. Zaharia, ColBERT, SIGIR 2020): for each token of
the question, the largest inner product with any token of the frame. Token vectors are int8, so
products are whole numbers. A product over 1,024 dimensions is at most 2**24, so it is exact in
float32 for any order and blocking of the matrix product, and equal bit for bit on every machine.
Leaves out the score that the matches add up to (`token_window`).

If there are many frames, a first stage selects candidates by a row of signs per frame: the signs of
the sum of its token vectors. The question's sum is not reduced to signs (an asymmetric distance:
A. Gordo, F. Perronnin, Y. Gong and S. Lazebnik, Asymmetric Distances for Binary Embeddings, PAMI
2014), which has a better recall than a comparison of signs with signs (docs/search.md).
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from ..columnar.columns import F64, I32, I64
from .nearest import first_best
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
