"""The nearest vectors to a query: a pure function of the query and what a view lets in.

Owns the choice of candidates and the order of the best. The first are found by the signs alone, in
48 bytes a vector of 384 numbers (M. Charikar, Similarity Estimation Techniques from Rounding
Algorithms, STOC 2002: signs of random projections; here of the numbers themselves), then scored by
the vectors. Products as a processor makes them give other last bits on another, so they only decide
who can be among the best; what these score is the sum in one fixed order.
"""

from collections.abc import Callable
from functools import partial
from typing import Final, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from .columns import F64, I64, Mask
from .vector_columns import Matrix, sign_words
from .vector_table import Space, distances

Metric: TypeAlias = Literal["cosine", "dot"]
Query: TypeAlias = npt.NDArray[np.float32]
Fetch: TypeAlias = Callable[[I64], tuple[Matrix, F64]]
"""Returns the vectors in rows of a space, one a row, and their lengths as of `lengths_of`."""

Propose: TypeAlias = Callable[[Mask, Query, int], I64]
"""Returns rows among those allowed, ascending, of which the best are to be found."""

ALL_ROWS_MAX: Final = 2048
"""Up to so many rows are all scored."""

CANDIDATES_MIN: Final = 1024
CANDIDATES_MAX: Final = 8192
CANDIDATES_SHARE: Final = 50
"""Of more rows one in so many is scored, within these bounds."""

MARGIN: Final = 1e-4
"""What may be among the best by float32 sums, at least."""

MARGIN_SHARE: Final = 2.0**-22
"""The same for each dimension: in whatever order n products are added up, two such sums are off by
n · 2^-23 of the lengths together. A processor without AVX adds 16 at a time, and comes near it."""

PRODUCT_MIN: Final = 1e-25
"""Of smaller products of lengths they err by more, and may be 0: 65,536 of 1.2e-38 can be lost."""

SCORE_DIGITS: Final = 9

SUM_ERROR: Final = 2.0**-50
"""Bounds how far two sums of n products of float32 may be apart: by n times it of the lengths.

Each is off by n · 2^-53 of the sum of magnitudes at most (N. Higham, *Accuracy and Stability of
Numerical Algorithms*, 2002, section 4.2), which by Cauchy and Schwarz the lengths bound; the rest
is for the lengths' own error, and the division's.
"""


class Nearest(NamedTuple):
    """Rows of a space, best first, and their scores."""

    rows: I64
    scores: F64


def nearest(
    space: Space,
    allowed: Mask,
    query: Query,
    k: int,
    metric: Metric,
    fetch: Fetch,
    propose: Propose | None = None,
) -> Nearest:
    """Return the best ``k`` of the rows that a mask over the first rows of a space allows.

    ``query`` has the space's dimension; ``propose`` chooses what is scored, else the signs do.
    Scores are cosines, or inner products, rounded to 9 digits; ties go to the older frame. Cost: 6
    words a row of 384 numbers, and the vectors of the candidates.
    """
    rows = (propose or partial(candidates, space))(allowed, query, k)
    if not len(rows):
        return Nearest(rows, np.empty(0))
    vectors, lengths = fetch(rows)
    products = lengths * lengths_of(query[None])
    close = _close(vectors, products, query, k, metric)
    rows = rows[close]
    scores = _scores(vectors[close], products[close], query, metric)
    frames = space.frames[rows]
    order = np.lexsort((frames, -scores))[:k]
    return Nearest(rows[order], scores[order])


def candidates(space: Space, allowed: Mask, query: Query, k: int) -> I64:
    """Return the rows to be scored, ascending: those whose signs differ least, the older first."""
    count = int(np.count_nonzero(allowed))
    if count <= max(ALL_ROWS_MAX, k):
        return np.flatnonzero(allowed)
    wanted = max(k, min(max(count // CANDIDATES_SHARE, CANDIDATES_MIN), CANDIDATES_MAX))
    # Mostly all of the first are allowed: they need not be gathered.
    rows = slice(count) if bool(allowed[:count].all()) else np.flatnonzero(allowed)
    differing = distances(space, rows, sign_words(query[None])[0])
    ends = np.cumsum(np.bincount(differing))
    limit = int(ends.searchsorted(wanted))
    below = int(ends[limit - 1]) if limit else 0
    at_limit = np.flatnonzero(differing == limit)[: wanted - below]
    nearer = np.flatnonzero(differing < limit)
    found: I64 = np.sort(np.concatenate([nearer, at_limit]))
    return found if isinstance(rows, slice) else rows[found]


def _close(vectors: Matrix, products: F64, query: Query, k: int, metric: Metric) -> I64 | slice:
    """Return which vectors can be among the best ``k``, by sums in float32.

    ``products`` are those of their lengths and the query's.
    """
    if len(vectors) <= k:
        return slice(None)
    with np.errstate(over="ignore", invalid="ignore"):
        scores = np.vecdot(vectors.astype(np.float32, copy=False), query).astype(np.float64)
    margin = max(MARGIN, MARGIN_SHARE * len(query))
    if not np.isfinite(scores).all() or bool(((products > 0) & (products < PRODUCT_MIN)).any()):
        # Too large or too small for float32 sums: all are ordered by float64.
        return slice(None)
    if metric == "cosine":
        np.divide(scores, products, out=scores, where=products > 0)
    else:
        margin *= float(products.max())
    least = np.partition(scores, len(scores) - k)[len(scores) - k]
    return np.flatnonzero(scores >= least - margin)


def exact_scores(vectors: Matrix, lengths: F64, query: Query, metric: Metric) -> F64:
    """Return the scores of vectors: the same bits whatever their number and order."""
    return _scores(vectors, lengths * lengths_of(query[None]), query, metric)


def _scores(vectors: Matrix, products: F64, query: Query, metric: Metric) -> F64:
    """Return the scores; ``products`` are those of the vectors' lengths and the query's.

    They are sums in the one fixed order, rounded. A product is as near to these as the bound says;
    only where the two ends round to two numbers the sum itself is taken.
    """
    wide, asked = vectors.astype(np.float64), query.astype(np.float64)
    scores: F64 = np.vecdot(wide, asked)
    bound = np.full_like(scores, SUM_ERROR * len(query))
    if metric == "cosine":
        scores = _over(scores, products)
    else:
        bound *= products
    rounded = np.round(scores - bound, SCORE_DIGITS)
    unsure = np.flatnonzero(rounded != np.round(scores + bound, SCORE_DIGITS))
    if len(unsure):
        sums = _halved(wide[unsure] * asked)
        sums = sums if metric == "dot" else _over(sums, products[unsure])
        rounded[unsure] = np.round(sums, SCORE_DIGITS)
    return rounded + 0.0


def _over(scores: F64, products: F64) -> F64:
    """Return cosines; that of a vector of length 0 is 0."""
    found: F64 = np.divide(scores, products, out=np.zeros_like(scores), where=products > 0)
    return found


def lengths_of(vectors: Matrix) -> F64:
    """Return the Euclidean lengths of vectors in float64, by sums in the one fixed order."""
    wide = vectors.astype(np.float64)
    return np.sqrt(_halved(wide * wide))


def _halved(products: F64) -> F64:
    """Return the sum of each row: its second half onto its first, until one number is left.

    What is beyond the largest power of two comes onto the first numbers before. Changes its input.
    """
    size = 1 << (products.shape[1].bit_length() - 1)
    products[:, : products.shape[1] - size] += products[:, size:]
    while size > 1:
        size //= 2
        products[:, :size] += products[:, size : 2 * size]
    return products[:, 0].copy()
