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

from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from .columns import I64, Mask
from .nearest import SCORE_DIGITS, Nearest, candidate_count
from .vector_table import Space

Tokens: TypeAlias = npt.NDArray[np.int8]
"""Token vectors of one text, (tokens, dimension)."""

TokenFetch: TypeAlias = Callable[[I64], Sequence[Tokens]]
"""Returns the token vectors in rows of a space."""

TOKEN_SCALE: Final = 127
"""What 1 becomes in a token vector: of vectors of length 1 a score is a sum of cosines."""

_BLOCK_TOKENS: Final = 32_768
"""Tokens that are multiplied at once: 16 MiB at 128 dimensions."""


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


def maxsim(frames: Sequence[Tokens], query: Tokens) -> I64:
    """Return MaxSim of each frame's token vectors, not scaled: (len(frames),) int64, exact.

    Each has a token, and the query's dimension, which is at most 1,024.
    """
    found = np.empty(len(frames), np.int64)
    asked = query.astype(np.float32)
    for start, end in _blocks([len(tokens) for tokens in frames]):
        some = frames[start:end]
        starts = np.cumsum([0, *(len(tokens) for tokens in some[:-1])])
        products = asked @ np.concatenate(some).astype(np.float32).T
        best = np.maximum.reduceat(products, starts, axis=1)
        found[start:end] = best.sum(axis=0, dtype=np.float64)
    return found


def _blocks(counts: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield which frames are multiplied together: as many tokens as fit a block, or one frame."""
    start = held = 0
    for place, count in enumerate(counts):
        if held and held + count > _BLOCK_TOKENS:
            yield start, place
            start, held = place, 0
        held += count
    if held:
        yield start, len(counts)


def token_candidates(space: Space, rows: I64, query: Tokens, k: int) -> I64:
    """Return the rows to be scored, ascending: those whose signs the query's sum agrees with most.

    Among equals the older first. All of them, where they are few.
    """
    wanted = candidate_count(len(rows), k)
    if wanted == len(rows):
        return rows
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
