"""Quantisation to int8: the largest number of a vector becomes 127, or a token vector's length.

Symmetric and per vector: q = round(x · 127 / max|x|), halves to even, so that -128 never occurs
and a vector keeps its direction to about 1 part in 254 of its largest number. The length is not
stored, so such a space is compared by cosines only. A vector of zeros stays zero.

Token vectors are compared by inner products alone, so all have one scale: q = round(x · 127 / |x|).
"""

import numpy as np
import numpy.typing as npt

from cerata.projections.vectors.maxsim import TOKEN_SCALE, Tokens
from cerata.projections.vectors.nearest import lengths_of

from .embedder import Matrix

_LARGEST = 127


def quantised(vectors: Matrix) -> npt.NDArray[np.int8]:
    """Return vectors as int8, (n, dimension); the same on every machine.

    >>> quantised(np.array([[0.5, -1.0, 0.0]], np.float32)).tolist()
    [[64, -127, 0]]
    """
    # In float64 each step is one rounding: the result does not depend on the order of sums.
    wide = vectors.astype(np.float64)
    largest = np.abs(wide).max(axis=1, keepdims=True, initial=0.0)
    largest[largest == 0.0] = 1.0
    whole: npt.NDArray[np.int8] = np.rint(wide * _LARGEST / largest).astype(np.int8)
    return whole


def quantised_tokens(vectors: npt.NDArray[np.float32]) -> Tokens:
    """Return token vectors as int8 of length 127, (tokens, dimension); the same on every machine.

    >>> quantised_tokens(np.array([[3.0, -4.0], [0.0, 0.0]], np.float32)).tolist()
    [[76, -102], [0, 0]]
    """
    lengths = lengths_of(vectors)[:, None]
    lengths[lengths == 0.0] = 1.0
    whole: Tokens = np.rint(vectors.astype(np.float64) * TOKEN_SCALE / lengths).astype(np.int8)
    return whole
