"""From float32 to int8: a vector's largest number becomes 127, and the rest follow.

Symmetric and per vector: q = round(x · 127 / max|x|), halves to even, so that -128 never occurs
and a vector keeps its direction to about 1 part in 254 of its largest number. How long it was is
not kept; cosines are all that such a space is compared by. A vector of zeros stays one.
"""

import numpy as np
import numpy.typing as npt

from .embedder import Matrix

_LARGEST = 127


def quantised(vectors: Matrix) -> npt.NDArray[np.int8]:
    """Return vectors as int8, (n, dimension); the same on every machine.

    >>> quantised(np.array([[0.5, -1.0, 0.0]], np.float32)).tolist()
    [[64, -127, 0]]
    """
    # In float64, where each step is one rounding: nothing depends on the order of sums.
    wide = vectors.astype(np.float64)
    largest = np.abs(wide).max(axis=1, keepdims=True, initial=0.0)
    largest[largest == 0.0] = 1.0
    whole: npt.NDArray[np.int8] = np.rint(wide * _LARGEST / largest).astype(np.int8)
    return whole
