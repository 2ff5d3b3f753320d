"""The timeline: frames in order of their content's times or recorded times, page by page.

Owns the order over the columns of frames, sorted on first use and extended with new frames. A
frame's times never change, so the order is not saved, and the order at n is that of the rows at n.

- In the ``content`` order a frame appears at each of its content dates, or else at its time of
  creation, or else at its recorded time; in the ``recorded`` order, once.
- The order is (time, row), ascending or descending; frame ids ascend with rows.
- A page continues after a `Position` in this order, also after later writes, closings and other
  filters: no entry is repeated, and no entry of that state is skipped.

Cost at the head: O(log n) and the page. Skipped frames cost about 5 ns each: those outside a mask
and, as of an earlier event, later frames.
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, TypeAlias

import numpy as np

from cerata.engine.arguments import is_integer
from cerata.engine.errors import InvalidInput, value_text

from ..columnar.columns import I64, U32, Mask, concatenate, run_starts
from ..columnar.sorted_rows import SortedRows
from ..columnar.typed_values import ValueType
from .attributes import DATE, AttributeView

TimelineOrder: TypeAlias = Literal["content", "recorded"]

NO_TIME: Final = -(1 << 63)
"""In a column of times: absent. On disk: never renumber."""

_WINDOW_MIN = 256
"""Entries read first from each piece; doubled until the page is full."""


def creation_times(created: I64, recorded: I64) -> I64:
    """Return the times of creation, as stated or else of recording, in microseconds."""
    return np.where(created == NO_TIME, recorded, created)


class Position(NamedTuple):
    """A place in the timeline: a time in microseconds since 1970 UTC, and a frame id."""

    time: int
    frame: int


@dataclass(frozen=True, slots=True)
class Page:
    """Entries in order, and the position before the next page, or None on the last page."""

    entries: tuple[Position, ...]
    next: Position | None


class TimelineIndex:
    """Content times in order, derived from the columns of frames; shared by all snapshots.

    - ``_state`` is (covered, times): ``times`` has the rows [0, covered).
    """

    def __init__(self) -> None:
        self._state: tuple[int, SortedRows[np.int64]] = (0, SortedRows())
        self._rows = np.empty(0, np.uint32)
        self._lock = threading.RLock()

    def content(
        self, created: I64, recorded: I64, attributes: AttributeView
    ) -> tuple[tuple[I64, U32], ...]:
        """Return times and rows in order, in pieces, for at least the rows of ``created``."""
        if len(created) > self._state[0]:
            with self._lock:
                covered, times = self._state
                if len(created) > covered:
                    defaults = creation_times(created[covered:], recorded[covered:])
                    added = _content_times(covered, defaults, attributes)
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
        """Memory of the order."""
        return self._state[1].size_bytes + self._rows.nbytes


def _content_times(first_row: int, defaults: I64, attributes: AttributeView) -> tuple[I64, U32]:
    """Return the distinct (time, row) of new rows, by row; ``defaults`` are for undated rows."""
    end_row = first_row + len(defaults)
    dates = attributes.within(first_row, end_row, DATE, ValueType.TIME)
    undated = np.ones(len(defaults), np.bool_)
    undated[dates.rows - np.uint32(first_row)] = False
    plain = np.flatnonzero(undated)
    # The XOR removes the bias of a time's key.
    times = concatenate(
        [defaults[plain], (dates.keys ^ np.uint64(1 << 63)).view(np.int64)], np.int64
    )
    rows = concatenate([(plain + first_row).astype(np.uint32), dates.rows], np.uint32)
    order = np.lexsort((times, rows))
    times = times[order]
    rows = rows[order]
    is_new = run_starts(rows, times)
    return times[is_new], rows[is_new]


class Timeline:
    """The frames at seq n in order of time; immutable, for any thread.

    - ``pieces`` are sorted by (time, row); their rows from ``len(ids)`` on are later than n.
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

        ``among`` is a mask over the rows at n; None also admits closed frames. ``after`` is the end
        of the previous page in the same order.

        Raises:
            InvalidInput: limit is not positive.
        """
        if not is_integer(limit) or limit <= 0:
            raise InvalidInput(
                f"limit is {value_text(limit)}, expected a whole number from 1",
                remedy="Pass limit=1 or more.",
            )
        ranges = [_Range(times, rows) for times, rows in self._pieces]
        row = None if after is None else self._row_of(after, newest_first=newest_first)
        for part in ranges:
            part.clip(start, end)
            if after is not None and row is not None:
                part.drop_through((after.time, row), newest_first=newest_first)
        positions: list[Position] = []
        window = max(_WINDOW_MIN, limit)
        # An entry past the page shows that another page follows.
        while len(positions) <= limit and any(part.low < part.high for part in ranges):
            positions += self._step(ranges, window, among, newest_first=newest_first)
            window *= 2
        entries = tuple(positions[:limit])
        return Page(entries, entries[-1] if len(positions) > limit else None)

    def _row_of(self, position: Position, *, newest_first: bool) -> int:
        """Return the last row that a page up to a position can contain.

        Ids ascend with rows, so this also works for the id of an unknown frame.
        """
        side: Literal["left", "right"] = "left" if newest_first else "right"
        row = int(self._ids.searchsorted(position.frame, side))
        return row if newest_first else row - 1

    def _step(
        self, ranges: "list[_Range]", window: int, among: Mask | None, *, newest_first: bool
    ) -> list[Position]:
        """Take the entries that are certain to come next: at most a window of each piece."""
        # Up to the nearest end of a window, so that each piece yields at most its window.
        edges = [edge for part in ranges if (edge := part.edge(window, newest_first=newest_first))]
        edge = (max(edges) if newest_first else min(edges)) if edges else None
        parts = [part.take(edge, newest_first=newest_first) for part in ranges]
        times = concatenate([part[0] for part in parts], np.int64)
        rows = concatenate([part[1] for part in parts], np.uint32)
        admitted = rows < len(self._ids)
        if among is not None and len(among):
            admitted &= among.take(rows, mode="clip")
        times = times[admitted]
        rows = rows[admitted]
        order = np.lexsort((rows, times))
        if newest_first:
            order = order[::-1]
        ids = self._ids[rows[order]]
        return [Position(*pair) for pair in zip(times[order].tolist(), ids.tolist(), strict=True)]


class _Range:
    """The unread entries of a piece: [low, high)."""

    def __init__(self, times: I64, rows: U32) -> None:
        self._times = times
        self._rows = rows
        self.low = 0
        self.high = len(times)

    def clip(self, start: int | None, end: int | None) -> None:
        """Drop the times outside [start, end)."""
        if start is not None:
            self.low = int(self._times.searchsorted(start))
        if end is not None:
            self.high = max(self.low, int(self._times.searchsorted(end)))

    def edge(self, count: int, *, newest_first: bool) -> tuple[int, int] | None:
        """Return (time, row) of the last of the next ``count`` entries; None if no more follow."""
        if self.high - self.low <= count:
            return None
        place = self.high - count if newest_first else self.low + count - 1
        return int(self._times[place]), int(self._rows[place])

    def take(self, edge: tuple[int, int] | None, *, newest_first: bool) -> tuple[I64, U32]:
        """Return the next entries up to ``edge``, or all, in ascending order."""
        low = self.low
        high = self.high
        if edge is None:
            self.low = high
            return self._times[low:high], self._rows[low:high]
        self.drop_through(edge, newest_first=newest_first)
        if newest_first:
            return self._times[self.high : high], self._rows[self.high : high]
        return self._times[low : self.low], self._rows[low : self.low]

    def drop_through(self, edge: tuple[int, int], *, newest_first: bool) -> None:
        """Drop the entries up to and including ``edge``, in the order of reading."""
        time, row = edge
        first = int(self._times.searchsorted(time))
        last = int(self._times.searchsorted(time, side="right"))
        side: Literal["left", "right"] = "left" if newest_first else "right"
        place = first + int(self._rows[first:last].searchsorted(row, side))
        if newest_first:
            self.high = max(self.low, min(self.high, place))
        else:
            self.low = min(self.high, max(self.low, place))
