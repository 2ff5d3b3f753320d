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
event what came later, is passed over at about 5 ns a frame.
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
        self._lock = threading.RLock()

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
        ranges = [_Range(times, rows) for times, rows in self._pieces]
        row = None if after is None else self._row_of(after, newest_first=newest_first)
        for one in ranges:
            one.clip(start, end)
            if after is not None and row is not None:
                one.drop_through((after.time, row), newest_first=newest_first)
        found: list[Position] = []
        window = max(_WINDOW_MIN, limit)
        # One more than the page tells whether there is another.
        while len(found) <= limit and any(one.low < one.high for one in ranges):
            found += self._step(ranges, window, among, newest_first=newest_first)
            window *= 2
        entries = tuple(found[:limit])
        return Page(entries, entries[-1] if len(found) > limit else None)

    def _row_of(self, position: Position, *, newest_first: bool) -> int:
        """Return the last row that a page up to a position may have had.

        Ids ascend with rows, also where the frame is not there.
        """
        side: Literal["left", "right"] = "left" if newest_first else "right"
        row = int(self._ids.searchsorted(position.frame, side))
        return row if newest_first else row - 1

    def _step(
        self, ranges: "list[_Range]", window: int, among: Mask | None, *, newest_first: bool
    ) -> list[Position]:
        """Take the entries that surely come next: at most a window of each piece."""
        # Up to the nearest end of a window, so that no piece gives more than its window.
        edges = [edge for one in ranges if (edge := one.edge(window, newest_first=newest_first))]
        edge = (max(edges) if newest_first else min(edges)) if edges else None
        parts = [one.take(edge, newest_first=newest_first) for one in ranges]
        times = concatenate([part[0] for part in parts], np.int64)
        rows = concatenate([part[1] for part in parts], np.uint32)
        admitted = rows < len(self._ids)
        if among is not None and len(among):
            admitted &= among.take(rows, mode="clip")
        times, rows = times[admitted], rows[admitted]
        order = np.lexsort((rows, times))
        if newest_first:
            order = order[::-1]
        ids = self._ids[rows[order]]
        return [Position(*one) for one in zip(times[order].tolist(), ids.tolist(), strict=True)]


class _Range:
    """What of a piece is still to be looked at: [low, high)."""

    def __init__(self, times: I64, rows: U32) -> None:
        self._times, self._rows = times, rows
        self.low, self.high = 0, len(times)

    def clip(self, start: int | None, end: int | None) -> None:
        """Leave out the times outside [start, end)."""
        if start is not None:
            self.low = int(self._times.searchsorted(start))
        if end is not None:
            self.high = max(self.low, int(self._times.searchsorted(end)))

    def edge(self, count: int, *, newest_first: bool) -> tuple[int, int] | None:
        """Return (time, row) of the last of the next ``count`` entries, if there are more."""
        if self.high - self.low <= count:
            return None
        place = self.high - count if newest_first else self.low + count - 1
        return int(self._times[place]), int(self._rows[place])

    def take(self, edge: tuple[int, int] | None, *, newest_first: bool) -> tuple[I64, U32]:
        """Return the next entries up to ``edge``, or all, in ascending order."""
        low, high = self.low, self.high
        if edge is None:
            self.low = high
            return self._times[low:high], self._rows[low:high]
        self.drop_through(edge, newest_first=newest_first)
        if newest_first:
            return self._times[self.high : high], self._rows[self.high : high]
        return self._times[low : self.low], self._rows[low : self.low]

    def drop_through(self, edge: tuple[int, int], *, newest_first: bool) -> None:
        """Leave out the entries up to ``edge``, and it, in the order that is read."""
        time, row = edge
        first = int(self._times.searchsorted(time))
        last = int(self._times.searchsorted(time, side="right"))
        side: Literal["left", "right"] = "left" if newest_first else "right"
        place = first + int(self._rows[first:last].searchsorted(row, side))
        if newest_first:
            self.high = max(self.low, min(self.high, place))
        else:
            self.low = min(self.high, max(self.low, place))
