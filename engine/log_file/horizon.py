"""The horizon: the point before which a log no longer has the payloads of all its events.

Owns the check of a point against it. Leaves out the compaction that sets it (`copies.compact`).
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from ..errors import HistoryPruned
from ..events import Erase


@dataclass(frozen=True, slots=True)
class Horizon:
    """The points of a log that can still be read: from ``seq`` on, and those in ``kept``.

    ``by`` is the `erase` event that says so, or ``seq`` in a copy that ends before that event.
    """

    seq: int
    kept: Collection[int]
    by: int

    @classmethod
    def of(cls, seq: int, body: Erase) -> "Horizon":
        """Return the horizon that an event ``seq`` records."""
        # An imported event may name any number, and the newest point must stay readable.
        return cls(min(body.horizon, seq), frozenset(body.kept), seq)

    def has(self, point: int) -> bool:
        """Return whether the state at a point has all its contents."""
        return point >= self.seq or point in self.kept

    def check(self, point: int) -> None:
        """Refuse a point whose state is incomplete.

        Raises:
            HistoryPruned: the point lies before the horizon and had no tag.
        """
        if not self.has(point):
            tags = f", and {len(self.kept):,} tagged points before it" if self.kept else ""
            raise HistoryPruned(
                f"The memory at event {point:,} was given up by retention (event {self.by:,}): "
                f"contents of frames that died by event {self.seq:,} are gone",
                where=f"event {point:,}",
                remedy=f"Read event {self.seq:,} or later{tags}. 'cerata log' lists all events; "
                "their headers and hashes remain.",
            )


def content_pruned(frame: int) -> HistoryPruned:
    """Return the error of a read of a frame's content that retention gave up."""
    return HistoryPruned(
        f"The content of frame {frame:,} was given up by retention",
        where=f"event {frame:,}",
        remedy="Put a new frame. Header, commitment and proof of the event remain.",
    )


NO_HORIZON: Final = Horizon(0, (), 0)
