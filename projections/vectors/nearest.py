"""The nearest vectors to a query: a pure function of the query and the rows that a view admits.

Owns the selection of candidates and the order of results. Candidates are selected by signs alone,
48 bytes per vector of 384 numbers (M. Charikar, Similarity Estimation Techniques from Rounding
Algorithms, STOC 2002: signs of random projections; here of the numbers themselves): first by the
signs of the query, then, among four times as many, by its numbers (an asymmetric distance:
A. Gordo, F. Perronnin, Y. Gong and S. Lazebnik, Asymmetric Distances for Binary Embeddings, PAMI
2014). They are scored by the vectors. The last bits of a matrix product differ between processors,
so the product only drops rows that cannot be among the best; final scores are sums in a fixed
order.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from ..columnar.columns import F64, I32, I64, Mask
from ..columnar.turn_order import TurnOrder
from .columns import Matrix, sign_words
from .reader import Space, agreement, distances

Metric: TypeAlias = Literal["cosine", "dot"]
QueryVector: TypeAlias = npt.NDArray[np.float32]
Fetch: TypeAlias = Callable[[I64], tuple[Matrix, F64]]
"""Returns the vectors in rows of a space, (rows, dimension), and their `lengths_of`."""

Propose: TypeAlias = Callable[[Mask, QueryVector, int], I64]
"""Returns the allowed rows to score, ascending."""

ALL_ROWS_MAX: Final = 2048
"""Up to this many rows, every row is scored."""

CANDIDATES_MIN: Final = 1_024
CANDIDATES_MAX: Final = 2048
CANDIDATES_SHARE: Final = 100
"""Of more rows, 1 in 100 is scored, within these bounds."""

BY_SIGNS: Final = 4
"""Rows that the signs of the query select, for each that is scored."""

_QUERY_STEPS: Final = 1 << 10
"""Steps of a query's numbers in the second selection: sums of 65,536 of them are below 2**27."""

MARGIN: Final = 1e-4
"""The least margin of float32 scores within which a row may be among the best."""

MARGIN_SHARE: Final = 2.0**-22
"""The margin per dimension: two sums of the same n products in different orders differ by at most
n · 2^-23 times the product of the lengths. A processor without AVX adds 16 at a time and comes near
this bound."""

PRODUCT_MIN: Final = 1e-25
"""Below this product of lengths float32 sums err by more and may be 0: up to 65,536 products below
1.2e-38 can underflow."""

SCORE_DIGITS: Final = 9

_BLOCK_NUMBERS: Final = 1 << 16
"""Numbers that are float64 at once: 512 KiB, which fit a processor's cache. A larger array costs
page faults, too, which take as long as the sums."""

SUM_ERROR: Final = 2.0**-50
"""Two float64 sums of n products of float32 differ by at most n times this, times the lengths.

Each sum errs by at most n · 2^-53 of the sum of magnitudes (N. Higham, *Accuracy and Stability of
Numerical Algorithms*, 2002, section 4.2), which the lengths bound (Cauchy and Schwarz). The rest
covers the errors of the lengths and of the division.
"""


class Nearest(NamedTuple):
    """Rows of a space, best first, and their scores."""

    rows: I64
    scores: F64


def nearest(
    space: Space,
    allowed: Mask,
    query: QueryVector,
    k: int,
    metric: Metric,
    fetch: Fetch,
    propose: Propose | None = None,
) -> Nearest:
    """Return the best ``k`` of the allowed rows; ``allowed`` covers the first rows of a space.

    ``query`` has the space's dimension. ``propose`` selects the rows to score, by default by their
    signs. Scores are cosines or inner products, rounded to 9 digits; ties go to the older frame.
    Cost: reads 6 words per row of 384 numbers, and the vectors of the candidates.
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


def candidates(space: Space, allowed: Mask, query: QueryVector, k: int) -> I64:
    """Return the rows to score, ascending; ties go to the older.

    Selects rows whose signs differ least from the query's, and of these the rows whose signs agree
    most with the query's numbers.
    """
    count = int(np.count_nonzero(allowed))
    if count <= max(ALL_ROWS_MAX, k):
        return np.flatnonzero(allowed)
    limit_count = max(k, min(max(count // CANDIDATES_SHARE, CANDIDATES_MIN), CANDIDATES_MAX))
    # Usually a prefix of the rows is allowed: a slice saves the gathering.
    rows = slice(count) if bool(allowed[:count].all()) else np.flatnonzero(allowed)
    differing = distances(space, rows, sign_words(query[None])[0])
    limit = int(np.cumsum(np.bincount(differing)).searchsorted(BY_SIGNS * limit_count))
    places = first_best(differing, limit, BY_SIGNS * limit_count)
    selected = places if isinstance(rows, slice) else rows[places]
    if len(selected) <= limit_count:
        return selected
    agreeing = agreement(space, selected, _in_steps(query))
    least = len(selected) - limit_count
    limit = int(np.partition(agreeing, least)[least])
    return selected[first_best(-agreeing, -limit, limit_count)]


def _in_steps(query: QueryVector) -> I32:
    """Return the numbers of a query as whole numbers, the largest magnitude as 1,024.

    Sums of whole numbers do not depend on their order.
    """
    wide = query.astype(np.float64)
    largest = float(np.abs(wide).max())
    if largest > 0:
        wide *= _QUERY_STEPS / largest
    steps: I32 = np.rint(wide).astype(np.int32)
    return steps


def first_best(items: npt.NDArray[Any], limit: int, count: int) -> I64:
    """Return the indices of the items below a limit and of the first at it, ``count`` in all."""
    selected: Mask = items < limit
    at_limit = np.flatnonzero(items == limit)
    selected[at_limit[: count - int(np.count_nonzero(selected))]] = True
    return np.flatnonzero(selected)


def _close(
    vectors: Matrix, products: F64, query: QueryVector, k: int, metric: Metric
) -> I64 | slice:
    """Return the indices of the vectors that can be among the best ``k``, by float32 sums.

    ``products``: each vector's length times the query's.
    """
    if len(vectors) <= k:
        return slice(None)
    with np.errstate(over="ignore", invalid="ignore"):
        scores = np.vecdot(vectors.astype(np.float32, copy=False), query).astype(np.float64)
    margin = max(MARGIN, MARGIN_SHARE * len(query))
    if not np.isfinite(scores).all() or bool(((products > 0) & (products < PRODUCT_MIN)).any()):
        # Too large or too small for float32 sums: score all in float64.
        return slice(None)
    if metric == "cosine":
        np.divide(scores, products, out=scores, where=products > 0)
    else:
        margin *= float(products.max())
    least = np.partition(scores, len(scores) - k)[len(scores) - k]
    return np.flatnonzero(scores >= least - margin)


def exact_scores(vectors: Matrix, lengths: F64, query: QueryVector, metric: Metric) -> F64:
    """Return the scores of vectors; the bits do not depend on their number and order."""
    return _scores(vectors, lengths * lengths_of(query[None]), query, metric)


def _scores(vectors: Matrix, products: F64, query: QueryVector, metric: Metric) -> F64:
    """Return the scores; ``products``: each vector's length times the query's.

    A score is the rounded sum in the fixed order. A matrix product differs from this sum by at most
    the bound; the sum is computed only if both ends of the bound round to different numbers.
    """
    wide_query = query.astype(np.float64)
    scores = np.empty(len(vectors))
    for rows, wide in _widened(vectors):
        scores[rows] = np.vecdot(wide, wide_query)
    bound = np.full_like(scores, SUM_ERROR * len(query))
    if metric == "cosine":
        scores = _over(scores, products)
    else:
        bound *= products
    rounded = np.round(scores - bound, SCORE_DIGITS)
    unsure = np.flatnonzero(rounded != np.round(scores + bound, SCORE_DIGITS))
    if len(unsure):
        sums = _halved(vectors[unsure] * wide_query)
        sums = sums if metric == "dot" else _over(sums, products[unsure])
        rounded[unsure] = np.round(sums, SCORE_DIGITS)
    return rounded + 0.0


def _over(scores: F64, products: F64) -> F64:
    """Return cosines; 0 for a vector of length 0."""
    cosines: F64 = np.divide(scores, products, out=np.zeros_like(scores), where=products > 0)
    return cosines


def lengths_of(vectors: Matrix) -> F64:
    """Return the Euclidean lengths of vectors in float64, by sums in the fixed order."""
    sums = np.empty(len(vectors))
    for rows, wide in _widened(vectors):
        np.multiply(wide, wide, out=wide)
        sums[rows] = _halved(wide)
    return np.sqrt(sums, out=sums)


def _widened(vectors: Matrix) -> Iterator[tuple[slice, F64]]:
    """Yield vectors in float64, block after block; the next block overwrites the one before."""
    step = max(_BLOCK_NUMBERS // vectors.shape[1], 1)
    room = np.empty((min(step, len(vectors)), vectors.shape[1]))
    for start in range(0, len(vectors), step):
        block = vectors[start : start + step]
        wide = room[: len(block)]
        np.copyto(wide, block)
        yield slice(start, start + len(block)), wide


def _halved(products: F64) -> F64:
    """Return the sum of each row, by adding its second half to its first until a number is left.

    Numbers past the largest power of two are first added to the first numbers. Overwrites the
    input.
    """
    size = 1 << (products.shape[1].bit_length() - 1)
    products[:, : products.shape[1] - size] += products[:, size:]
    sums = products[:, :size]
    # New arrays: numpy copies the operands of a sum that is written over one of them.
    while sums.shape[1] > 1:
        half = sums.shape[1] // 2
        sums = sums[:, :half] + sums[:, half:]
    return sums[:, 0].copy()


# --- Vectors of turns, with those of the turns beside them ----------------------------------------
#
#     score(d) = Σ_o share(o) · s(d + o) / Σ_o share(o)
#
# over the neighbours that have a vector, with share(0) = 1. The vector of a short turn lacks its
# subject, which the turns beside it have. The shares are those of the words
# (`fulltext.turns.context_kernel`): 0.5 for the turn before, 0.3 for the next, 0.7 of that for each
# further step, up to six; each times the square of the part of the conversation
# (`fulltext.turns.conversation_parts`). Sums are in a fixed order and rounded to 9 digits, so a
# score is equal on every machine.


PREVIOUS: Final = 0.5
"""The share of the turn before."""

NEXT: Final = 0.3
"""The share of the turn after."""

DECAY: Final = 0.7
"""The share of each further step, of the step before."""

SIDE: Final = 6
"""Turns on each side that count; at most `turn_order.REACH`."""

_DENSE_PART: Final = 4
"""With a row to score in more than one place in 4, sums in all places are faster than look-ups."""

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
        rows: Rows, turns or not; (n,), distinct.
    """
    mask = np.zeros(len(order.places), np.bool_)
    mask[rows] = True
    places = order.places[rows]
    places = places[places >= 0]
    if len(places) == order.turn_count:
        # All turns are among the rows.
        return mask
    for offset, _ in SHARES:
        near = order.rows[places + offset]
        mask[near[near >= 0]] = True
    return mask


def means(rows: I64, sources: I64, scores: F64, order: TurnOrder, parts: F64 | None = None) -> F64:
    """Return the mean score of each row and of the turns beside it, (n,).

    Args:
        rows: The rows to score, some of the sources; (n,).
        sources: Rows with a score; (m,), ascending.
        scores: The scores of the sources; (m,).
        order: The order of the turns.
        parts: The part of the conversation of each place, (places,); default None: all are 1.
    """
    places = order.places[rows]
    # The scores of turns by place, and a 1 for each; gaps have zeros.
    line = np.zeros((2, len(order.rows)))
    places_of_sources = order.places[sources]
    of_turns = np.flatnonzero(places_of_sources >= 0)
    line[0, places_of_sources[of_turns]] = scores[of_turns]
    line[1, places_of_sources[of_turns]] = 1.0
    at = np.maximum(places, SIDE)
    if parts is None:
        sums = _spread(line, at)
    else:
        shared = line * (parts * parts)
        sums = _spread(shared, at)
        sums += (line - shared).take(at, axis=1)
    alone = np.flatnonzero(places < 0)
    sums[0, alone] = scores[np.searchsorted(sources, rows[alone])]
    sums[1, alone] = 1.0
    totals: F64 = sums[0]
    totals /= sums[1]
    return np.round(totals, SCORE_DIGITS)


def _spread(line: F64, places: I64) -> F64:
    """Return the sum of the items in each place and in those beside it, by their shares.

    Args:
        line: Rows of items, with gaps at both ends; (rows, places).
        places: The places; (n,).
    """
    if len(places) * _DENSE_PART < line.shape[1]:
        sums = line.take(places, axis=1)
        for offset, share in SHARES:
            sums += share * line.take(places + offset, axis=1)
        return sums
    # Slices take less time than look-ups.
    end = line.shape[1] - SIDE
    sums = line[:, SIDE:end].copy()
    for offset, share in SHARES:
        sums += share * line[:, SIDE + offset : end + offset]
    return sums.take(places - SIDE, axis=1)
