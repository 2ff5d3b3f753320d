"""Bars of time in a terminal: the density of events, periods, and single moments.

Owns the drawing, in ASCII where the output lacks the blocks. Leaves out the choice of
the times and pictures in files.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Final

from cerata.memory.values.facts import Period

WIDTH: Final = 24
"""Characters of a bar."""

_LEVELS: Final = (" ▁▂▃▄▅▆▇█", " .:-=+*#@")
_PERIOD: Final = ("─━", ".=")
_MOMENT: Final = ("●", "*")


def can_draw() -> bool:
    """Return whether standard output has the characters of the drawings; else they are ASCII."""
    encoding = getattr(sys.stdout, "encoding", None) or "ascii"
    try:
        "".join((_LEVELS[0], _PERIOD[0], _MOMENT[0])).encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True


@dataclass(frozen=True)
class TimeBars:
    """Bars over one range of time, from ``first`` to ``last``.

    - Each of the ``width`` characters is an equal part of the range.
    """

    first: datetime
    last: datetime
    width: int = WIDTH

    @cached_property
    def _kind(self) -> int:
        return 0 if can_draw() else 1

    @property
    def is_empty(self) -> bool:
        """True if the range is a single instant, over which nothing can be drawn."""
        return self.first >= self.last

    def density(self, times: Sequence[datetime]) -> str:
        """Return a row whose heights are the counts of times in each part."""
        counts = [0] * self.width
        for time in times:
            counts[self._place(time)] += 1
        levels = _LEVELS[self._kind]
        top = max(counts, default=0) or 1
        # A part with a single time keeps the lowest visible level.
        return "".join(levels[-(-count * (len(levels) - 1) // top)] for count in counts)

    def period(self, period: Period) -> str:
        """Return a row that is strong where a period holds; each period has a part at least."""
        off, on = _PERIOD[self._kind]
        start = 0 if period.start is None else self._place(period.start)
        end = self.width if period.end is None else self._place(period.end)
        end = max(end, start + 1)
        return off * start + on * (end - start) + off * (self.width - end)

    def moment(self, time: datetime) -> str:
        """Return a row with a mark at a time."""
        off = _PERIOD[self._kind][0]
        place = self._place(time)
        return off * place + _MOMENT[self._kind] + off * (self.width - place - 1)

    def _place(self, time: datetime) -> int:
        if self.is_empty:
            return 0
        share = (time - self.first) / (self.last - self.first)
        return min(self.width - 1, max(0, int(share * self.width)))


def bars_over(times: Sequence[datetime | None], width: int = WIDTH) -> TimeBars | None:
    """Return bars over the range of times; None unless two of them differ."""
    known = [time for time in times if time is not None]
    if not known or min(known) == max(known):
        return None
    return TimeBars(min(known), max(known), width)
