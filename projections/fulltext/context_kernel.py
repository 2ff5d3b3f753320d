"""The context kernel: words of neighbouring turns count for a turn, less with each step.

Owns the sums of a turn d and its neighbours, before BM25 saturates them:

    tf'(t, d) = Σ_o share(o) · tf(t, d + o),    length'(d) = Σ_o share(o) · length(d + o)

A turn often answers the one before it, and has few of the question's words itself. Sums of scores
find less: only inside the saturation does a word that both turns have count less than twice. The
shares are round numbers: half for the previous turn, 0.3 for the next, and 0.7 of that for each
further step (docs/search.md has the measurements). Sums are of whole numbers, millionths of a
share, so they are exact, and equal in any order.
"""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

import numpy as np

from ..columnar.columns import F32, F64, I64
from ..columnar.turn_order import REACH

PREVIOUS: Final = 0.5
"""The share of the turn before."""

NEXT: Final = 0.3
"""The share of the turn after."""

DECAY: Final = 0.7
"""The share of each further step, of the step before."""

_MILLION: Final = 1e6
"""Parts of a share: the share of each step is a whole number of them."""

_STEPS: Final = np.arange(REACH)
# A turn counts for those after it as their previous turn, and for those before it as their next.
_OFFSETS: Final = np.concatenate([[0], _STEPS + 1, -1 - _STEPS])
_PARTS: Final = np.rint(
    _MILLION * np.concatenate([[1.0], PREVIOUS * DECAY**_STEPS, NEXT * DECAY**_STEPS])
)

_DENSE_PART: Final = 12
"""With a count in more than one place in 12, sums of whole columns are faster than look-ups."""


_MATRIX_NUMBERS: Final = 1 << 17
"""Numbers of a matrix of words and places: 1 MiB."""

_BLOCK_PLACES: Final = 1 << 14
"""Places that are summed up at once: their arrays fit a processor's cache."""

_POOL_MAX: Final = 2
"""Threads that ask at the same time rarely are more; each set has 33 bytes a place."""

_POOL_PLACES_MAX: Final = 1 << 20
"""Larger sets are not kept: 35 MiB."""


class Counts(NamedTuple):
    """The counts of several words in turns, word after word.

    - ``places`` (n,) are distinct within a word; ``counts`` are (n,).
    - ``ends`` (words,) is the end of each word in both.
    """

    ends: I64
    places: I64
    counts: F64

    def words(self, used: I64) -> I64:
        """Return the word of some counts."""
        return np.searchsorted(self.ends, used, side="right")

    def spread(self, place_count: int) -> Iterator[F64]:
        """Yield the sum of shares of each word in every place, (places,), for few places.

        Cost: about 60 ns a place and word.
        """
        step = max(_MATRIX_NUMBERS // place_count, 1)
        start = 0
        for first in range(0, len(self.ends), step):
            end = int(self.ends[first : first + step][-1])
            matrix = np.zeros((min(step, len(self.ends) - first), place_count))
            words = self.words(np.arange(start, end)) - first
            matrix[words, self.places[start:end]] = self.counts[start:end]
            yield from _summed(matrix)
            start = end


class Shares:
    """The sums of shares of one word after another. Not thread-safe.

    Its arrays have an item for each place, and serve many questions (`lent_shares`): the first use
    of new memory takes longer than the sums.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity: Final = capacity
        self.place_count = capacity
        # All zeros between two calls.
        self._sums = np.zeros(capacity)
        self._is_near = np.zeros(capacity, np.bool_)
        # Any values between two calls.
        self._number = np.empty(capacity, np.int32)
        self._weighted = np.empty(capacity, np.float32)
        self._total = np.empty(capacity, np.float32)
        self._steps = np.empty((3, capacity), np.float32)

    def spread(self, places: I64, counts: F64) -> tuple[I64, F64]:
        """Return the places that have a share of the counts, and the sum in each.

        A place may occur several times, each time with its whole sum; gaps occur, too. Cost: about
        0.2 us a count, at most 5 ns a place.

        Args:
            places: The places of turns with a count; (n,), distinct.
            counts: Their counts; (n,).
        """
        sums = self._sums[: self.place_count]
        if len(places) * _DENSE_PART > len(sums):
            sums[places] = counts
            spread = summed(sums)
            sums[places] = 0.0
            return np.arange(len(sums)), spread
        targets: list[I64] = []
        for offset, part in zip(_OFFSETS.tolist(), _PARTS.tolist(), strict=True):
            at = places + offset
            sums[at] += part * counts
            targets.append(at)
        reached = np.concatenate(targets)
        values = sums[reached] / _MILLION
        sums[reached] = 0.0
        return reached, values

    def bounds(self, counts: Counts, worth: F64, factors: F32) -> F32:
        """Return the weighted sum of all words' sums of shares in every place; (places,).

        Not exact. The array is valid until the next call.

        Args:
            counts: The counts of the words.
            worth: The weight of each word; (words,).
            factors: The factor of each place; (places,).
        """
        count = self.place_count
        weighted = self._weighted[:count]
        weighted.fill(0.0)
        of_words = (worth / _MILLION).astype(np.float32)
        worths = np.repeat(of_words, np.diff(counts.ends, prepend=0))
        np.multiply(worths, counts.counts, out=worths, casting="same_kind")
        np.add.at(weighted, counts.places, worths)
        total = self._total[:count]
        _sum_up(weighted, total, self._steps[:, :count])
        total *= factors
        return total

    def at(self, places: I64, counts: Counts) -> F64:
        """Return the sum of shares of each word in some places, (words, m).

        Cost: 3 ns a count, and 20 ns for each word and place.

        Args:
            places: The places to sum up for; (m,).
            counts: The counts of the words.
        """
        near = beside(places)
        is_near, number = self._is_near, self._number
        is_near[near] = True
        distinct = np.flatnonzero(is_near)
        number[distinct] = np.arange(len(distinct))
        used = np.flatnonzero(is_near[counts.places])
        is_near[distinct] = False
        matrix = np.zeros((len(counts.ends), len(distinct)))
        matrix[counts.words(used), number[counts.places[used]]] = counts.counts[used]
        at = number[near]
        return np.array([_PARTS @ row[at] for row in matrix]) / _MILLION


_FREE: Final[list[Shares]] = []
"""The arrays of finished questions."""


def beside(places: I64) -> I64:
    """Return the places of turns, and the places whose counts count for them; (13, places)."""
    near: I64 = places - _OFFSETS[:, np.newaxis]
    return near


@contextmanager
def lent_shares(place_count: int) -> Generator[Shares]:
    """Lend the arrays of an earlier question, of any thread, or new arrays.

    After an error they are not lent again. A view of a few more turns needs no new arrays.
    """
    try:
        shares = _FREE.pop()
    except IndexError:
        shares = None
    if shares is None or not place_count <= shares.capacity <= 2 * place_count:
        shares = Shares(place_count + place_count // 8)
    shares.place_count = place_count
    yield shares
    if len(_FREE) < _POOL_MAX and place_count <= _POOL_PLACES_MAX:
        _FREE.append(shares)


def summed(lengths: F64) -> F64:
    """Return the sums of shares in every place, of the lengths in all places; (places,) each.

    Gaps have length 0; their own sums have no meaning.
    """
    total = np.empty_like(lengths)
    for start in range(0, len(lengths), _BLOCK_PLACES):
        # Blocks overlap, because a place has shares of those beside it.
        first = max(start - REACH, 0)
        part = lengths[first : start + _BLOCK_PLACES + REACH]
        sums = _summed(part)
        end = min(start + _BLOCK_PLACES, len(lengths))
        total[start:end] = sums[start - first : end - first]
    return total


def _summed(counts: F64) -> F64:
    total: F64 = np.empty_like(counts)
    steps: F64 = np.empty((3, *counts.shape))
    _sum_up(counts, total, steps)
    total /= _MILLION
    return total


def _sum_up(counts: F32 | F64, total: F32 | F64, steps: F32 | F64) -> None:
    """Set each total to a million times the sum of shares of the counts.

    Six steps are the sum of two, of two of these, and of two more: 0.7 is 7 / 10, its square
    49 / 100, and its fourth power 2,401 / 10,000. So all products are whole numbers if the counts
    are.

    Args:
        counts: The counts; (…, places).
        total: The result; (…, places).
        steps: Memory to use; (3, …, places).
    """
    two, six, step = steps
    number = counts.dtype.type
    np.multiply(counts, number(_MILLION), out=total)
    for first, sign in ((PREVIOUS, 1), (NEXT, -1)):
        np.multiply(counts, number(10), out=two)
        _add(two, counts, sign, 7, step)
        np.multiply(two, number(100), out=six)
        _add(six, two, 2 * sign, 49, step)
        six *= number(100)
        _add(six, two, 4 * sign, 2_401, step)
        _add(total, six, sign, round(10 * first), step)


def _add(sums: F32 | F64, counts: F32 | F64, offset: int, factor: int, step: F32 | F64) -> None:
    """Add the multiples of counts to the sums so many places after them."""
    np.multiply(counts, counts.dtype.type(factor), out=step)
    if offset > 0:
        sums[..., offset:] += step[..., :-offset]
    else:
        sums[..., :offset] += step[..., -offset:]
