"""Late interaction: frames by how well the tokens of a question find their like among theirs.

Owns MaxSim (O. Khattab and M. Zaharia, ColBERT, SIGIR 2020): the sum, over the tokens of the
question, of the largest inner product with any token of the frame. Token vectors are int8, so the
sums are whole numbers: those of up to 1,024 products are at most 2**24 and exact in float32,
whatever the order and blocks in which a product of matrices adds them. Scores are equal bit for bit
on every machine.

Of many frames a first stage chooses, by one row of signs a frame, those of the sum of its token
vectors. The question's sum is not reduced to signs (an asymmetric distance: A. Gordo, F. Perronnin,
Y. Gong and S. Lazebnik, Asymmetric Distances for Binary Embeddings, PAMI 2014), which finds more of
the best than comparing signs with signs (docs/search.md).
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from .columns import I64, Mask
from .nearest import SCORE_DIGITS, Nearest
from .vector_table import Space

Tokens: TypeAlias = npt.NDArray[np.int8]
"""Token vectors of one text, (tokens, dimension)."""

F32: TypeAlias = npt.NDArray[np.float32]

TokenFetch: TypeAlias = Callable[[I64], Iterable[Tokens]]
"""Yields the token vectors in rows of a space, one after the other."""

TOKEN_SCALE: Final = 127
"""What 1 becomes in a token vector: of vectors of length 1 a score is a sum of cosines."""

ALL_FRAMES_MAX: Final = 4_096
"""Up to so many frames are all compared."""

CANDIDATES_MIN: Final = 4_096
CANDIDATES_MAX: Final = 16_384
CANDIDATES_SHARE: Final = 20
"""Of more frames one in so many is, within these bounds: more than of vectors, since the signs of a
sum say less of its tokens than those of a vector say of it."""

_BLOCK_TOKENS: Final = 4_096
"""Tokens that are multiplied at once: 2 MiB at 128 dimensions, which a processor keeps near."""

_QUERY_TOKENS: Final = 64
"""Tokens of a question that are multiplied at once, so that what they make is small, too."""

_PRODUCTS: Final = 1 << 17
"""Products in one call of OpenBLAS, half of what it starts threads for: on a busy machine a
question waits 8 ms for each time that they meet."""


def nearest_by_tokens(
    space: Space, allowed: Mask, query: Tokens, k: int, fetch: TokenFetch
) -> Nearest:
    """Return the best ``k`` of the rows that a mask over the first rows of a space allows.

    ``query`` has the space's dimension. Scores are MaxSim over 127², rounded to 9 digits; ties go
    to the older frame. A pure function of the query and what is allowed. Cost: 2 words a row of 128
    numbers, and the token vectors of the candidates.
    """
    rows = token_candidates(space, np.flatnonzero(allowed), query, k)
    if not len(rows):
        return Nearest(rows, np.empty(0))
    sums = maxsim(fetch(rows), query)
    order = np.lexsort((space.frames[rows], -sums))[:k]
    return Nearest(rows[order], token_scores(sums[order]))


def token_scores(sums: I64) -> npt.NDArray[np.float64]:
    """Return scores of what `maxsim` returned."""
    return np.round(sums / TOKEN_SCALE**2, SCORE_DIGITS)


def maxsim(frames: Iterable[Tokens], query: Tokens) -> I64:
    """Return MaxSim of each frame's token vectors, not scaled: (number of frames,) int64, exact.

    Each has a token, and the query's dimension, which is at most 1,024. They are taken a block at a
    time, and no more of them is held.
    """
    asked = query.astype(np.float32)
    parts = [asked[start : start + _QUERY_TOKENS] for start in range(0, len(asked), _QUERY_TOKENS)]
    held = np.empty((_BLOCK_TOKENS, query.shape[1]), np.float32)
    found = [np.empty(0, np.int64)]
    for block in _blocks(frames):
        ends = np.cumsum([0, *map(len, block)])
        count = int(ends[-1])
        if count > len(held):
            held = np.empty((count, query.shape[1]), np.float32)
        # In the same place each time: fresh memory would cost as much as the products.
        tokens = np.concatenate(block, out=held[:count])
        sums = np.zeros(len(block), np.int64)
        for part in parts:
            best = np.maximum.reduceat(_products(tokens, part), ends[:-1], axis=0)
            sums += best.sum(axis=1, dtype=np.int64)
        found.append(sums)
    return np.concatenate(found)


def _products(tokens: F32, query: F32) -> F32:
    """Return the inner product of each token with each of the question's, (tokens, those)."""
    count, dimension = tokens.shape
    size = max(1, _PRODUCTS // query.size)
    whole = count // size * size
    found = np.empty((count, len(query)), np.float32)
    pieces = tokens[:whole].reshape(-1, size, dimension)
    np.matmul(pieces, query.T, out=found[:whole].reshape(-1, size, len(query)))
    np.matmul(tokens[whole:], query.T, out=found[whole:])
    return found


def _blocks(frames: Iterable[Tokens]) -> Iterator[list[Tokens]]:
    """Yield what is multiplied together: as many tokens as fit a block, or one frame."""
    block: list[Tokens] = []
    count = 0
    for tokens in frames:
        if block and count + len(tokens) > _BLOCK_TOKENS:
            yield block
            block, count = [], 0
        block.append(tokens)
        count += len(tokens)
    if block:
        yield block


def token_candidates(space: Space, rows: I64, query: Tokens, k: int) -> I64:
    """Return the rows to be scored, ascending: those whose signs the query's sum agrees with most.

    Among equals the older first. All of them, where they are few.
    """
    if len(rows) <= max(ALL_FRAMES_MAX, k):
        return rows
    wanted = min(max(len(rows) // CANDIDATES_SHARE, CANDIDATES_MIN), CANDIDATES_MAX)
    wanted = min(max(wanted, k), len(rows))
    is_prefix = len(rows) == int(rows[-1]) + 1
    agreeing = _agreement(space, slice(len(rows)) if is_prefix else rows, query)
    limit = np.partition(agreeing, len(rows) - wanted)[len(rows) - wanted]
    nearer = np.flatnonzero(agreeing > limit)
    at_limit = np.flatnonzero(agreeing == limit)[: wanted - len(nearer)]
    found: I64 = rows[np.sort(np.concatenate([nearer, at_limit]))]
    return found


def _agreement(space: Space, rows: I64 | slice, query: Tokens) -> npt.NDArray[np.int32]:
    """Return for rows the sum of the query's sums where their sign bit is set.

    Of sums of at most 2**20 in at most 1,024 dimensions: it is exact. It is looked up a byte of
    signs at a time.
    """
    pooled = np.zeros(64 * len(space.words), np.int32)
    pooled[: query.shape[1]] = query.sum(axis=0, dtype=np.int32)
    bits = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little")
    tables = pooled.reshape(-1, 8) @ bits.T.astype(np.int32)
    found: npt.NDArray[np.int32] | None = None
    for place, column in enumerate(space.words):
        codes = column[rows].astype("<u8", copy=False).view(np.uint8).reshape(-1, 8)
        for byte in range(8):
            share = tables[8 * place + byte][codes[:, byte]]
            found = share if found is None else np.add(found, share, out=found)
    assert found is not None
    return found
