"""The timeline: frames by when their content is, or by when they were recorded, page by page.

It is no projection of its own but an order over the columns of `frames`, sorted when first asked
for and merged as frames come: times are born with a frame and never change, so nothing has to be
saved, and the state at n is the rows at n, in the same order.

- By ``content``, a frame stands at each of its content dates, else at when it was created, else
  at when it was recorded; by ``recorded``, once.
- The order is (time, row), ascending or descending; a row's frame id ascends with it.
- `Position` is a place in that order. A page continues after it, whatever was written, closed or
  filtered meanwhile: nothing comes twice, and nothing that was there then is passed over.

Cost: O(log n) and the page, at the head. What a mask leaves out on the way, and as of an earlier
event what came later, is passed over at about 3 ns a frame.
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from cerata.engine.errors import InvalidInput

from .attributes import DATE, AttributeView
from .columns import I64, U32, Mask, concatenate
from .frame_times import made_times
from .sorted_rows import SortedRows
from .typed_values import ValueType

TimelineOrder: TypeAlias = Literal["content", "recorded"]

_WINDOW_MIN = 256
"""Entries looked at first in each piece; doubled while the page is not full."""


class Position(NamedTuple):
    """A place in the timeline: a time in microseconds since 1970 UTC, and a frame id."""

    time: int
    frame: int


@dataclass(frozen=True, slots=True)
class Page:
    """Entries in order, and where the next page starts, or None after the last."""

    entries: tuple[Position, ...]
    next: Position | None


class TimelineIndex:
    """Content times in order, derived from the columns of frames; shared by all snapshots.

    - Rows [0, ``covered``) are in it; the two are published together.
    """

    def __init__(self) -> None:
        self._state: tuple[int, SortedRows[np.int64]] = (0, SortedRows())
        self._rows = np.empty(0, np.uint32)
        self._lock = threading.Lock()

    def content(
        self, created: I64, recorded: I64, attributes: AttributeView
    ) -> tuple[tuple[I64, U32], ...]:
        """Return times and rows in order, of the rows with these times at least, in pieces."""
        if len(created) > self._state[0]:
            with self._lock:
                covered, times = self._state
                if len(created) > covered:
                    made = made_times(created[covered:], recorded[covered:])
                    added = _content_times(covered, made, attributes)
                    self._state = len(created), times.plus(*added)
        return self._state[1].pieces

    def rows(self, count: int) -> U32:
        """Return 0, 1, … ``count − 1``."""
        rows = self._rows
        if len(rows) < count:
            rows = self._rows = np.arange(count + count // 2, dtype=np.uint32)
        return rows[:count]

    @property
    def size_bytes(self) -> int:
        """Memory held by the order."""
        return self._state[1].size_bytes + self._rows.nbytes


def _content_times(first_row: int, made: I64, attributes: AttributeView) -> tuple[I64, U32]:
    """Return (time, row) of new rows, in order of row, none twice."""
    end_row = first_row + len(made)
    dates = attributes.within(first_row, end_row, DATE, ValueType.TIME)
    undated = np.ones(len(made), np.bool_)
    undated[dates.rows - np.uint32(first_row)] = False
    plain = np.flatnonzero(undated)
    # Taking the bias off a key wraps around, as it does in C.
    times = concatenate([made[plain], (dates.keys ^ np.uint64(1 << 63)).view(np.int64)], np.int64)
    rows = concatenate([(plain + first_row).astype(np.uint32), dates.rows], np.uint32)
    order = np.lexsort((times, rows))
    times, rows = times[order], rows[order]
    again = np.zeros(len(rows), np.bool_)
    again[1:] = (rows[1:] == rows[:-1]) & (times[1:] == times[:-1])
    return times[~again], rows[~again]


class Timeline:
    """The frames at one n in order of time; immutable, for any thread.

    ``pieces`` are sorted by (time, row); rows at or beyond ``len(ids)`` in them are of later.
    """

    def __init__(self, ids: I64, pieces: Sequence[tuple[I64, U32]]) -> None:
        self._ids = ids
        self._pieces = pieces

    def page(
        self,
        *,
        among: Mask | None = None,
        start: int | None = None,
        end: int | None = None,
        after: Position | None = None,
        limit: int = 50,
        newest_first: bool = True,
    ) -> Page:
        """Return the next ``limit`` entries with start ≤ time < end that ``among`` admits.

        ``among`` is a mask over the rows at n; without one, closed frames come too. ``after`` is
        where the last page ended, in the same order.

        Raises:
            InvalidInput: limit is not positive.
        """
        if isinstance(limit, bool) or not isinstance(limit, int) or limit <= 0:
            raise InvalidInput(f"limit is {limit!r}", remedy="Ask for 1 or more.")
        ranges: list[_Range] = []
        for times, rows in self._pieces:
            low, high = self._bounds(times, rows, start, end, after, newest_first=newest_first)
            ranges.append(_Range(times, rows, low, high))
        found: list[Position] = []
        window = max(_WINDOW_MIN, limit)
        # One more than the page tells whether there is another.
        while len(found) <= limit and any(one.low < one.high for one in ranges):
            found += self._step(ranges, window, among, newest_first=newest_first)
            window *= 2
        entries = tuple(found[:limit])
        return Page(entries, entries[-1] if len(found) > limit else None)

    def _bounds(
        self,
        times: I64,
        rows: U32,
        start: int | None,
        end: int | None,
        after: Position | None,
        *,
        newest_first: bool,
    ) -> tuple[int, int]:
        """Return the range of a piece that lies within the times, and after a position."""
        low = 0 if start is None else int(times.searchsorted(start))
        high = len(times) if end is None else int(times.searchsorted(end))
        if after is not None:
            first = int(times.searchsorted(after.time))
            last = int(times.searchsorted(after.time, side="right"))
            # Ids ascend with rows, also where a position names a frame that is not there.
            row = int(np.searchsorted(self._ids, after.frame + (not newest_first)))
            place = first + int(rows[first:last].searchsorted(row))
            low, high = (low, min(high, place)) if newest_first else (max(low, place), high)
        return low, high

    def _step(
        self, ranges: "list[_Range]", window: int, among: Mask | None, *, newest_first: bool
    ) -> list[Position]:
        """Take the entries that surely come next, at most a window of each piece."""
        heads = [one.head(window, newest_first=newest_first) for one in ranges]
        times = concatenate([head.times for head in heads], np.int64)
        rows = concatenate([head.rows for head in heads], np.uint32)
        order = np.lexsort((rows, times))
        if newest_first:
            order = order[::-1]
        # Where a piece goes on beyond its window, nothing after the window's end is sure.
        edges = [head.edge for head in heads if head.edge is not None]
        if edges:
            time, row = max(edges) if newest_first else min(edges)
            t, r = times[order], rows[order]
            before = (t > time) if newest_first else (t < time)
            level = (r >= row) if newest_first else (r <= row)
            order = order[before | ((t == time) & level)]
        piece = np.repeat(np.arange(len(heads)), [len(head.times) for head in heads])[order]
        for index, count in enumerate(np.bincount(piece, minlength=len(heads)).tolist()):
            ranges[index].drop(count, newest_first=newest_first)
        times, rows = times[order], rows[order]
        admitted = rows < len(self._ids)
        if among is not None:
            admitted[admitted] = among[rows[admitted]]
        ids = self._ids[rows[admitted]]
        return [Position(*one) for one in zip(times[admitted].tolist(), ids.tolist(), strict=True)]


class _Head(NamedTuple):
    """The next entries of a piece; ``edge`` is the last of them if the piece goes on."""

    times: I64
    rows: U32
    edge: tuple[int, int] | None


class _Range:
    """What of a piece has not been looked at: [low, high)."""

    def __init__(self, times: I64, rows: U32, low: int, high: int) -> None:
        self._times, self._rows = times, rows
        self.low, self.high = low, high

    def head(self, count: int, *, newest_first: bool) -> _Head:
        """Return the next ``count`` entries, or all; in ascending order."""
        low, high = self.low, max(self.low, self.high)
        whole = high - low <= count
        if not whole and newest_first:
            low = high - count
        elif not whole:
            high = low + count
        times, rows = self._times[low:high], self._rows[low:high]
        last = 0 if newest_first else -1
        return _Head(times, rows, None if whole else (int(times[last]), int(rows[last])))

    def drop(self, count: int, *, newest_first: bool) -> None:
        if newest_first:
            self.high -= count
        else:
            self.low += count
