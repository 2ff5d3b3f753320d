"""The context kernel: words of neighbouring turns count for a turn, less with each step.

Owns the sums of a turn d and its neighbours, before BM25 saturates them:

    tf'(t, d) = tf(t, d) + p · p · Σ_o share(o) · tf(t, d + o)
    length'(d) = length(d) + p · p · Σ_o share(o) · length(d + o)

with the part p of the conversation (`conversation_parts`).
A turn often answers the one before it, and has few of the question's words itself. Sums of scores
find less: only inside the saturation does a word that both turns have count less than twice. The
shares are round numbers: half for the previous turn, 0.3 for the next, and 0.7 of that for each
further step (docs/search.md has the measurements). Sums are of whole numbers, millionths of a
share times the square of 64ths, so they are exact, and equal in any order. All turns within reach
are of one conversation, so counts are multiplied by p · p before they are shared. Leaves out the
sums of some turns among many (`pair_sums`).
"""

from collections.abc import Iterator
from typing import Final, NamedTuple, TypeVar

import numpy as np

from ...columnar.columns import F32, F64, I64, Unsigned
from ...columnar.turn_order import REACH

PREVIOUS: Final = 0.5
"""The share of the turn before."""

NEXT: Final = 0.3
"""The share of the turn after."""

DECAY: Final = 0.7
"""The share of each further step, of the step before."""

MILLION: Final = 1e6
"""Parts of a share: the share of each step is a whole number of them."""

_STEPS: Final = np.arange(REACH)
# A turn counts for those after it as their previous turn, and for those before it as their next.
_OFFSETS: Final = np.concatenate([[0], _STEPS + 1, -1 - _STEPS])
_PARTS: Final = np.rint(
    MILLION * np.concatenate([[1.0], PREVIOUS * DECAY**_STEPS, NEXT * DECAY**_STEPS])
)

PARTS: Final = _PARTS[np.argsort(-_OFFSETS)].copy()
"""The parts of the counts of 13 places for the place in their middle, the first place first."""

_WIDTH: Final = len(PARTS)

_DENSE_PART: Final = 12
"""With a count in more than one place in 12, sums of whole columns are faster than look-ups."""

_MATRIX_NUMBERS: Final = 1 << 17
"""Numbers of a matrix of words and places: 1 MiB."""

_BLOCK_PLACES: Final = 1 << 14
"""Places that are summed up at once: their arrays fit a processor's cache."""


Real = TypeVar("Real", F32, F64)


class Counts(NamedTuple):
    """The counts of several words in turns, word after word.

    - ``places`` (n,) are distinct within a word; ``counts`` are (n,).
    - ``ends`` (words,) is the end of each word in both.
    """

    ends: I64
    places: I64
    counts: Unsigned

    def words(self, used: I64) -> I64:
        """Return the word of some counts, whose indices ascend."""
        ends = np.searchsorted(used, self.ends)
        return np.repeat(np.arange(len(ends)), _sizes(ends))

    def of_words(self, numbers: F64) -> F64:
        """Return each count times the number of its word; (n,)."""
        of_counts = np.repeat(numbers, _sizes(self.ends))
        of_counts *= self.counts
        return of_counts

    def spread(self, place_count: int, near: F64 | None) -> Iterator[F64]:
        """Yield the sums of shares of some words in every place, (words, places), for few places.

        Cost: about 50 ns a count, at most 5 ns a place and word.

        Args:
            place_count: The number of places.
            near: The part of a share that counts, by pair of places; None: all of it.
        """
        step = max(_MATRIX_NUMBERS // place_count, 1)
        start = 0
        for first in range(0, len(self.ends), step):
            ends = self.ends[first : first + step]
            end = int(ends[-1])
            rows = np.repeat(np.arange(len(ends)), _sizes(ends, start))
            places = rows * place_count + self.places[start:end]
            # A gap at both ends of a row keeps the rows apart.
            counts = self.counts[start:end].astype(np.float64)
            part = None if near is None else near[self.places[start:end] >> 1]
            flat = _spread(places, counts, part, len(ends) * place_count)
            yield flat.reshape(len(ends), place_count)
            start = end


def _sizes(ends: I64, start: int = 0) -> I64:
    """Return the sizes of ranges that follow each other; a fourth of the time of `numpy.diff`."""
    sizes = ends.copy()
    sizes[1:] -= ends[:-1]
    sizes[:1] -= start
    return sizes


def _spread(places: I64, counts: F64, part: F64 | None, size: int) -> F64:
    shared = counts if part is None else counts * part
    if len(places) * _DENSE_PART > size:
        alone = None if part is None else totals(places, counts - shared, size)
        return summed(totals(places, shared, size), alone)
    targets = places + _OFFSETS[:, np.newaxis]
    of_targets = _PARTS[:, np.newaxis] * shared
    # The first offset is 0: a count is whole in its own place.
    np.multiply(counts, MILLION, out=of_targets[0])
    sums = totals(targets.ravel(), of_targets.ravel(), size)
    sums /= MILLION
    return sums


def totals(places: I64, counts: F64, size: int) -> F64:
    """Return the sum of counts in each of so many places, (size,)."""
    # Without counts, whole numbers are returned.
    return np.bincount(places, counts, size).astype(np.float64, copy=False)


class Shares:
    """The sums of shares of one word after another. Not thread-safe."""

    def __init__(self, place_count: int, near: F64 | None) -> None:
        """Create the sums of so many places; ``near`` is that of `Counts.spread`."""
        # All zeros between two calls.
        self._sums = np.zeros(place_count)
        self._near = near

    def spread(self, places: I64, counts: F64) -> tuple[I64, F64]:
        """Return the places that have a share of the counts, and the sum in each.

        A place may occur several times, each time with its whole sum; gaps occur, too. Cost: about
        0.2 us a count, at most 5 ns a place.

        Args:
            places: The places of turns with a count; (n,), distinct.
            counts: Their counts; (n,).
        """
        sums = self._sums
        part = None if self._near is None else self._near[places >> 1]
        if len(places) * _DENSE_PART > len(sums):
            return np.arange(len(sums)), _spread(places, counts, part, len(sums))
        shared = counts if part is None else counts * part
        targets: list[I64] = []
        for offset, share in zip(_OFFSETS.tolist(), _PARTS.tolist(), strict=True):
            at = places + offset
            sums[at] += share * (shared if offset else counts)
            targets.append(at)
        reached = np.concatenate(targets)
        values = sums[reached] / MILLION
        sums[reached] = 0.0
        return reached, values


def summed(lengths: F64, alone: F64 | None = None) -> F64:
    """Return the sums of shares in every place, of the lengths in all places; (places,) each.

    Gaps have length 0; their own sums have no meaning. ``alone`` is added to the sum of each place,
    and has no share in other places.
    """
    total = np.empty_like(lengths)
    end = 0
    while end < len(lengths):
        # Blocks overlap, because a place has shares of those beside it.
        start, first = end, max(end - REACH, 0)
        end = min(start + _BLOCK_PLACES, len(lengths))
        if len(lengths) - end < _WIDTH:
            end = len(lengths)
        sums = in_parts(lengths[first : end + REACH])
        total[start:end] = sums[start - first : end - first]
    if alone is not None:
        total += MILLION * alone
    total /= MILLION
    return total


def in_parts(counts: Real) -> Real:
    """Return a million times the sums of shares in every place; (places,) each, at least 13."""
    # With 11 parts numpy needs no call for each place.
    sums = np.correlate(counts, PARTS[1:-1].astype(counts.dtype), "same")
    sums[REACH:] += PARTS[0] * counts[:-REACH]
    sums[:-REACH] += PARTS[-1] * counts[REACH:]
    return sums  # pyright: ignore[reportReturnType]
