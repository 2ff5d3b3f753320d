"""Reduction: 384 numbers of a token become 128 by a fixed rule, without a model or data.

Each block of 128 numbers gets signs, the three blocks are added, and the sum is multiplied by a
Hadamard matrix: y = H · (D₁x₁ + D₂x₂ + D₃x₃), with signs D from BLAKE3. Up to a factor the rows of
this map are orthonormal, so inner products are preserved in the mean (a Johnson-Lindenstrauss map;
N. Ailon and B. Chazelle, The Fast Johnson-Lindenstrauss Transform, SIAM J. Computing 2009). The map
consists of sums in a fixed order, so its bits are the same on every machine.
"""

from typing import Final

import numpy as np
from blake3 import blake3

from .embedder import Matrix

RULE: Final = "hadamard1"
"""Part of the identity of reduced vectors: another rule has another name."""

WIDTH: Final = 128


def reduced(vectors: Matrix) -> Matrix:
    """Return vectors with 128 numbers, (n, 128) float32, of vectors (n, a multiple of 128).

    >>> reduced(np.ones((1, 256), np.float32)).shape
    (1, 128)
    """
    count, dimension = vectors.shape
    drawn = np.frombuffer(blake3(RULE.encode()).digest(dimension // 8), np.uint8)
    signs = np.unpackbits(drawn, bitorder="little") * 2.0 - 1.0
    blocks = (vectors.astype(np.float64) * signs).reshape(count, -1, WIDTH)
    sums = blocks[:, 0].copy()
    for place in range(1, blocks.shape[1]):
        sums += blocks[:, place]
    half = 1
    while half < WIDTH:
        pairs = sums.reshape(count, -1, 2, half)
        sums = np.stack([pairs[:, :, 0] + pairs[:, :, 1], pairs[:, :, 0] - pairs[:, :, 1]], axis=2)
        half *= 2
    turned: Matrix = sums.reshape(count, WIDTH).astype(np.float32)
    return turned
